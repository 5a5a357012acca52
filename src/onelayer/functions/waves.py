"""Functions of one number as sums of few waves: frequencies are fitted too, not only their weights.

With the weights always the best for the frequencies, the error depends on these alone, and falls by steps of Gauss
and Newton (variable projection). They start from those of a period that is wider than the range, and from those of
one wave less. How far a sum is off between the points of the fit is the checker's to prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: Waves up to which a fit is tried, and up to which frequencies are fitted too; how much wider than the range a
#: period is; steps of one fit of frequencies, and every how many points it looks at.
MOST_WAVES, MOST_FITTED, WIDER, STEPS, SPARSE = 24, 10, (1.15, 1.3, 1.6, 2.0), 40, 4
#: Singular values below this are left out of a fit, and weights may add up to this many times the values: an error
#: of a wave, and the units it takes, grow with its weight.
SMALLEST, HEAVIEST = 1e-7, 6.0
#: Of the error that is allowed, what weights that are left out may add; relatively, what an odd function is off.
DROPPED, EVEN = 0.02, 1e-9


@dataclass(frozen=True)
class Waves:
    """constant + sum of sines_i sin(w_i s) + cosines_i cos(w_i s)."""

    frequencies: tuple[Fraction, ...]
    constant: float
    sines: Array
    cosines: Array
    error: float  # at the points of the fit

    @property
    def size(self) -> float:
        return abs(self.constant) + float(np.abs(self.sines).sum() + np.abs(self.cosines).sum())


def fit_waves(s: Array, wanted: Array, eps: float) -> Waves | None:
    """The fewest waves, and of those the smallest weights, that are within eps of values at points around 0."""
    half, before = float(np.abs(s).max()), np.zeros(0)
    for count in range(1, MOST_WAVES + 1):
        starts = [np.arange(1, count + 1) * (math.pi / (wider * half)) for wider in WIDER]
        if count <= MOST_FITTED:
            more = [np.append(before, 2 * before[-1] - (before[-2] if count > 2 else 0.0))] if count > 1 else []
            tuned = [_tune(s[::SPARSE], wanted[::SPARSE], w) for w in (starts[1], *more)]
            before = np.sort(np.abs(min(tuned, key=lambda w: float(np.abs(_fit(s, wanted, w)[1]).max()))))
            starts += tuned
        found = [_weigh(s, wanted, w, eps) for w in starts]
        most = HEAVIEST * float(np.abs(wanted).max())
        good = [waves for waves in found if waves.error <= eps and waves.size <= most]
        if good:
            return min(good, key=lambda waves: waves.size)
    return None


def _columns(s: Array, wanted: Array, w: Array) -> Array:
    """1, sines and cosines; of an odd function only the sines, of an even one only the others."""
    angle, back = s[:, None] * w, np.interp(-s, s, wanted)
    slack = EVEN * float(np.abs(wanted).max())
    odd, even = (bool((np.abs(wanted + sign * back) <= slack).all()) for sign in (1, -1))
    parts = np.ones((len(s), 1)) * (not odd), np.sin(angle) * (not even), np.cos(angle) * (not odd)
    return np.concatenate(parts, axis=1)


def _fit(s: Array, wanted: Array, w: Array) -> tuple[Array, Array]:
    """The best weights for these frequencies, and what they miss."""
    columns = _columns(s, wanted, w)
    weights = np.linalg.lstsq(columns, wanted, rcond=SMALLEST)[0]
    return weights, columns @ weights - wanted


def _tune(s: Array, wanted: Array, w: Array) -> Array:
    """Better frequencies: of how the error moves with them, the part that no weights can make up for."""
    n, damping = len(w), 1e-2
    weights, missed = _fit(s, wanted, w)
    for _ in range(STEPS):
        angle = s[:, None] * w
        moves = s[:, None] * (np.cos(angle) * weights[1 : n + 1] - np.sin(angle) * weights[n + 1 :])
        columns = _columns(s, wanted, w)
        moves = moves - columns @ np.linalg.lstsq(columns, moves, rcond=SMALLEST)[0]
        normal = moves.T @ moves
        damped = normal + np.diag(damping * normal.diagonal() + 1e-30)
        tried = w - np.linalg.solve(damped, moves.T @ missed)
        more, left = _fit(s, wanted, tried)
        better = float(left @ left) < float(missed @ missed)
        damping = min(max(damping * (0.2 if better else 5.0), 1e-12), 1e12)
        if better:
            w, weights, missed = tried, more, left
    return w


def _weigh(s: Array, wanted: Array, w: Array, eps: float) -> Waves:
    """With frequencies of few bits, and without weights that hardly count."""
    frequencies = tuple(dict.fromkeys(dyadic(abs(x)) for x in w if dyadic(abs(x))))
    n, few = len(frequencies), np.array([float(x) for x in frequencies])
    columns = _columns(s, wanted, few)
    weights = np.linalg.lstsq(columns, wanted, rcond=SMALLEST)[0]
    weights[np.abs(weights) < DROPPED * eps] = 0.0
    error = float(np.abs(columns @ weights - wanted).max())
    return Waves(frequencies, float(weights[0]), weights[1 : n + 1], weights[n + 1 :], error)


def dyadic(value: float) -> Fraction:
    """A number with few bits."""
    return Fraction(round(value * 4096), 4096)
