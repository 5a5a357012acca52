"""From numbers by level to the weights of layers.

A hidden layer has a group of units for every number that functions are taken of, and one unit for every number that
is needed later: relu(s + shift), which is s + shift where s lies. Before a wide layer a narrow one holds each
number once, where that takes fewer weights; a group then reads one number only, and the wide layer is a block for
each group, all of the size of the largest.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.functions.layout import Phase
from onelayer.functions.pieces import Block
from onelayer.network import weights

Array = NDArray[Any]
#: What units of a layer give: rows and weights for an item, a line; and what is to be added to it.
Items = dict[int, tuple[Array, Array, float]]


def layers_of(phase: Phase, dtype: np.dtype[Any], hidden: int = 0) -> tuple[list[weights.Layer], list[list[int]]]:
    """At least this many hidden layers, then one without ReLU; and the lines of the numbers of each layer. If some
    are asked for, numbers may be added up before functions are taken of them."""
    return _Writer(phase, phase.blocks(dtype), dtype, hidden > 0).write(max(phase.depth, hidden))


class _Writer:
    def __init__(self, phase: Phase, blocks: dict[int, Block], dtype: np.dtype[Any], hidden: bool) -> None:
        self.phase, self.blocks, self.dtype, self.hidden = phase, blocks, dtype, hidden
        self.made: list[tuple[Array, Array]] = []  # a weight has three axes if it is block-diagonal
        self.stages: list[list[int]] = []

    def write(self, depth: int) -> tuple[list[weights.Layer], list[list[int]]]:
        p = self.phase
        items: Items = {k: (np.array([i]), np.ones(1), p.missing.get(k, 0.0)) for i, k in enumerate(p.inputs)}
        width = len(p.inputs)
        for at in range(depth):
            items, width = self._add_hidden(items, width, at)
        some = list(dict.fromkeys(k for k in p.wanted if p.sum(k)[0]))
        if depth and (width + len(p.wanted) + 1) * len(some) < width * len(p.wanted):
            items, width = self._narrow(items, width, some)
        columns = [self._column(items, width, k) for k in p.wanted]
        self.made.append((np.stack([w for w, _ in columns], axis=1), np.array([c for _, c in columns])))
        self.stages.append(list(p.wanted))
        made = [(W.astype(self.dtype), b.astype(self.dtype)) for W, b in self.made]
        return [weights.Linear(W, b) if W.ndim == 2 else weights.Grouped(W, b) for W, b in made], self.stages

    def _column(self, items: Items, width: int, k: int) -> tuple[Array, float]:
        """Weights for a number, and the constant that is missing."""
        column, missing = np.zeros(width), 0.0
        if k in items:  # it is passed on as it is
            terms: dict[int, Fraction] = {k: Fraction(1)}
        else:
            terms, constant = self.phase.sum(k)
            missing = float(constant)
        for j, e in terms.items():
            rows, w, start = items[j]
            column[rows] += float(e) * w
            missing += float(e) * start
        return column.astype(self.dtype).astype(np.float64), missing

    def _add_hidden(self, items: Items, width: int, at: int) -> tuple[Items, int]:
        """Numbers of a level are read by groups of units; those of the first layer of a token read it as it is."""
        p = self.phase
        by_source = {b: functions for b, functions in p.by_source.items() if p.level(b) == at}
        read = [j for functions in by_source.values() for j in functions]
        needed = {j for k in p.numbers if p.level(k) > at for j in p.sum(k)[0]} - set(read)
        passed = {j for j in needed if j in items or (j in p.carried and p.level(j) <= at)}
        passed |= {k for k in p.wanted if p.level(k) <= at and p.sum(k)[0]}
        sources = list(dict.fromkeys([*by_source, *sorted(passed)]))
        shared = {b: self.blocks[functions[0]] for b, functions in by_source.items()}  # alike but for their weights
        sizes = [len(block.corners) for block in shared.values()] + [1] * len(passed)
        S, units, later = len(sources), sum(sizes), 1 + self._later(at)
        block = S * max(sizes) + (S * max(sizes) - units) * later  # and what it has too many units
        whole = {"full": width * units, "narrow": (width + 1 + units) * S, "blocks": (width + 1) * S + block}
        how = min(whole, key=lambda name: whole[name]) if len(sizes) == S and (at or self.hidden) else "full"
        if how != "full":
            items, width = self._narrow(items, width, sources)
        columns: list[Array] = []
        bias: list[float] = []
        read_as: list[tuple[Array, int]] = []
        found: Items = {}
        one = np.ones(1)
        groups = [(b, block.signs, block.corners, by_source[b]) for b, block in shared.items()]
        groups += [(k, one, np.array([self._shift(k)]), []) for k in sorted(passed)]
        for k, signs, corners, functions in groups:
            column, missing = self._column(items, width, k)
            rows = np.arange(len(bias), len(bias) + len(corners))
            spare = max(sizes) - len(corners) if how == "blocks" else 0  # units that nobody reads
            columns += [sign * column for sign in (*signs, *[1.0] * spare)]
            rounded = (signs * (missing - corners)).astype(self.dtype).astype(np.float64)
            bias += [*rounded.tolist(), *[0.0] * spare]
            read_as.append((column, k))
            if not functions:  # relu(s - corner) = s - corner
                found[k] = rows, one, float(-(rounded[0] - missing))
            for j in functions:
                found[j] = rows, self.blocks[j].weights, self.blocks[j].start
        W = np.stack(columns, axis=1)
        if how == "blocks":  # row i is not 0 in the units of group i only
            W = W.reshape(S, S, -1)[np.arange(S), np.arange(S)][:, None]
        self.made.append((W, np.array(bias)))
        self.stages.append(self._lines(read_as))
        return found, len(bias)

    def _later(self, at: int) -> int:
        """About the numbers that the next layer reads."""
        p = self.phase
        return len(p.wanted) if at + 1 >= p.depth else sum(p.level(b) == at + 1 for b in p.by_source)

    def _lines(self, read_as: list[tuple[Array, int]]) -> list[int]:
        """A line for each column, which is written with a positive first weight."""
        found: dict[bytes, int] = {}
        for column, k in read_as:
            lead = column[np.argmax(column != 0)]
            own = (column if lead >= 0 else -column) + 0.0  # no negative zero
            found.setdefault(own.tobytes(), k if lead >= 0 else self.phase.lines.add("neg", k))
        return list(found.values())

    def _narrow(self, items: Items, width: int, sources: list[int]) -> tuple[Items, int]:
        """Every number once, in one unit."""
        found: Items = {}
        columns, bias = [], []
        for i, k in enumerate(sources):
            column, missing = self._column(items, width, k)
            rounded = float(np.asarray(missing - self._shift(k), self.dtype))
            columns.append(column)
            bias.append(rounded)
            found[k] = np.array([i]), np.ones(1), -(rounded - missing)
        self.made.append((np.stack(columns, axis=1), np.array(bias)))
        self.stages.append(self._lines(list(zip(columns, sources, strict=True))))
        return found, len(sources)

    def _shift(self, k: int) -> float:
        """A corner below all values of a number, with room for its error."""
        low, high = self.phase.lines.ranges[k]
        return float(np.floor(low - 0.25 * (high - low) - 0.25))
