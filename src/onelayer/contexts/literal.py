"""Both softmax theorems, evaluated as written: rank-1 weights in ball arithmetic, at as many bits as they need.

Statement  Definition 2 for id(x) = x + lambda boltz(beta v.x v.X)/(beta v.x) v, one head of size 1 without biases.
Gives      a decision of "ids more than delta apart" and "norms below r" by certain comparison of balls.
Rests on   Arb (python-flint): every operation returns an interval that contains the exact result.
Why        the published gap is near 10^-978; float64 would see all ids equal and could decide nothing.
Differs    nothing is rounded to the safe side by hand; the direction is normalised inside the ball arithmetic.

Not thread-safe: python-flint keeps its precision in one place for the whole process. It is restored on exit.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError, MissingExtraError
from onelayer.problems.separation import Codes, Separation, distinct, measure, row_norms
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["contextual"]

Floats = NDArray[np.float64]
Arb = Any  # python-flint has no types; `flint.arb`, a real interval

#: Definition 1 is strict; a measured number moved by this relative slack satisfies it strictly.
STRICT = 2.0**-30
START_BITS, MAX_BITS = 128, 1 << 20


@dataclass(frozen=True)
class Promise:
    """What a theorem puts into the weights and what it promises, as balls at the current precision."""

    beta: Arb
    lam: Arb
    r: Arb
    delta: Arb


@dataclass(frozen=True)
class LiteralRun:
    """The verdict of a theorem on data. Logarithms, because the numbers themselves leave the range of float64."""

    separation_holds: bool  # every pair of ids that Definition 2 wants apart is more than delta apart
    norm_holds: bool  # every id has norm below r
    log10_gap_lower: float  # the smallest distance of two such ids; -inf if it may be zero, inf without pairs
    log10_delta: float
    norm_upper: float  # the largest norm of an id
    r: float
    bits: int  # the precision at which everything was certain


@contextmanager
def precision(bits: int) -> Iterator[Any]:
    """The module flint at a precision in bits, restored on exit. Not thread-safe: flint has one precision."""
    try:
        import flint
    except ImportError as missing:
        raise MissingExtraError("evaluating weights beyond float64", "python-flint", "exact") from missing
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield flint
    finally:
        flint.ctx.prec = before


def strict(separation: Separation) -> Separation:
    """The same data with every inequality of Definition 1 strict."""
    return replace(
        separation,
        r_min=separation.r_min * (1 - STRICT),
        r_max=separation.r_max * (1 + STRICT),
        eps=separation.eps * (1 - STRICT),
    )


def hypotheses(statement: str, X: Any, lengths: Any = None) -> Separation:
    """What both theorems ask of the data: no token twice in a sequence, no zero token, two different tokens."""
    separation = measure(X, lengths)
    tokens, codes = distinct(X, lengths)
    if separation.repeated_within is not None:
        i, k, later = separation.repeated_within
        raise HypothesisError(
            statement,
            "the tokens of a sequence to be distinct",
            f"sequence {i} has tokens {k} and {later} both equal to {show(tokens[codes[i, k]])}",
            "Add positions, or use [temperature].",
        )
    if separation.r_min == 0:
        i, k = np.argwhere(codes == row_norms(tokens).argmin())[0]
        raise HypothesisError(
            statement,
            "nonzero tokens, since a zero query attends uniformly without biases",
            f"sequence {i}, token {k} is {show(tokens[codes[i, k]])}",
            "Translate the tokens, or use [shared_query].",
        )
    if not 0 < separation.eps < math.inf:
        raise HypothesisError(
            statement, "two tokens at least, apart in float64", f"eps = {separation.eps}", "Rescale or drop tokens."
        )
    return separation


def show(token: Floats) -> str:
    """A token for a message."""
    return f"({', '.join(f'{x:.6g}' for x in token[:4].tolist())}{', ...' if len(token) > 4 else ''})"


def token_sets(codes: Codes) -> list[frozenset[int]]:
    """The different sets V(X) among the sequences, as sets of token numbers."""
    return sorted({frozenset(row[row >= 0].tolist()) for row in codes}, key=sorted)


def evaluate(
    statement: str,
    tokens: Floats,
    codes: Codes,
    direction: Floats,
    promise: Callable[[Any, list[Arb]], Promise],
    spare_channel: bool = False,
    max_bits: int = MAX_BITS,
) -> LiteralRun:
    """Judge ``promise(flint, levels)`` on the data, doubling the precision until every decision is certain.

    This ends: two ids that are closer than delta, or equal, are seen to be so once delta itself is resolved.
    ``spare_channel`` writes the context into a channel of its own instead of along v.
    """
    sets, bits = token_sets(codes), START_BITS
    while bits <= max_bits:
        with precision(bits) as flint:
            y = project(flint, tokens, direction)
            p = promise(flint, y)
            contexts = context_balls(y, sets, p)
            gap = smallest_distance(flint, tokens, y, contexts, spare_channel)
            norm = largest_norm(flint, tokens, y, contexts, spare_channel)
            gap_certain = gap < p.delta or (gap > p.delta and _is_accurate(gap))
            if gap_certain and (norm < p.r or norm >= p.r):
                return LiteralRun(
                    separation_holds=gap > p.delta,
                    norm_holds=norm < p.r,
                    log10_gap_lower=log10_lower(flint, gap),
                    log10_delta=log10_lower(flint, p.delta),
                    norm_upper=math.nextafter(float(norm.upper()), math.inf),
                    r=float(p.r),
                    bits=bits,
                )
        bits *= 2
    raise HypothesisError(
        statement,
        "a precision at which every pair of ids is certainly apart or certainly not",
        f"{max_bits} bits do not decide",
        "Raise max_bits, or choose another direction.",
    )


def project(flint: Any, tokens: Floats, direction: Floats) -> list[Arb]:
    """Levels v.x of the tokens, with v normalised here: a float64 vector is never exactly of norm 1."""
    v = [flint.arb(x) for x in direction.tolist()]
    norm = sum((x * x for x in v), flint.arb(0)).sqrt()
    return [sum((a * x for a, x in zip(v, row, strict=True)), flint.arb(0)) / norm for row in tokens.tolist()]


def context_balls(y: list[Arb], sets: list[frozenset[int]], p: Promise) -> list[list[Arb]]:
    """For every token the contexts lambda boltz/(beta y_k) of the sets it belongs to, sorted by midpoint.

    exp(beta y_k y_j) belongs to a pair of tokens, not to a sequence, so it is computed once. Balls have unbounded
    exponents: no maximum has to be subtracted.
    """
    contexts: list[list[Arb]] = [[] for _ in y]
    for k, mine in enumerate(contexts):
        weights: dict[int, Arb] = {}
        for members in (s for s in sets if k in s):
            for j in members - weights.keys():
                weights[j] = (p.beta * y[k] * y[j]).exp()
            mass = sum(weights[j] for j in members)
            mine.append(p.lam * sum(weights[j] * y[j] for j in members) / mass)
        mine.sort(key=lambda ball: ball.mid())
    return contexts


def smallest_distance(
    flint: Any, tokens: Floats, y: list[Arb], contexts: list[list[Arb]], spare_channel: bool
) -> Arb:
    """A ball around the smallest distance of two ids with different tokens or different sets.

    Same token: neighbours in sorted order suffice. If two neighbours overlap, the order is uncertain, but then
    their distance is a ball around 0, so the result reaches down to 0 and stays right.
    Different tokens: |x - x'| minus the reach of the contexts usually settles it; otherwise all pairs are formed.
    """
    smallest = flint.arb.pos_inf()
    for mine in contexts:
        for a, b in itertools.pairwise(mine):
            smallest = smallest.min(abs(b - a))
    low = [functools.reduce(flint.arb.min, mine) for mine in contexts]
    high = [functools.reduce(flint.arb.max, mine) for mine in contexts]
    for k, other in itertools.combinations(range(len(y)), 2):
        square = _square_distance(flint, tokens[k], tokens[other])
        reach = 0 if spare_channel else (high[k] - low[other]).max(high[other] - low[k])
        if square.sqrt() - reach > smallest:
            continue
        along = 0 if spare_channel else 2 * (y[k] - y[other])
        for a, b in itertools.product(contexts[k], contexts[other]):
            squared = square + (a - b) * (a - b + along)
            smallest = smallest.min(squared.nonnegative_part().sqrt())
    return smallest


def largest_norm(flint: Any, tokens: Floats, y: list[Arb], contexts: list[list[Arb]], spare_channel: bool) -> Arb:
    """A ball around the largest norm of an id x + c v, or (x, c) with a spare channel."""
    largest = flint.arb(0)
    zero = np.zeros_like(tokens[0])
    for row, level, mine in zip(tokens, y, contexts, strict=True):
        square = _square_distance(flint, row, zero)
        along = 0 if spare_channel else 2 * level
        for c in mine:
            largest = largest.max((square + c * (c + along)).nonnegative_part().sqrt())
    return largest


def log10_lower(flint: Any, ball: Arb) -> float:
    """log10 of the lower end, rounded down; -inf if the ball reaches 0."""
    low = ball.lower()
    if not low > 0:
        return -math.inf
    if not low.is_finite():
        return math.inf
    return math.nextafter(float((low.log() / flint.arb.const_log10()).lower()), -math.inf)


def _square_distance(flint: Any, a: Floats, b: Floats) -> Arb:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return sum(((flint.arb(x) - flint.arb(z)) ** 2 for x, z in pairs), flint.arb(0))


def _is_accurate(ball: Arb) -> bool:
    """Known to 20 bits, so that its logarithm is worth printing; an infinite gap (no pairs) is known exactly."""
    return bool(not ball.is_finite() or ball.rel_accuracy_bits() >= 20)
