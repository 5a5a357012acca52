"""A sink token turns softmax weights into power sums, and those into the multiset of tokens.

Statement  with one appended sink token, n(n(d-1)+1) heads with a channel each hold the multiset of <= n tokens.
Gives      scratch_{p,h} = 1/(1 + sum_j exp(h eta <w_p, x_j>)): continuous, invertible by Newton's identities.
Rests on   nothing; the proof is in ``construct``.
Why        the same as temperature_heads for every choice of numbers, not almost every, and lengths are seen too.
Differs    the layer has no sink of its own: ``with_sink`` puts a zero token first, a position marks it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onelayer.contexts.spare_channels import Box, SpareChannels, best_scale, box, one_channel_each
from onelayer.errors import PrecisionError
from onelayer.network import Embedding
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["sink"]
Array = NDArray[Any]


def with_sink(X: ArrayLike) -> Array:
    """Sequences [.., n, d] with a zero token before the first: the sink."""
    tokens = np.asarray(X)
    return np.concatenate([np.zeros_like(tokens[..., :1, :]), tokens], axis=-2)


def directions_needed(n: int, d: int) -> int:
    """n(d-1) + 1: of as many projections, d agree on one pair of tokens if all agree as multisets."""
    return n * (d - 1) + 1


def heads_needed(n: int, d: int) -> int:
    """n temperatures for each direction."""
    return n * directions_needed(n, d)


def directions(n: int, d: int) -> Array:
    """Whole nodes s around 0 on the moment curve (1, s, .., s^(d-1)), scaled by powers of two: [P, d].

    Any d of them are independent (Vandermonde), exactly so if the powers are exact, which ``hypotheses`` sees to.
    """
    P = directions_needed(n, d)
    nodes = np.arange(P) - (P - 1) // 2
    largest = 2.0 ** int(max(1, P // 2) - 1).bit_length()
    curve: Array = (nodes[:, None] / largest) ** np.arange(d)
    return curve


def hypotheses(tokens: Box, dtype: DTypeLike) -> None:
    """The multiples h w_p must be exact, or heads of one direction would not share it."""
    P, bits = directions_needed(tokens.n, tokens.d), np.finfo(np.dtype(dtype)).nmant + 1
    if tokens.n * max(1, P // 2) ** (tokens.d - 1) > 2**bits:
        raise PrecisionError(
            "sink",
            f"directions whose multiples are exact in {np.dtype(dtype)}",
            f"{P} directions of width {tokens.d} need more than {bits} bits",
            "Use fewer or narrower tokens, or temperature_heads.",
        )


def features(X: ArrayLike, keys: ArrayLike, sink_keys: ArrayLike = 0.0) -> Array:
    """1/(1 + sum_j e^(<key, x_j> - sink key)): [.., H] from tokens [.., n, d] without the sink and keys [H, d]."""
    seen: Array = _weights(np.asarray(X) @ np.asarray(keys).T - np.asarray(sink_keys))[..., 0, :]
    return seen


def construct(
    n: int,
    d: int,
    dtype: DTypeLike = np.float64,
    scale: float | None = None,
    low: float = -1.0,
    high: float = 1.0,
    seed: int = 0,
) -> SpareChannels:
    """Embedding and attention for at most n tokens in [low, high]^d after a sink (``with_sink``).

    Proof that the features determine the multiset. 1/scratch_{p,h} - 1 is, up to a known factor that keeps the
    logits of the box around 0, the h-th power sum of the positive numbers z_j = exp(eta <w_p, x_j>), h = 1..n.
    These determine up to n positive numbers and how many there are (Newton; missing ones count as 0), so the
    multiset of the <w_p, x_j> for each p. If two multisets agreed on all n(d-1) + 1 projections and differed,
    cancel what they share; a remaining token a has for every p a partner b with <w_p, a - b> = 0, among at most n
    tokens b, so one b serves d directions. These are independent: a = b. QED
    ``seed`` only draws the samples on which the scale eta is judged.
    """
    tokens = box("sink", n, d, low, high)
    hypotheses(tokens, dtype)
    multiples = np.tile(np.arange(1, n + 1), directions_needed(n, d))
    keys = multiples[:, None] * np.repeat(directions(n, d), n, axis=0) / tokens.unit
    if scale is None:
        scale = best_scale(lambda X, s: _jacobian(X - tokens.centre, s * keys), tokens.samples(seed))
    H = len(keys)
    width = d + 1 + H
    read, value = np.zeros((2, H, width))
    read[:, :d], read[:, d], value[:, d] = scale * keys, scale * keys.sum(1) * tokens.centre, 1.0
    positions = np.zeros((n + 1, width), dtype)
    positions[0, d] = 1  # the sink says so; all other places are alike
    embedding = Embedding(lift=np.eye(d, width, dtype=dtype), positions=positions)
    names = (*(f"x{i}" for i in range(d)), "is_sink", *(f"scratch{h}" for h in range(H)))
    return SpareChannels(embedding, one_channel_each(read, value, d + 1, dtype), names)


def _weights(logits: Array) -> Array:
    """Softmax over the sink, first, and the tokens: [.., 1 + n, H] from the tokens' logits [.., n, H]."""
    with_sink_logits = np.concatenate([np.zeros_like(logits[..., :1, :]), logits], axis=-2)
    e = np.exp(with_sink_logits - with_sink_logits.max(-2, keepdims=True))
    shares: Array = e / e.sum(-2, keepdims=True)
    return shares


def _jacobian(X: Array, keys: Array) -> Array:
    """How the features of one sequence [n, d] move with its tokens, [H, n d]: the sink's share times a token's."""
    shares = _weights(X @ keys.T)
    moved: Array = np.einsum("jh,hi->hji", -shares[1:] * shares[0], keys).reshape(len(keys), -1)
    return moved
