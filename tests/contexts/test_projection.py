"""The projection lemma: its probability bound, both constants, the search, and the check of a given direction."""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onelayer.contexts import projection, rank_one
from onelayer.contexts.literal import precision
from onelayer.contexts.projection import constant, levels, published_constant, ratio_lower, search
from onelayer.errors import HypothesisError, PrecisionError


@pytest.mark.parametrize("d", [2, 3, 4, 5, 9, 33, 129])
def test_the_sphere_bound_holds_and_is_nearly_tight(d: int) -> None:
    """P(|<u, e>| < t) is the regularised incomplete beta function I_(t^2)(1/2, (d-1)/2)."""
    with precision(128):
        ratios = []
        for t in (1e-3, 0.01, 0.1, 0.3, 0.7, 0.99):
            exact = flint.arb(t * t).beta_lower(0.5, flint.arb(d - 1) / 2, regularized=True)
            bound = t * (flint.arb(2 * d) / flint.arb.pi()).sqrt()
            assert exact < bound
            ratios.append(float(exact / bound))
    assert max(ratios) > 1 - 1 / d  # the density at zero is what is summed


def test_our_constant_is_the_larger_one_and_never_above_one() -> None:
    for vocabulary in (1, 2, 3, 10, 1000):
        for d in (1, 2, 7, 512):
            assert published_constant(vocabulary, d) < constant(vocabulary, d) <= 1.0
    assert constant(1, 1) == 1.0
    assert published_constant(3, 2) == pytest.approx(math.sqrt(4 / math.pi) / 16)
    assert constant(3, 2) == pytest.approx(math.sqrt(math.pi / 4) / 6)


@pytest.mark.parametrize("seed", range(5))
def test_some_sampled_direction_reaches_our_constant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(5, 3)) + 0.3
    directions = rng.normal(size=(1000, 3))
    assert max(ratio_lower(tokens, v) for v in directions) >= constant(5, 3)


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, (4, 3), elements=st.floats(-5, 5).filter(lambda x: abs(x) > 1e-3), unique=True),
    hnp.arrays(np.float64, 3, elements=st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3)),
)
def test_levels_and_ratio_are_on_their_safe_side_and_close(tokens: np.ndarray, v: np.ndarray) -> None:
    with precision(256):
        y = sorted(
            sum((flint.arb(a) * b for a, b in zip(row, v.tolist(), strict=True)), flint.arb(0))
            for row in tokens.tolist()
        )
        g = min(b - a for a, b in itertools.pairwise(y))
        m, M, D = min(map(abs, y)), max(map(abs, y)), y[-1] - y[0]
        found = levels(tokens, v)
        for low, exact in ((found.g, g), (found.m, m)):
            assert low <= exact
            assert exact - low < 1e-12
        for high, exact in ((found.M, M), (found.D, D)):
            assert high >= exact
            assert high - exact < 1e-12
        vectors = [*tokens.tolist(), *((a - b).tolist() for i, a in enumerate(tokens) for b in tokens[:i])]
        norm = sum((flint.arb(x) ** 2 for x in v.tolist()), flint.arb(0)).sqrt()
        ratio = min(
            abs(sum((flint.arb(a) * b for a, b in zip(z, v.tolist(), strict=True)), flint.arb(0)))
            / (norm * sum((flint.arb(x) ** 2 for x in z), flint.arb(0)).sqrt())
            for z in vectors
        )
        assert ratio_lower(tokens, v) <= ratio + flint.arb("1e-13")  # the differences above are rounded once
        assert ratio - ratio_lower(tokens, v) < 1e-12


def test_search_maximises_what_theorem_k_proves() -> None:
    rng = np.random.default_rng(3)
    tokens = rng.normal(size=(6, 3)) + 1.0
    best = rank_one.constants(tokens, search(tokens, seed=1, tries=2000), eps=0.1, r_max=5.0).log10_delta
    others = np.random.default_rng(1).standard_normal((2000, 3))  # the very directions the search has seen
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    found = [levels(tokens, v) for v in others]
    deltas = [
        rank_one.constants(tokens, v, 0.1, 5.0).log10_delta
        for v, y in zip(others, found, strict=True)
        if y.g * y.m > 0
    ]
    assert best == pytest.approx(max(deltas), abs=1e-6)
    by_smallest = int(np.argmax([min(y.g, y.m) for y in found]))
    assert (
        rank_one.constants(tokens, others[by_smallest], 0.1, 5.0).log10_delta < best
    )  # min(g, m) is not the score


def test_search_is_reproducible_and_indifferent_to_scale_order_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = np.random.default_rng(0).normal(size=(8, 4))
    v = search(tokens, seed=5, tries=300)
    assert np.linalg.norm(v) == pytest.approx(1.0)
    np.testing.assert_array_equal(search(tokens, seed=5, tries=300), v)
    np.testing.assert_array_equal(search(1e-200 * tokens[::-1], seed=5, tries=300), v)
    assert not np.array_equal(search(tokens, seed=6, tries=300), v)
    monkeypatch.setattr(projection, "BLOCK", 64)
    np.testing.assert_array_equal(search(tokens, seed=5, tries=300), v)
    assert ratio_lower(tokens, v) > 0


@pytest.mark.parametrize("vocabulary", [2, 3, 6])
def test_search_keeps_the_published_inequality_if_it_is_asked_to(vocabulary: int) -> None:
    """The best of those that do: where the best of all does, that one."""
    kept = 0
    for seed in range(40):
        tokens = np.random.default_rng(seed).normal(size=(vocabulary, 2))
        needed = projection.published_constant(vocabulary, 2)
        best, found = projection.search(tokens), projection.search(tokens, needed=needed)
        projection.hypotheses(tokens, found)
        if projection.ratio_lower(tokens, best) >= needed:
            kept += 1
            assert np.array_equal(best, found)
    assert 0 < kept < 40


def test_no_direction_is_made_up() -> None:
    with pytest.raises(PrecisionError, match=r"\|v\.z\| >= 0\.99\|z\|"):
        projection.search(np.eye(3), tries=64, needed=0.99)


def test_more_tries_are_not_worse() -> None:
    tokens = np.random.default_rng(2).normal(size=(7, 5))
    deltas = [rank_one.constants(tokens, search(tokens, tries=t), 1.0, 5.0).log10_delta for t in (10, 100, 1000)]
    assert deltas == sorted(deltas)
    assert deltas[2] > deltas[0]


def test_a_direction_that_breaks_the_published_inequality_is_refused() -> None:
    tokens = np.array([[1.0, 0.2], [0.3, 1.1], [-0.8, 0.9]])
    projection.hypotheses(tokens, search(tokens))
    with pytest.raises(HypothesisError, match=r"\[projection\].*0.0705.*smallest ratio.*projection.search"):
        projection.hypotheses(tokens, tokens[0] @ np.array([[0, -1], [1, 0]]))


@pytest.mark.parametrize(
    ("tokens", "words"), [([[1.0, 2.0]], "two different tokens"), ([[0.0, 0.0], [1.0, 2.0]], "zero token")]
)
def test_tokens_without_a_direction(tokens: list[list[float]], words: str) -> None:
    with pytest.raises(HypothesisError, match=words):
        search(tokens, tries=50)
    if len(tokens) > 1:
        assert ratio_lower(tokens, [0.6, 0.8]) == 0.0
