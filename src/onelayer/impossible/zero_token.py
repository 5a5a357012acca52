"""A zero token is blind without a query bias.

Statement  with q = W_Q 0 = 0 every logit of a zero token is 0: it attends uniformly, in every softmax
           or hardmax head.
Gives      two sequences with equal means and different tokens whose outputs at the zero token coincide.
Rests on   nothing.
Why        r_min > 0 in Theorem 2 is necessary; bias-free attention-first layers are not universal in sup norm.
Differs    key biases do not help: 0.(k + b_K) = 0. A query bias does, or anything that moves the tokens off zero.
           Sums in place of averages, windows, flagged keys, loops and further layers are not covered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.contexts.agreement import Agreement
from onelayer.errors import HypothesisError
from onelayer.impossible import collision
from onelayer.impossible.collision import Collision, has_token_ids, refuse, stream
from onelayer.network import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["zero_token"]


def hypotheses(model: Transformer) -> None:
    """Refuse a model whose zero token is not zero when it asks its question."""
    e, b_Q = model.embedding, model.attention.b_Q
    parts = (
        ("a feed-forward stack before attention", bool(model.feedforward)),
        ("token ids", has_token_ids(model)),
        ("an embedding bias", e is not None and e.bias is not None and bool(np.any(e.bias))),
        ("positions", e is not None and e.positions is not None and bool(np.any(e.positions))),
        ("a query bias", b_Q is not None and bool(np.any(b_Q))),
    )
    needs = "a linear embedding, one layer of softmax or hardmax attention first, and no query bias"
    refuse("zero_token", needs, model, parts, "Leave it out to see the limit.")


def witness(direction: ArrayLike = 1.0) -> Collision:
    """X = (0, u, -u) and Y = (0, 2u, -2u): equal sums, different sets, a shared zero token in first place.

    Proof. The embedding is linear, so token 0 is 0 in the stream, its query is 0, and its logits are 0 in all
    heads, softmax or hardmax. Each head returns the mean of the values, W_V times the mean token, which is 0 in
    both. (A causal layer shows token 0 only itself: 0 as well.) The residual 0 and the readout see no more.
    """
    u = np.atleast_1d(np.asarray(direction, np.float64))
    if u.ndim != 1 or not u.any() or not np.isfinite(2 * u).all():
        raise HypothesisError("zero_token", "a nonzero finite direction", f"got {u}", "Give one nonzero vector.")
    zero = np.zeros_like(u)
    return Collision(np.stack([zero, u, -u]), np.stack([zero, 2 * u, -2 * u]), (0, 0))


def agrees(model: Transformer, pair: Collision) -> Agreement:
    """Whether a model that meets the hypotheses gives the zero tokens of both sequences the same output."""
    hypotheses(model)
    return collision.agrees(model, [pair])


def conclusion(model: Transformer, X: ArrayLike) -> NDArray[np.float64]:
    """The id of any zero token of a sequence [n, d], without running attention: mean(h) sum_h W_V,h W_O,h."""
    hypotheses(model)
    attention = model.attention
    if attention.causal:
        raise HypothesisError(
            "zero_token", "a layer that sees whole sequences", "the layer is causal", "Give the visible prefix."
        )
    mean = stream(model, np.asarray(X, np.float64)).mean(0)
    outputs = [mean @ attention.W_V[i] @ attention.W_O[i] for i in range(attention.heads)]
    return np.sum(outputs, axis=0)  # type: ignore[no-any-return]
