"""Multisets: Lemma D against high-precision values, and how sharp it is."""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onelayer.contexts.duplicates import level_gap, separation_lower
from onelayer.contexts.literal import precision
from onelayer.errors import HypothesisError

Counts = tuple[int, ...]


def boltz(counts: Counts, levels: list[float]) -> flint.arb:
    """Balls at the current precision, the largest level subtracted from the exponents."""
    weights = [flint.arb(x - max(levels)).exp() * c for c, x in zip(counts, levels, strict=True)]
    return sum((w * x for w, x in zip(weights, levels, strict=True)), flint.arb(0)) / sum(weights, flint.arb(0))


def proportional(a: Counts, b: Counts) -> bool:
    return all(x * sum(b) == y * sum(a) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_lemma_d_holds_for_all_multisets_on_a_lattice_and_is_nearly_tight(n: int) -> None:
    levels = [level_gap(n) * i for i in range(4)]
    multisets = [
        m for m in itertools.product(range(n + 1), repeat=4) if sum(m) == n or (n < 4 and sum(m) in range(1, n))
    ]
    same_top, other_top = math.inf, math.inf
    with precision(200):
        values = {m: boltz(m, levels) for m in multisets}
        for a, b in itertools.combinations(multisets, 2):
            if proportional(a, b):
                assert values[a].overlaps(values[b])
                continue
            ratio = float(abs(values[a] - values[b]).lower()) / separation_lower(a, b, levels)
            if max(np.flatnonzero(a)) == max(np.flatnonzero(b)):
                same_top = min(same_top, ratio)
            else:
                other_top = min(other_top, ratio)
    assert 1.0 <= other_top < 1.03
    assert 1.0 <= same_top < 1.3


def test_the_decaying_constant_is_nearly_attained_for_large_n() -> None:
    n = 200
    g = level_gap(n)
    many_tops, many_bottoms = (0, 1, n - 1), (n - 1, 0, 1)
    with precision(200):
        difference = abs(boltz(many_tops, [0.0, g, 2 * g]) - boltz(many_bottoms, [0.0, g, 2 * g]))
        ratio = float(difference.lower()) / separation_lower(many_tops, many_bottoms, [0.0, g, 2 * g])
    assert 1.0 <= ratio < 1.02  # a constant 2% larger would fail


def test_two_log_n_is_needed() -> None:
    n = 200
    signs = []
    with precision(200):
        for extra in (0.5, 1.0):  # the two multisets change places near 2 log n + log 2
            g = 2 * math.log(n) + extra
            signs.append(boltz((n - 1, 0, 1), [0.0, g, 2 * g]) > boltz((0, 1, n - 1), [0.0, g, 2 * g]))
    assert signs == [False, True]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_lemma_d_on_random_multisets_and_levels(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 6))
    counts = st.lists(st.integers(0, 5), min_size=size, max_size=size).map(tuple).filter(any)
    a, b = data.draw(counts), data.draw(counts)
    assume(not proportional(a, b))
    gap = level_gap(max(sum(a), sum(b)))
    steps = data.draw(st.lists(st.floats(1.0, 3.0), min_size=size, max_size=size))
    levels = [-7.0 + x for x in np.cumsum(np.array(steps) * gap * (1 + 1e-9)).tolist()]
    with precision(400):
        assert abs(boltz(a, levels) - boltz(b, levels)) > flint.arb(separation_lower(a, b, levels))


def test_levels_may_come_in_any_order_and_be_shifted() -> None:
    a, b, levels = [1, 0, 2, 1], [1, 1, 0, 2], [0.0, 10.0, 20.0, 30.0]
    expected = separation_lower(a, b, levels)
    assert separation_lower(b, a, levels) == expected
    assert separation_lower(a[::-1], b[::-1], levels[::-1]) == expected
    assert separation_lower(a, b, [x - 100.0 for x in levels]) == expected
    assert separation_lower([*a, 0], [*b, 0], [*levels, 30.5]) == expected  # a level that does not occur


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.integers(1, 4))
def test_proportional_multiplicities_are_refused(counts: list[int], times: int) -> None:
    levels = [100.0 * i for i in range(len(counts))]
    with pytest.raises(HypothesisError, match=r"\[empirical_measure\].*proportional"):
        separation_lower(counts, [times * c for c in counts], levels)


@pytest.mark.parametrize(
    ("a", "b", "levels", "words"),
    [
        ([1, 1], [2, 1], [0.0, 3.0], r"\[lemma_d\].*n = 3; two levels are 3 apart.*Multiply"),
        ([1, 1], [2, 1], [3.0, 3.0], "Merge equal levels"),
        ([1, 1], [2, 1, 0], [0.0, 9.0], "same levels"),
        ([0, 0], [2, 1], [0.0, 9.0], "not all zero"),
        ([1, -1], [2, 1], [0.0, 9.0], "not negative"),
        ([0.5, 1], [2, 1], [0.0, 9.0], "whole"),
    ],
)
def test_broken_hypotheses_are_named(a, b, levels, words: str) -> None:
    with pytest.raises(HypothesisError, match=words):
        separation_lower(a, b, levels)
