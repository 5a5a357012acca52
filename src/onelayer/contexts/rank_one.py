"""Theorem K: the rank-1 head of Theorem 2 with constants read off the data.

Statement  y = v.x injective and nonzero on the tokens, beta = 2/(g m), lambda = eps/(4 M): an (r, delta) mapping.
Gives      delta = 0.404 lambda D exp(-beta M D), g and m the smallest |y - y'| and |y|, M and D the largest.
Rests on   lemma_b: logits beta y_j y_k are at least 2 apart, so the averages of different sets differ.
Why        the same weights as published, at a temperature that float64 can run: 10^-6 instead of 10^-978.
Differs    no log n, any lengths, no worst-case constant; with a spare channel lambda = 1 and tokens are untouched.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from onelayer.contexts import projection
from onelayer.contexts.boltzmann import LEMMA_B_GAP
from onelayer.contexts.head import ContextMap, build_head
from onelayer.contexts.literal import (
    MAX_BITS,
    Arb,
    Floats,
    LiteralRun,
    Promise,
    evaluate,
    strict,
)
from onelayer.contexts.literal import hypotheses as token_hypotheses
from onelayer.contexts.mapping import ContextMapping, Wanted, mapping
from onelayer.contexts.stream import RealStream, Stream
from onelayer.errors import HypothesisError
from onelayer.ledger import Constant
from onelayer.network import Attention
from onelayer.problems.separation import Separation, distinct
from onelayer.problems.sequences import Sequences
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["rank_one"]

#: Lemma B's 0.404 as a ratio of integers, so that balls and floats mean the same number.
LEMMA_B = (404, 1000)
Number = TypeVar("Number", float, Any)


@dataclass(frozen=True)
class Constants:
    """Theorem K's constants in float64, each on its safe side. delta is 0.0 below the range of float64."""

    g: float
    m: float
    M: float
    D: float
    beta: float
    lam: float
    r: float
    delta: float
    log10_delta: float


@dataclass(frozen=True)
class Claim:
    """An (r, delta)-contextual mapping: ids of norm below r, more than delta apart."""

    r: float
    log10_delta: float


def hypotheses(X: Any, lengths: Any = None) -> Separation:
    """Refuse repeated tokens inside a sequence, zero tokens and one-token vocabularies; lengths may differ."""
    return strict(token_hypotheses("rank_one", X, lengths))


def constants(
    tokens: ArrayLike, direction: ArrayLike, eps: float, r_max: float, spare_channel: bool = False
) -> Constants:
    """The constants of a direction, used as given, on the different tokens [V, d].

    >>> c = constants([[1.0], [2.0]], [1.0], eps=1.0, r_max=2.0)
    >>> round(c.beta, 9), round(c.lam, 9), round(c.log10_delta, 3)
    (2.0, 0.125, -3.034)
    """
    y = projection.levels(tokens, direction)
    if not 0 < y.g < math.inf or y.m <= 0:
        raise HypothesisError(
            "rank_one",
            "a direction on which all tokens have different nonzero levels",
            f"the smallest difference of levels is {y.g:.3g}, the smallest level {y.m:.3g}, rounding deducted",
            "Find a direction with projection.search.",
        )
    beta, lam, exponent = _recipe(y.g, y.m, y.M, y.D, eps, spare_channel)
    # The exponent is rounded up; 0.404 is 0.4046 rounded down, which covers the other roundings.
    log_delta = math.log(LEMMA_B[0] / LEMMA_B[1] * lam * y.D) - exponent * (1 + 2.0**-48)
    r = math.hypot(r_max, y.M) if spare_channel else r_max + eps / 4
    delta = math.exp(log_delta) if log_delta > -745 else 0.0
    return Constants(y.g, y.m, y.M, y.D, beta, lam, r, delta, log_delta / math.log(10))


def construct(X: Any, seed: int = 0, lengths: Any = None, spare_channel: bool = False) -> Attention:
    """The head in float64, one of size 1 without biases. It writes along v; or, with a spare channel, into one
    more channel of the residual stream, which the embedding has to leave zero."""
    v, c = choose_direction(X, seed, lengths, spare_channel)
    width = len(v) + spare_channel
    read, write = np.zeros((1, width, 1)), np.zeros((1, 1, width))
    read[0, : len(v), 0] = v
    if spare_channel:
        write[0, 0, -1] = c.lam
    else:
        write[0, 0] = c.lam * v
    return Attention(W_Q=c.beta * read, W_K=read, W_V=read, W_O=write)


def context_map(sequences: Sequences, stream: Stream, seed: int, attempt: int) -> ContextMap:
    """Theorem K's head for a memory: beta from the levels that the drawn stream really has, a spare channel.

    Without positions the direction of real tokens is searched; further attempts draw other directions.
    """
    key = None
    if attempt == 0 and not stream.positions:  # with positions all tokens of a sequence are distinct
        hypotheses(sequences.tokens if sequences.is_real else sequences.tokens[:, :, None] + 1.0, sequences.lengths)
        if isinstance(stream, RealStream):
            key = projection.search(distinct(stream.tokens, sequences.lengths)[0], seed)
        else:  # the table is ours: even levels away from zero make beta M D = 2 (|V|-1) M/m small
            key = np.linspace(4 / 3, 2, stream.vocabulary)
    draw = stream.draw(1, np.random.default_rng([seed, attempt, 4]), attempt, coded=True, key=key)
    valid = sequences.valid()
    y = np.unique(draw.keys if valid is None else draw.keys[valid])
    # One token's level may come out in two roundings, depending on where in the batch it stands.
    gaps = np.diff(y)
    g = float(gaps[gaps > 2.0**-40 * np.abs(y).max()].min(initial=np.inf))
    m = float(np.abs(y).min())
    if g <= 0 or m <= 0 or not np.isfinite(g):
        raise HypothesisError(
            "rank_one",
            "at least two different nonzero levels",
            f"the smallest difference of levels is {g:.3g} and the smallest level {m:.3g}",
            'Use mapping="shared_query".',
        )
    M, D = float(np.abs(y).max()), float(y[-1] - y[0])
    beta, lam, exponent = _recipe(g, m, M, D, 1.0, spare_channel=True)
    built = build_head(draw, sequences, beta, shared=False, per_sequence=False)
    log10_delta = (math.log(LEMMA_B[0] / LEMMA_B[1] * lam * D) - exponent) / math.log(10)
    promised = Constant("log10_delta", log10_delta, "Theorem K's promise: contexts of one token are 10^this apart")
    return replace(built, constants=(*built.constants, promised))


def conclusion(X: Any, seed: int = 0, lengths: Any = None, spare_channel: bool = False) -> Claim:
    """What ``construct`` with the same arguments is claimed to be."""
    _, c = choose_direction(X, seed, lengths, spare_channel)
    return Claim(c.r, c.log10_delta)


def run_exact(
    X: Any,
    direction: Any = None,
    lengths: Any = None,
    seed: int = 0,
    spare_channel: bool = False,
    max_bits: int = MAX_BITS,
) -> LiteralRun:
    """Theorem K judged in ball arithmetic, the direction normalised; it is searched for unless it is given."""
    separation = hypotheses(X, lengths)
    tokens, codes = distinct(X, lengths)
    v: Floats = projection.search(tokens, seed) if direction is None else np.asarray(direction, np.float64)
    constants(tokens, v, separation.eps, separation.r_max)  # refuses a direction with equal levels

    def promise(flint: Any, y: list[Arb]) -> Promise:
        ordered, sizes = sorted(y, key=lambda ball: ball.mid()), [abs(ball) for ball in y]
        g = functools.reduce(flint.arb.min, [b - a for a, b in itertools.pairwise(ordered)])
        m, M = functools.reduce(flint.arb.min, sizes), functools.reduce(flint.arb.max, sizes)
        D, eps, r_max = ordered[-1] - ordered[0], flint.arb(separation.eps), flint.arb(separation.r_max)
        beta, lam, exponent = _recipe(g, m, M, D, eps, spare_channel)
        r = (r_max**2 + M**2).sqrt() if spare_channel else r_max + eps / 4
        return Promise(beta, lam, r, lam * D * LEMMA_B[0] / LEMMA_B[1] * (-exponent).exp())

    return evaluate("rank_one", tokens, codes, v, promise, spare_channel, max_bits)


def choose_direction(X: Any, seed: int, lengths: Any, spare_channel: bool) -> tuple[Floats, Constants]:
    """The searched direction and its constants."""
    separation = hypotheses(X, lengths)
    tokens, _ = distinct(X, lengths)
    v = projection.search(tokens, seed)
    return v, constants(tokens, v, separation.eps, separation.r_max, spare_channel)


def _recipe(
    g: Number, m: Number, M: Number, D: Number, eps: Number, spare_channel: bool
) -> tuple[Number, Number, Number]:
    """beta, lambda and the exponent beta M D, for floats and for balls."""
    beta = LEMMA_B_GAP / (g * m)
    return beta, (eps / eps if spare_channel else eps / (4 * M)), beta * M * D


@mapping
class RankOne(ContextMapping):
    name, order, only_rank = "rank_one", 5, 1

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        return context_map(wanted.sequences, wanted.stream, wanted.seed, wanted.attempt)
