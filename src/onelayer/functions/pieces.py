"""Piecewise linear functions as ReLU units of slope one, with corners where the second derivative is large.

On a piece of width h the chord of f is off by up to h^2 f''/8 on one side. Moved by half of that, it is off by h^2
f''/16 on both sides. So pieces get widths 4 sqrt(eps / |f''|), and there are about the integral of sqrt(|f''|) / (4
sqrt(eps)) of them. Functions of the same number share their units: pieces are as narrow as the neediest wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError

Array = NDArray[Any]
Function = Callable[[Array], Array]
#: Points between two corners of f at which its second derivative is looked at, and points of each piece tried.
GRID, TRIED = 1024, 9
COARSE, TRIES = 257, 40
MOST_PIECES = 4_000
#: A piece that misses its tolerance is made narrower as if it missed it by at least, and by at most, so much.
MISSED = (1.05, 4.0)
#: A weight that adds nothing that counts.
FAINT = 2.0**-60


@dataclass(frozen=True)
class Block:
    """start + sum_i weights_i relu(signs_i (s - corners_i)): to the right and to the left of where it is flattest,
    so that its terms are no larger than they must be."""

    start: float
    corners: Array
    weights: Array
    signs: Array

    def __call__(self, s: Array) -> Array:
        found = np.full(s.shape, self.start)
        for sign in (1.0, -1.0):
            mine = self.signs == sign
            order = np.argsort(sign * self.corners[mine])
            c, slopes = (sign * self.corners[mine])[order], np.cumsum(self.weights[mine][order])
            if len(c):
                at = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(c))])
                i = np.clip(np.searchsorted(c, sign * s) - 1, 0, None)
                found += at[i] + slopes[i] * np.maximum(sign * s - c[i], 0.0)
        return found

    @property
    def steepest(self) -> float:
        sums = [np.cumsum(self.weights[self.signs == sign]) for sign in (1.0, -1.0)]
        return float(max(np.abs(part).max(initial=0.0) for part in sums))


@dataclass(frozen=True)
class Shape:
    """A function on a range between its corners: where it bends, and how much."""

    f: Function
    ends: Array  # of the parts between corners, ascending
    grids: list[Array]  # in each part, denser towards its ends
    mass: list[Array]  # integral of sqrt(|f''|) / 4 up to each point of a grid

    @property
    def size(self) -> float:
        """Times 1/sqrt(eps): the number of pieces it takes."""
        return float(sum(mass[-1] for mass in self.mass))

    @property
    def steepest(self) -> float:
        """About the largest slope, seen from afar: there are functions with a vertical tangent."""
        s = np.linspace(self.ends[0], self.ends[-1], COARSE)
        return float(np.abs(np.diff(self.f(s)) / np.diff(s)).max())


def shape(f: Function, low: float, high: float, corners: Sequence[float] = ()) -> Shape:
    """Look at a function between its corners."""
    ends = np.unique(np.concatenate([[low, high], [c for c in corners if low < c < high]]))
    u = np.linspace(0, 1, GRID + 1)
    dense = u**3 / (u**3 + (1 - u) ** 3)
    grids, masses = [], []
    for a, b in pairwise(ends):
        s = a + (b - a) * dense
        h, values = np.diff(s), f(s)
        slopes = np.diff(values) / h
        second = 2 * np.diff(slopes) / (h[1:] + h[:-1])
        noise = 2.0**-48 * float(np.abs(values).max() + abs(a) + abs(b)) / (h[1:] * h[:-1])
        bend = np.where(np.abs(second) > noise, np.abs(second), 0.0)
        bend = np.concatenate([bend[:1], (bend[1:] + bend[:-1]) / 2, bend[-1:]])
        grids.append(s)
        masses.append(np.concatenate([[0.0], np.cumsum(np.sqrt(bend) * h / 4)]))
    return Shape(f, ends, grids, masses)


def together(looks: Sequence[Shape], eps: Sequence[float]) -> float:
    """About the number of pieces that all of them take with the same ends."""
    return sum(float(needs.sum()) for needs in _needs(looks, eps))


def _needs(looks: Sequence[Shape], eps: Sequence[float]) -> list[Array]:
    """Pieces that each step of each grid takes, for the function that needs most."""
    of_all = [[np.diff(part) / np.sqrt(e) for part in look.mass] for look, e in zip(looks, eps, strict=True)]
    return [np.max(parts, axis=0) for parts in zip(*of_all, strict=True)]


def knots(looks: Sequence[Shape], needs: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Ends of pieces, as many as steps of the grids need, and values of each function there; all have the same
    parts."""
    at, moved = [looks[0].ends[:1]], [[np.zeros(1)] for _ in looks]
    for i, (grid, steps) in enumerate(zip(looks[0].grids, needs, strict=True)):
        mass = np.concatenate([[0.0], np.cumsum(steps)])
        count = max(1, int(np.ceil(mass[-1] - 1e-9)))
        even = (grid - grid[0]) / (grid[-1] - grid[0]) * (1e-3 * mass[-1] + 1e-12)
        t = np.interp(np.linspace(0, mass[-1] + even[-1], count + 1), mass + even, grid)
        t[0], t[-1] = grid[0], grid[-1]
        at.append(t[1:])
        for look, shifts in zip(looks, moved, strict=True):
            middle = look.f((t[1:] + t[:-1]) / 2)
            sag = (look.f(t[1:]) + look.f(t[:-1])) / 2 - middle  # of the chord
            shift = np.concatenate([[sag[0] / 2], (sag[1:] + sag[:-1]) / 4, [sag[-1] / 2]])
            shifts[-1][-1] = (shifts[-1][-1] + shift[0]) / (1 if i == 0 else 2)
            shifts.append(shift[1:])
    t = np.concatenate(at)
    return t, [look.f(t) - np.concatenate(shifts) for look, shifts in zip(looks, moved, strict=True)]


def fit(looks: Sequence[Shape], eps: Sequence[float], dtype: np.dtype[Any], most: int = MOST_PIECES) -> list[Block]:
    """About the fewest units, the same for all functions of a number, with which the error of each, with weights of
    the dtype, is at most its eps wherever it was tried. Pieces that miss it, as those at a turn do, where one chord
    is moved up and the next one down, are made narrower; the others stay."""
    needs = _needs(looks, eps)
    for _ in range(TRIES):
        pieces = sum(max(1.0, float(np.ceil(steps.sum()))) for steps in needs)
        if not pieces <= most:  # before they are written down
            raise too_many(pieces)
        t, values = knots(looks, needs)
        blocks = _units(t, values, dtype)
        s = t[:-1, None] + np.diff(t)[:, None] * np.linspace(0, 1, TRIED)
        errors = [
            np.abs(block(s.ravel()) - look.f(s.ravel())) / e
            for block, look, e in zip(blocks, looks, eps, strict=True)
        ]
        missed = np.max(errors, axis=0).reshape(s.shape).max(axis=1)
        if missed.max() <= 1:
            break
        narrower = np.where(missed > 1, np.sqrt(np.clip(missed, *MISSED)), 1.0)
        for grid, steps in zip(looks[0].grids, needs, strict=True):
            at = np.searchsorted(t, (grid[1:] + grid[:-1]) / 2) - 1
            steps *= narrower[np.clip(at, 0, len(narrower) - 1)]
    return blocks


def too_many(pieces: float) -> HypothesisError:
    needs = f"blocks of at most {MOST_PIECES:,} units"
    found = f"one line would take {pieces:,.0f} units"
    return HypothesisError("formula", needs, found, "Ask for a larger tolerance.")


def _units(t: Array, values: Sequence[Array], dtype: np.dtype[Any]) -> list[Block]:
    """Slopes that lead from what rounded weights give at one corner to the value wanted at the next, from where the
    functions are flattest to either side."""
    corners = np.unique(t.astype(dtype).astype(np.float64))
    wanted = [np.interp(corners, t, v) for v in values]
    steep = np.array([np.abs(np.diff(w) / np.diff(corners)) for w in wanted])
    steep = (steep / np.maximum(steep.max(axis=1, keepdims=True), 1e-300)).sum(axis=0)
    around = np.concatenate([steep[:1], np.minimum(steep[1:], steep[:-1]), steep[-1:]])
    flat = int(np.argmin(around))
    made = [_weights(corners, w, flat, dtype) for w in wanted]
    signs = np.concatenate([np.ones(len(corners) - 1 - flat), -np.ones(flat)])
    places = np.concatenate([corners[flat:-1], corners[flat:0:-1]])
    used = np.any(made, axis=0)
    starts = [float(w[flat]) for w in wanted]
    return [Block(start, places[used], w[used], signs[used]) for start, w in zip(starts, made, strict=True)]


def _weights(corners: Array, wanted: Array, flat: int, dtype: np.dtype[Any]) -> Array:
    """To the right of the flattest corner, then to the left."""
    at_corners, values, rounded = corners.tolist(), wanted.tolist(), dtype.type  # one by one: lists are fast
    found: list[float] = []
    for places in (range(flat, len(at_corners)), range(flat, -1, -1)):
        slope, at = 0.0, values[flat]
        for i, k in pairwise(places):
            width = abs(at_corners[k] - at_corners[i])
            found.append(float(rounded((values[k] - at) / width - slope)))
            slope += found[-1]
            at += slope * width
    weights = np.array(found)
    if not weights.any():  # a constant is still read off a number, or nobody sees what it is a function of
        weights[0] = FAINT
    return weights
