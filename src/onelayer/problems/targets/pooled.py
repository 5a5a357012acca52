"""A formula of a token x and of averages over all tokens y: one function for sequences of every length.

Where a straight-line program (program.py) has a line for every token, this has one line for x and one for y. Lines
are ("x", c), ("y", c), ("const", value), (op, i[, k]), ("mean", i) and ("largest", i); the last two are over all y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.errors import DataError
from onelayer.problems.targets.program import BINARY, UNARY, Array, Builder, Line, Node, Per, Program

LEAVES = ("x", "y", "const")
POOLED = ("mean", "largest")
#: Numbers held at a time while a formula is evaluated.
MOST_HELD = 1 << 22
#: Lines times tokens up to which a formula is also written out for its number of tokens.
MOST_SLOPES = 20_000


@dataclass(frozen=True)
class Pooled:
    """``outputs`` are lines without a free y; with an x, there is a value per token."""

    n: int  # the number of tokens that `sum` and `n` mean
    d: int
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]
    per: Per
    any_length: bool  # the formula says neither sum nor n

    def evaluate(self, X: Array) -> Array:
        """Values [B, n, q] or [B, q] for sequences [B, n, d] of any length, in float64 (measured, not enclosed)."""
        X = np.asarray(X, np.float64)
        if X.ndim != 3 or X.shape[2] != self.d or not (self.any_length or X.shape[1] == self.n):
            needs = f"sequences of shape [B, {'any' if self.any_length else self.n}, {self.d}]"
            raise DataError("target", needs, f"the shape is {list(X.shape)}", "Reshape them.")
        n = X.shape[1]
        out = np.empty((len(X), n if self.per == "token" else 1, len(self.outputs)))
        step = max(1, MOST_HELD // (len(self.lines) * n * n))
        with np.errstate(all="ignore"):
            for start in range(0, len(X), step):
                values = self.values(X[start : start + step])
                for k, line in enumerate(self.outputs):
                    out[start : start + step, :, k] = values[line][..., 0]
        return out if self.per == "token" else out[:, 0]

    @property
    def is_long(self) -> bool:
        """Whether it is better not written out for its number of tokens: a program has about as many lines as there
        are x and y that each line depends on, and slopes for every token."""
        count, free = 0, list[frozenset[str]]()
        for op, *of in self.lines:
            parts = (
                frozenset[str]().union(*(free[i] for i in of)) if op not in LEAVES else frozenset({op} - {"const"})
            )
            count += int(self.n ** len(parts)) * (self.n if op == "largest" else 1)  # it may have any of n slopes
            free.append(parts - {"y"} if op in POOLED else parts)
        return count * self.n > MOST_SLOPES

    def values(self, X: Array) -> list[Array]:
        """Of every line, [B, n or 1, n or 1]: an axis for x and one for y."""
        values: list[Array] = []
        for op, *of in self.lines:
            if op == "x":
                values.append(X[:, :, None, of[0]])
            elif op == "y":
                values.append(X[:, None, :, of[0]])
            elif op == "const":
                values.append(np.full((1, 1, 1), of[0]))
            elif op in POOLED:
                pool = np.mean if op == "mean" else np.max
                values.append(np.asarray(pool(values[of[0]], axis=2, keepdims=True)))
            else:
                ufunc = UNARY[op] if op in UNARY else BINARY[op]
                values.append(np.asarray(ufunc(*(values[i] for i in of))))
        return values

    def program(self) -> Program:
        """The same function written out for its number of tokens."""
        builder = Builder(self.n, self.d)
        known: dict[tuple[int, int | None, int | None], Node] = {}

        def at(k: int, x: int | None, y: int | None) -> Node:
            if (k, x, y) not in known:
                op, *of = self.lines[k]
                if op in ("x", "y"):
                    place = x if op == "x" else y
                    assert place is not None
                    made = builder.x(place, of[0])
                elif op == "const":
                    made = builder.const(of[0])
                elif op in POOLED:
                    made = builder.fold("add" if op == "mean" else "max", [at(of[0], x, j) for j in range(self.n)])
                    made = made / self.n if op == "mean" else made
                else:
                    made = builder.op(op, *(at(i, x, y) for i in of))
                known[k, x, y] = made
            return known[k, x, y]

        places: list[int | None] = [*range(self.n)] if self.per == "token" else [None]
        return builder.program([at(k, x, None) for x in places for k in self.outputs], self.per)

    def to_json(self) -> dict[str, Any]:
        lines = [["const", line[1].hex()] if line[0] == "const" else list(line) for line in self.lines]
        head = {"n": self.n, "d": self.d, "per": self.per, "any_length": self.any_length}
        return {**head, "lines": lines, "outputs": list(self.outputs)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Pooled:
        lines = tuple(
            ("const", float.fromhex(line[1])) if line[0] == "const" else tuple(line) for line in entry["lines"]
        )
        head = entry["n"], entry["d"], lines, tuple(entry["outputs"])
        return Pooled(*head, per=entry["per"], any_length=entry["any_length"])


class PooledBuilder(Builder):
    """Lines of a formula; constants are folded as in a program."""

    counts = False  # whether the number of tokens was used

    def line(self, node: Node) -> Line:
        return self._lines[node.line]

    def own(self, c: int) -> Node:
        return self._node(("x", c))

    def other(self, c: int) -> Node:
        return self._node(("y", c))

    def pool(self, name: str, node: Node) -> Node:
        return node if self.value(node) is not None else self._node((name, node.line))

    def build(self, outputs: Sequence[Node], per: Per, any_length: bool) -> Pooled:
        lines, at = self.lines_needed(outputs)
        return Pooled(self.n, self.d, lines, at, per, any_length)

    def _arguments(self, at: int) -> tuple[int, ...]:
        line = self._lines[at]
        return () if line[0] in LEAVES else line[1:]
