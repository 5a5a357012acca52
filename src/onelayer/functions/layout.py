"""What layers have to compute: numbers by level, and blocks of ReLU units between them.

A number at level l is a sum of functions of numbers at lower levels. Functions of the same number share units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.functions.carrying import carry_sums
from onelayer.functions.lines import AFFINE, Lines
from onelayer.functions.pieces import MOST_PIECES, Block, Shape, fit, shape

Array = NDArray[Any]
#: A line as a sum of numbers times lines that are inputs or functions of a number; and a constant, which is added.
Sum = tuple[dict[int, Fraction], Fraction]
SMALL = 1e-12
#: Of a range: a corner that is as near to its end is not the end of a piece, which would be narrow and steep.
AT_EDGE = 1e-3
#: Units of a block while tolerances are still being shared out: other shares may take fewer.
TRIAL_PIECES = 8 * MOST_PIECES


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
        self.missing: dict[int, float] = {}  # by input: what it is less than its line
        self.carried: set[int] = set()  # numbers that others are written over
        for k in self.wanted:
            self._need(k)
        carry_sums(self)
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

    def parts(self, k: int) -> list[int]:
        """Inputs and functions that a number is a sum of."""
        found = (self.parts(j) if j in self.carried else [j] for j in self.sum(k)[0])
        return list(dict.fromkeys(j for part in found for j in part))

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
            self.levels[k] = max((self.ready(j) for j in self.sum(k)[0]), default=0)
        return self.levels[k]

    def ready(self, j: int) -> int:
        """Hidden layers before a part of a number is there."""
        if j in self.inputs:
            return 0
        return self.level(j) if j in self.carried else self.level(self.source(j)) + 1

    @property
    def functions(self) -> list[int]:
        """Lines that blocks compute."""
        given = {*self.inputs, *self.carried}
        return list(dict.fromkeys(j for k in self.numbers for j in self.sum(k)[0] if j not in given))

    @property
    def by_source(self) -> dict[int, list[int]]:
        """The same, by the number that they read: those share their units."""
        found: dict[int, list[int]] = {}
        for j in self.functions:
            found.setdefault(self.source(j), []).append(j)
        return found

    def look(self) -> None:
        """Look at every function where its number lies."""
        for b, functions in self.by_source.items():
            low, high = self.lines.ranges[b]
            if high - low < SMALL:
                low, high = low - SMALL, high + SMALL
            s = np.linspace(low, high, 4097)
            turns = dict.fromkeys(k for j in functions for k in self._corners(j, b))
            turned = [c for k in turns for c in _zeros(s, self.lines.evaluate(k, b, s))]
            corners = [c for c in turned if min(c - low, high - c) > AT_EDGE * (high - low)]
            for j in functions:
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
        for k in sorted(self.numbers, key=lambda k: (-self.level(k), k in self.carried)):
            for j, e in self.sum(k)[0].items():
                more = abs(float(e)) * number[k]
                if j in self.carried:
                    number[j] = number[j] + more
                    continue
                found = of_input if j in self.inputs else of_function
                found[j] = found.get(j, np.zeros_like(more)) + more
                if j not in self.inputs:
                    b = self.source(j)
                    number[b] = number[b] + more * self.slopes[j]
        return of_function, of_input

    # Blocks -----------------------------------------------------------------------------------------------------

    def blocks(self, dtype: np.dtype[Any], most: int = MOST_PIECES) -> dict[int, Block]:
        found: dict[int, Block] = {}
        for functions in self.by_source.values():
            looks, eps = [self.shapes[j] for j in functions], [self.tolerance[j] for j in functions]
            found |= zip(functions, fit(looks, eps, dtype, most), strict=True)
        return found

    def price(self, source: int) -> int:
        """About the numbers that a unit of a function of this number takes: weights from and to its neighbours."""
        at = self.level(source)
        alone = [sum(self.level(b) == level for b in self.by_source) for level in (at, at + 1)]
        before = (
            1 if alone[0] > 1 else self._passed(at) + 1 if at else len(self.inputs)
        )  # several: a block for each
        last = len({k for k in self.wanted if self.sum(k)[0]})
        return 1 + before + (alone[1] + self._passed(at + 1) if at + 1 < self.depth else last)

    def _passed(self, level: int) -> int:
        """Numbers that are there at this level and read behind it."""
        later = {j for k in self.numbers if self.level(k) > level + 1 for j in self.sum(k)[0]}
        return sum(self.ready(j) <= level for j in later)

    def cost(self, dtype: np.dtype[Any]) -> int:
        """About the numbers that all blocks take."""
        blocks = self.blocks(dtype, TRIAL_PIECES)
        return sum(len(blocks[of[0]].corners) * self.price(b) for b, of in self.by_source.items())


@dataclass
class Part:
    """Functions of one number: what each may be off, as a part of the whole, and how much that moves outputs."""

    phase: Phase
    own: dict[int, float]
    moved: dict[int, float]
    size: float  # units, times the square root of the level
    moves: float
    looser: float
    level: float = 0.0


def _zeros(s: Array, values: Array) -> list[float]:
    """Where a function changes its sign, between points of a grid."""
    exact = [float(x) for x in s[values == 0]]
    at = np.flatnonzero(values[:-1] * values[1:] < 0)
    return exact + [float(s[i] - values[i] * (s[i + 1] - s[i]) / (values[i + 1] - values[i])) for i in at]
