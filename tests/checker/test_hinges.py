"""The readout of one number: its values and slopes, against fractions; and what is no such readout."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.core.graph import build
from onelayer_checker.functions import hinges
from onelayer_checker.functions.hinges import Hinges, recognise
from tests.checker.square import CONSTANT, KNOTS, OUT, network, tensors

NUMBERS = st.floats(-100, 100).map(lambda x: round(x, 3))


def exact(knots: list[float], out: list[float], constant: float, y: Any) -> Fraction:
    parts = (Fraction(c) * max(Fraction(y) - Fraction(k), Fraction(0)) for k, c in zip(knots, out, strict=True))
    return Fraction(constant) + sum(parts, Fraction(0))


def read(knots: Any = KNOTS, out: Any = OUT, constant: float = CONSTANT) -> Hinges:
    found = recognise(network(knots=knots, out=out, constant=constant))
    assert found is not None
    return found


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=9), NUMBERS, st.lists(NUMBERS, min_size=1))
def test_values_are_as_near_as_is_said(parts: Any, constant: float, places: list[float]) -> None:
    knots, out = (list(column) for column in zip(*parts, strict=True))
    y = np.array([*places, *knots])
    value, off = read(knots, out, constant).value(y)
    for one, v, r in zip(y.tolist(), value.tolist(), off.tolist(), strict=True):
        assert abs(exact(knots, out, constant, one) - Fraction(v)) <= Fraction(r) < 1e-6


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40), st.lists(NUMBERS, min_size=2, max_size=8))
def test_slopes_are_within_the_range_of_every_interval(parts: Any, ends: list[float]) -> None:
    """Also of pieces that an interval only touches; and no further than those of the pieces it meets."""
    knots, out = (list(column) for column in zip(*parts, strict=True))
    low, high = np.array(sorted(ends)[:-1]), np.array(sorted(ends)[1:])
    middle, spread = read(knots, out, 0.0).slope(low, high)
    order = np.argsort(knots, kind="stable")
    at, slopes = np.array(knots)[order], np.concatenate([[0.0], np.cumsum(np.array(out)[order])])
    for a, b, m, r in zip(low, high, middle, spread, strict=True):
        met = slopes[np.searchsorted(at, a, "left") : np.searchsorted(at, b, "right") + 1]
        assert m - r <= met.min() + 1e-9
        assert met.max() - 1e-9 <= m + r
        assert r <= (met.max() - met.min()) / 2 * (1 + 1e-9) + 1e-9
        distance, rise = Fraction(b) - Fraction(a), exact(knots, out, 0.0, b) - exact(knots, out, 0.0, a)
        assert (Fraction(m) - Fraction(r)) * distance <= rise <= (Fraction(m) + Fraction(r)) * distance


def test_between_hinges_one_slope_is_known() -> None:
    middle, spread = read().slope(np.array([-0.2, -9.0, 2.0]), np.array([0.4, -1.6, 9.0]))
    np.testing.assert_allclose(middle, [0.5, 0.0, 0.0])
    assert spread.max() < 1e-12


def test_an_interval_that_ends_at_a_hinge_meets_both_pieces() -> None:
    middle, spread = read().slope(np.array([-1.5, -0.25]), np.array([-1.0, 0.25]))
    np.testing.assert_allclose(middle - spread, [0.0, -0.5], atol=1e-12)
    np.testing.assert_allclose(middle + spread, [1.5, 0.5], atol=1e-12)


def test_hinges_may_come_in_any_order() -> None:
    y = np.linspace(-3, 3, 50)
    np.testing.assert_array_equal(read(KNOTS[::-1], OUT[::-1]).value(y)[0], read().value(y)[0])


@pytest.mark.parametrize(
    "change",
    [
        {"readout.0.weight": np.array([[1, 1, 1, 1, -1.0]])},
        {"readout.0.weight": np.array([[1, 1, 1, 1, 1 + 2.0**-52]])},
        {"readout.1.weight": np.ones((5, 2)), "readout.1.bias": np.zeros(2)},
        {"readout.2.weight": np.ones((1, 1)), "readout.2.bias": np.zeros(1)},
        {"readout.1.weight": np.ones((1, 5, 1))},
        {"readout.1.bias": np.array([2.0**61])},
        {"readout.1.weight": np.full((5, 1), 2.0**61)},
        {"readout.0.bias": np.full(5, 2.0**61)},
        {
            "attention.W_Q": np.ones((4, 2, 1)),
            "attention.W_K": np.ones((4, 2, 1)),
            "attention.W_V": np.ones((4, 2, 1)),
            "attention.W_O": np.ones((4, 1, 2)),
            "readout.0.weight": np.ones((2, 5)),
        },
    ],
)
def test_other_readouts_are_not_taken_for_one(change: Any) -> None:
    assert recognise(build(tensors() | change)) is None
    assert recognise(build(tensors())) is not None


def test_too_many_hinges_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hinges, "MOST", 5)
    assert recognise(network()) is not None
    monkeypatch.setattr(hinges, "MOST", 4)
    assert recognise(network()) is None
    monkeypatch.setattr(hinges, "MOST", 5)
    with limited(1e4, None), pytest.raises(Beyond, match="hinges"):
        recognise(network())
