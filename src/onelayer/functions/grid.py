"""A box cut into cells: where they begin and end, their centres, and the sequences of cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import PrecisionError

Array = NDArray[Any]

#: A ramp between two cells may take this share of a cell, on each side of the edge.
RAMP_SHARE = {"float32": 2.0**-12, "float64": 2.0**-24}
#: And must be this many units in the last place wide, so that rounding leaves it a ramp.
RAMP_IN_ULPS = 32


@dataclass(frozen=True)
class Grid:
    """D equal cells for each of d components of n tokens in [low, high]."""

    n: int
    d: int
    low: float
    high: float
    levels: int  # D
    dtype: np.dtype[Any]
    ordered: bool  # sequences of cells, not multisets of them

    def __post_init__(self) -> None:
        if 4 * self.margin > self.width:
            raise PrecisionError(
                "quantise",
                f"cells that {self.dtype} can tell apart",
                f"{self.levels} cells between {self.low:g} and {self.high:g} are {self.width:.3g} wide",
                'Use dtype="float64", or a larger tolerance.',
            )

    @property
    def width(self) -> float:
        return (self.high - self.low) / self.levels

    @property
    def margin(self) -> float:
        """What is left out on each side of an edge."""
        ulp = float(np.spacing(self.dtype.type(max(abs(self.low), abs(self.high)))))
        return max(self.width * RAMP_SHARE[self.dtype.name], RAMP_IN_ULPS * ulp)

    @cached_property
    def centres(self) -> Array:
        """[D], numbers of the dtype."""
        exact = self.low + self.width * (np.arange(self.levels) + 0.5)
        return exact.astype(self.dtype).astype(np.float64)

    @cached_property
    def radius(self) -> float:
        """Around every centre, up to this distance, the quantiser is constant: half a cell without its margin."""
        half = float(np.abs(self.centres[:, None] - self.edges[[[i, i + 1] for i in range(self.levels)]]).min())
        return (half - self.margin) * (1 - 2.0**-20)

    @cached_property
    def edges(self) -> Array:
        """[D + 1]"""
        return np.asarray(self.low + self.width * np.arange(self.levels + 1))

    @property
    def cells(self) -> int:
        """V, cells of a token."""
        return int(self.levels**self.d)

    @property
    def count(self) -> int:
        """How many sequences of cells there are; as multisets, unless order matters."""
        return self.cells**self.n if self.ordered else comb(self.cells + self.n - 1, self.n)

    def left_out_of(self, stored: int, distinct: bool) -> float:
        """Share of the box in no stored cell, at most: some component on a ramp, or two tokens in one cell where
        only ``stored`` sequences of distinct cells are kept."""
        inside = (2 * self.radius * self.levels / (self.high - self.low)) ** (self.n * self.d)
        if distinct:
            inside *= stored * (1 if self.ordered else factorial(self.n)) / self.cells**self.n
        return float((1.0 - inside) * (1 + 2.0**-20) + 2.0**-40)

    @cached_property
    def tokens(self) -> Array:
        """[V, d] centres of the cells of a token, the first component slowest."""
        axes = np.meshgrid(*[self.centres] * self.d, indexing="ij")
        return np.stack([axis.ravel() for axis in axes], axis=1)

    def sequences(self) -> Array:
        """[count, n] cell numbers: non-decreasing, or all of them if order matters."""
        rows = np.arange(self.cells)[:, None]
        for _ in range(self.n - 1):
            first = np.zeros(len(rows), np.int64) if self.ordered else rows[:, -1]
            repeats = self.cells - first
            starts = np.concatenate([[0], np.cumsum(repeats)[:-1]])
            at = np.arange(int(repeats.sum())) - np.repeat(starts - first, repeats)
            rows = np.concatenate([np.repeat(rows, repeats, axis=0), at[:, None]], axis=1)
        return rows
