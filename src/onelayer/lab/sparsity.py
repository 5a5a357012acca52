"""How many directions a change of weights has, and what is left of a layer that loses its smallest units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import OptionError

Array = NDArray[Any]


def energy(update: Array, k: int) -> float:
    """The share of a matrix's squared singular values that the k largest have; 1 of a matrix of zeros."""
    if not (finite := np.isfinite(update)).all():
        found = f"{(~finite).sum()} of {finite.size} that are none, as of weights that grew without bound"
        raise OptionError(
            "energy", "a change of weights whose entries are numbers", found, "Train at a smaller rate."
        )
    squares = np.linalg.svd(np.asarray(update, np.float64), compute_uv=False) ** 2
    total = squares.sum()
    return float(squares[:k].sum() / total) if total else 1.0


def directions(update: Array, share: float = 0.99) -> int:
    """How many singular values have that share of the energy."""
    return next(k for k in range(1, min(update.shape) + 1) if energy(update, k) >= share)


def prune_curve(
    sizes: Array, shares: tuple[float, ...], measure: Callable[[Array], float]
) -> dict[tuple[str, float], float]:
    """What ``measure(kept)`` says when the smallest or the largest units, by their sizes, are gone."""
    order = np.argsort(sizes, kind="stable")
    found = {}
    for share in shares:
        count = round(share * len(order))
        for which, lost in (("smallest", order[:count]), ("largest", order[len(order) - count :])):
            kept = np.ones(len(order), bool)
            kept[lost] = False
            found[which, share] = measure(kept)
    return found
