"""Cutting coordinates into cells, in gaps between the values that they take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.line import Line, trapezoids
from onelayer.network.blocks import over_threads
from onelayer.problems.blocks import column_bounds

Array = NDArray[Any]

#: Neighbours of a quantile among which the widest gap is taken.
NEIGHBOURS = 32
#: Whole numbers are counted if their range is at most this many times their number.
WIDEST = 16
#: Keys whose coordinates are put apart at a time, which stay in cache.
ROWS = 1 << 13


@dataclass(frozen=True)
class Cells:
    """One coordinate, cut into cells by gaps [K - 1] from low to high."""

    coordinate: int
    low: Array
    high: Array

    @property
    def count(self) -> int:
        return len(self.low) + 1

    def line(self, dtype: np.dtype[Any]) -> tuple[Line, float]:
        """The units that tell the cells apart, and how far a value may move towards a gap."""
        weight, bias, guard = trapezoids(self.low, self.high, dtype)
        return Line(self.coordinate, weight, bias), guard


@dataclass(frozen=True)
class Column:
    """What one coordinate is for all keys; whole numbers are counted, and others sorted when they are cut."""

    coordinate: int
    values: Array  # [M] the numbers, or whole numbers less the lowest
    low: int
    counts: Array | None  # how often each whole number from ``low`` on occurs

    @cached_property
    def distinct(self) -> int:
        """How many values it takes."""
        return len(np.unique(self.values)) if self.counts is None else int(np.count_nonzero(self.counts))

    def cut(self, cells: int, least: float) -> tuple[Cells, Array]:
        """About equally filled cells, cut in gaps wider than ``least``; and the cell of each key."""
        if self.counts is not None and least < 1:
            found, cell = cut_counted(self.counts, self.low, self.coordinate, cells)
            return found, cell.take(self.values)
        z = self.values if self.counts is None else self.values + float(self.low)
        found = _cut_wide(np.sort(z), self.coordinate, cells, least)
        return found, np.searchsorted(found.high, z, side="right").astype(np.int32)  # no value is inside a gap


def columns_of(keys: Array) -> list[Column]:
    """The coordinates of keys [M, c], each in one piece: rows are gone through once, some at a time."""
    M, c = keys.shape
    low, high = (side.astype(np.float64) for side in column_bounds(keys))
    exact = 2.0 ** np.finfo(keys.dtype).nmant  # whole numbers up to here, and their differences
    narrow = (high - low < min(WIDEST * M, 1 << 31, exact)) & (np.maximum(-low, high) < exact) & (low % 1 == 0)
    steps, is_whole = np.empty((c, M), np.int32), np.repeat(narrow[None], -(-M // ROWS), axis=0)
    first = low.astype(keys.dtype)[:, None]

    def run(rows: Any) -> None:
        part = np.array(keys[rows].T, order="C")
        part -= first
        part[~narrow] = 0
        steps[:, rows] = part
        is_whole[rows.start // ROWS] &= (steps[:, rows] == part).all(axis=1)

    over_threads(run, [slice(a, a + ROWS) for a in range(0, M, ROWS)])
    return [
        Column(i, steps[i], int(low[i]), np.bincount(steps[i]))
        if is_whole[:, i].all()
        else Column(i, np.ascontiguousarray(keys[:, i]), 0, None)
        for i in range(c)
    ]


def cut_counted(counts: Array, low: int, coordinate: int, cells: int) -> tuple[Cells, Array]:
    """The same of how often each whole number from ``low`` on occurs; and the cell of each of these numbers."""
    upto = np.cumsum(counts)
    last = np.unique(np.searchsorted(upto, np.arange(1, cells) * upto[-1] // cells))  # of each cell but the last
    last = last[last + 1 < len(upto)]
    begins = np.zeros(len(upto), np.int32)
    begins[last + 1] = 1
    ends = (last + low).astype(np.float64)
    return Cells(coordinate, ends, ends + 1), np.cumsum(begins, dtype=np.int32)


def _cut_wide(v: Array, coordinate: int, cells: int, least: float) -> Cells:
    """Sorted values, cut in the widest gaps near their quantiles."""
    if len(v) < 2 or cells < 2:
        return Cells(coordinate, v[:0], v[:0])
    gaps = np.diff(v)
    around = np.unique(np.arange(1, cells) * len(v) // cells)
    reach = int(np.clip(len(v) // (4 * cells), 1, NEIGHBOURS))
    at = _widest(gaps, around, reach)
    # A coordinate of few values repeats them: go on to the end of the run, where the next gap is.
    stuck = gaps[at] == 0
    if stuck.any():
        at[stuck] = np.minimum(np.searchsorted(v, v[at[stuck]], side="right") - 1, len(gaps) - 1)
    at = np.unique(at[gaps[at] > least])
    return Cells(coordinate, *narrow_gaps(v[at], v[at + 1]))


def narrow_gaps(low: Array, high: Array) -> tuple[Array, Array]:
    """The middle of wide gaps, of width 1 and between whole numbers: where other lattice points lie, no ramp is."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    middle = np.floor((low + high) / 2)
    wide = high - low > 1
    return np.where(wide, np.maximum(middle, low), low), np.where(wide, np.minimum(middle + 1, high), high)


def _widest(gaps: Array, around: Array, reach: int) -> Array:
    window = np.clip(around[:, None] + np.arange(-reach, reach), 0, len(gaps) - 1)
    best: Array = window[np.arange(len(around)), gaps[window].argmax(axis=1)]
    return best
