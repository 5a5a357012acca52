"""Lipschitz constants of programs, from enclosures of their values and slopes; never from samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onelayer.problems.targets.enclosure import as_checked
from onelayer.problems.targets.program import Array, Program

#: Lines times variables times boxes that may be looked at, and boxes at most.
MOST_WORK, MOST_BOXES = 1 << 22, 1 << 13


def lipschitz(program: Program, low: Any, high: Any) -> float | None:
    """A constant from the sup norm of all inputs to the sup norm of the outputs, on the box; None if none is found.

    L = max over sub-boxes and outputs of their steepness there: a segment between two points of the box runs
    through sub-boxes. The steepest are halved along their longest side until the work allowed is done.
    """
    read, m = as_checked(program), program.n * program.d
    every = replace(read, per="sequence", components=len(read.lines), outputs=tuple(range(len(read.lines))))
    left = min(MOST_BOXES, max(64, MOST_WORK // (len(read.lines) * (m + 1))))
    lows, highs = (np.broadcast_to(end, (program.n, program.d)).reshape(1, m) + 0.0 for end in (low, high))
    steepest = _steepness(every, lows, highs)[:, read.outputs].max(axis=1)
    while left > 0:
        worst = np.argsort(-steepest, kind="stable")[: max(1, min(left // 4, len(steepest) // 2))]
        a, b = _halves(lows[worst], highs[worst])
        lows, highs = (np.concatenate([np.delete(x, worst, 0), y]) for x, y in ((lows, a), (highs, b)))
        found = _steepness(every, a, b)[:, read.outputs].max(axis=1)
        steepest = np.concatenate([np.delete(steepest, worst), found])
        left -= len(a)
    # A few roundings of numbers that are not negative, per line, and a sum over the variables.
    largest = float(steepest.max()) * (1 + 2.0**-49 * (len(read.lines) + m))
    return largest if np.isfinite(largest) else None


def _steepness(every: Any, lows: Array, highs: Array) -> Array:
    """Per box and line [B, lines] a constant s with |f(b) - f(a)| <= s |b - a| for points a, b of the box.

    The smaller of two bounds: the sum of the largest |slopes|, and what the operation makes of the
    constants of its arguments. The second knows that a maximum of steep functions is no steeper than either.
    """
    found = every.enclose(lows, highs, True)
    size = np.maximum(np.abs(found.low), np.abs(found.high))
    least = np.where(found.low > 0, found.low, np.where(found.high < 0, -found.high, 0.0))
    direct = np.maximum(np.abs(found.slope_low), np.abs(found.slope_high)).sum(axis=2)
    s = np.zeros_like(direct)
    with np.errstate(all="ignore"):
        for k, (op, *of) in enumerate(every.lines):
            rule = direct[:, k]
            if op in ("neg", "abs", "sin", "cos"):
                rule = s[:, of[0]]
            elif op == "exp":
                rule = s[:, of[0]] * size[:, k]
            elif op in ("add", "sub"):
                rule = s[:, of[0]] + s[:, of[1]]
            elif op == "mul":
                rule = s[:, of[0]] * size[:, of[1]] + s[:, of[1]] * size[:, of[0]]
            elif op == "div":
                rule = (s[:, of[0]] + size[:, k] * s[:, of[1]]) / least[:, of[1]]
            elif op in ("min", "max"):
                rule = np.maximum(s[:, of[0]], s[:, of[1]])
            elif op == "hypot":  # the Euclidean norm changes by at most the norm of the change
                rule = np.sqrt(s[:, of[0]] ** 2 + s[:, of[1]] ** 2)
            s[:, k] = np.fmin(rule, direct[:, k])  # NaN is no bound
    return np.where(found.low == -np.inf, np.inf, s)


def _halves(lows: Array, highs: Array) -> tuple[Array, Array]:
    rows, side = np.arange(len(lows)), np.argmax(highs - lows, axis=1)
    middle = (lows[rows, side] + highs[rows, side]) / 2
    left_high, right_low = highs.copy(), lows.copy()
    left_high[rows, side], right_low[rows, side] = middle, middle
    return np.concatenate([lows, right_low]), np.concatenate([left_high, highs])
