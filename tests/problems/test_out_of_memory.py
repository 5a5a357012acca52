"""Sources larger than memory: mapped arrays and large Parquet files give the same models, in little memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onelayer
from onelayer.compile import prove
from onelayer.contexts import quantiser
from onelayer.errors import DataError, FileError
from onelayer.problems import blocks
from onelayer.problems.blocks import is_mapped
from onelayer.problems.files import streamed
from onelayer.problems.tables import read_table

memorize = partial(onelayer.memorize, certify=False)

N, n, d = 300, 4, 6


def mapped(folder: Path, X: Any) -> Any:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def tensors(model: Any) -> dict[str, bytes]:
    return {name: np.asarray(a).tobytes() for name, a in model.transformer.tensors()}


def tokens(kind: str) -> Any:
    X = np.random.default_rng(1).standard_normal((N, n, d)).astype(np.float32)
    if kind == "far from zero":
        return X + np.float32(100.0)
    if kind == "whole numbers":
        return (X * 1000).astype(np.int32)
    return X.astype(np.float64) if kind == "float64" else X


@pytest.mark.parametrize("kind", ["plain", "far from zero", "whole numbers", "float64"])
@pytest.mark.parametrize("options", [{}, {"positions": True}, {"readout": "table"}, {"lengths": True}])
@pytest.mark.parametrize("sampled", [False, True])
def test_a_mapped_array_gives_the_same_weights(
    kind: str, options: dict[str, Any], sampled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks.blocks, "__defaults__", (1 << 10,))
    if sampled:
        monkeypatch.setattr(quantiser, "SAMPLE", 1 << 11)
    rng, X = np.random.default_rng(2), tokens(kind)
    Y = rng.integers(0, 9, (N, n))
    options = {**options, "lengths": rng.integers(1, n + 1, N)} if "lengths" in options else options
    there, here = memorize(mapped(tmp_path, X), Y, **options), memorize(X, Y, **options)
    assert there.ledger["mapping"] == "lattice"
    assert tensors(there) == tensors(here)


def test_read_sequences_leaves_a_mapped_array_where_it_is(tmp_path: Path) -> None:
    from onelayer.contexts.stream import RealStream
    from onelayer.problems.sequences import read_sequences

    X = mapped(tmp_path, tokens("plain"))
    assert np.shares_memory(read_sequences(X).tokens, X)
    for kind, lengths in (("far from zero", None), ("float64", None), ("plain", np.full(N, n - 1))):
        sequences = read_sequences(mapped(tmp_path, tokens(kind)), lengths)
        assert is_mapped(sequences.tokens)
        assert is_mapped(RealStream.prepare(sequences, np.dtype(np.float32), False).tokens)


@pytest.mark.parametrize("kind", ["reals", "few values", "one rare value"])
def test_cuts_judged_by_a_sample_lie_in_gaps_of_all_data(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiser, "SAMPLE", 1 << 9)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 3)).astype(np.float32)
    if kind == "few values":
        X = rng.integers(0, 3, (5000, 3)).astype(np.float32)
    elif kind == "one rare value":
        X = np.zeros((5000, 3), np.float32)
        X[1234] = 1.0
    q = quantiser.quantise(X, 8, np.dtype(np.float32))
    assert set(q.component.tolist()) == {0, 1, 2}
    for i, slope, start in zip(q.component, q.slope, q.start, strict=True):
        assert not ((X[:, i] > start) & (X[:, i] < start + 1 / slope)).any()
        assert 0 < (X[:, i] <= start).sum() < len(X)


def parquet(path: Path, form: str, answers: str) -> Path:
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 4, 50) if "ragged" in form else np.full(50, 3)
    X = [rng.standard_normal((k, 2)).astype(np.float32) for k in counts]
    Y = [rng.integers(0, 9, k).tolist() for k in counts]
    if answers == "words":
        Y = [[f"w{y}" for y in row] for row in Y]
    if answers == "reals":
        Y = [[y / 4 for y in row] for row in Y]
    if "rows" not in form:
        columns: dict[str, Any] = {"tokens": pa.array([x.tolist() for x in X], pa.list_(pa.list_(pa.float32())))}
        columns["answer" if answers == "sequence" else "answers"] = (
            [row[0] for row in Y] if answers == "sequence" else Y
        )
    else:
        flat = np.concatenate(X)
        columns = {"sequence": np.repeat(np.arange(50) + 7, counts), "x0": flat[:, 0], "x1": flat[:, 1]}
        columns["position"] = np.concatenate([np.arange(k) for k in counts])
        if answers == "sequence":
            columns["sequence_answer"] = np.repeat([row[0] for row in Y], counts)
        else:
            columns["answer"] = [y for row in Y for y in row]
    table = pa.table(columns)
    if "shuffled" in form:
        table = table.take(rng.permutation(table.num_rows))
    pq.write_table(table, path, row_group_size=20)
    return path


def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "LARGE", 0)
    monkeypatch.setattr(streamed, "BATCH_BYTES", 200)


@pytest.mark.parametrize("form", ["lists", "ragged lists", "rows", "ragged shuffled rows"])
@pytest.mark.parametrize("answers", ["whole", "words", "reals", "sequence"])
def test_a_large_parquet_file_is_read_in_batches(
    form: str, answers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path / "a.parquet", form, answers)
    at_once = read_table(path)
    small_batches(monkeypatch)
    in_batches = read_table(path)
    assert is_mapped(in_batches.X)
    assert not is_mapped(at_once.X)
    assert list(in_batches.records()) == list(at_once.records())
    options = {"lengths": at_once.lengths, "scope": at_once.scope, "mapping": "lattice", "dtype": "float32"}
    models = [memorize(t.X, t.Y, **options) for t in (in_batches, at_once)]
    assert tensors(models[0]) == tensors(models[1])


@pytest.mark.parametrize("broken", [False, True])
def test_nothing_is_left_in_the_temporary_folder(
    broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scratch = parquet(tmp_path / "a.parquet", "ragged shuffled rows", "whole"), tmp_path / "scratch"
    scratch.mkdir()
    if broken:
        table = pq.read_table(path, use_threads=False)
        x0 = pa.array([*table["x0"].to_pylist()[:-1], None], pa.float32())
        pq.write_table(table.set_column(table.schema.get_field_index("x0"), "x0", x0), path)
    small_batches(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    if broken:
        with pytest.raises(DataError, match="null"):
            read_table(path)
    else:
        table = read_table(path)
        if sys.platform == "linux":
            assert str(scratch) in Path("/proc/self/maps").read_text()  # it was there, without a name
        memorize(table.X, table.Y, lengths=table.lengths)
        del table
    gc.collect()
    assert not list(scratch.iterdir())
    if sys.platform == "linux":
        assert str(scratch) not in Path("/proc/self/maps").read_text()


def test_arrays_beside_each_other(tmp_path: Path) -> None:
    X, Y = tokens("plain"), np.random.default_rng(5).integers(0, 9, (N, n))
    np.save(tmp_path / "trainX.npy", X)
    np.save(tmp_path / "trainY.npy", Y)
    table = read_table(tmp_path / "trainX.npy")
    assert is_mapped(table.X)
    assert table.scope == "token"
    assert tensors(memorize(table.X, table.Y)) == tensors(memorize(X, Y))
    with pytest.raises(FileError, match=r"X\.npy"):
        read_table(tmp_path / "trainY.npy")


def test_an_unasked_proof_does_not_read_a_large_file(tmp_path: Path, monkeypatch) -> None:
    np.save(tmp_path / "X.npy", tokens("plain"))
    X, Y = np.load(tmp_path / "X.npy", mmap_mode="r"), np.random.default_rng(5).integers(0, 9, (N, n))
    assert onelayer.memorize(X, Y).proved
    monkeypatch.setattr(prove, "FROM_DISK", X.nbytes - 1)
    model = onelayer.memorize(X, Y)
    assert not model.proved
    assert f"on disk, {X.nbytes:,} bytes" in model.ledger.meaning("certified")
    assert onelayer.memorize(np.array(X), Y).proved
    assert onelayer.memorize(X, Y, certify=True).proved


MEASURE = """
import sys, threading
import numpy as np
from onelayer import memorize

def anonymous():  # bytes of memory that no file stands for; pages of a mapped file can be dropped at any time
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

X, Y = np.load(sys.argv[1], mmap_mode="r"), np.load(sys.argv[2])
memorize(X[:600], Y[:600])  # libraries are warm
before, done = anonymous(), threading.Event()
peak = [before]
thread = threading.Thread(target=watch)
thread.start()
model = memorize(X if sys.argv[3] == "mapped" else np.array(X), Y)
done.set()
thread.join()
print(peak[0] - before)
"""


@pytest.mark.slow
def test_the_peak_is_far_below_the_size_of_the_tokens(tmp_path: Path) -> None:
    count, width = 12_000, 768
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (count, 16, width))  # type: ignore[no-untyped-call]
    rng = np.random.default_rng(6)
    for start in range(0, count, 500):
        X[start : start + 500] = rng.standard_normal((500, 16, width), np.float32)
    np.save(tmp_path / "Y.npy", rng.integers(0, 9, (count, 16)))
    files = [str(tmp_path / "X.npy"), str(tmp_path / "Y.npy")]
    peak = {
        kind: int(
            subprocess.run(
                [sys.executable, "-c", MEASURE, *files, kind], check=True, capture_output=True, timeout=500
            ).stdout
        )
        for kind in ("mapped", "memory")
    }
    print(peak, X.nbytes)
    assert peak["memory"] > X.nbytes
    assert peak["mapped"] < X.nbytes / 2
