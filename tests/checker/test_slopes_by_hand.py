"""Slopes of a network on boxes, step by step: every term of a radius, number by number."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import REAL, TINY, UP, Ball, U, add, dot, exact, gamma, linear, relu
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Stream, build
from onelayer_checker.core.layers import Layer
from onelayer_checker.functions import slopes
from onelayer_checker.functions.intervals import exp
from tests.checker.drawn import numbers, small, tensors


def ball(seed: int, *shape: int, r: float = 1e-3) -> Ball:
    return Ball(numbers(seed, *shape), np.abs(numbers(seed + 1, *shape)) * r)


def are_same(found: Ball, wanted: Ball) -> None:
    np.testing.assert_array_equal(found.m, wanted.m)
    np.testing.assert_array_equal(found.r, wanted.r)


def inflated(k: int) -> float:
    return (1 + 4 * (k + 2) * U) * UP * UP


def test_products_and_what_they_round() -> None:
    assert [slopes.inflation(k) for k in (1, 7, 10**6)] == [inflated(k) for k in (1, 7, 10**6)]
    x, y = ball(1, 4, 5), ball(3, 4, 5)
    radius = (np.abs(x.m) + x.r) * y.r + x.r * np.abs(y.m) + np.abs(x.m * y.m) * (2 * U)
    are_same(slopes.times(x, y), Ball(x.m * y.m, radius * (UP * UP) + TINY))
    zero = exact(np.zeros(1))
    assert slopes.times(zero, zero).r.tolist() == [TINY]
    for r in (1e-3, 0.0):
        Z, C = ball(5, 2, 3, 4, r=r), numbers(7, 2, 4, 6)
        wanted = (Z.r + gamma(12, U) * np.abs(Z.m)) @ np.abs(C) * inflated(4) + TINY
        np.testing.assert_array_equal(slopes.spread(Z, C), wanted)
        R = np.abs(numbers(8, 2, 3, 6)) * r
        found = slopes.Slopes(Z, Z, C, R).ball()
        are_same(found, Ball(Z.m @ C, (wanted + R) * UP))
    assert slopes.spread(exact(np.zeros((1, 1, 1))), np.zeros((1, 1, 1))).tolist() == [[[TINY]]]


def test_one_matrix_for_all_rows_is_one_product() -> None:
    Z, C = numbers(10, 5, 3, 4), numbers(11, 1, 4, 6)
    found = slopes._product(Z, C)
    assert found.shape == (5, 3, 6)
    np.testing.assert_allclose(found, Z @ C, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(found, (Z.reshape(15, 4) @ C[0]).reshape(5, 3, 6))
    for rows in (1, 5):
        each = numbers(12, rows, 4, 6)
        np.testing.assert_array_equal(slopes._product(Z[:rows], each), Z[:rows] @ each)


def test_blocks_on_the_diagonal() -> None:
    W = numbers(13, 3, 2, 4)
    found = slopes.dense(Layer(W, np.zeros(12)))
    wanted = np.zeros((6, 12))
    for g in range(3):
        wanted[2 * g : 2 * g + 2, 4 * g : 4 * g + 4] = W[g]
    np.testing.assert_array_equal(found, wanted)
    plain = numbers(14, 2, 3)
    assert slopes.dense(Layer(plain, np.zeros(3))) is plain


@pytest.mark.parametrize("reach", [0.0, 0.02, 3.0])
@pytest.mark.parametrize("r", [0.0, 1e-3])
@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_slopes_through_layers(reach: float, r: float, scale: float) -> None:
    T, m, w, widths = 6, 3, 4, (4, 5, 5, 2)
    layers = tuple(
        Layer(small(20 + i, a, b) * (scale if i < 2 else 1.0), small(30 + i, b))
        for i, (a, b) in enumerate(pairwise(widths))
    )
    value, Z = Ball(small(40, T, w), np.full((T, w), r)), Ball(small(41, T, m, w), np.full((T, m, w), r))
    radius, given = np.abs(small(42, T, m)) * reach, value
    C, R = np.broadcast_to(np.eye(w), (T, w, w)), np.zeros((T, m, w))
    kinks = 0
    for i, layer in enumerate(layers):
        W, k = layer.weight, len(layer.weight)
        value = layer.apply(value, REAL)
        lost = gamma(2 * k + 4, U) * np.abs(C).sum(axis=2) * np.abs(W).max() * inflated(k) + TINY
        lost = ((np.abs(Z.m) + Z.r) * lost[:, None, :]).sum(axis=2, keepdims=True) * inflated(w)
        R = (R.reshape(-1, k) @ np.abs(W)).reshape(T, m, -1) * inflated(k) + lost
        C = (C.reshape(-1, k) @ W).reshape(T, w, -1)
        if i < 2:
            steepest = np.abs(Z.m @ C) + slopes.spread(Z, C)
            far = ((steepest + R) * radius[:, :, None]).sum(axis=1) * (UP * UP)
            on, off = value.m - value.r > far * UP, value.m + value.r < -far * UP
            kinks += int((~on & ~off).sum())
            middle, half = np.where(on, 1.0, np.where(off, 0.0, 0.5)), np.where(on | off, 0.0, 0.5)
            R = (R * (middle + half)[:, None, :] + steepest * half[:, None, :]) * (UP * UP) + TINY
            C, value = C * middle[:, None, :], relu(value)
    found = slopes.through(layers, given, Z, radius)
    assert kinks > 0 or reach < 1 or not scale
    are_same(found.value, value)
    are_same(found.Z, Z)
    np.testing.assert_allclose(found.C, C, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found.R, R, rtol=1e-13, atol=0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_unit_is_on_or_off_from_the_first_float_beyond_its_reach(side: float) -> None:
    Z, radius, W = exact(np.full((1, 1, 1), 0.75)), np.full((1, 1), 0.3), np.ones((1, 1))
    lost = gamma(6, U) * 1.0 * 1.0 * inflated(1) + TINY
    R = 0.75 * lost * inflated(1)
    steepest = 0.75 + slopes.spread(Z, np.ones((1, 1, 1)))[0, 0, 0]
    far = float((steepest + R) * 0.3 * (UP * UP) * UP)
    for m, slope in ((2 * far, 0.5), (np.nextafter(2 * far, np.inf), 1.0 if side > 0 else 0.0)):
        first = SimpleNamespace(
            weight=W, apply=lambda *_, m=m: Ball(np.full((1, 1), side * m), np.full((1, 1), far))
        )
        last = SimpleNamespace(weight=W, apply=lambda value, _: value)
        assert slopes.through((first, last), Z, Z, radius).C.tolist() == [[[slope]]]  # type: ignore[arg-type]


def test_weights_of_wide_logits() -> None:
    logits, slack = Ball(numbers(50, 2, 4, 4) / 8, np.abs(numbers(51, 2, 4, 4)) / 8), inflated(4)
    for visible in (np.ones((4, 4), bool), np.tri(4, dtype=bool)):
        found = slopes.weights(logits, visible)
        for at in np.ndindex(2, 4, 4):
            b, q, i = at
            low, high = logits.low[b, q], logits.high[b, q]
            others = visible[q] & (np.arange(4) != i)
            few = np.where(others, exp(np.nextafter(low - high[i], -np.inf))[0], 0.0).sum()
            many = np.where(others, exp(np.nextafter(high - low[i], np.inf))[1], 0.0).sum()
            top, bottom = min(slack / (1 + few / slack), 1.0), 1 / ((1 + many * slack) * slack)
            m = top / 2 + bottom / 2
            wanted = (m, max(top - m, m - bottom) * UP + TINY) if visible[q, i] else (0.0, 0.0)
            assert (found.m[at], found.r[at]) == wanted


CASES = [
    (True, True, True, True),
    (True, False, False, False),
    (False, True, False, True),
    (False, False, True, False),
]


def sliced(x: Ball, *at: Any) -> Ball:
    return Ball(x.m[at], x.r[at])


@pytest.mark.parametrize(("lifted", "deep", "biased", "causal"), CASES)
def test_slopes_of_attention_head_by_head(lifted: bool, deep: bool, biased: bool, causal: bool) -> None:
    """do_k = sum_i p_ki dv_i + p_ki (v_i - o_k) (q_k . dk_i + dq_k . k_i), in balls, pair by pair."""
    network, B, n, d = build(tensors(lifted, deep, biased), causal=causal), 2, 3, 2
    T, (H, w, s) = network.tensors, network.tensors["attention.W_Q"].shape
    h = Ball(small(60, B * n, w), np.abs(small(61, B * n, w)) / 50)
    dh = Ball(small(62, B * n, d, w), np.abs(small(63, B * n, d, w)) / 50)
    found = slopes.attention_slopes(network, h, dh, n)
    assert found.m.shape == (B * n, n * d, w)
    visible = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    for b, k, i in np.ndindex(B, n, n):
        parts = []
        for a in range(H):
            W = {c: T[f"attention.W_{c}"][a] for c in "QKV"}
            bias = {c: T[f"attention.b_{c}"][a] if f"attention.b_{c}" in T else np.zeros(s) for c in "QKV"}
            rows = {c: linear(sliced(h, slice(b * n, b * n + n)), W[c], bias[c], REAL) for c in "QKV"}
            moved = {
                c: [linear(Ball(dh.m[b * n + j], dh.r[b * n + j]), W[c], 0.0, REAL) for j in range(n)]
                for c in "QKV"
            }
            logits = dot(rows["Q"], Ball(rows["K"].m.T, rows["K"].r.T), REAL)
            p = slopes.weights(Ball(logits.m[None], logits.r[None]), visible)
            weight = Ball(p.m[0, k], p.r[0, k])
            pulls = []
            for j in range(n):
                gaps = add(sliced(rows["V"], slice(j, j + 1)), Ball(-rows["V"].m, rows["V"].r), REAL)
                gaps.m[j], gaps.r[j] = 0.0, 0.0
                away = dot(Ball(weight.m[None], weight.r[None]), gaps, REAL)[0]
                pulls.append(slopes.times(sliced(weight, slice(j, j + 1)), away))
            own = sliced(weight, slice(i, i + 1))
            query = sliced(rows["Q"], slice(k, k + 1))
            by_key = dot(query, Ball(moved["K"][i].m.T, moved["K"][i].r.T), REAL)  # [1, d]
            out = slopes.times(Ball(own.m[:, None], own.r[:, None]), moved["V"][i])
            turned = Ball(by_key.m.T, by_key.r.T)
            out = add(out, slopes.times(turned, Ball(pulls[i].m[None], pulls[i].r[None])), REAL)
            if i == k:
                asked = dot(moved["Q"][k], Ball(rows["K"].m.T, rows["K"].r.T), REAL)  # [d, n]
                pull = Ball(np.stack([x.m for x in pulls]), np.stack([x.r for x in pulls]))
                out = add(out, dot(asked, pull, REAL), REAL)
            parts.append(out)
        joined = Ball(np.concatenate([x.m for x in parts], 1), np.concatenate([x.r for x in parts], 1))
        wanted = linear(joined, T["attention.W_O"].reshape(H * s, w), 0.0, REAL)
        wanted = add(wanted, Ball(dh.m[b * n + k], dh.r[b * n + k]), REAL) if i == k else wanted
        at = np.s_[b * n + k, i * d : i * d + d]
        np.testing.assert_allclose(found.m[at], wanted.m, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.r[at], wanted.r, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("wide", [0.05, 3.0])
@pytest.mark.parametrize(("lifted", "deep", "biased", "causal"), CASES)
def test_slopes_of_a_network_step_by_step(
    lifted: bool, deep: bool, biased: bool, causal: bool, wide: float
) -> None:
    network, B, n, d = build(tensors(lifted, deep, biased), causal=causal), 2, 3, 2
    centre, radius = small(70, B, n, d), np.abs(small(71, B, n, d)) * wide
    T, w = network.tensors, network.tensors["attention.W_Q"].shape[1]
    lift = T["embedding.lift"] if lifted else np.eye(d)
    place = np.tile(T["embedding.positions"][:n], (B, 1)) if lifted else np.zeros((B * n, w))
    h = linear(exact(centre.reshape(B * n, d)), lift, 0.0, REAL) if lifted else exact(centre.reshape(B * n, d))
    h = add(h, exact(place), REAL) if lifted else h
    dh = exact(np.broadcast_to(lift, (B * n, d, w)))
    if deep:
        found = slopes.through(network.feedforward.layers, h, dh, radius.reshape(B * n, d))
        h, dh = found.value, found.ball()
    near = ((np.abs(dh.m) + dh.r) * radius.reshape(B * n, d, 1)).sum(axis=1) * (UP * UP)
    z = network.attend(Stream(network, h.reshape(B, n, -1), REAL), np.full(B, n), False)
    Z = slopes.attention_slopes(network, Ball(h.m, (h.r + near) * UP), dh, n)
    every = np.stack([radius[b].ravel() for b in range(B) for _ in range(n)])
    wanted = slopes.through((network.bottleneck, *network.readout.layers), z, Z, every)
    found = slopes.network_slopes(network, centre, radius)
    for one, other in ((found.value, wanted.value), (found.Z, wanted.Z)):
        np.testing.assert_allclose(one.m, other.m, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(one.r, other.r, rtol=1e-13, atol=0)
    np.testing.assert_allclose(found.R, wanted.R, rtol=1e-13)
    np.testing.assert_allclose(found.C, wanted.C, rtol=1e-13)


def test_what_is_too_wide_or_has_words_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network, at = build(tensors(True, True, True)), np.zeros((1, 3, 2))
    for widest, fits in ((6, True), (5, False)):
        monkeypatch.setattr(slopes, "WIDEST", widest)
        if fits:
            slopes.network_slopes(network, at, at)
        else:
            with pytest.raises(Malformed, match="at most 5 units"):
                slopes.network_slopes(network, at, at)
    monkeypatch.setattr(slopes, "WIDEST", 100)
    network.tensors["embedding.table"] = np.zeros((2, 2))
    with pytest.raises(Malformed):
        slopes.network_slopes(network, at, at)


def test_what_it_costs_is_said_before_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(slopes, "spend", lambda *given: said.append(given))
    network, B, n, d = build(tensors(True, True, True)), 2, 3, 2
    slopes.network_slopes(network, np.zeros((B, n, d)), np.zeros((B, n, d)))
    H, w, s = network.tensors["attention.W_Q"].shape
    layers = (network.bottleneck, *network.readout.layers, *network.feedforward.layers)
    sizes = [(layer.inputs * layer.bias.size, layer.bias.size) for layer in layers]
    products, units = (sum(x) for x in zip(*sizes, strict=True))
    widest = max(x for _, x in sizes)
    work = n * (w + n * d) * (products + 20.0 * units) + n * n * H * s * d * (20.0 * n + w)
    memory = 24.0 * max(x for x, _ in sizes) + 64.0 * B * n * (w + n * d) * widest
    assert said == [("2 boxes of the network", 1e6 + 3 * B * work, memory)]
