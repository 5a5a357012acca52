"""Cells along one coordinate, found without evaluating the units that tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.network.weights import Array

#: Buckets of equal width by which a cell is guessed; where cells are narrower still, it is searched for.
MOST_BUCKETS = 1 << 17


@dataclass(frozen=True)
class Cells:
    """Cells of one coordinate, from left to right: unit 0 switches a cell off to its right, unit 1 to its left.

    In cell j, from low[j] to high[j], its own units are 0 and those of its neighbours that switch these off are at
    least 1, as the units' arithmetic rounds; between that and the next cell nothing is said.
    """

    coordinate: int
    ends: Array  # [K - 1] where unit 0 of a cell begins to act, in float64
    low: Array  # [K]
    high: Array
    guess: Array  # the cell in which a bucket begins; empty: search
    buckets: tuple[float, float]  # where the first begins, and how many to a unit of length

    @staticmethod
    def of(weight: Array, bias: Array) -> Cells | None:
        """From units [coordinates, K, 2]; trailing cells may be off for good (bias 1, no weight)."""
        used = np.flatnonzero(weight.any(axis=(1, 2)))
        if len(used) > 1 or (len(used) == 0 and len(weight) == 0):
            return None
        i = int(used[0]) if used.size else 0
        w, b = weight[i], bias
        dead = (w == 0).all(axis=1) & (b == 1).all(axis=1)
        K = len(w) - int(dead.sum())
        if (
            K < 1
            or dead[:K].any()
            or (w[: K - 1, 0] <= 0).any()
            or (w[1:K, 1] >= 0).any()
            or w[K - 1, 0]
            or w[0, 1]
        ):
            return None
        if b[K - 1, 0] > 0 or b[0, 1] > 0:
            return None
        ends = -b[: K - 1, 0].astype(np.float64) / w[: K - 1, 0]
        if (np.diff(ends) < 0).any():
            return None
        low, high = _decided(w[:K], b[:K])
        return Cells(i, ends, low, high, *_bucketed(ends))

    def find(self, t: Array) -> tuple[Array, Array]:
        """The cell of each token of t [T, coordinates], and whether the dense units would say just that."""
        z = t[:, self.coordinate]
        if self.guess.size:
            start, scale = self.buckets
            with np.errstate(over="ignore", invalid="ignore"):
                place = (z - z.dtype.type(start)) * z.dtype.type(scale)
            place = np.fmin(np.fmax(place, 0), len(self.guess) - 1)  # what is not a number is in no cell
            j = self.guess.take(place.astype(np.intp))
            j += z > self.ends.take(j, mode="clip")  # beyond the last end every z is in the last cell
            np.minimum(j, len(self.ends), out=j)
        else:
            j = np.searchsorted(self.ends, z)
        return j, (z >= self.low.take(j)) & (z <= self.high.take(j))


def _bucketed(ends: Array) -> tuple[Array, tuple[float, float]]:
    """Buckets with at most one end in each, or none. A wrong guess, by rounding, is not a decided one."""
    gap = float(np.diff(ends).min(initial=np.inf))
    if not len(ends) or not gap > 0 or not (span := float(ends[-1] - ends[0])) / gap < MOST_BUCKETS / 2:
        return np.empty(0, np.intp), (0.0, 0.0)
    scale = 2 / gap if np.isfinite(gap) else 1.0
    count = int(span * scale) + 2
    return np.searchsorted(ends, ends[0] + np.arange(count) / scale), (float(ends[0]), scale)


def _decided(w: Array, b: Array) -> tuple[Array, Array]:
    """The smallest and the largest z at which a cell's units [K, 2] and those next to it decide. Rounding is
    monotone, so every condition holds on one side of some number."""
    first, last = np.arange(len(w)) == 0, np.arange(len(w)) == len(w) - 1
    after, before = np.minimum(np.arange(len(w)) + 1, len(w) - 1), np.maximum(np.arange(len(w)) - 1, 0)

    def not_beyond(z: Array) -> Any:
        return (z * w[:, 0] + b[:, 0] <= 0) & (last | (z * w[after, 1] + b[after, 1] >= 1))

    def not_before(z: Array) -> Any:
        return (z * w[:, 1] + b[:, 1] <= 0) & (first | (z * w[before, 0] + b[before, 0] >= 1))

    with np.errstate(over="ignore"):
        return -_largest(lambda z: not_before(-z), len(w), w.dtype), _largest(not_beyond, len(w), w.dtype)


def _largest(holds: Callable[[Array], Any], count: int, dtype: np.dtype[Any]) -> Array:
    """The largest numbers for which something holds that holds for all smaller ones; -inf where for none."""
    integer = np.dtype(f"i{dtype.itemsize}")
    top = np.finfo(dtype).max
    low, high = (_ordered(np.full(count, z, dtype).view(integer)) for z in (-top, top))
    none, all_ = ~holds(np.full(count, -top, dtype)), holds(np.full(count, top, dtype))
    for _ in range(8 * dtype.itemsize):
        middle = low // 2 + high // 2 + (low & high & 1)  # the difference may overflow
        held = holds(_ordered(middle).view(dtype))
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    found = np.where(all_, top, _ordered(low).view(dtype))
    return np.where(none, -np.inf, found).astype(dtype)


def _ordered(bits: Array) -> Array:
    """The bits of floating-point numbers as integers of the same order, and back."""
    return np.where(bits < 0, np.iinfo(bits.dtype).min - bits, bits).astype(bits.dtype)
