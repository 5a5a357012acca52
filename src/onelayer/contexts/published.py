"""Theorem 2 with the published constants, and what they come to.

Statement  one softmax head with W_K = u2 v^T, W_Q = u1 v^T, W_V = u3 v^T is an (r, delta)-contextual mapping.
Gives      beta = u1.u2, lambda = |W_O u3|, r and delta as exact formulas; a run of the weights as written.
Rests on   separation, projection, lemma_1; nonzero tokens, distinct within a sequence, n >= 2 of them in each.
Why        to measure the published construction itself: delta is near 10^-978 for three tokens in the plane.
Differs    nothing in the formulas (recalled, delta recomputed from Lemma 1); W_O writes along v, which is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.contexts import projection
from onelayer.contexts.boltzmann import lemma_1_level_gap
from onelayer.contexts.head import ContextMap
from onelayer.contexts.literal import (
    MAX_BITS,
    Arb,
    Floats,
    LiteralRun,
    Promise,
    evaluate,
    precision,
    strict,
)
from onelayer.contexts.literal import hypotheses as token_hypotheses
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.errors import HypothesisError
from onelayer.problems.separation import Separation, distinct
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["theorem_2"]


@dataclass(frozen=True)
class Formula:
    """A constant of the theorem: how the paper writes it, and a ball that contains it."""

    formula: str
    value: Arb


@dataclass(frozen=True)
class Constants:
    """Theorem 2's constants at a precision in bits."""

    beta: Formula
    lam: Formula
    r: Formula
    delta: Formula
    log10_delta: float  # in float64, without balls
    bits: int


def hypotheses(X: Any, lengths: Any = None) -> Separation:
    """Refuse data outside Theorem 2, naming the first broken hypothesis; give its strict separation."""
    separation = token_hypotheses("theorem_2", X, lengths)
    sizes = (distinct(X, lengths)[1] >= 0).sum(1)
    if separation.n < 2:
        raise HypothesisError(
            "theorem_2",
            "sequences of n >= 2 tokens, since its gap is a multiple of (log n)^2",
            "all sequences have one token",
            "Use [rank_one], whose gap has no n.",
        )
    if (sizes != separation.n).any():
        i = int(np.flatnonzero(sizes != separation.n)[0])
        raise HypothesisError(
            "theorem_2",
            "sequences of equal length",
            f"sequence {i} has {sizes[i]} tokens, others have {separation.n}",
            "Use [rank_one], which allows different lengths.",
        )
    return strict(separation)


def constants(separation: Separation, bits: int = 256) -> Constants:
    """The constants for separated data; with fewer bits than ``bits_needed`` they are just wider balls."""
    with precision(bits) as flint:
        p = _promise(flint, separation)
    return Constants(
        Formula("(|V|+1)^4 (pi d/8) (2 log n + 3)/(eps r_min)", p.beta),
        Formula("eps/(4 r_max)", p.lam),
        Formula("r_max + eps/4", p.r),
        Formula(
            "2 (log n)^2 eps^2 r_min/(r_max^2 (|V|+1)^4 (2 log n + 3) pi d)"
            " exp(-(|V|+1)^4 (2 log n + 3) pi d r_max^2/(4 eps r_min))",
            p.delta,
        ),
        log10_delta(separation),
        bits,
    )


def log10_delta(separation: Separation) -> float:
    """log10 of the published delta, in float64: the number itself is far below what float64 can hold."""
    s = separation
    scale = (s.vocabulary + 1) ** 4 * lemma_1_level_gap(s.n) * math.pi * s.d  # (|V|+1)^4 (2 log n + 3) pi d
    factor = math.log10(2 * math.log(s.n) ** 2 / scale) + 2 * math.log10(s.eps / s.r_max) + math.log10(s.r_min)
    return factor - scale * (s.r_max / s.eps) * (s.r_max / s.r_min) / 4 / math.log(10)


def bits_needed(separation: Separation) -> int:
    """A precision in bits at which delta is resolved beside r, whatever the direction.

    With p bits a logit, at most L = beta r_max^2, is off by (d+4) L 2^-p; so are the logarithms of the softmax
    weights, and an average of levels below r_max by 2 r_max (n+d+5) max(L, 1) 2^-p. Times lambda = eps/(4 r_max),
    eps <= 2 r_max <= 2 r, that is at most r (n+d+5) max(L, 1) 2^-p for one id; adding x to it costs r 2^-p more.
    Two ids are told apart at distance delta if both errors are below delta/4:
    p >= log2(8 r/delta) + log2 max(L, 1) + log2(n+d+5).
    """
    s = separation
    log2_r_over_delta = math.log2(s.r_max + s.eps / 4) - log10_delta(s) * math.log2(10)
    scale = (s.vocabulary + 1) ** 4 * lemma_1_level_gap(s.n) * math.pi * s.d
    log2_logit = math.log2(scale / 8) + math.log2(s.r_max / s.eps) + math.log2(s.r_max / s.r_min)
    bits = 3 + log2_r_over_delta + max(log2_logit, 0.0) + math.log2(s.n + s.d + 5)
    return math.ceil(bits * (1 + 2.0**-40)) + 1  # float64 logarithms, rounded up


def run(X: Any, direction: Any = None, lengths: Any = None, seed: int = 0, max_bits: int = MAX_BITS) -> LiteralRun:
    """The published weights as written, judged in ball arithmetic; v is searched for unless it is given."""
    separation = hypotheses(X, lengths)
    tokens, codes = distinct(X, lengths)
    needed = projection.published_constant(*tokens.shape)
    v: Floats = (
        projection.search(tokens, seed, needed=needed) if direction is None else np.asarray(direction, np.float64)
    )
    projection.hypotheses(tokens, v)
    return evaluate("theorem_2", tokens, codes, v, lambda flint, _: _promise(flint, separation), max_bits=max_bits)


def _promise(flint: Any, s: Separation) -> Promise:
    r_min, r_max, eps = flint.arb(s.r_min), flint.arb(s.r_max), flint.arb(s.eps)
    log_n = flint.arb(s.n).log()
    scale = (s.vocabulary + 1) ** 4 * (2 * log_n + 3) * flint.arb.pi() * s.d
    return Promise(
        beta=scale / (8 * eps * r_min),
        lam=eps / (4 * r_max),
        r=r_max + eps / 4,
        delta=2 * log_n**2 * eps**2 * r_min / (r_max**2 * scale) * (-scale * r_max**2 / (4 * eps * r_min)).exp(),
    )


@mapping
class Published(ContextMapping):
    """Its constants cannot be weights: asking for it tells what they are on this data."""

    name, order, only_rank, only_refuses = "published", 6, 1, True

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        raise _beyond_floats(wanted.sequences, wanted.stream.dtype)

    @classmethod
    def refuse(cls, sequences: Sequences, dtype: np.dtype[Any]) -> None:
        raise _beyond_floats(sequences, dtype)


def _beyond_floats(s: Sequences, dtype: np.dtype[Any]) -> HypothesisError:
    """The published constants on this data, and why they cannot be weights."""
    separation = hypotheses(s.tokens if s.is_real else s.tokens[:, :, None] + 1.0, s.lengths)
    return HypothesisError(
        "theorem_2",
        f"{bits_needed(separation):,} bits of precision on this data",
        f"{dtype} has {np.finfo(dtype).nmant + 1}, and the promised gap is 10^{log10_delta(separation):,.0f}",
        'Run `onelayer theorem` to see it in ball arithmetic, or use mapping="temperature".',
    )
