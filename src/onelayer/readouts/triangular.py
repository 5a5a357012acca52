"""The published memoriser: one hidden layer whose weights solve a lower triangular system.

Statement  c(t) = sum_j w_j relu(t - b_j) with b_1 = t_1 - 1, b_j = t_(j-1) interpolates M distinct numbers.
Gives      M hidden units, 2M + 1 numbers for one-component answers: the count of Corollary 1.
Rests on   nothing; the weights are second differences of the answers.
Why        to measure what the paper's readout costs in floating point, beside `plateaus`.
Differs    the breakpoints are shared by the q components, so q components cost M + qM instead of 2qM.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.errors import HypothesisError
from onelayer.gadgets.ridges import Ridges
from onelayer.readouts import plateaus
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.readout import Readout
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["triangular"]
Array = NDArray[Any]

MOST_UNITS = 20_000


def interpolate(t: Array, rows: Array, dtype: DTypeLike) -> Ridges:
    """Sorted distinct coordinates [M] and answers [M, q] into two linear layers."""
    breaks = np.concatenate([[t[0] - 1.0], t[:-1]])
    # The triangular system is solved by differences: slopes between neighbours, then changes of slope.
    slopes = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]))) / (t - breaks)[:, None]
    weights = np.diff(slopes, axis=0, prepend=np.zeros((1, rows.shape[1])))
    ones = np.ones((1, len(t)), dtype)
    return Ridges(ones, (-breaks).astype(dtype), weights.astype(dtype), np.zeros(rows.shape[1], dtype))


def on_a_line(t: Array, answers: Array, radius: float, dtype: DTypeLike) -> Ridges:
    """Sorted coordinates [T] of samples, met more than once or not, and answers [T, q]."""
    first = np.concatenate([[True], np.diff(t) > 2 * radius])
    if first.sum() > MOST_UNITS:
        raise HypothesisError(
            "triangular",
            f"at most {MOST_UNITS} distinct contexts, since every unit is evaluated for every token",
            f"there are {first.sum()}",
            'Use readout="plateaus", which is evaluated by search.',
        )
    return interpolate(t[first], answers[first], dtype)


@readout
class Triangular(ReadoutMethod):
    name, order, interpolates = "triangular", 7, True

    @classmethod
    def on_line(cls, t: Array, answers: Array, task: Task) -> Readout:
        """Coordinates must be as far apart as for plateaus; what rounding makes of the sums is measured later."""
        apart = plateaus.on_a_line(t, answers, task.dtype)
        return replace(apart, gadgets=(on_a_line(t, answers, task.exact_radius, task.dtype),))
