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


def stream(model: Transformer, X: Array) -> Array:
    """What enters attention, [n, width]. Token by token, so that equal tokens become equal bit for bit."""
    rows = [embed(model, X[None, k : k + 1]) for k in range(len(X))]
    if model.feedforward:
        rows = [apply_stack(model.feedforward, row) for row in rows]
    return np.concatenate(rows, axis=1)[0]  # type: ignore[no-any-return]


def agrees(model: Transformer, collisions: Iterable[Collision]) -> Agreement:
    """Whether a model without positions gives equal residual streams at the colliding places, up to rounding.

    The readout acts on each token alone, so equal streams have equal outputs.
    """
    difference, radius, pairs = 0.0, 0.0, []
    for collision in collisions:
        h, g = (stream(model, Z) for Z in (collision.first, collision.second))
        i, j = collision.places
        apart = float(np.abs(ids(model.attention, h)[i] - ids(model.attention, g)[j]).max())
        difference = max(difference, apart)
        radius = max(radius, rounding_radius_upper(model.attention, h) + rounding_radius_upper(model.attention, g))
        pairs.append((i, j))
    return Agreement(difference <= radius, difference, radius, tuple(pairs))
