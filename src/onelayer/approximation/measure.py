"""Trying to break a bound: many samples, cell corners among them, then hill climbing from the worst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: Error [B] of sequences [B, n, d].
Error = Callable[[Array], Array]

#: Climbers, and rounds in which each tries a neighbour and the reach shrinks where it fails.
CLIMBERS, ROUNDS = 128, 60
BLOCK = 1 << 16


@dataclass(frozen=True)
class Box:
    """Where to look: components in [low, high], within ``radius`` of one of the ``centres`` if there are any."""

    n: int
    d: int
    low: float
    high: float
    dtype: np.dtype[Any]
    centres: Array
    radius: float = np.inf
    distinct: bool = False  # tokens of one sequence must lie in different cells

    def admit(self, X: Array) -> Array:
        """The nearest sequences that are allowed, and numbers of the dtype."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        if self.centres.size:
            middles = (self.centres[1:] + self.centres[:-1]) / 2
            near = self.centres[np.searchsorted(middles, X)]
            low, high = np.maximum(low, near - self.radius), np.minimum(high, near + self.radius)
        rounded = np.clip(X, low, high).astype(self.dtype)
        rounded = np.where(rounded < low, np.nextafter(rounded, self.dtype.type(np.inf)), rounded)
        return np.where(rounded > high, np.nextafter(rounded, self.dtype.type(-np.inf)), rounded)

    def holds(self, X: Array) -> Array:
        """Which of the admitted sequences count, [B]."""
        if not self.distinct:
            return np.ones(len(X), bool)
        cells = np.searchsorted((self.centres[1:] + self.centres[:-1]) / 2, X)
        same = (cells[:, :, None] == cells[:, None]).all(axis=3)
        return np.asarray(same.sum(axis=(1, 2)) == self.n)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Half of them anywhere, half with components at the ends of cells or equal to each other."""
        X = rng.uniform(self.low, self.high, (count, self.n, self.d))
        half = X[count // 2 :]
        ends = np.array([self.low, self.high])
        if self.centres.size:
            ends = np.concatenate([self.centres - self.radius, self.centres + self.radius])
        chosen = rng.random(half.shape) < 0.5
        half[chosen] = rng.choice(ends, int(chosen.sum()))
        same = rng.random(len(half)) < 0.2
        half[same] = half[same][:, :1]
        return self.admit(X)


def largest_error(error: Error, box: Box, samples: int, seed: int = 0) -> tuple[float, Array]:
    """The largest error found, and where."""
    rng = np.random.default_rng([seed, 11])

    def judged(X: Array) -> Array:
        return np.where(box.holds(X), error(X), -1.0)

    best, where = np.empty(0), np.empty((0, box.n, box.d), box.dtype)
    for start in range(0, samples, BLOCK):
        X = box.draw(rng, min(BLOCK, samples - start))
        values = np.concatenate([best, judged(X)])
        X = np.concatenate([where, X])
        keep = np.argsort(-values, kind="stable")[:CLIMBERS]
        best, where = values[keep], X[keep]
    reach = np.full((len(best), 1, 1), (box.high - box.low) / 16)
    for _ in range(ROUNDS):
        moved = rng.standard_normal(where.shape) * (rng.random(where.shape) < 0.6)
        tried = box.admit(where.astype(np.float64) + reach * moved)
        values = judged(tried)
        better = values > best
        best, where = np.where(better, values, best), np.where(better[:, None, None], tried, where)
        reach = np.where(better[:, None, None], reach, reach * 0.7)
    at = int(np.argmax(best))
    return float(best[at]), where[at]
