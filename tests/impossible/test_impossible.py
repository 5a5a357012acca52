"""What no layer can do without positions, lengths or a nonlinear readout, and that each of these ends it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onelayer.errors import HypothesisError
from onelayer.impossible import collision, constant_outputs, order, proportional
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.network.blocks import evaluate


def random_model(rng: np.random.Generator, d: int, readout: int = 2, **options) -> Transformer:
    """Biases everywhere, 1 to 4 heads, a feed-forward stack half of the time."""
    width, H, s = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(1, 4))

    def linear(inputs: int, outputs: int) -> Linear:
        return Linear(rng.normal(size=(inputs, outputs)), rng.normal(size=outputs))

    attention = Attention(
        *(rng.normal(size=(H, width, s)) for _ in range(3)),
        rng.normal(size=(H, s, width)),
        b_Q=rng.normal(size=(H, s)),
        b_K=rng.normal(size=(H, s)),
        **options,
    )
    stack = (linear(width, 5), linear(5, width)) if rng.random() < 0.5 and readout > 1 else ()
    layers = (linear(width, 6), linear(6, 1))[2 - readout :] if readout > 1 else (linear(width, 1),) * readout
    embedding = Embedding(lift=rng.normal(size=(d, width)), bias=rng.normal(size=width))
    return Transformer(attention, embedding, stack, layers)


def with_positions(model: Transformer, n: int) -> Transformer:
    assert model.embedding is not None
    places = np.random.default_rng(0).normal(size=(n, model.attention.W_Q.shape[1]))
    return replace(model, embedding=replace(model.embedding, positions=places))


# --- proportions -----------------------------------------------------------------------------------------------


def test_no_layer_tells_u_v_from_u_u_v_v() -> None:
    rng = np.random.default_rng(0)
    for trial in range(300):
        d, times = int(rng.integers(1, 5)), int(rng.integers(2, 5))
        pairs = proportional.witness(rng.normal(size=d), rng.normal(size=d), times)
        model = random_model(rng, d)
        if trial % 3 == 0:
            model = replace(model, attention=replace(model.attention, kind="hardmax"))
        agreement = proportional.agrees(model, pairs)
        assert agreement
        assert agreement.pairs == ((0, 0), (1, times))
        assert trial % 3 or agreement.radius < 1e-3


def test_a_target_that_counts_is_missed_by_half_of_the_difference() -> None:
    pairs = proportional.witness([0.3], [-0.5])
    assert collision.error_lower(pairs, lambda X: X.sum(0).repeat(len(X))) == pytest.approx(0.1)
    assert collision.error_lower(pairs, lambda X: X.mean(0).repeat(len(X))) == 0.0
    rng = np.random.default_rng(1)
    for _ in range(50):
        model = random_model(rng, 1)
        errors = [np.abs(evaluate(model, X[None])[0] - X.sum()).max() for X in (pairs[0].first, pairs[0].second)]
        assert max(errors) > 0.1 - 1e-9


def test_one_v_more_is_seen_and_so_are_places() -> None:
    rng = np.random.default_rng(0)
    model = random_model(rng, 2)
    pairs = proportional.witness([1.0, 0.5], [-0.3, 0.8])
    once = pairs[0].first
    assert not collision.agrees(model, [collision.Collision(once, np.vstack([once, once[1]]), (0, 0))])
    placed = with_positions(model, 4)
    outputs = [evaluate(placed, X[None])[0, 0] for X in (once, pairs[0].second)]
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-6
    with pytest.raises(HypothesisError, match=r"\[empirical_measure\].*without positions"):
        proportional.agrees(placed, pairs)


def test_proportions_are_checked() -> None:
    with pytest.raises(HypothesisError, match="two different tokens"):
        proportional.witness([1.0], [1.0])
    with pytest.raises(HypothesisError, match="times = 1"):
        proportional.witness(1.0, 2.0, times=1)
    with pytest.raises(HypothesisError, match="causal"):
        proportional.agrees(random_model(np.random.default_rng(0), 1, causal=True), proportional.witness(1.0, 2.0))


# --- order -----------------------------------------------------------------------------------------------------


def test_reordered_tokens_get_reordered_outputs() -> None:
    rng = np.random.default_rng(2)
    for trial in range(200):
        n, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        pairs = order.witness(rng.normal(size=(n, d)), rng.permutation(n) if trial % 2 else None)
        assert all((p.first[p.places[0]] == p.second[p.places[1]]).all() for p in pairs)
        assert order.agrees(random_model(rng, d), pairs)


def test_running_sums_and_reversal_are_missed() -> None:
    """ "The token at the mirrored place" is off from its reordered self by the distance of two tokens."""
    X = np.array([[0.0], [0.25], [1.0]])
    assert collision.error_lower(order.witness(X), lambda Z: Z[::-1]) == 0.0  # reversal commutes with reversing
    assert collision.error_lower(order.witness(X, [1, 0, 2]), lambda Z: Z[::-1]) == pytest.approx(0.5)
    assert collision.error_lower(order.witness(X), lambda Z: Z.cumsum(0)) == pytest.approx(0.625)
    rng = np.random.default_rng(3)
    for _ in range(50):
        model = random_model(rng, 1)
        errors = [np.abs(evaluate(model, Z[None])[0] - Z[::-1]).max() for Z in (X, X[[1, 0, 2]])]
        assert max(errors) > 0.5 - 1e-9


@pytest.mark.parametrize("how", ["positions", "a causal mask"])
def test_positions_and_masks_see_the_order(how: str) -> None:
    rng = np.random.default_rng(4)
    pairs = order.witness(rng.normal(size=(3, 2)))
    model = random_model(rng, 2, causal=how == "a causal mask")
    model = with_positions(model, 3) if how == "positions" else model
    outputs = [evaluate(model, X[None])[0] for X in (pairs[0].first, pairs[0].second)]
    assert np.abs(outputs[0][::-1] - outputs[1]).max() > 1e-6
    with pytest.raises(HypothesisError, match=rf"\[equivariance\].*the model has {how}"):
        order.agrees(model, pairs)


def test_order_is_checked() -> None:
    with pytest.raises(HypothesisError, match="permutation of the places"):
        order.witness(np.zeros((3, 1)), [0, 0, 1])
    with pytest.raises(HypothesisError, match=r"sequence \[n, d\]"):
        order.witness(np.zeros(3))


# --- constants -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readout", [0, 1])
def test_on_equal_tokens_every_layer_is_affine(readout: int) -> None:
    rng = np.random.default_rng(5)
    for trial in range(200):
        n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        model = random_model(
            rng, d, readout, causal=trial % 2 == 0, kind="hardmax" if trial % 3 == 0 else "softmax"
        )
        token = rng.normal(size=d)
        outputs = evaluate(model, np.tile(token, (1, n, 1)))[0]
        np.testing.assert_allclose(outputs, np.tile(constant_outputs.conclusion(model, token), (n, 1)), atol=1e-10)


def test_the_size_of_a_token_is_missed_by_half() -> None:
    line = constant_outputs.witness([-1.0], [1.0], n=3)
    assert line.error_lower(lambda X: np.abs(X)) == pytest.approx(0.5)
    assert line.error_lower(lambda X: 3 * X + 1) == 0.0
    rng = np.random.default_rng(6)
    for _ in range(100):
        model = random_model(rng, 1, readout=1)
        sequences = (line.first, line.middle, line.last)
        assert max(np.abs(evaluate(model, X[None])[0] - np.abs(X)).max() for X in sequences) > 0.5 - 1e-9


def test_one_relu_in_the_readout_ends_it() -> None:
    silent = Attention(*(np.zeros((1, 1, 1)) for _ in range(4)))
    size = (Linear(np.array([[1.0, -1.0]]), np.zeros(2)), Linear(np.ones((2, 1)), np.zeros(1)))
    model = Transformer(silent, readout=size)
    line = constant_outputs.witness(-1.0, 1.0)
    for X in (line.first, line.middle, line.last):
        assert (evaluate(model, X[None])[0] == np.abs(X)).all()
    with pytest.raises(HypothesisError, match=r"\[constant_outputs\].*a readout of several layers"):
        constant_outputs.conclusion(model, [1.0])


def test_lines_are_checked() -> None:
    with pytest.raises(HypothesisError, match="two different finite tokens"):
        constant_outputs.witness([1.0], [1.0])
    with pytest.raises(HypothesisError, match="middle is exact"):
        constant_outputs.witness([1.0], [2.0**-60])
