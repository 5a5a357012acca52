"""Trying to break a bound: many samples, cell corners among them, then hill climbing from the worst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.targets.box import Box

Array = NDArray[Any]
#: Error [B] of sequences [B, n, d].
Error = Callable[[Array], Array]

#: Climbers, and rounds in which each tries a neighbour and the reach shrinks where it fails.
CLIMBERS, ROUNDS = 128, 60
#: Pairs of tokens in all sequences that climb, about.
PAIRS = 1 << 20
BLOCK = 1 << 16


def largest_error(error: Error, box: Box, samples: int, seed: int = 0) -> tuple[float, Array]:
    """The largest error found, and where; of long sequences, which have many pairs of tokens, fewer climb."""
    climbers = max(8, min(CLIMBERS, PAIRS // box.n**2))
    rng = np.random.default_rng([seed, 11])

    def error_at(X: Array) -> Array:
        return np.where(box.holds(X), error(X), -1.0)

    best, where = np.empty(0), np.empty((0, box.n, box.d), box.dtype)
    for start in range(0, samples, BLOCK):
        X = box.draw(rng, min(BLOCK, samples - start))
        values = np.concatenate([best, error_at(X)])
        X = np.concatenate([where, X])
        keep = np.argsort(-values, kind="stable")[:climbers]
        best, where = values[keep], X[keep]
    reach = np.full((len(best), 1, 1), float(np.max(np.asarray(box.high) - box.low)) / 16)
    for _ in range(ROUNDS):
        moved = rng.standard_normal(where.shape) * (rng.random(where.shape) < 0.6)
        tried = box.admit(where.astype(np.float64) + reach * moved)
        values = error_at(tried)
        better = values > best
        best, where = np.where(better, values, best), np.where(better[:, None, None], tried, where)
        reach = np.where(better[:, None, None], reach, reach * 0.7)
    at = int(np.argmax(best))
    return float(best[at]), where[at]
