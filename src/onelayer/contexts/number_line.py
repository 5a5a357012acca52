"""Codes of tokens of one component: the digits of a piece's number, by a staircase whose thresholds a row emits.

The line of numbers is cut into pieces: as few as tell contexts apart (`cuts`), or one for each value. One threshold
and a code for each would be ten numbers a piece. Here a cell of the line is found first; it emits the thresholds of
its pieces, one number each, and how many of them are reached is the low digit. A threshold is a value of the data
times a power of two: the comparison of two numbers has one rounding, which keeps its sign, so that values one unit
in the last place apart are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.cuts import cut_line
from onelayer.contexts.hashed import Hashes
from onelayer.contexts.quantiser import LEAST_GAP_IN_ULPS
from onelayer.contexts.stream import RealStream
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.line import Line, trapezoids
from onelayer.gadgets.ranks import Ranks
from onelayer.network import Embedding
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Fewer different values have a threshold and a code each.
FEWEST_VALUES = 1 << 9
#: Neighbours of a quantile among which the widest gap is taken.
NEIGHBOURS = 32
#: Thresholds are so far apart, or further: one less 1 is then rounded to itself, and what is next below is no
#: higher than the next threshold.
STEP = 4.0
#: Slopes times values stay in the range of the dtype.
LARGEST = 2.0**100


@dataclass(frozen=True)
class NumberLine:
    """Cells of the line, the thresholds that each emits, and codes of both digits, which are added up."""

    low: Array  # [R - 1] the gaps between cells, from low
    high: Array  # to high
    slope: float
    thresholds: Array  # [R, G] of slope |x|, sorted; those that are not used are never reached
    of_cell: Array  # [R, s]
    of_step: Array  # [G + 1, s]
    values: Array
    top: Array
    count: int
    stream: RealStream

    def network(self, hashes: Hashes) -> tuple[Embedding, tuple[Gadget, ...]]:
        dtype, carried = self.stream.dtype, hashes.carried
        lift, places = (np.eye(1, 1 + carried) * self.stream.unit).astype(dtype), hashes.embedded_places
        positions = None if places is None else np.pad(places, ((0, 0), (1, 0))).astype(dtype)
        cells = Line(0, *trapezoids(self.low, self.high, dtype)[:2])
        of_cell, of_step = (
            np.pad(codes, ((0, 0), (0, int(hashes.sink)))).astype(dtype) for codes in (self.of_cell, self.of_step)
        )
        embedding = Embedding(lift=lift, positions=positions)
        return embedding, (Ranks(cells, self.slope, self.thresholds, of_cell, of_step, carried),)


def number_line(
    sequences: Sequences,
    stream: RealStream,
    rank: int,
    values: int,
    rng: np.random.Generator,
    coarse: bool = False,
    shared: bool = False,
) -> NumberLine | None:
    """Codes of about this many values in each channel; None if there are few numbers, or no gaps between cells.

    Every number has a code of its own or, if ``coarse``, numbers share one while contexts are told apart, which all
    tokens of a sequence may share.
    """
    if stream.tokens.shape[2] != 1:
        return None
    x, valid = stream.tokens[..., 0], sequences.valid()
    different = np.unique(x if valid is None else x[valid]) + 0.0  # no negative zero
    if len(different) < FEWEST_VALUES:
        return None
    at = np.minimum(np.searchsorted(different, x), len(different) - 1)
    begins = np.ones(len(different), bool)
    if coarse:
        numbered = at if valid is None else np.where(valid, at, -1)
        begins = cut_line(numbered, np.diff(different.astype(np.float64)), stream.positions, shared)
        begins[1:] |= (different[:-1] < 0) & (different[1:] >= 0)  # no piece has numbers on both sides of 0
    pieces = _Pieces.of(different, begins)
    cells = _cells(pieces.last[:-1], pieces.first[1:])
    if cells is None or pieces.slope * float(np.abs(different).max()) > LARGEST:
        return None
    starts = np.concatenate([[0], cells + 1])
    row = np.repeat(np.arange(len(starts)), np.diff(starts, append=pieces.count))
    ends = np.append(starts[1:], pieces.count) - 1
    number = np.arange(pieces.count)
    step = np.where(pieces.first < 0, ends[row] - number, number - starts[row])
    G = max(1, int(step.max()))
    thresholds = np.full((len(starts), G), 2.0 * pieces.slope * float(np.abs(different).max()) + 2.0)
    thresholds[row[step > 0], step[step > 0] - 1] = pieces.slope * pieces.least[step > 0]
    of_cell, of_step = (rng.integers(0, values // 2, (k, rank)) for k in (len(starts), G + 1))
    table = (of_cell[row] + of_step[step]).astype(stream.dtype)
    return NumberLine(
        pieces.last[cells],
        pieces.first[cells + 1],
        pieces.slope,
        thresholds.astype(stream.dtype),
        of_cell,
        of_step,
        table[(np.cumsum(begins) - 1)[at]],
        table.max(axis=0),
        pieces.count,
        stream,
    )


@dataclass(frozen=True)
class _Pieces:
    """Runs of neighbouring values."""

    first: Array  # [K] the smallest and the largest of each
    last: Array
    slope: float  # at which thresholds of neighbouring pieces are ``STEP`` apart, or more

    @property
    def count(self) -> int:
        return len(self.first)

    @property
    def least(self) -> Array:
        """[K] the smallest size of a number."""
        return np.where(self.first < 0, np.abs(self.last), np.abs(self.first)).astype(np.float64)

    @classmethod
    def of(cls, different: Array, begins: Array) -> _Pieces:
        first, last = different[begins], different[np.append(np.flatnonzero(begins)[1:], len(different)) - 1]
        gap = (first[1:].astype(np.float64) - last[:-1].astype(np.float64)).min()
        return cls(first, last, float(np.exp2(np.ceil(np.log2(STEP / gap)))))


def _cells(low: Array, high: Array) -> Array | None:
    """The last piece of each cell but the last one, of pieces with gaps from low to high between them: about as
    many cells as pieces in each, and none with numbers on both sides of 0."""
    gaps, count = high - low, len(low) + 1
    wide = gaps > LEAST_GAP_IN_ULPS * np.spacing(np.maximum(np.abs(high), np.abs(low)))
    size = int(np.ceil(np.sqrt(count)))
    around = np.arange(size, count - 1, size)
    window = np.clip(
        around[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS) * size // (4 * NEIGHBOURS), 0, len(gaps) - 1
    )
    best = window[np.arange(len(around)), np.where(wide, gaps, 0.0)[window].argmax(axis=1)]
    crossing = np.flatnonzero((low < 0) & (high >= 0))
    ends = np.unique(np.concatenate([best[wide[best]], crossing]))
    return ends if wide[ends].all() and len(ends) else None
