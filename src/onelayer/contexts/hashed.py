"""Two codes of a token at its place: a long one that stays, and a short hash of it that attention adds up.

Averaging forgets the order, and adding a code of the place to that of the token does not bring it back; a hash of
both does. It is a random zigzag f of z = raw + place, in each channel: whole numbers, of any size that sums over n
tokens have room for, while z itself is as long as tokens need. The cost is a few numbers a place, and all of it is
whole numbers below 2^24, so all of it is exact.

Where lengths differ, the first place is a sink: its logit outweighs all others by K, so that every other weight is
1 / (K + l - 1), nearly the same for all lengths l, and K times the average is nearly a sum. The first token's own
hash arrives on channels of its own, with a weight of nearly 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.zigzags import Zigzags
from onelayer.network import Attention
from onelayer.problems.blocks import blocks, product
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Pieces of a zigzag at least, in order and of bags, which even a straight line would tell apart; z takes at least
#: this many values.
PIECES, PIECES_OF_BAGS, VALUES = 32, 8, 128
#: Longest piece: slopes change by up to 4, and 32 of these times z stay below 2^24.
LONGEST_PIECE = 1 << 11
#: Share of knots that are not 0, where there is room.
DENSITY = 2.0 / 3.0
#: Range of what stays of a token in each channel, and for tables, which need more values to choose from.
OWN_RANGE, WIDE_RANGE = 1 << 12, 1 << 15
#: Where sums are narrow, contexts of one token lie close together, and what stays of it may not be many times
#: wider, if cells are few: of long sequences, whose hashes are at most so large, and with a sink, where most
#: sequences are far shorter than the longest, which limits what is added up.
SMALL_STEP, NARROW = 8, 2
#: A hash rises or falls by at most 2 from value to value, which this makes up for.
STEEPER = 3
#: Sums are added to what stays of this many bytes at a time, which stay in cache.
ADDED_BYTES = 1 << 18
#: log K, and roundings of K and of the quotient by the sum: exp is off by 64, its argument by three of 19.5.
SINK_LOGIT, SINK_ROUNDINGS = 19.5, 160


@dataclass(frozen=True)
class Hashes:
    step: int  # from knot to knot
    knots: Array  # [s, pieces + 1] f there, multiples of step
    own: Array  # [s, s] whole: what stays is z times this
    places: Array | None  # [n, s] what a place adds to z
    sink: bool
    dtype: np.dtype[Any]

    @property
    def rank(self) -> int:
        return len(self.knots)

    @property
    def carried(self) -> int:
        """Channels that the first layer here reads beside those of the raw codes."""
        return self.rank + self.sink if self.places is not None else 0

    @property
    def embedded_places(self) -> Array | None:
        """[n, carried]: the places, and which of them is the first."""
        if self.places is None or not self.sink:
            return self.places
        return np.column_stack([self.places, np.arange(len(self.places)) == 0])

    def shift(self, raw: Array) -> Array:
        """z [..., n, s] of raw codes."""
        return raw if self.places is None else raw + self.places.astype(raw.dtype)

    def codes(self, z: Array) -> Array:
        """f(z), whole numbers [..., s]."""
        table = np.empty((self.rank, (self.knots.shape[1] - 1) * self.step + 1), z.dtype)
        at = np.arange(table.shape[1])
        for i, values in enumerate(self.knots):
            table[i] = np.interp(at, self.step * np.arange(len(values)), values)
        out = np.empty_like(z)
        for i in range(self.rank):
            out[..., i] = table[i].take(z[..., i].astype(np.int32))
        return out

    @property
    def gadget(self) -> Zigzags:
        """From z, and perhaps the mark of the first place, to (hash, what stays) or, with a sink, to (hash but of
        the first token, hash of the first token, mark, what stays)."""
        return Zigzags(self.step, self.knots.astype(self.dtype), self.own.astype(self.dtype), self.sink)

    def attention(self, n: int) -> Attention:
        """Adds the sum of all hashes to what stays: zero query and key, or the first place as a sink."""
        s, dtype = self.rank, self.dtype
        size, width = (2 * s, 3 * s + 1) if self.sink else (s, 2 * s)
        W_Q, W_K, W_V = (np.zeros((1, width, size), dtype) for _ in range(3))
        W_O = np.zeros((1, size, width), dtype)
        W_V[0, :size] = np.eye(size)
        if not self.sink:
            W_O[0, :, s:] = n * np.eye(s)
            return Attention(W_Q, W_K, W_V, W_O)
        b_Q = np.zeros((1, size), dtype)
        b_Q[0, 0], W_K[0, 2 * s, 0] = SINK_LOGIT, 1.0
        W_O[0, :s, -s:], W_O[0, s:, -s:] = np.exp(SINK_LOGIT) * np.eye(s), np.eye(s)
        return Attention(W_Q, W_K, W_V, W_O, b_Q=b_Q)


def room(n: int, unit: float, sink: bool) -> float:
    """How large hashes may be on average, so that rounding moves a sum over n of them by at most 0.15."""
    return 0.15 / (unit * n * (n + 12 + SINK_ROUNDINGS * sink))


def sum_radius(n: int, size: float, top: float, unit: float, sink: bool) -> float:
    """Bound on the error of a coordinate, given what the sizes of the hashes of a sequence add up to."""
    rounding = 1.01 * unit * ((n + 8 + SINK_ROUNDINGS * sink) * size + 4 * top)
    return float(rounding + sink * size * (n * np.exp(-SINK_LOGIT) + 2.0**-23))  # K + l - 1 for K, and K rounded


def raw_values(n: int, unit: float, sink: bool, places: bool) -> int:
    """How many values a raw code should take in each channel."""
    step = _step(room(n, unit, sink))
    return max(VALUES, PIECES * step) // 2 if places else max(VALUES, PIECES_OF_BAGS * step)


def draw_hashes(
    n: int,
    largest: Array,
    dtype: np.dtype[Any],
    rng: np.random.Generator,
    *,
    places: bool,
    sink: bool,
    stays: bool,
    wide: bool,
    few: bool = False,
    steep: bool = False,
) -> Hashes:
    """For raw codes between 0 and ``largest`` [s]; ``stays``: whether a token's own code shows; ``few`` tokens in
    all; ``steep``: no two neighbouring values share a hash, where there is room, nor what is added to them."""
    s, mean = len(largest), room(n, float(np.finfo(dtype).eps) / 2, sink)
    step = _step(mean)
    top = int(largest.max())
    offsets = rng.integers(0, max(top, PIECES) + 1, (n, s)) if places else None
    pieces = -(-(top + (0 if offsets is None else int(offsets.max()))) // step) + 1
    density = min(DENSITY, 0.8 * mean)
    knots = step * rng.choice([-1, 0, 1], (s, pieces + 1), p=[density / 2, 1 - density, density / 2])
    if steep and density == DENSITY:
        knots = step * (rng.integers(1, 3, (s, pieces + 1)).cumsum(axis=1) % 3 - 1)
    narrow = few and not wide and (sink or step <= SMALL_STEP)
    length = NARROW if narrow else (WIDE_RANGE if wide else OWN_RANGE) // (pieces * step)
    own = _rotation(s, max(length, STEEPER) if steep else length, rng)
    return Hashes(step, knots.astype(np.float64), own * float(stays), offsets, sink, dtype)


def hashed_coordinates(sequences: Sequences, hashes: Hashes, z: Array, per_sequence: bool) -> tuple[Array, float]:
    """[T, s] whole numbers, and what the sizes of hashes of a sequence add up to at most; z is overwritten."""
    valid, (N, n, rank) = sequences.valid(), z.shape
    if valid is not None:
        z[~valid] = 0.0
    codes = hashes.codes(z)
    if valid is not None:
        codes[~valid] = 0.0
    ones = np.tile(np.eye(rank, dtype=codes.dtype), (n, 1))
    sums = product(codes.reshape(N, -1), ones)  # of whole numbers below 2^24: exact in any dtype and any order
    size = float(product(np.abs(codes).reshape(N, -1), ones).max())
    if per_sequence:
        return sums, size
    out = product(z.reshape(-1, rank), hashes.own.astype(z.dtype)).reshape(N, n * rank)
    for part in blocks(out, ADDED_BYTES):
        out[part] += np.tile(sums[part], n)
    return (out.reshape(-1, rank) if valid is None else out.reshape(N, n, rank)[valid]), size


def _rotation(s: int, length: int, rng: np.random.Generator) -> Array:
    """[s, s] whole: pairs of channels are turned, which makes more values of them and leaves them uncorrelated."""
    own = np.diag(rng.choice([-1, 1], s) * max(1, length))
    for i in range(0, s - 1 if length > 1 else 0, 2):
        a, b = length, int(rng.integers(1, length))
        own[i : i + 2, i : i + 2] = np.array([[a, -b], [b, a]]) * rng.choice([-1, 1], 2)
    return own


def _step(mean: float) -> int:
    """A power of two, as large as the room for hashes."""
    return int(np.clip(2.0 ** np.floor(np.log2(mean)), 1, LONGEST_PIECE))
