"""Averages with weights e^(s g): what is read, what it is near, and that it is never further than is said."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.functions import tilted
from onelayer_checker.functions.deviation import deviation
from onelayer_checker.functions.formulas import NAMED, Meaning, read_formula
from onelayer_checker.functions.tilted import DEGREES, Functional, Tilted

F = Fraction
G = {((0, 1),): F(1)}
#: Two components of y, their products, and means of all.
LEAVES: list[list[Any]] = [["y", 0], ["y", 1], ["mul", 0, 0], ["mul", 0, 1], ["mean", 0], ["mean", 1], ["mean", 2]]
LEAVES += [["mean", 3], ["mul", 4, 4], ["mul", 4, 5], ["sub", 6, 8], ["sub", 7, 9]]
VARIANCE, COVARIANCE = 10, 11


class Sheet:
    """Lines that are added one by one; y lies in [0, 1] and in [-1, 2]."""

    def __init__(self) -> None:
        self.lines = [*LEAVES]

    def put(self, *line: Any) -> int:
        self.lines.append(list(line))
        return len(self.lines) - 1

    def ratio(self, c: Fraction | float, k: int | None = None) -> int:
        value = F(c)
        at = self.put("ratio", value.numerator, value.denominator)
        return at if k is None else self.put("mul", at, k)

    def average(self, s: Fraction | float, g: int, v: int) -> int:
        return self.put("average", self.ratio(s, g), v)

    def sum(self, terms: Any, g: int = 0, v: int = 0) -> int:
        """Of w times the average of v with weights e^(s g)."""
        made = [self.ratio(w, self.average(s, g, v)) for s, w in terms]
        at = made[0]
        for k in made[1:]:
            at = self.put("add", at, k)
        return at

    @property
    def meaning(self) -> Meaning:
        box = [[(0.0).hex(), (1.0).hex()], [(-1.0).hex(), (2.0).hex()]]
        head = {"d": 2, "tokens": 3, "per": "token", "box": box, "lines": self.lines, "stages": []}
        return Meaning(read_formula(head | {name: [0] for name in NAMED}, "target"))

    def read(self, k: int) -> Tilted | None:
        m = self.meaning
        return tilted.read(m.algebra, m.normal(k))


def of(*terms: tuple[Any, Any]) -> Tilted:
    return Tilted(G, G, tuple((F(s), F(w)) for s, w in terms))


# What a sum misses of polynomials ---------------------------------------------------------------------------------


def missing(sum_: Tilted, to: Functional, low: Fraction, high: Fraction) -> list[Fraction]:
    return tilted._of_chebyshev(sum_, to, (low + high) / 2, (high - low) / 2)


def test_simpson_is_exact_for_cubics() -> None:
    """From 0 to 1; the integral of T_j(2 s - 1) is 1/(1 - j^2) for even j, and T_4 is 1 at all three places."""
    found = missing(of((0, "1/6"), ("1/2", "2/3"), (1, "1/6")), Functional(end=F(1), area=F(1)), F(0), F(1))
    assert len(found) == DEGREES + 1
    assert found[:8] == [0, 0, 0, 0, F(-1, 15) - 1, 0, F(-1, 35) + F(1, 3), 0]


def test_an_integral_has_a_direction_and_a_factor() -> None:
    """-3 times the integral from 0 to -2 of 1 is 6, of (s + 1)/1 it is 0, and of T_2 it is 6 (-1/3)."""
    found = missing(of((-1, 6)), Functional(end=F(-2), area=F(-3)), F(-2), F(0))
    assert found[:3] == [0, 0, -2 + 6]


def test_an_integral_over_a_part_of_the_interval() -> None:
    """From 0 to 1 on [0, 3], where x = (2 s - 3)/3 goes from -1 to -1/3: 1, -2/3 and -1/27."""
    found = missing(of((3, 1)), Functional(end=F(1), area=F(1)), F(0), F(3))
    assert found[:3] == [0, F(-5, 3), F(-28, 27)]


def test_a_central_difference_is_exact_for_squares() -> None:
    """At 0 the slope of T_1 is 1, of T_3 it is -3, of T_5 it is 5; twice that on half of the interval."""
    found = missing(of(("1/2", 1), ("-1/2", -1)), Functional(slope=F(1)), F(-1, 2), F(1, 2))
    assert found[:6] == [0, 0, 0, -8, 0, 8]


def test_a_slope_at_an_end() -> None:
    """At -1 the slope of T_j is j^2, with the other sign for even j."""
    found = missing(of((1, 1), (0, -1)), Functional(slope=F(1)), F(0), F(1))
    assert found[:4] == [0, 0, -8, 16]
    assert found[-1] == -2 * F(DEGREES) ** 2


# How far it is off ------------------------------------------------------------------------------------------------


def bound(sum_: Tilted, to: Functional, g: tuple[float, float], v: tuple[float, float]) -> float:
    """The bound of the module, written once more."""
    places = [F(0), to.end, *(s for s, _ in sum_.terms)]
    half = (max(places) - min(places)) / 2
    E = [abs(float(e)) for e in tilted._of_chebyshev(sum_, to, (max(places) + min(places)) / 2, half)]
    best = math.inf
    for height in [k / 16 for k in range(1, 25)]:
        axis = 2 * height / ((g[1] - g[0]) * float(half))
        rho = axis + math.hypot(axis, 1)
        j = np.arange(41, 4000)
        more = sum(abs(float(w)) for _, w in sum_.terms) + abs(float(to.end * to.area))
        rest = rho**-41.0 * (more + abs(float(to.slope / half)) * 41**2) / (1 - 1.025**2 / rho)
        if 1.025**2 / rho <= 0.99:
            true = ((more + abs(float(to.slope / half)) * j.astype(float) ** 2) * rho ** -j.astype(float)).sum()
            assert true <= rest
            series = sum(E[i] * rho**-i for i in range(1, 41)) + rest
            M = (v[1] - v[0]) / 2 / math.cos(height)
            best = min(best, abs(v[0] + v[1]) / 2 * E[0] + M * (E[0] + 2 * series))
    return best


@pytest.mark.parametrize(
    ("terms", "slope", "end", "area"),
    [
        (((0.5, 1), (-0.5, -1)), 1, 0, 0),
        (((0.5, 1), (-0.5, -1), (0.25, 0.125)), 1, 0, 0),
        (((0.25, -0.5), (0.75, -0.5)), 0, 1, -1),
        (((-0.25, 0.5), (-0.75, 1.5)), 0, -1, 2),
        (((15.0, 1), (-15.0, -1)), 30, 0, 0),
        (((-10.0, 1), (-20.0, 1)), 0, -20, 3),
        (((0.0, 1), (0.001, 1)), 1, 0, 0),
        (((1.0, 1),), 0, 0, 0),
    ],
)
def test_the_bound_is_the_one_that_is_derived(terms: Any, slope: float, end: float, area: float) -> None:
    for g, v in (
        ((0.0, 1.0), (0.0, 1.0)),
        ((-2.0, 1.0), (3.0, 5.0)),
        ((0.0, 0.25), (-5.0, -4.0)),
        ((0.0, 1e-6), (0.0, 1.0)),
    ):
        for apart in (0.0, 0.25):
            to = Functional(F(slope), F(end), F(area), apart)
            wanted = (bound(of(*terms), to, g, v) + apart) * (1 + 2.0**-30)
            assert tilted.error(of(*terms), to, g, v) == pytest.approx(wanted, rel=1e-11)


UNIT = (0.0, 1.0)


def test_what_underflows_is_less_than_is_added_for_it() -> None:
    """Of weights 0 nothing is off; what may be lost is at most 2^-1074 times 2^104 times 2^135, eighty times."""
    assert tilted.error(of((1, 0)), Functional(), UNIT, UNIT) == 2.0**-800
    for size, seen in ((2.0**-60, True), (2.0**-61, False), (2.0**60, True), (2.0**61, False)):
        small = F(1, 2**30) if size > 1 else F(1)
        for sum_, to in (
            (of((1, size)), Functional()),
            (of((1, -size)), Functional()),
            (of((1, 1)), Functional(slope=F(size))),
            (of((1, 1)), Functional(end=F(1), area=F(size))),
        ):
            assert (tilted.error(sum_, to, UNIT, UNIT) < math.inf) == seen
        if size < 1:
            for sum_, to in (
                (of((size, 1), (1, 1)), Functional()),
                (of((1, 1)), Functional(end=F(size), area=F(1))),
            ):
                assert (tilted.error(sum_, to, UNIT, UNIT) < math.inf) == seen
            assert (tilted.error(of((2 * size, 1)), Functional(), UNIT, UNIT) < math.inf) == seen  # half of it
            assert (tilted.error(of((1, 1)), Functional(), (0.0, size), UNIT) < math.inf) == seen
        else:
            assert (tilted.error(of((small, 1)), Functional(), UNIT, (-size, size)) < math.inf) == seen
            assert (tilted.error(of((small, 1)), Functional(), UNIT, (size, size)) < math.inf) == seen


def test_few_bits_and_one_denominator() -> None:
    for bits, seen in ((399, True), (400, False)):
        assert tilted._are_short([F(1), F(1, 2**bits)]) == seen
        assert tilted._are_short([F(2**bits), F(0)]) == seen
        assert tilted._are_short([F(1, 2), F(2 ** (bits - 1))]) == seen
        to = Functional(slope=F(2**bits + 1, 2**bits))
        assert (tilted.error(of((1, 1)), to, UNIT, UNIT) < math.inf) == seen
    assert not tilted._are_short([F(1, 3**130), F(1, 5**90)])


def test_work_is_counted_before_it_is_done() -> None:
    with limited(4e7, None), pytest.raises(Beyond, match="tilted averages"):
        tilted.error(of((1, 1), (2, 1), (3, 1)), Functional(), UNIT, UNIT)
    with limited(4e7, None):
        assert tilted.error(of((1, 1), (2, 1)), Functional(), UNIT, UNIT) > 0


def test_where_nothing_is_seen_it_is_infinite() -> None:
    here = of((0, 1))
    assert tilted.error(here, Functional(slope=F(1)), (0.0, 1.0), (0.0, 1.0)) == math.inf
    assert tilted.error(of((1000, 1), (-1000, -1)), Functional(slope=F(1)), (0.0, 9.0), (0.0, 1.0)) == math.inf


def test_a_rest_that_hardly_falls_is_not_summed() -> None:
    """rho is at most 3/s + 1 or so: 1.0613 is enough, and 1.0606 is not."""
    for reach, seen in ((50.4, True), (51.0, False)):
        found = tilted.error(of((reach, 1), (-reach, -1)), Functional(slope=F(1)), (0.0, 1.0), (0.0, 1.0))
        assert (found < math.inf) == seen


def test_what_is_the_same_for_all_tokens_tilts_nothing() -> None:
    """Of weights e^(s c) an average is the mean, whatever s is."""
    found = tilted.error(of((0.5, 1), (-0.5, -1)), Functional(slope=F(1)), (2.0, 2.0), (0.0, 1.0))
    assert found < 1e-15


TOKENS = st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 2)), min_size=1, max_size=6)
TERMS = st.lists(st.tuples(st.integers(-64, 64), st.integers(-64, 64)), min_size=1, max_size=5)


@given(TOKENS, TERMS, st.integers(-8, 8), st.integers(-32, 32), st.booleans())
def test_no_tokens_are_further_off(tokens: Any, terms: Any, slope: int, end: int, same: bool) -> None:
    g, v = np.array(tokens).T
    v = g if same else v
    ranges = (0.0, 1.0), (0.0, 1.0) if same else (-1.0, 2.0)

    def A(s: float) -> float:
        weights = np.exp(s * (g - g.max()))
        return float(weights @ v / weights.sum())

    wanted = slope * float(np.mean(v * g) - np.mean(v) * np.mean(g))
    if same and end:
        wanted += math.log(np.mean(np.exp(end / 16 * g)))
    sum_ = of(*((F(s, 16), F(w, 8)) for s, w in terms))
    to = Functional(F(slope), F(end, 16) if same else F(0), F(1) if same else F(0))
    found = sum(float(w) * A(float(s)) for s, w in sum_.terms)
    assert abs(wanted - found) <= tilted.error(sum_, to, *ranges) * (1 + 1e-9) + 1e-12


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
