"""Codes of tokens of one component: the digits of a number's rank, by a staircase whose thresholds a row emits.

One threshold a value, and a code for each, would be ten numbers a value. Here a cell of the line is found first; it
emits the thresholds of its values, one number each, and how many of them are reached is the low digit. A threshold
is a value of the data times a power of two: the comparison of two numbers has one rounding, which keeps its sign,
so that values one unit in the last place apart are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.hashed import Hashes
from onelayer.contexts.quantiser import LEAST_GAP_IN_ULPS
from onelayer.contexts.stream import RealStream
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.line import Line, trapezoids
from onelayer.gadgets.ranks import Ranks
from onelayer.network import Embedding
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: With fewer different values, each has a threshold and a code.
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
    sequences: Sequences, stream: RealStream, rank: int, values: int, rng: np.random.Generator
) -> NumberLine | None:
    """Codes of about this many values in each channel; None if there are few numbers, or no gaps between cells."""
    if stream.tokens.shape[2] != 1:
        return None
    x = stream.tokens[..., 0]
    valid = sequences.valid()
    different = np.unique(x if valid is None else x[valid]) + 0.0  # no negative zero
    cells = _cells(different) if len(different) >= FEWEST_VALUES else None
    if cells is None:
        return None
    starts = np.concatenate([[0], cells + 1])
    row = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(different)))
    slope = float(np.exp2(np.ceil(np.log2(STEP / np.diff(different.astype(np.float64)).min()))))
    if slope * float(np.abs(different).max()) > LARGEST:
        return None
    size = np.abs(different).astype(np.float64)
    last = np.append(starts[1:], len(different)) - 1
    step = np.where(different < 0, last[row] - np.arange(len(different)), np.arange(len(different)) - starts[row])
    G = max(1, int(step.max()))
    thresholds = np.full((len(starts), G), 2.0 * slope * size.max() + 2.0)
    thresholds[row[step > 0], step[step > 0] - 1] = slope * size[step > 0]
    of_cell, of_step = (rng.integers(0, values // 2, (k, rank)) for k in (len(starts), G + 1))
    table = (of_cell[row] + of_step[step]).astype(stream.dtype)
    at = np.minimum(np.searchsorted(different, x), len(different) - 1)
    return NumberLine(
        different[cells],
        different[cells + 1],
        slope,
        thresholds.astype(stream.dtype),
        of_cell,
        of_step,
        table[at],
        table.max(axis=0),
        len(different),
        stream,
    )


def _cells(different: Array) -> Array | None:
    """The last value of each cell but the last one: about as many cells as values in each, and none with numbers on
    both sides of 0."""
    gaps = np.diff(different)
    wide = gaps > LEAST_GAP_IN_ULPS * np.spacing(np.maximum(np.abs(different[1:]), np.abs(different[:-1])))
    size = int(np.ceil(np.sqrt(len(different))))
    around = np.arange(size, len(different) - 1, size)
    window = np.clip(
        around[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS) * size // (4 * NEIGHBOURS), 0, len(gaps) - 1
    )
    best = window[np.arange(len(around)), np.where(wide, gaps, 0.0)[window].argmax(axis=1)]
    crossing = np.flatnonzero((different[:-1] < 0) & (different[1:] >= 0))
    ends = np.unique(np.concatenate([best[wide[best]], crossing]))
    return ends if wide[ends].all() and len(ends) else None
