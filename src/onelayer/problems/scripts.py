"""Straight-line programs over groups of variables, written with + - * on numbers that remember how they came about.

A line is a word and its arguments: "x 3" is the fourth variable of the group x, "const 0x1.8p+1" a number, and
"mul 0 4" the product of two earlier lines. The checker reads the same lines: what is evaluated is what is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
}
SIGNS = {"add": "+", "sub": "-", "mul": "*"}


@dataclass(frozen=True)
class Script:
    """Lines, and which of them are the outputs."""

    lines: tuple[str, ...]
    outputs: tuple[int, ...]

    def run(self, groups: Mapping[str, Sequence[Any]]) -> list[Any]:
        """Its outputs, in floating point, for arrays that broadcast against each other."""
        values: list[Any] = []
        for line in self.lines:
            word, *arguments = line.split(" ")
            if word == "const":
                values.append(float.fromhex(arguments[0]))
            elif word in OPERATIONS:
                given = [values[int(i)] for i in arguments]
                values.append(_with_zero(word, *given) if _has_zero(given) else OPERATIONS[word](*given))
            else:
                values.append(groups[word][int(arguments[0])])
        return [values[i] for i in self.outputs]

    def formula(self, output: int = 0, longest: int = 200) -> str | None:
        """An output as one formula; None if it is long."""
        texts: list[str] = []
        for line in self.lines:
            word, *arguments = line.split(" ")
            known = [texts[int(i)] for i in arguments] if word in OPERATIONS else []
            if word == "const":
                text = f"{float.fromhex(arguments[0]):.6g}"
            elif word in SIGNS:
                text = f"({known[0]} {SIGNS[word]} {known[1]})" if word != "mul" else "*".join(known)
            elif known:
                text = f"{word}({', '.join(known)})" if word != "neg" else f"-{known[0]}"
            else:
                text = f"{word}{arguments[0]}"
            texts.append(text if len(text) <= 4 * longest else "?" * 5 * longest)
        found = texts[self.outputs[output]]
        found = found[1:-1] if found.startswith("(") and _closes(found) else found
        return found if len(found) <= longest else None

    def to_json(self) -> dict[str, Any]:
        return {"lines": list(self.lines), "outputs": list(self.outputs)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Script:
        return Script(tuple(entry["lines"]), tuple(entry["outputs"]))


def _has_zero(given: list[Any]) -> bool:
    return any(isinstance(value, float) and value == 0 for value in given)


def _with_zero(word: str, a: Any, b: Any = 0.0) -> Any:
    """An operation with the number 0 as an argument: arrays are neither multiplied by it nor added to it."""
    if word == "mul":
        return 0.0
    if word == "add":
        return b if isinstance(a, float) and a == 0 else a
    if word == "sub" and isinstance(b, float) and b == 0:
        return a
    return OPERATIONS[word](a) if word in ("neg", "abs", "exp") else OPERATIONS[word](a, b)


def _closes(text: str) -> bool:
    """Whether the first parenthesis is closed by the last."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


@dataclass
class Pen:
    """Writes a script; what was written before is not written again."""

    lines: dict[str, int] = field(default_factory=dict)

    def write(self, line: str) -> Value:
        return Value(self, self.lines.setdefault(line, len(self.lines)))

    def group(self, name: str, count: int) -> list[Value]:
        return [self.write(f"{name} {i}") for i in range(count)]

    def number(self, value: Value | float) -> Value:
        return value if isinstance(value, Value) else self.write(f"const {float(value).hex()}")

    def script(self, outputs: Iterable[Value | float]) -> Script:
        at = tuple(self.number(value).at for value in outputs)
        return Script(tuple(self.lines), at)


@dataclass(frozen=True)
class Value:
    """The result of a line. Adding 0 and multiplying by 1 write nothing."""

    pen: Pen = field(repr=False)
    at: int

    def _with(self, word: str, other: Value | float, swapped: bool = False) -> Value:
        pair = (self.at, self.pen.number(other).at)
        first, second = reversed(pair) if swapped else pair
        return self.pen.write(f"{word} {first} {second}")

    def __add__(self, other: Value | float) -> Value:
        return self if isinstance(other, float | int) and other == 0 else self._with("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self if isinstance(other, float | int) and other == 0 else self._with("sub", other)

    def __rsub__(self, other: float) -> Value:
        return -self if other == 0 else self._with("sub", other, swapped=True)

    def __mul__(self, other: Value | float) -> Value:
        return self if isinstance(other, float | int) and other == 1 else self._with("mul", other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return self.pen.write(f"neg {self.at}")

    def __abs__(self) -> Value:
        return self.pen.write(f"abs {self.at}")

    def maximum(self, other: Value | float) -> Value:
        return self._with("max", other)


Number = Value | float


def write(body: Callable[..., Iterable[Number]], **groups: int) -> Script:
    """The script of a function of groups of variables, of this many each."""
    pen = Pen()
    return pen.script(body(*(pen.group(name, count) for name, count in groups.items())))


def dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    """The sum of products; a factor that is the number 0 takes no line."""
    found: Any = 0.0
    for p, q in zip(a, b, strict=True):
        if not (_is_zero(p) or _is_zero(q)):
            found = p * q if _is_zero(found) else found + p * q
    return found


def _is_zero(value: Any) -> bool:
    return not isinstance(value, Value) and value == 0
