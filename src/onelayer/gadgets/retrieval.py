"""Three cells per token, found by rows and columns, whose entries add up to a class modulo C.

A one-hot of the row emits a row of entries, a one-hot of the column opens one of its gates, and what comes through
is added up. The search finds the cells and looks the entries up. It equals the layers everywhere but on the ramps
between two cells, where the layers are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words
from onelayer.gadgets.line import Line, lines_of_tables
from onelayer.gadgets.one_hots import names_of_one_hots, one_hots, read_one_hots
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Cells whose entries add up to an answer.
TABLES = 3


@dataclass(frozen=True, eq=False)
class Retrieval(Gadget):
    kind: ClassVar[str] = "retrieval"
    depths: ClassVar[tuple[int, ...]] = (6,)

    inputs: int
    lines: tuple[Line, ...]  # rows, then columns, of each table
    entries: Array  # [TABLES, R, G] whole numbers below C
    C: int
    constant: Array  # [1] added to the class

    @property
    def wall(self) -> float:
        """Beyond every entry."""
        return float(np.exp2(np.ceil(np.log2(self.C + 1))))

    def layers(self) -> tuple[Layer, ...]:
        (_, R, G), dtype, C = self.entries.shape, self.entries.dtype, self.C
        emit = np.zeros((TABLES, R + G, G), dtype)
        emit[:, :R] = self.entries
        emit[:, R:] = self.wall * np.eye(G)
        total = np.ones((TABLES * G, 3), dtype)
        total[:, 1:] = -1.0
        return (
            *one_hots(self.lines, [R, G] * TABLES, self.inputs),
            Grouped(emit, np.full(TABLES * G, -self.wall, dtype)),
            Linear(total, np.array([0.0, C, 2.0 * C], dtype)),  # the sum, and how far it is below C and 2 C
            Linear(np.diag([1.0, -1.0, -1.0]).astype(dtype), np.array([0.0, 1.0, 1.0], dtype)),
            Linear(np.array([[1.0], [-C], [-C]], dtype), self.constant),
        )

    def names(self) -> tuple[Words, ...]:
        _, R, G = self.entries.shape
        cells = [
            f"table {k} / {what} {i}"
            for k in range(TABLES)
            for what, n in (("row", R), ("column", G))
            for i in range(n)
        ]
        entries = tuple(f"table {k} / entry of column {i}" for k in range(TABLES) for i in range(G))
        steps = ("sum of the entries", "the sum is C or more", "the sum is 2 C or more")
        below = ("sum of the entries", "what the sum lacks to C", "what the sum lacks to 2 C")
        return (*names_of_one_hots(cells, ()), entries, below, steps, ("class",))

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        units, hot_layer, emit, below = layers[:4]
        if not isinstance(emit, Grouped) or len(emit.weight) != TABLES or len(below.bias) != 3:
            return None
        _, size, G = emit.weight.shape
        R, C = size - G, float(below.bias[1])
        read = (
            read_one_hots(units, hot_layer, [R, G] * TABLES)
            if R >= 1 and len(hot_layer.weight) == TABLES * size
            else None
        )
        if read is None or C < 1 or C % 1:
            return None
        found = cls(len(units.weight), read[0], emit.weight[:, :R], int(C), layers[-1].bias)
        inside = found.entries.min() >= 0 and found.entries.max() < found.wall
        return found if inside else None

    def lines_of_cells(self) -> dict[str, Line]:
        return lines_of_tables(self.lines)

    @property
    def searches(self) -> bool:
        return True

    @cached_property
    def _flat(self) -> list[Array]:
        return [np.ascontiguousarray(entries).ravel() for entries in self.entries]

    def classes_at(self, cells: Sequence[Array], lane: Array | None = None) -> Array:  # noqa: ARG002
        """Classes, without the constant, of known cells of the lines, one array of them for each line."""
        G = self.entries.shape[2]
        total = np.zeros(np.shape(cells[0]), np.int64)
        for k, entries in enumerate(self._whole):
            total += entries.take(cells[2 * k] * G + cells[2 * k + 1])
        return total % self.C

    def class_at(self, cells: Sequence[int], lane: int = 0) -> int:  # noqa: ARG002
        """The same for one token, without arrays."""
        G = self.entries.shape[2]
        total = sum(e.item(cells[2 * k] * G + cells[2 * k + 1]) for k, e in enumerate(self._whole))
        return int(total % self.C)

    @cached_property
    def _whole(self) -> list[Array]:
        return [np.ascontiguousarray(entries).ravel().astype(np.int64) for entries in self.entries]

    def find(self, t: Array) -> tuple[Array, Array]:
        total, sure, G = np.zeros(len(t), t.dtype), np.ones(len(t), bool), self.entries.shape[2]
        for k, entries in enumerate(self._flat):
            (r, a), (c, b) = self.lines[2 * k].find(t), self.lines[2 * k + 1].find(t)
            sure &= a & b
            total += entries.take(r * G + c)
        total -= self.C * ((total >= self.C).astype(t.dtype) + (total >= 2 * self.C))
        return total[:, None] + self.constant, sure
