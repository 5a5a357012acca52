"""Contexts on a lattice: whole-number token codes, summed by uniform attention, so gaps do not shrink with the
data.

Statement  with codes h_k in Z^s, zero query and key, and W_O = c n, y_k = a h_k + c sum_j h_j lies in Z^s; random
           codes tell all (token, multiset) apart, and with positions all (place, sequence). Where lengths differ,
           y_k = S (h_k + mean_j h_j) with S >= n tells all (token, share of each token) apart, which is all that
           softmax can see; two of these are at least S / n^2 from each other in some coordinate. A mean that weighs
           more is tried first where bits abound: two contexts may meet then, which is seen.
Gives      s coordinates that a float32 network computes within a fraction of 1/2 of a whole number, in any order of
           summation: the room for rounding is the same for a hundred answers and for millions.
Rests on   exactness of sums of whole numbers below 2^24; a union bound over pairs (the codes are checked, not
           trusted).
Why        the gap of generic real ids falls like 1/M^2; float32 then ends at a few hundred answers.
Differs    after Kajitsuka and Sato (2025), whose averages of codes are read on one scalar; here s of them are, and
           own code and context share their channels, so the residual stream is only s wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.hashed import draw_hashes, hashed_coordinates, raw_values, room, sum_radius
from onelayer.contexts.head import ContextMap
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.contexts.number_line import FEWEST_VALUES, number_line
from onelayer.contexts.raw_codes import Raw, numbers_words, reals, words
from onelayer.contexts.stream import RealStream, Stream, TokenStream
from onelayer.contexts.sums import joint_coordinates, raised_mean, weights
from onelayer.errors import PrecisionError
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget
from onelayer.ledger import Constant
from onelayer.network import Attention, Embedding, Linear
from onelayer.problems.blocks import column_bounds
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["lattice"]
Array = NDArray[Any]

DEFAULT_RANK, LARGER_RANK = 6, 10
#: The radius of a coordinate may take this share of half a lattice step.
SHARE = 0.3
MOST_BITS, FEWEST_BITS = 14, 3
#: With fewer, a token has a code to stay and another to be added up.
FEWEST_JOINT_BITS = 8
#: Hashes that are not 0 are so rare with less room that contexts meet.
LEAST_ROOM = 0.05
#: Codes of real tokens are sums of steps, most of them near the middle: in bags, they take more values than words.
FEWEST_OF_REALS = 256
ATTEMPTS = 6
#: So few are read off by cells that are few, and need not take many values.
FEW_TOKENS = 1 << 17
LARGE_TABLE = 1 << 18


def construct(
    sequences: Sequences,
    stream: Stream,
    rank: int,
    seed: int,
    attempt: int,
    per_sequence: bool = False,
    wide: bool = False,
    rejects: bool = False,
) -> ContextMap:
    """The attempt-th draw of codes; each later attempt quantises real tokens more finely. ``wide`` coordinates take
    several times as many values, but those of a frequent token lie close together. If it ``rejects`` unknown
    inputs, a number that is not stored is not to have the code of one that is."""
    rng = np.random.default_rng([seed, rank, attempt, 5])
    n, ragged = sequences.n, sequences.lengths is not None
    stream = stream.uncentred() if isinstance(stream, RealStream) else stream
    if stream.positions:
        return _hashed_map(sequences, stream, rank, attempt, rng, per_sequence, wide, rejects)
    own, total = weights(n, ragged, per_sequence, wide)
    raised = raised_mean(n) if ragged and attempt == 0 and not per_sequence else 1.0
    if code_bits(n, stream.dtype, ragged, raised * total / n, own) == MOST_BITS:
        total *= raised
    bits = code_bits(n, stream.dtype, ragged, total / n, own if ragged else 0.0)
    if not ragged and (bits < FEWEST_JOINT_BITS or _has_numbered_tokens(stream)):  # shorter as two codes
        return _hashed_map(sequences, stream, rank, attempt, rng, per_sequence, wide, rejects)
    if bits < FEWEST_BITS:
        raise _too_long(n, stream.dtype, bits)
    return _joint(sequences, stream, rank, attempt, rng, per_sequence, (own, total, bits), rejects)


def _has_numbered_tokens(stream: Stream) -> bool:
    """Whether a token is known by the digits of a number."""
    if isinstance(stream, TokenStream):
        return numbers_words(stream)
    return stream.tokens.shape[2] == 1 and stream.tokens.size >= FEWEST_VALUES


def _joint(
    sequences: Sequences,
    stream: Stream,
    rank: int,
    attempt: int,
    rng: np.random.Generator,
    per_sequence: bool,
    weights: tuple[float, float, int],
    rejects: bool,
) -> ContextMap:
    """One code for both: it stays, and it is added up."""
    (own, total, bits), dtype, n = weights, stream.dtype, sequences.n
    embedding: Embedding | None
    gadgets: tuple[Gadget, ...]
    if isinstance(stream, RealStream):
        raw = reals(sequences, stream, rank, 2.0**bits, attempt, rng, own, rejects)
        values, count = raw.values, raw.count
        embedding, gadgets = raw.network(None)
        if len(raw.components) == sequences.d and stream.is_given:
            embedding = None
    else:
        table = rng.integers(0, 1 << bits, (stream.vocabulary, rank)).astype(dtype)
        table = (table - (1 << (bits - 1))) * dtype.type(own)
        embedding, gadgets, values, count = Embedding(table=table), (), table[stream.ids], stream.vocabulary
    if per_sequence:  # the token's own code must not show: contexts get channels of their own
        gadgets = (*gadgets[:-1], _pad_outputs(gadgets[-1])) if gadgets else (_pad_outputs(_identity(rank, dtype)),)
    coordinates, largest = joint_coordinates(sequences, values, own, total, per_sequence)
    largest *= total / n
    ours = 0.0 if sequences.lengths is None else 2.0**-53

    def radius(top: float, unit: float) -> float:
        return coordinate_radius(n, largest, top, unit)

    attention = summing_attention(rank, total, dtype, separate=per_sequence, own=own)
    constants = (
        Constant("code_bits", bits, "token codes are whole numbers of about this many bits"),
        Constant("coded", count, "thresholds on components of real tokens, or token ids"),
        Constant("lattice", spacing(sequences), "distance of neighbouring lattice points, at least"),
    )
    return _context_map((embedding, gadgets, attention), coordinates, radius, ours, constants)


def _hashed_map(
    sequences: Sequences,
    stream: Stream,
    rank: int,
    attempt: int,
    rng: np.random.Generator,
    per_sequence: bool,
    wide: bool,
    rejects: bool,
) -> ContextMap:
    """A long code that stays, and a short hash of it and of the place, which is added up."""
    n, dtype, unit = sequences.n, stream.dtype, float(np.finfo(stream.dtype).eps) / 2
    sink = sequences.lengths is not None
    if room(n, unit, sink) < LEAST_ROOM:
        raise _too_long(n, dtype, 0)
    span = raw_values(n, unit, sink, stream.positions)
    if isinstance(stream, RealStream):
        coarse = attempt == 0 and not rejects
        line = number_line(sequences, stream, rank, span, rng, coarse, shared=per_sequence)
        span_of_reals = span if stream.positions else max(span, FEWEST_OF_REALS)
        raw: Raw = line or reals(sequences, stream, rank, span_of_reals, attempt, rng, rejects=rejects)
    else:
        raw = words(stream, rank, span, rng)
    stays = not per_sequence
    few, placed = sequences.token_count() <= FEW_TOKENS, stream.positions
    hashes = draw_hashes(
        n, raw.top, dtype, rng, places=placed, sink=sink, stays=stays, wide=wide, few=few, steep=attempt > 0
    )
    embedding, gadgets = raw.network(hashes)
    coordinates, size = hashed_coordinates(sequences, hashes, hashes.shift(raw.values), per_sequence)

    def radius(top: float, unit: float) -> float:
        return sum_radius(n, size, top, unit, sink)

    constants = (
        Constant("code_bits", int(np.log2(span)), "token codes are whole numbers of about this many bits"),
        Constant("coded", raw.count, "thresholds on components of real tokens, or token ids"),
        Constant("lattice", 1.0, "distance of neighbouring lattice points, at least"),
        Constant("hash", hashes.step, "what is added up of a token is at most so large"),
    )
    whole = (embedding, (*gadgets, hashes.gadget), hashes.attention(n))
    return _context_map(whole, coordinates, radius, 0.0, constants)


def _context_map(
    parts: tuple[Embedding | None, tuple[Gadget, ...], Attention],
    coordinates: Array,
    radius: Callable[[float, float], float],
    ours: float,
    constants: tuple[Constant, ...],
) -> ContextMap:
    """The last channels of the stream, moved so that they are positive; ``ours`` is the unit of roundoff of
    ``coordinates``, 0 if they are exact."""
    attention, rank, dtype = parts[2], coordinates.shape[1], parts[2].W_Q.dtype
    low, high = column_bounds(coordinates)
    offset = np.ceil(1.0 - low)
    coordinates += offset.astype(coordinates.dtype)
    weight = np.zeros((attention.W_Q.shape[1], rank), dtype)
    weight[-rank:] = np.eye(rank)
    top = float((high + offset).max()) + float(np.abs(offset).max())
    computed, exact = (radius(top, unit) for unit in (float(np.finfo(dtype).eps) / 2, ours))
    names = [f"code{i}" for i in range(len(weight) - rank)] + [f"context{i}" for i in range(rank)]
    return ContextMap(
        *parts, Linear(weight, offset.astype(dtype)), tuple(names), coordinates, computed + exact, exact, constants
    )


def _too_long(n: int, dtype: np.dtype[Any], bits: int) -> PrecisionError:
    return PrecisionError(
        "lattice",
        f"sequences short enough for sums of whole numbers in {dtype}",
        f"{n} places leave {max(bits, 0)} bits for a token's code",
        'Use dtype="float64".',
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
    return min(bits, MOST_BITS)


def whole_bits(n: int, dtype: np.dtype[Any], mixing: float) -> int:
    """The same for equal lengths, where fewer than a few bits are refused."""
    bits = code_bits(n, dtype, ragged=False, mixing=mixing)
    if bits < FEWEST_BITS:
        raise _too_long(n, dtype, bits)
    return bits


def spacing(sequences: Sequences) -> float:
    return 1.0 if sequences.lengths is None else 1.0 / sequences.n


def summing_attention(rank: int, total: float, dtype: np.dtype[Any], separate: bool, own: float = 1.0) -> Attention:
    """Zero query and key: every weight is 1/n, and W_O = ``total`` = c n makes c sums of it."""
    width = 2 * rank if separate else rank
    W_Q, W_K, W_V = (np.zeros((1, width, rank), dtype) for _ in range(3))
    W_O = np.zeros((1, rank, width), dtype)
    W_V[0, :rank], W_O[0, :, -rank:] = np.eye(rank) / own, total * np.eye(rank)
    return Attention(W_Q, W_K, W_V, W_O)


def _identity(rank: int, dtype: np.dtype[Any]) -> Affine:
    return Affine(Linear(np.eye(rank, dtype=dtype), np.zeros(rank, dtype)))


def _pad_outputs(last: Gadget) -> Affine:
    """The same outputs, followed by as many zeros."""
    assert isinstance(last, Affine)
    layer = last.layer
    weight, bias = np.pad(layer.weight, ((0, 0), (0, layer.width))), np.pad(layer.bias, (0, layer.width))
    return Affine(Linear(weight, bias))


@mapping
class Lattice(ContextMapping):
    name, order, shares, on_lattice, redraws = "lattice", 3, True, True, False

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        drawn = (wanted.sequences, wanted.stream, wanted.rank, wanted.seed, wanted.attempt)
        return construct(*drawn, wanted.per_sequence, wide=wanted.tabular, rejects=wanted.rejects)

    @classmethod
    def attempts(cls, sequences: Sequences, answers: int, dtype: np.dtype[Any]) -> tuple[int, int]:  # noqa: ARG003
        return 1, ATTEMPTS if answers <= LARGE_TABLE else 2  # what is too dense once is too dense again
