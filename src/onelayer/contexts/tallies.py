"""Contexts as tallies: whole numbers so small that 16 bits hold them, on several channels, added up by attention.

Statement  where n is a power of two and attention is uniform, every weight is exactly 1/n, and sums of n codes,
           none above T/n, are exact in a format whose whole numbers reach to T, in every order; random codes on k
           channels tell two sequences apart but for a share of about (n/T)^k.
Gives      k coordinates that are whole numbers up to T, computed without any rounding: in bfloat16 T is 128, in
           float16 256, for thousands of answers as for ten.
Rests on   exactness of sums of whole numbers; the codes are drawn, checked, and drawn again.
Why        of 8 bits rounding leaves no gap between real ids, nor between whole numbers of many digits.
Differs    `lattice` has few channels of long codes, for 24 bits, and any n; here are many channels of short ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.head import ContextMap
from onelayer.contexts.lattice import summing_attention
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.contexts.small_codes import MORE as MORE_OWN
from onelayer.contexts.small_codes import OWN, Draw, codes_of_reals, codes_of_words
from onelayer.contexts.stream import RealStream, TokenStream
from onelayer.errors import HypothesisError, PrecisionError
from onelayer.ledger import Constant
from onelayer.network import Attention, Linear
from onelayer.network.formats import FORMATS, Format
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["tallies"]
Array = NDArray[Any]

#: Channels that are added up, at first; each later attempt has so many more.
DEFAULT_RANK, MORE = 8, 4
ATTEMPTS = 5
#: Sums of codes reach up to here, or to n: more would make more cells, and tell no more contexts apart.
WIDE = 64
#: Nothing is rounded; this is small beside the quarter that a cell has to spare.
RADIUS = 2.0**-20


def construct(wanted: Wanted) -> ContextMap:
    """Codes of tokens at their places, added up; what a token has of its own stays on channels beside."""
    sequences, stream, format_ = wanted.sequences, wanted.stream, wanted.format or FORMATS["bfloat16"]
    if sequences.lengths is not None:
        found = f"lengths from {sequences.lengths.min()} to {sequences.lengths.max()}"
        remedy = 'Fill them up with one token that means nothing, or use dtype="float32".'
        raise HypothesisError("tallies", "sequences of one length", found, remedy)
    rng = np.random.default_rng([wanted.seed, wanted.rank, wanted.attempt, 11])
    n, rank = sequences.n, wanted.rank + MORE * wanted.attempt
    code = largest_code(n, format_)
    assert isinstance(stream, RealStream | TokenStream)
    kept = 0 if wanted.per_sequence else OWN + MORE_OWN * wanted.attempt
    draw = Draw(rank, code, format_, kept, wanted.attempt, rng)
    if isinstance(stream, TokenStream):
        codes = codes_of_words(stream, draw)
    else:
        codes = codes_of_reals(sequences.tokens, stream.positions, stream.dtype, draw)
    coordinates, own = codes.summed.sum(axis=1), codes.own.shape[2]
    if not wanted.per_sequence:
        tallies = np.repeat(coordinates[:, None], n, axis=1)
        coordinates = np.concatenate([tallies, codes.own], axis=2).reshape(-1, rank + own)
    weight = np.eye(2 * rank + own, rank + own, -rank, dtype=stream.dtype)  # all but the codes
    names = [f"{what}{i}" for what, k in (("code", rank), ("tally", rank), ("own", own)) for i in range(k)]
    constants = (
        Constant("code", code, "what is added up of a token is at most so large"),
        Constant("coded", codes.count, "thresholds on components of real tokens, or token ids"),
        Constant("lattice", 1.0, "distance of neighbouring lattice points"),
    )
    return ContextMap(
        codes.embedding,
        codes.gadgets,
        _adding(own, rank, n, stream.dtype),
        Linear(weight, np.zeros(own + rank, stream.dtype)),
        tuple(names),
        coordinates.astype(np.float64),
        RADIUS,
        0.0,
        constants,
    )


def highest(format_: Format) -> int:
    """Coordinates are at most so large: cells of them have biases of 8 bits or fewer, and nothing overflows."""
    return 1 << min(format_.bits - 1, 8)


def largest_code(n: int, format_: Format) -> int:
    """Of a token; n of them add up to a coordinate."""
    most = highest(format_)
    if n & (n - 1) or n > most:
        longer = 1 << (n - 1).bit_length()
        fill = f"Fill each up to {longer} with tokens that mean nothing, or use" if longer <= most else "Use"
        needs = f"a number of tokens that is a power of two, up to {most}, in {format_.name}"
        raise PrecisionError("tallies", needs, f"there are {n}", f'{fill} dtype="float32".')
    return max(WIDE // n, 1)


def _adding(own: int, rank: int, n: int, dtype: np.dtype[Any]) -> Attention:
    """Zero query and key; codes are read, and n times their mean is written behind them."""
    inner = summing_attention(rank, float(n), dtype, separate=True)
    W_Q, W_K, W_V = (np.pad(W, ((0, 0), (0, own), (0, 0))) for W in (inner.W_Q, inner.W_K, inner.W_V))
    return Attention(W_Q, W_K, W_V, np.pad(inner.W_O, ((0, 0), (0, 0), (0, own))))


@mapping
class Tallies(ContextMapping):
    name, order, shares, on_lattice, redraws = "tallies", 7, True, True, False

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        return construct(wanted)

    @classmethod
    def attempts(cls, sequences: Sequences, answers: int, dtype: np.dtype[Any]) -> tuple[int, int]:  # noqa: ARG003
        return 1, ATTEMPTS
