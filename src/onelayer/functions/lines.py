"""Lines of a formula with rational constants, what they depend on, and about where their values lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.problems.targets.formula import formula

Array = NDArray[Any]
Line = tuple[Any, ...]
#: Characters of a line that is written for people before it is cut off.
LONGEST = 4_000
LEAVES = ("x", "y", "const")
POOLED = ("mean", "average", "largest")
VALUES: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda u: np.maximum(u, 0.0),
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "hypot": np.hypot,
}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
AFFINE = ("add", "sub", "neg")
Range = tuple[float, float]


class Lines:
    """Lines that are written once each; sums and products of constants are done at once."""

    def __init__(self, box: Sequence[Range]) -> None:
        self.box = tuple(box)
        self.lines: list[Line] = []
        self.known: dict[Line, int] = {}
        self.ranges: list[Range] = []
        self.free: list[frozenset[str]] = []  # "x", "y", and "pool" if an average is in it
        self.near: dict[int, int] = {}  # an earlier line that a line stands for, to be shown to people instead

    def const(self, value: Fraction | int) -> int:
        return self._put(("const", Fraction(value)))

    def value(self, k: int) -> Fraction | None:
        return self.lines[k][1] if self.lines[k][0] == "const" else None

    def add(self, op: str, *of: int) -> int:
        """A line; constants are folded where that is exact, and what changes nothing is left out."""
        values = [self.value(i) for i in of] if op not in ("x", "y", *POOLED) else [None]
        first, last = values[0], values[-1]
        if op in ("add", "sub", "mul", "neg") and None not in values:
            exact: dict[str, Callable[[Any, Any], Any]] = {
                "add": lambda a, b: a + b,
                "sub": lambda a, b: a - b,
                "mul": lambda a, b: a * b,
                "neg": lambda a, _: -a,
            }
            return self.const(exact[op](first, last))
        if op == "div" and last:
            return self.add("mul", self.const(1 / last), of[0])
        if op in ("add", "sub") and last == 0:
            return of[0]
        if op == "add" and first == 0:
            return of[1]
        if op == "mul" and first is None and last is not None:
            of, first = of[::-1], last
        if op == "mul" and first is not None and first in (0, 1):
            return of[1] if first == 1 else self.const(0)
        return self._put((op, *of))

    def scale(self, factor: Fraction | int, k: int) -> int:
        return self.add("mul", self.const(factor), k)

    def sum(self, terms: Sequence[int]) -> int:
        total = self.const(0)
        for k in terms:
            total = self.add("add", total, k)
        return total

    def narrow(self, k: int, other: int) -> None:
        """Two lines that are the same function lie where both do."""
        (a, b), (c, d) = self.ranges[k], self.ranges[other]
        self.ranges[k] = self.ranges[other] = max(a, c), min(b, d)

    def _put(self, line: Line) -> int:
        if line not in self.known:
            self.known[line] = len(self.lines)
            self.lines.append(line)
            self.free.append(self._depends(line))
            self.ranges.append(self._range(line))
        return self.known[line]

    def _depends(self, line: Line) -> frozenset[str]:
        op, *of = line
        if op in LEAVES:
            return frozenset({op} - {"const"})
        free = frozenset[str]().union(*(self.free[i] for i in of))
        return (free - {"y"}) | {"pool"} if op in POOLED else free

    def _range(self, line: Line) -> Range:
        op, *of = line
        if op == "const":
            return float(of[0]), float(of[0])
        if op in ("x", "y"):
            return self.box[of[0]]
        a, b = self.ranges[of[0]], self.ranges[of[-1]]
        if op in POOLED:
            return b
        if op == "mul" and of[0] == of[1]:
            least = 0.0 if a[0] <= 0 <= a[1] else min(a[0] ** 2, a[1] ** 2)
            return least, max(a[0] ** 2, a[1] ** 2)
        if op in ("sin", "cos"):
            return _wave(a, op)
        if op == "div" and b[0] <= 0 <= b[1]:
            raise self.pole("a divisor", b)
        if op in ("sqrt", "log") and (a[0] < 0 or (op == "log" and a[0] == 0)):
            raise self.pole(f"the argument of {op}", a)
        ends = [VALUES[op](p) if len(of) == 1 else VALUES[op](p, q) for p in a for q in b]
        if op == "abs" and a[0] <= 0 <= a[1]:
            ends.append(0.0)
        if op == "hypot":
            ends = [math.hypot(*(0.0 if p <= 0 <= q else min(abs(p), abs(q)) for p, q in (a, b))), *map(abs, ends)]
        if not np.isfinite(ends).all():
            raise self.pole(f"the result of {op}", (float(np.min(ends)), float(np.max(ends))))
        return float(np.min(ends)), float(np.max(ends))

    @staticmethod
    def pole(what: str, where: Range) -> HypothesisError:
        needs = "a formula that is seen to be defined on the whole box"
        found = f"{what} may be anything in [{where[0]:.6g}, {where[1]:.6g}]"
        return HypothesisError(
            "formula", needs, found, "Shrink or move the box, or keep it away with max(..., 0.01)."
        )

    def evaluate(self, k: int, base: int, s: Array) -> Array:
        """The line, a function of the line ``base``, where ``base`` has the values s."""
        known: dict[int, Array] = {base: s}

        def at(i: int) -> Array:
            if i not in known:
                op, *of = self.lines[i]
                known[i] = np.full_like(s, float(of[0])) if op == "const" else VALUES[op](*(at(j) for j in of))
            return known[i]

        with np.errstate(all="ignore"):
            return at(k)

    def text(self, k: int, most: int = 80) -> str:
        """A line as a formula for people, with at most this many letters; its constants are rounded."""
        rounded = [
            ("const", float(f"{float(of[0]):.3g}")) if op == "const" else (op, *of) for op, *of in self.lines
        ]
        for line, other in self.near.items():
            rounded[line] = rounded[other]
        found = formula(rounded, len(self.box), k, LONGEST) or f"{self.lines[k][0]}({'.' * most}"
        return found if len(found) <= most else found[: most - 3] + "..."

    def to_json(self) -> list[list[Any]]:
        return [_write_line(line) for line in self.lines]


def _write_line(line: Line) -> list[Any]:
    if line[0] != "const":
        return list(line)
    value = line[1]
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if math.isfinite(near) and Fraction(near) == value:
        return ["const", near.hex()]
    return ["ratio", value.numerator, value.denominator]


def _wave(a: Range, op: str) -> Range:
    """Of sin or cos: the ends, unless a top or a bottom lies between them."""
    f, shift = (math.sin, 0.5) if op == "sin" else (math.cos, 0.0)
    low, high = min(f(a[0]), f(a[1])), max(f(a[0]), f(a[1]))
    s, t = a[0] / math.pi - shift, a[1] / math.pi - shift
    top = 2 * math.floor(t / 2) >= s
    bottom = 2 * math.floor((t - 1) / 2) + 1 >= s
    return -1.0 if bottom else low, 1.0 if top else high
