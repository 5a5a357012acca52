"""Spare channels instead of a quantiser: features that are continuous and tell all multisets apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.contexts.agreement import rounding_radius_upper
from onelayer.contexts.spare_channels import SpareChannels
from onelayer.contexts.temperature_heads import STATEMENT, construct, features, heads_needed
from onelayer.errors import HypothesisError
from onelayer.impossible import collision, narrow_stream, zero_token
from onelayer.network import Attention, Linear, Transformer
from onelayer.network.blocks import evaluate
from onelayer.statements import CATALOGUE

SHAPES = [(1, 1), (2, 1), (3, 1), (5, 1), (2, 2), (3, 2), (4, 3)]


def keys(built: SpareChannels) -> np.ndarray:
    d = built.scratch.start
    return built.attention.W_K[:, :d, 0]


def apart(built: SpareChannels, X: np.ndarray, Y: np.ndarray) -> float:
    """The largest difference of features by the library's own pass, in units of what rounding could make."""
    model, width = built.transformer(), len(built.channels)
    a, b = (evaluate(model, Z[None])[0, 0, built.scratch] for Z in (X, Y))
    lifted = [np.hstack([Z, np.zeros((len(Z), width - Z.shape[1]))]) for Z in (X, Y)]
    return float(np.abs(a - b).max()) / sum(rounding_radius_upper(built.attention, Z) for Z in lifted)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_stream_is_the_token_and_the_formula(n: int, d: int, dtype) -> None:
    built = construct(n, d, dtype=dtype)
    assert built.attention.heads == heads_needed(n, d) == 2 * n * d + 1
    X = np.random.default_rng(n).uniform(-1, 1, (20, n, d)).astype(dtype)
    stream = evaluate(built.transformer(), X)
    assert (stream[:, :, :d] == X).all()
    expected = features(X.astype(np.float64), keys(built).astype(np.float64))
    np.testing.assert_allclose(
        stream[:, :, d:], np.broadcast_to(expected[:, None], stream[:, :, d:].shape), atol=300 * np.finfo(dtype).eps
    )
    assert built.transformer().channels == built.channels
    assert len(built.channels) == d + 2 * n * d + 1


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SHAPES[1:]), st.sampled_from(["any", "one token", "repeated"]))
def test_different_multisets_have_different_features(seed: int, shape: tuple[int, int], how: str) -> None:
    n, d = shape
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    Y = X.copy()
    if how == "any":
        Y = rng.uniform(-1, 1, (n, d))
    elif how == "one token":
        Y[-1] = np.clip(Y[-1] + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-4, 0), -1, 1)
    else:  # {a, a, .., b} and {a, .., b, b}: the same tokens, other multiplicities
        X[:-1], Y[0], Y[1:] = X[0], X[0], X[-1]
    built = construct(n, d)
    same = sorted(X.tolist()) == sorted(Y.tolist())
    assert (apart(built, X, Y) > 1) == (not same)
    assert apart(built, X, X[rng.permutation(n)]) <= 1


def test_even_the_direction_that_moves_the_features_least_is_seen() -> None:
    rng = np.random.default_rng(0)
    for n, d in SHAPES[1:]:
        built = construct(n, d)
        for _ in range(10):
            X = rng.uniform(-1, 1, (n, d))
            steps = 1e-6 * np.eye(n * d).reshape(-1, n, d)
            slopes = (features(X + steps, keys(built)) - features(X - steps, keys(built))).T / 2e-6
            _, sizes, moves = np.linalg.svd(slopes)
            assert sizes[-1] > 1e-6 * sizes[0]
            least = moves[-1].reshape(n, d)
            assert apart(built, X, X + 1e-3 * least) > 1


def test_one_head_is_not_enough() -> None:
    """Two numbers have two degrees of freedom, a head's average one: bisection finds a pair it confuses."""
    built = construct(2, 1, scale=1.0)
    one = keys(built)[:1]
    wanted, low, high = features([[0.0], [1.0]], one)[0], 0.2, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        value = features([[0.2], [middle]], one)[0]
        low, high = (middle, high) if abs(value) < abs(wanted) else (low, middle)
    X, Y = np.array([[0.0], [1.0]]), np.array([[0.2], [low]])
    assert features(Y, one)[0] == pytest.approx(wanted, abs=1e-12)
    assert apart(built, X, Y) > 1e6


def test_features_are_lipschitz() -> None:
    """|d scratch| <= sum_j p_j |1 + y_j - scratch| |dy_j| <= (1 + spread) max |dy|."""
    rng = np.random.default_rng(1)
    for n, d in SHAPES:
        W = keys(construct(n, d))
        X = rng.uniform(-1, 1, (200, n, d))
        Y = np.clip(X + rng.normal(size=X.shape) * 10.0 ** rng.uniform(-6, -1, (200, 1, 1)), -1, 1)
        spread = 2 * np.abs(W).sum(1)
        moved = np.abs((X - Y) @ W.T).max(1)
        assert (np.abs(features(X, W) - features(Y, W)) <= (1 + spread) * moved + 1e-12).all()


def test_reordered_tokens_keep_their_features() -> None:
    rng = np.random.default_rng(2)
    built = construct(4, 2)
    X, order = rng.uniform(-1, 1, (30, 4, 2)), rng.permutation(4)
    model = built.transformer()
    np.testing.assert_allclose(evaluate(model, X[:, order]), evaluate(model, X)[:, order], atol=1e-13)


def test_what_narrow_and_unbiased_layers_confuse_is_told_apart() -> None:
    pair = zero_token.witness()
    assert apart(construct(3, 1, low=-2.0, high=2.0), pair.first, pair.second) > 1e6
    rng = np.random.default_rng(3)
    built = construct(2, 1)
    for _ in range(20):
        H = int(rng.integers(1, 9))
        heads = Attention(
            *(rng.normal(size=(H, 1, 1)) for _ in range(4)),
            b_Q=rng.normal(size=(H, 1)),
            b_K=rng.normal(size=(H, 1)),
        )
        found = narrow_stream.witness(Transformer(heads))
        assert apart(built, found.first, found.second) > 1e6
    with pytest.raises(HypothesisError, match="stream of width 6"):
        narrow_stream.error_lower(built.transformer())
    assert not collision.agrees(built.transformer(), [collision.Collision(found.first, found.second, (0, 0))])


def test_with_five_heads_the_cubic_is_met_better_than_any_narrow_layer_can() -> None:
    """Random ReLU units on the stream, output weights by least squares: below 1/8 on a grid not seen before."""

    def square(points: int) -> np.ndarray:
        axis = np.linspace(-1, 1, points)
        return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2, 1)

    def wanted(X: np.ndarray) -> np.ndarray:
        return X[:, :, 0] + (X[:, :, 0] - X[:, ::-1, 0]) ** 3

    built, X, rng = construct(2, 1), square(41), np.random.default_rng(0)
    h = evaluate(built.transformer(), X).reshape(-1, len(built.channels))
    V = rng.normal(size=(h.shape[1], 600)) / h.std(0)[:, None]
    b = -(h[rng.integers(len(h), size=600)] * V.T).sum(1)
    units = np.hstack([np.maximum(h @ V + b, 0), np.ones((len(h), 1))])
    w = np.linalg.lstsq(units, wanted(X).ravel(), rcond=1e-12)[0]
    model = built.transformer(Linear(V, b), Linear(w[:-1, None], w[-1:]))
    Z = square(150)
    assert np.abs(evaluate(model, Z)[:, :, 0] - wanted(Z)).max() < 0.8 * float(narrow_stream.ERROR_LOWER)


def test_far_boxes_and_seeds() -> None:
    rng = np.random.default_rng(4)
    built = construct(3, 2, low=99.0, high=101.0)
    X = rng.uniform(99, 101, (3, 2))
    assert apart(built, X, X + 0.01 * rng.normal(size=(3, 2))) > 1
    assert (keys(construct(3, 2, seed=1)) != keys(construct(3, 2, seed=2))).all()
    assert (keys(construct(3, 2, seed=1)) == keys(construct(3, 2, seed=1))).all()
    assert construct(2, 1, heads=9).attention.heads == 9


def test_hypotheses_are_named() -> None:
    with pytest.raises(HypothesisError, match=r"\[temperature_heads\].*2nd \+ 1 = 5 heads.*heads = 4"):
        construct(2, 1, heads=4)
    with pytest.raises(HypothesisError, match="box with an inside"):
        construct(2, 1, low=1.0, high=1.0)
    with pytest.raises(HypothesisError, match="n = 0"):
        construct(0, 1)


def test_statement() -> None:
    assert STATEMENT.standing == "ours"
    assert CATALOGUE["finite_witness"].source == "amir2023"
