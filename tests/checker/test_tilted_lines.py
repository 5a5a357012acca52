"""Sums of averages with weights e^(s g): what is read of lines, what it is near, and where it lies."""

from __future__ import annotations

import math
from itertools import product

import pytest

from onelayer_checker.functions import tilted
from onelayer_checker.functions.deviation import deviation
from onelayer_checker.functions.tilted import Functional, Tilted
from tests.checker.tilts import COVARIANCE, VARIANCE, F, G, Sheet, of

# What is read -----------------------------------------------------------------------------------------------------


def test_a_sum_of_averages_is_read() -> None:
    sheet = Sheet()
    found = sheet.read(sheet.sum([(2, 3), ("1/2", -1)]))
    assert found is not None
    assert found.g == found.v
    assert list(found.g.values()) == [1]
    assert sorted(found.terms) == [(F(1, 2), -1), (2, 3)]


def test_factors_of_g_and_v_belong_to_the_terms() -> None:
    """The average of 6 y_1 with weights e^(4 y_0); and of y_0 + 2 y_1 with its mean."""
    sheet = Sheet()
    g, v = sheet.ratio(4, 0), sheet.ratio(6, 1)
    found = sheet.read(sheet.sum([(1, 1)], g, v))
    assert found is not None
    assert found.terms == ((F(4), F(6)),)
    assert found.g != found.v
    both = sheet.put("add", 0, sheet.ratio(2, 1))
    mixed = sheet.put("sub", sheet.put("mean", both), sheet.average(3, 0, both))
    found = sheet.read(mixed)
    assert found is not None
    assert len(found.v) == 2
    assert sorted(s for s, _ in found.terms) == [0, 3]
    assert {w * c for _, w in found.terms for c in found.v.values()} == {1, 2, -1, -2}


def others(sheet: Sheet) -> dict[str, int]:
    x, one = sheet.put("x", 0), sheet.average(1, 0, 0)
    pair = sheet.put("mul", x, 0)
    return {
        "a mean": 4,
        "a token": 0,
        "a product": sheet.put("mul", one, x),
        "a square": sheet.put("mul", one, one),
        "with a constant": sheet.put("add", one, sheet.ratio(1)),
        "weights of x": sheet.put("average", pair, 0),
        "other weights": sheet.put("add", one, sheet.average(1, 1, 0)),
        "other values": sheet.put("add", one, sheet.average(2, 0, 1)),
        "two values at one place": sheet.put("add", one, sheet.average(2, 0, sheet.put("add", 0, 1))),
        "too many": sheet.sum([(k + 1, 1) for k in range(65)]),
    }


@pytest.mark.parametrize("name", others(Sheet()))
def test_other_functions_are_no_such_sum(name: str) -> None:
    sheet = Sheet()
    assert sheet.read(others(sheet)[name]) is None


def test_as_many_as_are_allowed_are_read() -> None:
    sheet = Sheet()
    found = sheet.read(sheet.sum([(k + 1, 1) for k in range(64)]))
    assert found is not None
    assert len(found.terms) == 64


def test_averages_with_weights_are_told_from_the_rest() -> None:
    sheet = Sheet()
    one, x = sheet.average(1, 0, 0), sheet.put("x", 0)
    k = sheet.put("add", sheet.put("add", one, sheet.put("mul", x, one)), sheet.put("add", 4, x))
    m = sheet.meaning
    weighed, rest = tilted.divide(m.algebra, m.normal(k))
    assert weighed == m.normal(one)
    assert len(rest) == 3


# What it is near --------------------------------------------------------------------------------------------------


def functional(sheet: Sheet, k: int, sum_: int) -> Functional | None:
    m = sheet.meaning
    found = tilted.read(m.algebra, m.normal(sum_))
    assert found is not None
    return tilted.functional(m.algebra, m.normal(k), found)


def test_a_covariance_is_a_slope() -> None:
    sheet = Sheet()
    own, cross = sheet.sum([(1, 1), (-1, -1)]), sheet.sum([(1, 1), (-1, -1)], 0, 1)
    assert functional(sheet, sheet.ratio(5, VARIANCE), own) == Functional(slope=F(5))
    assert functional(sheet, COVARIANCE, cross) == Functional(slope=F(1))
    for k, sum_ in ((VARIANCE, cross), (COVARIANCE, own), (6, own), (sheet.put("sin", VARIANCE), own)):
        assert functional(sheet, k, sum_) is None
    moved = functional(sheet, sheet.put("sub", VARIANCE, sheet.ratio("1/4")), own)
    assert moved == Functional(slope=F(1), apart=0.25)


def test_a_logarithm_of_a_mean_of_exponentials_is_an_integral() -> None:
    sheet = Sheet()
    own, cross = sheet.sum([(1, 1)]), sheet.sum([(1, 1)], 0, 1)
    mass = sheet.put("mean", sheet.put("exp", sheet.ratio(-2, 0)))
    log = sheet.put("log", mass)
    found = functional(sheet, sheet.ratio(3, log), own)
    assert found is not None
    assert (found.slope, found.end, found.area) == (0, -2, 3)
    assert found.apart <= 3 * 2.0**-45  # of log(1)
    both = sheet.put("exp", sheet.put("add", 0, 1))
    two = sheet.put("add", mass, mass)
    wrong = [sheet.put("sqrt", mass), sheet.put("log", sheet.put("mean", both)), sheet.put("mul", log, log)]
    wrong += [sheet.put("log", sheet.put("add", mass, sheet.ratio(1))), sheet.put("add", log, 4)]
    wrong += [sheet.put("log", sheet.put("average", 1, sheet.put("exp", 0)))]
    wrong += [
        sheet.put("log", sheet.put("add", 4, sheet.ratio(1))),
        sheet.put("log", sheet.put("mean", sheet.put("cos", 0))),
    ]
    waves = sheet.put("mul", sheet.put("exp", 0), sheet.put("cos", 0))
    wrong.append(sheet.put("log", sheet.put("mean", waves)))
    assert [functional(sheet, k, own) for k in wrong] == [None] * len(wrong)
    assert functional(sheet, log, cross) is None
    doubled = functional(sheet, sheet.put("log", two), own)
    assert doubled is not None
    assert doubled.apart == pytest.approx(math.log(2), rel=1e-12)


def test_a_factor_of_a_mean_is_a_constant() -> None:
    """3 log(8 m) - 3 log(8) is nearly 3 log(m); at least so far from it as it is."""
    near = F(math.log(8))
    assert 0 <= tilted._apart(F(3), F(8), -3 * near) < 1e-12
    assert tilted._apart(F(3), F(8), F(0)) == pytest.approx(3 * math.log(8), rel=1e-12)
    assert tilted._apart(F(-1), F(1), F(1, 2)) >= 0.5
    assert tilted._apart(F(1), F(1), F(0)) >= 2.0**-45
    assert tilted._apart(F(-1), F(8), F(0)) == pytest.approx(math.log(8), rel=1e-12)
    for bits, seen in ((390, True), (400, False)):
        fine = F(1, 2**bits)
        for parts in ((fine, F(8), F(0)), (F(3), fine, F(0)), (F(3), F(8), fine)):
            assert (tilted._apart(*parts) < math.inf) == seen


@pytest.mark.parametrize(("area", "factor"), [(3.0, 8.0), (3.0, 0.125), (-5.0, 8.0)])
def test_roundings_of_a_constant_are_counted(area: float, factor: float) -> None:
    """Where it is nothing but roundings: they are some of its parts, which are counted by their sizes."""
    log = area * math.log(factor)
    wanted = 2.0**-45 * (abs(area) + abs(log) + abs(log))
    assert tilted._apart(F(area), F(factor), -F(log)) == pytest.approx(wanted, rel=1e-9, abs=0)


def test_a_logarithm_of_less_than_nothing_is_no_mean() -> None:
    sheet = Sheet()
    mass = sheet.put("mean", sheet.put("exp", 0))
    m = sheet.meaning
    exponent, factor = tilted._exponent(m.algebra, m.normal(mass))
    assert (exponent, factor) == (m.normal(0), 1)
    opposite = {monomial: -c for monomial, c in m.normal(mass).items()}
    assert tilted._exponent(m.algebra, opposite) == ({}, 0)


def test_what_no_float_holds_has_no_size() -> None:
    assert tilted._size(F(10) ** 400) == math.inf
    assert tilted._size(F(-3, 4)) == 0.75


def test_multiples_of_polynomials() -> None:
    p, q = {((0, 1),): F(6), ((1, 1),): F(3)}, {((0, 1),): F(4), ((1, 1),): F(2)}
    assert tilted.ratio(p, q) == F(3, 2)
    assert tilted.ratio(p, q | {((1, 1),): F(5)}) is None
    assert tilted.ratio(q | {((0, 1),): F(5)}, p) is None
    assert tilted.ratio(p, G) is None
    assert tilted.ratio({}, {}) is None


# Ranges -----------------------------------------------------------------------------------------------------------


def test_a_difference_of_averages_lies_where_a_covariance_does() -> None:
    """It is at most a quarter of the product of the widths, 1/4 and 3/4 here, and a variance is not negative."""
    sheet = Sheet()
    terms = [(F(1, 16), 8), (F(-1, 16), -8)]
    lines = [sheet.sum(terms), sheet.sum(terms, 0, 1), sheet.ratio(-1, sheet.sum(terms))]
    m = sheet.meaning
    for k, low, high in zip(lines, (0.0, -0.75, -0.25), (0.25, 0.75, 0.0), strict=True):
        found = tilted.read(m.algebra, m.normal(k))
        assert found is not None
        off = tilted.error(found, Functional(slope=F(-1 if k == lines[2] else 1)), m.span(found.g), m.span(found.v))
        assert off < 0.01
        assert m.span(m.normal(k)) == pytest.approx((low - off, high + off), rel=1e-9)
        assert (float(m.ranges[k][0][0]), float(m.ranges[k][1][0])) == m.span(m.normal(k))


def test_every_factor_of_a_range() -> None:
    other = {((1, 1),): F(1)}
    for sign, v in product((1, -1), (G, other)):
        terms = ((F(1, 8), F(12 * sign)), (F(-1, 8), F(-12 * sign)))  # the slope is 3, or -3
        sum_, g_range, v_range = Tilted(G, v, terms), (1.0, 3.0), (2.0, 7.0)
        off = tilted.error(sum_, Functional(slope=F(3 * sign)), g_range, v_range)
        most = 3 * 2 * 5 / 4 * (1 + 2.0**-30)
        low, high = (0.0, most) if sign > 0 else (-most, 0.0)
        wanted = (low - off, high + off) if v == G else (-most - off, most + off)
        assert tilted.enclose(sum_, g_range, v_range) == pytest.approx(wanted, rel=1e-12)


def test_other_sums_lie_where_their_terms_do() -> None:
    assert tilted.enclose(of((1, 1), (-1, -1)), (1.0, 1.0), (0.0, math.inf)) == (-math.inf, math.inf)
    assert tilted.enclose(of((1, 1), (-1, -0.5)), (0.0, 1.0), (0.0, 1.0)) == (-math.inf, math.inf)
    assert tilted.enclose(of((1, 1), (-1, 1), (0, -2)), (0.0, 1.0), (0.0, 1.0)) == (-math.inf, math.inf)


# Lines that are apart ---------------------------------------------------------------------------------------------


def test_lines_are_compared_wherever_they_differ() -> None:
    sheet = Sheet()
    terms = [(F(1, 4), 2), (F(-1, 4), -2)]
    own = sheet.sum(terms)
    away = sheet.put("sub", 0, 4)
    again = sheet.put("mean", sheet.put("mul", away, away))  # the variance, which is seen not to be negative
    inner = [sheet.put("add", k, sheet.ratio("1/8")) for k in (again, own)]
    roots = [sheet.put("sqrt", k) for k in inner]
    m = sheet.meaning
    off = deviation(m, VARIANCE, own, {})
    assert off == tilted.error(of(*terms), Functional(slope=F(1)), (0.0, 1.0), (0.0, 1.0))
    assert deviation(m, inner[0], inner[1], {}) == off
    assert off < deviation(m, *roots, {}) < 2 * off
    assert deviation(m, COVARIANCE, own, {}) == math.inf
    assert deviation(m, own, VARIANCE, {}) == off


def test_a_constant_between_lines_is_a_part_of_it() -> None:
    sheet = Sheet()
    terms = [(F(1, 4), 2), (F(-1, 4), -2)]
    own = sheet.put("add", sheet.sum(terms), sheet.ratio("1/2"))
    m = sheet.meaning
    off = tilted.error(of(*terms), Functional(slope=F(1)), (0.0, 1.0), (0.0, 1.0))
    assert deviation(m, VARIANCE, own, {}) == pytest.approx(off + 0.5, rel=1e-9)
