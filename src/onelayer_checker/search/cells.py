"""Cells, of which one is on: found by search, not by evaluating all of them. `stack.py` says why that is sound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball
from onelayer_checker.core.budget import spend
from onelayer_checker.search.steps import Steps, ends, within_range

#: Cells looked at for one token; a token in a more crowded place stays undecided.
CROWD = 4096
#: So many cells are looked up in the order of their coordinates.
SORTED = 1 << 14


@dataclass(frozen=True, eq=False)
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
    steepest: float | None = None  # bounds the weights, if they are smaller

    def decide(self, t: Ball, A: Arithmetic) -> Array:
        """For each row of t the cell that is on while all others are off, or the number of cells if all are off.

        It is -1 where that is not certain.
        Theorem: proofs/Families.v cells_decide; proofs/Search.v alone_sound; proofs/Thresholds.v smallest_suffices.
        """
        low, high = ends(t, self.columns, A)
        certain = within_range(low, high, self.largest, self.units, A, self.steepest) & (
            self.smallest >= 8 * A.tiny
        )
        first = self._looked_up(self.off_high[:, 0], low[:, 0], "right")  # those before are off: low >= off_high
        at = np.minimum(first, len(self.on_low) - 1)
        alone = (first < len(self.on_low)) & (high[:, 0] <= self.following[at])  # those after are off
        alone &= ((low >= self.on_low[at]) & (high <= self.on_high[at])).all(axis=1)
        cell = np.where(alone, first, len(self.on_low))
        rows = np.flatnonzero(certain & ~alone)
        self._look_closely(rows, low, high, first, cell, certain)
        return np.where(certain, cell, -1)

    @cached_property
    def following(self) -> Array:
        """Up to where the next cell, and all after it, are off along the first coordinate.

        Theorem: proofs/Search.v alone_sound.
        """
        return np.append(self.off_low[1:, 0], np.inf)

    def _look_closely(
        self, rows: Array, low: Array, high: Array, first: Array, cell: Array, certain: Array
    ) -> None:
        """Cell by cell, where more than one might be on: fill in ``cell`` and what is ``certain``.

        Theorem: proofs/Search.v look_closely_sound, look_sound.
        """
        stop = self._looked_up(
            self.off_low[:, 0], high[rows, 0], "left"
        )  # those from here on are off: high <= off_low
        rows, j, stop = rows[first[rows] < stop], first[rows][first[rows] < stop], stop[first[rows] < stop]
        for _ in range(CROWD):
            if not rows.size:
                break
            spend("cells that crowd", 60.0 * rows.size * len(self.columns))
            l, h = low[rows], high[rows]
            off = ((l >= self.off_high[j]) | (h <= self.off_low[j])).any(axis=1)
            on = ((h <= self.on_high[j]) & (l >= self.on_low[j])).all(axis=1)
            certain[rows[~off & ~on]] = False
            certain[rows[on & (cell[rows] < len(self.on_low))]] = False
            cell[rows[on]] = j[on]
            j = j + 1
            more = (j < stop) & certain[rows]
            rows, j, stop = rows[more], j[more], stop[more]
        certain[rows] = False

    def _looked_up(self, edges: Array, t: Array, side: Literal["left", "right"]) -> Array:
        if len(edges) < SORTED:
            return np.searchsorted(edges, t, side=side)
        found, order = np.empty(len(t), np.intp), np.argsort(t)  # neighbouring look-ups share the cache
        found[order] = np.searchsorted(edges, t[order], side=side)
        return found


def families(W: Array, b: Array, plain: Array, block: Array) -> tuple[list[tuple[int, Cells]], Array]:
    """Units [c, K, size] with biases [K, size] as families of cells (the first group of each), and other groups.

    Only ``plain`` groups, relu(1 - sum of units), can be cells; a family lies in one block.
    Theorem: proofs/Families.v found_on_sound, found_off_sound.
    """
    at, slope, simple = _slopes(W)
    cell = plain & (simple & ((slope != 0) | (b <= 0) | (b >= 1))).all(axis=1)
    with np.errstate(over="ignore"):  # an edge beyond all floats is at infinity
        on_low, _, off_low, _ = bounds = _bounds(at, slope, b, len(W))
    cell &= in_range(slope, b).all(axis=1)
    dead = np.any((slope == 0) & (b >= 1), axis=1)  # off wherever t is
    on_low[dead], off_low[dead] = np.inf, np.inf
    opens = np.max(off_low, axis=1) == -np.inf  # nothing ends it to the left: a family begins
    inside = np.flatnonzero(cell)
    a, z = inside[:-1], inside[1:]
    cut = (z != a + 1) | (block[a] != block[z]) | opens[z]
    listed = []
    for i, j in zip(np.append(inside[:1], z[cut]).tolist(), np.append(a[cut], inside[-1:]).tolist(), strict=True):
        own = [x[i : j + 1] for x in bounds]
        read = np.append(at[i : j + 1][slope[i : j + 1] != 0], 0)
        columns = np.flatnonzero(np.bincount(read))  # every coordinate that is read, and the first
        columns = columns[np.argsort(~np.isfinite(own[3])[:, columns].any(axis=0), kind="stable")]
        low, high, off, beyond = (x[:, columns] for x in own)
        parts = [np.abs(x[i : j + 1]) for x in (slope, b)]
        steepest, largest = (float(x.max(initial=1.0)) for x in parts)
        smallest = float(min(x.min(initial=1.0, where=x != 0) for x in parts))
        cells = Cells(columns, low, high, off, beyond, b.shape[1], largest, smallest, steepest)
        if _in_order(cells):
            listed.append((i, cells))
        else:
            cell[i : j + 1] = False
    return listed, np.flatnonzero(~cell)


def _slopes(W: Array) -> tuple[Array, Array, Array]:
    """Of units [c, K, size]: the coordinate that each reads, its weight, and whether there is only one, a power."""
    at = np.abs(W).argmax(axis=0)
    slope = np.take_along_axis(W, at[None], axis=0)[0]
    return at, slope, (np.count_nonzero(W, axis=0) <= 1) & ((slope == 0) | (np.frexp(np.abs(slope))[0] == 0.5))


def _bounds(at: Array, slope: Array, b: Array, c: int) -> tuple[Array, Array, Array, Array]:
    """on_low, on_high, off_low, off_high [K, c]; those where a cell is off are rounded outward.

    Theorem: proofs/Thresholds.v on_low_sound, on_high_sound, off_low_sound, off_high_sound.
    """
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
    """Sorted along the first coordinate, and each but the last ends somewhere: steps that stay on are no cells.

    Theorem: proofs/Families.v cells_decide.
    """
    low, high = cells.off_low[:, 0], cells.off_high[:, 0]
    alive = np.max(cells.off_low, axis=1) < np.inf
    ends = np.min(np.abs(cells.off_high), axis=1)[alive] < np.inf
    return bool((low[1:] >= low[:-1]).all() and (high[1:] >= high[:-1]).all() and ends[:-1].all())


def in_range(slope: Array, b: Array) -> Array:
    """Where dividing a bias by a power of two is exact: it neither overflows nor leaves the normal numbers.

    Theorem: proofs/Thresholds.v in_range_sound.
    """
    with np.errstate(all="ignore"):
        edge = np.abs(b / slope)
    return np.asarray((slope == 0) | (b == 0) | ((edge > 2.0**-900) & (edge < 2.0**900)))


def staircases(W: Array, b: Array, plain: Array, block: Array) -> list[tuple[Array, Steps]]:
    """Units [c, K, size] with biases [K, size] as staircases: groups in the order in which they come on, and steps.

    A group is a step if only one of its units has a slope, and the others are never above 0. The ends of a line of
    cells look alike: a single one with a neighbour on its open side is left to the cells.
    Theorem: proofs/Steps.v steps_decide; proofs/Steps.v whole_edge_exact.
    """
    at, slopes, simple = _slopes(W)
    K, unit = len(b), np.abs(slopes).argmax(axis=1)
    sloped, rows = np.count_nonzero(slopes, axis=1), np.arange(K)
    never = ((slopes != 0) | (b <= 0)).all(axis=1)
    slope, bias, column = slopes[rows, unit], b[rows, unit], at[rows, unit]
    step = plain & simple.all(axis=1) & never & (sloped == 1) & in_range(slope, bias)
    same = np.zeros(K + 1, bool)  # whether group k continues the run of group k - 1
    same[1:K] = step[1:] & step[:-1] & (column[1:] == column[:-1]) & (np.sign(slope[1:]) == np.sign(slope[:-1]))
    same[1:K] &= block[1:] == block[:-1]
    line = np.zeros(K + 1, bool)  # whether groups k - 1 and k may be neighbours of a line
    line[1:K] = (column[1:] == column[:-1]) & (block[1:] == block[:-1]) & (sloped[1:] > 0) & (sloped[:-1] > 0)
    lonely = ~same[:K] & ~same[1:]
    step &= ~(lonely & (((slope > 0) & line[1:]) | ((slope < 0) & line[:K])))
    first = np.flatnonzero(step & ~same[:K])
    listed = []
    for i in first.tolist():
        j = i + 1
        while j < K and same[j]:
            j += 1
        groups = np.arange(i, j)
        s, x = np.abs(slope[groups]), bias[groups]
        if slope[i] < 0:
            on, off = x / s, np.nextafter(np.nextafter(x - 1, -np.inf) / s, -np.inf)
        else:
            on, off = x / s, -np.nextafter(np.nextafter(1 - x, np.inf) / s, np.inf)
        whole = (x == np.rint(x)) & (np.abs(x) >= 1) & (x > -(2.0**53)) & (x <= 2.0**53)
        off = np.where(whole, (x - 1) / s, off)  # nothing is rounded there
        order = np.argsort(on, kind="stable")
        parts = np.concatenate([s, np.abs(x)])
        smallest = float(parts.min(where=parts != 0, initial=1.0))
        largest, sign = float(np.abs(x).max(initial=1.0)), -np.sign(slope[i])
        steps = Steps(int(column[i]), sign, on[order], np.sort(off), largest, smallest, float(s.max()))
        listed.append((groups[order], steps))
    return listed
