"""Enclosures of numbers that are too long: what is computed of them holds what is computed of the numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.looped.near import BITS, Near, differ, fraction, near

UNIT = Fraction(1, 1 << BITS)
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negate": lambda a, _: -a,
    "absolute": lambda a, _: abs(a),
}


def holds(u: Near, value: Fraction) -> bool:
    return abs(fraction(u) - value) <= u.off * UNIT


fractions = st.fractions(min_value=-100, max_value=100, max_denominator=1000)
offs = st.integers(min_value=0, max_value=1 << (BITS + 4)) | st.integers(min_value=0, max_value=9)
shares = st.fractions(min_value=-1, max_value=1, max_denominator=8)


@pytest.mark.parametrize("word", OPERATIONS)
@given(fractions, offs, shares, fractions, offs, shares)
def test_an_operation_encloses(
    word: str, p: Fraction, off: int, place: Fraction, q: Fraction, other_off: int, other_place: Fraction
) -> None:
    """Numbers anywhere in their enclosures, as wide as the numbers themselves or a few units."""
    left, right, apply = Near(near(p).middle, off), Near(near(q).middle, other_off), OPERATIONS[word]
    one, other = (fraction(u) + share * u.off * UNIT for u, share in ((left, place), (right, other_place)))
    assert holds(apply(left, right), apply(one, other))
    assert holds(apply(left, q), apply(one, q))
    assert holds(apply(p, right), apply(p, other)) if word in ("add", "subtract", "multiply") else True


def test_enclosures_are_as_narrow_as_roundings() -> None:
    third = near(Fraction(1, 3))
    assert (third.middle, third.off) == ((1 << BITS) // 3, 1)
    assert (third + third).off == 2
    assert (third * third).off == 2
    wide = Near(3 << BITS, 10)
    assert BITS == 4096
    for sign, other in ((1, -1), (-1, 1), (-1, -1)):
        product = Near(sign * (3 << BITS), 10) * Near(other * (2 << BITS), 7)
        assert product == Near(sign * other * (6 << BITS), 43)
    assert (wide + Fraction(1, 2), wide * 2) == (Near(7 << (BITS - 1), 11), Near(6 << BITS, 25))
    assert (Near(0, 1 << BITS) * Near(0, 5 << BITS)) == Near(0, (5 << BITS) + 2)
    assert (-wide, wide - wide, 1 - wide) == (Near(-(3 << BITS), 10), Near(0, 20), Near(-(2 << BITS), 11))
    assert abs(Near(-4, 9)) == Near(4, 9)
    assert near(wide) is wide


def test_numbers_differ_only_if_their_enclosures_do_not_meet() -> None:
    assert differ(Fraction(1, 3), Fraction(1, 4))
    assert not differ(Fraction(1, 3), Fraction(1, 3))
    assert not differ(Near(10, 2), Near(7, 1))
    assert differ(Near(10, 2), Near(6, 1))
    assert differ(Near(6, 1), Near(10, 2))
    assert differ(near(Fraction(1, 3)), Fraction(1, 3) + 3 * UNIT)
    assert not differ(Fraction(1, 3), near(Fraction(1, 3)))
    assert fraction(Fraction(2, 7)) == Fraction(2, 7)
    assert fraction(Near(3 << (BITS - 1), 5)) == Fraction(3, 2)


@pytest.mark.parametrize("long", [Near(1 << 40_000, 0), Near(0, 1 << 40_000)], ids=["middle", "off"])
def test_products_are_paid_for_by_their_digits(long: Near) -> None:
    with limited(5e3 + 40_001**2 / 100, None):
        assert holds(long * Near(0, 0), Fraction(0))
    for pair in ((long, Near(0, 0)), (Near(0, 0), long)):
        with limited(5e3 + 40_001**2 / 100 - 1, None), pytest.raises(Beyond, match="enclosures of numbers"):
            pair[0] * pair[1]
