"""Slopes of the network on boxes: T(b) - T(a) = J (b - a) for any two points a, b of the box, J in the enclosure.

Real arithmetic. Between two points a and b: an affine map multiplies differences; relu(u) - relu(v) = s (u - v)
with s in [0, 1], 1 where neither is negative, 0 where neither is positive; attention multiplies by its derivatives,
averaged over the segment between its two inputs, which lies in the (convex) box that encloses them, and a mean of
matrices lies in whatever interval matrix contains them all. So the stream differs by Z (b - a) for one matrix Z in
an interval matrix, and all later layers multiply the same Z: slopes are Z C + E with C known and |E| <= R.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onelayer_checker.core.balls import REAL, TINY, UP, Array, Ball, U, add, dot, exact, gamma, linear, relu
from onelayer_checker.core.budget import spend
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network, Stream
from onelayer_checker.core.layers import Layer, Stack
from onelayer_checker.functions.intervals import exp

#: Numbers in the widest layer of a readout or feed-forward stack that is looked at.
WIDEST = 1 << 14


@dataclass(frozen=True)
class Slopes:
    """Values [T, q] of T rows at the centre, and slopes Z C + E: Z [T, m, w], C [T, w, q], |E| <= R [T, m, q]."""

    value: Ball
    Z: Ball
    C: Array
    R: Array

    def ball(self) -> Ball:
        return Ball(_product(self.Z.m, self.C), (spread(self.Z, self.C) + self.R) * UP)


def inflation(k: int) -> float:
    """What covers the rounding of a sum of k products of non-negative numbers, and a few more operations."""
    return (1 + 4 * (k + 2) * U) * UP * UP


def spread(Z: Ball, C: Array) -> Array:
    """At least |Z' C - fl(Z.m C)| for every Z' in Z."""
    k = C.shape[-2]
    return _product(Z.r + gamma(2 * k + 4, U) * np.abs(Z.m), np.abs(C)) * inflation(k) + TINY


def _product(Z: Array, C: Array) -> Array:
    """[T, m, w] times [T, w, q]; or one matrix for all rows, which is one product."""
    if len(C) > 1 or len(Z) == 1:
        return np.asarray(Z @ C)
    return np.asarray((Z.reshape(-1, Z.shape[2]) @ C[0]).reshape(*Z.shape[:2], -1))


def times(x: Ball, y: Ball) -> Ball:
    """Encloses the products of numbers of two balls, entry by entry."""
    m, size = x.m * y.m, np.abs(x.m)
    return Ball(m, ((size + x.r) * y.r + x.r * np.abs(y.m) + np.abs(m) * (2 * U)) * (UP * UP) + TINY)


def through(layers: tuple[Layer, ...], value: Ball, Z: Ball, radius: Array) -> Slopes:
    """Encloses values at the centre and slopes after the layers; ``radius`` [T, m] is how far x may be from c."""
    T, m, w = Z.m.shape
    C, R = np.eye(w)[None], np.zeros((T, m, w))
    for i, layer in enumerate(layers):
        value, W = layer.apply(value, REAL), dense(layer)
        more = inflation(len(W))
        # fl(C W) - C W is at most gamma |C| |W|, which Z multiplies.
        lost = gamma(2 * len(W) + 4, U) * np.abs(C).sum(axis=2) * float(np.abs(W).max()) * more + TINY
        lost = ((np.abs(Z.m) + Z.r) * lost[:, None, :]).sum(axis=2, keepdims=True) * inflation(w)
        R = (R.reshape(-1, len(W)) @ np.abs(W)).reshape(T, m, -1) * more + lost
        C = (C.reshape(-1, len(W)) @ W).reshape(len(C), w, -1)
        if i + 1 < len(layers):
            steepest = np.abs(_product(Z.m, C)) + spread(Z, C)
            reach = ((steepest + R) * radius[:, :, None]).sum(axis=1) * (UP * UP)
            on, off = value.m - value.r > reach * UP, value.m + value.r < -reach * UP
            middle, half = np.where(on, 1.0, np.where(off, 0.0, 0.5)), np.where(on | off, 0.0, 0.5)
            # s = middle + e, |e| <= half: (Z C + E) s = Z (C middle) + (E s + Z C e), and |s| <= middle + half.
            R = (R * (middle + half)[:, None, :] + steepest * half[:, None, :]) * (UP * UP) + TINY
            C = C * middle[:, None, :]
            value = relu(value)
    return Slopes(value, Z, np.broadcast_to(C, (T, *C.shape[1:])), R)


def dense(layer: Layer) -> Array:
    """The weight as one matrix [in, out]."""
    if layer.weight.ndim == 2:
        return layer.weight
    g, a, b = layer.weight.shape
    W = np.zeros((g, a, g, b))
    W[np.arange(g), :, np.arange(g)] = layer.weight
    return W.reshape(g * a, g * b)


def network_slopes(network: Network, centre: Array, radius: Array) -> Slopes:
    """Encloses the outputs of all tokens [B n, q] at centres [B, n, d], and slopes on boxes of radii [B, n, d].

    Variables are token-major: slopes are [B n, n d, ...], those of token k with respect to all tokens.
    """
    widths = [
        layer.bias.size for layer in (network.bottleneck, *network.readout.layers, *network.feedforward.layers)
    ]
    if max(widths) > WIDEST or "embedding.table" in network.tensors:
        raise Malformed("claim", f"slopes are for real tokens and layers of at most {WIDEST} units")
    (B, n, d), (H, w, s) = centre.shape, network.tensors["attention.W_Q"].shape
    layers = (network.bottleneck, *network.readout.layers, *network.feedforward.layers)
    products = sum(layer.inputs * layer.bias.size for layer in layers)
    work = n * (w + n * d) * (products + 20.0 * sum(widths)) + n * n * H * s * d * (20.0 * n + w)
    scratch = 24.0 * max(layer.inputs * layer.bias.size for layer in layers)
    spend(f"{B:,} boxes of the network", 1e6 + 3 * B * work, scratch + 64.0 * B * n * (w + n * d) * max(widths))
    lift = network.tensors.get("embedding.lift", np.eye(d))
    h = replace(network, feedforward=Stack(())).embed(centre, 0.0, REAL)
    dh = exact(np.broadcast_to(lift, (B * n, *lift.shape)))  # [B n, d, w]
    if network.feedforward.layers:
        found = through(network.feedforward.layers, h, dh, radius.reshape(B * n, d))
        h, dh = found.value, found.ball()
    near = ((np.abs(dh.m) + dh.r) * radius.reshape(B * n, d, 1)).sum(axis=1) * (UP * UP)
    z = network.attend(Stream(network, h.reshape(B, n, -1), REAL), np.full(B, n), False)
    Z = attention_slopes(network, Ball(h.m, (h.r + near) * UP), dh, n)
    every = np.repeat(radius.reshape(B, 1, n * d), n, axis=1).reshape(B * n, n * d)
    return through((network.bottleneck, *network.readout.layers), z, Z, every)


def attention_slopes(network: Network, h: Ball, dh: Ball, n: int) -> Ball:
    """Encloses d z_k / d x_i [B n, n d, w] from h [B n, w] on the box and dh_i / dx_i [B n, d, w].

    With weights p and averages o of values v by logits q.k, in each head:
    do_k = sum_i p_ki dv_i + p_ki (v_i - o_k) (q_k . dk_i + dq_k . k_i), then dz_k = dh_k + do_k W_O.
    v_i - o_k is sum_j p_kj (v_i - v_j), which is small where p_ki is near 1.
    """
    T, (H, w, s) = network.tensors, network.tensors["attention.W_Q"].shape
    B, d, own = len(h.m) // n, dh.m.shape[1], np.arange(n)
    columns = [T[f"attention.W_{name}"].swapaxes(0, 1).reshape(w, -1) for name in "QKV"]
    biases = [T.get(f"attention.b_{name}", np.zeros((H, s))).ravel() for name in "QKV"]
    q, k, v = (_heads(linear(h, W, b, REAL), B, n, H, s) for W, b in zip(columns, biases, strict=True))
    dq, dk, dv = (_slopes_of_heads(linear(dh, W, 0.0, REAL), B, n, d, H, s) for W in columns)  # [B, H, token, d, s]
    visible = np.tri(n, dtype=bool) if network.causal else np.ones((n, n), bool)
    p = weights(dot(q, _swap(k, 2, 3), REAL), visible)  # [B, H, query, key]
    gaps = add(v[:, :, :, None], Ball(-v.m, v.r)[:, :, None], REAL)  # v_i - v_j, [B, H, i, j, s]
    gaps.m[:, :, own, own], gaps.r[:, :, own, own] = 0.0, 0.0
    away = dot(p[:, :, :, None, None], gaps[:, :, None], REAL)[..., 0, :]  # [B, H, query, key, s]
    pull = times(p[..., None], away)
    by_key = _swap(dot(q[:, :, None], _swap(dk, 3, 4), REAL), 2, 3)  # q_k . dk_i, [B, H, query, key, d]
    out = times(p[..., None, None], dv[:, :, None])  # [B, H, query, key, d, s]
    out = add(out, times(by_key[..., None], pull[..., None, :]), REAL)
    by_query = dot(dot(dq, _swap(k, 2, 3)[:, :, None], REAL), pull, REAL)  # [B, H, query, d, s]
    both = add(out[:, :, own, own], by_query, REAL)
    out.m[:, :, own, own], out.r[:, :, own, own] = both.m, both.r
    joined = Ball(*(a.transpose(0, 2, 3, 4, 1, 5).reshape(B * n, n * d, H * s) for a in (out.m, out.r)))
    moved = linear(joined, T["attention.W_O"].reshape(H * s, w), 0.0, REAL)
    Z = moved.reshape(B, n, n, d, w)
    kept = add(Z[:, own, own], dh.reshape(B, n, d, w), REAL)
    Z.m[:, own, own], Z.r[:, own, own] = kept.m, kept.r
    return Z.reshape(B * n, n * d, w)


def weights(logits: Ball, visible: Array) -> Ball:
    """Encloses the softmax over the last axis of wide balls: p_i = 1 / (1 + sum_(j != i) e^(a_j - a_i)), in which
    each logit but a_i occurs once, so that its extremes are those of the exponents."""
    n = visible.shape[-1]
    others = visible[:, None, :] & ~np.eye(n, dtype=bool)  # [query, i, j]
    low, high = logits.low, logits.high
    least = np.nextafter(low[..., None, :] - high[..., :, None], -np.inf)
    most = np.nextafter(high[..., None, :] - low[..., :, None], np.inf)
    few, many = (np.where(others, exp(x)[side], 0.0).sum(axis=-1) for side, x in enumerate((least, most)))
    slack = inflation(n)
    top, bottom = np.minimum(slack / (1 + few / slack), 1.0), 1 / ((1 + many * slack) * slack)
    m = top / 2 + bottom / 2
    r = np.maximum(top - m, m - bottom) * UP + TINY
    return Ball(np.where(visible, m, 0.0), np.where(visible, r, 0.0))


def _heads(x: Ball, B: int, n: int, H: int, s: int) -> Ball:
    """[B n, H s] -> [B, H, n, s]"""
    return _swap(x.reshape(B, n, H, s), 1, 2)


def _slopes_of_heads(x: Ball, B: int, n: int, d: int, H: int, s: int) -> Ball:
    """[B n, d, H s] -> [B, H, n, d, s]"""
    return Ball(*(a.reshape(B, n, d, H, s).transpose(0, 3, 1, 2, 4) for a in (x.m, x.r)))


def _swap(x: Ball, i: int, j: int) -> Ball:
    return Ball(x.m.swapaxes(i, j), x.r.swapaxes(i, j))
