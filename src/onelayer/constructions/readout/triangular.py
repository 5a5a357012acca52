"""The published memoriser: one hidden layer whose weights solve a lower triangular system.

Statement  c(t) = sum_j w_j relu(t - b_j) with b_1 = t_1 - 1, b_j = t_(j-1) interpolates M distinct numbers.
Gives      M hidden units, 2M + 1 numbers for one-component answers: the count of Corollary 1.
Rests on   nothing; the weights are second differences of the answers.
Why        to measure what the paper's readout costs in floating point, beside `plateaus`.
Differs    the breakpoints are shared by the q components, so q components cost M + qM instead of 2qM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.model import Layer, Linear
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["triangular"]
Array = NDArray[Any]


def interpolate(t: Array, rows: Array, dtype: DTypeLike) -> tuple[Layer, ...]:
    """Sorted distinct coordinates [M] and answers [M, q] into two linear layers."""
    breaks = np.concatenate([[t[0] - 1.0], t[:-1]])
    # The triangular system is solved by differences: slopes between neighbours, then changes of slope.
    slopes = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]))) / (t - breaks)[:, None]
    weights = np.diff(slopes, axis=0, prepend=np.zeros((1, rows.shape[1])))
    ones = np.ones((1, len(t)), dtype)
    return (
        Linear(ones, (-breaks).astype(dtype)),
        Linear(weights.astype(dtype), np.zeros(rows.shape[1], dtype)),
    )


def error_upper(t: Array, rows: Array, dtype: DTypeLike) -> float:
    """A-priori bound on the rounding error of the sum, in any order: M u sum_j |w_j| |t - b_j|."""
    weights = np.abs(interpolate(t, rows, np.float64)[1].weight).sum(axis=1)
    unit = float(np.finfo(np.dtype(dtype)).eps) / 2
    return float(2 * len(t) * unit * weights.sum() * (t[-1] - t[0] + 1.0))
