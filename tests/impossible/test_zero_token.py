"""A zero token sees the mean and nothing else, unless a query bias looks for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onelayer.contexts.agreement import compare, ids
from onelayer.errors import HypothesisError
from onelayer.impossible import collision
from onelayer.impossible.zero_token import STATEMENT, agrees, conclusion, witness
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.network.blocks import evaluate


def layer(rng: np.random.Generator, d: int, **options) -> Attention:
    H, s = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    return Attention(*(rng.normal(size=(H, d, s)) for _ in range(3)), rng.normal(size=(H, s, d)), **options)


def readout(rng: np.random.Generator, width: int) -> tuple[Linear, ...]:
    return Linear(rng.normal(size=(width, 9)), rng.normal(size=9)), Linear(rng.normal(size=(9, 2)), np.zeros(2))


@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
@pytest.mark.parametrize("causal", [False, True])
def test_no_layer_without_query_bias_tells_the_witnesses_apart(kind, causal: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        d, width = int(rng.integers(1, 5)), int(rng.integers(1, 7))
        pair = witness(rng.normal(size=d))
        attention = layer(rng, width, kind=kind, causal=causal)
        attention = replace(attention, b_K=rng.normal(size=attention.W_K.shape[::2]))
        model = Transformer(attention, Embedding(lift=rng.normal(size=(d, width))))
        agreement = agrees(model, pair)
        assert agreement
        assert agreement.pairs == ((0, 0),)
        assert agreement.radius < 1e-6


def test_outputs_are_equal_bit_for_bit_and_a_target_that_differs_is_missed() -> None:
    """On (0, 1, -1) and (0, 2, -2) all sums are exact, so whole models give the same floats."""
    rng = np.random.default_rng(1)
    pair = witness()
    assert (pair.first.ravel().tolist(), pair.second.ravel().tolist()) == ([0, 1, -1], [0, 2, -2])

    def spread(X: np.ndarray) -> np.ndarray:
        return np.full(len(X), X.max() - X.min())

    assert pair.error_lower(spread) == pytest.approx(1.0)
    for _ in range(200):
        width = int(rng.integers(1, 7))
        embedding = Embedding(lift=rng.normal(size=(1, width)))
        model = Transformer(layer(rng, width), embedding, readout=readout(rng, width))
        y, z = (evaluate(model, X[None])[0, 0] for X in (pair.first, pair.second))
        assert (y == z).all()
        assert max(abs(y[0] - spread(pair.first)[0]), abs(z[0] - spread(pair.second)[0])) >= 1.0 - 1e-15


def test_a_query_bias_tells_them_apart() -> None:
    rng = np.random.default_rng(1)
    pair = witness([0.6, -0.8])
    biased = layer(rng, 2)
    biased = replace(biased, b_Q=rng.normal(size=biased.W_Q.shape[::2]))
    assert not compare(biased, pair.first, pair.second)
    assert not collision.agrees(Transformer(biased), [pair])
    with pytest.raises(HypothesisError, match=r"\[zero_token\].*no query bias; the model has a query bias"):
        agrees(Transformer(biased), pair)


def test_an_embedding_bias_tells_them_apart() -> None:
    rng = np.random.default_rng(1)
    pair = witness([0.6, -0.8])
    model = Transformer(layer(rng, 2), Embedding(lift=np.eye(2), bias=np.array([1.0, 0.5])))
    assert not collision.agrees(model, [pair])
    with pytest.raises(HypothesisError, match="an embedding bias"):
        agrees(model, pair)


def test_a_zero_query_bias_is_none() -> None:
    plain = layer(np.random.default_rng(2), 2)
    zero = replace(plain, b_Q=np.zeros(plain.W_Q.shape[::2]))
    assert agrees(Transformer(zero), witness([1.0, 1.0]))


def test_other_tokens_see_the_difference() -> None:
    plain = layer(np.random.default_rng(3), 2)
    pair = witness([0.6, -0.8])
    assert not compare(plain, *(np.vstack([X, [[0.3, 0.4]]]) for X in (pair.first, pair.second)))


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.floats(-3, 3)),
    st.integers(0, 99),
)
def test_the_output_is_a_linear_function_of_the_mean(tokens: np.ndarray, seed: int) -> None:
    plain = layer(np.random.default_rng(seed), tokens.shape[1])
    X = np.vstack([tokens, np.zeros(tokens.shape[1])])
    np.testing.assert_allclose(ids(plain, X)[-1], conclusion(Transformer(plain), X), atol=1e-11)


@pytest.mark.parametrize("direction", [[0.0, 0.0], [np.inf, 1.0], [1e308, 0.0], [[1.0]]])
def test_direction_is_checked(direction) -> None:
    with np.errstate(over="ignore"), pytest.raises(HypothesisError, match="nonzero finite direction"):
        witness(direction)


def test_conclusion_needs_whole_sequences() -> None:
    with pytest.raises(HypothesisError, match="causal"):
        conclusion(Transformer(layer(np.random.default_rng(0), 1, causal=True)), [[0.0], [1.0]])


def test_statement() -> None:
    assert STATEMENT.standing == "ours"
