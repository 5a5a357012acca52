"""How far an arithmetic may take the network from its real value, on whole boxes of inputs.

At each step every number of the network has a real value v(x), of size at most `size` for all x of the box, and
every value that the arithmetic allows for it is within `error` of v(x), the same x. One step of the kernel, applied
to the ball (v(x), error), encloses what the arithmetic makes of it, around the real result; its radius grows with
|v(x)| and with the error, so that the radius at (size, error) is the next error for all x at once. The one part
that does not grow is added at its largest: flushing, which a small v(x) suffers. ReLU moves no two numbers apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import (
    EXP_U,
    NORMAL,
    REAL,
    TINY,
    UP,
    Arithmetic,
    Array,
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
from onelayer_checker.core.budget import spend
from onelayer_checker.core.graph import Network
from onelayer_checker.core.layers import Layer
from onelayer_checker.functions.slopes import dense


@dataclass(frozen=True)
class Value:
    real: Ball  # contains the real values on the box
    error: Array

    @property
    def known(self) -> Ball:
        """Size and error, as a ball for the kernel."""
        return Ball((np.abs(self.real.m) + self.real.r) * UP, self.error)

    def reshape(self, *shape: int) -> Value:
        return Value(self.real.reshape(*shape), self.error.reshape(*shape))

    def swap(self, i: int, j: int) -> Value:
        return Value(Ball(self.real.m.swapaxes(i, j), self.real.r.swapaxes(i, j)), self.error.swapaxes(i, j))


def flushing_cost(size: float, terms: int, A: Arithmetic) -> float:
    """What flushing subnormal operands and results may cost a sum of so many products."""
    return 8 * (terms + 2) * (A.tiny + NORMAL) * (2 + size) + TINY


def affine(x: Value, W: Array, b: Value | Array | float, A: Arithmetic) -> Value:
    """x W + b, one sum; b is a bias, or a value such as the residual stream."""
    known, own = (b.known, b.real) if isinstance(b, Value) else (b, b)
    largest = float(np.abs(W).max() + x.known.m.max() + x.error.max())
    error = linear(x.known, W, known, A).r + flushing_cost(largest, W.shape[-2], A)
    return Value(linear(x.real, W, own, REAL), error * UP)


def total(x: Value, y: Value, A: Arithmetic) -> Value:
    return Value(add(x.real, y.real, REAL), (add(x.known, y.known, A).r + 4 * A.tiny) * UP + TINY)


def products(x: Value, y: Value, A: Arithmetic, extra: int = 0) -> Value:
    return Value(dot(x.real, y.real, REAL), dot(x.known, y.known, A, extra).r)


def weights(logits: Value, visible: Array | bool, A: Arithmetic) -> Value:
    """Softmax, as the kernel argues: with L the perturbation of an exponent, log p moves by L + (L + L^2) and
    roundings while L <= 1, and p by at most p (v + v^2) while v <= 1; |t| is at most the spread of the logits."""
    n, x = logits.error.shape[-1], logits.real
    p = softmax(x, visible, REAL)
    high, low = np.where(visible, x.high, -np.inf), np.where(visible, x.low, np.inf)
    t = high.max(axis=-1, keepdims=True) - low.min(axis=-1, keepdims=True)
    largest = np.where(visible, logits.error, 0.0).max(axis=-1, keepdims=True)
    L = t * (2 * U + 2 * A.roundings * A.u) + largest * (1 + 4 * A.roundings * A.u) + (2 * EXP_U + A.exp_error)
    L = L * (UP * UP)
    v = (L + L * (1 + L) + 2 * gamma(n + 4, U) + gamma(2 * n + 8, A.u)) * (UP * UP)
    moved = np.minimum(p.m + p.r, 1.0) * (v + v * v) * (UP * UP) + 8 * n * (A.tiny + TINY)
    moved = np.where(v <= 1, moved, np.inf)
    return Value(p, np.where(visible, moved, 0.0))


def stack(layers: tuple[Layer, ...], x: Value, A: Arithmetic) -> Value:
    for i, layer in enumerate(layers):
        x = affine(x, dense(layer), layer.bias, A)
        if i + 1 < len(layers):
            x = Value(relu(x.real), x.error)
    return x


def largest_rounding(network: Network, centre: Array, radius: Array, A: Arithmetic) -> Array:
    """At least |T_A(x) - T(x)| [B] for inputs x of boxes [B, n, d], and every value T_A(x) that A allows."""
    T, (B, n, d) = network.tensors, centre.shape
    layers = (network.bottleneck, *network.readout.layers, *network.feedforward.layers)
    largest = max(layer.inputs * layer.bias.size for layer in layers)
    work = B * n * sum(2.0 * layer.inputs * layer.bias.size for layer in layers)
    spend(f"rounding on {B:,} boxes", 1e6 + work, 24.0 * largest)
    x = Ball(centre.reshape(B * n, d), radius.reshape(B * n, d))
    size = np.abs(x.m) + x.r  # of tokens, which are real numbers, rounded where they are read
    h = Value(x, guarded(size * (A.u * UP) + A.tiny, size, A))
    if "embedding.lift" in T:
        h = affine(h, T["embedding.lift"], T.get("embedding.bias", 0.0), A)
    if "embedding.positions" in T:
        places = exact(np.tile(T["embedding.positions"][:n], (B, 1)))
        h = total(h, Value(places, np.zeros_like(places.m)), A)
    h = stack(network.feedforward.layers, h, A)
    H, w, s = T["attention.W_Q"].shape
    columns = np.concatenate([T[f"attention.W_{name}"].swapaxes(0, 1).reshape(w, -1) for name in "QKV"], axis=1)
    biases = np.concatenate([T.get(f"attention.b_{name}", np.zeros((H, s))).ravel() for name in "QKV"])
    read = affine(h, columns, biases, A)
    parts = (np.s_[:, a : a + H * s] for a in (0, H * s, 2 * H * s))
    q, k, v = (Value(read.real[at], read.error[at]).reshape(B, n, H, s).swap(1, 2) for at in parts)
    p = weights(products(q, k.swap(2, 3), A), np.tri(n, dtype=bool) if network.causal else True, A)
    o = products(p, v, A, extra=4).swap(1, 2).reshape(B * n, H * s)
    z = affine(o, T["attention.W_O"].reshape(H * s, w), h, A)
    found = stack((network.bottleneck, *network.readout.layers), z, A)
    return np.asarray(found.error.reshape(B, -1).max(axis=1))
