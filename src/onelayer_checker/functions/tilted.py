"""Averages with weights e^(s g), as a function of s: the slope at 0 is a covariance, the integral a log of a mean.

A(s) is the average of v over all tokens with weights e^(s g). At 0 its slope is mean(v g) - mean(v) mean(g), and if
v is g, the integral of A from 0 to c is log(mean(e^(c g))). Each is some F(A), linear in A, and so is a sum of
w_i A(s_i). Their difference E is bounded by what it makes of Chebyshev polynomials on an interval with all s_i,
which is exact in rational numbers.

With g in a range of width p, v within r of c, and |t| p < pi, the average of v - c at s + i t is at most
r / cos(t p/2) in size: its denominator is an average of e^(i t (g - middle)), whose real part is at least
cos(t p/2). So A - c is analytic on an ellipse around the interval, and at most M there: its coefficients are at
most M, then 2 M rho^-j, with rho the sum of the half axes over half of the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onelayer_checker.core.budget import spend
from onelayer_checker.functions.algebra import Algebra, Key, Polynomial, key, product, total

#: Chebyshev polynomials that E is taken of, averages in a sum, and bits of their numbers: beyond, nothing is seen.
DEGREES, MOST, MOST_BITS = 40, 64, 400
#: Numbers that are not 0 have sizes between these: what underflows is then less than is added for it in the end.
SMALLEST, LARGEST, LOST = 2.0**-60, 2.0**60, 2.0**-800
#: Half of the width of g times the height of an ellipse: where 1/cos is tried.
HEIGHTS = [k / 16 for k in range(1, 25)]
#: What covers some hundred roundings of float64, and powers up to the 41st and cosines that are some thousand units
#: off; and how slowly a rest may fall.
SLACK, SLOWEST = 1 + 2.0**-30, 0.99
#: Nanoseconds for an average, at most: 40 degrees of up to 400 bits each.
COST = 1.5e7
NO = Fraction(0)
Range = tuple[float, float]


@dataclass(frozen=True)
class Tilted:
    """The sum of w times the average of v with weights e^(s g), over (s, w)."""

    g: Polynomial
    v: Polynomial
    terms: tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True)
class Functional:
    """slope A'(0) + area times the integral of A from 0 to ``end``; and a constant, at most ``apart`` in size."""

    slope: Fraction = NO
    end: Fraction = NO
    area: Fraction = NO
    apart: float = 0.0


def read(A: Algebra, p: Polynomial) -> Tilted | None:
    """A polynomial as such a sum; None of another function."""
    by_logit: dict[Key, Polynomial] = {}
    for m, c in p.items():
        what, _ = _single(A, {m: c})
        if what[0] != "average":
            return None
        by_logit.setdefault(what[1], {})[what[2]] = c
    logits = [logit for logit in by_logit if logit]
    if not logits or len(by_logit) > MOST:
        return None
    g, v = _unit(dict(logits[0])), _unit(by_logit[logits[0]])
    terms, free = [], A.needs(*g, *v)
    for logit, values in by_logit.items():
        s, w = ratio(dict(logit), g) if logit else NO, ratio(values, v)
        if s is None or w is None:
            return None
        terms.append((s, w))
    return Tilted(g, v, tuple(terms)) if free == {"y"} else None


def divide(A: Algebra, p: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The terms that are averages with weights, and the others."""
    weighed = {m: c for m, c in p.items() if (what := _single(A, {m: c})[0])[0] == "average" and what[1]}
    return weighed, {m: c for m, c in p.items() if m not in weighed}


def functional(A: Algebra, p: Polynomial, of: Tilted) -> Functional | None:
    """What a function of tokens is of A, up to a constant: its slope, if the polynomial is a covariance; its
    integral, if it is the logarithm of a mean of exponentials. None of another function."""
    g, v = of.g, of.v
    constant, p = p.get((), NO), {m: c for m, c in p.items() if m}
    means = product(A.average({}, v), A.average({}, g))
    slope = ratio(p, total((A.average({}, product(v, g)), 1), (means, -1)))
    if slope is not None:
        return Functional(slope=slope, apart=_size(constant))
    (name, *inside), area = _single(A, p)
    if name != "log" or v != g:
        return None
    exponent, factor = _exponent(A, dict(inside[0]))
    end = ratio(exponent, g)
    return None if end is None else Functional(end=end, area=area, apart=_apart(area, factor, constant))


def _apart(area: Fraction, factor: Fraction, constant: Fraction) -> float:
    """At least |area log(factor) + constant|."""
    if not _are_short([area, factor, constant]):
        return math.inf
    log = float(area) * math.log(float(factor))
    size = abs(float(area)) + abs(log) + abs(float(constant))
    return abs(log + float(constant)) + 2.0**-45 * size


def _single(A: Algebra, p: Polynomial) -> tuple[tuple[Any, ...], Fraction]:
    """The atom and the factor of a polynomial with one of both; otherwise no atom."""
    m, c = next(iter(p.items())) if len(p) == 1 else ((), NO)
    return (A.atoms[m[0][0]], c) if len(m) == 1 and m[0][1] == 1 else (("",), NO)


def _exponent(A: Algebra, p: Polynomial) -> tuple[Polynomial, Fraction]:
    """g and c, if a polynomial is c mean(e^g); nothing if it is another function."""
    what, c = _single(A, p)
    if what[:2] != ("average", ()) or c <= 0 or not all(A.atoms[atom][0] == "exp" for atom, _ in what[2]):
        return {}, NO
    return total(*((dict(A.atoms[atom][1]), power) for atom, power in what[2])), c


def error(of: Tilted, to: Functional, g: Range, v: Range) -> float:
    """At least |F(A) + constant - sum of w_i A(s_i)|, with g and v in these ranges."""
    places = [NO, to.end, *(s for s, _ in of.terms)]
    low, high = min(places), max(places)
    half = (high - low) / 2
    middle, radius, wide = abs(v[0] + v[1]) / 2, (v[1] - v[0]) / 2, g[1] - g[0]
    numbers = [half, to.slope, to.area, *places, *(w for _, w in of.terms)]
    if not half or not _are_moderate([*map(_size, numbers), middle, radius, wide]) or not _are_short(numbers):
        return math.inf
    made = [_size(e) for e in _of_chebyshev(of, to, (low + high) / 2, half)]
    weights = _size(abs(to.end * to.area) + sum(abs(w) for _, w in of.terms))
    steep = _size(to.slope / half) * (DEGREES + 1) ** 2
    found = math.inf
    for height in HEIGHTS:
        axis = 2 * height / (wide * _size(half)) if wide else math.inf  # of the ellipse, over half
        rho = axis + math.sqrt(axis * axis + 1)
        falling = (1 + 1 / DEGREES) ** 2 / rho  # a term of the rest over the one before, at most
        if falling > SLOWEST:
            continue
        rest = (weights + steep) * rho ** -(DEGREES + 1) / (1 - falling)
        series = sum(e * rho**-j for j, e in enumerate(made) if j) + rest
        found = min(found, middle * made[0] + radius / math.cos(height) * (made[0] + 2 * series))
    return (found + to.apart) * SLACK + LOST


def _are_moderate(sizes: list[float]) -> bool:
    return all(size == 0 or SMALLEST <= size <= LARGEST for size in sizes)


def _are_short(numbers: list[Fraction]) -> bool:
    """Whether their common denominator, and each of them over it, has few bits."""
    common = math.lcm(*(c.denominator for c in numbers))
    return max(common.bit_length(), *((c * common).numerator.bit_length() for c in numbers)) <= MOST_BITS


def _of_chebyshev(of: Tilted, to: Functional, middle: Fraction, half: Fraction) -> list[Fraction]:
    """F(T) - sum of w_i T(s_i) for Chebyshev polynomials of degree 0, 1, ..."""
    spend("tilted averages", COST * len(of.terms))
    at = {s: _chebyshev((s - middle) / half, 1) for s in (NO, to.end, *(s for s, _ in of.terms))}
    second = _chebyshev(-middle / half, 2)  # at 0: the slope of T_j is j times the second kind, one lower
    found = []
    for j in range(DEGREES + 1):
        slope = to.slope / half * j * second[j - 1]
        integral = to.area * half * (_primitive(at[to.end], j) - _primitive(at[NO], j))
        found.append(slope + integral - sum(w * at[s][j] for s, w in of.terms))
    return found


def _chebyshev(x: Fraction, kind: int) -> list[Fraction]:
    """Values of T_0, T_1, ... or, of the second kind, of U_0, U_1, ..."""
    found = [Fraction(1), kind * x]
    for _ in range(DEGREES):
        found.append(2 * x * found[-1] - found[-2])
    return found


def _primitive(T: list[Fraction], j: int) -> Fraction:
    """An integral of T_j, by values at a point."""
    if j == 0:
        return T[1]
    if j == 1:
        return T[2] / 4
    return T[j + 1] / (2 * (j + 1)) - T[j - 1] / (2 * (j - 1))


def enclose(of: Tilted, g: Range, v: Range) -> Range:
    """A range of the sum, if its weights add up to 0: it is near a covariance, which is at most a quarter of the
    product of both widths, and of a number with itself not negative."""
    slope = sum((s * w for s, w in of.terms), NO)
    if sum((w for _, w in of.terms), NO) or not slope:
        return -math.inf, math.inf
    off = error(of, Functional(slope=slope), g, v)
    if off == math.inf:
        return -math.inf, math.inf
    most = _size(slope) * (g[1] - g[0]) * (v[1] - v[0]) / 4 * SLACK
    low, high = (0.0 if of.g == of.v else -most), most
    return (low - off, high + off) if slope > 0 else (-high - off, -low + off)


def ratio(p: Polynomial, q: Polynomial) -> Fraction | None:
    """c with p = c q."""
    if not q or p.keys() != q.keys():
        return None
    first = next(iter(q))
    c = p[first] / q[first]
    return c if all(p[m] == c * q[m] for m in q) else None


def _unit(p: Polynomial) -> Polynomial:
    return total((p, 1 / key(p)[0][1]))


def _size(c: Fraction) -> float:
    """About |c|."""
    try:
        return float(abs(c))
    except OverflowError:
        return math.inf
