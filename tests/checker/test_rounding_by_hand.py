"""How far an arithmetic may take a network on boxes, step by step: every term of an error, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import (
    EXP_U,
    FLOAT32,
    FLOAT64,
    NORMAL,
    REAL,
    TINY,
    UP,
    Ball,
    U,
    add,
    dot,
    exact,
    gamma,
    guarded,
    linear,
    relu,
    softmax,
)
from onelayer_checker.core.graph import build
from onelayer_checker.core.layers import Layer
from onelayer_checker.functions import rounding
from onelayer_checker.functions.rounding import Value
from onelayer_checker.functions.slopes import dense
from tests.checker.drawn import numbers, small, tensors

ARITHMETICS = [FLOAT32, FLOAT64]


def value(seed: int, *shape: int) -> Value:
    return Value(
        Ball(numbers(seed, *shape), np.abs(numbers(seed + 1, *shape))), np.abs(numbers(seed + 2, *shape)) * 1e-6
    )


def are_same(found: Value, real: Ball, error: Any) -> None:
    np.testing.assert_array_equal(found.real.m, real.m)
    np.testing.assert_array_equal(found.real.r, real.r)
    np.testing.assert_array_equal(found.error, error)


def test_sizes_and_shapes() -> None:
    x = value(1, 4, 6)
    np.testing.assert_array_equal(x.known.m, (np.abs(x.real.m) + x.real.r) * UP)
    assert x.known.r is x.error
    moved = x.reshape(2, 2, 6).swap(1, 2)
    are_same(
        moved,
        Ball(*(a.reshape(2, 2, 6).swapaxes(1, 2) for a in (x.real.m, x.real.r))),
        x.error.reshape(2, 2, 6).swapaxes(1, 2),
    )


@pytest.mark.parametrize("A", ARITHMETICS, ids=lambda A: A.name)
def test_affine_maps_sums_and_products(A: Any) -> None:
    assert rounding.flushing_cost(3.0, 5, A) == 8 * 7 * (A.tiny + NORMAL) * 5.0 + TINY
    x, W, b, h = value(10, 4, 3), numbers(20, 3, 2), numbers(21, 2), value(30, 4, 2)
    largest = float(np.abs(W).max() + x.known.m.max() + x.error.max())
    cost = rounding.flushing_cost(largest, 3, A)
    bias = rounding.affine(x, W, b, A)
    are_same(bias, linear(x.real, W, b, REAL), (linear(x.known, W, b, A).r + cost) * UP)
    stream = rounding.affine(x, W, h, A)
    are_same(stream, linear(x.real, W, h.real, REAL), (linear(x.known, W, h.known, A).r + cost) * UP)
    y = value(40, 4, 3)
    both = rounding.total(x, y, A)
    are_same(both, add(x.real, y.real, REAL), (add(x.known, y.known, A).r + 4 * A.tiny) * UP + TINY)
    nothing = Value(exact(np.zeros((1, 1))), np.zeros((1, 1)))
    least = add(nothing.known, nothing.known, A).r + 4 * A.tiny
    assert rounding.total(nothing, nothing, A).error.tolist() == (least * UP + TINY).tolist()
    z = value(50, 3, 5)
    for extra in (0, 4):
        found = rounding.products(x, z, A, extra)
        are_same(found, dot(x.real, z.real, REAL), dot(x.known, z.known, A, extra).r)


def test_what_flushing_may_cost_is_asked_for_the_largest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(rounding, "flushing_cost", lambda *given: said.append(given) or 0.5)
    x, W = value(10, 4, 3), np.array([[1.0, -9.0], [2.0, 3.0], [0.5, 0.25]])
    found = rounding.affine(x, W, 0.0, FLOAT32)
    assert said == [(float(9.0 + x.known.m.max() + x.error.max()), 3, FLOAT32)]
    np.testing.assert_array_equal(found.error, (linear(x.known, W, 0.0, FLOAT32).r + 0.5) * UP)
    z = value(50, 3, 5)
    np.testing.assert_array_equal(rounding.products(x, z, FLOAT32).error, dot(x.known, z.known, FLOAT32, 0).r)


def test_tokens_are_rounded_where_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(rounding, "guarded", lambda *given: said.append(given) or given[0])
    network = build(tensors(False, False, False))
    for centre in (np.zeros((1, 3, 2)), np.full((1, 3, 2), -0.25)):
        rounding.largest_rounding(network, centre, np.abs(centre) / 2, FLOAT32)
        error, size, A = said.pop()
        assert (size.tolist(), A) == ((np.abs(centre) * 1.5).reshape(3, 2).tolist(), FLOAT32)
        assert error.tolist() == (size * (FLOAT32.u * UP) + FLOAT32.tiny).tolist()


def wanted_weights(logits: Value, visible: Any, A: Any) -> tuple[Ball, Any]:
    n, seen = logits.error.shape[-1], np.broadcast_to(visible, logits.error.shape)
    p, error = softmax(logits.real, visible, REAL), np.zeros(logits.error.shape)
    for row in np.ndindex(*logits.error.shape[:-1]):
        on = seen[row]
        t = logits.real.high[row][on].max() - logits.real.low[row][on].min()
        off = logits.error[row][on].max()
        L = t * (2 * U + 2 * A.roundings * A.u) + off * (1 + 4 * A.roundings * A.u) + (2 * EXP_U + A.exp_error)
        L = L * (UP * UP)
        v = (L + L * (1 + L) + 2 * gamma(n + 4, U) + gamma(2 * n + 8, A.u)) * (UP * UP)
        moved = np.minimum((p.m + p.r)[row], 1.0) * (v + v * v) * (UP * UP) + 8 * n * (A.tiny + TINY)
        error[row] = np.where(on, moved if v <= 1 else np.inf, 0.0)
    return p, error


@pytest.mark.parametrize("A", ARITHMETICS, ids=lambda A: A.name)
@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_a_softmax(A: Any, causal: bool) -> None:
    visible = np.tri(5, dtype=bool) if causal else True
    for spread, error in ((1.0, 1e-6), (1e3, 1e-3), (1.0, 0.3), (1.0, 0.6), (0.0, 0.0)):
        real = Ball(numbers(60, 2, 5, 5) * spread, np.abs(numbers(61, 2, 5, 5)) * 1e-3)
        logits = Value(real, np.abs(numbers(62, 2, 5, 5)) * error)
        are_same(rounding.weights(logits, visible, A), *wanted_weights(logits, visible, A))


def test_there_may_be_more_keys_than_queries() -> None:
    logits = Value(Ball(numbers(63, 2, 3, 7), np.abs(numbers(64, 2, 3, 7)) * 1e-3), np.full((2, 3, 7), 1e-6))
    are_same(rounding.weights(logits, True, FLOAT32), *wanted_weights(logits, True, FLOAT32))


def test_beyond_one_nothing_is_known_of_a_weight() -> None:
    zero = Ball(np.zeros((1, 2)), np.zeros((1, 2)))
    known = [rounding.weights(Value(zero, np.full((1, 2), e)), True, FLOAT64).error[0, 0] for e in (0.41, 0.42)]
    assert np.isfinite(known).tolist() == [True, False]


def test_between_layers_units_are_cut_and_after_the_last_they_are_not() -> None:
    layers = tuple(Layer(numbers(70 + i, 3, 3), numbers(80 + i, 3) - 20.0 * (i == 2)) for i in range(3))
    x = value(90, 4, 3)
    found = rounding.stack(layers, x, FLOAT32)
    for i, layer in enumerate(layers):
        x = rounding.affine(x, dense(layer), layer.bias, FLOAT32)
        x = Value(relu(x.real), x.error) if i < 2 else x
    are_same(found, x.real, x.error)
    assert (x.real.m < 0).any()


def with_bias(lifted: bool, deep: bool, biased: bool) -> dict[str, Any]:
    """A lift has a bias, too."""
    own = {"embedding.bias": small(111, 4)} if lifted and biased else {}
    return tensors(lifted, deep, biased) | own


@pytest.mark.parametrize(
    ("lifted", "deep", "biased", "causal"),
    [
        (True, True, True, True),
        (True, False, False, False),
        (False, True, False, True),
        (False, False, True, False),
    ],
)
@pytest.mark.parametrize("A", ARITHMETICS, ids=lambda A: A.name)
def test_the_rounding_of_a_network_step_by_step(
    lifted: bool, deep: bool, biased: bool, causal: bool, A: Any
) -> None:
    """Head by head, token by token of a sequence: as the network computes, one step after another."""
    network, B, n, d = build(with_bias(lifted, deep, biased), causal=causal), 3, 3, 2
    T, (H, w, s) = network.tensors, network.tensors["attention.W_Q"].shape
    centre, radius = small(140, B, n, d), np.abs(small(141, B, n, d)) / 64
    x = Ball(centre.reshape(B * n, d), radius.reshape(B * n, d))
    size = np.abs(x.m) + x.r
    h = Value(x, guarded(size * (A.u * UP) + A.tiny, size, A))
    if lifted:
        h = rounding.affine(h, T["embedding.lift"], T.get("embedding.bias", 0.0), A)
        places = exact(np.concatenate([T["embedding.positions"][:n]] * B))
        h = rounding.total(h, Value(places, np.zeros_like(places.m)), A)
    h = rounding.stack(network.feedforward.layers, h, A)
    columns = np.concatenate([T[f"attention.W_{name}"][i] for name in "QKV" for i in range(H)], axis=1)
    biases = [T[f"attention.b_{c}"][i] if f"attention.b_{c}" in T else np.zeros(s) for c in "QKV" for i in range(H)]
    read = rounding.affine(h, columns, np.concatenate(biases), A)

    def heads(k: int) -> Value:
        """[B, H, n, s]"""
        at = np.s_[:, k * H * s : (k + 1) * H * s]
        return Value(read.real[at], read.error[at]).reshape(B, n, H, s).swap(1, 2)

    q, k, v = (heads(i) for i in range(3))
    visible = np.tri(n, dtype=bool) if causal else True
    p = rounding.weights(rounding.products(q, k.swap(2, 3), A), visible, A)
    o = rounding.products(p, v, A, extra=4).swap(1, 2).reshape(B * n, H * s)
    z = rounding.affine(o, T["attention.W_O"].reshape(H * s, w), h, A)
    found = rounding.stack((network.bottleneck, *network.readout.layers), z, A)
    wanted = found.error.reshape(B, -1).max(axis=1)
    assert np.isfinite(wanted).all()
    np.testing.assert_array_equal(rounding.largest_rounding(network, centre, radius, A), wanted)


def test_what_it_costs_is_said_before_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(rounding, "spend", lambda *given: said.append(given))
    network = build(with_bias(True, True, True))
    rounding.largest_rounding(network, np.zeros((7, 3, 2)), np.zeros((7, 3, 2)), FLOAT32)
    layers = (network.bottleneck, *network.readout.layers, *network.feedforward.layers)
    sizes = [layer.inputs * layer.bias.size for layer in layers]
    assert len(sizes) == 4
    assert said == [("rounding on 7 boxes", 1e6 + 7 * 3 * 2.0 * sum(sizes), 24.0 * max(sizes))]
