"""A zero token sees the mean and nothing else, unless a query bias looks for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onelayer.constructions.contexts.agreement import compare, ids
from onelayer.constructions.contexts.zero_token import STATEMENT, agrees, conclusion, witness
from onelayer.errors import HypothesisError
from onelayer.model import Attention


def layer(rng: np.random.Generator, d: int, **options) -> Attention:
    H, s = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    return Attention(*(rng.normal(size=(H, d, s)) for _ in range(3)), rng.normal(size=(H, s, d)), **options)


@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
@pytest.mark.parametrize("causal", [False, True])
def test_no_layer_without_query_bias_tells_the_witnesses_apart(kind, causal: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        d = int(rng.integers(1, 5))
        X, Y = witness(rng.normal(size=d))
        key_biased = layer(rng, d, kind=kind, causal=causal)
        key_biased = Attention(**{**vars(key_biased), "b_K": rng.normal(size=key_biased.W_K.shape[::2])})
        agreement = agrees(key_biased, X, Y)
        assert agreement
        assert agreement.pairs == ((0, 0),)
        assert agreement.radius < 1e-7


def test_a_query_bias_tells_them_apart() -> None:
    rng = np.random.default_rng(1)
    X, Y = witness([0.6, -0.8])
    biased = layer(rng, 2)
    biased = Attention(**{**vars(biased), "b_Q": rng.normal(size=biased.W_Q.shape[::2])})
    assert not compare(biased, X, Y)
    with pytest.raises(HypothesisError, match=r"\[zero_token\].*query biases; head 0 has one"):
        agrees(biased, X, Y)


def test_a_zero_query_bias_is_none() -> None:
    plain = layer(np.random.default_rng(2), 2)
    zero = Attention(**{**vars(plain), "b_Q": np.zeros(plain.W_Q.shape[::2])})
    assert agrees(zero, *witness([1.0, 1.0]))


def test_other_tokens_see_the_difference() -> None:
    plain = layer(np.random.default_rng(3), 2)
    X, Y = witness([0.6, -0.8])
    shared = np.vstack([X, [[0.3, 0.4]]]), np.vstack([Y, [[0.3, 0.4]]])
    assert not compare(plain, *shared)


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.floats(-3, 3)),
    st.integers(0, 99),
)
def test_the_output_is_a_linear_function_of_the_mean(tokens: np.ndarray, seed: int) -> None:
    plain = layer(np.random.default_rng(seed), tokens.shape[1])
    X = np.vstack([tokens, np.zeros(tokens.shape[1])])
    np.testing.assert_allclose(ids(plain, X)[-1], conclusion(plain, X), atol=1e-11)


@pytest.mark.parametrize("direction", [[0.0, 0.0], [np.inf, 1.0], [1e308, 0.0], [[1.0]]])
def test_direction_is_checked(direction) -> None:
    with np.errstate(over="ignore"), pytest.raises(HypothesisError, match="nonzero finite direction"):
        witness(direction)


def test_conclusion_needs_whole_sequences() -> None:
    with pytest.raises(HypothesisError, match="causal"):
        conclusion(layer(np.random.default_rng(0), 1, causal=True), [[0.0], [1.0]])


def test_statement() -> None:
    assert STATEMENT.standing == "ours"
