"""Random layers on a stream as narrow as the tokens: what any readout of them misses, for many at once.

In float64, all layers side by side; what the smallest of them miss is then asked in exact arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.impossible import narrow_stream
from onelayer.network import Attention, Transformer

Array = NDArray[Any]
#: Of so many of the smallest estimates the exact bound is computed.
EXACT = 3
#: Halvings of the interval in which the diagonal leaves the box: to the last bit of float64.
HALVINGS = 50


def draw(rng: np.random.Generator, count: int, heads: int, d: int) -> Array:
    """Weights [count, 4 d + 2, heads, d] of layers: queries, keys, values, outputs, biases of queries and keys."""
    return rng.normal(size=(count, 4 * d + 2, heads, d)) * 2 / d


def layer(weights: Array) -> Transformer:
    """Weights [4 d + 2, heads, d] as heads of size d on a stream of width d."""
    H, d = weights.shape[1:]
    W_Q, W_K, W_V, W_O = (part.swapaxes(0, 1) for part in weights[: 4 * d].reshape(4, d, H, d))
    return Transformer(Attention(W_Q, W_K, W_V, W_O, b_Q=weights[-2], b_K=weights[-1]))


def estimate(weights: Array, n: int) -> Array:
    """About `narrow_stream.error_lower` of each of the layers [count, 4 d + 2, heads, d]."""
    count, _, H, d = weights.shape
    W_K, W_V, W_O = (weights[:, : 4 * d].reshape(count, 4, d, H, d)[:, i].swapaxes(1, 2) for i in (1, 2, 3))
    written = W_V @ W_O
    moves = written[:, :, 0] @ np.linalg.inv(np.eye(d) + written.sum(1))  # [count, H, d]
    slopes = (weights[:, -2] * W_K[:, :, 0]).sum(-1)  # [count, H]
    places = np.linspace(0, 1, n)

    def diagonal(t: Array) -> Array:
        """[count, T, d] of distances [count, T]: the point whose sequence (x, ..., x) has the family's output."""
        logits = -(slopes[:, None] * t[:, :, None])[..., None] * places
        share = np.exp(logits - logits.max(-1, keepdims=True))
        found: Array = -t[:, :, None] * (((share * places).sum(-1) / share.sum(-1)) @ moves)
        return found

    def both(t: Array) -> tuple[Array, Array]:
        """Largest component, and cost, of t and -t."""
        largest, cost = np.zeros(t.shape), np.zeros(t.shape)
        for s in (t, -t):
            x = diagonal(s)
            apart = np.abs(np.concatenate([x[..., :1] - s[..., None] ** 3, x[..., 1:]], -1)).max(-1)
            largest, cost = np.maximum(largest, np.abs(x).max(-1)), np.maximum(cost, apart / 2)
        return largest, cost

    grid = np.broadcast_to(np.arange(1, narrow_stream.GRID + 1) / narrow_stream.GRID, (count, narrow_stream.GRID))
    largest, costs = both(grid)
    inside = np.logical_and.accumulate(largest <= 1, axis=1)
    best = np.where(inside, costs, 0).max(1)
    low = np.where(inside.any(1), inside.sum(1), 0)[:, None] / narrow_stream.GRID
    high = low + 1 / narrow_stream.GRID
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fits = both(middle)[0] <= 1
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    edge = np.where(inside.all(1), 0, both(low)[1][:, 0])
    return np.asarray(np.maximum(best, edge))


def smallest(weights: Array, n: int) -> float:
    """The smallest exact bound among those layers whose estimates are smallest."""
    first = np.argsort(estimate(weights, n))[:EXACT]
    return min(narrow_stream.error_lower(layer(weights[i]), n) for i in first)
