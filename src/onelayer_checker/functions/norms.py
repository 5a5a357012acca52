"""hypot(a, b) and sums of c |p a + q b|: how far they are apart on a rectangle around 0.

Both are homogeneous: for t >= 0 they are t times as large at (t a, t b). So is their difference, whose size on a
rectangle around 0 is largest on its edge: every point is t times a point of the edge, with t from 0 to 1. On a side
of it one of a and b is a constant, and the difference is a function of the other. At (-a, -b) both are as they are
at (a, b), so that two sides that meet are enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from onelayer_checker.core.balls import UP, Array, U, gamma
from onelayer_checker.functions.differences import difference
from onelayer_checker.functions.formulas import Meaning, number
from onelayer_checker.functions.intervals import Interval, out
from onelayer_checker.functions.jets import ONE, ZERO, Jet, of_one, of_two

Form = tuple[Fraction, Fraction]  # p a + q b
Terms = tuple[tuple[Fraction, Form], ...]  # c |p a + q b|, which add up
NO, ALL = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Absolutes:
    """A linear form, and a sum of c |form|."""

    linear: Form
    terms: Terms = ()

    def times(self, c: Fraction) -> Absolutes:
        p, q = self.linear
        return Absolutes((c * p, c * q), tuple((c * d, form) for d, form in self.terms))

    def plus(self, other: Absolutes) -> Absolutes:
        (p, q), (r, s) = self.linear, other.linear
        return Absolutes((p + r, q + s), self.terms + other.terms)


def apart(meaning: Meaning, k: int, j: int) -> float:
    """At least |line k - line j|, where line k is a hypot, on the box; infinite if line j is no such sum."""
    a, b = meaning.formula.lines[k][1:]
    found = _read_sum(meaning, j, {a: Absolutes((ALL, NO)), b: Absolutes((NO, ALL))})
    if a == b or found is None or found.linear != (NO, NO) or not found.terms:
        return np.inf
    columns = [_column(part) for part in zip(*((c, p, q) for c, (p, q) in found.terms), strict=True)]
    size = [float(np.max(np.abs(meaning.ranges[line]))) for line in (a, b)]
    error = 0.0
    for fixed, free in ((0, 1), (1, 0)):
        place = np.full(1, size[fixed])
        H = partial(_difference, columns, fixed, Jet((place, place)))
        low, high = difference(np.array([-size[free], size[free]]), _nothing, H)
        error = max(error, float(high[0]), -float(low[0]))
    return error


Known = dict[int, Absolutes | None]


def _read_sum(meaning: Meaning, line: int, known: Known) -> Absolutes | None:
    """A line as a sum of absolute values of forms of the leaves, which are known; None of another function."""
    if line not in known:
        known[line] = _read_line(meaning, line, known)
    return known[line]


def _read_line(meaning: Meaning, line: int, known: Known) -> Absolutes | None:
    op, *of = meaning.formula.lines[line]
    if op == "mul":
        for i, other in (of, of[::-1]):
            name, *value = meaning.formula.lines[i]
            part = _read_sum(meaning, other, known) if name == "const" else None
            if part is not None:
                return part.times(value[0])
    if op not in ("add", "sub", "neg", "abs"):
        return None
    first, last = (_read_sum(meaning, i, known) for i in (of[0], of[-1]))
    if first is None or last is None or (op == "abs" and first.terms):
        return None
    if op == "abs":
        return Absolutes((NO, NO), ((ALL, first.linear),))
    if op == "neg":
        return first.times(-ALL)
    return first.plus(last if op == "add" else last.times(-ALL))


def _difference(columns: list[Jet], fixed: int, place: Jet, low: Array, high: Array, _cut: bool) -> Jet:
    """The sum less hypot(a, b), on a side of the rectangle."""
    s = Jet((low, high), ONE, ZERO)
    a, b = (s, place) if fixed else (place, s)
    C, P, Q = columns
    forms = of_two("add", of_two("mul", P, a, False), of_two("mul", Q, b, False), False)
    each = of_two("mul", C, of_one("abs", forms), False)
    total = Jet(_sum(each.value), _sum(each.slope), _sum(each.bend))
    return of_two("sub", total, of_two("hypot", a, b, False), False)


def _column(values: Iterable[Fraction]) -> Jet:
    low, high = zip(*map(number, values), strict=True)
    return Jet((np.stack(low), np.stack(high)))


def _sum(rows: Interval) -> Interval:
    """Encloses sums of rows; an end is never an infinity of the harmful sign."""
    off = gamma(len(rows[0]) + 2, U) * UP
    slack = [np.abs(end).sum(axis=0) * off for end in rows]
    return out(rows[0].sum(axis=0) - slack[0], rows[1].sum(axis=0) + slack[1])


def _nothing(s: Array) -> Interval:
    return np.zeros_like(s), np.zeros_like(s)
