"""A function of n tokens in R^d as a straight-line program: the one form that is evaluated, stored and enclosed.

A program is a list of scalar lines, each made from earlier ones, so that whoever reads it back needs no parser and
no library to know which function is meant. A constant is the float64 number itself: the program defines the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, OptionError

Array = NDArray[np.float64]
Line = tuple[Any, ...]
Per = Literal["token", "sequence"]

UNARY: dict[str, np.ufunc] = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "log": np.log,
    "tanh": np.tanh,
}
BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "hypot": np.hypot,
}
SYMMETRIC = {"add", "mul", "min", "max", "hypot"}
#: What `onelayer_checker` reads at most, and numbers held at a time while a program is evaluated.
MOST_LINES, MOST_HELD = 10_000, 1 << 22


@dataclass(frozen=True)
class Program:
    """Lines ("x", j, c), ("const", value) or (op, i[, k]) with i, k earlier lines; outputs are token-major."""

    n: int
    d: int
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]
    per: Per
    components: int

    def __post_init__(self) -> None:
        wanted = self.components * (self.n if self.per == "token" else 1)
        if self.n < 1 or self.d < 1 or self.components < 1 or self.per not in ("token", "sequence"):
            raise _malformed_error(f"n={self.n}, d={self.d}, components={self.components}, per={self.per!r}")
        if len(self.outputs) != wanted or not all(0 <= k < len(self.lines) for k in self.outputs):
            raise _malformed_error(f"outputs {self.outputs} of {len(self.lines)} lines, where {wanted} are wanted")
        for at, line in enumerate(self.lines):
            if not self._is_known(at, line):
                raise _malformed_error(f"line {at} is {line}")

    def _is_known(self, at: int, line: Line) -> bool:
        op, arguments = line[0], line[1:]
        if op == "const":
            return len(arguments) == 1 and isinstance(arguments[0], float) and bool(np.isfinite(arguments[0]))
        if not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in arguments):
            return False
        if op == "x":
            return len(arguments) == 2 and arguments[0] < self.n and arguments[1] < self.d
        return len(arguments) == (op in UNARY) + 2 * (op in BINARY) > 0 and max(arguments) < at

    def evaluate(self, X: Array) -> Array:
        """Values [B, n, q] or [B, q] for sequences [B, n, d], in float64 (measured, not enclosed)."""
        X = np.asarray(X, np.float64)
        if X.ndim != 3 or X.shape[1:] != (self.n, self.d):
            needs = f"sequences of shape [B, {self.n}, {self.d}]"
            raise DataError("target", needs, f"the shape is {list(X.shape)}", "Reshape them.")
        out = np.empty((len(X), len(self.outputs)))
        step = max(1, MOST_HELD // len(self.lines))
        with np.errstate(all="ignore"):
            for start in range(0, len(X), step):
                values = self.values(X[start : start + step])
                for k, line in enumerate(self.outputs):
                    out[start : start + step, k] = values[line]
        return out.reshape(len(X), self.n, self.components) if self.per == "token" else out

    def values(self, X: Array) -> list[Array]:
        values: list[Array] = []
        for op, *arguments in self.lines:
            if op == "x":
                values.append(X[:, arguments[0], arguments[1]])
            elif op == "const":
                values.append(np.asarray(arguments[0]))
            else:
                ufunc = UNARY[op] if op in UNARY else BINARY[op]
                values.append(np.asarray(ufunc(*(values[i] for i in arguments))))
        return values

    def to_json(self) -> dict[str, Any]:
        """Plain JSON without floats: a constant is a hexadecimal string, as in a certificate."""
        lines = [["const", line[1].hex()] if line[0] == "const" else list(line) for line in self.lines]
        head = {"n": self.n, "d": self.d, "per": self.per, "components": self.components}
        return {**head, "lines": lines, "outputs": list(self.outputs)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Program:
        lines = tuple(
            ("const", float.fromhex(line[1])) if line[0] == "const" else tuple(line) for line in entry["lines"]
        )
        head = entry["n"], entry["d"], lines, tuple(entry["outputs"])
        return Program(*head, per=entry["per"], components=entry["components"])


def _malformed_error(found: str) -> OptionError:
    needs = "a straight-line program: known operations on earlier lines, one output line per component"
    return OptionError("target", needs, found, "Build it with onelayer.problems.targets.Builder.")


@dataclass(frozen=True)
class Node:
    """A line of a program being built; arithmetic on nodes adds lines."""

    builder: Builder
    line: int

    def __add__(self, other: Node | float) -> Node:
        return self.builder.op("add", self, other)

    def __sub__(self, other: Node | float) -> Node:
        return self.builder.op("sub", self, other)

    def __mul__(self, other: Node | float) -> Node:
        return self.builder.op("mul", self, other)

    def __truediv__(self, other: Node | float) -> Node:
        return self.builder.op("div", self, other)

    def __radd__(self, other: float) -> Node:
        return self.builder.op("add", other, self)

    def __rsub__(self, other: float) -> Node:
        return self.builder.op("sub", other, self)

    def __rmul__(self, other: float) -> Node:
        return self.builder.op("mul", other, self)

    def __rtruediv__(self, other: float) -> Node:
        return self.builder.op("div", other, self)

    def __neg__(self) -> Node:
        return self.builder.op("neg", self)

    def __abs__(self) -> Node:
        return self.builder.op("abs", self)

    def __pow__(self, power: int) -> Node:
        """By squaring: a square is enclosed more tightly than a product."""
        if power == 0:
            return self.builder.const(1.0)
        if power < 0:
            return 1.0 / self**-power
        root = self ** (power // 2)
        return root * root * self if power % 2 else root * root


class Builder:
    """Collects lines and shares those that are the same, so that formulas can be written as they are read."""

    def __init__(self, n: int, d: int) -> None:
        self.n, self.d = n, d
        self._lines: list[Line] = []
        self._known: dict[Line, int] = {}

    def x(self, j: int, c: int = 0) -> Node:
        """Component c of token j."""
        return self._node(("x", j, c))

    def const(self, value: float) -> Node:
        return self._node(("const", float(value)))

    def op(self, name: str, *arguments: Node | float) -> Node:
        """A line, unless it is known already, or its value is: constants are folded in float64."""
        nodes = [a if isinstance(a, Node) else self.const(a) for a in arguments]
        values = [self.value(node) for node in nodes]
        ufunc = UNARY[name] if name in UNARY else BINARY[name]
        if all(value is not None for value in values):
            with np.errstate(all="ignore"):
                return self.const(float(ufunc(*values)))
        if name == "sub" and nodes[0] == nodes[1]:
            return self.const(0.0)
        neutral = 0.0 if name in ("add", "sub") else 1.0 if name in ("mul", "div") else None
        if neutral is not None and values[1] == neutral:
            return nodes[0]
        if name in SYMMETRIC and neutral is not None and values[0] == neutral:
            return nodes[1]
        lines = [node.line for node in nodes]
        return self._node((name, *(sorted(lines) if name in SYMMETRIC else lines)))

    def value(self, node: Node) -> float | None:
        line = self._lines[node.line]
        return float(line[1]) if line[0] == "const" else None

    def fold(self, name: str, nodes: Iterable[Node]) -> Node:
        """An operation of two arguments over one or more nodes, from the left."""
        first, *rest = nodes
        for node in rest:
            first = self.op(name, first, node)
        return first

    def program(self, outputs: Sequence[Node], per: Per) -> Program:
        """The lines that the outputs need, and no others; the outputs of tokens in order of the tokens."""
        lines, at = self.lines_needed(outputs)
        if len(lines) > MOST_LINES:
            needs, remedy = f"at most {MOST_LINES:,} lines", "Take fewer tokens, or a shorter formula."
            raise OptionError("target", needs, f"the formula needs {len(lines):,}", remedy)
        return Program(self.n, self.d, lines, at, per, len(outputs) // (self.n if per == "token" else 1))

    def lines_needed(self, outputs: Sequence[Node]) -> tuple[tuple[Line, ...], tuple[int, ...]]:
        """The lines that the outputs need, in their order, and where the outputs are among them."""
        needed: set[int] = set()
        open_ = [node.line for node in outputs]
        while open_:
            at = open_.pop()
            if at not in needed:
                needed.add(at)
                open_ += self._arguments(at)
        place = {at: new for new, at in enumerate(sorted(needed))}
        lines = tuple(
            (self._lines[at][0], *(place[i] for i in self._arguments(at)))
            if self._arguments(at)
            else self._lines[at]
            for at in sorted(needed)
        )
        return lines, tuple(place[node.line] for node in outputs)

    def _arguments(self, at: int) -> tuple[int, ...]:
        line = self._lines[at]
        return () if line[0] in ("x", "const") else line[1:]

    def _node(self, line: Line) -> Node:
        key = (line[0], line[1].hex()) if line[0] == "const" else line
        if key not in self._known:
            self._known[key] = len(self._lines)
            self._lines.append(line)
        return Node(self, self._known[key])
