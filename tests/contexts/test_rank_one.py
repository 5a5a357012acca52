"""Theorem K: constants, the head in float64 against its claim, and the claim in ball arithmetic."""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np
import pytest

from onelayer.contexts import projection, published, rank_one
from onelayer.contexts.agreement import ids
from onelayer.contexts.literal import precision
from onelayer.errors import HypothesisError
from onelayer.problems.separation import distinct

TOKENS = np.array([[1.0, 0.2], [0.3, 1.1], [-0.8, 0.9]])
TOY = TOKENS[[[0, 1], [0, 2], [1, 2]]]


def random_data(seed: int, vocabulary: int = 5, n: int = 3, d: int = 3) -> np.ndarray:
    """All sets of n tokens of a random vocabulary."""
    tokens = np.random.default_rng(seed).normal(size=(vocabulary, d)) + 0.5
    return tokens[list(itertools.combinations(range(vocabulary), n))]


def test_toy_example() -> None:
    run = rank_one.run_exact(TOY)
    assert run.separation_holds
    assert run.norm_holds
    assert run.log10_delta == pytest.approx(-5.9, abs=0.05)
    assert run.log10_gap_lower == pytest.approx(-2.7, abs=0.05)
    assert run.log10_delta > published.run(TOY).log10_delta + 970
    claim = rank_one.conclusion(TOY)
    assert claim.log10_delta == pytest.approx(run.log10_delta, abs=1e-9)
    assert claim.r == pytest.approx(run.r)


@pytest.mark.parametrize("spare_channel", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_claim_holds_in_ball_arithmetic(seed: int, spare_channel: bool) -> None:
    run = rank_one.run_exact(random_data(seed), seed=seed, spare_channel=spare_channel)
    assert run.separation_holds
    assert run.norm_holds
    assert run.log10_delta < run.log10_gap_lower
    claim = rank_one.conclusion(random_data(seed), seed=seed, spare_channel=spare_channel)
    assert claim.log10_delta == pytest.approx(run.log10_delta, abs=1e-6)
    assert claim.log10_delta <= run.log10_delta + 1e-9  # float64 rounds to the safe side
    assert claim.r == pytest.approx(run.r)


def test_sequences_of_different_lengths_and_an_arbitrary_direction() -> None:
    tokens = np.random.default_rng(9).normal(size=(4, 2)) + 1
    sets = [s for k in range(1, 5) for s in itertools.combinations(range(4), k)]
    X, lengths = np.zeros((len(sets), 4, 2)), [len(s) for s in sets]
    for row, s in zip(X, sets, strict=True):
        row[: len(s)] = tokens[list(s)]
    for direction in ([3.0, 1.0], [0.2, -5.0]):
        run = rank_one.run_exact(X, direction, lengths=lengths)
        assert run.separation_holds
        assert run.norm_holds


def test_rescaling_shifts_the_exponents_and_nothing_else() -> None:
    X = random_data(3)
    plain, scaled = rank_one.run_exact(X), rank_one.run_exact(X * 64)
    for name in ("log10_delta", "log10_gap_lower"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name) + math.log10(64), abs=1e-9)
    assert scaled.r == pytest.approx(64 * plain.r)


def test_translation_and_order_of_the_data() -> None:
    X = random_data(4)
    assert rank_one.run_exact(X + 2.0).separation_holds
    assert rank_one.run_exact(X[::-1, ::-1]) == rank_one.run_exact(X)


@pytest.mark.parametrize("seed", range(5))
def test_logits_are_at_least_two_apart(seed: int) -> None:
    """What Lemma B asks for, with the float64 constants as they are, in ball arithmetic."""
    tokens = np.random.default_rng(seed).normal(size=(6, 3)) + 0.5
    v = projection.search(tokens, seed)
    beta = rank_one.constants(tokens, v, 0.1, 5.0).beta
    with precision(200):
        y = sorted(
            sum((flint.arb(a) * x for a, x in zip(v.tolist(), row, strict=True)), flint.arb(0))
            for row in tokens.tolist()
        )
        smallest = min(abs(k) * (b - a) * beta for k in y for a, b in itertools.pairwise(y))
        assert smallest >= 2
        assert smallest < 2.0001


def test_constants_are_the_formulas() -> None:
    c = rank_one.constants([[1.0], [2.0], [4.0]], [1.0], eps=0.5, r_max=4.0)
    assert (c.g, c.m, c.M, c.D) == pytest.approx((1.0, 1.0, 4.0, 3.0))
    assert c.beta == pytest.approx(2.0)
    assert c.lam == pytest.approx(0.5 / 16)
    assert c.r == pytest.approx(4.125)
    assert c.delta == pytest.approx(0.404 * c.lam * 3 * math.exp(-2 * 4 * 3))
    assert c.log10_delta == pytest.approx(math.log10(c.delta))
    spare = rank_one.constants([[1.0], [2.0], [4.0]], [1.0], eps=0.5, r_max=4.0, spare_channel=True)
    assert spare.lam == 1.0
    assert spare.r == pytest.approx(math.hypot(4.0, 4.0))
    assert spare.delta == pytest.approx(c.delta / c.lam)


def test_delta_below_float64_keeps_its_logarithm() -> None:
    c = rank_one.constants([[1.0], [1.01], [40.0]], [1.0], eps=0.01, r_max=40.0)
    assert c.delta == 0.0
    assert -200_000 < c.log10_delta < -100_000


@pytest.mark.parametrize("spare_channel", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_head_in_float64_keeps_its_claim(seed: int, spare_channel: bool) -> None:
    X = random_data(seed, vocabulary=4, n=2, d=2)
    attention = rank_one.construct(X, seed=seed, spare_channel=spare_channel)
    claim = rank_one.conclusion(X, seed=seed, spare_channel=spare_channel)
    assert attention.W_Q.dtype == np.float64
    assert (attention.heads, attention.head_size, attention.b_Q, attention.b_K) == (1, 1, None, None)
    stream = np.concatenate([X, np.zeros((*X.shape[:2], int(spare_channel)))], axis=2)
    out = np.stack([ids(attention, x) for x in stream])
    contexts = [
        (tuple(X[i, k]), frozenset(map(tuple, X[i])), out[i, k]) for i in range(len(X)) for k in range(X.shape[1])
    ]
    gap = min(float(np.linalg.norm(a[2] - b[2])) for a, b in itertools.combinations(contexts, 2) if a[:2] != b[:2])
    resolved = max(10**claim.log10_delta, 1e-13)  # float64 cannot show more
    assert gap > resolved
    assert np.linalg.norm(out, axis=2).max() < claim.r
    if not spare_channel:
        exact = rank_one.run_exact(X, seed=seed)
        assert math.log10(gap) == pytest.approx(exact.log10_gap_lower, abs=1e-3)


def test_construct_reads_and_writes_along_one_direction() -> None:
    attention = rank_one.construct(TOY)
    v = projection.search(distinct(TOY)[0])
    for weights in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O):
        column = weights.reshape(-1)
        np.testing.assert_allclose(column / np.linalg.norm(column), v, rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (TOKENS[[[0, 1, 1]]], r"\[rank_one\].*sequence 0 has tokens 1 and 2 both equal to \(0.3, 1.1\).*positions"),
        (np.array([[[0.0, 0.0], [1.0, 1.0]]]), "sequence 0, token 0 is"),
        (np.ones((1, 1, 2)), "two tokens at least"),
    ],
)
def test_broken_hypotheses_are_named(X: np.ndarray, words: str) -> None:
    for use in (rank_one.hypotheses, rank_one.construct, rank_one.run_exact):
        with pytest.raises(HypothesisError, match=words):
            use(X)


@pytest.mark.parametrize("direction", [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
def test_a_direction_that_merges_or_cancels_tokens_is_refused(direction: list[float]) -> None:
    X = np.array([[[1.0, 0.0], [1.0, 1.0]]])
    with pytest.raises(HypothesisError, match="different nonzero levels"):
        rank_one.run_exact(X, direction)
