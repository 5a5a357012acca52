"""Cells, of which one is on: found by search, not by evaluating all of them. `stack.py` says why that is sound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball

#: Cells looked at for one token; a token in a more crowded place stays undecided.
CROWD = 4096


@dataclass(frozen=True)
class Cells:
    """Along some coordinates: cell j is on within [on_low, on_high], and off beyond off_low and off_high."""

    columns: Array  # [c] the coordinates; cells are sorted along the first
    on_low: Array  # [K, c]
    on_high: Array
    off_low: Array
    off_high: Array
    units: int  # of a cell
    largest: float  # bounds the weights and biases, against overflow
    smallest: float  # nonzero slope or bias, against underflow

    def decide(self, t: Ball, A: Arithmetic) -> Array:
        """For each row of t [T, c] the cell that is on while all others are off, or -1 if that is not certain."""
        low, high = t.low[:, self.columns], t.high[:, self.columns]
        low = np.where((low > 0) & (low < A.tiny), 0.0, low)  # a subnormal t may be flushed
        high = np.where((high < 0) & (high > -A.tiny), 0.0, high)
        first, stop = np.empty(len(low), np.intp), np.empty(len(low), np.intp)
        order = np.argsort(low[:, 0])  # neighbouring look-ups share the cache
        # Cells before `first` are off, low >= off_high; so are those from `stop` on, high <= off_low.
        first[order] = np.searchsorted(self.off_high[:, 0], low[order, 0], side="right")
        stop[order] = np.searchsorted(self.off_low[:, 0], high[order, 0], side="left")
        cell = np.full(len(low), -1)
        certain = np.isfinite(t.low).all(axis=1) & np.isfinite(t.high).all(axis=1)  # zero times infinity is NaN
        reach = (np.maximum(np.abs(low), np.abs(high)).max(axis=1) + 2) * self.largest
        certain &= self.units * reach < A.big / 8  # the units of a cell are added up
        certain &= self.smallest >= 8 * A.tiny
        rows = np.flatnonzero(certain & (first < stop))
        j = first[rows]
        for _ in range(CROWD):
            if not rows.size:
                break
            l, h = low[rows], high[rows]
            off = ((l >= self.off_high[j]) | (h <= self.off_low[j])).any(axis=1)
            on = ((h <= self.on_high[j]) & (l >= self.on_low[j])).all(axis=1)
            certain[rows[~off & ~on]] = False
            certain[rows[on & (cell[rows] >= 0)]] = False
            cell[rows[on]] = j[on]
            j = j + 1
            more = (j < stop[rows]) & certain[rows]
            rows, j = rows[more], j[more]
        certain[rows] = False
        return np.where(certain, cell, -1)


def families(W: Array, b: Array, plain: Array, block: Array) -> tuple[list[tuple[int, Cells]], Array] | None:
    """Units [c, K, size] with biases [K, size] as families of cells (the first group of each), and other groups.

    Only ``plain`` groups, relu(1 - sum of units), can be cells; a family lies in one block.
    """
    at = np.abs(W).argmax(axis=0)
    slope = np.take_along_axis(W, at[None], axis=0)[0]  # [K, size]
    simple = (np.count_nonzero(W, axis=0) <= 1) & ((slope == 0) | (np.frexp(np.abs(slope))[0] == 0.5))
    cell = plain & (simple & ((slope != 0) | (b <= 0) | (b >= 1))).all(axis=1)
    with np.errstate(over="ignore"):  # an edge beyond all floats is at infinity
        on_low, on_high, off_low, _ = bounds = _bounds(at, slope, b, len(W))
    # Dividing by a power of two is exact unless it leaves the normal range.
    finite = np.concatenate([a[np.isfinite(a) & (a != 0)] for a in (on_high, on_low)])
    if finite.size and not (np.abs(finite).min() > 2.0**-900 and np.abs(finite).max() < 2.0**900):
        return None
    dead = np.any((slope == 0) & (b >= 1), axis=1)  # off wherever t is
    on_low[dead], off_low[dead] = np.inf, np.inf
    opens = np.max(off_low, axis=1) == -np.inf  # nothing ends it to the left: a family begins
    inside = np.flatnonzero(cell)
    a, z = inside[:-1], inside[1:]
    cut = (z != a + 1) | (block[a] != block[z]) | opens[z]
    parts = [np.abs(x) for x in (W, b)]
    largest = float(max(x.max(initial=1.0) for x in parts))
    smallest = float(min(x.min(initial=1.0, where=x != 0) for x in parts))
    listed = []
    for i, j in zip(np.append(inside[:1], z[cut]).tolist(), np.append(a[cut], inside[-1:]).tolist(), strict=True):
        own = [x[i : j + 1] for x in bounds]
        columns = np.unique(np.append(at[i : j + 1][slope[i : j + 1] != 0], 0))  # every coordinate that is read
        columns = columns[np.argsort(~np.isfinite(own[3])[:, columns].any(axis=0), kind="stable")]
        low, high, off, beyond = (x[:, columns] for x in own)
        cells = Cells(columns, low, high, off, beyond, b.shape[1], largest, smallest)
        if _in_order(cells):
            listed.append((i, cells))
        else:
            cell[i : j + 1] = False
    return listed, np.flatnonzero(~cell)


def _bounds(at: Array, slope: Array, b: Array, c: int) -> tuple[Array, Array, Array, Array]:
    """on_low, on_high, off_low, off_high [K, c]; those where a cell is off are rounded outward."""
    K = len(b)
    on_low, off_low = np.full((K, c), -np.inf), np.full((K, c), -np.inf)
    on_high, off_high = np.full((K, c), np.inf), np.full((K, c), np.inf)
    for u in range(b.shape[1]):
        up, down = np.flatnonzero(slope[:, u] > 0), np.flatnonzero(slope[:, u] < 0)
        i, s, x = (up, at[up, u]), slope[up, u], b[up, u]
        on_high[i] = np.minimum(on_high[i], -x / s)
        off_high[i] = np.minimum(off_high[i], np.nextafter(np.nextafter(1 - x, np.inf) / s, np.inf))
        i, s, x = (down, at[down, u]), -slope[down, u], b[down, u]
        on_low[i] = np.maximum(on_low[i], x / s)
        off_low[i] = np.maximum(off_low[i], np.nextafter(np.nextafter(x - 1, -np.inf) / s, -np.inf))
    return on_low, on_high, off_low, off_high


def _in_order(cells: Cells) -> bool:
    """Sorted along the first coordinate, and each but the last ends somewhere: steps that stay on are no cells."""
    low, high = cells.off_low[:, 0], cells.off_high[:, 0]
    alive = np.max(cells.off_low, axis=1) < np.inf
    ends = np.min(np.abs(cells.off_high), axis=1)[alive] < np.inf
    return bool((low[1:] >= low[:-1]).all() and (high[1:] >= high[:-1]).all() and ends[:-1].all())
