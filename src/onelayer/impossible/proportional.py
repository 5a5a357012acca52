"""Softmax counts in proportions: {u, v} and {u, u, v, v} are the same to it.

Statement  a head without positions sees its sequence only through the share of each token in it.
Gives      sequences of different lengths with equal outputs at equal tokens, for any weights and biases.
Rests on   nothing.
Why        it is the exact limit of what contexts can tell apart (Lemmas D and G reach it).
Differs    it holds behind any feed-forward stack and for hardmax; positions end it, or a token with the length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onelayer.contexts.agreement import Agreement
from onelayer.errors import HypothesisError
from onelayer.impossible import collision
from onelayer.impossible.collision import Collision
from onelayer.network import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["empirical_measure"]


def hypotheses(model: Transformer) -> None:
    """Refuse a model that sees places, or prefixes instead of whole sequences."""
    e = model.embedding
    if e is not None and e.positions is not None and np.ptp(e.positions, axis=0).any():
        raise HypothesisError(
            "empirical_measure",
            "a model without positions",
            "its embedding adds a different vector at each place",
            "Leave the positions out to see the limit.",
        )
    if model.attention.causal:
        raise HypothesisError(
            "empirical_measure",
            "a layer that sees whole sequences",
            "the layer is causal, so the first v of {u, u, v, v} sees u twice and v once",
            "Compare last tokens only.",
        )


def witness(u: ArrayLike, v: ArrayLike, times: int = 2) -> tuple[Collision, ...]:
    """{u, v} and the same with every token ``times`` over: collisions at u and at v.

    Proof. What comes before attention acts on each token alone. The query at u is the same in both, and so is the
    logit of each key; repeating all keys c times multiplies numerator and denominator of the softmax average by
    c. Hardmax shares the mass among the same tokens in the same proportion.
    """
    a, b = np.atleast_1d(np.asarray(u, np.float64)), np.atleast_1d(np.asarray(v, np.float64))
    if a.shape != b.shape or (a == b).all():
        raise HypothesisError(
            "empirical_measure", "two different tokens of one width", f"got {a} and {b}", "Choose other tokens."
        )
    if times < 2:
        raise HypothesisError("empirical_measure", "repetitions", f"times = {times}", "Repeat at least twice.")
    once, often = np.stack([a, b]), np.stack([a] * times + [b] * times)
    return Collision(once, often, (0, 0)), Collision(once, often, (1, times))


def agrees(model: Transformer, pairs: tuple[Collision, ...]) -> Agreement:
    """Whether a model, with or without biases, softmax or hardmax, gives equal outputs at equal tokens."""
    hypotheses(model)
    return collision.agrees(model, pairs)
