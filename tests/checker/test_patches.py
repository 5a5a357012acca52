"""Bilinear functions with a radius, field by field: numbers whose products and sums tell which term is missing."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer_checker.looped import patches
from onelayer_checker.looped.patches import LOST, TINY, Patch, as_patch, bilinear, coordinates

P, O = Patch(1.0, -2.0, 4.0, -8.0, 16.0), Patch(-3.0, 5.0, 7.0, 11.0, 13.0)
ZERO = Patch(0.0, 0.0, 0.0, 0.0, 0.0)


def parts(p: Patch) -> list[float]:
    return [float(u) for u in (p.a, p.b, p.c, p.d, p.r)]


def test_what_is_added_for_roundings() -> None:
    assert (LOST, TINY) == (2.0**-47, 2.0**-1000)
    assert (P.bilinear_size, P.size, O.bilinear_size, O.size) == (15.0, 31.0, 26.0, 39.0)


@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1), (-1, 1, 1), (-1, -1, 1), (1, 1, -1), (-1, 1, -1)])
def test_the_largest_value_is_at_a_corner(signs: tuple[int, int, int]) -> None:
    b, c, d = (sign * size for sign, size in zip(signs, (2.0, 4.0, 16.0), strict=True))
    low, high = Patch(0.5, b, c, d, 1.0).range()
    values = [0.5 + b * s + c * t + d * s * t for s in (-1, 1) for t in (-1, 1)]
    slack = 1.0 + LOST * 23.5
    assert (float(low), float(high)) == (min(values) - slack, max(values) + slack)
    assert tuple(map(float, ZERO.range())) == (-TINY, TINY)


def test_sums() -> None:
    wanted = [-2.0, 3.0, 11.0, 3.0, 29.0 + LOST * 70]
    assert parts(P + O) == wanted
    assert parts(P + 3) == parts(3 + P) == [4.0, -2.0, 4.0, -8.0, 16.0 + (LOST * 3 + LOST * (31 + 3 + LOST * 3))]
    assert parts(ZERO + ZERO) == [0, 0, 0, 0, TINY]
    assert parts(-P) == [-1.0, 2.0, -4.0, 8.0, 16.0]
    assert parts(P - O) == [4.0, -7.0, -3.0, -19.0, 29.0 + LOST * 70]
    assert parts(P - 3) == [-2.0, -2.0, 4.0, -8.0, parts(P + 3)[4]]
    assert parts(3 - P) == [2.0, 2.0, -4.0, 8.0, parts(P + 3)[4]]


def test_products() -> None:
    """Squares of s, t and s t are 1/2 +- 1/2, and s^2 t and s t^2 go into the radius."""
    a = -3.0 + (-10.0 + 28.0 - 88.0) / 2
    odd = abs(-2.0 * 11 - 8 * 5) + abs(4.0 * 11 - 8 * 7)
    r = 15.0 * 13 + 26.0 * 16 + 16 * 13 + odd + (10.0 + 28 + 88) / 2
    wanted = [a, 5.0 + 6, 7.0 - 12, 11.0 + 24 - 14 + 20, r + LOST * (31 * 39)]
    assert parts(P * O) == parts(O * P) == wanted
    assert parts(P * -O) == [-u for u in wanted[:4]] + wanted[4:]
    assert parts(P * 2) == parts(2 * P) == [2.0, -4.0, 8.0, -16.0, 32 + (15 * 2 * LOST + 16 * 2 * LOST) + LOST * 62]
    assert parts(ZERO * ZERO) == [0, 0, 0, 0, TINY]


def test_numbers() -> None:
    assert as_patch(P) is P
    third = as_patch(Fraction(-1, 3))
    assert parts(third) == [-1 / 3, 0, 0, 0, LOST / 3]
    assert parts(as_patch(0)) == [0, 0, 0, 0, TINY]


class Between(Patch):
    """A patch whose range is given."""

    ends: tuple[float, float]

    def range(self) -> Any:
        return tuple(map(np.asarray, self.ends))


def between(low: float, high: float, r: float = 16.0) -> Between:
    found = Between(3.0, 2.0, -4.0, 8.0, r)
    object.__setattr__(found, "ends", (low, high))
    return found


@pytest.mark.parametrize(
    ("low", "high", "k", "half"),
    [
        (-1.0, 3.0, 0.5, 0.75), (-3.0, 1.0, -0.5, 0.75), (-2.0, 2.0, 0.0, 1.0),
        (0.0, 2.0, 1.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.5, 2.0, 1.0, 0.0), (1.0, 2.0, 1.0, 0.0),
        (-2.0, 0.0, -1.0, 0.0),
        (-2.0, -1.0, -1.0, 0.0),
    ],
)  # fmt: skip
def test_absolute_values(low: float, high: float, k: float, half: float) -> None:
    """Of z between both ends, |z| is k z + half +- half; on [-1, 3] that is z / 2 + 3/4 +- 3/4."""
    found = abs(between(low, high))
    assert parts(found) == [3 * k + half, 2 * k, -4 * k, 8 * k, 16 + half + LOST * (33 + half)]
    assert float(abs(ZERO).r) > TINY


@pytest.mark.parametrize(("low", "high"), [(-33.0, 17.0), (-20.0, 3.0)])
def test_of_two_numbers_that_rounding_tells_apart_the_larger_is_taken(low: float, high: float) -> None:
    """high - k high and -low - k low are equal but for rounding: the first is larger, then the second."""
    k = (high + low) / (high - low)
    first, second = high - k * high, -low - k * low
    assert (first > second) == (low == -33.0)
    half = max(first, second) / 2
    assert parts(abs(between(low, high, 0.0)))[4] == half + LOST * (17 + half)


def test_exponentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """With powers of 2 instead, which are exact: on [0, 4] the slope is 4, and 2^z - 4 z lies in [-4, 1]."""
    monkeypatch.setattr(patches, "_exp", np.exp2)
    found = between(0.0, 4.0).exp()
    lost = LOST * (1 + 16 + 4 * (1 + 0 + 4 + 33))
    assert parts(found) == [12.0 - 1.5, 8.0, -16.0, 32.0, 4 * 16 + 2.5 + lost]
    found = between(-8.0, 4.0).exp()  # 1/4; 2^-8 + 2 at one end, 15 at the other, and 3/4 below
    lost = LOST * (2.0**-8 + 16 + 0.25 * (1 + 8 + 4 + 33))
    assert parts(found) == [0.75 + (15 + 0.75) / 2, 0.5, -1.0, 2.0, 4 + (15 - 0.75) / 2 + lost]
    found = between(-4.0, -2.0).exp()  # slope 1/8: 2^-4 + 1/2, and 1/8 * 4 below
    lost = LOST * (2.0**-4 + 2.0**-2 + 0.125 * (1 + 4 + 2 + 33))
    assert parts(found) == [0.375 + (0.5625 + 0.5) / 2, 0.25, -0.5, 1.0, 2 + 0.03125 + lost]
    monkeypatch.setattr(patches, "_exp", lambda t: np.where(t == 3.0, 1.0, -1.0))
    found = between(2.0, 4.0).exp()  # below its tangent, as by rounding: no negative radius
    assert parts(found) == [3.0 + (-3 - 2) / 2, 2.0, -4.0, 8.0, 16 + LOST * (-2 + 1 * (1 + 2 + 4 + 33))]
    monkeypatch.setattr(patches, "_exp", lambda t: 0 * t)
    assert float(between(2.0, 4.0).exp().r) == TINY


@given(st.floats(-699, 699))
def test_exponentials_are_nearly_those_of_decimals(t: float) -> None:
    getcontext().prec = 40
    found, exact = Fraction(float(patches._exp(t))), Fraction(Decimal(t).exp())
    assert abs(found - exact) < 16 * Fraction(1, 2**53) * exact


def test_exponentials_beyond_floats() -> None:
    with np.errstate(all="ignore"):
        assert patches._exp(np.array([-800.0, -701.0, 0.0, 701.0, 800.0])).tolist() == [0, 0, 1, np.inf, np.inf]


def test_variables_on_the_cells_of_a_grid() -> None:
    first, second = (
        [Fraction(-3), Fraction(-1), Fraction(2)],
        [Fraction(0), Fraction(8), Fraction(14), Fraction(20)],
    )
    u, v = coordinates(first, second)
    ones = np.ones((2, 3))
    for found, wanted in (
        (u.a, [[-2.0], [0.5]]), (u.b, [[1.0], [1.5]]), (u.c, 0.0), (u.d, 0.0), (u.r, [[LOST * 4], [LOST * 3]]),
        (v.a, [4.0, 11.0, 17.0]), (v.b, 0.0), (v.c, [4.0, 3.0, 3.0]), (v.d, 0.0),
        (v.r, LOST * np.array([8, 22, 34.0])),
    ):  # fmt: skip
        assert found.tolist() == (ones * wanted).tolist()
    nothing = coordinates([Fraction(0)] * 2, [Fraction(0)] * 2)
    assert [part.r.tolist() for part in nothing] == [[[TINY]], [[TINY]]]


def test_corners_determine_a_bilinear_function() -> None:
    """a + b s + c t + d s t at the corners of two by two cells, of which each has its own radius."""
    corners = np.array([[1.0, 2, 8], [-4, 16, 32], [64, 128, -256]])
    radius = np.array([[1.0, 2, 4], [8, 16, 32], [64, 128, 256]])
    for turned in (corners, -corners):
        for order in (radius, radius[::-1], radius[:, ::-1], radius[::-1, ::-1]):
            found = bilinear(turned, order)
            for i in range(2):
                for j in range(2):
                    p, q, s, t = (turned[i + k, j + l] for k, l in ((0, 0), (0, 1), (1, 0), (1, 1)))
                    cell = [part[i, j] for part in (found.a, found.b, found.c, found.d)]
                    assert cell == [
                        (p + q + s + t) / 4,
                        (s + t - p - q) / 4,
                        (q + t - p - s) / 4,
                        (p + t - q - s) / 4,
                    ]
                    size = abs(p) + abs(q) + abs(s) + abs(t)
                    assert found.r[i, j] == order[i : i + 2, j : j + 2].max() + LOST * size
    assert bilinear(np.zeros((2, 2)), np.zeros((2, 2))).r.tolist() == [[TINY]]
