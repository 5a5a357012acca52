"""Answers on plateaus: one trapezoid per stored answer, in one coordinate or in several.

Statement  ind_j = relu(1 - sum_i relu(s_i t_i + b_i)) is exactly 1 on plateau j and exactly 0 on every other.
Gives      sum_j ind_j value_j has one non-zero term, so the stored answer comes back bit for bit.
Rests on   monotone rounding; slopes are powers of two, so s*t is exact.
Why        interpolating sums cancel catastrophically; saturation forgets the error of t instead of amplifying it.
Differs    the published memoriser (`triangular`) has 2M + d weights of size 1/gap; this one has (7 + q) K,
           K <= M the number of runs of equal answers, and no cancellation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.gadgets.line import trapezoids
from onelayer.gadgets.plateaus import Plateaus
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.readout import Readout
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["plateaus"]
Array = NDArray[Any]


def on_a_line(t: Array, rows: Array, dtype: DTypeLike) -> Readout:
    """Sorted coordinates [M] and their answers [M, q]: neighbours with equal answers share a plateau.

    The trapezoids add up to 1 everywhere, so an input between two stored coordinates gets an answer between
    their answers, and outside the middle quarter of the gap exactly that of the nearer one.
    """
    last = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1))  # the last member of each run but the final one
    weight, bias, guard = trapezoids(t[last], t[last + 1], dtype)
    values = rows[np.concatenate([last, [len(t) - 1]])]
    return Readout((Plateaus.of(weight[:, None], bias[:, None], values),), len(values), guard)


def in_boxes(T: Array, rows: Array, half_width: float, dtype: DTypeLike) -> Readout:
    """Centres [K, s], sorted along the first coordinate, and answers [K, q]: 1 within ``half_width`` (a power
    of two) in every coordinate, 0 from twice that on. An input outside all boxes gets 0."""
    slope = 1.0 / half_width
    centre = T.astype(dtype).astype(np.float64)
    weight = np.broadcast_to(np.array([slope, -slope], dtype), (*T.shape, 2))
    bias = np.stack([-slope * centre - 1.0, slope * centre - 1.0], axis=-1).astype(dtype)  # [K, s, 2]
    ends = np.stack([-bias[..., 0], bias[..., 1]], axis=-1).astype(np.float64) / slope
    guard = float(min((ends[..., 0] - T).min(), (T - ends[..., 1]).min()))
    return Readout((Plateaus.of(weight, bias, rows),), len(T), guard)


def parameters(K: int, coordinates: int, q: int) -> int:
    """How many numbers the layers of K plateaus hold."""
    units = 2 * coordinates * K
    return coordinates * units + units + units + K + q * K + q


@readout
class OnPlateaus(ReadoutMethod):
    name, order, why = "plateaus", 1, "rank 1 is read off by plateaus"

    @classmethod
    def on_line(cls, t: Array, answers: Array, task: Task) -> Readout:
        return on_a_line(t, answers, task.dtype)


@readout
class InBoxes(ReadoutMethod):
    name, order, why = "boxes", 2, "several reals are read off by boxes"

    @classmethod
    def in_boxes(cls, T: Array, answers: Array, half_width: float, task: Task) -> Readout:
        return in_boxes(T, answers, half_width, task.dtype)
