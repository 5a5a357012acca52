"""Linear relaxations: on a box, every line of a program is a linear function of the inputs, up to a radius.

With e_i in [-1, 1] for the inputs x_i = c_i + r_i e_i, a line is within ``radius`` of centre + sum_i slope_i e_i. A
sum adds these. A function f of a line that lies in [l, u] is a v + g(v) for any number a, here the slope of the
chord between the ends. If f is twice differentiable, g leaves the values between g(l) and g(u) by at most (u - l)^2
times |f''|/8, upwards where f'' is negative; |v| has its extremes at the ends and at 0. A product v w is c w + d v
- c d + (v - c)(w - d). Beside it every line has its interval; each is narrowed by the other. What is rounded goes
into the radius. A line that may be undefined somewhere has no bounds, and neither has what uses it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array, U
from onelayer_checker.core.budget import spend
from onelayer_checker.functions.intervals import Interval, divide, minus, out, plus, size, square, times
from onelayer_checker.functions.jets import ONE, ZERO, Jet, of_one, of_two
from onelayer_checker.functions.targets import ARGUMENTS, Program

#: Relative: what covers the rounding of a line, of m + 8 products and sums.
SLACK = 16 * U


@dataclass(frozen=True)
class Line:
    centre: Array  # [B]
    slope: Array  # [m, B]
    radius: Array  # [B]
    value: Interval

    @property
    def reach(self) -> Array:
        """At least how far the line may be from its centre."""
        m = len(self.slope)
        return np.asarray((np.abs(self.slope).sum(axis=0) * (1 + 4 * (m + 2) * U) + self.radius) * (UP * UP))


def _line(centre: Array, slope: Array, radius: Array, value: Interval) -> Line:
    """With what its last operation may have rounded; the interval is narrowed by the relaxation."""
    m = len(slope)
    sizes = np.abs(centre) + np.abs(slope).sum(axis=0)
    radius = (radius + sizes * (SLACK * (m + 8))) * (UP * UP) + TINY
    known = np.isfinite(sizes) & np.isfinite(radius)
    centre, slope = np.where(known, centre, 0.0), np.where(known, slope, 0.0)
    radius = np.where(known, radius, np.inf)
    reach = Line(centre, slope, radius, value).reach
    near = out(centre - reach, centre + reach, TINY)
    low, high = np.fmax(value[0], near[0]), np.fmin(value[1], near[1])
    return Line(centre, slope, radius, (low, high))


def _function(line: Line, value: Interval, first: Interval, last: Interval, bend: Interval | None) -> Line:
    """f of a line, given f on its interval, at its ends, and its second derivative; None of |v|."""
    low, high = line.value
    width = np.maximum(high - low, 0.0) * UP
    a = np.where(width > 0, (last[0] / 2 + last[1] / 2 - first[0] / 2 - first[1] / 2) / width, 0.0)
    a = np.where(np.isfinite(a), a, 0.0)
    ends = [
        out(f[0] - g[1], f[1] - g[0])
        for f, g in ((first, times((a, a), (low, low))), (last, times((a, a), (high, high))))
    ]
    below, above = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
    if bend is None:
        inside = (low < 0) & (high > 0)
        below, above = (
            np.where(inside, np.minimum(below, 0.0), below),
            np.where(inside, np.maximum(above, 0.0), above),
        )
    else:
        lift = width * width * (UP * UP / 8)
        below = below - np.maximum(bend[1], 0.0) * lift * UP
        above = above + np.maximum(-bend[0], 0.0) * lift * UP
    below, above = out(below, above, TINY)
    middle = below / 2 + above / 2
    half = np.maximum(above - middle, middle - below) * UP
    rounded = (np.abs(a * line.centre) + np.abs(middle)) * SLACK
    return _line(a * line.centre + middle, a * line.slope, np.abs(a) * line.radius + half + rounded, value)


def _of_one(op: str, v: Line) -> Line:
    low, high = v.value
    if op == "neg":
        return _line(-v.centre, -v.slope, v.radius, minus(v.value))
    if op == "abs":
        ends = [size((end, end)) for end in (low, high)]
        return _function(v, size(v.value), ends[0], ends[1], None)
    if op == "square":
        jet, ends = (
            of_two("mul", *(Jet(v.value, ONE, ZERO),) * 2, True),
            [square((end, end)) for end in (low, high)],
        )
    else:
        jet, ends = of_one(op, Jet(v.value, ONE, ZERO)), [of_one(op, Jet((end, end))).value for end in (low, high)]
    return _function(v, jet.value, ends[0], ends[1], jet.bend)


def _sum(v: Line, w: Line, sign: float) -> Line:
    other = w.value if sign > 0 else minus(w.value)
    rounded = (np.abs(v.centre) + np.abs(w.centre)) * SLACK
    return _line(
        v.centre + sign * w.centre, v.slope + sign * w.slope, v.radius + w.radius + rounded, plus(v.value, other)
    )


def _scaled(v: Line, factor: float) -> Line:
    both = (np.full(1, factor),) * 2
    return _line(factor * v.centre, factor * v.slope, abs(factor) * v.radius, times(both, v.value))


def _product(v: Line, w: Line) -> Line:
    c, d = v.centre, w.centre
    apart = v.reach * w.reach * UP  # (v - c)(w - d)
    sizes = np.abs(c) * np.abs(w.slope).sum(axis=0) + np.abs(d) * np.abs(v.slope).sum(axis=0) + np.abs(c * d)
    radius = np.abs(c) * w.radius + np.abs(d) * v.radius + apart + sizes * SLACK
    return _line(c * d, c * w.slope + d * v.slope, radius, times(v.value, w.value))


def _of_two(op: str, v: Line, w: Line) -> Line:
    if op in ("add", "sub"):
        return _sum(v, w, 1.0 if op == "add" else -1.0)
    if op == "mul":
        return _product(v, w)
    if op == "div":
        return _narrowed(_product(v, _of_one("recip", w)), divide(v.value, w.value))
    if op == "hypot":
        return _of_one("sqrt", _sum(_of_one("square", v), _of_one("square", w), 1.0))
    half = _of_one("abs", _sum(v, w, -1.0))  # max = (v + w + |v - w|) / 2
    made = _scaled(_sum(_sum(v, w, 1.0), half, 1.0 if op == "max" else -1.0), 0.5)
    pick = np.maximum if op == "max" else np.minimum
    return _narrowed(made, (pick(v.value[0], w.value[0]), pick(v.value[1], w.value[1])))


def _narrowed(line: Line, value: Interval) -> Line:
    low, high = np.fmax(line.value[0], value[0]), np.fmin(line.value[1], value[1])
    return Line(line.centre, line.slope, line.radius, (low, high))


def relaxed(program: Program, low: Array, high: Array) -> list[Line]:
    """Every output on boxes [B, m]; a line is forgotten after its last use."""
    B, m = low.shape
    spend(f"{B:,} relaxed boxes", len(program.lines) * (10 + m) * (3e4 + 40.0 * B), 64.0 * B * (m + 8))
    centre = np.clip(low / 2 + high / 2, low, high)
    wide = np.maximum(high - centre, centre - low) * UP + TINY
    last: dict[int, int] = {}
    for k, (op, *arguments) in enumerate(program.lines):
        last |= dict.fromkeys(arguments if op in ARGUMENTS else (), k)
    last |= dict.fromkeys(program.outputs, len(program.lines))
    known: dict[int, Line] = {}
    with np.errstate(all="ignore"):
        for k, (op, *arguments) in enumerate(program.lines):
            if op == "x":
                v = arguments[0] * program.d + arguments[1]
                slope = np.zeros((m, B))
                slope[v] = wide[:, v]
                known[k] = Line(centre[:, v], slope, np.zeros(B), (low[:, v], high[:, v]))
            elif op == "const":
                c = np.full(1, arguments[0])
                known[k] = Line(c, np.zeros((m, 1)), np.zeros(1), (c, c))
            else:
                known[k] = _next(op, arguments, known)
            for i in set(arguments) if op in ARGUMENTS else ():
                if last[i] == k:
                    del known[i]
            if k not in last:
                del known[k]
    return [known[k] for k in program.outputs]


def _next(op: str, arguments: list[int], known: dict[int, Line]) -> Line:
    first, second = known[arguments[0]], known[arguments[-1]]
    if ARGUMENTS[op] == 1:
        made = _of_one(op, first)
    elif op == "mul" and arguments[0] == arguments[1]:
        made = _of_one("square", first)
    else:
        made = _of_two(op, first, second)
    low, high = made.value
    lost = ~(np.isfinite(low) & np.isfinite(high)) | (first.value[0] == -np.inf) | (second.value[0] == -np.inf)
    value = np.where(lost, -np.inf, low), np.where(lost, np.inf, high)
    return Line(made.centre, made.slope, np.where(lost, np.inf, made.radius), value)
