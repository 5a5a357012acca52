"""Random heads with spare channels: the whole multiset of tokens in continuous features, without a quantiser.

Statement  2nd + 1 heads with random directions, constant query and a channel each see every multiset of n tokens.
Gives      a stream (x_k, scratch) that is continuous and, almost surely, one-to-one on (token, multiset).
Rests on   finite_witness, lemma_g; the proof is in ``construct``.
Why        with it a readout can approximate any continuous equivariant map in sup norm: the quantiser of
           Proposition 1 is not needed once the stream is wider than the tokens (narrow_stream: it is otherwise).
Differs    nothing of it is in the paper, which asks whether the first feed-forward layer can be left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onelayer.contexts.spare_channels import SpareChannels, best_scale, box, one_channel_each
from onelayer.errors import HypothesisError
from onelayer.network import Embedding
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["temperature_heads"]
Array = NDArray[Any]


def heads_needed(n: int, d: int) -> int:
    """2nd + 1: one more than the dimension of pairs of sequences."""
    return 2 * n * d + 1


def features(X: ArrayLike, directions: ArrayLike) -> Array:
    """sum_j y_j e^y_j / sum_j e^y_j, y = <w_h, x_j>: [.., H] from tokens [.., n, d] and directions [H, d]."""
    y = np.asarray(X) @ np.asarray(directions).T
    weights = np.exp(y - y.max(-2, keepdims=True))
    averages: Array = (y * weights).sum(-2) / weights.sum(-2)
    return averages


def construct(
    n: int,
    d: int,
    heads: int | None = None,
    seed: int = 0,
    dtype: DTypeLike = np.float64,
    scale: float | None = None,
    low: float = -1.0,
    high: float = 1.0,
) -> SpareChannels:
    """Embedding and attention for n tokens in [low, high]^d; scratch_h is ``features`` with w_h = W_K,h.

    Proof that it is one-to-one for almost all directions. Let X, X' be different multisets of n tokens. Some w0 is
    one-to-one on their tokens. If features(X, t w0) = features(X', t w0) for all t, the derivatives of
    log sum_j e^(t y_j) and log sum_j e^(t y'_j) agree; both start at log n, so the moment generating functions
    agree and with them the multisets of projections: a contradiction. So the difference of features is analytic in
    (X, X', w) and, for every pair, not identically zero in w. Its zeros have one dimension less in each of the H
    directions: bad directions are a projection of a set of dimension 2nd + H(d-1), less than Hd if H > 2nd.
    The inverse is continuous on compact sets, never Lipschitz near repeated tokens; in float64 it is what it is.
    Sequences of different lengths differ as well, unless they are proportional (impossible/proportional.py).
    """
    tokens = box("temperature_heads", n, d, low, high)
    H = heads_needed(n, d) if heads is None else heads
    if heads_needed(n, d) > H:
        raise HypothesisError(
            "temperature_heads",
            f"2nd + 1 = {heads_needed(n, d)} heads for n = {n}, d = {d}",
            f"heads = {heads}",
            "Leave heads out; fewer may or may not tell all multisets apart.",
        )
    directions = np.random.default_rng([seed, n, d, H]).standard_normal((H, d)) / (tokens.unit * np.sqrt(d))
    if scale is None:
        scale = best_scale(lambda X, s: _jacobian(X, s * directions), tokens.samples(seed))
    read = np.zeros((H, d + H))
    read[:, :d] = scale * directions
    lift = np.eye(d, d + H, dtype=dtype)
    names = (*(f"x{i}" for i in range(d)), *(f"scratch{h}" for h in range(H)))
    return SpareChannels(Embedding(lift=lift), one_channel_each(read, read, d, dtype), names)


def _jacobian(X: Array, directions: Array) -> Array:
    """How the features of one sequence [n, d] move with its tokens, [H, n d], in units of the largest |y|.

    d scratch / d y_j = p_j (1 + y_j - scratch), with p the softmax weights.
    """
    y = X @ directions.T
    p = np.exp(y - y.max(0))
    p /= p.sum(0)
    slope = p * (1 + y - (p * y).sum(0))  # [n, H]
    moved: Array = np.einsum("jh,hi->hji", slope / np.abs(y).max(), directions).reshape(len(directions), -1)
    return moved
