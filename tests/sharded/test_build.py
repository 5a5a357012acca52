"""A model in shards: every answer comes back and is proved; what is interrupted or killed goes on; nothing is half
there."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onelayer import load, memorize
from onelayer.errors import DataError, FileError, HypothesisError, OptionError
from onelayer.sharded import build
from onelayer.sharded.model import ShardedModel
from onelayer_checker import MANIFEST, folder_of, read_manifest

rng = np.random.default_rng(2)
N, n, d = 240, 4, 3
X, Y = rng.standard_normal((N, n, d), dtype=np.float32), rng.integers(0, 7, (N, n))


def digests(folder: Path) -> dict[str, str]:
    return {
        f"{path.name}/{name}": digest
        for path in folder.glob("shard-*")
        for name, digest in build._digests(path).items()
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> ShardedModel:
    folder = tmp_path_factory.mktemp("sharded") / "model"
    return memorize(X, Y, cluster=2, folder=folder, shard_answers=300)


def test_every_answer_comes_back_and_only_the_shards_asked_for_are_read(model) -> None:
    assert model.count == 3
    assert (model.sequences, model.answers) == (N, N * n)
    assert np.array_equal(model.predict(X), Y)
    again = load(model.folder)
    assert isinstance(again, ShardedModel)
    one = np.flatnonzero(again.route(X) == 1)
    assert np.array_equal(again.predict(X[one]), Y[one])
    assert list(again._read) == [1]
    assert again.n_parameters == again.router.n_parameters + sum(again.shard(k).n_parameters for k in range(3))
    assert f"{again.n_parameters:,} parameters in float32" in repr(again)


def test_the_checker_proves_every_shard_and_knows_a_persons_own_data(model) -> None:
    seen = []
    report = model.verify((X, Y), require=["memorizes float32"], show=seen.append)
    assert (report.result, len(seen)) == ("VERIFIED", 3)
    assert sum(shard.answers for shard in seen) == N * n
    assert "all 240 sequences are certified" in report.notes[-1]
    other = Y.copy()
    other[5, 1] = (other[5, 1] + 1) % 7
    assert model.verify((X, other)).result == "NOT VERIFIED"
    assert model.verify((X + 1, Y)).result == "UNKNOWN"
    assert model.verify(require=["robust"]).gate == "require"


def test_nothing_but_the_model_is_left(model) -> None:
    assert [path.name for path in model.folder.parent.iterdir()] == ["model"]
    wanted = {MANIFEST, "router", *map(folder_of, range(3))}
    assert {path.name for path in model.folder.iterdir()} == wanted


class Stop(Exception):
    pass


def interrupt_build(finished: int, options: dict[str, Any]) -> None:
    """Begin a model in shards, and stop when this many of them are made."""

    def stop(line: str) -> None:
        if line.startswith(f"making shards: {finished}"):
            raise Stop

    with pytest.raises(Stop):
        memorize(X, Y, cluster=1, on_step=stop, **options)


def test_an_interrupted_build_goes_on_with_what_is_finished(model, tmp_path) -> None:
    made, options = [], {"folder": tmp_path / "model", "shard_answers": 300}
    interrupt_build(2, options)
    assert not (tmp_path / "model").exists()
    kept = tmp_path / ".model.shards" / folder_of(0)
    time_of = kept.stat().st_mtime_ns
    broken = tmp_path / ".model.shards" / folder_of(1) / "model.safetensors"
    broken.write_bytes(broken.read_bytes()[:-1] + b"?")
    again = memorize(X, Y, cluster=1, on_step=made.append, **options)
    assert "1 of 3 shards are there already" in made  # the other is not as it was written
    assert (tmp_path / "model" / folder_of(0)).stat().st_mtime_ns == time_of
    assert digests(again.folder) == digests(model.folder)
    assert not (tmp_path / ".model.shards").exists()


def test_what_is_finished_of_other_data_is_not_used(tmp_path) -> None:
    options = {"folder": tmp_path / "model", "shard_answers": 500}
    interrupt_build(1, options)
    other = (Y + 1) % 7
    assert np.array_equal(memorize(X, other, cluster=1, **options).predict(X), other)


def test_a_worker_that_is_killed_costs_its_shard_only(model, tmp_path) -> None:
    killed = []

    def kill(line: str) -> None:
        if line.startswith("making shards: 1") and not killed:
            tasks = Path("/proc/self/task").glob("*/children")
            children = [int(pid) for task in tasks for pid in task.read_text().split()]
            killed.append(next(pid for pid in children if b"serve()" in Path(f"/proc/{pid}/cmdline").read_bytes()))
            os.kill(killed[0], signal.SIGKILL)

    again = memorize(X, Y, cluster=1, folder=tmp_path / "model", shard_answers=300, on_step=kill)
    assert killed
    assert digests(again.folder) == digests(model.folder)
    assert again.verify().result == "VERIFIED"


def test_words_in_order_an_answer_a_sequence_and_claims_that_are_left_to_verify(tmp_path) -> None:
    words = rng.integers(10, 30, (120, 5))
    answers = np.array(["left", "right", "none"])[rng.integers(0, 3, 120)]
    options = {"cluster": 1, "folder": tmp_path / "words", "shard_answers": 50}
    made = memorize(words, answers, positions=True, certify=False, **options)
    assert made.count > 1
    assert made.predict(words).tolist() == answers.tolist()
    assert made.verify((words, answers)).result == "VERIFIED"
    assert made.shard(0).form.classes == ("left", "none", "right")


@pytest.mark.parametrize("per_token", [True, False])
def test_vectors_of_classes(tmp_path, per_token) -> None:
    vectors = rng.integers(0, 5, (N, n, 3)) if per_token else rng.integers(0, 5, (N, 3)).astype(np.float32)
    made = memorize(X, vectors, cluster=1, folder=tmp_path / "m", shard_answers=300 if per_token else 80)
    assert made.count == 3
    assert made.shard(0).transformer.dtype == np.float32
    np.testing.assert_array_equal(made.predict(X), vectors)
    assert made.verify((X, vectors.astype(float)), require=["memorizes float32"]).result == "VERIFIED"
    vectors[7, ..., 2] += 1
    assert made.verify((X, vectors.astype(float))).result == "NOT VERIFIED"


def test_conflicts_are_named_by_their_places_in_all_of_the_data_and_settled(tmp_path) -> None:
    twice, other = np.concatenate([X, X[17:18]]), np.concatenate([Y, Y[17:18]])
    other[-1, 2] = (other[-1, 2] + 1) % 7
    options = {"cluster": 1, "folder": tmp_path / "model", "shard_answers": 500}
    with pytest.raises(HypothesisError, match="sequence 17, token 2 and sequence 240, token 2 are one context"):
        memorize(twice, other, **options)
    settled = memorize(twice, other, on_conflict="first", **options)
    assert np.array_equal(settled.predict(X), Y)
    assert settled.sequences == 241


def test_a_folder_is_replaced_only_if_that_is_asked_for(model, tmp_path) -> None:
    (tmp_path / "else").mkdir()
    with pytest.raises(FileError, match="is not a model in shards"):
        memorize(X, Y, cluster=1, folder=tmp_path / "else")
    with pytest.raises(FileError, match="exists"):
        memorize(X, Y, cluster=1, folder=model.folder)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "folder was left out"),
        ({"folder": "m", "shard_answers": 0}, "shard_answers=0"),
        ({"folder": "m", "lengths": [1] * N}, "lengths were given"),
        ({"folder": "m", "dtype": "int8"}, "dtype 'int8'"),
        ({"folder": "m", "readout": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_be_built_is_refused(tmp_path, monkeypatch, options, found) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=found):
        memorize(X, Y, cluster=1, **options)
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_not_finite_are_named(tmp_path) -> None:
    bad = X.copy()
    bad[201, 1, 1] = np.nan
    with pytest.raises(DataError, match="a component of sequence 201"):
        memorize(bad, Y, cluster=1, folder=tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_mistake_does_not_cost_what_an_interrupted_build_finished(tmp_path) -> None:
    options = {"folder": tmp_path / "model", "shard_answers": 500}
    interrupt_build(1, options)
    with pytest.raises(OptionError, match="at least one process"):
        memorize(X, Y, cluster=0, **options)
    made: list[str] = []
    memorize(X, Y, cluster=1, on_step=made.append, **options)
    assert "1 of 2 shards are there already" in made


def test_the_manifest_is_what_the_specification_says(model) -> None:
    said = json.loads((model.folder / MANIFEST).read_text())
    assert set(said) == {"format", "router", "names", "shards", "sequences", "answers"}
    manifest = read_manifest(model.folder)
    assert sum(entry.sequences for entry in manifest.shards) == said["sequences"] == N
