"""Answers on plateaus: one trapezoid per stored answer, in one coordinate or in several.

Statement  ind_j = relu(1 - sum_i relu(s_i t_i + b_i)) is exactly 1 on plateau j and exactly 0 on every other.
Gives      sum_j ind_j value_j has one non-zero term, so the stored answer comes back bit for bit.
Rests on   monotone rounding; slopes are powers of two, so s*t is exact.
Why        interpolating sums cancel catastrophically; saturation forgets the error of t instead of amplifying it.
Differs    the published memoriser (`triangular`) has 2M + d weights of size 1/gap; this one has (7 + q) K,
           K <= M the number of runs of equal answers, and no cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.network import Grouped, Layer, Linear
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["plateaus"]
Array = NDArray[Any]


@dataclass(frozen=True)
class Plateaus:
    """Layers from coordinates t >= 0 to answers, and how far t may be off before an answer can change."""

    layers: tuple[Layer, ...]
    count: int
    guard: float  # smallest distance of a stored coordinate to the end of its plateau


def on_a_line(t: Array, rows: Array, dtype: DTypeLike) -> Plateaus:
    """Sorted coordinates [M] and their answers [M, q]: neighbours with equal answers share a plateau.

    The trapezoids add up to 1 everywhere, so an input between two stored coordinates gets an answer between
    their answers, and outside the middle quarter of the gap exactly that of the nearer one.
    """
    last = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1))  # the last member of each run but the final one
    weight, bias, guard = trapezoids(t[last], t[last + 1], dtype)
    values = rows[np.concatenate([last, [len(t) - 1]])]
    return Plateaus(_layers(weight.reshape(1, -1), bias.reshape(-1), values, 2, dtype), len(values), guard)


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


def in_boxes(T: Array, rows: Array, half_width: float, dtype: DTypeLike) -> Plateaus:
    """Centres [K, s], sorted along the first coordinate, and answers [K, q]: 1 within ``half_width`` (a power
    of two) in every coordinate, 0 from twice that on. An input outside all boxes gets 0."""
    K, s = T.shape
    slope = 1.0 / half_width
    centre = T.astype(dtype).astype(np.float64)
    weight = np.zeros((s, K, s, 2), dtype)
    for i in range(s):
        weight[i, :, i, 0], weight[i, :, i, 1] = slope, -slope
    bias = np.stack([-slope * centre - 1.0, slope * centre - 1.0], axis=-1).astype(dtype)  # [K, s, 2]
    ends = np.stack([-bias[..., 0], bias[..., 1]], axis=-1).astype(np.float64) / slope
    guard = float(min((ends[..., 0] - T).min(), (T - ends[..., 1]).min()))
    return Plateaus(_layers(weight.reshape(s, -1), bias.reshape(-1), rows, 2 * s, dtype), K, guard)


def _layers(weight: Array, bias: Array, values: Array, group: int, dtype: DTypeLike) -> tuple[Layer, ...]:
    K, q = values.shape
    return (
        Linear(weight, bias),
        Grouped(np.full((K, group, 1), -1, dtype), np.ones(K, dtype)),
        Linear(values.astype(dtype), np.zeros(q, dtype)),
    )


def parameters(K: int, coordinates: int, q: int) -> int:
    """How many numbers the layers of K plateaus hold."""
    units = 2 * coordinates * K
    return coordinates * units + units + units + K + q * K + q
