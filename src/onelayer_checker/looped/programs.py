"""Straight-line programs over groups of variables: what a step, an answer or a token of an algorithm is.

A line is a word and its arguments: "x 3" is the fourth variable of the group x, "const 0x1.8p+1" a number, and
"mul 0 4" the product of two earlier lines. A program runs on anything that can be added and multiplied.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from onelayer_checker.core.budget import spend
from onelayer_checker.core.files import Malformed, fields, real, shown
from onelayer_checker.looped.polynomials import Poly, charge

ARGUMENTS = {"add": 2, "sub": 2, "mul": 2, "max": 2, "min": 2, "neg": 1, "abs": 1}
#: A kernel may have exp too; a polynomial has none.
OF_KERNELS = ARGUMENTS | {"exp": 1}
MOST_LINES = 20_000


@dataclass(frozen=True)
class Program:
    lines: tuple[tuple[Any, ...], ...]
    outputs: tuple[int, ...]

    @cached_property
    def varies(self) -> tuple[bool, ...]:
        """Of each output, whether it reads a variable."""
        found: list[bool] = []
        for word, *arguments in self.lines:
            found.append(word != "const" and (word not in MEANINGS or any(found[i] for i in arguments)))
        return tuple(found[i] for i in self.outputs)

    @cached_property
    def grown(self) -> frozenset[int]:
        """Sums whose first part was computed for them alone: it may grow in its place."""
        uses = Counter(i for word, *arguments in self.lines if word in MEANINGS for i in arguments)
        uses.update(self.outputs)
        return frozenset(
            k
            for k, (word, *arguments) in enumerate(self.lines)
            if word == "add" and self.lines[arguments[0]][0] in MEANINGS and uses[arguments[0]] == 1
        )

    def run(self, groups: Mapping[str, Sequence[Any]]) -> list[Any]:
        """Its outputs, of numbers or of polynomials."""
        values: list[Any] = []
        for k, (word, *arguments) in enumerate(self.lines):
            if word == "const":
                values.append(arguments[0])
            elif word in MEANINGS:
                given = [values[i] for i in arguments]
                if not all(isinstance(u, Poly) for u in given):
                    charge(*given)
                grows = k in self.grown and isinstance(given[0], Poly)
                values.append(given[0].grow(given[1]) if grows else MEANINGS[word](*given))
            else:
                values.append(groups[word][arguments[0]])
            if isinstance(values[-1], Poly):
                spend("lines of a program", kept=60.0 * len(values[-1].terms))
        return [values[i] for i in self.outputs]


def _larger(a: Any, b: Any) -> Any:
    return (a + b + abs(a - b)) * Fraction(1, 2)


def _smaller(a: Any, b: Any) -> Any:
    return (a + b - abs(a - b)) * Fraction(1, 2)


#: What each word does, to numbers and polynomials; a kernel may have exp too, which a polynomial has not.
MEANINGS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": _larger,
    "min": _smaller,
    "neg": operator.neg,
    "abs": abs,
    "exp": operator.methodcaller("exp"),
}


def read_program(
    entry: Any, groups: Mapping[str, int], where: str, words: Mapping[str, int] = ARGUMENTS
) -> Program:
    """A program of these words that reads these groups, of so many variables each."""
    fields(entry, {"lines", "outputs"}, where)
    lines, outputs = entry["lines"], entry["outputs"]
    if not all(isinstance(part, list) and 1 <= len(part) <= MOST_LINES for part in (lines, outputs)):
        raise Malformed("claim", f"{where} must have 1 to {MOST_LINES} lines and outputs")
    read = tuple(_read_line(line, k, groups, words, f"{where}.lines[{k}]") for k, line in enumerate(lines))
    if not all(type(k) is int and 0 <= k < len(read) for k in outputs):
        raise Malformed("claim", f"{where}.outputs must be indices of lines")
    return Program(read, tuple(outputs))


def _read_line(
    line: Any, k: int, groups: Mapping[str, int], words: Mapping[str, int], where: str
) -> tuple[Any, ...]:
    word, *arguments = line.split(" ") if isinstance(line, str) else [""]
    if word == "const" and len(arguments) == 1:
        return "const", Fraction(real(arguments[0], where))
    limit, count = (k, words[word]) if word in words else (groups.get(word, 0), 1)
    plain = all(a.isascii() and a.isdigit() and len(a) < 7 and str(int(a)) == a for a in arguments)
    if len(arguments) != count or not plain or not all(int(a) < limit for a in arguments):
        raise Malformed("claim", f"{where} is no line, or names no variable or earlier line: {shown(line)}")
    return word, *(int(a) for a in arguments)
