"""Three cells per token, found by rows and columns, whose entries add up to the digits of a class.

As `retrieval`, once for every digit: each plane of entries adds up to its digit modulo the base, and the digits
make up the class. All numbers are whole, and none is above three times the base: so few bits hold them. The search
finds the cells and looks the entries up; on ramps between two cells, the layers are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words
from onelayer.gadgets.line import Line
from onelayer.gadgets.one_hots import names_of_one_hots, one_hots, read_one_hots
from onelayer.gadgets.retrieval import TABLES
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True, eq=False)
class Planes(Gadget):
    kind: ClassVar[str] = "planes"
    depths: ClassVar[tuple[int, ...]] = (7,)

    inputs: int
    lines: tuple[Line, ...]  # rows, then columns, of each table
    entries: Array  # [TABLES, R, planes, G] whole numbers below the base
    base: int
    constant: Array  # [1] added to the class

    def layers(self) -> tuple[Layer, ...]:
        (_, R, P, G), dtype, B = self.entries.shape, self.entries.dtype, self.base
        emit = np.zeros((TABLES, R + G, P * G), dtype)
        emit[:, :R] = self.entries.reshape(TABLES, R, P * G)
        emit[:, R:] = B * np.tile(np.eye(G), P)
        total = np.kron(np.tile(np.repeat(np.eye(P), G, axis=0), (TABLES, 1)), [1.0, -1.0, -1.0])
        step, digit = np.kron(np.eye(P), np.diag([1.0, -1.0, -1.0])), np.kron(np.eye(P), [[1.0], [-B], [-B]])
        return (
            *one_hots(self.lines, [R, G] * TABLES, self.inputs),
            Grouped(emit, np.full(TABLES * P * G, -B, dtype)),
            _linear(total, np.tile([0.0, B, 2.0 * B], P), dtype),  # sums, and how far they are below B and 2 B
            _linear(step, np.tile([0.0, 1.0, 1.0], P), dtype),
            _linear(digit, np.zeros(P), dtype),
            Linear((float(B) ** np.arange(P)).astype(dtype)[:, None], self.constant),
        )

    def names(self) -> tuple[Words, ...]:
        _, R, P, G = self.entries.shape
        cells = [
            f"table {k} / {what} {i}"
            for k in range(TABLES)
            for what, n in (("row", R), ("column", G))
            for i in range(n)
        ]
        entries = tuple(
            f"table {k} / entry of digit {p}, column {i}" for k in range(TABLES) for p in range(P) for i in range(G)
        )
        below = ("sum of the entries", "what the sum lacks to the base", "what the sum lacks to twice the base")
        steps = ("sum of the entries", "the sum is the base or more", "the sum is twice the base or more")
        each = [tuple(f"digit {p} / {what}" for p in range(P) for what in words) for words in (below, steps)]
        digits = tuple(f"digit {p}" for p in range(P))
        return (*names_of_one_hots(cells, ()), entries, *each, digits, ("class",))

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        units, hot_layer, emit, below = layers[:4]
        P = len(layers[-1].weight)
        if not isinstance(emit, Grouped) or len(emit.weight) != TABLES or len(below.bias) != 3 * P:
            return None
        _, size, width = emit.weight.shape
        G, B = width // P, float(below.bias[1])
        R = size - G
        fits = R >= 1 and G >= 1 and width == P * G and len(hot_layer.weight) == TABLES * size
        read = read_one_hots(units, hot_layer, [R, G] * TABLES) if fits and B >= 1 and not B % 1 else None
        if read is None:
            return None
        entries = emit.weight[:, :R].reshape(TABLES, R, P, G)
        if not (entries.min() >= 0 and entries.max() < B and (entries == np.rint(entries)).all()):
            return None
        return cls(len(units.weight), read[0], entries, int(B), layers[-1].bias)

    def lines_of_cells(self) -> dict[str, Line]:
        names = [f"table {k} / {what}" for k in range(TABLES) for what in ("rows", "columns")]
        return dict(zip(names, self.lines, strict=True))

    @property
    def searches(self) -> bool:
        return True

    @cached_property
    def _by_cell(self) -> Array:
        """[TABLES, R G, planes]"""
        T, R, P, G = self.entries.shape
        return np.ascontiguousarray(self.entries.swapaxes(2, 3)).reshape(T, R * G, P)

    def find(self, t: Array) -> tuple[Array, Array]:
        P, G = self.entries.shape[2:]
        total, sure = np.zeros((len(t), P), t.dtype), np.ones(len(t), bool)
        for k, entries in enumerate(self._by_cell):
            (r, a), (c, b) = self.lines[2 * k].find(t), self.lines[2 * k + 1].find(t)
            sure &= a & b
            total += entries.take(r * G + c, axis=0)
        digits = total % t.dtype.type(self.base)
        return (digits @ (float(self.base) ** np.arange(P)).astype(t.dtype))[:, None] + self.constant, sure


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
