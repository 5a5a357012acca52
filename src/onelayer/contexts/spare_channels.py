"""Heads that write into residual channels of their own: the token stays as it is, next to what the heads saw.

What is shared by the constructions without a quantiser: the layout of the stream, and the choice of a scale by how
well the features tell nearby multisets apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.network import Attention, Embedding, Layer, Transformer

Array = NDArray[Any]

#: Scales that are tried, in units of the box: powers of two, so that scaling a direction is exact.
SCALES = tuple(2.0**k for k in range(-3, 6))
#: Multisets on which a scale is judged.
SAMPLES = 32


class SpareChannels(NamedTuple):
    """An attention-first layer whose stream after attention is (x_k, scratch_1, .., scratch_H)."""

    embedding: Embedding
    attention: Attention
    channels: tuple[str, ...]

    def transformer(self, *readout: Layer) -> Transformer:
        return Transformer(self.attention, self.embedding, (), readout, self.channels)

    @property
    def scratch(self) -> slice:
        """Where the features are in the stream."""
        return slice(self.channels.index("scratch0"), None)


class Box(NamedTuple):
    """n tokens of width d with all components in [low, high]."""

    n: int
    d: int
    low: float
    high: float

    @property
    def unit(self) -> float:
        """A power of two not below half of the side, so that dividing by it is exact."""
        return 2.0 ** math.ceil(math.log2((self.high - self.low) / 2))

    @property
    def centre(self) -> float:
        return (self.low + self.high) / 2

    def samples(self, seed: int) -> Array:
        rng = np.random.default_rng([seed, SAMPLES])
        return rng.uniform(self.low, self.high, (SAMPLES, self.n, self.d))


def box(statement: str, n: int, d: int, low: float, high: float) -> Box:
    """The tokens a construction is for, or an error in its name."""
    if n < 1 or d < 1:
        raise HypothesisError(statement, "tokens of some number and width", f"n = {n}, d = {d}", "Take n, d >= 1.")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise HypothesisError(statement, "a box with an inside", f"low = {low}, high = {high}", "Take low < high.")
    return Box(n, d, low, high)


def best_scale(jacobian: Callable[[Array, float], Array], samples: Array) -> float:
    """The scale whose worst sample moves most: the smallest singular value of the features' derivative.

    ``jacobian(X, scale)`` is [H, n d], in units of the largest feature, so that only resolution counts.
    """

    def resolution(scale: float) -> float:
        return min(float(np.linalg.svd(jacobian(X, scale), compute_uv=False)[-1]) for X in samples)

    return max(SCALES, key=resolution)


def one_channel_each(keys: Array, values: Array, first: int, dtype: Any) -> Attention:
    """Heads of size 1 with constant query 1, which read keys and values [H, width] and write one channel each.

    The softmax weights are then the same at every token of a sequence, and a zero token is no obstacle.
    """
    H, width = keys.shape
    W_O = np.zeros((H, 1, width), dtype)
    W_O[np.arange(H), 0, first + np.arange(H)] = 1
    zero = np.zeros((H, width, 1), dtype)
    W_K, W_V = (read[:, :, None].astype(dtype) for read in (keys, values))
    return Attention(zero, W_K, W_V, W_O, b_Q=np.ones((H, 1), dtype))
