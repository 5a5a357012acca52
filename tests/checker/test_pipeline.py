"""The whole network over balls against real evaluations: every order, precision and normalisation lies inside.

More than a million values are compared; none may be outside its ball.
"""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.graph import build
from tests.checker.large import ARITHMETICS

MODELS, N, n, d, width, s, c = 24, 240, 8, 4, 6, 2, 3


def random_network(rng, dtype, scale: float, positions: bool):
    def draw(*shape: int):
        return (rng.standard_normal(shape) * scale).astype(dtype)

    tensors = {
        "feedforward.0.weight": draw(2, 3, 4),
        "feedforward.0.bias": draw(8),
        "feedforward.1.weight": draw(8, width),
        "feedforward.1.bias": draw(width),
        "embedding.lift": draw(d, width),
        "embedding.bias": draw(width),
        "attention.W_Q": draw(1, width, s),
        "attention.W_K": draw(1, width, s),
        "attention.W_V": draw(1, width, s),
        "attention.W_O": draw(1, s, width),
        "attention.b_Q": draw(1, s),
        "attention.b_K": draw(1, s),
        "readout.0.weight": draw(width, c),
        "readout.0.bias": draw(c),
        "readout.1.weight": draw(c, 2),
        "readout.1.bias": draw(2),
    }
    return tensors | ({"embedding.positions": draw(n, width)} if positions else {})


def product(x, W, b, rng, how: str):
    """x W + b in one of the ways an arithmetic allows, in the dtype of x; the bias is a term like the others."""
    if how == "blas":
        return x @ W + b
    x, W = (
        np.concatenate([np.ones_like(x[..., :1]), x], axis=-1),
        np.concatenate([np.broadcast_to(b, W[:1].shape), W]),
    )
    order = np.arange(len(W)) if how == "bias first" else rng.permutation(len(W))
    if how == "wide":  # accumulate in a longer format, round once
        return (x[..., order].astype(np.longdouble) @ W[order].astype(np.longdouble)).astype(x.dtype)
    total = np.zeros((*x.shape[:-1], W.shape[1]), x.dtype)
    for k in order:
        total = total + x[..., k, None] * W[k]
    return total


def evaluate(T, X, lengths, rng, how: str, normalise_late: bool):
    """The coordinates t as a runtime might compute them."""
    zero = X.dtype.type(0)
    h = product(X, T["embedding.lift"], T["embedding.bias"], rng, how)
    if "embedding.positions" in T:
        h = h + T["embedding.positions"]
    W, b = T["feedforward.0.weight"], T["feedforward.0.bias"].reshape(2, 4)
    blocks = [product(h[..., 3 * g : 3 * g + 3], W[g], b[g], rng, how) for g in range(2)]
    h = product(
        np.maximum(np.concatenate(blocks, -1), 0), T["feedforward.1.weight"], T["feedforward.1.bias"], rng, how
    )
    q, k = (product(h, T[f"attention.W_{name}"][0], T[f"attention.b_{name}"][0], rng, how) for name in "QK")
    v = product(h, T["attention.W_V"][0], zero, rng, how)
    logits = q @ k.swapaxes(1, 2)
    logits = np.where((np.arange(n) < lengths[:, None])[:, None, :], logits, -np.inf)
    order = rng.permutation(n)
    logits, v = logits[..., order], v[:, order]
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    mass = weights.sum(-1, keepdims=True)
    averages = (weights @ v) / mass if normalise_late else (weights / mass) @ v
    z = h + product(averages, T["attention.W_O"][0], zero, rng, how)
    return np.maximum(product(z, T["readout.0.weight"], T["readout.0.bias"], rng, how), 0)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_every_evaluation_is_inside_its_ball(name: str) -> None:
    rng, dtype, A = np.random.default_rng([7, len(name)]), np.dtype(name), ARITHMETICS[name]
    compared, tightest = 0, 0.0
    for trial in range(MODELS):
        T = random_network(rng, dtype, float(rng.choice([0.3, 1.0, 3.0])), positions=bool(trial % 2))
        X = (rng.standard_normal((N, n, d)) * 10.0 ** rng.uniform(-1, 1)).astype(dtype)
        lengths = rng.integers(1, n + 1, N) if trial % 3 else np.full(N, n)
        inside = np.arange(n) < lengths[:, None]
        m, r = [], []
        for rows, t in build(T).coordinates(X, lengths, 0.0, A, last=False):
            m.append(t.m[inside[rows]])
            r.append(t.r[inside[rows]])
        middle, radius = np.concatenate(m), np.concatenate(r)
        for how in ("blas", "shuffled", "wide", "bias first"):
            for late in (False, True):
                value = evaluate(T, X, lengths, rng, how, late)[inside].astype(np.float64)
                error = np.abs(value - middle)
                assert (error <= radius).all()
                compared += error.size
                tightest = max(tightest, float((error / np.maximum(radius, 1e-300)).max()))
    assert compared >= 500_000
    assert tightest > 1e-3  # the balls are not absurdly large


def test_perturbed_inputs_stay_inside() -> None:
    """Tokens anywhere within the radius, in float64, against the ball for that radius."""
    rng, compared = np.random.default_rng(8), 0
    for radius in (1e-9, 1e-4, 1e-2, 0.3):
        T = random_network(rng, np.dtype("float64"), 0.7, positions=False)
        X, lengths = rng.standard_normal((N, n, d)), np.full(N, n)
        balls = [t for _, t in build(T).coordinates(X, lengths, radius, ARITHMETICS["float64"], last=False)]
        middle, r = (np.concatenate([getattr(b, part) for b in balls]) for part in ("m", "r"))
        for _ in range(20):
            moved = X + radius * rng.choice([-1.0, 1.0, 0.0, 0.5], X.shape)
            value = evaluate(T, moved, lengths, rng, "blas", late := bool(rng.integers(2)))
            assert (np.abs(value - middle) <= r).all(), (radius, late)
            compared += value.size
    assert compared >= 200_000


def test_two_random_networks_are_not_told_equal() -> None:
    """The ball of one network does not contain another's values: the comparison above can fail."""
    rng = np.random.default_rng(9)
    T, other = (random_network(rng, np.dtype("float64"), 1.0, positions=False) for _ in range(2))
    X, lengths = rng.standard_normal((4, n, d)), np.full(4, n)
    (_, t), *_ = build(T).coordinates(X, lengths, 0.0, ARITHMETICS["float64"], last=False)
    assert not (np.abs(evaluate(other, X, lengths, rng, "blas", True) - t.m) <= t.r).all()
