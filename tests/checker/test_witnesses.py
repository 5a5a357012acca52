"""Prompts run by hand: numbers that get too long are enclosed, and what cannot be told is not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.looped import witnesses
from onelayer_checker.looped.near import BITS, Near, near
from onelayer_checker.looped.witnesses import EXACT_BITS, MOST_BITS, Lost

LONG = Fraction(1, (1 << EXACT_BITS) - 1)


def test_a_number_stays_exact_up_to_its_digits() -> None:
    exact = [Fraction(-((1 << EXACT_BITS) - 1), 3), LONG, Fraction(0), 7]
    assert witnesses._short(exact) == exact
    longer = [Fraction(-(1 << EXACT_BITS), 3), Fraction(1, (1 << EXACT_BITS) + 1), 1 << EXACT_BITS]
    assert witnesses._short(longer) == [near(u) for u in longer]
    assert (EXACT_BITS, MOST_BITS) == (4096, 16384)


def test_an_enclosure_is_followed_up_to_a_size() -> None:
    largest = Near(-((1 << MOST_BITS) - 1), 3)
    assert witnesses._short([largest]) == [largest]
    for larger in (Near(1 << MOST_BITS, 0), Fraction(1 << (MOST_BITS - BITS))):
        with pytest.raises(Lost):
            witnesses._short([larger])


def test_every_number_is_paid_for() -> None:
    cost = 1e4 * (1 + 4096 / 500) + 1e4
    with limited(cost, None):
        witnesses._short([LONG, Near(1 << 9000, 0)])
    with limited(cost - 1, None), pytest.raises(Beyond, match="exact prompts"):
        witnesses._short([LONG, Near(1 << 9000, 0)])


def test_who_is_a_key_is_known_or_the_prompt_is_lost() -> None:
    assert witnesses._is_marked(Fraction(1, 9))
    assert not witnesses._is_marked(Fraction(0))
    assert witnesses._is_marked(Near(-5, 4))
    for unclear in (Near(5, 5), Near(0, 0)):
        with pytest.raises(Lost):
            witnesses._is_marked(unclear)


def test_people_read_floats() -> None:
    assert witnesses._real(Near(3 << (BITS - 1), 7)) == "1.5"
    assert witnesses._real(Fraction(1, 4)) == "0.25"
    assert witnesses._real(near(Fraction(-(2**2000)))) == "-2^2000"
