"""Sums over windows of a stream of tokens: what each token adds depends on its place, by a matrix for each place.

Places times channels are one long row, and a few windows side by side share a product of matrices. All of it is
whole numbers that the arithmetic holds exactly, so no order of summation changes a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onelayer.network.blocks import Rows, over_threads
from onelayer.network.weights import Array

#: Windows that share a row of the product, and windows at a time: they stay in a core's cache.
TOGETHER, BLOCK = 16, 1 << 12


@dataclass(frozen=True)
class WindowSums:
    """The sum over the places k of table[token] @ taps[k], and a constant."""

    table: Array  # [tokens, c] whole numbers
    taps: Array  # [n, c, s] whole numbers
    constant: Array  # [s]

    @property
    def context(self) -> int:
        return len(self.taps)

    @cached_property
    def sizes(self) -> Array:
        """[s] no sum of codes, nor of some of them, is larger."""
        return np.asarray(np.abs(self.codes).max(axis=1).sum(axis=0), np.float64)

    @cached_property
    def codes(self) -> Array:
        """[n, tokens, s]: what a token at a place adds."""
        return np.asarray(np.rint(self.table.astype(np.float64) @ self.taps.astype(np.float64)), np.int32)

    def shifted(self, by: Array) -> WindowSums:
        """The same, with something added to the constant."""
        return WindowSums(self.table, self.taps, self.constant + by)

    def of(self, stream: Array) -> Array:
        """[N, s] of the windows stream[i : i + n], all that there are."""
        n, s, N = self.context, len(self.constant), len(stream) - self.context + 1
        product, table = self._product
        out = np.empty((max(N, 0), s), np.int32)
        span = (n + TOGETHER - 1) * table.shape[1]
        constant = self.constant.astype(np.int32)

        def run(rows: Rows) -> None:
            assert isinstance(rows, slice)
            count = rows.stop - rows.start
            full = -(-count // TOGETHER)
            x = np.zeros((full * TOGETHER + n - 1, table.shape[1]), table.dtype)
            x[: count + n - 1] = table.take(stream[rows.start : rows.stop + n - 1], axis=0)
            step = TOGETHER * x.strides[0]
            side_by_side = np.lib.stride_tricks.as_strided(x, (full, span), (step, x.itemsize))
            found = np.ascontiguousarray(side_by_side) @ product
            out[rows] = found.reshape(-1, s)[:count] + constant

        over_threads(run, [slice(start, min(start + BLOCK, N)) for start in range(0, N, BLOCK)])
        return out

    def of_rows(self, windows: Array) -> Array:
        """[S, s] of windows [S, n] that need not follow one another."""
        return np.asarray(self.codes[np.arange(self.context), windows].sum(axis=1) + self.constant)

    @cached_property
    def _product(self) -> tuple[Array, Array]:
        """The matrix for windows side by side, and the table, in an arithmetic that holds all sums."""
        n, c, s = self.taps.shape
        largest = float((np.abs(self.table).max(axis=0) @ np.abs(self.taps).sum(axis=0)).max())
        dtype: Any = np.float32 if largest < 1 << 24 else np.float64
        product = np.zeros(((n + TOGETHER - 1) * c, TOGETHER, s), dtype)
        for j in range(TOGETHER):
            product[j * c : (j + n) * c, j] = self.taps.reshape(n * c, s)
        return product.reshape(-1, TOGETHER * s), np.ascontiguousarray(self.table, dtype)
