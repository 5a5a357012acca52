"""The largest size of a program's outputs on a box, from above and from below, as long as time is given.

The worst boxes are halved first; halves share the number at which they meet, so that all of the box stays covered.
From above, an output of a box is enclosed by linear relaxations; from below, it is at the centres of boxes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer_checker.core.balls import TINY, Array
from onelayer_checker.core.files import Malformed
from onelayer_checker.functions.branch import halves, middle
from onelayer_checker.functions.relaxations import relaxed
from onelayer_checker.functions.targets import Program, enclose, read_program

#: Boxes with more than this share of the worst bound are halved together; numbers of scratch in one block.
STEP, SCRATCH = 0.85, 1 << 21
MOST_BOXES = 1 << 20
#: Inputs beyond this are not looked at.
FARTHEST = 2.0**1000


@dataclass(frozen=True)
class Extreme:
    """No output is larger than ``upper``; one is at least ``lower`` at the point ``where``."""

    upper: float
    lower: float
    where: Array  # [m]
    boxes: int  # that were looked at


def _sizes(program: Program, low: Array, high: Array) -> tuple[Array, Array]:
    """At least the largest output of each box, and what each input contributes to it."""
    B, m = low.shape
    upper, share = np.zeros(B), np.empty((B, m))
    step = max(16, SCRATCH // (len(program.lines) * (m + 8)))
    for rows in (slice(a, a + step) for a in range(0, B, step)):
        wide = high[rows] - low[rows]
        wide = wide / np.maximum(np.max(wide, axis=1, keepdims=True), TINY)
        for line in relaxed(program, low[rows], high[rows]):
            found = np.broadcast_to(np.maximum(np.abs(line.value[0]), np.abs(line.value[1])), len(wide))
            found = np.where(np.isnan(found), np.inf, found)
            worse = found >= upper[rows]
            radius = np.broadcast_to(np.where(np.isfinite(line.radius), line.radius, 1e300), len(wide))
            mine = np.abs(np.broadcast_to(line.slope, (m, len(wide)))).T + radius[:, None] * wide
            share[rows] = np.where(worse[:, None], mine, share[rows])
            upper[rows] = np.maximum(upper[rows], found)
    return upper, share


def _attained(program: Program, points: Array) -> Array:
    """At most the largest output at each point."""
    found = enclose(program, points, points, False)
    least = np.maximum(np.maximum(found.low, -found.high), 0.0)
    return np.asarray(np.where(np.isfinite(least), least, 0.0).max(axis=1))


def largest(
    program: Program, low: Array, high: Array, seconds: float, close: float, tried: Array | None = None
) -> Extreme:
    """Until the bounds are within a factor 1 + ``close`` of each other, or the CPU time is spent; points that were
    ``tried`` elsewhere are looked at too."""
    begun, boxes = time.process_time(), 1
    low, high = np.atleast_2d(np.asarray(low, np.float64)), np.atleast_2d(np.asarray(high, np.float64))
    points = np.concatenate([middle(low, high)[0], *([] if tried is None else [np.clip(tried, low, high)])])
    reached = _attained(program, points)
    at = int(np.argmax(reached))
    best, where = float(reached[at]), points[at]
    upper, share = _sizes(program, low, high)
    while time.process_time() - begun < seconds and boxes < MOST_BOXES:
        worst = float(np.max(upper))
        if worst <= best * (1 + close):
            break
        split = upper > max(worst * STEP, best * (1 + close)) if np.isfinite(worst) else ~np.isfinite(upper)
        a, b = halves(low[split], high[split], share[split])
        points = middle(a, b)[0]
        reached = _attained(program, points)
        at = int(np.argmax(reached))
        if reached[at] > best:
            best, where = float(reached[at]), points[at]
        more, shares = _sizes(program, a, b)
        boxes += len(a)
        low, high = np.concatenate([low[~split], a]), np.concatenate([high[~split], b])
        upper, share = np.concatenate([upper[~split], more]), np.concatenate([share[~split], shares])
    return Extreme(float(np.max(upper)), best, where, boxes)


def largest_output(
    program: Any, low: Any, high: Any, *, seconds: float, close: float, tried: Any = None
) -> Extreme:
    """The same of a program in the form of the specification; ``tried`` are points [k, n d] that may be large."""
    read = read_program(program, "program")
    ends = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if not all(end.shape == (read.n * read.d,) and (np.abs(end) <= FARTHEST).all() for end in ends):
        raise Malformed("claim", "a box needs two finite ends for each input")
    if not (ends[0] <= ends[1]).all():
        raise Malformed("claim", "the box is empty")
    return largest(read, *ends, seconds, close, None if tried is None else np.asarray(tried, np.float64))
