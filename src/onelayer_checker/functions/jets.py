"""Operations on functions of one variable over intervals of it: values, first and second derivatives enclosed.

Where the enclosure of a second derivative is finite, the function is twice differentiable on the interval; where a
corner may lie in it, nothing is known of the second derivative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.functions.intervals import (
    Interval,
    divide,
    exp,
    log,
    minus,
    plus,
    root,
    size,
    square,
    tanh,
    times,
    wave,
)

ZERO, HALF, ONE, TWO = ((np.full(1, x),) * 2 for x in (0.0, 0.5, 1.0, 2.0))


@dataclass(frozen=True)
class Jet:
    value: Interval
    slope: Interval = ZERO
    bend: Interval = ZERO


def _chain(value: Interval, first: Interval, second: Interval, a: Jet) -> Jet:
    """f(a) from f, f' and f'' on the values of a: f' a', and f' a'' + f'' a'^2."""
    return Jet(value, times(first, a.slope), plus(times(first, a.bend), times(second, square(a.slope))))


def of_one(op: str, a: Jet) -> Jet:
    v = a.value
    if op == "neg":
        return Jet(minus(v), minus(a.slope), minus(a.bend))
    if op == "exp":
        e = exp(v[0])[0], exp(v[1])[1]
        return _chain(e, e, e, a)
    if op == "recip":
        r = divide(ONE, v)
        return _chain(r, minus(square(r)), times(TWO, times(r, square(r))), a)
    if op == "sqrt":
        r = root(v)
        first = divide(HALF, r)
        return _chain(r, first, minus(divide(first, times(TWO, v))), a)
    if op == "log":
        r = divide(ONE, v)
        return _chain(log(v), r, minus(square(r)), a)
    if op == "tanh":
        t = tanh(v)
        first = plus(ONE, minus(square(t)))
        return _chain(t, first, minus(times(TWO, times(t, first))), a)
    if op in ("sin", "cos"):
        turn = 1 if op == "cos" else 0
        return _chain(wave(v, turn), wave(v, turn + 1), minus(wave(v, turn)), a)
    if op == "abs":
        return _either(size(v), v[0] >= 0, v[1] <= 0, a, of_one("neg", a))
    assert op == "relu"
    value = np.maximum(v[0], 0.0), np.maximum(v[1], 0.0)
    return _either(value, v[0] >= 0, v[1] <= 0, a, Jet(ZERO))


def _either(value: Interval, first: Array, second: Array, a: Jet, b: Jet) -> Jet:
    """The first where it certainly wins, the second where that does; else both slopes, and no second derivative."""
    pairs = ((a.slope, b.slope), (a.bend, b.bend))
    (low, high), (below, above) = (
        [np.where(first, x[i], np.where(second, y[i], (np.minimum, np.maximum)[i](x[i], y[i]))) for i in (0, 1)]
        for x, y in pairs
    )
    known = first | second
    return Jet(value, (low, high), (np.where(known, below, -np.inf), np.where(known, above, np.inf)))


def of_two(op: str, a: Jet, b: Jet, same: bool) -> Jet:
    """A function of two lines; ``same`` says that they are one line."""
    if op == "add":
        return Jet(plus(a.value, b.value), plus(a.slope, b.slope), plus(a.bend, b.bend))
    if op == "sub":
        return of_two("add", a, of_one("neg", b), False)
    if op == "mul" and same:
        return _chain(square(a.value), times(TWO, a.value), TWO, a)
    if op == "mul":
        slope = plus(times(a.slope, b.value), times(a.value, b.slope))
        cross = times(TWO, times(a.slope, b.slope))
        bend = plus(plus(times(a.bend, b.value), times(a.value, b.bend)), cross)
        return Jet(times(a.value, b.value), slope, bend)
    if op == "div":
        return of_two("mul", a, of_one("recip", b), False)
    if op == "hypot":
        squares = of_two("add", of_two("mul", a, a, True), of_two("mul", b, b, True), False)
        return of_one("sqrt", squares)
    (p, q), (r, s) = a.value, b.value
    if op == "min":
        return _either((np.minimum(p, r), np.minimum(q, s)), q <= r, s <= p, a, b)
    assert op == "max"
    return _either((np.maximum(p, r), np.maximum(q, s)), p >= s, r >= q, a, b)
