"""Lipschitz constants of programs, from enclosures of their slopes; never from samples."""

from __future__ import annotations

import numpy as np

from onelayer.targets.program import Array, Program
from onelayer_checker import targets as checker

#: Lines times variables times boxes that may be looked at, and boxes at most.
MOST_WORK, MOST_BOXES = 1 << 22, 1 << 13


def lipschitz(program: Program, low: float, high: float) -> float | None:
    """A constant from the sup norm of all inputs to the sup norm of the outputs, on the box; None if none is found.

    L = max over sub-boxes and outputs k of sum_v max |slope_kv|: a segment between two points of the box runs
    through sub-boxes, and within each f(b) - f(a) = g . (b - a) with g among its slopes. The steepest sub-boxes are
    halved along their longest side until the work allowed is done.
    """
    enclosed, m = checker.read_program(program.to_json(), "target"), program.n * program.d
    left = min(MOST_BOXES, max(64, MOST_WORK // (len(program.lines) * (m + 1))))
    lows, highs = np.full((1, m), low), np.full((1, m), high)
    steepness = _steepness(enclosed, lows, highs)
    while left > 0:
        worst = np.argsort(-steepness, kind="stable")[: max(1, min(left // 4, len(steepness) // 2))]
        a, b = _halves(lows[worst], highs[worst])
        lows, highs = (
            np.concatenate([np.delete(lows, worst, 0), a]),
            np.concatenate([np.delete(highs, worst, 0), b]),
        )
        steepness = np.concatenate([np.delete(steepness, worst), _steepness(enclosed, a, b)])
        left -= len(a)
    largest = float(steepness.max())
    return largest if np.isfinite(largest) else None


def _steepness(program: checker.Program, lows: Array, highs: Array) -> Array:
    """The constant of every box [B], rounded up; NaN does not occur, infinity may."""
    found = checker.enclose(program, lows, highs, True)
    sums = np.maximum(np.abs(found.slope_low), np.abs(found.slope_high)).sum(axis=2).max(axis=1)
    return np.asarray(sums * (1 + 2.0**-40))


def _halves(lows: Array, highs: Array) -> tuple[Array, Array]:
    rows, side = np.arange(len(lows)), np.argmax(highs - lows, axis=1)
    middle = (lows[rows, side] + highs[rows, side]) / 2
    left_high, right_low = highs.copy(), lows.copy()
    left_high[rows, side], right_low[rows, side] = middle, middle
    return np.concatenate([lows, right_low]), np.concatenate([left_high, highs])
