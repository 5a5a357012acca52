"""Running sums of ramps enclose what the units add up to, exactly, and no more than rounding allows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer_checker.core.balls import TINY, UP, U, gamma
from onelayer_checker.functions import ramps
from onelayer_checker.functions.intervals import out

WHOLE = st.integers(-8, 8).map(float)
FLOAT = st.floats(-(2.0**40), 2.0**40, allow_subnormal=False)


def exact(corners: Any, signs: Any, w: Any, s: float) -> tuple[Fraction, Fraction]:
    """The sum, and the sum of sizes."""
    terms = [
        Fraction(float(v)) * max(Fraction(float(sign)) * (Fraction(s) - Fraction(float(c))), Fraction(0))
        for c, sign, v in zip(corners, signs, w, strict=True)
    ]
    return sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))


@given(st.lists(st.tuples(FLOAT, st.sampled_from([1.0, -1.0]), FLOAT), max_size=12), st.lists(FLOAT, min_size=1))
def test_values_are_enclosed_and_no_wider_than_rounding(units: list[Any], s: list[float]) -> None:
    corners, signs, w = (np.array(part) for part in (zip(*units, strict=True) if units else ([], [], [])))
    s = [*s, *corners.tolist()]
    low, high = ramps.values(corners, signs, w, np.array(s))
    for at, a, b in zip(s, low, high, strict=True):
        value, size = exact(corners, signs, w, at)
        assert Fraction(float(a)) <= value <= Fraction(float(b))
        off = Fraction(float(gamma(2 * len(w) + 8, U))) * size + abs(value) * 8 * Fraction(U)
        assert Fraction(float(b)) - Fraction(float(a)) <= off * 2 * Fraction(1001, 1000) + Fraction(1, 2**900)


@given(st.lists(st.tuples(WHOLE, st.sampled_from([1.0, -1.0]), WHOLE), min_size=1, max_size=8))
def test_slopes_are_those_of_the_units_that_are_on(units: list[Any]) -> None:
    corners, signs, w = (np.array(part) for part in zip(*units, strict=True))
    ends = np.unique([-9.5, 9.5, *corners])
    middle = (ends[1:] + ends[:-1]) / 2
    on = signs * (middle[:, None] - corners) > 0
    assert ramps.slopes(corners, signs, w, ends).tolist() == (on @ (w * signs)).tolist()


def test_corners_beyond_the_ends_count_if_their_units_are_on() -> None:
    corners, signs, w = np.array([-5.0, 5.0, -5.0, 5.0]), np.array([1.0, 1, -1, -1]), np.array([1.0, 10, 100, 1000])
    assert ramps.slopes(corners, signs, w, np.array([-1.0, 1.0])).tolist() == [1.0 - 1000.0]


def test_every_factor_of_the_radius() -> None:
    """Of 2^30 relu(s) - 2^30 relu(s) sizes add up to 2^31 at 1, where the sum is 0."""
    corners, signs = np.zeros(2), np.ones(2)
    low, high = ramps.values(corners, signs, np.array([2.0**30, -(2.0**30)]), np.ones(1))
    off = gamma(12, U)
    radius = np.full(1, 2.0**31 * (off * (1 + 4 * off) * UP) + TINY * 10)
    assert (low, high) == out(-radius, radius)
    low, high = ramps.values(corners, signs, np.zeros(2), np.ones(1))
    assert (low, high) == out(-np.full(1, TINY * 10), np.full(1, TINY * 10))


def test_signs_do_not_mix_and_the_order_of_units_does_not_matter() -> None:
    corners, signs, w = np.array([3.0, 1.0, 2.0, 1.0]), np.array([1.0, 1.0, -1.0, 1.0]), np.array([5.0, 1, 7, 2])
    s = np.array([0.0, 1.0, 1.5, 2.0, 4.0])
    low, high = ramps.values(corners, signs, w, s)
    assert (low + high) / 2 == pytest.approx([14, 7, 3.5 + 1.5, 3, 9 + 5])
    c, v = ramps.in_order(corners, w)
    assert (c.tolist(), v.tolist()) == ([1, 1, 2, 3], [1, 2, 7, 5])


@pytest.mark.parametrize("w", [[2.0**1020, 2.0**1020], [2.0**1023, -(2.0**1023)], [2.0**1023, 2.0**1023]])
def test_nothing_is_known_of_what_is_too_large(w: list[float]) -> None:
    low, high = ramps.values(np.array([0.0, 1.0]), np.ones(2), np.array(w), np.array([-1.0, 2.0**10]))
    assert (low[1], high[1]) == (-np.inf, np.inf)
    assert low[0] <= 0 <= high[0]


def test_what_it_costs_is_said_before_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(ramps, "spend", lambda *given: said.append(given))
    ramps.values(np.zeros(3), np.ones(3), np.ones(3), np.zeros(5))
    assert said == [("corners of a block", 1600.0, 512.0)]
