"""Contexts on a lattice: whole-number token codes, summed by uniform attention, so gaps do not shrink with the
data.

Statement  with codes h_k in Z^s, zero query and key, and W_O = c n, y_k = a h_k + c sum_j h_j lies in Z^s; random
           codes tell all (token, multiset) apart, and with positions all (place, sequence). Where lengths differ,
           y_k = S (h_k + mean_j h_j) with S >= n tells all (token, share of each token) apart, which is all that
           softmax can see; two of these are at least S / n^2 from each other in some coordinate.
Gives      s coordinates that a float32 network computes within a fraction of 1/2 of a whole number, in any order of
           summation: the room for rounding is the same for a hundred answers and for millions.
Rests on   exactness of sums of whole numbers below 2^24; a union bound over pairs (the codes are checked, not
           trusted).
Why        the gap of generic real ids falls like 1/M^2; float32 then ends at a few hundred answers.
Differs    after Kajitsuka and Sato (2025), whose averages of codes are read on one scalar; here s of them are, and
           own code and context share their channels, so the residual stream is only s wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.head import ContextMap
from onelayer.contexts.places import draw_places
from onelayer.contexts.quantiser import quantise, thinned
from onelayer.contexts.stream import RealStream, Stream, TokenStream
from onelayer.errors import PrecisionError
from onelayer.ledger import Constant
from onelayer.network import Attention, Embedding, Layer, Linear
from onelayer.problems.blocks import blocks, column_bounds
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["lattice"]
Array = NDArray[Any]

DEFAULT_RANK, LARGER_RANK = 6, 10
#: The radius of a coordinate may take this share of half a lattice step.
SHARE = 0.3
MOST_BITS, FEWEST_BITS = 14, 3
ATTEMPTS = 6
#: A wide own weight is at most c n (n + 12) over this: rounding it adds about half to the error of the average.
OWN_SHARE = 18.0
#: Sums are added to the codes of so many bytes at a time, which stay in cache.
ADDED_BYTES = 1 << 18


@dataclass(frozen=True)
class Codes:
    """Whole numbers for every token, and the layers that compute them."""

    embedding: Embedding | None
    layers: tuple[Layer, ...]
    values: Array  # [N, n, s], a h
    count: int  # thresholds, or token ids


def construct(
    sequences: Sequences,
    stream: Stream,
    rank: int,
    seed: int,
    attempt: int,
    per_sequence: bool = False,
    wide: bool = False,
) -> ContextMap:
    """The attempt-th draw of codes; each later attempt quantises real tokens more finely. ``wide`` coordinates take
    several times as many values, but those of a frequent token lie close together."""
    rng = np.random.default_rng([seed, rank, attempt, 5])
    dtype, n = stream.dtype, sequences.n
    ragged = sequences.lengths is not None
    own, total = _weights(n, ragged, stream.positions or per_sequence, wide)
    bits = code_bits(n, dtype, ragged, 4.0 if stream.positions else total / n, own if ragged else 0.0)
    if isinstance(stream, RealStream):
        codes = _codes_of_reals(sequences, stream, rank, bits, own, attempt, rng)
    else:
        codes = _codes_of_ids(sequences, stream, rank, bits, own, rng)
    layers = codes.layers
    if per_sequence:  # the token's own code must not show: contexts get channels of their own
        layers = (*layers[:-1], _widened(layers[-1])) if layers else (_widened(_identity(rank, dtype)),)
    coordinates, largest = _coordinates(sequences, codes.values, own, total, per_sequence)
    low, high = column_bounds(coordinates)
    offset = np.ceil(1.0 - low)
    coordinates += offset.astype(coordinates.dtype)
    weight = np.zeros((2 * rank if per_sequence else rank, rank), dtype)
    weight[-rank:] = np.eye(rank)
    top = float((high + offset).max()) + float(np.abs(offset).max())
    largest *= total / n
    ours = 0.0 if sequences.lengths is None else coordinate_radius(n, largest, top, 2.0**-53)
    names = [f"code{i}" for i in range(rank)] + [f"context{i}" for i in range(rank if per_sequence else 0)]
    return ContextMap(
        codes.embedding,
        layers,
        summing(rank, total, dtype, separate=per_sequence, own=own),
        Linear(weight, offset.astype(dtype)),
        tuple(names),
        coordinates,
        coordinate_radius(n, largest, top, float(np.finfo(dtype).eps) / 2) + ours,
        ours,
        (
            Constant("code_bits", bits, "token codes are whole numbers of about this many bits"),
            Constant("coded", codes.count, "thresholds on components of real tokens, or token ids"),
            Constant("lattice", spacing(sequences), "distance of neighbouring lattice points, at least"),
        ),
    )


def coordinate_radius(n: int, largest: float, top: float, unit: float) -> float:
    """Bound on the rounding error of a coordinate: n averages of c times codes below ``largest``, then sums."""
    return 1.01 * unit * (n * (n + 8) * largest + 4 * top)


def code_bits(n: int, dtype: np.dtype[Any], ragged: bool, mixing: float, own: float = 0.0) -> int:
    """As many bits as leave the radius within its share of half a lattice step; ``mixing`` bounds what multiplies
    codes: the weight of the sum, or how many codes of a token a place adds up; ``own``: that of a token's own."""
    unit = float(np.finfo(dtype).eps) / 2
    step = 1.0 / n if ragged else 1.0  # S times means over l1 and l2 tokens: at least S/(l1 l2) apart
    bits = int(np.floor(np.log2(SHARE * step / (unit * (n * (n + 12) * mixing + 4 * own)))))
    if bits < FEWEST_BITS:
        raise PrecisionError(
            "lattice",
            f"sequences short enough for sums of whole numbers in {dtype}",
            f"{n} places leave {max(bits, 0)} bits for a token's code",
            'Use dtype="float64".',
        )
    return min(bits, MOST_BITS)


def _weights(n: int, ragged: bool, apart: bool, wide: bool) -> tuple[float, float]:
    """a, and c n: what multiplies a token's own code, and the mean of all. ``apart``: no two tokens of a sequence
    have one code, or own codes do not show.

    Of equal lengths, c = 3 makes up for a power of two: if all codes are unrelated, y_k = y_k' of two tokens needs
    a = c n (p' - p), where p and p' are the shares of one of them in the two sequences, and n (p' - p) is a whole
    number (with c = 1 and a = 2, x among x y y y is y among y x x x). Of different lengths, shares are any
    fractions, but 0 < p and p' < 1, as both tokens are there: a >= c n has no solution. One power of two for both
    keeps y on the lattice of means.
    """
    if ragged:
        total = float(np.exp2(np.ceil(np.log2(n))))
        return total, total
    c = 1.0 if apart else 3.0
    return own_weight(n, c if wide else 0.0), c * n


def own_weight(n: int, wide: float = 0.0) -> float:
    """a, a power of two near 2 sqrt(n): a token's own code is then about as widely spread as c sums of n codes.

    Or, with c given as ``wide``, as large as leaves most of the rounding error of a coordinate to its average.
    """
    even = np.exp2(np.round(np.log2(n) / 2) + 1)
    return float(max(even, np.exp2(np.floor(np.log2(wide * n * (n + 12) / OWN_SHARE))) if wide else 0.0))


def spacing(sequences: Sequences) -> float:
    return 1.0 if sequences.lengths is None else 1.0 / sequences.n


def summing(rank: int, total: float, dtype: np.dtype[Any], separate: bool, own: float = 1.0) -> Attention:
    """Zero query and key: every weight is 1/n, and W_O = ``total`` = c n makes c sums of it."""
    width = 2 * rank if separate else rank
    W_Q, W_K, W_V = (np.zeros((1, width, rank), dtype) for _ in range(3))
    W_O = np.zeros((1, rank, width), dtype)
    W_V[0, :rank], W_O[0, :, -rank:] = np.eye(rank) / own, total * np.eye(rank)
    return Attention(W_Q, W_K, W_V, W_O)


def _coordinates(
    sequences: Sequences, codes: Array, own: float, total: float, per_sequence: bool
) -> tuple[Array, float]:
    """[T, s], exact whole numbers when all sequences are equally long, and the largest code; codes times their own
    weight come in, and are overwritten."""
    valid, rank = sequences.valid(), codes.shape[-1]
    if valid is None:
        N, n, _ = codes.shape
        largest = max(float(codes.max()), -float(codes.min())) / own
        wide = codes.reshape(N, n * rank)  # below 2^24, so sums are exact in any dtype and any order
        sums = (total / n) * (wide @ np.tile(np.eye(rank, dtype=codes.dtype), (n, 1)) / own)
        if per_sequence:
            return sums, largest
        for part in blocks(wide, ADDED_BYTES):
            wide[part] += np.tile(sums[part], n)
        return codes.reshape(-1, rank), largest
    assert sequences.lengths is not None
    codes[~valid] = 0.0
    largest = max(float(codes.max()), -float(codes.min())) / own
    sums = (
        codes.sum(axis=1, dtype=np.float64) / own * total / sequences.lengths[:, None]
    )  # equal shares, equal bits
    if per_sequence:
        return sums, largest
    starts = np.concatenate([[0], np.cumsum(sequences.lengths)])
    out = np.empty((starts[-1], rank))
    for rows in blocks(codes):
        stop = min(rows.stop, len(codes))
        out[starts[rows.start] : starts[stop]] = (codes[rows] + sums[rows, None, :])[valid[rows]]
    return out, largest


def _codes_of_ids(
    sequences: Sequences, stream: TokenStream, rank: int, bits: int, own: float, rng: np.random.Generator
) -> Codes:
    """A table of random codes, centred; with positions they are non-negative until the gates are passed."""
    table = rng.integers(0, 1 << bits, (stream.vocabulary, rank)).astype(stream.dtype)
    if not stream.positions:
        table = (table - (1 << (bits - 1))) * stream.dtype.type(own)
        return Codes(Embedding(table=table), (), table[stream.ids], stream.vocabulary)
    places = draw_places(sequences.n, table.max(axis=0), own, stream.dtype, rng)
    at = np.zeros((sequences.n, rank), stream.dtype)
    at[:, 0] = places.spacing * np.arange(sequences.n)
    values = np.empty((*stream.ids.shape, rank), stream.dtype)
    for k in range(sequences.n):
        values[:, k] = places.codes(table, k)[stream.ids[:, k]]
    return Codes(Embedding(table=table, positions=at), places.layers, values, stream.vocabulary)


def _codes_of_reals(
    sequences: Sequences,
    stream: RealStream,
    rank: int,
    bits: int,
    own: float,
    attempt: int,
    rng: np.random.Generator,
) -> Codes:
    """Steps at quantiles of each component, and a random code per step, scaled so that sums have ``bits`` bits."""
    N, n, d = stream.tokens.shape
    dtype, flat, valid = stream.dtype, stream.tokens.reshape(-1, d), sequences.valid()
    used, T = None if valid is None else np.flatnonzero(valid), sequences.token_count()
    quantiser = quantise(flat, _levels(sequences, attempt), dtype, used)
    steps = rng.standard_normal((quantiser.count, rank))
    trial = quantiser.features(thinned(flat, used, max(1, T >> 16)), _linear(steps, np.zeros(rank), dtype))
    centre = trial.mean(axis=0)
    spread = np.abs(trial - centre).max(axis=0)
    scale = np.where(spread > 0, 0.45 * 2.0**bits / np.where(spread > 0, spread, 1.0), 0.0)
    factor = 1.0 if stream.positions else own  # with positions, their layers put it in
    layer = _linear(factor * np.rint(steps * scale), -factor * np.rint(centre * scale), dtype)
    raw = quantiser.features(flat, layer)
    embedding = Embedding(lift=np.eye(d, dtype=dtype), bias=(-stream.centre).astype(dtype))
    if not stream.positions:
        embedding_or_none = embedding if stream.centre.any() else None
        return Codes(embedding_or_none, (*quantiser.layers(0), layer), raw.reshape(N, n, rank), quantiser.count)
    low = (raw if valid is None else raw[valid.ravel()]).min(axis=0)
    raw -= low
    top = (raw if valid is None else raw[valid.ravel()]).max(axis=0)
    places = draw_places(n, top, own, dtype, rng)
    lift, at = np.eye(d, d + 1, dtype=dtype), np.zeros((n, d + 1), dtype)
    at[:, d] = np.arange(n)
    bias = None if not stream.centre.any() else np.append(-stream.centre, 0.0).astype(dtype)
    weight = np.concatenate([layer.weight, np.zeros((1, rank), dtype)])
    weight[-1, 0] = places.spacing
    values = raw.reshape(N, n, rank)
    for k in range(n):
        values[:, k] = places.codes(values[:, k], k)
    layers = (*quantiser.layers(1), Linear(weight, (layer.bias - low).astype(dtype)), *places.layers)
    return Codes(Embedding(lift=lift, bias=bias, positions=at), layers, values, quantiser.count)


def _levels(sequences: Sequences, attempt: int) -> int:
    """Of each component. At first, as many as tell two tokens of one sequence apart, with room to spare: different
    sequences differ in their sums, unless they share all tokens but one. Later, as many as tell all tokens apart.
    """
    T, n, d = sequences.token_count(), sequences.n, sequences.d
    all_apart = max(4, int(np.ceil(T ** (2.0 / d))))
    if attempt == 0 and n > 1:
        return min(max(4, int(np.ceil((8.0 * sequences.N * n * n) ** (1.0 / d)))), all_apart, T)
    return min(all_apart << attempt, T)


def _identity(rank: int, dtype: np.dtype[Any]) -> Linear:
    return Linear(np.eye(rank, dtype=dtype), np.zeros(rank, dtype))


def _widened(layer: Layer) -> Linear:
    """The same outputs, followed by as many zeros."""
    assert isinstance(layer, Linear)
    return Linear(np.pad(layer.weight, ((0, 0), (0, layer.width))), np.pad(layer.bias, (0, layer.width)))


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
