"""A stream as wide as the tokens misses a cubic by 1/8, whatever heads, readout and length; more room ends it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.errors import HypothesisError, OptionError
from onelayer.impossible.narrow_stream import ERROR_LOWER, STATEMENT, _narrow, error_lower, target, witness
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.network.blocks import evaluate

SEVERAL = st.integers(1, 12)
SIZES = st.floats(-3, 3)


def narrow(rng: np.random.Generator, H: int, s: int, sizes: tuple[float, ...], **options) -> Transformer:
    """Random heads whose queries, keys, values and biases have sizes 10^sizes, and an affine embedding."""
    q, k, v, b = 10.0 ** np.array(sizes)
    attention = Attention(
        rng.normal(size=(H, 1, s)) * q,
        rng.normal(size=(H, 1, s)) * k,
        rng.normal(size=(H, 1, s)) * v,
        rng.normal(size=(H, s, 1)) / H,
        b_Q=rng.normal(size=(H, s)) * b,
        b_K=rng.normal(size=(H, s)),
        **options,
    )
    return Transformer(attention, Embedding(lift=rng.normal(size=(1, 1)), bias=rng.normal(size=1)))


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    SEVERAL,
    st.integers(1, 3),
    st.tuples(SIZES, SIZES, SIZES, SIZES),
    st.sampled_from(["softmax", "hardmax"]),
    st.sampled_from([False, False, True]),
)
def test_every_layer_misses_the_cubic(seed: int, H: int, s: int, sizes, kind, causal: bool) -> None:
    model = narrow(np.random.default_rng(seed), H, s, sizes, kind=kind, causal=causal)
    found = witness(model)
    assert found.error_lower > float(ERROR_LOWER) - 1e-15
    inputs = np.stack([found.first, found.second])
    assert np.abs(inputs).max() <= 1
    assert found.error_lower <= abs(target(inputs[0])[0, 0] - target(inputs[1])[0, 0]) / 2 + 1e-12


def test_the_two_inputs_have_equal_outputs_by_the_library_s_own_pass() -> None:
    rng = np.random.default_rng(0)
    for trial in range(60):
        model = narrow(rng, 1 + trial % 8, 2, (0.0, 0.0, 0.3, 0.5), kind="hardmax" if trial % 4 == 0 else "softmax")
        found = witness(model)
        first, second = (evaluate(model, X[None])[0, 0, 0] for X in (found.first, found.second))
        size = float(np.abs(model.attention.W_V).sum() * np.abs(model.attention.W_O).sum())
        assert abs(first - second) < 1e-11 * (1 + size)


def linear_head(total: float, **options) -> Attention:
    """One head with uniform weights whose value matrix is ``total``: x(t) = -total t / (2 + 2 total)."""
    zero, one = np.zeros((1, 1, 1)), np.ones((1, 1, 1))
    return Attention(zero, zero, one, total * one, **options)


def test_one_eighth_is_what_these_pairs_give() -> None:
    """x(t) = 3t/4 is the best line for t^3 in the sup norm, off by 1/4; nothing near it does better."""
    assert error_lower(Transformer(linear_head(-0.6))) == pytest.approx(0.125, abs=1e-15)
    rng = np.random.default_rng(1)
    for _ in range(100):
        near = narrow(rng, 4, 1, (0.0, 0.0, 0.0, 0.5))
        value = near.attention.W_V[:, 0, 0] @ near.attention.W_O[:, 0, 0]
        scaled = replace(near.attention, W_V=near.attention.W_V * (rng.normal(-0.6, 0.05) / value))
        assert error_lower(replace(near, attention=scaled)) > 0.125 - 1e-15


@pytest.mark.parametrize("total", [-1.0, -1.0 + 2.0**-53, -1.0 - 2.0**-52, 0.0, 1e300, -1e-300])
def test_gains_at_and_near_zero(total: float) -> None:
    assert error_lower(Transformer(linear_head(total))) > 0.125
    assert error_lower(Transformer(linear_head(total, causal=True))) >= 0.5 - 1e-15


def test_an_embedding_that_forgets() -> None:
    forgets = Transformer(linear_head(0.5), Embedding(lift=np.zeros((1, 1)), bias=np.ones(1)))
    assert error_lower(forgets) == 1.0


def test_no_readout_that_was_tried_is_better() -> None:
    """The best piecewise constant readout on a fine grid, for layers of the kind."""
    axis = np.linspace(-1, 1, 201)
    X = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2, 1)
    wanted = X[:, 0, 0] + (X[:, 0, 0] - X[:, 1, 0]) ** 3
    rng = np.random.default_rng(2)
    for _ in range(5):
        model = narrow(rng, 6, 1, (0.3, 0.3, 0.3, 0.3))
        outputs = evaluate(model, X)[:, 0, 0]
        bins = np.digitize(outputs, np.linspace(outputs.min(), outputs.max(), 2000))
        errors = [np.ptp(wanted[bins == b]) / 2 for b in np.unique(bins)]
        assert max(errors) > 0.125


def test_positions_tell_the_pair_apart() -> None:
    rng = np.random.default_rng(3)
    model = narrow(rng, 3, 1, (0.0, 0.0, 0.0, 0.0))
    found = witness(model)
    assert model.embedding is not None
    placed = replace(model, embedding=replace(model.embedding, positions=np.array([[0.0], [1.0]])))
    first, second = (evaluate(placed, X[None])[0, 0, 0] for X in (found.first, found.second))
    assert abs(first - second) > 1e-3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"embedding": Embedding(lift=np.ones((1, 1)), positions=np.array([[0.0], [1.0]]))}, "positions"),
        ({"embedding": Embedding(table=np.ones((3, 1)))}, "token ids"),
        ({"feedforward": (Linear(np.ones((1, 1)), np.zeros(1)),)}, "a feed-forward stack"),
    ],
)
def test_what_ends_it_is_named(change, words: str) -> None:
    with pytest.raises(HypothesisError, match=rf"\[narrow_stream\].*the model has {words}"):
        error_lower(replace(Transformer(linear_head(0.5)), **change))


def test_a_wider_stream_is_refused() -> None:
    wide = Attention(*(np.ones((1, 2, 1)) for _ in range(3)), np.ones((1, 1, 2)))
    with pytest.raises(HypothesisError, match="stream of width 2"):
        error_lower(Transformer(wide, Embedding(lift=np.ones((1, 2)))))


def test_statement() -> None:
    assert STATEMENT.standing == "ours"
    assert "d >= 1" in STATEMENT.says
    assert "1/8" in STATEMENT.says


def wide(rng: np.random.Generator, H: int, d: int, size: float, **options) -> Transformer:
    """Heads of full size that write into every component, and an affine embedding that mixes them."""
    W_Q, W_K, W_V, W_O = (rng.normal(size=(H, d, d)) * size for _ in range(4))
    attention = Attention(
        W_Q, W_K, W_V, W_O / H, b_Q=rng.normal(size=(H, d)), b_K=rng.normal(size=(H, d)), **options
    )
    return Transformer(attention, Embedding(lift=rng.normal(size=(d, d)), bias=rng.normal(size=d)))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(2, 6),
    st.floats(-1, 1),
    st.sampled_from(["softmax", "softmax", "hardmax"]),
)
def test_every_length_and_width_misses_it(seed: int, H: int, d: int, n: int, size: float, kind: str) -> None:
    model = wide(np.random.default_rng(seed), H, d, 10.0**size, kind=kind)
    found = witness(model, n)
    assert found.error_lower > float(ERROR_LOWER) - 1e-15
    assert found.first.shape == found.second.shape == (n, d)
    assert max(map(abs, found.diagonal)) <= 1
    apart = np.abs(target(found.first)[0] - target(found.second)[0]).max() / 2
    assert found.error_lower == pytest.approx(apart, abs=1e-12)


@pytest.mark.parametrize(("n", "d"), [(2, 2), (3, 1), (4, 1), (5, 3), (7, 2)])
def test_longer_pairs_have_equal_outputs_by_the_library_s_own_pass(n: int, d: int) -> None:
    rng = np.random.default_rng([n, d])
    for trial in range(8):
        model = wide(rng, 1 + trial % 4, d, 0.7, kind="hardmax" if trial == 3 else "softmax")
        found = witness(model, n)
        first, second = (evaluate(model, X[None])[0, 0] for X in (found.first, found.second))
        np.testing.assert_allclose(first, second, atol=1e-9 * (1 + np.abs(first).max()))


def test_the_witness_is_exact_and_odd_in_fractions() -> None:
    """x(t) - x(-t) is a line in t, in fractions, whatever the heads do: the heart of the proof."""
    for n, d in ((2, 1), (3, 2), (6, 3)):
        layer, _ = _narrow(wide(np.random.default_rng(n), 3, d, 1.0), n)
        assert layer is not None
        for t in (Fraction(1, 7), Fraction(1, 2), Fraction(1)):
            (plus, r), (minus, q) = layer.diagonal(t), layer.diagonal(-t)
            for i in range(d):
                line = -t * sum(u[i] for u in layer.moves)
                assert abs(plus[i] - minus[i] - line) <= r + q < Fraction(1, 10**80)


def test_two_tokens_of_one_component_are_the_cubic_of_their_difference() -> None:
    X = np.array([[0.3], [-0.9]])
    np.testing.assert_allclose(target(X), X + (X - X[::-1]) ** 3, atol=1e-15)


def test_writing_into_another_component_costs_as_much() -> None:
    """A head that puts its average into component 2 alone: x_1 = 0 misses 1/2, and moving x_2 is no help."""
    zero, one = np.zeros((1, 2, 1)), np.array([[[1.0], [0.0]]])
    heads = Attention(zero, zero, one, np.array([[[0.0, 0.7]]]))
    assert error_lower(Transformer(heads), 3) == pytest.approx(0.5, abs=1e-12)


def test_a_direction_that_the_output_forgets_is_found_exactly() -> None:
    """I + A of rank 1, and a stream narrower than the tokens: nu and -nu have the same output, and cost 1."""
    zero = np.zeros((1, 2, 1))
    heads = Attention(zero, zero, np.array([[[1.0], [2.0]]]), np.array([[[-1.0, 0.0]]]))
    found = witness(Transformer(heads), 4)
    assert found.error_lower == 1.0
    assert max(map(abs, found.diagonal)) == 1
    outputs = [evaluate(Transformer(heads), X[None])[0, 0] for X in (found.first, found.second)]
    np.testing.assert_allclose(*outputs, atol=1e-15)
    thin = Attention(*(np.ones((1, 1, 1)) for _ in range(4)))
    assert error_lower(Transformer(thin, Embedding(lift=np.array([[1.0], [3.0]])))) == 1.0


def test_steep_softmax_over_many_tokens_is_cut_where_it_is_nothing() -> None:
    steep = Attention(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)))
    layer, _ = _narrow(Transformer(replace(steep, b_Q=np.array([[1e6]]))), 50)
    assert layer is not None
    place, _ = layer._mean_place(layer.slopes[0])
    assert 0 <= place < Fraction(1, 10**80)
    assert layer._mean_place(-layer.slopes[0])[0] == 1 - place


def test_attention_that_is_no_average_is_refused() -> None:
    with pytest.raises(HypothesisError, match="linear attention"):
        error_lower(Transformer(linear_head(0.5, kind="linear")))
    with pytest.raises(OptionError, match="at least two tokens"):
        error_lower(Transformer(linear_head(0.5)), 1)
