"""Answers in rows and columns: a row emits its thresholds and values, and steps along columns open the gate of one.

The search finds the row, and bisects its thresholds. It equals the layers wherever coordinates lie on no ramp
between two rows or columns; there the layers are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words
from onelayer.gadgets.line import Line
from onelayer.gadgets.one_hots import names_of_one_hots, one_hots, read_one_hots
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True, eq=False)
class Table(Gadget):
    """R rows along coordinate 0, of G columns each along the sum of some coordinates; q components, put together
    from parts that are not negative."""

    kind: ClassVar[str] = "table"
    depths: ClassVar[tuple[int, ...]] = (8, 7)

    inputs: int
    rows: Line
    read: tuple[int, ...]  # coordinates along which columns are read; only one of them is not 0 at a time
    slope: float  # of the steps; a power of two
    start: Array  # [R, G] what a row emits for the beginning of each column, from left to right
    end: Array | None  # the same for its end; None: where the next begins
    values: Array  # [R, G, parts]
    signs: Array  # [parts, q]
    default: Array | None  # [q] what comes out in no column; there is one exactly if columns have ends
    constant: Array  # [q] added to all answers

    @property
    def wall(self) -> float:
        """Beyond every part of a value."""
        return float(np.exp2(np.ceil(np.log2(max(float(self.values.max()), 1.0))) + 1))

    def layers(self) -> tuple[Layer, ...]:
        (R, G, parts), dtype = self.values.shape, self.values.dtype
        thresholds = self.start if self.end is None else np.concatenate([self.start, self.end], axis=1)
        K = thresholds.shape[1]
        emit = np.zeros((R + 1, K + G * parts), dtype)
        emit[:R, :K], emit[:R, K:], emit[R, :K] = thresholds, self.values.reshape(R, -1), -self.slope
        first = one_hots([self.rows], [R], self.inputs, [self.read])
        return (*first, Linear(emit, np.zeros(emit.shape[1], dtype)), *self._tail(G))

    def _tail(self, G: int) -> tuple[Layer, ...]:
        """From relu(threshold - slope z) of G starts (and G ends) and G x parts values to the one let through."""
        parts, dtype, wall = len(self.signs), self.values.dtype, self.wall
        K, L = G if self.end is None else 2 * G, G * parts
        sign, one = np.ones((K + L, 1, 1)), np.zeros(K + L)
        sign[:K], one[:K] = -1.0, 1.0  # relu(1 - u): 1 from the threshold on
        below, beyond = np.zeros((K + L, G)), np.zeros((K + L, G))
        below[:G] = -np.eye(G)
        if self.default is None:
            beyond[1:G, : G - 1] = np.eye(G - 1)  # a column ends where the next begins
        else:
            beyond[G:K] = np.eye(G)
        both = np.concatenate([below, beyond, np.eye(K + L, L, -K)], axis=1)
        spread = np.repeat(np.eye(G), parts, axis=1)
        gates = np.concatenate([-wall * spread, -wall * spread, np.eye(L)])
        steps = (
            Grouped(sign.astype(dtype), one.astype(dtype)),
            _linear(both, np.concatenate([np.ones(G), np.zeros(G + L)]), dtype),
        )
        if self.default is None:
            add = np.tile(self.signs, (G, 1))
            return (*steps, _linear(gates, np.zeros(L), dtype), Linear(add, self.constant))
        hits = np.concatenate([-np.eye(G), -np.eye(G), np.zeros((L, G))])
        tail = np.zeros((L + G, parts + 1))
        tail[:L, :parts] = np.tile(np.eye(parts), (G, 1))
        tail[L:, parts] = -1.0
        return (
            *steps,
            _linear(np.concatenate([gates, hits], axis=1), np.concatenate([np.zeros(L), np.ones(G)]), dtype),
            _linear(tail, np.append(np.zeros(parts), 1.0), dtype),  # sums of the parts, and 1 if nothing was hit
            Linear(np.concatenate([self.signs, self.default[None]]), self.constant),
        )

    def names(self) -> tuple[Words, ...]:
        R, G, parts = self.values.shape
        columns = range(G)
        rows = [f"row {i}" for i in range(R)]
        ends = () if self.end is None else tuple(f"end of column {j}" for j in columns)
        value = tuple(f"column {j} / part {p}" for j in columns for p in range(parts))
        outputs = tuple(f"component {i}" for i in range(self.signs.shape[1]))
        edges = (*(f"start of column {j}" for j in columns), *ends)
        gates = tuple(f"gate of column {j} / part {p}" for j in columns for p in range(parts))
        found = (
            *names_of_one_hots(rows, ["the coordinate of columns"]),
            tuple(f"what lacks to the {edge}" for edge in edges) + value,
            tuple(f"the {edge} is reached" for edge in edges) + value,
            (*(f"before column {j}" for j in columns), *(f"beyond column {j}" for j in columns), *value),
        )
        if self.default is None:
            return (*found, gates, outputs)
        sums = (*(f"part {p} of the answer" for p in range(parts)), "no column is hit")
        return (*found, (*gates, *(f"column {j} is hit" for j in columns)), sums, outputs)

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        units, hot_layer, emit, *_, last = layers
        if not (isinstance(emit, Linear) and isinstance(last, Linear)):
            return None
        closed, R = len(layers) == 8, len(emit.weight) - 1
        K = int(np.count_nonzero(emit.weight[R]))
        G = K // 2 if closed else K
        if (
            G < 1
            or len(hot_layer.weight) != R + 1
            or layers[4].weight.shape != (emit.width, 2 * G + emit.width - K)
        ):
            return None
        found, parts = read_one_hots(units, hot_layer, [R]), (emit.width - K) // G
        if (
            found is None
            or parts < 1
            or (emit.width - K) % G
            or len(last.weight) != (parts + 1 if closed else G * parts)
        ):
            return None
        (rows,), carried = found
        slope, values, start = -emit.weight[R, 0], emit.weight[:R, K:].reshape(R, G, parts), emit.weight[:R, :G]
        exact = np.frexp(slope)[0] == 0.5 and values.min() >= 0
        if not exact or rows.count != R or rows.coordinate != 0 or (np.diff(start, axis=1) < 0).any():
            return None
        ends, default = (emit.weight[:R, G:K], last.weight[parts]) if closed else (None, None)
        read = tuple(np.flatnonzero(carried[:, 0]).tolist())
        emitted = (float(slope), start, ends, values, last.weight[:parts])
        return cls(len(units.weight), rows, read, *emitted, default, last.bias) if read else None

    def lines_of_cells(self) -> dict[str, Line]:
        return {"rows": self.rows}  # columns have ramps of one width, which say nothing about gaps

    @property
    def searches(self) -> bool:
        return True

    @cached_property
    def _together(self) -> Array:
        """[R, G, q] answers."""
        return np.asarray((self.values @ self.signs + self.constant).astype(self.values.dtype))

    @cached_property
    def _latest(self) -> Array | None:
        """[R, G] where the last of the columns up to one ends; None if each ends before the next begins."""
        if self.end is None or (self.end[:, :-1] <= self.start[:, 1:]).all():
            return None
        return np.asarray(np.maximum.accumulate(self.end, axis=1))

    def find(self, t: Array) -> tuple[Array, Array]:
        row, sure = self.rows.find(t)
        z = t[:, self.read[0]]
        for i in self.read[1:]:
            sure &= (z == 0) | (t[:, i] == 0)  # a sum of one is not rounded
            z = z + t[:, i]
        z = z * t.dtype.type(self.slope)
        G = self.start.shape[1]
        low, high = np.zeros(len(t), np.intp), np.full(len(t), G)  # the last column whose start is not beyond z
        while (low + 1 < high).any():
            middle = (low + high) // 2
            reached = self.start[row, middle] - z <= 0
            low, high = np.where(reached, middle, low), np.where(reached, high, np.maximum(middle, low + 1))
        hit = self.start[row, low] - z <= 0
        following = np.where(hit, np.minimum(low + 1, G - 1), low)
        sure &= (following == low) & hit | (self.start[row, following] - z >= 1)
        answers = self._together[row, low]
        if self.end is None:
            return answers, sure & hit
        to_end = self.end[row, low] - z
        sure &= ~hit | (to_end <= 0) | (to_end >= 1)
        if self._latest is not None:
            sure &= (low == 0) | (self._latest[row, np.maximum(low - 1, 0)] - z <= 0)
        return np.where((hit & (to_end >= 1))[:, None], answers, self.default + self.constant), sure


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
