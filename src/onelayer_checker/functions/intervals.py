"""Intervals [low, high] over float64 that contain every real result of an operation on reals of their operands.

Trusted: IEEE binary64 + - * / with round to nearest, comparison, rint, floor, and a square root that is off by at
most 2 u: the move below is 2.9 u for numbers as large as roots are. No mathematical library is.

Rounding. With u = 2^-53, a result r differs from the exact e by at most u |r|, or, in a product or quotient that is
subnormal, by 2^-1075; a sum that small is exact. ``out`` moves r outward by w, a rounding of 4 u |r| + least, and
rounds r -+ w. If |r| >= 2^-1021, w >= 3.5 u |r| (its own rounding is at most 2^-1075) and the move is at least w -
1.01 u |r| >= u |r|. Smaller sums are exact; elsewhere least = TINY covers. Overflow gives a NaN or an infinity of
the harmless sign, and NaN becomes "nothing known": a low end is never +inf, a high end never -inf, no end is NaN.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from onelayer_checker.core.balls import TINY, Array, U, exp_nonpositive

Interval = tuple[Array, Array]


def out(low: Array, high: Array, least: float = 0.0) -> Interval:
    w, v = np.abs(low), np.abs(high)
    w *= 4 * U
    v *= 4 * U
    if least:
        w += least
        v += least
    return np.fmax(np.subtract(low, w, out=w), -np.inf), np.fmin(np.add(high, v, out=v), np.inf)


def times(a: Interval, b: Interval) -> Interval:
    """Encloses the products; a factor that is one number (both ends the same array) saves half the work."""
    a, b = (b, a) if b[0] is b[1] else (a, b)
    p, q = a[0] * b[0], a[0] * b[1]
    low, high = np.minimum(p, q), np.maximum(p, q)
    if a[0] is not a[1]:
        for p in (a[1] * b[0], a[1] * b[1]):
            np.minimum(low, p, out=low)
            np.maximum(high, p, out=high)
    return out(low, high, TINY)


def divide(a: Interval, b: Interval) -> Interval:
    """Encloses the quotients; nothing is known where b may be 0."""
    ends = [x / y for x in a for y in b]
    low, high = out(np.minimum.reduce(ends), np.maximum.reduce(ends), TINY)
    open_ = ~((b[0] > 0) | (b[1] < 0))
    return np.where(open_, -np.inf, low), np.where(open_, np.inf, high)


def plus(a: Interval, b: Interval) -> Interval:
    return out(a[0] + b[0], a[1] + b[1])


def minus(a: Interval) -> Interval:
    return -a[1], -a[0]


def size(a: Interval) -> Interval:
    """Encloses |a|, exactly."""
    x, y = np.abs(a[0]), np.abs(a[1])
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(x, y)), np.maximum(x, y)


def square(a: Interval) -> Interval:
    x, y = size(a)
    low, high = out(x * x, y * y, TINY)
    return np.maximum(low, 0.0), high


def root(a: Interval) -> Interval:
    """Encloses the square root, which is never subnormal; nothing is known where a may be negative."""
    low, high = out(np.sqrt(a[0]), np.sqrt(a[1]))
    return np.where(a[0] >= 0, low, -np.inf), np.where(a[0] >= 0, high, np.inf)


def exp(x: Array) -> Interval:
    """Lower and upper bounds of exp(x): the kernel's exp is off by at most 8 u, or by 2^-1009 below -700."""
    e = exp_nonpositive(-np.abs(x))
    below, above = e * (1 - 32 * U), e * (1 + 32 * U) + TINY
    inverse = 1.0 / above * (1 - 8 * U), 1.0 / below * (1 + 8 * U)
    return np.where(x > 0, inverse[0], below), np.where(x > 0, inverse[1], above)


# pi/2 in two words: k * HALF_PI is exact for |k| < 2^20. Taylor coefficients of sin(r)/r and cos(r) in r^2.
HALF_PI, HALF_PI_LOW = float.fromhex("0x1.921fb54400000p+0"), float.fromhex("0x1.0b4611a626331p-34")
INVERSE_PI = float.fromhex("0x1.45f306dc9c883p-2")
SINE = tuple((-1) ** i / factorial(2 * i + 1) for i in range(9))
COSINE = tuple((-1) ** i / factorial(2 * i) for i in range(10))


def sine(x: Array, turn: int) -> Array:
    """sin(x + turn pi/2) for |x| <= 1000, off by at most 4 u.

    r = x - k pi/2 is off by u: two subtractions of results below 0.7855, and pi/2 beyond its two words. Horner's
    sums are off by 2 u for sin and 2.2 u for cos, since their terms fall fast; the remainders are below 2^-62.
    """
    k = np.rint(x * (2 * INVERSE_PI))
    r = x - k * HALF_PI
    r -= k * HALF_PI_LOW
    z = r * r
    s, c = np.full_like(z, SINE[-1]), np.full_like(z, COSINE[-1])
    for p, coefficients in ((s, SINE), (c, COSINE)):
        for coefficient in coefficients[-2::-1]:
            p *= z
            p += coefficient
    s *= r
    quarter = k.astype(np.int64) + turn
    value = np.where(quarter & 1, c, s)
    return np.where(quarter & 2, -value, value)


def wave(a: Interval, turn: int) -> Interval:
    """Encloses sin(x + turn pi/2): its ends, unless a maximum (t even) or minimum (t odd) may lie between them.

    t = x/pi + (turn - 1)/2 is off by less than 2^-30. Beyond 1000 only -1 and 1 are known.
    """
    near = (a[0] >= -1000) & (a[1] <= 1000)
    x, y = np.where(near, a[0], 0.0), np.where(near, a[1], 0.0)
    first, last = sine(x, turn), sine(y, turn)
    s, t = x * INVERSE_PI + ((turn - 1) / 2 - 2.0**-30), y * INVERSE_PI + ((turn - 1) / 2 + 2.0**-30)
    top = ~near | (2 * np.floor(t / 2) >= s)
    bottom = ~near | (2 * np.floor((t - 1) / 2) + 1 >= s)
    low, high = np.minimum(first, last) - 16 * U, np.maximum(first, last) + 16 * U
    return np.where(bottom, -1.0, np.maximum(low, -1.0)), np.where(top, 1.0, np.minimum(high, 1.0))


def log(x: Interval) -> Interval:
    """Encloses the natural logarithm: a guess is moved until its exponential is certainly on the right side."""
    with np.errstate(all="ignore"):  # a guess, which may be anything
        low, high = np.log(x[0]), np.log(x[1])
    low, high = low - 64 * U * (1 + np.abs(low)), high + 64 * U * (1 + np.abs(high))
    right = (x[0] > 0) & (exp(low)[1] <= x[0]) & (exp(high)[0] >= x[1])
    return np.where(right, low, -np.inf), np.where(right, high, np.inf)


def tanh(x: Interval) -> Interval:
    """1 - 2 / (e^(2 x) + 1), which grows with x; beyond 300 it is within [-1, 1]."""
    ends = [np.clip(2 * end, -600.0, 600.0) for end in x]
    e = exp(ends[0])[0], exp(ends[1])[1]
    one, two = (np.ones(1),) * 2, (np.full(1, 2.0),) * 2
    low, high = plus(one, minus(divide(two, plus(e, one))))
    return np.maximum(np.where(x[0] < -300, -1.0, low), -1.0), np.minimum(np.where(x[1] > 300, 1.0, high), 1.0)
