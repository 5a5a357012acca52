"""Layers as blocks: units that read the same number s, relu(s + b), make a piecewise linear function of s.

A number of the network is a line of the formula plus an offset, off by at most an error, in real arithmetic. Units
with equal columns of weights read the same number s; what they add to a number of the next layer is G(s), piecewise
linear with corners at their -b. The next number is the sum of such functions, one for each number that is read. Its
line must be a sum of functions H of the same lines: its parts that are computed from one of them alone. Then
|G(s') - H(s)| <= |G - H|(s) + (steepest slope of G) |s' - s| for s in the range of the line and s' near it.
Between two corners G is linear, so that G - H leaves the chord between its ends by at most w^2/8 times the second
derivative of H, upwards if that is positive and downwards if it is negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from onelayer_checker.core.balls import REAL, TINY, UP, Array, U, exact, linear, relu
from onelayer_checker.core.budget import spend
from onelayer_checker.functions.formulas import BINARY, UNARY, Meaning, Undefined, number
from onelayer_checker.functions.intervals import Interval, minus, out, plus, times
from onelayer_checker.functions.jets import ONE, ZERO, Jet, of_one, of_two

#: How often intervals are halved, how many there may be, and how close to what is reached is close enough.
ROUNDS, MOST_PIECES, CLOSE = 60, 1 << 14, 0.01
#: Relative to the size of G: where it ends to matter.
FAINT = 2.0**-44


@dataclass(frozen=True)
class Number:
    """Of the network: ``line`` + ``offset``, off by at most ``error``."""

    line: int
    offset: float
    error: float


@dataclass(frozen=True)
class Group:
    """Units relu(s + bias) of one number s; or, without biases, that number itself."""

    read: Number
    units: Array  # their rows in the next matrix of weights
    bias: Array | None


def grouped(W: Array) -> list[Array]:
    """Columns of W that are equal, those first that appear first."""
    _, first, which = np.unique(W, axis=1, return_index=True, return_inverse=True)
    return [np.flatnonzero(which.ravel() == k) for k in np.argsort(first, kind="stable")]


def plain(numbers: list[Number]) -> list[Group]:
    return [Group(read, np.array([k]), None) for k, read in enumerate(numbers)]


def layer(meaning: Meaning, groups: list[Group], W: Array, b: Array, lines: tuple[int, ...]) -> list[Group]:
    """The groups of a layer with ReLU, whose numbers are said to stand for these lines."""
    columns = grouped(W)
    if len(lines) != len(columns):
        raise Undefined(f"a layer has {len(columns)} different columns, the plan names {len(lines)} lines")
    found = []
    for line, units in zip(lines, columns, strict=True):
        found.append(Group(following(meaning, groups, W[:, units[0]], 0.0, line), units, b[units]))
    return found


def last(meaning: Meaning, groups: list[Group], W: Array, b: Array, lines: tuple[int, ...]) -> list[Number]:
    """The numbers of a layer without ReLU."""
    if len(lines) != len(b):
        raise Undefined(f"a layer has {len(b)} numbers, the plan names {len(lines)} lines")
    return [following(meaning, groups, W[:, c], float(b[c]), line) for c, line in enumerate(lines)]


def following(meaning: Meaning, groups: list[Group], w: Array, b: float, line: int) -> Number:
    """The sum of the groups with weights w and bias b, as an approximation of a line."""
    used = [group for group in groups if w[group.units].any()]
    parts: dict[int, list[tuple[Fraction, int]]] = {k: [] for k in range(len(used))}
    constant = _divide(meaning, used, line, Fraction(1), parts)
    apart, error = plus((np.full(1, b),) * 2, minus(number(constant))), 0.0
    for k, group in enumerate(used):
        apart = plus(apart, _apart(meaning, group, w[group.units], parts[k]))
        error += _steepest(meaning, group, w[group.units]) * group.read.error * UP
    low, high = float(apart[0][0]), float(apart[1][0])
    offset = low / 2 + high / 2
    error = (error + max(high - offset, offset - low)) * UP + TINY
    if not error < np.inf:
        raise Undefined(f"line {line} is not bounded")
    return Number(line, offset, error)


def _divide(
    meaning: Meaning,
    groups: list[Group],
    line: int,
    factor: Fraction,
    parts: dict[int, list[tuple[Fraction, int]]],
) -> Fraction:
    """Write a line as a constant and functions of the lines of single groups, which are added to ``parts``."""
    found = _source(meaning, groups, line, {})
    if isinstance(found, Fraction):
        return factor * found
    if found is not None:
        parts[found].append((factor, line))
        return Fraction(0)
    op, *of = meaning.formula.lines[line]
    if op in ("add", "sub", "neg"):
        signs = (-1,) if op == "neg" else (1, 1 if op == "add" else -1)
        pairs = zip(signs, of, strict=True)
        return sum((_divide(meaning, groups, i, factor * sign, parts) for sign, i in pairs), Fraction(0))
    if op == "mul":
        for i, j in (of, of[::-1]):
            p = meaning.normal(i)
            if p.keys() <= {()}:
                return _divide(meaning, groups, j, factor * p.get((), Fraction(0)), parts)
    raise Undefined(f"line {line}, {op}, is not a sum of functions of single numbers of the layer before")


Source = Fraction | int | None


def _source(meaning: Meaning, groups: list[Group], line: int, known: dict[int, Source]) -> Source:
    """A number, if the line is constant; the only group that it is a function of; or None."""
    if line not in known:
        p, (op, *of) = meaning.normal(line), meaning.formula.lines[line]
        own = [k for k, group in enumerate(groups) if meaning.related(line, group.read.line) is not None]
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


def _follow(meaning: Meaning, group: Group, line: int, s: Jet, known: dict[int, Jet]) -> Jet:
    """The line as a function of the number s that a group reads."""
    if line not in known:
        p, (op, *of) = meaning.normal(line), meaning.formula.lines[line]
        scale = meaning.related(line, group.read.line)
        if p.keys() <= {()}:
            known[line] = Jet(number(p.get((), Fraction(0))))
        elif scale is not None:  # a (s - offset) + b
            a, b = number(scale[0]), number(scale[1] - scale[0] * Fraction(group.read.offset))
            known[line] = Jet(plus(times(a, s.value), b), times(a, s.slope), ZERO)
        else:
            args = [_follow(meaning, group, i, s, known) for i in of]
            known[line] = of_one(op, args[0]) if op in UNARY else of_two(op, args[0], args[1], of[0] == of[1])
        low, high = (np.clip(end, *meaning.ranges[line]) for end in known[line].value)  # where s is in its range
        known[line] = replace(known[line], value=(low, high))
    return known[line]


def _wanted(meaning: Meaning, group: Group, parts: list[tuple[Fraction, int]], low: Array, high: Array) -> Jet:
    """H on intervals of s."""
    shape = np.zeros_like(low)
    found, known = Jet((shape, shape), (shape, shape), (shape, shape)), dict[int, Jet]()
    for factor, line in parts:
        term = _follow(meaning, group, line, Jet((low, high), ONE, ZERO), known)
        c = Jet(number(factor))
        found = of_two("add", found, of_two("mul", c, term, False), False)
    return found


def _given(group: Group, w: Array, s: Array) -> Interval:
    """G at numbers s, by the kernel."""
    x = exact(s[:, None])
    if group.bias is not None:
        spend("corners of a block", 200.0 * s.size * w.size, 64.0 * s.size * w.size)
        x = relu(linear(x, np.ones((1, w.size)), group.bias, REAL))
    y = linear(x, w[:, None], 0.0, REAL)
    return y.low[:, 0], y.high[:, 0]


def _domain(meaning: Meaning, group: Group) -> tuple[float, float, float, float]:
    """Where the line of a group lies, as its number s would be without an error: a, b certainly at or before its
    low end and after it, c, d the same of its high end, the latter first."""
    low, high = (end + group.read.offset for end in meaning.ranges[group.read.line])
    (a, b), (d, c) = out(low, low, TINY), out(high, high, TINY)
    return float(a[0]), float(b[0]), float(d[0]), float(c[0])


def _apart(meaning: Meaning, group: Group, w: Array, parts: list[tuple[Fraction, int]]) -> Interval:
    """Encloses G - H on the range of the line."""
    a, inside, beyond, b = _domain(meaning, group)
    corners = np.concatenate([[inside, beyond], [] if group.bias is None else -group.bias])
    ends = np.unique(np.concatenate([[a, b], corners[(corners > a) & (corners < b)]]))
    low, high = ends[:-1], ends[1:]
    least, most = np.inf, -np.inf  # of pieces that are done
    bottom, top = np.inf, -np.inf  # reached by G - H somewhere
    for turn in range(ROUNDS):
        first, second = (_difference(meaning, group, w, parts, s) for s in (low, high))
        H = _wanted(meaning, group, parts, low, high)
        width = (high - low) * UP
        rise, fall = (np.maximum(x, 0.0) * (width * width * (UP / 8)) for x in (H.bend[1], -H.bend[0]))
        below, above = out(np.minimum(first[0], second[0]) - fall, np.maximum(first[1], second[1]) + rise, TINY)
        G = _given(group, w, low), _given(group, w, high)
        flat = out(
            np.minimum(G[0][0], G[1][0]) - H.value[1], np.maximum(G[0][1], G[1][1]) - H.value[0], TINY
        )  # values alone: where nothing is known of the second derivative
        smooth = (low >= inside) & (high <= beyond)  # all of it belongs to the range
        below = np.where(smooth, np.fmax(below, flat[0]), flat[0])
        above = np.where(smooth, np.fmin(above, flat[1]), flat[1])
        size = float(max(np.abs(G[0][0]).max(), np.abs(G[1][1]).max(), 2.0**-900))
        bottom = min(bottom, float(np.min(first[1])), float(np.min(second[1])))
        top = max(top, float(np.max(first[0])), float(np.max(second[0])))
        slack = CLOSE * max(top - bottom, 0.0) + FAINT * size
        done = (below >= bottom - slack) & (above <= top + slack)
        if turn + 1 == ROUNDS or 2 * int((~done).sum()) > MOST_PIECES:
            done[:] = True
        least = min(least, float(np.min(below[done], initial=np.inf)))
        most = max(most, float(np.max(above[done], initial=-np.inf)))
        if done.all():
            break
        low, high = low[~done], high[~done]
        middle = np.clip(low / 2 + high / 2, low, high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return (np.full(1, least), np.full(1, most)) if np.isfinite([least, most]).all() else _unknown()


def _unknown() -> Interval:
    raise Undefined("a block is not seen to be near its operation")


def _difference(meaning: Meaning, group: Group, w: Array, parts: list[tuple[Fraction, int]], s: Array) -> Interval:
    """G - H at numbers s."""
    G, H = _given(group, w, s), _wanted(meaning, group, parts, s, s).value
    return out(G[0] - H[1], G[1] - H[0])


def _steepest(meaning: Meaning, group: Group, w: Array) -> float:
    """At least the largest slope of G where the number may be."""
    slack = float(np.abs(w).sum()) * (w.size + 2) * 4 * U
    if group.bias is None:
        return float(np.abs(w).max()) * UP
    a, _, _, b = _domain(meaning, group)
    reach = group.read.error * UP + TINY
    a, b = np.nextafter(a - reach, -np.inf), np.nextafter(b + reach, np.inf)
    order = np.argsort(-group.bias, kind="stable")
    corners = -group.bias[order]
    slopes = np.concatenate([[0.0], np.cumsum(w[order])])  # before the first corner, after it, ...
    starts, stops = np.concatenate([[-np.inf], corners]), np.concatenate([corners, [np.inf]])
    inside = (stops >= a) & (starts <= b)
    return float(np.abs(slopes[inside]).max(initial=0.0) + slack) * UP
