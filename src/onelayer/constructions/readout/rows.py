"""Dividing keys into rows along one coordinate so that another one tells the answers of each row apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.constructions.readout.cells import Cells, narrowed

Array = NDArray[Any]

#: Gaps of this many radii leave room for rounding on either side of a step.
GAP_IN_RADII = 2.8


@dataclass(frozen=True)
class Rows:
    cells: Cells  # along coordinate 0
    coordinate: Array  # [R] along which a row is read
    order: Array  # [M] keys by row, then along the row
    row: Array  # [M] row of the keys in that order
    z: Array  # [M] their column coordinate

    @property
    def count(self) -> int:
        return self.cells.count


def divide(keys: Array, values: Array, size: int, radius: float, merge: bool) -> Rows | None:
    """Rows of at most ``size`` keys where gaps allow; ``merge``: neighbours with equal answers may be close."""
    M, c = keys.shape
    by_row = np.argsort(keys[:, 0], kind="stable")
    z0 = keys[by_row, 0]
    allowed = np.flatnonzero(np.diff(z0) > GAP_IN_RADII * radius) + 1  # a row may begin at these places
    starts = _starts(allowed, M, size)
    candidates = [0] if c == 1 else list(range(1, c))
    chosen = np.zeros(M, np.intp)  # by the place where a row begins
    order = np.empty(M, np.intp)
    pending = np.ones(M, bool)
    while pending.any():
        row_start = starts[np.searchsorted(starts, np.arange(M), side="right") - 1]
        bad = np.unique(row_start[pending])
        for i in candidates:
            places = np.flatnonzero(pending)
            done, sorted_places = _along(keys, values, by_row, row_start, places, i, radius, merge)
            good = ~np.isin(row_start[sorted_places], done)
            order[places[good]] = by_row[sorted_places[good]]  # both are grouped by row, in the same order of rows
            chosen[np.setdiff1d(bad, done)] = i
            pending[places[good]] = False
            bad = done
            if not bad.size:
                break
        if bad.size:
            starts_next = _split(starts, bad, allowed, M)
            if starts_next is None:
                return None
            starts = starts_next
    row = np.searchsorted(starts, np.arange(M), side="right") - 1
    coordinate = chosen[starts]
    cells = Cells(0, *narrowed(z0[starts[1:] - 1], z0[starts[1:]]))
    return Rows(cells, coordinate, order, row, keys[order, coordinate[row]].astype(np.float64))


def _starts(allowed: Array, M: int, size: int) -> Array:
    """First places of rows, each as long as fits."""
    starts = [0]
    while starts[-1] + size < M:
        at = int(np.searchsorted(allowed, starts[-1] + size, side="right")) - 1
        if at < 0 or allowed[at] <= starts[-1]:  # the first gap comes only later
            at += 1
            if at >= len(allowed):
                break
        starts.append(int(allowed[at]))
    return np.array(starts)


def _along(
    keys: Array, values: Array, by_row: Array, row_start: Array, places: Array, i: int, radius: float, merge: bool
) -> tuple[Array, Array]:
    """Sort the keys of the rows at ``places`` along coordinate i: (starts of ambiguous rows, sorted places)."""
    z = keys[by_row[places], i].astype(np.float64)
    if i:  # one sort of a packed key is much faster than a lexicographic one
        low = z.min()
        span = float(np.exp2(np.ceil(np.log2(z.max() - low + 1.0))))
        order = np.argsort(row_start[places] * span + (z - low), kind="stable")
        places, z = places[order], z[order]
    same_row = np.diff(row_start[places]) == 0
    close = same_row & (np.diff(z) <= GAP_IN_RADII * radius)
    if merge:
        at = np.flatnonzero(close)
        a, b = values[by_row[places[at]]], values[by_row[places[at + 1]]]
        close[at] = (a != b).any(axis=1)
    return np.unique(row_start[places[1:][close]]), places


def _split(starts: Array, bad: Array, allowed: Array, M: int) -> Array | None:
    """Halve the ambiguous rows; None if one of them has no gap left."""
    if not allowed.size:
        return None
    stops = np.append(starts[1:], M)[np.searchsorted(starts, bad)]
    at = np.searchsorted(allowed, (bad + stops) // 2)
    after, before = allowed[np.minimum(at, len(allowed) - 1)], allowed[np.maximum(at - 1, 0)]
    middle = np.where((after > bad) & (after < stops), after, before)
    if not ((middle > bad) & (middle < stops)).all():
        return None
    return np.union1d(starts, middle)
