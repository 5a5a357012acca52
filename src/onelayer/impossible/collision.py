"""Two places that a whole class of layers cannot tell apart, and what that costs every model of the class.

If a model gives the same output y at both, it misses a target f at one of them by at least half of
|f(first) - f(second)|: both errors add up to no less than the distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.contexts.agreement import Agreement, ids, rounding_radius_upper
from onelayer.errors import HypothesisError, OptionError
from onelayer.network import Transformer
from onelayer.network.blocks import apply_stack
from onelayer.network.forward import embed

Array = NDArray[Any]
#: From a sequence [n, d] to what is wanted at its tokens, [n, q] or [n].
Target = Callable[[Array], ArrayLike]


@dataclass(frozen=True)
class Collision:
    """Token ``places[0]`` of one sequence and token ``places[1]`` of another: equal outputs, by a theorem."""

    first: Array  # [n, d]
    second: Array  # [m, d]
    places: tuple[int, int]

    def error_lower(self, target: Target) -> float:
        """No model of the class is closer to the target than this in the sup norm."""
        i, j = self.places
        wanted, other = (
            np.asarray(target(self.first), np.float64)[i],
            np.asarray(target(self.second), np.float64)[j],
        )
        half = float(np.max(np.abs(wanted - other))) / 2
        return max(0.0, float(np.nextafter(half, -np.inf))) if half else 0.0


def error_lower(collisions: Iterable[Collision], target: Target) -> float:
    """The worst of several collisions."""
    return max((collision.error_lower(target) for collision in collisions), default=0.0)


def refuse(statement: str, needs: str, model: Transformer, parts: Iterable[tuple[str, bool]], remedy: str) -> None:
    """Refuse a model that has one of these parts, each with whether it is there, or is more than one such layer."""
    found = [name for name, there in (*parts, *beyond_one_layer(model)) if there]
    if found:
        raise HypothesisError(statement, needs, f"the model has {' and '.join(found)}", remedy)


def beyond_one_layer(model: Transformer) -> tuple[tuple[str, bool], ...]:
    """What none of these arguments covers: they are about one layer, run once, whose heads average all tokens.

    A causal mask is left to each of them.
    """
    a = model.attention
    return (
        (f"{a.kind} attention", a.kind not in ("softmax", "hardmax")),
        ("a window of attention", a.window is not None),
        ("a channel that says which tokens are keys", a.context is not None),
        ("a layer that is repeated", model.repeat > 1),
        ("further layers", bool(model.further)),
    )


def has_positions(model: Transformer) -> bool:
    """Whether the embedding adds different vectors at different places."""
    e = model.embedding
    return e is not None and e.positions is not None and bool(np.ptp(e.positions, axis=0).any())


def has_token_ids(model: Transformer) -> bool:
    """Whether tokens are numbers of rows of a table: the pairs shown here are of real tokens."""
    return model.embedding is not None and model.embedding.table is not None


def stream(model: Transformer, X: Array) -> Array:
    """What enters attention, [n, width]. Token by token, so that equal tokens become equal bit for bit."""
    rows = [embed(model, X[None, k : k + 1]) for k in range(len(X))]
    if model.feedforward:
        rows = [apply_stack(model.feedforward, row) for row in rows]
    return np.concatenate(rows, axis=1)[0]  # type: ignore[no-any-return]


def agrees(model: Transformer, collisions: Iterable[Collision]) -> Agreement:
    """Whether a model without positions gives equal residual streams at the colliding places, up to rounding.

    The readout acts on each token alone, so equal streams have equal outputs. One layer is run once, and its radius
    of rounding is that of averages, so nothing is said of other networks.
    """
    found = [name for name, there in (("positions", has_positions(model)), *beyond_one_layer(model)) if there]
    if found:
        needs, had = "one layer of softmax or hardmax attention without positions", " and ".join(found)
        raise OptionError("collision", needs, f"the model has {had}", "Compare the network's own outputs instead.")
    difference, radius, pairs = 0.0, 0.0, []
    for collision in collisions:
        h, g = (stream(model, Z) for Z in (collision.first, collision.second))
        i, j = collision.places
        apart = float(np.abs(ids(model.attention, h)[i] - ids(model.attention, g)[j]).max())
        difference = max(difference, apart)
        radius = max(radius, rounding_radius_upper(model.attention, h) + rounding_radius_upper(model.attention, g))
        pairs.append((i, j))
    return Agreement(difference <= radius, difference, radius, tuple(pairs))
