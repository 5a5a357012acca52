"""Formulas: functions of a token x and of averages over all tokens y, for sequences of any length.

A formula has lines, in which a plan of the network follows the target: outputs of the target, outputs of the plan,
and for each layer the lines that its numbers stand for. Nothing of the plan is believed. Line by line the checker
finds a polynomial (algebra.py), by which target and plan are compared, and a range on the box: an average lies in
the range of what is averaged, and lines with the same polynomial share the narrowest range.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from onelayer_checker.core.files import Malformed, fields, real
from onelayer_checker.functions import tilted
from onelayer_checker.functions.algebra import (
    ONE,
    Algebra,
    Key,
    Monomial,
    Polynomial,
    key,
    product,
    total,
)
from onelayer_checker.functions.intervals import Interval, out, plus, square, times
from onelayer_checker.functions.jets import Jet, of_one, of_two

UNARY = ("neg", "abs", "relu", "sqrt", "exp", "log", "sin", "cos", "tanh")
BINARY = ("add", "sub", "mul", "div", "min", "max", "hypot")
#: mean i; average of line k with weights e^(line i); largest value of line i over all tokens.
POOLED = {"mean": 1, "average": 2, "largest": 1}
MOST_LINES, MOST_WIDTH, MOST_TOKENS = 2_000, 1_000, 1 << 20
NAMED = ("outputs", "meant", "planned")
NOWHERE = np.full(1, -np.inf), np.full(1, np.inf)
ZERO: Interval = (np.zeros(1), np.zeros(1))


@dataclass(frozen=True)
class Formula:
    d: int
    tokens: int  # sequences have 1 to so many
    per: str
    box: tuple[tuple[float, float], ...]  # of each component
    lines: tuple[tuple[Any, ...], ...]
    outputs: tuple[int, ...]
    meant: tuple[int, ...]  # lines near the outputs, which are planned for
    planned: tuple[int, ...]  # lines that the plan has for those: the same functions
    stages: tuple[tuple[int, ...], ...]  # lines that the numbers of each layer stand for

    @cached_property
    def meaning(self) -> Meaning:
        return Meaning(self)


def read_formula(entry: Any, where: str) -> Formula:
    fields(entry, {"d", "tokens", "per", "box", "lines", "outputs", "meant", "planned", "stages"}, where)
    d, tokens, per, box = (entry[name] for name in ("d", "tokens", "per", "box"))
    if not all(type(k) is int and k >= 1 for k in (d, tokens)) or d > MOST_WIDTH or tokens > MOST_TOKENS:
        raise Malformed("claim", f"{where} has d={d!r:.20}, tokens={tokens!r:.20}")
    if per not in ("token", "sequence") or not isinstance(box, list) or len(box) != d:
        raise Malformed("claim", f"{where} needs per and a box of {d} components")
    if not all(isinstance(side, list) and len(side) == 2 for side in box):
        raise Malformed("claim", f"{where}.box must be pairs of numbers")
    ends = tuple((real(a, f"{where}.box"), real(b, f"{where}.box")) for a, b in box)
    if not all(-(2.0**500) <= a < b <= 2.0**500 for a, b in ends):
        raise Malformed("claim", f"{where}.box is empty or too wide")
    lines, listed = entry["lines"], [*(entry[name] for name in NAMED), *_stages(entry["stages"], where)]
    if not isinstance(lines, list) or not 1 <= len(lines) <= MOST_LINES:
        raise Malformed("claim", f"{where} must have 1 to {MOST_LINES} lines")
    read = tuple(_line(line, k, d, f"{where}.lines[{k}]") for k, line in enumerate(lines))
    for part in listed:
        if not isinstance(part, list) or not all(type(k) is int and 0 <= k < len(read) for k in part):
            raise Malformed("claim", f"{where} names a line that is not there")
    outputs, meant, planned, *stages = (tuple(part) for part in listed)
    if not outputs or not len(outputs) == len(meant) == len(planned):
        raise Malformed("claim", f"{where} needs as many outputs as are meant and planned")
    return Formula(d, tokens, per, ends, read, outputs, meant, planned, tuple(stages))


def _stages(stages: Any, where: str) -> list[Any]:
    if not isinstance(stages, list):
        raise Malformed("claim", f"{where}.stages must be a list")
    return stages


def _line(line: Any, k: int, d: int, where: str) -> tuple[Any, ...]:
    op = line[0] if isinstance(line, list) and line and isinstance(line[0], str) else ""
    if op == "const" and len(line) == 2:
        return "const", Fraction(real(line[1], where))
    whole = all(type(i) is int for i in line[1:]) if op else False
    if op == "ratio" and whole and len(line) == 3 and line[2] > 0:
        return "const", Fraction(line[1], line[2])
    count = 1 if op in ("x", "y") or op in UNARY else 2 if op in BINARY else POOLED.get(op)
    limit = d if op in ("x", "y") else k
    if count is None or not whole or len(line) != count + 1 or not all(0 <= i < limit for i in line[1:]):
        raise Malformed("claim", f"{where} is not a line: {line!r:.60}")
    return tuple(line)


def number(c: Fraction) -> Interval:
    """The two floats around a rational number."""
    try:
        near = np.full(1, float(c))
    except OverflowError:
        return NOWHERE
    return out(near, near, 2.0**-1000) if Fraction(float(near[0])) != c else (near, near)


class Meaning:
    """Polynomials and ranges of the lines of a formula."""

    def __init__(self, formula: Formula) -> None:
        self.formula, self.algebra = formula, Algebra()
        self._normal: dict[tuple[int, bool], Polynomial] = {}
        self.known: dict[Key, Interval] = {}  # ranges, by polynomial
        self._atoms: dict[int, Interval] = {}
        self.ranges: list[Interval] = []
        for k in range(len(formula.lines)):
            self._add(k)

    def _add(self, k: int) -> None:
        """Range and polynomial of a line. Every line must be defined on the whole box, which its operation decides:
        of x/x a polynomial says 1."""
        found = self._range(k)
        if not (np.isfinite(found[0]) & np.isfinite(found[1])).all():
            raise Undefined(f"line {k}, {self.formula.lines[k][0]}, is not seen to be defined on the whole box")
        other = self.enclose(self.normal(k))
        low, high = np.maximum(found[0], other[0]), np.minimum(found[1], other[1])
        averages = tilted.read(self.algebra, self.normal(k))
        if averages is not None:
            near = tilted.enclose(averages, self.span(averages.g), self.span(averages.v))
            low, high = np.maximum(low, near[0]), np.minimum(high, near[1])
        self.known[key(self.normal(k))] = low, high
        self.ranges.append((low, high))

    def _range(self, k: int) -> Interval:
        op, *of = self.formula.lines[k]
        if op == "const":
            return number(of[0])
        if op in ("x", "y"):
            low, high = self.formula.box[of[0]]
            return np.full(1, low), np.full(1, high)
        if op in POOLED:
            value: Interval = self.ranges[of[-1]]
            return value
        jets = [Jet(self.ranges[i]) for i in of]
        return of_one(op, jets[0]).value if op in UNARY else of_two(op, jets[0], jets[1], of[0] == of[1]).value

    def normal(self, k: int, swapped: bool = False) -> Polynomial:
        """The polynomial of a line; swapped, of the same function of the token y instead of x."""
        if (k, swapped) not in self._normal:
            self._normal[k, swapped] = self._polynomial_of(k, swapped)
        return self._normal[k, swapped]

    def _polynomial_of(self, k: int, swapped: bool) -> Polynomial:
        A, (op, *of) = self.algebra, self.formula.lines[k]
        if op == "const":
            return total((ONE, of[0]))
        if op in ("x", "y"):
            if swapped and op == "y":
                raise Undefined("a number of a token depends on another token")
            name = "y" if swapped else op
            return A.atom((name, of[0]), frozenset({name}))
        if op in POOLED and swapped:
            raise Undefined("a number of a token depends on an average over all")
        p, *rest = (self.normal(i, swapped) for i in of)
        if op == "mean":
            return A.average({}, p)
        if op == "average":
            return A.average(p, rest[0])
        if op == "largest":
            return self.largest(p)
        return _combine(A, op, p, rest[0] if rest else p)

    def largest(self, p: Polynomial) -> Polynomial:
        """The largest value over all tokens y."""
        names = (self.algebra.needs(*p) - {"y"}) | {"pool"}
        return self.algebra.atom(("largest", key(p)), names)

    def enclose(self, p: Polynomial) -> Interval:
        """Bounds of a polynomial on the box, term by term."""
        known = self.known.get(key(p))
        if known is not None:
            return known
        found = ZERO
        for m, c in p.items():
            found = plus(found, times(number(c), self._monomial(m)))
        return found

    def span(self, p: Polynomial) -> tuple[float, float]:
        low, high = self.enclose(p)
        return float(low[0]), float(high[0])

    def _monomial(self, m: Monomial) -> Interval:
        found: Interval = (np.ones(1), np.ones(1))
        for atom, power in m:
            a = self._atom(atom)
            for _ in range(power // 2):
                found = times(found, square(a))
            if power % 2:
                found = times(found, a)
        return found

    def _atom(self, atom: int) -> Interval:
        if atom not in self._atoms:
            name, *rest = self.algebra.atoms[atom]
            if name in ("x", "y"):
                low, high = self.formula.box[rest[0]]
                self._atoms[atom] = np.full(1, low), np.full(1, high)
            elif name == "average":
                self._atoms[atom] = self.enclose({rest[1]: Fraction(1)})
            elif name == "largest":
                self._atoms[atom] = self.enclose(dict(rest[0]))
            else:
                self._atoms[atom] = of_one(name, Jet(self.enclose(dict(rest[0])))).value
        return self._atoms[atom]

    def without_constant(self, k: int) -> tuple[Polynomial, Fraction]:
        p = self.normal(k)
        return {m: c for m, c in p.items() if m}, p.get((), Fraction(0))

    def find_relation(self, k: int, other: int) -> tuple[Fraction, Fraction] | None:
        """(a, b) with line k = a times the other line + b, if both polynomials say so."""
        (p, b), (q, e) = self.without_constant(k), self.without_constant(other)
        if not q or p.keys() != q.keys():
            return None
        first = next(iter(q))
        a = p[first] / q[first]
        return (a, b - a * e) if all(p[m] == a * q[m] for m in q) else None

    def disagreement(self) -> str:
        """Why the outputs that are planned are not those that are meant; nothing if they are."""
        f = self.formula
        for k, (i, meant, j) in enumerate(zip(f.outputs, f.meant, f.planned, strict=True)):
            free = self.algebra.needs(*self.normal(i), *self.normal(j))
            if self.normal(meant) != self.normal(j):
                return f"output {k} of the plan is another function than that of the target"
            if "y" in free or ("x" in free and self.formula.per == "sequence"):
                return f"output {k} depends on a token that nobody names"
        return ""


class Undefined(Exception):
    """Of a formula: something about it is not seen."""


def _combine(A: Algebra, op: str, p: Polynomial, q: Polynomial) -> Polynomial:
    """Polynomials of an operation of one line p or of two lines p and q."""
    if op == "neg":
        return total((p, -1))
    if op == "add" or op == "sub":
        return total((p, 1), (q, 1 if op == "add" else -1))
    if op == "mul":
        return product(p, q)
    if op == "div":
        return A.quotient(p, q)
    if op == "abs":
        return total((A.relu(p), 2), (p, -1))
    if op == "max":
        return total((A.relu(total((p, 1), (q, -1))), 1), (q, 1))
    if op == "min":
        return total((p, 1), (A.relu(total((p, 1), (q, -1))), -1))
    if op == "hypot":
        return A.function("sqrt", total((product(p, p), 1), (product(q, q), 1)))
    return A.function(op, p)
