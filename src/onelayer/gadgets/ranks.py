"""Codes of the rank of a real number: its cell on a line, and how many of the cell's thresholds it has reached.

A cell emits a code and the thresholds of slope |x|; each threshold that is reached adds to the code. The search
finds the cell and bisects its thresholds; on ramps, and between a threshold and the next full step, it leaves the
answer to the layers. Codes are whole numbers, so their sums are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.gadgets.line import Line
from onelayer.gadgets.one_hots import names_of_one_hots
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True, eq=False)
class Ranks(Gadget):
    kind: ClassVar[str] = "ranks"
    depths: ClassVar[tuple[int, ...]] = (5,)

    cells: Line  # along input 0
    slope: float
    thresholds: Array  # [R, G] of slope |x|, sorted in each cell
    of_cell: Array  # [R, w] codes, not negative
    of_step: Array  # [G + 1, w] codes of how many thresholds are reached
    carried: int  # inputs after the first that are added to the code

    def layers(self) -> tuple[Layer, ...]:
        (R, G), (_, w), k, dtype = self.thresholds.shape, self.of_cell.shape, self.carried, self.of_cell.dtype
        groups = R + 1 + k
        units, unit_bias = np.zeros((1 + k, groups, 2), dtype), np.zeros((groups, 2), dtype)
        units[0, :R], unit_bias[:R] = self.cells.weight, self.cells.bias
        units[0, R] = 1.0, -1.0  # |x|, of both its parts
        units[1 + np.arange(k), R + 1 + np.arange(k), 0] = 1.0
        select, one = np.full((groups, 2, 1), -1.0, dtype), np.ones(groups, dtype)
        select[R:], one[R:] = 1.0, 0.0
        emit = np.zeros((groups, G + w), dtype)
        emit[:R, :G], emit[R, :G], emit[:R, G:] = self.thresholds, -self.slope, self.of_cell
        emit[R + 1 :, G:] = np.eye(k, w)
        sign, step = np.ones((G + w, 1, 1), dtype), np.zeros(G + w, dtype)
        sign[:G], step[:G] = -1.0, 1.0
        read = np.eye(G + w, w, -G, dtype=dtype)
        read[:G] = np.diff(self.of_step, axis=0)
        return (
            Linear(units.reshape(1 + k, -1), unit_bias.ravel()),
            Grouped(select, one),
            Linear(emit, np.zeros(G + w, dtype)),
            Grouped(sign, step),
            Linear(read, self.of_step[0].copy()),
        )

    def names(self) -> tuple[Words, ...]:
        (R, G), w = self.thresholds.shape, self.of_cell.shape[1]
        cells, passed = [f"cell {i}" for i in range(R)], list(number_names("carried", self.carried))
        units, one_hots = names_of_one_hots(cells, ["size of the number", *passed])
        codes = tuple(f"code {i} of the cell" for i in range(w))
        lacking = tuple(f"what lacks to threshold {j}" for j in range(G))
        reached = tuple(f"threshold {j} is reached" for j in range(G))
        return units, one_hots, lacking + codes, reached + codes, number_names("code", w)

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        units, select, emit, steps, read = layers
        if not all(isinstance(layer, Linear) for layer in (units, emit, read)) or not isinstance(select, Grouped):
            return None
        k, R = len(units.weight) - 1, int(np.count_nonzero(select.bias))
        G = emit.width - read.width
        fits = units.width == 2 * len(select.weight) == 2 * (R + 1 + k) and len(emit.weight) == R + 1 + k
        if not fits or R < 1 or G < 1 or len(steps.weight) != emit.width or len(read.weight) != emit.width:
            return None
        weight, bias = units.weight.reshape(1 + k, -1, 2), units.bias.reshape(-1, 2)
        cells, of_cell = Line.read(weight[:1, :R], bias[:R]), emit.weight[:R, G:]
        thresholds, slope = emit.weight[:R, :G], -float(emit.weight[R, 0])
        if cells is None or cells.count != R or of_cell.min() < 0 or (np.diff(thresholds, axis=1) < 0).any():
            return None
        of_step = np.concatenate([read.bias[None], read.bias + np.cumsum(read.weight[:G], axis=0)])
        return cls(cells, slope, thresholds, of_cell, of_step, k) if slope > 0 else None

    @cached_property
    def _whole(self) -> bool:
        return not (self.of_cell % 1).any() and not (self.of_step % 1).any()

    @property
    def searches(self) -> bool:
        return self._whole

    def find(self, t: Array) -> tuple[Array, Array]:
        if not self._whole:
            return super().find(t)
        cell, sure = self.cells.find(t)
        z, G = np.abs(t[:, 0]) * t.dtype.type(self.slope), self.thresholds.shape[1]
        low, high = np.zeros(len(t), np.intp), np.full(len(t), G)  # of the thresholds that are reached
        while (low < high).any():
            middle = np.minimum((low + high) // 2, G - 1)
            reached = (low < high) & (self.thresholds[cell, middle] - z <= 0)
            low, high = np.where(reached, middle + 1, low), np.where(reached, high, np.minimum(high, middle))
        following = self.thresholds[cell, np.minimum(low, G - 1)] - z
        sure &= (low == G) | (following >= 1)
        out = self.of_cell[cell] + self.of_step[low]
        out[:, : self.carried] += np.maximum(t[:, 1:], 0)[:, : out.shape[1]]
        return out, sure & (t[:, 1:] == np.floor(t[:, 1:])).all(axis=1)
