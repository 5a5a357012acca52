"""Sums of table entries: the cell of a coordinate chooses a row of numbers, and the rows of some coordinates are
added up. Some coordinates are passed on.

Of each coordinate one cell is on and all others are exactly 0: where all entries are whole numbers whose sums the
format holds, every sum is exact in every order. The search equals the layers but on ramps between two cells, where
the layers are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.gadgets.line import Line
from onelayer.gadgets.one_hots import names_of_one_hots, one_hots, read_one_hots
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True, eq=False)
class Lookups(Gadget):
    kind: ClassVar[str] = "lookups"
    depths: ClassVar[tuple[int, ...]] = (3,)

    inputs: int
    lines: tuple[Line, ...]  # of two cells or more, neighbours along different coordinates
    carried: tuple[int, ...]  # coordinates that are passed on, after the sums
    tables: Array  # [cells of all lines, sums]
    constant: Array  # [sums]

    def layers(self) -> tuple[Layer, ...]:
        k, (cells, sums), dtype = len(self.carried), self.tables.shape, self.tables.dtype
        weight, bias = np.zeros((cells + k, sums + k), dtype), np.zeros(sums + k, dtype)
        weight[:cells, :sums], weight[cells:, sums:], bias[:sums] = self.tables, np.eye(k), self.constant
        sizes = [line.count for line in self.lines]
        return (*one_hots(self.lines, sizes, self.inputs, [[i] for i in self.carried]), Linear(weight, bias))

    def names(self) -> tuple[Words, ...]:
        cells = [f"lookup {k} / cell {i}" for k, line in enumerate(self.lines) for i in range(line.count)]
        carried = [f"coordinate {i}, passed on as {k}" for k, i in enumerate(self.carried)]
        sums = number_names("sum of entries", self.tables.shape[1])
        return (*names_of_one_hots(cells, carried), (*sums, *carried))

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        units, hot_layer, last = layers
        shapes = isinstance(units, Linear) and isinstance(hot_layer, Grouped) and isinstance(last, Linear)
        if not shapes or hot_layer.weight.shape[1:] != (2, 1) or len(hot_layer.weight) != len(last.weight):
            return None
        cells = int(np.count_nonzero(hot_layer.bias))
        read = np.abs(units.weight).reshape(len(units.weight), -1, 2)[:, :cells].max(axis=2, initial=0)
        coordinate, k = read.argmax(axis=0), len(last.weight) - cells
        if not cells or last.width <= k or not read.any(axis=0).all():
            return None
        starts = np.flatnonzero(np.diff(coordinate, prepend=-1))
        found = read_one_hots(units, hot_layer, np.diff(starts, append=cells).tolist())
        if found is None:
            return None
        carried, sums = tuple(found[1].argmax(axis=0).tolist()), last.width - k
        return cls(len(units.weight), found[0], carried, last.weight[:cells, :sums], last.bias[:sums])

    def lines_of_cells(self) -> dict[str, Line]:
        return {f"lookup {k}": line for k, line in enumerate(self.lines)}

    @property
    def searches(self) -> bool:
        return True

    def find(self, t: Array) -> tuple[Array, Array]:
        k, sums, start = len(self.carried), self.tables.shape[1], 0
        out, sure = np.empty((len(t), sums + k), t.dtype), np.ones(len(t), bool)
        out[:, :sums], out[:, sums:] = self.constant, np.maximum(t[:, list(self.carried)], 0)
        for line in self.lines:
            cell, certain = line.find(t)
            out[:, :sums] += self.tables.take(start + cell, axis=0)
            sure &= certain
            start += line.count
        return out, sure
