"""How far an affine interpolant on the simplices of a grid is from a target.

A simplex is a cell and an order of the components of x in it. There it is known which of two components is larger,
so that a minimum, a maximum or a difference's size is decided, however a box may straddle the place where they are
equal: the target is replaced by a program that is the same function where the components are in that order.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array
from onelayer_checker.functions.targets import Program, enclose

#: Boxes that are enclosed at a time, in all for one order, and how often a cell is cut along a side.
BLOCK, MOST, FINEST = 1 << 14, 1 << 22, 1 << 8
#: Orders of components, among the boxes that are left, up to which each gets a program of its own.
MOST_ORDERS = 64


def _along(
    target: Program,
    F: Array,
    cell: Array,
    order: tuple[int, ...],
    start: float,
    width: float,
    low: Array,
    high: Array,
    bound: Array,
    limit: float,
) -> None:
    """Better bounds for boxes that are above the limit. Of two variables in the same interval of the grid the order
    of the simplex says which is larger; of others, their intervals do."""
    left = np.flatnonzero(~(bound <= limit))
    falling = np.argsort(np.argsort(order) - len(order) * cell[left], axis=1, kind="stable")
    kinds, which = np.unique(falling, axis=0, return_inverse=True)
    for k, kind in enumerate(kinds if len(kinds) <= MOST_ORDERS else ()):
        program = target.simplify_ordered(tuple(kind.tolist()))
        rows = left[which.ravel() == k]
        for at in (rows[a : a + BLOCK] for a in range(0, len(rows) if program != target else 0, BLOCK)):
            found = _near_simplex(program, F, cell[at], order, start, width, low[at], high[at]).max(axis=1)
            bound[at] = np.fmin(bound[at], found)


def sup_error(
    target: Program, F: Array, start: float, width: float, box: tuple[float, float], limit: float
) -> float:
    """Bounds |interpolant - target| on a box, for vertex values F [D + 1, ..., D + 1, outputs] at start + i width.

    Cells are cut into boxes, and those whose bound is above ``limit`` again, as long as that is worthwhile. In a
    simplex the components of x, less the corner, are in some order, and so are the numbers of the box that x is in:
    only such boxes are compared with its affine interpolant. Interpolants are rounded, for which 2^-40 of their
    values is far more than enough.
    """
    m, D = F.ndim - 1, len(F) - 1
    halves = np.stack(np.unravel_index(np.arange(2**m), (2,) * m), axis=1)
    worst = 0.0
    for order in permutations(range(m)):
        cell, parts = np.stack(np.unravel_index(np.arange(D**m), (D,) * m), axis=1), 1
        cut = np.zeros_like(cell)
        while len(cell):
            low, high = start + width * (cell + cut / parts), start + width * (cell + (cut + 1) / parts)
            inside = ~((low > box[1]) | (high < box[0])).any(axis=1)  # all that is not certainly outside
            cell, cut = cell[inside], cut[inside]
            low, high = np.clip(low[inside], *box), np.clip(high[inside], *box)
            bound = np.empty(len(cell))
            for at in (slice(a, a + BLOCK) for a in range(0, len(cell), BLOCK)):
                bound[at] = _near_simplex(target, F, cell[at], order, start, width, low[at], high[at]).max(axis=1)
            _along(target, F, cell, order, start, width, low, high, bound, limit)
            done = bound <= limit
            worst = max(worst, float(bound.max(where=done, initial=0.0)))
            if parts == FINEST or (~done).sum() << m > MOST:
                worst = max(worst, float(np.where(bound < np.inf, bound, np.inf).max(initial=0.0)))
                break  # the other orders are looked at all the same: this is a bound for the whole box
            cut = (2 * cut[~done][:, None] + halves).reshape(-1, m)
            cell, parts = np.repeat(cell[~done], 2**m, axis=0), 2 * parts
            kept = (np.diff(cut[:, order], axis=1) <= 0).all(axis=1)
            cell, cut = cell[kept], cut[kept]
    return worst


def _near_simplex(
    target: Program,
    F: Array,
    cell: Array,
    order: tuple[int, ...],
    start: float,
    width: float,
    low: Array,
    high: Array,
) -> Array:
    """Bounds [B, outputs] on |affine interpolant of a simplex of a cell - target| on boxes [B, m]."""
    slack = 2.0**-40 * (float(np.abs(F).max()) + 1.0)
    c = np.clip(low / 2 + high / 2, low, high)
    r = np.maximum(high - c, c - low) * UP + TINY
    f, steep = enclose(target, c, c, False), enclose(target, low, high, True)
    corner, value = cell.copy(), F[tuple(cell.T)]
    slope, first = np.empty((*value.shape, len(order))), value
    for i in order:  # along the edges of the simplex, from its first corner to its last
        corner[:, i] += 1
        following = F[tuple(corner.T)]
        slope[:, :, i] = (following - value) / width
        value = following
    value = first + np.einsum("bki,bi->bk", slope, c - (start + width * cell))
    gap = np.maximum(np.abs(value - f.low), np.abs(value - f.high))
    tilt = np.maximum(np.abs(slope - steep.slope_low), np.abs(slope - steep.slope_high)) * UP + slack / width
    return np.asarray((gap + (tilt * r[:, None, :]).sum(axis=2)) * UP + slack)
