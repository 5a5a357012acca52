"""One number per token that forgets no difference: a unit vector v with |v.z| not small.

Statement  some unit v has |v.z| >= c |z| for every token z and every difference z of two tokens.
Gives      the published c, a larger one with its proof, a search for v on data, and a check of a given v.
Rests on   P(|<u, e>| < t) <= t sqrt(2 d / pi) for u uniform on the sphere, summed over the P vectors z.
Why        a rank-1 head sees tokens only through v.x; its temperature is paid for by the smallest such number.
Differs    P = |V|(|V|+1)/2 vectors give c = sqrt(pi/(2d))/P, published (|V|+1)^-2 sqrt(8/(pi d)); c is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.errors import HypothesisError, PrecisionError
from onelayer.problems.separation import norm_error, row_norms
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["projection"]

Floats = NDArray[np.float64]
#: Numbers held at once by the search and by the check.
BLOCK = 1 << 21


@dataclass(frozen=True)
class Levels:
    """The projections y = v.x of the different tokens, on the safe side: g and m rounded down, M and D up."""

    g: float  # smallest distance of two levels
    m: float  # smallest |y|
    M: float  # largest |y|
    D: float  # largest level minus smallest level


def published_constant(vocabulary: int, d: int) -> float:
    """c = (|V|+1)^-2 sqrt(8/(pi d)), as recalled from the literature."""
    return math.sqrt(8 / (math.pi * d)) / (vocabulary + 1) ** 2


def constant(vocabulary: int, d: int) -> float:
    """c = min(1, sqrt(pi/(2d))/P) with P = |V|(|V|+1)/2, the number of differences and tokens.

    The density of <u, e> at 0 gives P(|<u, e>| < t) <= t sqrt(2(d-1)/pi) for d >= 3 (Wendel), arcsin gives at
    most t for d = 2, and for d = 1 the probability is 0 up to t = 1. In all three cases P vectors together rule
    out less than all of the sphere at t = c. The minimum with 1 matters for one token on a line only.
    """
    return min(1.0, math.sqrt(math.pi / (2 * d)) / (vocabulary * (vocabulary + 1) // 2))


def levels(tokens: ArrayLike, v: ArrayLike) -> Levels:
    """Level statistics of v on the different tokens [V, d], with the rounding of float64 on the safe side."""
    rows, unit = np.asarray(tokens, np.float64), np.asarray(v, np.float64)
    y = np.sort(rows @ unit)
    # A dot product is off by at most (d+2)/2 2^-52 |v||x|; twice that for a difference.
    error = norm_error(len(unit)) * float(row_norms(rows).max()) * float(row_norms(unit)) * 2
    gap = float(np.diff(y).min()) if len(y) > 1 else math.inf
    return Levels(
        g=max(0.0, gap - error),
        m=max(0.0, float(np.abs(y).min()) - error),
        M=float(np.abs(y).max()) + error,
        D=float(y[-1] - y[0]) + error,
    )


def search(tokens: ArrayLike, seed: int = 0, tries: int = 4096, needed: float = 0.0) -> Floats:
    """The best of ``tries`` random unit vectors for the different tokens [V, d], of those with |v.z| >= needed |z|.

    "Best" is the largest delta that Theorem K proves: log(D/M) - 2 M D/(g m), constants apart. The exponent is
    what matters, and it is a product: a direction with a large g and a small m (or the reverse) is as bad as one
    with both middling, so neither min(g, m) nor g alone is the right score. It does not change when the tokens
    are rescaled, so neither does v.
    """
    rows = np.asarray(tokens, np.float64)
    if len(rows) < 2:
        raise HypothesisError(
            "projection", "two different tokens at least", "there is one", "One token needs no direction."
        )
    rng = np.random.default_rng(seed)
    best, found = -math.inf, None  # type: float, Floats | None
    scaled = np.ldexp(rows, -int(np.frexp(np.abs(rows).max())[1]))
    step = max(1, BLOCK // len(rows))
    for start in range(0, tries, step):
        units = rng.standard_normal((min(step, tries - start), rows.shape[1]))
        units /= row_norms(units)[:, None]
        scores = _scores(np.sort(units @ scaled.T, axis=1))
        for k in np.argsort(-scores):
            if not scores[k] > best:
                break
            if not needed or ratio_lower(rows, units[k]) >= needed:
                best, found = float(scores[k]), units[k]
                break
    if found is None:
        raise PrecisionError(
            "projection",
            "a direction on which all tokens have different nonzero levels"
            + (f", and |v.z| >= {needed:.3g}|z| for tokens and their differences" if needed else ""),
            f"none of {tries} random directions has them in float64",
            "Raise tries; a zero token, or tokens equal up to rounding, have no such direction.",
        )
    return found


def _scores(y: Floats) -> Floats:
    """log(D/M) - 2 M D/(g m) for sorted levels [directions, V]; -inf where g m = 0."""
    magnitude = np.abs(y)
    D, M = y[:, -1] - y[:, 0], magnitude.max(1)
    cost = np.diff(y, axis=1).min(1) / D * (magnitude.min(1) / M)  # a product of ratios, which cannot overflow
    scores = np.full(len(y), -np.inf)
    usable = cost > 0
    scores[usable] = np.log(D[usable] / M[usable]) - 2 / cost[usable]
    return scores


def ratio_lower(tokens: ArrayLike, v: ArrayLike) -> float:
    """A lower bound on the smallest |v.z|/(|v||z|) over tokens and differences of tokens, rounding included."""
    rows, unit = np.asarray(tokens, np.float64), np.asarray(v, np.float64)
    smallest = math.inf
    padded = np.vstack([np.zeros(rows.shape[1]), rows])  # the difference to zero is the token itself
    step = max(1, BLOCK // padded.size)
    for start in range(0, len(padded), step):
        z = padded[None] - padded[start : start + step, None]
        norms = row_norms(z)
        norms[np.arange(len(padded)) <= np.arange(start, start + len(z))[:, None]] = np.inf  # each pair once
        if (norms == 0).any():
            return 0.0  # a zero token, or a token given twice
        smallest = min(smallest, float((np.abs(z @ unit) / norms).min(where=np.isfinite(norms), initial=np.inf)))
    # Both norms and the product are off by at most norm_error each, relative to |v||z|.
    return max(0.0, smallest / float(row_norms(unit)) - 4 * norm_error(len(unit)))


def hypotheses(tokens: ArrayLike, v: ArrayLike) -> None:
    """Refuse a direction that breaks the published inequality c|z| <= |v.z| for the different tokens [V, d]."""
    rows = np.asarray(tokens, np.float64)
    needed, found = published_constant(*rows.shape), ratio_lower(rows, v)
    if found < needed:
        raise HypothesisError(
            "projection",
            f"|v.z| >= c|z| with c = (|V|+1)^-2 sqrt(8/(pi d)) = {needed:.3g} for tokens and their differences",
            f"the smallest ratio of the given direction is {found:.3g}",
            "Use projection.search, or raise its tries.",
        )
