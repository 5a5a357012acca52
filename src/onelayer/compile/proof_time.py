"""How long the proof of an interpolant will take, from a first look at some of its simplices.

The checker bounds the error on boxes in every simplex, and halves those where the bound is too large. The same is
done here for a few simplices, with its own enclosures, and boxes are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.construction import Request, at_most_float
from onelayer.functions.positional import Lattice, at_vertices
from onelayer.problems.targets.enclosure import as_checked

Array = NDArray[Any]
#: Simplices that are looked at, boxes in each round, and how often a cell is halved.
SIMPLICES, MOST_BOXES, HALVINGS = 96, 1_000, 8
#: Measured on two cores: of a line of the target, what a box takes for each variable, and a call for however many.
SECONDS_A_BOX, SECONDS_A_CALL = 1.2e-8, 4e-5
#: The proof is made in two arithmetics.
ARITHMETICS = 2


@dataclass(frozen=True)
class Look:
    boxes: float  # for a simplex, on average
    rounds: int  # of halving


@lru_cache(maxsize=64)
def first_look(request: Request, lattice: Lattice, seed: int = 0) -> Look:
    """Some simplices, as the checker would go through them."""
    target, m, D, rng = request.target, lattice.m, lattice.levels, np.random.default_rng([seed, 19])
    assert target.program is not None
    program = as_checked(target.program)
    F = at_vertices(target.evaluate, lattice).reshape(*(D + 1,) * m, -1)
    start, width = lattice.origin, lattice.width
    cell = rng.integers(0, D, (SIMPLICES, m))
    order = rng.permuted(np.tile(np.arange(m), (SIMPLICES, 1)), axis=1)
    cut, parts, looked, rounds, weight = np.zeros_like(cell), 1, 0.0, 0, 1.0
    halves = np.stack(np.unravel_index(np.arange(2**m), (2,) * m), axis=1)
    while len(cell) and rounds < HALVINGS:
        looked, rounds = looked + weight * len(cell), rounds + 1
        low, high = (np.clip(start + width * (cell + (cut + k) / parts), request.low, request.high) for k in (0, 1))
        left = _error(program, F, start, width, cell, order, low, high) > request.tolerance
        place = np.argsort(order, axis=1) - m * cell
        kinds, which = np.unique(np.argsort(place, axis=1, kind="stable"), axis=0, return_inverse=True)
        for k, falling in enumerate(kinds.tolist()):  # where it is known which component is larger
            rows, decided = np.flatnonzero(left & (which.ravel() == k)), program.simplify_ordered(tuple(falling))
            if len(rows) and decided != program:
                again = (x[rows] for x in (cell, order, low, high))
                left[rows] = _error(decided, F, start, width, *again) > request.tolerance
        most, found = max(1, MOST_BOXES >> m), int(left.sum())
        if found > most:  # some stand for all
            left[rng.permutation(np.flatnonzero(left))[most:]] = False
            weight *= found / most
        cut = (2 * cut[left][:, None] + halves).reshape(-1, m)
        cell, order = (np.repeat(x[left], 2**m, axis=0) for x in (cell, order))
        kept = (np.diff(np.take_along_axis(cut, order, axis=1), axis=1) <= 0).all(axis=1)
        cell, order, cut, parts = cell[kept], order[kept], cut[kept], 2 * parts
    return Look(looked / SIMPLICES, rounds)


def _error(
    program: Any, F: Array, start: float, width: float, cell: Array, order: Array, low: Array, high: Array
) -> Array:
    """Bounds on |interpolant - target| on boxes, one for each."""
    c, rows = (low + high) / 2, np.arange(len(cell))
    f, steep = program.enclose(c, c, False), program.enclose(low, high, True)
    corner, value = cell.copy(), F[tuple(cell.T)]
    slope, first = np.empty((*value.shape, cell.shape[1])), value
    for i in order.T:
        corner[rows, i] += 1
        following = F[tuple(corner.T)]
        slope[rows, :, i] = (following - value) / width
        value = following
    value = first + np.einsum("bki,bi->bk", slope, c - (start + width * cell))
    gap = np.maximum(np.abs(value - f.low), np.abs(value - f.high))
    tilt = np.maximum(np.abs(slope - steep.slope_low), np.abs(slope - steep.slope_high))
    return np.asarray((gap + (tilt * (high - low)[:, None] / 2).sum(axis=2)).max(axis=1))


def seconds(request: Request, lattice: Lattice) -> float:
    """Of both proofs: boxes, and what a call takes for every order and round."""
    return _seconds(request, lattice, first_look(request, lattice))


def at_least(request: Request, lattice: Lattice) -> float:
    """The same if every simplex is one box, where even a first look would take long."""
    return _seconds(request, lattice, Look(1.0, 1))


def _seconds(request: Request, lattice: Lattice, look: Look) -> float:
    assert request.target.program is not None
    m, lines, orders = lattice.m, len(request.target.program.lines), at_most_float(math.factorial(lattice.m))
    boxes = at_most_float(lattice.levels**m) * orders * look.boxes
    per_line = SECONDS_A_BOX * boxes + SECONDS_A_CALL * orders * look.rounds
    return ARITHMETICS * lines * (m + 2) * per_line
