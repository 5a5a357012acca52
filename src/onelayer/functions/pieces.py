"""Piecewise linear functions as ReLU units of slope one, with corners where the second derivative is large.

On a piece of width h the chord of f is off by up to h^2 f''/8 on one side. Moved by half of that, it is off by h^2
f''/16 on both sides. So pieces get widths 4 sqrt(eps / |f''|), and there are about the integral of sqrt(|f''|) / (4
sqrt(eps)) of them.
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

    def knots(self, eps: float) -> tuple[Array, Array]:
        """Ends of pieces, and values there, for an error of about eps."""
        at, moved = [self.ends[:1]], [np.zeros(1)]
        for i, (grid, mass) in enumerate(zip(self.grids, self.mass, strict=True)):
            count = max(1, int(np.ceil(mass[-1] / np.sqrt(eps) - 1e-9)))
            even = (grid - grid[0]) / (grid[-1] - grid[0]) * (1e-3 * mass[-1] + 1e-12)
            t = np.interp(np.linspace(0, mass[-1] + even[-1], count + 1), mass + even, grid)
            t[0], t[-1] = grid[0], grid[-1]
            middle = self.f((t[1:] + t[:-1]) / 2)
            sag = (self.f(t[1:]) + self.f(t[:-1])) / 2 - middle  # of the chord
            shift = np.concatenate([[sag[0] / 2], (sag[1:] + sag[:-1]) / 4, [sag[-1] / 2]])
            moved[-1][-1] = (moved[-1][-1] + shift[0]) / (1 if i == 0 else 2)
            at.append(t[1:])
            moved.append(shift[1:])
        t, shift = np.concatenate(at), np.concatenate(moved)
        return t, self.f(t) - shift


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


def fit(look: Shape, eps: float, dtype: np.dtype[Any]) -> Block:
    """About the fewest units whose error, with weights of the dtype, is at most eps wherever it was tried."""
    aim = eps
    for _ in range(TRIES):
        t, values = look.knots(aim)
        if len(t) > MOST_PIECES:
            raise too_many(len(t))
        block = _units(t, values, dtype)
        s = (t[:-1, None] + np.diff(t)[:, None] * np.linspace(0, 1, TRIED)).ravel()
        error = float(np.abs(block(s) - look.f(s)).max())
        if error <= eps or error <= 0:
            return block
        aim *= max(min(eps / error, 0.97), 0.5)
    return block


def too_many(pieces: int) -> HypothesisError:
    needs = f"blocks of at most {MOST_PIECES:,} units"
    return HypothesisError("formula", needs, f"one line would take {pieces:,}", "Ask for a larger tolerance.")


def _units(t: Array, values: Array, dtype: np.dtype[Any]) -> Block:
    """Slopes that lead from what rounded weights give at one corner to the value wanted at the next, from where the
    function is flattest to either side."""
    corners = np.unique(t.astype(dtype).astype(np.float64))
    wanted = np.interp(corners, t, values)
    steep = np.abs(np.diff(wanted) / np.diff(corners))
    around = np.concatenate([steep[:1], np.minimum(steep[1:], steep[:-1]), steep[-1:]])
    flat = int(np.argmin(around))
    parts = []
    for sign, places in ((1.0, range(flat, len(corners))), (-1.0, range(flat, -1, -1))):
        slope, at = 0.0, float(wanted[flat])
        for i, k in pairwise(places):
            width = abs(corners[k] - corners[i])
            weight = float(np.asarray((wanted[k] - at) / width - slope, dtype))
            slope += weight
            at += slope * width
            if weight != 0.0:
                parts.append((corners[i], weight, sign))
    parts = parts or [(corners[flat], 0.0, 1.0)]
    return Block(float(wanted[flat]), *(np.array(column) for column in zip(*parts, strict=True)))
