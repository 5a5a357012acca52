"""Layers as blocks: units relu(s + b) or relu(-s + b) of the same number s make a piecewise linear function of s.

A number of the network is a line of the formula plus an offset, off by at most an error, in real arithmetic. Units
whose columns of weights are equal, up to the sign, read the same number s; what they add to a number of the next
layer is G(s), piecewise linear with corners at -b or b. The next number is the sum of such functions, one for each
number that is read. Its line must be a sum of functions H of the same lines: its parts that are computed from one
of them alone. Then |G(s') - H(s)| <= |G - H|(s) + (steepest slope of G) |s' - s| for s in the range of the line and
s' near it.

In an arithmetic, what units of a group have read is off by what the layer before made of its numbers, the same for
all of them, which moves G by at most its steepest slope; and each by the rounding of a sum of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from onelayer_checker.core.balls import REAL, TINY, UP, Arithmetic, Array, U, exact, gamma, guarded, linear
from onelayer_checker.functions import ramps
from onelayer_checker.functions.differences import difference
from onelayer_checker.functions.formulas import BINARY, UNARY, Meaning, Undefined, number
from onelayer_checker.functions.intervals import Interval, minus, out, plus, times
from onelayer_checker.functions.jets import ONE, ZERO, Jet, of_one, of_two
from onelayer_checker.functions.rounding import flushing_cost


@dataclass(frozen=True)
class Number:
    """Of the network: ``line`` + ``offset``, off by at most ``error``."""

    line: int
    offset: float
    error: float
    moved: float = 0.0  # by an arithmetic, at most


@dataclass(frozen=True)
class Group:
    """Units relu(signs s + bias) of one number s; or, without biases, that number itself."""

    read: Number
    units: Array  # their rows in the next matrix of weights
    signs: Array
    bias: Array | None
    own: Array  # what rounding their own sums may move them by

    @property
    def corners(self) -> Array:
        return np.zeros(0) if self.bias is None else -self.bias * self.signs


def group_columns(W: Array) -> list[tuple[Array, Array]]:
    """Columns of W that are equal up to the sign, with their signs; those first that appear first."""
    leads = W[np.argmax(W != 0, axis=0), np.arange(W.shape[1])]
    signs = np.where(leads < 0, -1.0, 1.0)
    _, first, which = np.unique(W * signs, axis=1, return_index=True, return_inverse=True)
    found = (np.flatnonzero(which.ravel() == k) for k in np.argsort(first, kind="stable"))
    return [(units, signs[units]) for units in found]


def plain(numbers: list[Number]) -> list[Group]:
    return [Group(read, np.array([k]), np.ones(1), None, np.zeros(1)) for k, read in enumerate(numbers)]


Lines = tuple[int, ...]
Parts = list[tuple[Fraction, int]]  # factors and lines, which add up


def layer(meaning: Meaning, groups: list[Group], W: Array, b: Array, lines: Lines, A: Arithmetic) -> list[Group]:
    """The groups of a layer with ReLU, whose numbers are said to stand for these lines."""
    columns = group_columns(W)
    if len(lines) != len(columns):
        raise Undefined(f"a layer has {len(columns)} different columns, the plan names {len(lines)} lines")
    found = []
    for line, (units, signs) in zip(lines, columns, strict=True):
        w = W[:, units[0]] * signs[0]
        own = rounding_of_sum(meaning, groups, w, b[units], A)
        found.append(Group(follow_line(meaning, groups, w, 0.0, line), units, signs, b[units], own))
    return found


def last(meaning: Meaning, groups: list[Group], W: Array, b: Array, lines: Lines, A: Arithmetic) -> list[Number]:
    """The numbers of a layer without ReLU."""
    if len(lines) != len(b):
        raise Undefined(f"a layer has {len(b)} numbers, the plan names {len(lines)} lines")
    found = []
    for c, line in enumerate(lines):
        number_ = follow_line(meaning, groups, W[:, c], float(b[c]), line)
        own = float(rounding_of_sum(meaning, groups, W[:, c], b[c : c + 1], A)[0])
        found.append(replace(number_, moved=(number_.moved + own) * UP))
    return found


def rounding_of_sum(meaning: Meaning, groups: list[Group], w: Array, b: Array, A: Arithmetic) -> Array:
    """What rounding may move a sum of the groups with weights w and each of the biases b by. The sizes of its terms
    add up to a convex function of each number, which is largest at an end of its range."""
    size = 0.0
    for group in (group for group in groups if w[group.units].any()):
        reach = group.read.error + group.read.moved
        a, e = domain(meaning, group.read)
        ends = np.abs([a, e]) if group.bias is None else np.array([a, e])
        units = ends[:, None] * group.signs + (0.0 if group.bias is None else group.bias)
        heavy = np.abs(w[group.units])
        size += float((np.maximum(units, 0.0) @ heavy).max() + heavy @ (group.own + reach)) * (1 + 2.0**-30)
    terms = int(np.count_nonzero(w))
    if A is REAL:
        return np.zeros(len(b))
    found = gamma(terms + 2, A.u) * (size + np.abs(b)) * UP
    found += flushing_cost(size + float(np.abs(w).max(initial=0.0) + np.abs(b).max()), terms, A)
    return guarded(found, 4 * (size + np.abs(b)), A)


def follow_line(meaning: Meaning, groups: list[Group], w: Array, b: float, line: int) -> Number:
    """The sum of the groups with weights w and bias b, as an approximation of a line."""
    used = [_units_read(group, w) for group in groups if w[group.units].any()]
    parts: dict[int, Parts] = {k: [] for k in range(len(used))}
    constant = _divide(meaning, used, line, parts)
    apart, error, moved = plus((np.full(1, b),) * 2, minus(number(constant))), 0.0, 0.0
    for k, group in enumerate(used):
        apart = plus(apart, gap(meaning, group, w[group.units], parts[k]))
        steepest = _steepest(meaning, group, w[group.units])
        error += steepest * group.read.error * UP
        moved += (steepest * group.read.moved + float(np.abs(w[group.units]) @ group.own)) * (1 + 2.0**-30)
    low, high = float(apart[0][0]), float(apart[1][0])
    offset = low / 2 + high / 2
    error = (error + max(high - offset, offset - low)) * UP + TINY
    if not error < np.inf:
        raise Undefined(f"line {line} is not bounded")
    return Number(line, offset, error, moved if moved < np.inf else np.inf)  # 0 times infinity is no number


def _units_read(group: Group, w: Array) -> Group:
    """The units of a group that have a weight: the others add nothing."""
    some = np.flatnonzero(w[group.units])
    bias = None if group.bias is None else group.bias[some]
    return Group(group.read, group.units[some], group.signs[some], bias, group.own[some])


def _divide(meaning: Meaning, groups: list[Group], line: int, parts: dict[int, Parts]) -> Fraction:
    """Write a line as a constant and functions of the lines of single groups, which are added to ``parts``. Lines
    name lines before them: from the last to the first, each is met once, with all of its factors."""
    constant, left, known = Fraction(0), {line: Fraction(1)}, dict[int, Source]()
    while left:
        at = max(left)
        factor, found = left.pop(at), _source(meaning, groups, at, known)
        if isinstance(found, Fraction):
            constant += factor * found
        elif found is not None:
            parts[found].append((factor, at))
        else:
            for part, i in _terms(meaning, at):
                left[i] = left.get(i, Fraction(0)) + factor * part
    return constant


def _terms(meaning: Meaning, line: int) -> Parts:
    """The lines, with factors, that a line is the sum of."""
    op, *of = meaning.formula.lines[line]
    if op in ("add", "sub", "neg"):
        signs = (-1,) if op == "neg" else (1, 1 if op == "add" else -1)
        return [(Fraction(sign), i) for sign, i in zip(signs, of, strict=True)]
    if op == "mul":
        for i, j in (of, of[::-1]):
            p = meaning.normal(i)
            if p.keys() <= {()}:
                return [(p.get((), Fraction(0)), j)]
    raise Undefined(f"line {line}, {op}, is not a sum of functions of single numbers of the layer before")


Source = Fraction | int | None


def _source(meaning: Meaning, groups: list[Group], line: int, known: dict[int, Source]) -> Source:
    """A number, if the line is constant; the only group that it is a function of; or None."""
    if line not in known:
        p, (op, *of) = meaning.normal(line), meaning.formula.lines[line]
        own = [k for k, group in enumerate(groups) if meaning.find_relation(line, group.read.line) is not None]
        if p.keys() <= {()}:
            known[line] = p.get((), Fraction(0))
        elif own:
            known[line] = own[0]
        elif op in UNARY or op in BINARY:
            found = [_source(meaning, groups, i, known) for i in of]
            different = {k for k in found if not isinstance(k, Fraction)}
            known[line] = different.pop() if len(different) == 1 else None
        else:
            known[line] = None
    return known[line]


def _follow(meaning: Meaning, group: Group, line: int, s: Jet, known: dict[int, Jet], cut: bool) -> Jet:
    """The line as a function of the number s that a group reads. Cut to their ranges, values enclose those at the s
    that some sequence has; of a function that is cut the derivatives are not known."""
    if line not in known:
        p, (op, *of) = meaning.normal(line), meaning.formula.lines[line]
        scale = meaning.find_relation(line, group.read.line)
        if p.keys() <= {()}:
            known[line] = Jet(number(p.get((), Fraction(0))))
        elif scale is not None:  # a (s - offset) + b
            a, b = number(scale[0]), number(scale[1] - scale[0] * Fraction(group.read.offset))
            known[line] = Jet(plus(times(a, s.value), b), times(a, s.slope), ZERO)
        else:
            args = [_follow(meaning, group, i, s, known, cut) for i in of]
            known[line] = of_one(op, args[0]) if op in UNARY else of_two(op, args[0], args[1], of[0] == of[1])
        if cut:
            low, high = (np.clip(end, *meaning.ranges[line]) for end in known[line].value)
            known[line] = replace(known[line], value=(low, high))
    return known[line]


def _target_jet(meaning: Meaning, group: Group, parts: Parts, low: Array, high: Array, cut: bool) -> Jet:
    """H on intervals of s."""
    shape = np.zeros_like(low)
    found, known = Jet((shape, shape), (shape, shape), (shape, shape)), dict[int, Jet]()
    for factor, line in parts:
        term = _follow(meaning, group, line, Jet((low, high), ONE, ZERO), known, cut)
        c = Jet(number(factor))
        found = of_two("add", found, of_two("mul", c, term, False), False)
    return found


def _network_values(group: Group, w: Array, s: Array) -> Interval:
    """G at numbers s."""
    if group.bias is not None:
        return ramps.values(group.corners, group.signs, w, s)
    y = linear(exact(s[:, None]), w[:, None], 0.0, REAL)
    return y.low[:, 0], y.high[:, 0]


def domain(meaning: Meaning, read: Number) -> tuple[float, float]:
    """Encloses the line of a number, as the number would be without an error."""
    low, high = (end + read.offset for end in meaning.ranges[read.line])
    low, high = out(low, high, TINY)
    return float(low[0]), float(high[0])


def gap(meaning: Meaning, group: Group, w: Array, parts: Parts) -> Interval:
    """Encloses G - H on the range of the line."""
    a, b = domain(meaning, group.read)
    ends = np.unique(np.concatenate([[a, b], group.corners[(group.corners > a) & (group.corners < b)]]))
    return difference(ends, partial(_network_values, group, w), partial(_target_jet, meaning, group, parts))


def _steepest(meaning: Meaning, group: Group, w: Array) -> float:
    """At least the largest slope of G where the number may be: between two corners it is that of the units on."""
    if group.bias is None:
        return float(np.abs(w).max()) * UP
    a, b = domain(meaning, group.read)
    reach = (group.read.error + group.read.moved) * UP + TINY
    a, b = np.nextafter(a - reach, -np.inf), np.nextafter(b + reach, np.inf)
    corners = np.unique(np.concatenate([[a, b], group.corners[(group.corners > a) & (group.corners < b)]]))
    slack = float(np.abs(w).sum()) * (w.size + 2) * 4 * U
    return float(np.abs(ramps.slopes(group.corners, group.signs, w, corners)).max() + slack) * UP
