"""Cells along one coordinate: the units that tell them apart, and how to find a cell without evaluating them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from onelayer.equality import EqualByContent
from onelayer.network.weights import Array

#: Buckets of equal width by which a cell is guessed; where cells are narrower still, it is searched for.
MOST_BUCKETS = 1 << 17


@dataclass(frozen=True, eq=False)
class Line(EqualByContent):
    """K cells of one coordinate, left to right: unit 0 switches a cell off to its right, unit 1 to its left."""

    coordinate: int
    weight: Array  # [K, 2]
    bias: Array  # [K, 2]

    def __post_init__(self) -> None:
        if not self.weight.any():  # a single cell reads nothing
            object.__setattr__(self, "coordinate", 0)

    @property
    def count(self) -> int:
        return len(self.weight)

    @staticmethod
    def read(weight: Array, bias: Array) -> Line | None:
        """From units [coordinates, K, 2]; trailing cells may be off for good (bias 1, no weight)."""
        used = np.flatnonzero(weight.any(axis=(1, 2)))
        if len(used) > 1 or len(weight) == 0:
            return None
        i = int(used[0]) if used.size else 0
        w, b = weight[i], bias
        dead = (w == 0).all(axis=1) & (b == 1).all(axis=1)
        K = len(w) - int(dead.sum())
        if K < 1 or dead[:K].any() or (w[: K - 1, 0] <= 0).any() or (w[1:K, 1] >= 0).any():
            return None
        if w[K - 1, 0] or w[0, 1] or b[K - 1, 0] > 0 or b[0, 1] > 0:
            return None
        found = Line(i, w[:K], b[:K])
        return None if (np.diff(found.ends) < 0).any() else found

    @cached_property
    def ends(self) -> Array:
        """[K - 1] where unit 0 of a cell begins to act, in float64."""
        K = self.count
        return np.asarray(-self.bias[: K - 1, 0].astype(np.float64) / self.weight[: K - 1, 0])

    @cached_property
    def decided(self) -> tuple[Array, Array]:
        """From low [K] to high [K] a cell's own units are 0 and all other cells are switched off, as the units'
        arithmetic rounds; between that and the next cell nothing is said."""
        return _deciding_interval(self.weight, self.bias)

    @cached_property
    def buckets(self) -> tuple[Array, float, float]:
        """The cell in which each bucket begins (none: search), where the first begins, how many to a unit."""
        return _bucket_ends(self.ends)

    def find(self, t: Array) -> tuple[Array, Array]:
        """The cell of each token of t [T, coordinates], and whether the dense units would say just that."""
        z = t[:, self.coordinate]
        guess, start, scale = self.buckets
        if guess.size:
            with np.errstate(over="ignore", invalid="ignore"):
                place = (z - z.dtype.type(start)) * z.dtype.type(scale)
            place = np.fmin(np.fmax(place, 0), len(guess) - 1)  # what is not a number is in no cell
            j = guess.take(place.astype(np.intp))
            j += z > self.ends.take(j, mode="clip")  # beyond the last end every z is in the last cell
            np.minimum(j, len(self.ends), out=j)
        else:
            j = np.searchsorted(self.ends, z)
        low, high = self.decided
        return j, (z >= low.take(j)) & (z <= high.take(j))


def lines_of_tables(lines: Sequence[Line]) -> dict[str, Line]:
    """The lines along which tables are cut, two to a table, by what their cells are called."""
    names = [f"table {k} / {what}" for k in range(len(lines) // 2) for what in ("rows", "columns")]
    return dict(zip(names, lines, strict=True))


def trapezoids(low: Array, high: Array, dtype: DTypeLike) -> tuple[Array, Array, float]:
    """Weights and biases [K, 2] of K cells of a line, cut in the K - 1 gaps from low to high, and their guard.

    Unit 0 of a cell switches it off to the right, unit 1 to the left.
    """
    low, high = low.astype(np.float64), high.astype(np.float64)
    # Ramp between two cells: of width 1/slope <= gap/4, centred in the gap, starting at a number of the dtype.
    slope = np.exp2(np.ceil(np.log2(4.0 / (high - low)))) if low.size else np.empty(0)
    start = ((low + high) / 2 - 0.5 / slope).astype(dtype).astype(np.float64)
    right = (-slope * start).astype(dtype)
    left = (1.0 + slope * start).astype(dtype)
    K = len(low) + 1
    weight = np.zeros((K, 2), dtype)
    bias = np.full((K, 2), -1, dtype)  # the outermost trapezoids never switch off on their open side
    weight[:-1, 0], bias[:-1, 0] = slope, right
    weight[1:, 1], bias[1:, 1] = -slope, left
    right_end, left_end = start, left.astype(np.float64) / slope
    # Where 1 + slope*start rounds down, the neighbour is off only a little further on.
    late = np.maximum(0.0, 1.0 - (left.astype(np.float64) + right.astype(np.float64))) / slope
    guard = float(min(np.min(right_end - low - late), np.min(high - left_end - late))) if low.size else np.inf
    return weight, bias, guard


def whole_cells(starts: Array, dtype: DTypeLike) -> tuple[Array, Array]:
    """Weights and biases [K, 2] of cells of whole numbers, of which all but the first begin at ``starts``.

    A cell reaches half a step beyond its numbers, and is off a quarter of a step before the next: biases 4 a - 2 of
    numbers a have one bit more than a, so that few bits hold them.
    """
    edge, K = 4.0 * np.asarray(starts, np.float64) - 2.0, len(starts) + 1
    weight, bias = np.zeros((K, 2), dtype), np.full((K, 2), -1, dtype)
    weight[:-1, 0], bias[:-1, 0] = 4.0, -edge
    weight[1:, 1], bias[1:, 1] = -4.0, edge
    return weight, bias


def _bucket_ends(ends: Array) -> tuple[Array, float, float]:
    """Buckets with at most one end in each, or none. A wrong guess, by rounding, is not a decided one."""
    gap = float(np.diff(ends).min(initial=np.inf))
    if not len(ends) or not gap > 0 or not (span := float(ends[-1] - ends[0])) / gap < MOST_BUCKETS / 2:
        return np.empty(0, np.intp), 0.0, 0.0
    scale = 2 / gap if np.isfinite(gap) else 1.0
    count = int(span * scale) + 2
    return np.searchsorted(ends, ends[0] + np.arange(count) / scale), float(ends[0]), scale


def _deciding_interval(w: Array, b: Array) -> tuple[Array, Array]:
    """The smallest and the largest z at which a cell's own units [K, 2] are 0 and all other cells are off: those
    before it by their unit 0, those after it by their unit 1. Rounding is monotone, so each of these holds on one
    side of some number."""
    # Up to which z is unit 0 equal to 0, and unit 1 at least 1; and the same for -z with the units swapped.
    asked = ((0, 1, False), (1, -1, False), (1, 1, True), (0, -1, True))
    slope = np.concatenate([sign * w[:, unit] for unit, sign, _ in asked])
    offset = np.concatenate([b[:, unit] for unit, _, _ in asked])
    switches_off = np.repeat([on for *_, on in asked], len(w))

    def holds(z: Array) -> Array:
        unit = z * slope + offset
        return np.asarray(np.where(switches_off, unit >= 1, unit <= 0))

    with np.errstate(over="ignore"):
        high, low, later, earlier = _largest(holds, len(slope), w.dtype).reshape(len(asked), -1)
    high[:-1] = np.minimum(high[:-1], np.minimum.accumulate(later[:0:-1])[::-1])
    low[1:] = np.minimum(low[1:], np.minimum.accumulate(earlier[:-1]))
    return -low, high


def _largest(holds: Callable[[Array], Array], count: int, dtype: np.dtype[Any]) -> Array:
    """The largest numbers for which something holds that holds for all smaller ones; -inf where for none."""
    integer = np.dtype(f"i{dtype.itemsize}")
    least = np.iinfo(integer).min
    top = np.finfo(dtype).max
    low, high = (_order_bits(np.full(count, z, dtype).view(integer), least) for z in (-top, top))
    none, all_ = ~holds(np.full(count, -top, dtype)), holds(np.full(count, top, dtype))
    for _ in range(8 * dtype.itemsize):
        middle = low // 2 + high // 2 + (low & high & 1)  # the difference may overflow
        held = holds(_order_bits(middle, least).view(dtype))
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    found = np.where(all_, top, _order_bits(low, least).view(dtype))
    return np.where(none, -np.inf, found).astype(dtype)


def _order_bits(bits: Array, least: int) -> Array:
    """The bits of floating-point numbers as integers of the same order, and back; ``least`` is their smallest."""
    return np.where(bits < 0, least - bits, bits)
