"""From lines to layers: numbers by level, blocks of ReLU units between them, and the weights.

A number at level l is a sum of functions of numbers at lower levels. A hidden layer has a group of units for every
function of a number, and one unit for every number that is needed later: relu(s + shift), which is s + shift where
s lies. Between two wide layers a narrow one holds each number once, where that takes fewer weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.functions.lines import AFFINE, Lines
from onelayer.functions.pieces import Block, Shape, fit, shape
from onelayer.network import weights

Array = NDArray[Any]
#: A line as a sum of numbers times lines that are inputs or functions of a number; and a constant, which is added.
Sum = tuple[dict[int, Fraction], Fraction]
SMALL = 1e-12


@dataclass
class Phase:
    """Layers that take numbers, given as lines, to other numbers."""

    lines: Lines
    base: Callable[[int], int | None]
    inputs: list[int]
    wanted: list[int]
    shapes: dict[int, Shape] = field(default_factory=dict)  # by line of a function
    tolerance: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sums: dict[int, Sum] = {}
        self.levels: dict[int, int] = {}
        self.slopes: dict[int, float] = {}  # of functions
        self.numbers: list[int] = []  # every line that is read or wanted, in order of need
        for k in self.wanted:
            self._need(k)
        self.depth = max((self.level(k) for k in self.wanted), default=0)

    # What is needed ---------------------------------------------------------------------------------------------

    def sum(self, k: int) -> Sum:
        """A line over inputs and functions of single numbers."""
        if k not in self.sums:
            self.sums[k] = self._sum(k)
        return self.sums[k]

    def _sum(self, k: int) -> Sum:
        op, *of = self.lines.lines[k]
        if k in self.inputs:
            return {k: Fraction(1)}, Fraction(0)
        if op == "const":
            return {}, of[0]
        factor = self.lines.value(of[0]) if op == "mul" else None
        if op not in AFFINE and factor is None:
            return {k: Fraction(1)}, Fraction(0)
        one = Fraction(1)
        signs = [factor] if factor is not None else [-one] if op == "neg" else [one, one if op == "add" else -one]
        total, constant = dict[int, Fraction](), Fraction(0)
        for sign, i in zip(signs, of[-len(signs) :], strict=True):
            terms, c = self.sum(i)
            constant += sign * c
            for j, e in terms.items():
                total[j] = total.get(j, Fraction(0)) + sign * e
        return {j: e for j, e in total.items() if e}, constant

    def source(self, k: int) -> int:
        """The number that a function of one number reads."""
        found = self.base(k)
        assert found is not None
        return found

    def _need(self, k: int) -> None:
        if k in self.numbers:
            return
        for j in self.sum(k)[0]:
            if j not in self.inputs:
                self._need(self.source(j))
        self.numbers.append(k)

    def level(self, k: int) -> int:
        """Hidden layers before the number is there."""
        if k not in self.levels:
            parts = [j for j in self.sum(k)[0] if j not in self.inputs]
            self.levels[k] = max((self.level(self.source(j)) + 1 for j in parts), default=0)
        return self.levels[k]

    @property
    def functions(self) -> list[int]:
        """Lines that blocks compute."""
        found = dict.fromkeys(j for k in self.numbers for j in self.sum(k)[0] if j not in self.inputs)
        return list(found)

    def look(self) -> None:
        """Look at every function where its number lies."""
        for j in self.functions:
            b = self.source(j)
            low, high = self.lines.ranges[b]
            if high - low < SMALL:
                low, high = low - SMALL, high + SMALL
            s = np.linspace(low, high, 4097)
            corners = [c for k in self._corners(j, b) for c in _zeros(s, self.lines.evaluate(k, b, s))]
            self.shapes[j] = shape(partial(self.lines.evaluate, j, b), low, high, corners)
            self.slopes[j] = self.shapes[j].steepest

    def _corners(self, k: int, base: int) -> list[int]:
        """Lines at whose zeros a function has a corner."""
        op, *of = self.lines.lines[k]
        if k == base or op == "const":
            return []
        found = [j for i in of for j in self._corners(i, base)]
        if op in ("abs", "relu"):
            found.append(of[0])
        if op in ("max", "min"):
            found.append(self.lines.add("sub", *of))
        return found

    def gains(self, out: dict[int, Array]) -> tuple[dict[int, Array], dict[int, Array]]:
        """By how much outputs move if a function, or an input, moves by one, given the same of what is wanted."""
        number: dict[int, Array] = {k: np.zeros_like(next(iter(out.values()))) for k in self.numbers}
        for k, gain in out.items():
            number[k] = number[k] + gain
        of_function: dict[int, Array] = {}
        of_input: dict[int, Array] = {}
        for k in sorted(self.numbers, key=lambda k: -self.level(k)):
            for j, e in self.sum(k)[0].items():
                more = abs(float(e)) * number[k]
                found = of_input if j in self.inputs else of_function
                found[j] = found.get(j, np.zeros_like(more)) + more
                if j not in self.inputs:
                    b = self.source(j)
                    number[b] = number[b] + more * self.slopes[j]
        return of_function, of_input

    # Layers -----------------------------------------------------------------------------------------------------

    def layers(self, dtype: np.dtype[Any], hidden: int = 0) -> tuple[list[weights.Linear], list[list[int]]]:
        """At least so many hidden layers, then one without ReLU; and the lines of the numbers of each layer."""
        blocks = self.blocks(dtype)
        return _Writer(self, blocks, dtype).write(max(self.depth, hidden))

    def blocks(self, dtype: np.dtype[Any]) -> dict[int, Block]:
        return {j: fit(self.shapes[j], self.tolerance[j], dtype) for j in self.functions}


def _zeros(s: Array, values: Array) -> list[float]:
    """Where a function changes its sign, between points of a grid."""
    exact = [float(x) for x in s[values == 0]]
    at = np.flatnonzero(values[:-1] * values[1:] < 0)
    return exact + [float(s[i] - values[i] * (s[i + 1] - s[i]) / (values[i + 1] - values[i])) for i in at]


#: What units of a layer give: rows and weights for an item, a line; and what is to be added to it.
Items = dict[int, tuple[Array, Array, float]]


class _Writer:
    def __init__(self, phase: Phase, blocks: dict[int, Block], dtype: np.dtype[Any]) -> None:
        self.phase, self.blocks, self.dtype = phase, blocks, dtype
        self.made: list[tuple[Array, Array]] = []
        self.stages: list[list[int]] = []

    def write(self, depth: int) -> tuple[list[weights.Linear], list[list[int]]]:
        p = self.phase
        items: Items = {k: (np.array([i]), np.ones(1), 0.0) for i, k in enumerate(p.inputs)}
        width = len(p.inputs)
        for at in range(depth):
            items, width = self._add_hidden(items, width, at)
        columns = [self._column(items, width, k) for k in p.wanted]
        self.made.append((np.stack([w for w, _ in columns], axis=1), np.array([c for _, c in columns])))
        self.stages.append(list(p.wanted))
        layers = [weights.Linear(W.astype(self.dtype), b.astype(self.dtype)) for W, b in self.made]
        return layers, self.stages

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
        p = self.phase
        read = [j for j in p.functions if p.level(p.source(j)) == at]
        needed = {j for k in p.numbers if p.level(k) > at for j in p.sum(k)[0]} - set(read)
        passed = {j for j in needed if j in items} | {k for k in p.wanted if p.level(k) <= at and p.sum(k)[0]}
        sources = list(dict.fromkeys([p.source(j) for j in read] + sorted(passed)))
        units = sum(len(self.blocks[j].corners) for j in read) + len(passed)
        if at > 0 and (width + units + 1) * len(sources) < width * units:
            items, width = self._narrow(items, width, sources)
        columns: list[Array] = []
        bias: list[float] = []
        read_as: list[tuple[Array, int]] = []
        found: Items = {}
        one = np.ones(1)
        groups: list[tuple[int, Array, Array, int | None]] = [
            (p.source(j), self.blocks[j].signs, self.blocks[j].corners, j) for j in read
        ]
        groups += [(k, one, np.array([self._shift(k)]), None) for k in sorted(passed)]
        for k, signs, corners, j in groups:
            column, missing = self._column(items, width, k)
            rows = np.arange(len(bias), len(bias) + len(corners))
            columns += [sign * column for sign in signs]
            rounded = (signs * (missing - corners)).astype(self.dtype).astype(np.float64)
            bias += rounded.tolist()
            read_as.append((column, k))
            if j is None:  # relu(s - corner) = s - corner
                found[k] = rows, one, float(-(rounded[0] - missing))
            else:
                found[j] = rows, self.blocks[j].weights, self.blocks[j].start
        self.made.append((np.stack(columns, axis=1), np.array(bias)))
        self.stages.append(self._lines(read_as))
        return found, len(bias)

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
