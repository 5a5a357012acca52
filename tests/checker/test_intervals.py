"""Every factor of an enclosure, and what is known beyond where an operation is looked at."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import TINY, U, exp_nonpositive
from onelayer_checker.functions import intervals
from onelayer_checker.functions.intervals import divide, exp, log, minus, out, plus, sine, tanh, wave


def interval(low: float, high: float) -> Any:
    return np.full(1, low), np.full(1, high)


def ends(found: Any) -> tuple[float, float]:
    return float(found[0][0]), float(found[1][0])


def test_results_are_moved_by_four_roundings_and_the_least() -> None:
    assert ends(out(np.full(1, 3.0), np.full(1, 5.0))) == (3 - 12 * U, 5 + 20 * U)
    assert ends(out(np.full(1, -3.0), np.full(1, -5.0))) == (-3 - 12 * U, -5 + 20 * U)
    assert ends(out(np.zeros(1), np.zeros(1), TINY)) == (-TINY, TINY)


@pytest.mark.parametrize("below", [(0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0), (0.0, 0.0)])
def test_nothing_is_known_of_a_quotient_by_what_may_be_zero(below: tuple[float, float]) -> None:
    with np.errstate(all="ignore"):
        assert ends(divide(interval(1, 2), interval(*below))) == (-np.inf, np.inf)


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0])
def test_an_exponential_is_known_to_32_roundings_and_its_inverse_to_8_more(x: float) -> None:
    e = float(exp_nonpositive(np.full(1, x))[0])
    below, above = e * (1 - 32 * U), e * (1 + 32 * U) + TINY
    assert ends(exp(np.full(1, x))) == (below, above)
    if x:
        assert ends(exp(np.full(1, -x))) == (1.0 / above * (1 - 8 * U), 1.0 / below * (1 + 8 * U))


def series(x: Fraction, turn: int) -> Fraction:
    """sin or cos, to 2^-100 for |x| < 1."""
    return sum(((-1) ** i * x ** (2 * i + 1 - turn) / factorial(2 * i + 1 - turn) for i in range(20)), Fraction(0))


@pytest.mark.parametrize("turn", [0, 1])
def test_a_sine_is_off_by_at_most_four_roundings(turn: int) -> None:
    x = np.linspace(-0.7853, 0.7853, 501)
    for at, found in zip(x, sine(x, turn), strict=True):
        assert abs(Fraction(float(found)) - series(Fraction(float(at)), turn)) <= 4 * Fraction(U)


def test_a_wave_is_its_ends_and_16_roundings() -> None:
    for turn in (0, 1):
        first, last = (float(sine(np.full(1, x), turn)[0]) for x in (0.25, 0.5))
        wanted = min(first, last) - 16 * U, max(first, last) + 16 * U
        assert ends(wave(interval(0.25, 0.5), turn)) == wanted


@pytest.mark.parametrize("x", [999.5, 1000.0, -999.5, -1000.0])
def test_up_to_1000_a_wave_is_known(x: float) -> None:
    assert np.sin(x) == pytest.approx(ends(wave(interval(x, x), 0))[0], abs=1e-12)


@pytest.mark.parametrize("x", [(999.9, 1000.5), (-1000.5, -999.9), (1000.5, 1000.5), (-1000.5, -1000.5)])
def test_beyond_1000_a_wave_is_anything(x: tuple[float, float]) -> None:
    assert ends(wave(interval(*x), 0)) == (-1, 1)


def test_near_an_extreme_a_wave_is_cut() -> None:
    """1e-8 behind the extreme it rounds to the extreme, which is not in the interval."""
    assert ends(wave(interval(1.5 * np.pi + 1e-8, 1.5 * np.pi + 0.1), 0))[0] == -1
    assert ends(wave(interval(0.5 * np.pi + 1e-8, 0.5 * np.pi + 0.1), 0))[1] == 1


def test_a_logarithm_is_a_guess_and_64_roundings() -> None:
    low, high = float(np.log(0.125)), float(np.log(8.0))
    wanted = low - 64 * U * (1 + abs(low)), high + 64 * U * (1 + abs(high))
    assert ends(log(interval(0.125, 8.0))) == wanted


@pytest.mark.parametrize(
    ("x", "guesses"),
    [((2.0, 8.0), (0.75, 2.5)), ((2.0, 8.0), (0.5, 2.0)), ((2.0, 8.0), (2.05, 2.5)), ((2.0, 8.0), (0.5, 0.6))],
)
def test_a_wrong_guess_of_a_logarithm_is_noticed(
    monkeypatch: pytest.MonkeyPatch, x: tuple[float, float], guesses: tuple[float, float]
) -> None:
    given = iter(guesses)
    monkeypatch.setattr(intervals.np, "log", lambda _: np.full(1, next(given)))
    assert ends(log(interval(*x))) == (-np.inf, np.inf)


def test_a_guess_whose_exponential_may_be_on_the_wrong_side_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    guess = np.full(1, 1.0)
    low, high = guess - 64 * U * 2, guess + 64 * U * 2
    between = [np.array([np.mean(exp(end))]) for end in (low, high)]
    monkeypatch.setattr(intervals.np, "log", lambda _: guess.copy())
    right = exp(low)[1], exp(high)[0]
    assert ends(log(right)) == (float(low[0]), float(high[0]))
    assert ends(log((between[0], right[1]))) == (-np.inf, np.inf)
    assert ends(log((right[0], between[1]))) == (-np.inf, np.inf)


def test_a_hyperbolic_tangent_by_its_exponentials() -> None:
    x, one, two = interval(-0.5, 0.75), interval(1, 1), interval(2, 2)
    e = exp(2 * x[0])[0], exp(2 * x[1])[1]
    assert ends(tanh(x)) == ends(plus(one, minus(divide(two, plus(e, one)))))


@pytest.mark.parametrize("x", [50.0, 250.0, 300.0, 400.0])
def test_far_out_a_hyperbolic_tangent_is_one(x: float) -> None:
    for a, b in ((-x, 0.5), (-x, -x), (-0.5, x), (x, x)):
        low, high = ends(tanh(interval(a, b)))
        assert low == (-1 if a == -x else pytest.approx(np.tanh(a)))
        assert high == (1 if b == x else pytest.approx(np.tanh(b)))
