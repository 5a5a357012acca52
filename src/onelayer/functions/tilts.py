"""Covariances, and logarithms of means of exponentials, as sums of few averages with weights e^(s g).

Statement  A(s), the average of v with weights e^(s g), is what a head computes. Its slope at 0 is the covariance of
           v and g; if v is g, its integral from 0 to c is log(mean(e^(c g))).
Gives      a slope as a sum of differences A(s) - A(-s) with weights that are exact for polynomials, an integral by
           the rule of Gauss: both are off by a power of a small number with each head, and take no units.
Rests on   A being analytic in a strip: sums of e^(s g) have no zero near the real line.
Why        squares and logarithms of averages take 1/sqrt(tolerance) units; these take log(1/tolerance) heads.
Differs    nothing is published of it that we know. How far sums are off is estimated here, and the checker's to
           prove.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from onelayer.functions.lines import Lines, Range
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["tilts"]
Array = NDArray[Any]
#: Heads up to which a sum is tried; heights of ellipses, and Chebyshev polynomials, that estimate its error.
MOST_HEADS, HEIGHTS, DEGREES = 12, np.linspace(0.1, 1.5, 15), 40
#: Units that an exponential, and a number that a block computes, may be off.
EXPONENTIAL, BLOCK = 64, 100
#: How far out averages may be tilted, times the width of g: the widest first.
REACHES = 2.0 ** np.arange(2.0, -8.5, -0.25)


@dataclass(frozen=True)
class Moment:
    """What averages are near: the covariance of v and g; or, with an end, an integral, log(mean(e^g))."""

    v: int
    g: int
    end: float = 0.0
    factor: Fraction = Fraction(1)  # of the mean
    apart: tuple[int, ...] = ()  # two lines, whose difference is squared and added


@dataclass(frozen=True)
class Head:
    """How heads round: tokens that they average over at most, the type of their numbers, and what it may cost."""

    tokens: int
    dtype: np.dtype[Any]
    room: float

    def rounding(self, s: Array, w: Array, g: Range, v: Range, curved: bool) -> float:
        """About what is proved of it: an exponential is off by up to 64 units, and by some of its exponent; a value
        by those of its block, if it is ``curved``."""
        exponents = EXPONENTIAL + 15 * float(np.abs(s).max()) * max(map(abs, g))
        sums = 2 * self.tokens + 8 + (BLOCK if curved else 0)
        units = exponents * (v[1] - v[0]) / 2 + sums * max(map(abs, v))
        return units * float(np.finfo(self.dtype).eps) / 2 * float(np.abs(w).sum())


def find_moment(L: Lines, k: int) -> Moment | None:
    """What a line is, if it is such a covariance or logarithm, however it is written."""
    op, *of = L.lines[k]
    if op == "mean" and L.lines[of[0]][0] == "mul":
        return _product(L, *L.lines[of[0]][1:])
    if op == "sub" and L.lines[of[0]][0] == "mean" and L.lines[of[1]][0] == "mul":
        means, inside = [L.lines[i] for i in L.lines[of[1]][1:]], L.lines[of[0]][1]
        if all(line[0] == "mean" for line in means) and L.lines[inside][0] == "mul":
            pair = [line[1] for line in means]
            if sorted(L.lines[inside][1:]) == sorted(pair) and all(L.free[i] == {"y"} for i in pair):
                return Moment(*pair)
    if op == "log":
        return _log(L, of[0])
    return None


def _product(L: Lines, a: int, b: int) -> Moment | None:
    """The mean of a product of which a factor, or both, are less their means; or of the square of a difference of a
    line of x and a line of y."""
    parts = [(i, False) if found is None else (found, True) for i in (a, b) for found in [_centred(L, i)]]
    if all(L.free[i] == {"y"} for i, _ in parts) and any(centred for _, centred in parts):
        return Moment(parts[0][0], parts[1][0])
    op, *of = L.lines[a]
    if a == b and op == "sub":
        for own, other in (of, of[::-1]):
            if L.free[other] == {"y"} and "y" not in L.free[own]:
                return Moment(other, other, apart=(own, L.add("mean", other)))
    return None


def _centred(L: Lines, k: int) -> int | None:
    """v, if a line is v less its mean."""
    op, *of = L.lines[k]
    return of[0] if op == "sub" and L.lines[of[1]] == ("mean", of[0]) else None


def _log(L: Lines, k: int) -> Moment | None:
    op, *of = L.lines[k]
    factor = L.value(of[0]) if op == "mul" else None
    if factor is not None:  # a sum is a number times a mean
        op, *of = L.lines[of[1]]
    if op != "mean" or L.lines[of[0]][0] != "exp":
        return None
    g = L.lines[of[0]][1]
    return Moment(g, g, end=1.0, factor=factor or Fraction(1)) if L.free[g] == {"y"} else None


def tilts(
    g: Range, v: Range, end: float, eps: float, room: float, head: Head, curved: bool = False
) -> tuple[tuple[Fraction, Fraction], ...] | None:
    """The fewest (s, w) whose sum of w A(s) is seen to be within eps of the slope of A at 0, or of its integral to
    ``end``, and rounded by no more than there is room for; None if there are none."""
    for count in range(1, MOST_HEADS // (1 if end else 2) + 1):
        for s, w in [_gauss(count, end)] if end else [_slope(count, r / (g[1] - g[0])) for r in REACHES]:
            s, w = (part.astype(head.dtype).astype(np.float64) for part in (s, w))
            if head.rounding(s, w, g, v, curved) > room:
                break
            if estimate(s, w, g, v, end) <= eps:
                return tuple(zip(map(Fraction, s.tolist()), map(Fraction, w.tolist()), strict=True))
    return None


def _gauss(count: int, end: float) -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(count)
    return (1 + x) * (end / 2), w * (end / 2)


def _slope(count: int, reach: float) -> tuple[Array, Array]:
    """Differences over this many pairs of places, exact for polynomials of twice as high a degree. At places where
    the Chebyshev polynomial T of degree 2 count - 1 is 1 or -1 the weights have its signs, and add up to T'(0) in
    size: no exact rule has less, so that none rounds less."""
    s = np.cos(np.arange(count) * (np.pi / (2 * count - 1)))
    wanted = np.eye(count)[0] / 2
    w = np.linalg.solve(np.array([s ** (2 * i + 1) for i in range(count)]), wanted) / reach
    return np.concatenate([s, -s]) * reach, np.concatenate([w, -w])


def estimate(s: Array, w: Array, g: Range, v: Range, end: float) -> float:
    """About how far the sum is off for the worst tokens, by coefficients of A as a series of Chebyshev."""
    low, high = min(0.0, end, float(s.min())), max(0.0, end, float(s.max()))
    half, middle = (high - low) / 2, (high + low) / 2
    C, start = np.eye(DEGREES), -middle / half
    if end:
        inside = chebyshev.chebint(C, axis=0)
        wanted = half * (chebyshev.chebval((end - middle) / half, inside) - chebyshev.chebval(start, inside))
    else:
        wanted = chebyshev.chebval(start, chebyshev.chebder(C, axis=0)) / half
    missing = np.abs(wanted - w @ chebyshev.chebvander((s - middle) / half, DEGREES - 1))
    axis = 2 * HEIGHTS / ((g[1] - g[0]) * half)
    falling = (axis + np.sqrt(axis**2 + 1))[:, None] ** -np.arange(DEGREES)
    most = (v[1] - v[0]) / 2 / np.cos(HEIGHTS)
    return float((2 * most * (falling @ missing)).min())
