"""Uniform averages of integer codes: attention with zero query and key, after a feed-forward layer or a table.

Statement  random integer codes, averaged over a sequence, differ for different multisets of one length.
Gives      contexts that are multiples of 1/n: gaps are polynomial in the data where Theorem 2's are exponential.
Rests on   a union bound over pairs of sequences.
Why        after Kajitsuka and Sato (2025), where attention only has to average.
Differs    all tokens get codes, not only a distinguishing subset; the code length is searched from below.
           It needs a map from tokens to codes before attention: a table for ids, plateaus for real tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.head import ContextMap, coordinate_radius_upper
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.contexts.stream import RealStream, Stream
from onelayer.errors import HypothesisError, PrecisionError
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget
from onelayer.ledger import Constant
from onelayer.network import Attention, Embedding, Linear
from onelayer.problems.sequences import Sequences
from onelayer.readouts.plateaus import on_a_line
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["averages"]
Array = NDArray[Any]

FIRST_CODE_BITS, MORE_BITS_PER_ATTEMPT = 6, 4


def hypotheses(stream: Stream) -> None:
    if stream.positions:
        raise HypothesisError(
            "averages",
            "sequences without positions, since an average of token plus position forgets the order",
            "positions=True was asked for",
            'Use mapping="temperature", which sees the order.',
        )


def attempts(dtype: np.dtype[Any]) -> int:
    """How many code lengths there are before an average of codes would no longer be resolved."""
    return int((np.finfo(dtype).nmant - 8 - FIRST_CODE_BITS) // MORE_BITS_PER_ATTEMPT) + 1


def construct(
    sequences: Sequences, stream: Stream, rank: int, seed: int, attempt: int, per_sequence: bool = False
) -> ContextMap:
    """The attempt-th candidate: four more bits of code each time."""
    hypotheses(stream)
    rng = np.random.default_rng([seed, rank, attempt, 3])
    dtype = stream.dtype
    bits = FIRST_CODE_BITS + MORE_BITS_PER_ATTEMPT * attempt
    if isinstance(stream, RealStream):
        ids, V, firsts = distinct_tokens(stream.tokens, sequences.valid())
    else:
        ids, V, firsts = stream.ids, stream.vocabulary, None
    codes = rng.integers(0, 1 << bits, (V, rank)).astype(np.float64)
    index = np.arange(V) * 2.0 ** (bits + 1)
    read = np.zeros((V, rank + 1 + rank))  # codes, index, room for contexts
    read[:, :rank], read[:, rank] = codes, index
    embedding, feedforward = _token_map(stream, firsts, read, rng)
    sums = np.where(_mask(sequences), codes[ids].transpose(2, 0, 1), 0.0).sum(axis=2).T  # [N, s], exact
    lengths = np.full(sequences.N, sequences.n) if sequences.lengths is None else sequences.lengths
    contexts = sums / lengths[:, None]
    if per_sequence:
        coordinates = contexts
    else:
        coordinates = index[ids][:, :, None] + contexts[:, None, :]
        valid = sequences.valid()
        coordinates = coordinates.reshape(-1, rank) if valid is None else coordinates[valid]
    weight = np.zeros((rank + 1 + rank, rank), dtype)
    weight[rank + 1 :] = np.eye(rank)
    weight[rank] = 0.0 if per_sequence else 1.0
    top = float(coordinates.max()) + 2.0**bits
    radius, exact_radius = (
        coordinate_radius_upper(u, sequences.n, (0.0, 0.0, (rank + 3) * top), 0.0, 2.0**bits, 0.0, True)
        for u in (float(np.finfo(dtype).eps) / 2, 2.0**-53)
    )
    names = (*(f"code{i}" for i in range(rank)), "index", *(f"context{i}" for i in range(rank)))
    return ContextMap(
        embedding,
        feedforward,
        averaging_attention(rank, dtype),
        Linear(weight, np.zeros(rank, dtype)),
        names,
        coordinates,
        radius + exact_radius,
        exact_radius,
        (
            Constant("code_bits", bits, "token codes are random whole numbers below 2^code_bits"),
            Constant("vocabulary", V, "distinct tokens that have a code"),
        ),
    )


def averaging_attention(rank: int, dtype: np.dtype[Any]) -> Attention:
    """Zero query and key: every weight is 1/n. Channels are codes, index, contexts."""
    width = rank + 1 + rank
    W_Q, W_K, W_V = (np.zeros((1, width, rank), dtype) for _ in range(3))
    W_O = np.zeros((1, rank, width), dtype)
    W_V[0, :rank], W_O[0, :, rank + 1 :] = np.eye(rank), np.eye(rank)
    return Attention(W_Q, W_K, W_V, W_O)


def distinct_tokens(tokens: Array, valid: Array | None) -> tuple[Array, int, Array]:
    """Exact token identity: ids [N, n], their number, and the distinct tokens [V, d]."""
    N, n, d = tokens.shape
    flat = np.ascontiguousarray(tokens.reshape(-1, d) + 0.0)  # one zero, not two
    rows = flat.view(np.dtype((np.void, flat.itemsize * d))).ravel()
    used = rows if valid is None else rows[valid.ravel()]
    unique = np.unique(used)
    ids = np.searchsorted(unique, rows) if valid is None else np.zeros(N * n, np.int64)
    if valid is not None:
        ids[valid.ravel()] = np.searchsorted(unique, used)
    return ids.reshape(N, n), len(unique), unique.view(tokens.dtype).reshape(-1, d)


def _token_map(
    stream: Stream, tokens: Array | None, read: Array, rng: np.random.Generator
) -> tuple[Embedding | None, tuple[Gadget, ...]]:
    """From a token to its row of codes: a table for ids, plateaus over a projection for real tokens."""
    if not isinstance(stream, RealStream):
        return Embedding(table=read.astype(stream.dtype)), ()
    assert tokens is not None
    dtype, d = stream.dtype, tokens.shape[1]
    for _ in range(8):
        direction = (rng.standard_normal(d) / stream.scale).astype(dtype).astype(np.float64)
        projected = tokens @ direction
        offset = float(dtype.type(1.0 - projected.min()))
        order = np.argsort(projected)
        if len(order) > 1 and not np.diff(projected[order]).min() > 0:
            continue
        plateaus = on_a_line(projected[order] + offset, read[order], dtype)
        magnitude = stream.norm * float(np.linalg.norm(stream.scale * direction)) + abs(offset)
        if plateaus.guard > 2 * (d + 4) * float(np.finfo(dtype).eps) * magnitude:
            lift, bias = np.diag(stream.unit).astype(dtype), (-stream.centre).astype(dtype)
            embedding = None if stream.is_given else Embedding(lift=lift, bias=bias)
            bottleneck = Linear(direction[:, None].astype(dtype), np.array([offset], dtype))
            return embedding, (Affine(bottleneck), *plateaus.gadgets)
    raise PrecisionError(
        "averages",
        f"tokens that a projection tells apart in {dtype}",
        f"eight directions left two of {len(tokens)} tokens closer than rounding",
        'Use dtype="float64", or mapping="temperature".',
    )


def _mask(sequences: Sequences) -> Array:
    valid = sequences.valid()
    return np.ones((sequences.N, sequences.n), bool) if valid is None else valid


@mapping
class Averages(ContextMapping):
    name, order, shares, redraws = "averages", 4, True, False

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        return construct(
            wanted.sequences, wanted.stream, wanted.rank, wanted.seed, wanted.attempt, wanted.per_sequence
        )

    @classmethod
    def attempts(cls, sequences: Sequences, answers: int, dtype: np.dtype[Any]) -> tuple[int, int]:  # noqa: ARG003
        return 1, attempts(dtype)  # each has longer codes: the first that separates is the best
