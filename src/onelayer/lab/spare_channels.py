"""Heads that share spare channels, or write into the token's own, and ReLU units behind them by least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.temperature_heads import construct, heads_needed
from onelayer.network import Attention, Embedding, Transformer
from onelayer.network.blocks import evaluate

Array = NDArray[Any]
Readout = Callable[[Array], Array]
#: The ridge of the least squares, relative to the mean square.
RIDGE = 1e-9


def target(X: Array) -> Array:
    """x_1 + the sum of (x_1 - x_j)^3 over the others, at the first token of [B, n, 1]."""
    x = X[:, :, 0]
    found: Array = x[:, 0] + ((x[:, :1] - x) ** 3).sum(1)
    return found


def least_squares(model: Transformer, X: Array, units: int, rng: np.random.Generator) -> tuple[float, Readout]:
    """Random ReLU units behind attention, output weights by least squares; with the largest error on X."""
    h = evaluate(model, X)[:, 0]
    middle, spread = h.mean(0), h.std(0)
    V = rng.normal(size=(h.shape[1], units)) / spread[:, None]
    b = -(h[rng.integers(len(h), size=units)] * V.T).sum(1)

    def hidden_units(some: Array) -> Array:
        straight = (some - middle) / spread
        return np.hstack([np.maximum(some @ V + b, 0), straight, np.ones((len(some), 1))])

    A = hidden_units(h)
    square = A.T @ A
    square[np.diag_indices_from(square)] += RIDGE * np.trace(square) / len(square)
    w = np.linalg.solve(square, A.T @ target(X))
    return float(np.abs(A @ w - target(X)).max()), lambda some: hidden_units(some) @ w


def wide_layer(n: int, heads: int, channels: int, mixed: Array, seed: int, scale: float) -> Transformer:
    """Heads that share this many spare channels; with none they write into the token's own."""
    most = max(heads, heads_needed(n, 1))
    keys = construct(n, 1, heads=most, seed=seed, scale=scale).attention.W_K[:heads, :1]
    width = 1 + channels
    read, write = np.zeros((heads, width, 1)), np.zeros((heads, 1, width))
    read[:, :1] = keys
    place = 1 + np.arange(heads) % channels if channels else np.zeros(heads, int)
    write[np.arange(heads), 0, place] = 1.0 if heads == channels else mixed
    zero = np.zeros((heads, width, 1))
    return Transformer(
        Attention(zero, read, read, write, b_Q=np.ones((heads, 1))), Embedding(lift=np.eye(1, width)), (), ()
    )


def cube(n: int, points: int) -> Array:
    axis = np.linspace(-1, 1, points)
    return np.stack(np.meshgrid(*[axis] * n, indexing="ij"), -1).reshape(-1, n, 1)
