"""A zero token is blind without a query bias.

Statement  with q = W_Q 0 = 0 every logit of a zero token is 0: it attends uniformly, in every head.
Gives      two sequences with equal means and different tokens whose ids at the zero token coincide.
Rests on   nothing.
Why        r_min > 0 in Theorem 2 is necessary; bias-free attention-first layers are not universal in sup norm.
Differs    key biases do not help: 0.(k + b_K) = 0. A query bias does, or anything that moves the tokens off zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.constructions.contexts.agreement import Agreement, compare
from onelayer.errors import HypothesisError
from onelayer.model import Attention
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["zero_token"]


def hypotheses(attention: Attention) -> None:
    """Refuse a layer with a query bias, which does see more than the mean."""
    if attention.b_Q is not None and np.any(attention.b_Q):
        head = int(np.flatnonzero(np.any(attention.b_Q, axis=1))[0])
        raise HypothesisError(
            "zero_token",
            "a layer without query biases",
            f"head {head} has one",
            "Set b_Q to None to see the limit.",
        )


def witness(direction: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X = (0, u, -u) and Y = (0, 2u, -2u): equal sums, different sets, a shared zero token in first place."""
    u = np.atleast_1d(np.asarray(direction, np.float64))
    if u.ndim != 1 or not u.any() or not np.isfinite(2 * u).all():
        raise HypothesisError("zero_token", "a nonzero finite direction", f"got {u}", "Give one nonzero vector.")
    zero = np.zeros_like(u)
    return np.stack([zero, u, -u]), np.stack([zero, 2 * u, -2 * u])


def conclusion(attention: Attention, X: ArrayLike) -> NDArray[np.float64]:
    """The id of any zero token of a sequence [n, d], without running attention: mean(X) sum_h W_V,h W_O,h."""
    hypotheses(attention)
    if attention.causal:
        raise HypothesisError(
            "zero_token", "a layer that sees whole sequences", "the layer is causal", "Give the visible prefix."
        )
    mean = np.asarray(X, np.float64).mean(0)
    outputs = [mean @ attention.W_V[i] @ attention.W_O[i] for i in range(attention.heads)]
    return np.sum(outputs, axis=0)  # type: ignore[no-any-return]


def agrees(attention: Attention, X: ArrayLike, Y: ArrayLike) -> Agreement:
    """Whether a layer without query biases gives both witnesses the same id at the zero token."""
    hypotheses(attention)
    return compare(attention, np.asarray(X), np.asarray(Y))
