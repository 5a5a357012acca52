"""Pieces of a line tell apart what its values do: tokens of one sequence, and sequences."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer.contexts import cuts
from onelayer.contexts.cuts import FEWEST_PIECES, _split, cut_line

DATA = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 7), st.sampled_from([2, 9, 40, 3000])
)


def draw(seed: int, N: int, n: int, values: int, ragged: bool):
    """Values of sequences by number, and the gaps between values; many sequences nearly repeat another."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, values, (N, n))
    moved = rng.integers(-1, 2, (N - N // 2, n)) * (rng.random((1, n)) < 0.3)
    drawn[N // 2 :] = np.abs(drawn[: N - N // 2] + moved)
    if ragged:
        drawn[np.arange(n) >= rng.integers(1, n + 1, N)[:, None]] = -1
    used, at = np.unique(drawn, return_inverse=True)
    padded = int(used[0] < 0)
    return at.reshape(N, n) - padded, rng.random(max(0, len(used) - padded - 1))


def pieces_of(at, gaps, ordered, shared=False):
    with mock.patch.multiple(cuts, FEWEST_PIECES=1, IN_SEQUENCES=1):  # else each of few values is a piece
        begins = cut_line(at, gaps, ordered, shared)
    assert begins[0]
    pieces = np.cumsum(begins) - 1
    return [[(int(a), int(pieces[a])) for a in row if a >= 0] for row in at]


@given(DATA, st.booleans())
def test_tokens_of_a_sequence_that_differ_are_in_different_pieces(data, ragged) -> None:
    at, gaps = draw(*data, ragged)
    for row in pieces_of(at, gaps, ordered=False):
        assert len({a for a, _ in row}) == len({p for _, p in row})


@given(DATA, st.booleans(), st.booleans())
def test_bags_that_differ_are_different_pieces(data, ragged, shared) -> None:
    at, gaps = draw(*data, ragged)
    rows = pieces_of(at, gaps, ordered=False, shared=shared)
    bags = {tuple(sorted(Counter(a for a, _ in row).items())) for row in rows}
    seen = {tuple(sorted(Counter(p for _, p in row).items())) for row in rows}
    assert len(bags) == len(seen)


@given(DATA, st.booleans())
def test_rows_that_differ_are_different_pieces(data, ragged) -> None:
    at, gaps = draw(*data, ragged)
    rows = pieces_of(at, gaps, ordered=True)
    assert len({tuple(a for a, _ in row) for row in rows}) == len({tuple(p for _, p in row) for row in rows})


@pytest.mark.parametrize("N", [400, 6400])
def test_a_piece_holds_about_the_root_of_as_many_values_as_there_are_sequences(N) -> None:
    rng = np.random.default_rng(0)
    at = rng.permutation(24 * N).reshape(N, 24)
    gaps = rng.random(24 * N - 1)
    size = 24 * N / cut_line(at, gaps, ordered=False, shared=False).sum()
    assert 0.8 * N**0.5 < size < 1.4 * N**0.5
    for kind in ({"ordered": True, "shared": False}, {"ordered": False, "shared": True}):
        assert FEWEST_PIECES <= cut_line(at, gaps, **kind).sum() < 1.5 * FEWEST_PIECES


def test_a_piece_ends_where_the_gap_is_widest_of_the_last_few() -> None:
    before, gaps = np.repeat([-1, 0], [20, 10]), np.full(29, 0.5)  # value 20 has met value 0, none has met another
    gaps[[3, 15]] = 3.0, 2.0  # the first is too far from where the piece must end
    np.testing.assert_array_equal(np.flatnonzero(_split(before, gaps, 100)), [0, 16])
    begins = np.flatnonzero(_split(before, gaps, 10))
    assert {4, 16} <= set(begins.tolist())
    assert np.diff(begins, append=30).max() <= 10
