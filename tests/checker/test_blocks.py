"""Blocks, heads and their rounding: bounds contain what is found by trying, and are not much larger."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer import approximate
from onelayer.network.forward import forward
from onelayer_checker.core.balls import FLOAT32, REAL, Ball
from onelayer_checker.functions import blocks, pooled
from onelayer_checker.functions.blocks import Group, Number
from onelayer_checker.functions.formulas import Meaning, Undefined, read_formula
from onelayer_checker.functions.rounding import Value

LINES = [
    ["x", 0],
    ["exp", 0],
    ["mul", 0, 0],
    ["sin", 0],
    ["const", (-0.3).hex()],
    ["add", 0, 4],
    ["relu", 5],
    ["abs", 5],
    ["mul", 1, 3],
    ["add", 2, 7],
    ["neg", 8],
    ["const", (2.5).hex()],
    ["mul", 11, 0],
    ["add", 12, 4],
]
VALUES = {
    0: lambda s: s,
    1: np.exp,
    2: np.square,
    3: np.sin,
    6: lambda s: np.maximum(s - 0.3, 0),
    7: lambda s: np.abs(s - 0.3),
    8: lambda s: np.exp(s) * np.sin(s),
    9: lambda s: s * s + np.abs(s - 0.3),
    10: lambda s: -np.exp(s) * np.sin(s),
    13: lambda s: 2.5 * s - 0.3,
}


def meaning() -> Meaning:
    box = [[(-1.0).hex(), (1.5).hex()]]
    entry = {
        "d": 1,
        "tokens": 3,
        "per": "token",
        "box": box,
        "lines": LINES,
        "outputs": [0],
        "meant": [0],
        "planned": [0],
    }
    with np.errstate(all="ignore"):
        return Meaning(read_formula(entry | {"stages": []}, "target"))


def units(rng: np.random.Generator, f, offset: float, count: int) -> tuple[np.ndarray, ...]:
    """Signs, biases and weights that follow f roughly, as functions of s = line + offset."""
    corners = np.sort(np.concatenate([[-1.0], rng.uniform(-1, 1.5, count)]))
    values = f(corners) + rng.normal(0, 0.05, len(corners))
    slopes = np.diff(np.append(values, f(1.5))) / np.diff(np.append(corners, 1.5))
    weights, signs = np.diff(slopes, prepend=0.0), np.ones(len(corners))
    for i in rng.integers(0, len(corners), len(corners) // 2):  # relu(u) = relu(-u) + u
        signs[i] = -1.0
    linear = weights[signs < 0].sum(), (weights * -(corners + offset))[signs < 0].sum()
    far = -1.0 + offset - 2.0
    biases = np.append(-(corners + offset) * signs, -far)
    return np.append(signs, 1.0), biases, np.append(weights, linear[0]), linear[1] + linear[0] * far + values[0]


@pytest.mark.parametrize("line", VALUES)
@pytest.mark.parametrize("seed", range(3))
def test_a_block_is_as_far_from_its_line_as_is_said(line: int, seed: int) -> None:
    rng = np.random.default_rng([seed, line])
    offset, error = rng.choice([0.0, 0.7, -3.1]), rng.choice([0.0, 0.02])
    signs, biases, weights, bias = units(rng, VALUES[line], offset, 12)
    group = Group(Number(0, offset, error), np.arange(len(signs)), signs, biases, np.zeros(len(signs)))
    with np.errstate(all="ignore"):
        found = blocks.follow_line(meaning(), [group], weights, bias, line)
    s = np.linspace(-1, 1.5, 20_001)
    worst = 0.0
    for moved in (-error, -error / 3, 0.0, error):
        G = np.maximum(signs * (s + offset + moved)[:, None] + biases, 0) @ weights + bias
        worst = max(worst, float(np.abs(G - VALUES[line](s) - found.offset).max()))
    assert worst <= found.error
    assert error > 0 or found.error <= 1.05 * worst + 1e-9


def test_slopes_are_those_of_the_pieces_where_the_number_may_be() -> None:
    rng, m = np.random.default_rng(0), meaning()
    for _ in range(100):
        count = int(rng.integers(1, 8))
        signs, biases, weights = rng.choice([-1.0, 1.0], count), rng.normal(0, 2, count), rng.normal(0, 1, count)
        group = Group(Number(0, 0.5, 0.1, 0.05), np.arange(count), signs, biases, np.zeros(count))
        s = np.linspace(-1 + 0.5 - 0.15, 1.5 + 0.5 + 0.15, 100_001)
        G = np.maximum(signs * s[:, None] + biases, 0) @ weights
        steepest = np.abs(np.diff(G) / np.diff(s)).max()
        assert steepest - 1e-6 <= blocks._steepest(m, group, weights) <= steepest + 1e-6


def test_columns_belong_together_if_they_are_equal_up_to_the_sign() -> None:
    W = np.array([[0.0, 1, -1, 2, 0, 1], [3, 0, -0.0, 0, -3, 1]])
    found = [(units.tolist(), signs.tolist()) for units, signs in blocks.group_columns(W)]
    assert found == [([0, 4], [1, -1]), ([1, 2], [1, -1]), ([3], [1]), ([5], [1])]


def test_a_line_that_needs_two_numbers_of_a_layer_is_not_followed() -> None:
    box = [[(0.0).hex(), (1.0).hex()]] * 2
    lines = [["x", 0], ["x", 1], ["mul", 0, 1]]
    entry = {
        "d": 2,
        "tokens": 1,
        "per": "token",
        "box": box,
        "lines": lines,
        "outputs": [2],
        "meant": [2],
        "planned": [2],
    }
    m = Meaning(read_formula(entry | {"stages": []}, "target"))
    with pytest.raises(Undefined, match="not a sum of functions of single numbers"):
        blocks.follow_line(m, blocks.plain([Number(0, 0.0, 0.0), Number(1, 0.0, 0.0)]), np.ones(2), 0.0, 2)


@pytest.mark.parametrize(
    "text", ["x*exp(-mean((x-y)**2))", "mean((x-y)**3)", "sin(3*x)*mean(cos(2*y))", "softmax(9*x*y, y)", "max(y)"]
)
def test_rounding_stays_below_its_bound_in_every_order_that_is_tried(text: str) -> None:
    """Sums of float32, term by term in random orders, against the same weights in float64."""
    model = approximate(text, n=40, tolerance=0.02, construction="formula")
    assert model.certificate is not None
    real, rounded = (float.fromhex(claim["bound"]) for claim in model.certificate.claims)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (30, 40, 1)).astype(np.float32)
    wide = {name: a.astype(np.float64) for name, a in model.transformer.tensors()}
    exact = forward(type(model.transformer).from_tensors(wide), X.astype(np.float64))
    for _ in range(3):
        found = in_some_order(dict(model.transformer.tensors()), X, rng)
        assert np.abs(found.astype(np.float64) - exact).max() <= (rounded - real) + 1e-12


def _sum(terms: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Over the last axis, one term after the other in a random order, in float32."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for i in rng.permutation(terms.shape[-1]):
        total = total + terms[..., i]
    return total


def _linear(x: np.ndarray, W: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if W.ndim == 3:  # a block for each group
        g, a, c = W.shape
        W = np.einsum("gh,gac->gahc", np.eye(g, dtype=W.dtype), W).reshape(g * a, g * c)
    terms = x[..., None, :] * W.T
    return _sum(np.concatenate([terms, np.broadcast_to(b[:, None], (*terms.shape[:-1], 1))], axis=-1), rng)


def in_some_order(T: dict[str, np.ndarray], X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The network in float32, every sum in an order of its own."""

    def stack(name: str, h: np.ndarray) -> np.ndarray:
        for i in range(sum(key.startswith(f"{name}.") for key in T) // 2):
            h = np.maximum(h, 0) if i else h
            h = _linear(h, T[f"{name}.{i}.weight"], T[f"{name}.{i}.bias"], rng)
        return h

    h = X
    if "embedding.lift" in T:
        h = _linear(h, T["embedding.lift"], np.zeros(T["embedding.lift"].shape[1], np.float32), rng)
    h = stack("feedforward", h)
    z = [h[..., None]]
    for g in range(len(T["attention.W_Q"])):
        zero = np.zeros(T["attention.W_Q"].shape[2], np.float32)
        q = _linear(h, T["attention.W_Q"][g], T["attention.b_Q"][g] if "attention.b_Q" in T else zero, rng)
        k, v = (_linear(h, T[f"attention.W_{name}"][g], zero, rng) for name in "KV")
        logits = _sum(q[:, :, None, :] * k[:, None], rng)
        p = np.exp(logits - logits.max(axis=-1, keepdims=True))
        o = _sum(p[:, :, None, :] * v.swapaxes(1, 2)[:, None], rng) / _sum(p, rng)[..., None]
        z.append(o[..., None, :] * T["attention.W_O"][g].T)
    return stack("readout", _sum(np.concatenate(z, axis=-1), rng))


def test_averages_in_float32_are_within_their_bound() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        n, sharp = int(rng.integers(1, 60)), 10.0 ** rng.uniform(-2, 2)
        logits, v = rng.uniform(-sharp, sharp, n).astype(np.float32), rng.uniform(-2, 2, n).astype(np.float32)
        p = np.exp(logits.astype(np.longdouble))
        exact = float((p * v).sum() / p.sum())
        e = np.exp(logits - logits.max())
        order = rng.permutation(n)
        found = float(_sum((e * v)[order], rng) / _sum(e, rng))
        ball, zero = Ball(np.zeros((1, 1, 1)), np.full((1, 1, 1), sharp)), np.zeros((1, 1, 1))
        value = Value(Ball(zero, np.full((1, 1, 1), 2.0)), zero)
        bound = float(pooled.average(Value(ball, zero), value, n, zero, FLOAT32).error[0, 0, 0])
        assert abs(found - exact) <= bound
    assert float(pooled.average(Value(ball, zero), value, 9, zero, REAL).error.max()) <= 1e-12
