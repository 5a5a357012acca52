"""The Boltzmann operator: identities, monotonicity, and both separation bounds against high-precision sampling."""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer.contexts.boltzmann import (
    boltzmann,
    lemma_1_level_gap,
    lemma_1_log_separation_lower,
    lemma_b_separation_lower,
    softmax,
)
from onelayer.errors import HypothesisError


def log_sum_exp(a) -> float:
    top = np.max(a)
    return float(top + np.log(np.exp(np.asarray(a) - top).sum()))


def entropy(p) -> float:
    return -float(sum(x * math.log(x) for x in p if x > 0))


levels = st.lists(st.floats(-50, 50, allow_nan=False), min_size=1, max_size=12)


@given(levels)
def test_is_log_sum_exp_minus_entropy(a: list[float]) -> None:
    assert boltzmann(a) == pytest.approx(log_sum_exp(a) - entropy(softmax(a)), abs=1e-10)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0.2, 3))
def test_is_the_derivative_of_the_log_partition_function(a: list[float], t: float) -> None:
    h = 1e-5
    x = np.array(a)
    slope = (log_sum_exp((t + h) * x) - log_sum_exp((t - h) * x)) / (2 * h)
    assert boltzmann(t * x) / t == pytest.approx(slope, abs=1e-7)


@given(levels, st.randoms())
def test_lies_between_mean_and_max_and_ignores_order(a: list[float], random) -> None:
    shuffled = random.sample(a, len(a))
    value = boltzmann(a)
    assert boltzmann(shuffled) == pytest.approx(value, abs=1e-10)
    assert np.mean(a) - 1e-9 <= value <= max(a) + 1e-9


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=7, unique=True))
def test_grows_when_the_temperature_falls(a: list[int]) -> None:
    means = [boltzmann(t * np.array(a, float)) / t for t in (0.25, 0.5, 1.0, 2.0)]
    assert all(low <= high + 1e-12 for low, high in itertools.pairwise(means))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True), st.integers(1, 3))
def test_an_element_one_or_more_below_the_value_lowers_it(a: list[int], depth: int) -> None:
    value = boltzmann(np.array(a, float))
    assert boltzmann([*map(float, a), float(value) - depth]) < value


def test_minus_infinity_is_an_absent_entry() -> None:
    assert boltzmann([1.0, -np.inf, 3.0]) == boltzmann([1.0, 3.0])


def test_lemma_b_holds_for_all_pairs_of_subsets_of_a_lattice() -> None:
    flint.ctx.prec = 200
    lattice = [2.0 * i for i in range(8)]
    subsets = [s for k in range(1, 9) for s in itertools.combinations(lattice, k)]

    def exact(s: tuple[float, ...]):
        weights = [flint.arb(x - s[-1]).exp() for x in s]
        return sum((w * x for w, x in zip(weights, s, strict=True)), flint.arb(0)) / sum(weights, flint.arb(0))

    values = {s: exact(s) for s in subsets}
    smallest_ratio = min(
        float(abs(values[s] - values[t]).lower()) / lemma_b_separation_lower(s, t)
        for s, t in itertools.combinations(subsets, 2)
    )
    assert 1.0 <= smallest_ratio < 1.1  # holds, and is nearly tight: a constant 10% larger would fail


@pytest.mark.parametrize("n", [2, 3, 4])
def test_lemma_1_holds_on_its_own_lattice(n: int) -> None:
    gap = lemma_1_level_gap(n) * (1 + 1e-9)
    lattice = [gap * (i - (n + 1) / 2) for i in range(n + 2)]
    for s, t in itertools.combinations(itertools.combinations(lattice, n), 2):
        r = max(map(abs, (*s, *t)))
        difference = abs(boltzmann(s) - boltzmann(t))
        if difference > 1e-12:  # float64 resolves the difference
            assert math.log(difference) >= lemma_1_log_separation_lower(n, r)
        else:
            assert lemma_1_log_separation_lower(n, r) < math.log(1e-11)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0, 1.0], [1.0], "Lemma D"),
        ([0.0, 1.0], [0.0], "apart"),
        ([0.0, 2.0], [0.0, 2.0], "different sets"),
    ],
)
def test_lemma_b_names_a_broken_hypothesis(a: list[float], b: list[float], words: str) -> None:
    with pytest.raises(HypothesisError, match=words):
        lemma_b_separation_lower(a, b)


def test_lemma_1_is_void_for_one_level() -> None:
    with pytest.raises(HypothesisError, match="at least two"):
        lemma_1_log_separation_lower(1, 3.0)


def test_public_name() -> None:
    assert onelayer.boltzmann([0.0, 0.0]) == 0.0
