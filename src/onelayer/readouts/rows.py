"""Dividing keys into rows along one coordinate so that another one tells the answers of each row apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.readouts.cells import Cells, narrow_gaps

Array = NDArray[Any]

#: Gaps of this many radii leave room for rounding on either side of a step.
GAP_IN_RADII = 2.8
#: Bits of a packed key, but for its sign.
WORD = 63


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
    by_row = sort_order(keys[:, 0])
    z0 = keys[by_row, 0]
    allowed = np.flatnonzero(np.diff(z0) > GAP_IN_RADII * radius) + 1  # a row may begin at these places
    starts = _starts(allowed, M, size)
    chosen = np.full(M, -1)  # the coordinate of a row, by the place where it begins
    order, z = np.empty(M, np.intp), np.empty(M)
    while True:
        row = np.repeat(np.arange(len(starts)), np.diff(starts, append=M))
        for i in [0] if c == 1 else range(1, c):
            pending = chosen[starts] < 0
            places = np.flatnonzero(pending[row])
            found, along, ambiguous = _along(keys, values, by_row, row, places, i, radius, merge)
            good = pending & ~ambiguous
            kept = good[row[places]]
            order[places[kept]], z[places[kept]] = found[kept], along[kept]  # grouped by row, as the places are
            chosen[starts[good]] = i
            if not ambiguous.any():
                break
        if not ambiguous.any():
            break
        finer = _split(starts, starts[ambiguous], allowed, M)
        if finer is None:
            return None
        starts = finer
    cells = Cells(0, *narrow_gaps(z0[starts[1:] - 1], z0[starts[1:]]))
    return Rows(cells, chosen[starts], order, row, z)


def sort_order(z: Array, group: Array | None = None) -> Array:
    """What sorts z, or z within groups, stably.

    Whole numbers are packed together with their places: sorting those is several times faster than `argsort`.
    """
    low = z.min()
    span = int(z.max() - low) + 1
    groups = 1 if group is None else int(group.max()) + 1
    bits = len(z).bit_length()
    if (groups * span).bit_length() + bits < WORD:
        packed = (z - low).astype(np.int64)
        if np.array_equal(packed + low, z):
            packed += 0 if group is None else group * span
            packed <<= bits
            packed += np.arange(len(z))
            packed.sort()
            return np.asarray(packed & ((1 << bits) - 1))
    if group is None:
        return np.argsort(z, kind="stable")
    width = float(np.exp2(np.ceil(np.log2(span + 1.0))))
    return np.argsort(group * width + (z - low), kind="stable")  # a lexicographic sort is much slower


def _starts(allowed: Array, M: int, size: int) -> Array:
    """First places of rows, each as long as fits."""
    places = np.concatenate([[0], allowed])
    reached = np.searchsorted(places, places + size, side="right") - 1
    following = np.maximum(reached, np.arange(len(places)) + 1).tolist()  # where the first gap comes only later
    at, starts = 0, [0]
    while places[at] + size < M and following[at] < len(places):
        at = following[at]
        starts.append(at)
    return np.asarray(places[starts])


def _along(
    keys: Array, values: Array, by_row: Array, row: Array, places: Array, i: int, radius: float, merge: bool
) -> tuple[Array, Array, Array]:
    """The keys of the rows at ``places`` sorted along coordinate i, what it is there, and the ambiguous rows."""
    found, rows = by_row[places], row[places]
    z = keys[found, i].astype(np.float64)
    if i:
        order = sort_order(z, rows)
        found, z = found[order], z[order]
    close = (np.diff(rows) == 0) & (np.diff(z) <= GAP_IN_RADII * radius)  # sorting stays within rows
    at = np.flatnonzero(close)
    if merge:
        at = at[(values[found[at]] != values[found[at + 1]]).any(axis=1)]
    ambiguous = np.zeros(int(row[-1]) + 1, bool)
    ambiguous[rows[at]] = True
    return found, z, ambiguous


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
