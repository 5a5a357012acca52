"""Data on disk: whatever it is given as, blocks of it hold every sequence once, in order."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.errors import DataError
from onelayer.sharded.source import read_source

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((50, 3, 2), dtype=np.float32), rng.integers(0, 9, (50, 3))


def in_files(folder, parts: int) -> None:
    for k, (a, b) in enumerate(zip(np.array_split(X, parts), np.array_split(Y, parts), strict=True)):
        np.save(folder / f"{k}-X.npy", a)
        np.save(folder / f"{k}-Y.npy", b)


def ways(folder):
    """The same data given in five ways."""
    in_files(folder, 4)
    np.save(folder / "X.npy", X)
    np.save(folder / "Y.npy", Y)
    yield X, Y
    yield np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "Y.npy", mmap_mode="r")
    yield str(folder / "?-X.npy"), str(folder / "?-Y.npy")
    yield [folder / f"{k}-X.npy" for k in range(4)], [folder / f"{k}-Y.npy" for k in range(4)]
    yield ((X[i : i + 7], Y[i : i + 7]) for i in range(0, 50, 7)), None


def test_every_sequence_is_in_one_block_in_order_however_it_is_given(tmp_path) -> None:
    for k, given in enumerate(ways(tmp_path)):
        source = read_source(*given, tmp_path / f"spool{k}")
        blocks = source.blocks(block_bytes=5 * 3 * 2 * 4)
        assert len(blocks) >= 10
        assert [block.first for block in blocks] == np.cumsum([0, *(b.stop - b.start for b in blocks)])[
            :-1
        ].tolist()
        tokens, answers = (np.concatenate(part) for part in zip(*(b.read() for b in blocks), strict=True))
        assert np.array_equal(tokens, X)
        assert np.array_equal(answers, Y)
        assert (source.N, source.n, source.is_real, source.per_token) == (50, 3, True, True)


def test_a_mapped_file_is_used_where_it_is_and_a_part_of_one_is_not(tmp_path) -> None:
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = read_source(mapped, Y, tmp_path / "spool")
    assert source.files[0][0] == str(tmp_path / "X.npy")
    part = read_source(mapped[::2], Y[::2], tmp_path / "half")
    assert part.files[0][0] == str(tmp_path / "half" / "X.npy")
    assert np.array_equal(part.blocks()[0].read()[0], X[::2])


def test_other_data_has_another_fingerprint(tmp_path) -> None:
    first = read_source(X, Y, tmp_path / "a").fingerprint()
    assert first == read_source(X, Y, tmp_path / "a").fingerprint()
    changed = Y.copy()
    changed[-1, -1] += 1
    assert first != read_source(X, changed, tmp_path / "a").fingerprint()


def test_numbers_without_components_have_one_and_whole_vectors_are_reals(tmp_path) -> None:
    assert read_source(X[:, :, 0], Y, tmp_path / "a").blocks()[0].read()[0].shape == (50, 3, 1)
    whole = read_source(rng.integers(0, 9, (50, 3, 2)), Y, tmp_path / "b")
    assert (whole.is_real, whole.blocks()[0].read()[0].dtype) == (True, np.float64)
    assert not read_source(Y, Y, tmp_path / "c").is_real


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((X[:, 0, 0], Y[:, 0]), "X has shape"),
        ((X, Y[:, :2]), "Y has shape"),
        ((X, Y[:-1]), "Y has shape"),
        ((X, Y.astype(object)), "Python objects"),
        (("nothing-*.npy", "nothing-*.npy"), "there is no"),
        (([(X, Y), 3], None), "block 1 is 3"),
        (([(X, Y), (X[:, :2], Y[:, :2])], None), "000001X.npy has"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, given, found) -> None:
    with pytest.raises(DataError, match=found):
        read_source(*given, tmp_path)


def test_a_broken_file_is_refused(tmp_path) -> None:
    np.save(tmp_path / "Y.npy", Y)
    (tmp_path / "X.npy").write_bytes(b"\x93NUMPY nonsense")
    with pytest.raises(DataError, match=r"whole \.npy files"):
        read_source(tmp_path / "X.npy", tmp_path / "Y.npy", tmp_path / "spool")
