"""Softmax counts in proportions: {u, v} and {u, u, v, v} are the same to it.

Statement  a softmax or hardmax head that sees all tokens, without positions, sees only the share of each of them.
Gives      sequences of different lengths with equal outputs at equal tokens, for any weights and biases.
Rests on   nothing.
Why        it is the exact limit of what contexts can tell apart (Lemmas D and G reach it).
Differs    it holds behind any feed-forward stack and for hardmax; positions end it, a causal mask, a window, a
           token with the length, and sums in place of averages (linear, relu, mesa). Flagged keys, loops and
           further layers are not covered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onelayer.contexts.agreement import Agreement
from onelayer.errors import HypothesisError
from onelayer.impossible import collision
from onelayer.impossible.collision import Collision, has_positions, has_token_ids, refuse
from onelayer.network import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["empirical_measure"]


def hypotheses(model: Transformer) -> None:
    """Refuse a model that sees places, or prefixes instead of whole sequences."""
    parts = (
        ("token ids", has_token_ids(model)),
        ("positions", has_positions(model)),
        ("a causal mask", model.attention.causal),  # the first v of {u, u, v, v} sees u twice and v once
    )
    needs = "one layer of softmax or hardmax attention on real tokens, without positions and without a causal mask"
    refuse("empirical_measure", needs, model, parts, "Leave it out to see the limit.")


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
