"""Theorem 1: random hardmax layers all fail on the witness, and a searched softmax head separates it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onelayer.contexts.agreement import compare, compare_exactly, ids, rounding_radius_upper
from onelayer.contexts.hardmax import refutes, softmax_separates, witness
from onelayer.errors import HypothesisError
from onelayer.network import Attention


def layer(rng: np.random.Generator, d: int, whole: bool, biased: bool, dtype=np.float64) -> Attention:
    """1 to 8 heads; whole weights in {-1, 0, 1} make exact ties common."""
    H, s = int(rng.integers(1, 9)), int(rng.integers(1, 5))

    def draw(*shape: int) -> np.ndarray:
        return (rng.integers(-1, 2, shape) if whole else rng.normal(size=shape)).astype(dtype)

    biases = {"b_Q": draw(H, s), "b_K": draw(H, s)} if biased else {}
    causal = bool(rng.random() < 0.2)
    return Attention(
        draw(H, d, s), draw(H, d, s), draw(H, d, s), draw(H, s, d), kind="hardmax", causal=causal, **biases
    )


def test_two_thousand_hardmax_layers_fail_where_a_softmax_head_succeeds() -> None:
    rng = np.random.default_rng(0)
    ties = 0
    for trial in range(2000):
        d, n = int(rng.integers(1, 5)), int(rng.choice([4, 5, 6, 9]))
        whole = trial % 3 == 0
        u = rng.integers(1, 4, d) if whole else rng.normal(size=d)
        X, Y, shared = witness(u, n)
        attention = layer(rng, d, whole, biased=trial % 2 == 0, dtype=np.float32 if trial % 5 == 0 else np.float64)
        agreement = refutes(attention, X, Y)
        assert agreement
        assert {(i, i) for i in shared} == set(agreement.pairs)
        assert agreement.radius < (1e-1 if attention.W_Q.dtype == np.float32 else 1e-9)
        ties += not attention.W_Q.any() or whole
        if trial % 100 == 0:
            separated = softmax_separates(X, Y)
            assert separated
            assert separated.gap > 1e-3 * np.linalg.norm(u)
    assert ties > 600


def test_the_same_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(1)
    for trial in range(60):
        d = int(rng.integers(1, 4))
        X, Y, _ = witness(rng.normal(size=d), int(rng.choice([4, 7])))
        agreement = compare_exactly(layer(rng, d, trial % 2 == 0, biased=True), X, Y)
        assert agreement
        assert (agreement.difference, agreement.radius) == (0.0, 0.0)


def test_exact_arithmetic_decides_where_floating_point_breaks_a_tie() -> None:
    """The logit of the key a u for the query c u is -c u (1 - a u) - c u a u = -c u for all a."""
    head = Attention(
        np.array([[[-1.0, 1.0]]]),
        np.array([[[-1.0, -1.0]]]),
        np.ones((1, 1, 2)),
        np.ones((1, 2, 1)),
        b_K=np.array([[1.0, 0.0]]),
        kind="hardmax",
    )
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(200):
        X, Y, _ = witness(rng.uniform(0.1, 1, 1))
        broken += not compare(head, X, Y)
        assert refutes(head, X, Y)
    assert broken > 10


def test_softmax_in_place_of_hardmax_separates() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        X, Y, _ = witness(rng.normal(size=2) / 4)
        soft = replace(layer(rng, 2, whole=False, biased=False), kind="softmax", causal=False)
        assert not compare(soft, X, Y)


def test_hardmax_does_tell_other_pairs_apart() -> None:
    X, _, _ = witness([1.0])
    head = Attention(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)), kind="hardmax")
    assert not refutes(head, X, np.array([[-4.0], [-2.0], [2.0], [8.0]]))
    assert refutes(head, X, X)


def test_three_tokens_on_a_line_are_no_witness() -> None:
    """Largest, smallest and mean determine three numbers: three hardmax heads give them different ids."""
    W_Q, b_Q = np.zeros((3, 1, 1)), np.array([[1.0], [-1.0], [0.0]])
    ones = np.ones((3, 1, 1))
    heads = Attention(W_Q, ones, ones, np.array([[[1.0]], [[10.0]], [[100.0]]]), b_Q=b_Q, kind="hardmax")
    X, Y = np.array([[-2.0], [1.0], [2.0]]), np.array([[-2.0], [0.5], [2.0]])
    assert not refutes(heads, X, Y)
    with pytest.raises(HypothesisError, match=r"\[theorem_1\].*n = 3"):
        witness([1.0], n=3)


@pytest.mark.parametrize("n", [4, 5, 8, 33, 1000])
def test_witness_has_what_the_proof_uses(n: int) -> None:
    u = np.random.default_rng(n).normal(size=3)
    X, Y, shared = witness(u, n)
    assert X.shape == Y.shape == (n, 3)
    multiples_X, multiples_Y = X[:, 0] / X[2, 0] * 2, Y[:, 0] / X[2, 0] * 2
    for Z, multiples in ((X, multiples_X), (Y, multiples_Y)):
        np.testing.assert_array_equal(Z, np.outer(multiples, X[2] / 2))  # collinear without any rounding
        assert len(np.unique(multiples)) == n
        assert np.abs(multiples).min() > 0
    assert multiples_X.max() == multiples_Y.max() == -multiples_X.min() == -multiples_Y.min()
    assert multiples_X.sum() == multiples_Y.sum()
    assert [i for i in range(n) if (X[i] == Y[i]).all()] == list(shared)
    assert set(multiples_X) != set(multiples_Y)
    np.testing.assert_allclose(X[2] / 2, u, rtol=2.0**-31)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_searched_head_does_not_depend_on_scale(scale: float) -> None:
    X, Y, _ = witness([scale, 0.0])
    separated = softmax_separates(X, Y)
    assert separated
    assert separated.gap == pytest.approx(scale * softmax_separates(*witness([1.0, 0.0])[:2]).gap)


def test_rounding_radius_bounds_the_rounding_of_float32() -> None:
    rng = np.random.default_rng(4)
    for kind in ("softmax", "hardmax"):
        used = []
        for _ in range(100):
            attention = replace(layer(rng, 3, False, True, np.float32), kind=kind)
            X = rng.normal(size=(6, 3)).astype(np.float32)
            precise = replace(
                attention,
                **{k: w.astype(np.float64) for k, w in vars(attention).items() if isinstance(w, np.ndarray)},
            )
            error = np.abs(ids(attention, X) - ids(precise, X.astype(np.float64))).max()
            used.append(error / rounding_radius_upper(attention, X))
        assert 1e-5 < max(used) < 1


def test_logits_beyond_float_leave_nothing_to_conclude() -> None:
    head = Attention(np.full((1, 1, 1), 1e20), np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)))
    assert rounding_radius_upper(head, np.array([[1.0], [2.0]])) == np.inf


@pytest.mark.parametrize("direction", [[0.0], [np.nan, 1.0], [[1.0]]])
def test_direction_is_checked(direction) -> None:
    with pytest.raises(HypothesisError, match="nonzero finite direction"):
        witness(direction)


def test_requests_are_checked() -> None:
    X, Y, _ = witness([1.0])
    head = Attention(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)))
    with pytest.raises(HypothesisError, match="the layer has softmax attention"):
        refutes(head, X, Y)
    with pytest.raises(HypothesisError, match="share none"):
        softmax_separates(X, Y + 100)
