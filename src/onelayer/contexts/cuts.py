"""Where a line of numbers is cut, so that pieces of it tell apart what values do: far fewer pieces than values.

A context is a token and its company. Two tokens of one sequence share their company, so a cut must lie between
them; two sequences need one cut between some values in which they differ, and most have it already. Of N sequences
a piece then holds about sqrt(N) values: it ends where a sequence would be in it for the second time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: A piece may end so many values earlier than it must, where the gap is widest.
EARLIER = 8
#: There are at least this many pieces, and this many over the length of sequences, if there are as many values:
#: sums over few tokens of fewer take few values.
FEWEST_PIECES, IN_SEQUENCES = 1 << 8, 1 << 12
#: An odd number that spreads the bits of another.
SPREADING = np.uint64(0x9E3779B97F4A7C15)


def cut_line(at: Array, gaps: Array, ordered: bool, shared: bool) -> Array:
    """[V] whether a piece begins at each of V sorted values.

    ``at`` [N, n] are the values of sequences, by number, -1 for padding; ``gaps`` [V - 1] those between values. If
    sequences are ``ordered``, or contexts ``shared`` by all tokens of a sequence, two of its tokens may be in one
    piece.
    """
    count = len(gaps) + 1
    longest = max(1, count // max(FEWEST_PIECES, IN_SEQUENCES // at.shape[1]))
    before = np.full(count, -1) if ordered or shared else _last_before(at, count)
    begins = _split(np.maximum.accumulate(before), gaps, longest)
    begins[_between_equals(np.where(at < 0, -1, (np.cumsum(begins) - 1)[at]), at, ordered)] = True
    return begins


def meeting(marks: Array, valid: Array | None, ordered: bool) -> Array:
    """Numbers of tokens that have the mark of another one of their sequence, and of those of sequences whose marks,
    in their order if they are ``ordered``, are those of another; ``marks`` [N, n] are whole and below 2^53."""
    bits, inside = marks.astype(np.uint64), np.ones(marks.shape, bool) if valid is None else valid
    mixed = (bits ^ bits >> np.uint64(23)) * SPREADING
    if ordered:
        mixed *= 2 * np.arange(marks.shape[1], dtype=np.uint64) + np.uint64(1)
    _, kind, counts = np.unique((mixed * inside).sum(axis=1), return_inverse=True, return_counts=True)
    meets = np.broadcast_to((counts[kind] > 1)[:, None], marks.shape).copy()
    order = np.argsort(bits, axis=1, kind="stable")
    in_order = np.take_along_axis(bits, order, axis=1)
    again = np.zeros(marks.shape, bool)
    again[:, 1:] = in_order[:, 1:] == in_order[:, :-1]
    again[:, :-1] |= again[:, 1:]
    rows, places = np.nonzero(again)
    meets[rows, order[rows, places]] = True
    return np.flatnonzero(meets & inside)


def _last_before(at: Array, count: int) -> Array:
    """[count] for each value the largest smaller one that some sequence with it has too, or -1."""
    rows = np.sort(at, axis=1)
    left, right = rows[:, :-1], rows[:, 1:]
    apart = (left < right) & (left >= 0)
    found = np.full(count, -1)
    np.maximum.at(found, right[apart], left[apart])
    return found


def _split(before: Array, gaps: Array, longest: int) -> Array:
    """Pieces of at most ``longest`` values none of which, [i], has its ``before[i]``, which never falls, inside."""
    begins, start, count = np.zeros(len(before), bool), 0, len(before)
    while start < count:
        begins[start] = True
        end = min(int(np.searchsorted(before, start)), start + longest, count)  # the next piece begins here at last
        if end < count:
            first = max(start + 1, end - EARLIER)
            end = first + int(np.argmax(gaps[first - 1 : end]))
        start = end
    return begins


def _between_equals(pieces: Array, at: Array, ordered: bool) -> Array:
    """Values at which to cut, so that sequences that differ are not the same pieces.

    Among sequences of equal pieces, sorted by their values, neighbours are cut apart at the first value that
    differs; so are then any two of them, as the first value in which they differ is one of two neighbours between.
    """
    rng = np.random.default_rng(0)
    marks = rng.integers(1, 1 << 63, int(pieces.max()) + 2, dtype=np.uint64)[pieces]  # the last one of padding
    if ordered:
        marks = marks * (rng.integers(0, 1 << 62, at.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1))
    _, kind, counts = np.unique(marks.sum(axis=1, dtype=np.uint64), return_inverse=True, return_counts=True)
    same = np.flatnonzero(counts[kind] > 1)
    rows = at[same] if ordered else np.sort(at[same], axis=1)
    order = np.lexsort((*rows.T[::-1], kind[same]))
    rows, kinds = rows[order], kind[same][order]
    differ = rows[1:] != rows[:-1]
    pairs = np.flatnonzero((kinds[1:] == kinds[:-1]) & differ.any(axis=1))
    return np.asarray(rows[pairs + 1, differ[pairs].argmax(axis=1)])
