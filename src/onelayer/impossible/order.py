"""Without positions a layer has no order: reordered tokens get reordered outputs.

Statement  a layer without positions or causal mask commutes with every permutation of its tokens.
Gives      for any target the error that all such layers have: half of its largest asymmetry on a sequence.
Rests on   nothing.
Why        "any continuous sequence-to-sequence map" is too much to ask of the layer as it is usually drawn.
Differs    stated with the constant: a target that is off by a from its reordered self is missed by a/2. Windows see
           the order as a causal mask does. Sums in place of averages, flagged keys, loops and further layers
           without masks do not, but are not covered here.
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

STATEMENT = CATALOGUE["equivariance"]


def hypotheses(model: Transformer) -> None:
    """Refuse a model that sees places."""
    parts = (
        ("token ids", has_token_ids(model)),
        ("positions", has_positions(model)),
        ("a causal mask", model.attention.causal),
    )
    needs = "one layer of softmax or hardmax attention on real tokens, without positions and without a causal mask"
    refuse("equivariance", needs, model, parts, "Leave it out to see the limit.")


def witness(X: ArrayLike, order: ArrayLike | None = None) -> tuple[Collision, ...]:
    """A sequence [n, d] and the same in another order (reversed, if not said), with one collision per token.

    Proof. What comes before and after attention acts on each token alone. At a token the query is the same in
    both sequences, and softmax averages and hardmax averages do not depend on the order of the keys.
    """
    first = np.asarray(X, np.float64)
    if first.ndim != 2 or not np.isfinite(first).all():
        raise HypothesisError(
            "equivariance", "one finite sequence [n, d]", f"got the shape {first.shape}", "Give rows of tokens."
        )
    places = np.arange(len(first))[::-1] if order is None else np.asarray(order)
    if sorted(places.tolist()) != list(range(len(first))):
        raise HypothesisError(
            "equivariance",
            "a permutation of the places",
            f"order = {places.tolist()} for {len(first)} tokens",
            "Name each place 0, 1, .. once.",
        )
    second = first[places]
    return tuple(Collision(first, second, (int(k), j)) for j, k in enumerate(places))


def agrees(model: Transformer, pairs: tuple[Collision, ...]) -> Agreement:
    """Whether a model without positions gives each token the same output in both orders."""
    hypotheses(model)
    return collision.agrees(model, pairs)
