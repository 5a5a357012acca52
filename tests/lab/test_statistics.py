"""Intervals that hold what they promise: coverage by simulation, ends of counts, pairs, and what is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from onelayer.lab.statistics import (
    Factor,
    Interval,
    factors,
    geometric,
    geometric_of,
    interval,
    interval_by_group,
    interval_of,
    over,
    paired,
    share,
    steepness,
    student,
    tally,
)


@pytest.mark.parametrize("degrees", [1, 2, 5, 14, 15, 16, 20, 30, 100, 10_000])
def test_student_s_quantile_is_that_of_scipy(degrees) -> None:
    assert student(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-3)


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilson_s_interval_is_that_of_scipy(successes, more) -> None:
    trials = successes + more
    found = share([True] * successes + [False] * more)
    theirs = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-6)
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_all_of_five_is_not_certain() -> None:
    found = share([1] * 5)
    assert str(found) == "5 of 5 (57 to 100%)"
    assert math.isnan(share([]).low)


@pytest.mark.parametrize("count", [5, 10, 20])
def test_true_means_and_ratios_are_inside_about_95_times_of_100(count) -> None:
    rng = np.random.default_rng(count)
    draws = rng.normal(3.0, 2.0, (4000, count))
    inside = [found.low <= 3.0 <= found.high for found in map(interval, draws)]
    ratios = [found.low <= math.exp(3) <= found.high for found in map(geometric, np.exp(draws))]
    assert 0.94 < np.mean(inside) < 0.96
    assert inside == ratios


def test_one_value_has_no_interval_and_never_wins() -> None:
    one, other = interval([7.0]), interval([1.0, 1.1, 0.9])
    assert math.isnan(one.half)
    assert not one.low > other.high
    assert not paired({0: 7.0}, {0: 1.0}).above
    assert str(one) == "7"
    assert math.isnan(geometric([2.0]).factor)
    assert math.isnan(interval([]).mean)


def test_what_is_left_out_is_counted() -> None:
    assert interval([1.0, None, math.nan, 2.0]) == Interval(1.5, pytest.approx(6.353), 2, 2)
    assert str(interval([1.0, 1.0, math.inf])) == "1 ± 0 (1 left out)"
    found = geometric([0.0, -1.0, 2.0, 8.0])
    assert (found.count, found.dropped, found.mean) == (2, 2, pytest.approx(4.0))
    assert str(found).endswith("(2 left out)")
    rows = [{"g": 1, "v": 0.0}, {"g": 1, "v": 2.0}, {"g": 1, "v": None}, {"g": 2, "v": None}]
    assert interval_by_group(rows, "g", "v")[1].dropped == 1
    assert factors(rows, "g", "v")[1].dropped == 2
    assert set(factors(rows, "g", "v")) == {1}  # nobody asked for a value of the second


def test_draws_of_a_seed_are_one_value_of_an_interval() -> None:
    """Twenty rows of each of five seeds know no more than five means: the intervals are as wide."""
    rng = np.random.default_rng(4)
    seeds = rng.normal(10.0, 1.0, 5)
    rows = [{"g": 1, "seed": s, "v": seeds[s] + 0.01 * rng.normal()} for s in range(5) for _ in range(20)]
    means = [np.mean([row["v"] for row in rows if row["seed"] == s]) for s in range(5)]
    logs = [np.exp(np.mean([math.log(row["v"]) for row in rows if row["seed"] == s])) for s in range(5)]
    assert interval_of(rows, "v") == interval(means) == interval_by_group(rows, "g", "v")[1]
    assert geometric_of(rows, "v") == factors(rows, "g", "v")[1]
    assert geometric_of(rows, "v").factor == pytest.approx(geometric(logs).factor)
    assert interval_of(rows, "v").count == 5
    assert interval_of(rows, "v").half > 3 * interval(row["v"] for row in rows).half
    rows[0]["v"], rows[1]["v"] = None, math.nan
    assert (interval_of(rows, "v").count, interval_of(rows, "v").dropped) == (5, 2)
    lost = [{**row, "v": None} if row["seed"] == 0 else row for row in rows]
    assert (interval_of(lost, "v").count, geometric_of(lost, "v").dropped) == (4, 20)


def test_pairs_see_what_means_do_not() -> None:
    """Seeds differ by 100, the two models by 1."""
    rng = np.random.default_rng(0)
    first = {seed: 100.0 * seed + 1 + 0.1 * rng.normal() for seed in range(6)}
    second = {seed: 100.0 * seed for seed in range(6)}
    found = paired(first, second)
    assert found.above
    assert not found.below
    assert interval(first.values()).low < interval(second.values()).high
    assert paired(second, first).below
    del second[0]
    assert paired(first, second).missing == 1
    assert "1 without a partner" in str(paired(first, second))


def test_ratios_are_taken_pair_by_pair_and_zeros_are_counted() -> None:
    found = paired({s: 2.0 * (s + 1) for s in range(6)}, {s: float(s) for s in range(6)}, ratio=True)
    assert isinstance(found.found, Factor)
    assert (found.found.count, found.found.dropped) == (5, 1)
    assert found.above
    assert not paired(dict.fromkeys(range(4), 2.0), dict.fromkeys(range(4), 1.0), ratio=True).above  # four seeds


def test_two_values_of_a_run_are_compared_within_the_run() -> None:
    rows = [{"seed": s, "loss": 2.0 * (s + 1), "built": float(s)} for s in range(6)]
    found = over(rows, "loss", "built")
    assert (found.found.count, found.found.dropped, found.missing) == (5, 1, 0)
    assert found.above
    assert over(rows, "built", "loss").below
    assert not over(rows[2:], "loss", "built").above  # four runs


def test_the_slope_s_interval_is_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    x = np.arange(8.0)
    y = 3 * x + rng.normal(size=8)
    mine, theirs = steepness(x, y), stats.linregress(x, y)
    assert mine.mean == pytest.approx(theirs.slope)
    assert mine.half == pytest.approx(theirs.stderr * stats.t.ppf(0.975, 6), rel=1e-3)


def test_words_are_counted_the_most_frequent_first() -> None:
    assert tally(["plateau", None, "budget", "plateau"]) == "plateau 2, budget 1, not recorded 1"


def test_equal_values_lie_within_nothing() -> None:
    assert str(geometric([800.0] * 5)) == "800 (the same for all)"
    assert str(geometric([1.0, 1.02, 0.99])) == "1 (within 3.8%)"
