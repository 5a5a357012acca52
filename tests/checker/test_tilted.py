"""Averages with weights e^(s g): never further from a slope or an integral than is said."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.functions import tilted
from onelayer_checker.functions.tilted import DEGREES, Functional, Tilted
from tests.checker.tilts import F, of

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
