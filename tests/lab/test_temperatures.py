"""Both edges of the window of temperatures, derived, against what softmax heads do; and sets that meet inside."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from onelayer.contexts.boltzmann import boltzmann
from onelayer.errors import OptionError
from onelayer.lab import temperatures
from onelayer.lab.trained import Net, Shape, Task, framework


def all_sets(count: int, n: int) -> np.ndarray:
    return np.array(list(combinations(range(count), n)))


def smallest_gap(levels: np.ndarray, sets: np.ndarray, beta: float) -> float:
    values = np.sort(boltzmann(beta * levels[sets]) / beta)
    return float(np.diff(values).min() / np.ptp(values))


@pytest.mark.parametrize(("count", "n"), [(6, 3), (8, 3), (7, 2)])
@pytest.mark.parametrize("bits", [14, 20])
def test_even_levels_are_told_apart_at_the_edges_and_not_far_outside(count: int, n: int, bits: int) -> None:
    levels, sets = np.linspace(0, 1, count), all_sets(count, n)
    hot, cold = temperatures.edges(levels, sets, bits)
    assert hot is not None
    assert 0 < hot < cold
    assert smallest_gap(levels, sets, 4 * hot) > 2.0**-bits > smallest_gap(levels, sets, hot / 4)
    assert smallest_gap(levels, sets, 0.7 * cold) > 2.0**-bits > smallest_gap(levels, sets, 1.5 * cold)


def test_sets_of_equal_means_variances_and_third_powers_have_an_edge() -> None:
    """{0, 4, 7, 11} and {1, 2, 9, 10} have equal sums, sums of squares and of cubes: beta^3 tells them apart."""
    levels, sets = np.linspace(0, 1, 12), np.array([[0, 4, 7, 11], [1, 2, 9, 10], [0, 1, 2, 3]])
    for bits in (14, 20):
        hot, _ = temperatures.edges(levels, sets, bits)
        assert hot is not None
        assert smallest_gap(levels, sets, 2 * hot) > 2.0**-bits > smallest_gap(levels, sets, hot / 2)


def test_other_means_need_no_temperature() -> None:
    levels = np.array([0.0, 0.1, 0.31, 0.72, 1.0])
    sets = all_sets(5, 2)
    hot, _ = temperatures.edges(levels, sets, 20)
    assert hot == 0
    assert smallest_gap(levels, sets, 1e-4) > 2.0**-20


def test_means_that_differ_by_less_than_the_bits_have_no_derived_edge() -> None:
    """Evenly spaced but for 2^-30: the nearest two means differ, and b bits do not see that."""
    levels = np.linspace(0, 1, 6)
    levels[2] += 2.0**-30
    hot, _ = temperatures.edges(levels, all_sets(6, 3), 20)
    assert hot is None
    assert smallest_gap(levels, all_sets(6, 3), 1e-9) < 2.0**-20


@pytest.mark.parametrize("spacing", ["even", "random"])
def test_sets_meet_between_the_edges(spacing: str) -> None:
    """The set of larger mean has the lower top, so they change order: b bits are not enough where they meet."""
    levels = np.linspace(0, 1, 8) if spacing == "even" else np.sort(np.random.default_rng(3).random(8))
    sets = all_sets(8, 3)
    hot, cold = temperatures.edges(levels, sets, 22)
    low, high = max(hot or 0.0, 0.01), cold

    def ahead(beta: float) -> float:
        first, second = boltzmann(beta * levels[[[0, 1, 7], [4, 5, 6]]])
        return float(first - second)

    assert ahead(low) < 0 < ahead(high)
    assert smallest_gap(levels, sets, 1.0) > 2.0**-22  # near the middle they are all told apart
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if ahead(middle) < 0 else (low, middle)
    assert smallest_gap(levels, sets, low) < 2.0**-40
    assert (hot or 0.0) < low < cold


def test_pairs_that_change_order_are_counted() -> None:
    """{0, 1, 7} has the least mean of three, and the least below its top: at the cold end it leads both others."""
    levels, sets = np.linspace(0, 1, 8), np.array([[0, 1, 7], [4, 5, 6], [5, 6, 7]])
    assert temperatures.crossings(levels, sets, 0.01, 16.0) == 2
    assert temperatures.crossings(levels, sets, 0.01, 0.02) == 0
    every, rng = all_sets(7, 3), np.random.default_rng(0)
    levels = np.sort(rng.random(7))
    values = [boltzmann(beta * levels[every]) for beta in (0.1, 12.0)]
    changed = [
        (values[0][i] - values[0][j]) * (values[1][i] - values[1][j]) < 0 for i, j in combinations(range(35), 2)
    ]
    assert 0 < temperatures.crossings(levels, every, 0.1, 12.0) == sum(changed) < comb(35, 2)


@pytest.mark.parametrize(("count", "n"), [(6, 3), (8, 3)])
@pytest.mark.parametrize("bits", [16, 20])
def test_sets_with_a_query_have_edges_of_their_own(count: int, n: int, bits: int) -> None:
    levels, sets = temperatures.add_query(count, all_sets(count, n))
    assert (levels[sets[:, -1]] == 0.5).all()
    assert np.abs(levels[sets[:, :-1]] - 0.5).min() == pytest.approx(0.5 / (count - 1))
    hot, cold = temperatures.edges(levels, sets, bits)
    assert hot is not None
    assert smallest_gap(levels, sets, 4 * hot) > 2.0**-bits > smallest_gap(levels, sets, hot / 4)
    assert smallest_gap(levels, sets, 0.7 * cold) > 2.0**-bits > smallest_gap(levels, sets, 1.5 * cold)


def test_the_sign_of_a_slope_does_not_matter() -> None:
    levels, sets = temperatures.add_query(6, all_sets(6, 3))
    for beta in (0.01, 3.0, 20.0):
        assert smallest_gap(levels, sets, -beta) == pytest.approx(smallest_gap(levels, sets, beta), rel=1e-4)


@pytest.fixture
def net() -> Net:
    levels = np.array([0.0, 1.0, 0.5])
    return Net(Shape(6), Task(levels[None, :, None], np.zeros(1, int), scope="last"), 3, "float64")


def test_the_temperature_of_a_head_is_the_slope_of_its_logits(net: Net) -> None:
    torch = framework()
    levels = np.array([0.0, 0.25, 1.0])
    h = net.embed(torch.from_numpy(levels[None, :, None]))
    q, k = (h @ net.factor(0, name)[0] for name in ("W_Q", "W_K"))
    logits = (q @ k.transpose(-1, -2))[0].detach().numpy() / 6**0.5
    for place, level in enumerate(levels):
        found = temperatures.of_head(net, level)
        assert found == pytest.approx(abs(logits[place, 2] - logits[place, 0]), rel=1e-9)
        assert found == pytest.approx(4 * abs(logits[place, 1] - logits[place, 0]), rel=1e-9)


@pytest.mark.parametrize("start", [1e-7, 1.0, 50.0])
def test_a_head_starts_at_the_temperature_that_is_asked_for(net: Net, start: float) -> None:
    values = net.tensors["0.W_V"].detach().clone()
    temperatures.start_head(net, 0.5, start)
    assert temperatures.of_head(net, 0.5) == pytest.approx(start, rel=1e-12)
    assert (net.tensors["0.W_V"] == values).all()
    sizes = [float(net.tensors[f"0.{name}"].detach().norm()) for name in ("W_Q", "W_K")]
    assert 0.3 < sizes[0] / sizes[1] < 3  # both are scaled, neither is left to do it alone


def test_a_temperature_of_nothing_is_refused(net: Net) -> None:
    with pytest.raises(OptionError, match=r"\[lab\] needs a positive .*start=0"):
        temperatures.start_head(net, 0.5, 0.0)
