"""Targets: straight-line programs, and enclosures of their values and slopes on boxes.

``enclose`` is sound: where its bounds are finite, f is defined on the whole box; for every real x in it f(x) is in
[low, high]; and for any two points a, b of it there is a vector g within the slopes with f(b) - f(a) = g . (b - a).
All hold line by line, by induction: each operation says below how the difference of its values comes from those of
its arguments. What may be undefined or unbounded somewhere makes whatever uses it so: both ends are then infinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array, U
from onelayer_checker.core.budget import spend
from onelayer_checker.core.files import Malformed, fields, real
from onelayer_checker.functions.intervals import (
    Interval,
    divide,
    exp,
    log,
    minus,
    out,
    plus,
    root,
    size,
    square,
    tanh,
    times,
    wave,
)
from onelayer_checker.functions.ordering import simplify_ordered
from onelayer_checker.functions.symmetry import is_symmetric

Slopes = dict[int, Interval]  # by variable; one that is missing has slope 0
ARGUMENTS = dict.fromkeys(("neg", "abs", "sqrt", "exp", "sin", "cos", "log", "tanh"), 1)
ARGUMENTS |= dict.fromkeys(("add", "sub", "mul", "div", "min", "max", "hypot"), 2)
MOST_LINES, BLOCK, HELD = 10_000, 1 << 13, 1 << 24
ZERO, HALF, ONE, MINUS = ((np.full(1, value),) * 2 for value in (0.0, 0.5, 1.0, -1.0))


@dataclass(frozen=True)
class Program:
    n: int
    d: int
    per: str  # "token": outputs are those of token 0, then of token 1, ...; or "sequence"
    components: int
    lines: tuple[tuple[Any, ...], ...]
    outputs: tuple[int, ...]

    @property
    def symmetric(self) -> bool:
        """Whether its lines show that its answers move with the tokens."""
        return is_symmetric(self.n, self.lines, self.outputs, self.per == "token")

    def simplify_ordered(self, falling: tuple[int, ...]) -> Program:
        """The same function wherever the variables, in this order, do not increase."""
        return replace(self, lines=simplify_ordered(self.lines, self.d, falling))

    def enclose(self, low: Array, high: Array, gradient: bool) -> Enclosure:
        return enclose(self, low, high, gradient)

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        return bounds(self, low, high)


@dataclass(frozen=True)
class Enclosure:
    low: Array  # [B, K]
    high: Array
    slope_low: Array  # [B, K, m] with the variables token-major; [B, K, 0] if not asked for
    slope_high: Array


def read_program(entry: Any, where: str) -> Program:
    """A program in the form of the specification; whatever else it is makes it malformed."""
    fields(entry, {"n", "d", "per", "components", "lines", "outputs"}, where)
    n, d, q, per = (entry[name] for name in ("n", "d", "components", "per"))
    if not all(type(size) is int and 1 <= size <= MOST_LINES for size in (n, d, q)) or n * d > MOST_LINES:
        raise Malformed("claim", f"{where} has n={n!r:.20}, d={d!r:.20}, components={q!r:.20}")
    if per not in ("token", "sequence"):
        raise Malformed("claim", f"{where}.per is {per!r:.20}")
    lines, outputs = entry["lines"], entry["outputs"]
    if not all(isinstance(part, list) and 1 <= len(part) <= MOST_LINES for part in (lines, outputs)):
        raise Malformed("claim", f"{where} must have 1 to {MOST_LINES} lines and outputs")
    read = tuple(_read_line(line, k, n, d, f"{where}.lines[{k}]") for k, line in enumerate(lines))
    if not all(type(k) is int and 0 <= k < len(read) for k in outputs):
        raise Malformed("claim", f"{where}.outputs must be indices of lines")
    if len(outputs) != q * (n if per == "token" else 1):
        raise Malformed("claim", f"{where} has {len(outputs)} outputs, not {q} per {per}")
    return Program(n, d, per, q, read, tuple(outputs))


def _read_line(line: Any, k: int, n: int, d: int, where: str) -> tuple[Any, ...]:
    op = line[0] if isinstance(line, list) and line else None
    if op == "const" and len(line) == 2:
        return "const", real(line[1], where)
    count = 2 if op == "x" else ARGUMENTS.get(op) if isinstance(op, str) else None
    limits = (n, d) if op == "x" else (k, k)
    if count is None or len(line) != count + 1:
        raise Malformed("claim", f"{where} is not a line: {line!r:.60}")
    if not all(type(i) is int and 0 <= i < limit for i, limit in zip(line[1:], limits, strict=False)):
        raise Malformed("claim", f"{where} names no variable, or no earlier line: {line!r:.60}")
    return tuple(line)


def _combine(*terms: tuple[Slopes, Interval]) -> Slopes:
    """Encloses the sum of slopes times factors."""
    total: Slopes = {}
    for slopes, factor in terms:
        for v, g in slopes.items():
            g = g if factor is ONE else minus(g) if factor is MINUS else factor if g is ONE else times(factor, g)
            total[v] = plus(total[v], g) if v in total else g
    return total


def _choose(first: Array, second: Array, f: Slopes, g: Slopes) -> Slopes:
    """Slopes of a minimum or maximum: of the argument that certainly wins, else anything between the two.

    If the first wins at a and the second at b, the difference lies between those of the two: a convex combination.
    """
    chosen: Slopes = {}
    for v in f.keys() | g.keys():
        x, y = f.get(v, ZERO), g.get(v, ZERO)
        ends = ((x[0], y[0], np.minimum(x[0], y[0])), (x[1], y[1], np.maximum(x[1], y[1])))
        low, high = (np.where(first, p, np.where(second, q, both)) for p, q, both in ends)
        chosen[v] = low, high
    return chosen


def _of_one(op: str, a: Interval, f: Slopes) -> tuple[Interval, Slopes]:
    """Values and slopes of a function of one line. Between two points the slope of exp, sin, cos, log and tanh is a
    derivative (mean value theorem), that of v^2 is v(a) + v(b), of sqrt(v) 1 / (sqrt(v(a)) + sqrt(v(b))), of |v|
    in [-1, 1].
    """
    if op == "square":
        return square(a), _combine((f, (2 * a[0], 2 * a[1])))
    if op == "neg":
        return minus(a), _combine((f, MINUS))
    if op == "abs":
        return size(a), _combine((f, (np.where(a[0] >= 0, 1.0, -1.0), np.where(a[1] <= 0, -1.0, 1.0))))
    if op == "exp":
        value = exp(a[0])[0], exp(a[1])[1]
        return value, _combine((f, value))
    if op == "sqrt":
        value = root(a)
        return value, _combine((f, divide(HALF, value)))
    if op == "log":
        return log(a), _combine((f, divide(ONE, a)))
    if op == "tanh":
        value = tanh(a)
        return value, _combine((f, plus(ONE, minus(square(value)))))
    turn = 1 if op == "cos" else 0
    return wave(a, turn), _combine((f, wave(a, turn + 1) if f else ONE))


def _of_two(op: str, a: Interval, f: Slopes, b: Interval, g: Slopes) -> tuple[Interval, Slopes]:
    """Values and slopes of a function of two lines. v w: v(b) G_w + w(a) G_v. q = v / w: (G_v - q(a) G_w) / w(b).
    N = hypot(v, w): N(b) - N(a) is (v(a) + v(b)) / (N(a) + N(b)) times the difference of v, and the same in w; that
    mediant lies between v/N at a and at b, within [-1, 1]. Where N(a) + N(b) = 0, all differences are 0."""
    if op == "add":
        return plus(a, b), _combine((f, ONE), (g, ONE))
    if op == "sub":
        return out(a[0] - b[1], a[1] - b[0]), _combine((f, ONE), (g, MINUS))
    if op == "mul":
        return times(a, b), _combine((f, b), (g, a))
    if op == "div":
        value = divide(a, b)
        return value, _combine((_combine((f, ONE), (g, minus(value))), divide(ONE, b)))
    if op == "hypot":
        value = root(plus(square(a), square(b)))
        v, w = ((np.maximum(x, -1.0), np.minimum(y, 1.0)) for x, y in (divide(a, value), divide(b, value)))
        return value, _combine((f, v), (g, w))
    if op == "min":
        return (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])), _choose(a[1] <= b[0], b[1] <= a[0], f, g)
    return (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])), _choose(a[0] >= b[1], b[0] >= a[1], f, g)


def _run(program: Program, low: Array, high: Array, gradient: bool) -> list[tuple[Interval, Slopes]]:
    """Values [b] and slopes of every output on boxes [m, b]; a line is forgotten after its last use."""
    lines = program.lines
    last: dict[int, int] = {}
    for k, (op, *arguments) in enumerate(lines):
        last |= dict.fromkeys(arguments if op in ARGUMENTS else (), k)
    last |= dict.fromkeys(program.outputs, len(lines))
    known: dict[int, tuple[Interval, Slopes]] = {}
    for k, (op, *arguments) in enumerate(lines):
        if op == "x":
            v = arguments[0] * program.d + arguments[1]
            known[k] = (low[v], high[v]), {v: ONE} if gradient else {}
        elif op == "const":
            known[k] = (np.full(1, arguments[0]),) * 2, {}
        else:
            (a, f), (b, g) = known[arguments[0]], known[arguments[-1]]
            op = "square" if op == "mul" and arguments[0] == arguments[1] else op
            value, slopes = _of_two(op, a, f, b, g) if ARGUMENTS.get(op) == 2 else _of_one(op, a, f)
            lost = ~(np.isfinite(value[0]) & np.isfinite(value[1])) | (a[0] == -np.inf) | (b[0] == -np.inf)
            if lost.any():
                value = np.where(lost, -np.inf, value[0]), np.where(lost, np.inf, value[1])
            known[k] = value, slopes
            for i in arguments:
                if last[i] == k:
                    known.pop(i, None)
        if k not in last:
            del known[k]
    return [known[k] for k in program.outputs]


def _blocks(program: Program, boxes: int) -> Iterator[slice]:
    step = max(1, min(BLOCK, HELD // (len(program.lines) * (program.n * program.d + 1))))
    return (slice(start, min(start + step, boxes)) for start in range(0, boxes, step))


def enclose(program: Program, low: Array, high: Array, gradient: bool) -> Enclosure:
    """Encloses the outputs, and if asked their slopes, on boxes [B, m]."""
    if not ((-np.inf < low) & (low <= high) & (high < np.inf)).all():
        raise ValueError("the ends of a box must be finite and in order")
    B, m, K = len(low), program.n * program.d, len(program.outputs)
    work = len(program.lines) * (2 + m * gradient) * (3e4 + 20.0 * B)  # a line takes its time for a single box too
    spend(f"{B:,} boxes of the target", work, 16.0 * B * K * (1 + 3 * m * gradient))
    ends = np.empty((2, B, K))
    slopes = np.zeros((2, B, K, m if gradient else 0))
    with np.errstate(all="ignore"):
        for rows in _blocks(program, B):
            box = [np.ascontiguousarray(x[rows].T, np.float64) for x in (low, high)]
            for k, (value, slope) in enumerate(_run(program, box[0], box[1], gradient)):
                for side in (0, 1):
                    ends[side, rows, k] = value[side]
                    for v, g in slope.items():
                        slopes[side, rows, k, v] = g[side]
    lost = ends[0] == -np.inf
    slopes[0, lost], slopes[1, lost] = -np.inf, np.inf
    return Enclosure(ends[0], ends[1], slopes[0], slopes[1])


def bounds(program: Program, low: Array, high: Array) -> tuple[Array, Array]:
    """Encloses the outputs [B, K] twice, by intervals and by f(c) + slopes . (x - c), and intersects the two."""
    ends = np.empty((2, len(low), len(program.outputs)))
    for rows in _blocks(program, len(low)):
        a, b = np.asarray(low[rows], np.float64), np.asarray(high[rows], np.float64)
        c = np.clip(a / 2 + b / 2, a, b)
        box, point = enclose(program, a, b, True), enclose(program, c, c, False)
        with np.errstate(all="ignore"):
            radius = np.maximum(b - c, c - a) * UP + TINY
            steepest = np.maximum(np.abs(box.slope_low), np.abs(box.slope_high))
            spread = (steepest * radius[:, None, :]).sum(axis=2) * ((1 + 4 * (a.shape[1] + 2) * U) * UP) + TINY
            near = out(point.low - spread, point.high + spread)
        ends[0, rows], ends[1, rows] = np.maximum(box.low, near[0]), np.minimum(box.high, near[1])
    return ends[0], ends[1]
