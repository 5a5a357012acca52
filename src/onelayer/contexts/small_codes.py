"""Codes of tokens that 16 bits hold: what is added up of a token, and what stays of it.

Words have a row of codes each. Components of real tokens are cut into cells, in gaps between the values that they
take; cells have random numbers, which are added up, and the sum has a random code. So has, where the order matters,
the number of a word and its place together: a sum of codes of both would not tell who stood where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.stream import TokenStream
from onelayer.errors import PrecisionError
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.line import Line, whole_cells
from onelayer.gadgets.lookups import Lookups
from onelayer.network import Embedding
from onelayer.network.formats import Format

Array = NDArray[Any]

#: What words and places, or cells of components, add up to before it is hashed is below this.
SUMS = 64
#: Channels that stay of a token, by which it is told from others of its sequence; each later attempt has more.
OWN, MORE = 6, 2
#: Components that are looked at, twice as many at each later attempt, and those of them that one channel reads.
COMPONENTS, READ = 32, 16
#: Cells of a component of many, and of one of few, at most.
FEW_CELLS, MOST_CELLS = 4, 1 << 12
#: No slope is beyond this, in formats that have room for more.
STEEPEST = 60


@dataclass(frozen=True)
class Codes:
    """Codes on the data, and what computes them: a stream of codes, as many zeros, and what a token keeps."""

    summed: Array  # [N, n, s] whole numbers from 0 on
    own: Array  # [N, n, o]
    embedding: Embedding | None
    gadgets: tuple[Gadget, ...]
    count: int  # thresholds on components, or words


@dataclass(frozen=True)
class Draw:
    """What a draw of codes is made for."""

    rank: int
    code: int  # the largest
    format: Format
    kept: int  # channels that stay of a token
    attempt: int
    rng: np.random.Generator


def codes_of_words(stream: TokenStream, draw: Draw) -> Codes:
    """A table of codes; where the order matters, one of numbers, whose sums with those of a place have codes."""
    V, n, dtype, rank = stream.vocabulary, stream.ids.shape[1], stream.dtype, draw.rank
    if not stream.positions:
        table = _coded(V, draw)
        values = table[stream.ids]
        return Codes(values[..., :rank], values[..., 2 * rank :], Embedding(table=table.astype(dtype)), (), V)
    words, places = (draw.rng.integers(0, SUMS // 2, (count, rank)) for count in (V, n))
    z = words[stream.ids] + places
    hashed, summed = _hashed(z, draw, dtype)
    embedding = Embedding(table=words.astype(dtype), positions=places.astype(dtype))
    return Codes(summed, z[..., : draw.kept], embedding, (hashed,), V)


def codes_of_reals(tokens: Array, positions: bool, dtype: np.dtype[Any], draw: Draw) -> Codes:
    """Cells of components [N, n, d], and places where the order matters, have numbers; their sums have codes."""
    (N, n, d), rank, rng = tokens.shape, draw.rank, draw.rng
    lines, cells = _cells(tokens.astype(np.float64), dtype, draw)
    if positions and n > 1:
        lines.append(Line(d, *whole_cells(np.arange(1, n), dtype)))
        cells.append(np.broadcast_to(np.arange(n), (N, n)))
    if len(lines) == 1:  # the cell says all there is
        table = _coded(lines[0].count, draw)
        gadget = Lookups(d + positions, tuple(lines), (), table.astype(dtype), np.zeros(table.shape[1], dtype))
        values = table[cells[0]]
        return Codes(
            values[..., :rank], values[..., 2 * rank :], _placed(d, n, positions, dtype), (gadget,), len(table)
        )
    tables = [np.zeros((line.count, rank)) for line in lines]
    for channel in range(rank):
        read = rng.permutation(len(lines))[:READ]
        if positions and n > 1 and len(lines) - 1 not in read:
            read[0] = len(lines) - 1
        for k in read:
            tables[k][:, channel] = rng.integers(0, SUMS // len(read) + 1, lines[k].count)
    z = np.sum([table[cell] for table, cell in zip(tables, cells, strict=True)], axis=0)
    summing = Lookups(d + positions, tuple(lines), (), np.concatenate(tables).astype(dtype), np.zeros(rank, dtype))
    hashed, summed = _hashed(z, draw, dtype)
    count = sum(line.count - 1 for line in lines)
    return Codes(summed, z[..., : draw.kept], _placed(d, n, positions, dtype), (summing, hashed), count)


def _coded(count: int, draw: Draw) -> Array:
    """[count, 2 s + kept] random codes, zeros, and random numbers that stay."""
    codes, own = (
        draw.rng.integers(0, top + 1, (count, k)) for top, k in ((draw.code, draw.rank), (SUMS, draw.kept))
    )
    return np.concatenate([codes, np.zeros((count, draw.rank)), own], axis=1)


def _placed(d: int, n: int, positions: bool, dtype: np.dtype[Any]) -> Embedding | None:
    """Components, followed by the number of the place; without it the tokens are the stream."""
    if not positions:
        return None
    return Embedding(
        lift=np.eye(d, d + 1, dtype=dtype), positions=np.pad(np.arange(n, dtype=dtype)[:, None], ((0, 0), (d, 0)))
    )


def _hashed(z: Array, draw: Draw, dtype: np.dtype[Any]) -> tuple[Lookups, Array]:
    """From whole numbers z [N, n, s] to random codes, as many zeros, and those of z that stay."""
    rank, top = draw.rank, int(z.max())
    values = draw.rng.integers(0, draw.code + 1, (rank, top + 1))
    lines = tuple(Line(i, *whole_cells(np.arange(1, max(top, 1) + 1), dtype)) for i in range(rank))
    tables = np.zeros((rank, max(top, 1) + 1, 2 * rank), dtype)
    tables[np.arange(rank), : top + 1, np.arange(rank)] = values
    stays = tuple(range(draw.kept))
    gadget = Lookups(rank, lines, stays, tables.reshape(-1, 2 * rank), np.zeros(2 * rank, dtype))
    return gadget, np.stack([values[i].take(z[..., i].astype(np.intp)) for i in range(rank)], axis=-1)


def _cells(tokens: Array, dtype: np.dtype[Any], draw: Draw) -> tuple[list[Line], list[Array]]:
    """Cells of some components of tokens [N, n, d], and in which of them each token is."""
    N, n, d = tokens.shape
    wanted = FEW_CELLS if d >= READ else int(4 * (N * n) ** (2 / d))
    largest, lines, cells = float(np.abs(tokens).max()), [], []
    for i in np.sort(draw.rng.permutation(d)[: COMPONENTS << draw.attempt]).tolist():
        low, high = _cuts(tokens[..., i], min(wanted << draw.attempt, MOST_CELLS), largest, draw.format)
        if len(low):
            lines.append(Line(i, *_real_cells(low, high, dtype)))
            cells.append(np.searchsorted(high, tokens[..., i], side="right"))
    if not lines:
        needs = f"a component with two values further apart than {2 / draw.format.room:.2g} of the largest"
        remedy = 'Use dtype="bfloat16", which has room for steep steps, or "float32".'
        raise PrecisionError("tallies", needs, "all values lie closer together, or are one", remedy)
    return lines, cells


def _cuts(values: Array, cells: int, largest: float, format_: Format) -> tuple[Array, Array]:
    """Neighbouring values on either side of cuts near the quantiles, in gaps that are wide enough for the format.

    A cell needs a slope of two to a gap, and a slope times the largest token must not overflow.
    """
    found, counts = np.unique(values, return_counts=True)
    low, high = found[:-1], found[1:]
    slope, least = _slopes(low, high), 2.0 ** (format_.lowest + 3)
    faint = [(slope * np.abs(side) < least) & (side != 0) for side in (low, high)]
    fits = (2 * slope * max(largest, 1.0) < format_.room) & (slope <= 2.0 ** min(STEEPEST, format_.highest - 2))
    able = np.flatnonzero(fits & ~faint[0] & ~faint[1])
    if not able.size:
        return low[:0], high[:0]
    upto = np.cumsum(counts)
    wanted = upto[-1] * np.arange(1, cells) / cells
    near = np.searchsorted(upto[able], wanted)
    left, right = able[np.maximum(near - 1, 0)], able[np.minimum(near, len(able) - 1)]
    at = np.unique(np.where(wanted - upto[left] < upto[right] - wanted, left, right))
    return low[at], high[at]


def _slopes(low: Array, high: Array) -> Array:
    return np.asarray(np.exp2(np.ceil(np.log2(2.0 / (high - low)))))


def _real_cells(low: Array, high: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Weights and biases [K, 2] of cells cut between two values each: biases are these values, times a power of
    two, so that no format rounds them."""
    slope, K = _slopes(low, high), len(low) + 1
    weight, bias = np.zeros((K, 2), dtype), np.full((K, 2), -1, dtype)
    weight[:-1, 0], bias[:-1, 0] = slope, -slope * low
    weight[1:, 1], bias[1:, 1] = -slope, slope * high
    return weight, bias
