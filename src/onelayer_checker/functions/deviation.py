"""How far two lines of a formula are apart, followed side by side.

Lines with the same polynomial are the same function. Two functions of one common line are compared on its range, as
a block is with its operation. The same operation of lines that are apart is apart by at most the largest slope, on
the hull of their ranges, times that: a segment between two arguments stays in the hull. Roots are at most the root
of that apart, however steep. What is not negative is no further from the positive part of a line than from the
line. An average, or a maximum, over all tokens moves no further than what it is taken of, and the mean of a sum is
the sum of the means of its parts. A hypot and a sum that grows as it does are compared by norms.py; a covariance,
or the logarithm of a mean of exponentials, and a sum of averages by tilted.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from onelayer_checker.core.balls import TINY, UP
from onelayer_checker.functions import tilted
from onelayer_checker.functions.algebra import total
from onelayer_checker.functions.blocks import Number, gap, plain
from onelayer_checker.functions.formulas import BINARY, UNARY, Meaning, Undefined
from onelayer_checker.functions.intervals import Interval
from onelayer_checker.functions.jets import ONE, Jet, of_one, of_two
from onelayer_checker.functions.norms import apart

Known = dict[tuple[int, int], float]


def deviation(meaning: Meaning, k: int, j: int, known: Known) -> float:
    """At least |line k - line j| on the box; infinite if nothing is seen."""
    if (k, j) not in known:
        known[k, j] = _deviation(meaning, k, j, known)
    return known[k, j]


def _deviation(meaning: Meaning, k: int, j: int, known: Known) -> float:
    if meaning.normal(k) == meaning.normal(j):
        return 0.0
    (op, *of), (other, *args) = meaning.formula.lines[k], meaning.formula.lines[j]
    if (found := _of_averages(meaning, k, j)) < np.inf:
        return found
    if other == "relu" and meaning.ranges[k][0] >= 0 and (found := deviation(meaning, k, args[0], known)) < np.inf:
        return found
    if op == "mean" and other in ("add", "sub"):
        return _of_a_sum(meaning, of[0], j, known)
    if op == other and op in ("mean", "largest"):
        return deviation(meaning, of[0], args[0], known)
    if op == other and (op in UNARY or op in BINARY):
        moved = [deviation(meaning, a, b, known) for a, b in zip(of, args, strict=True)]
        if all(part < np.inf for part in moved):
            return _propagate(meaning, op, of, args, moved)
    if op == "hypot" and (found := apart(meaning, k, j)) < np.inf:
        return found
    return _of_one_line(meaning, k, j)


def _of_averages(meaning: Meaning, k: int, j: int) -> float:
    """The same, where line j has a sum of averages with weights e^(s g) and line k has what that is near."""
    A = meaning.algebra
    weighed, rest = tilted.divide(A, total((meaning.normal(j), 1), (meaning.normal(k), -1)))
    averages = tilted.read(A, weighed)
    if averages is None:
        return np.inf
    to = tilted.functional(A, total((rest, -1)), averages)
    return np.inf if to is None else tilted.error(averages, to, meaning.span(averages.g), meaning.span(averages.v))


def _of_a_sum(meaning: Meaning, inside: int, j: int, known: Known) -> float:
    """The same, where line k is the mean of a sum, and line j a sum of what is near the means of its parts."""
    lines = meaning.formula.lines
    (op, *of), (other, p, q) = lines[inside], lines[j]
    means = [("mean", i) for i in of]
    if op != other or any(mean not in lines for mean in means):
        return np.inf
    a, b = (lines.index(mean) for mean in means)
    return (deviation(meaning, a, p, known) + deviation(meaning, b, q, known)) * UP


def _propagate(meaning: Meaning, op: str, of: list[int], args: list[int], moved: list[float]) -> float:
    hulls = [_hull(meaning.ranges[a], meaning.ranges[b]) for a, b in zip(of, args, strict=True)]
    found = 0.0
    for i, part in enumerate(moved):
        jets = [Jet(hull, ONE) if i == at else Jet(hull) for at, hull in enumerate(hulls)]
        made = of_one(op, jets[0]) if len(jets) == 1 else of_two(op, jets[0], jets[1], False)
        steep = float(np.max(np.abs(made.slope)))
        moves = 0.0 if part == 0 else steep * part * UP + TINY
        found += moves if op != "sqrt" else min(moves, float(np.sqrt(part)))
    return found * UP


def _hull(a: Interval, b: Interval) -> Interval:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _of_one_line(meaning: Meaning, k: int, j: int) -> float:
    """Both as functions of the last line that both are functions of."""
    for s in range(min(k, j) - 1, -1, -1):
        if all(_follows(meaning, line, s, {}) for line in (k, j)):
            (group,) = plain([Number(s, 0.0, 0.0)])
            try:
                low, high = gap(meaning, group, np.zeros(1), [(Fraction(1), k), (Fraction(-1), j)])
            except Undefined:
                return np.inf
            return float(max(high[0], -low[0]))
    return np.inf


def _follows(meaning: Meaning, line: int, s: int, known: dict[int, bool]) -> bool:
    """Whether a line is computed from line s and constants alone."""
    if line not in known:
        op, *of = meaning.formula.lines[line]
        inner = op in UNARY or op in BINARY
        known[line] = line == s or op == "const" or (inner and all(_follows(meaning, i, s, known) for i in of))
    return known[line]
