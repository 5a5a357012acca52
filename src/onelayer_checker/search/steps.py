"""Staircases: units relu(1 - relu(w t + b)) that, once on, stay on. How many are on is found by search.

Let w be plus or minus a power of two. If w t + b <= 0 as a real number, the unit is exactly 1 in every arithmetic
of the specification; if w t + b >= 1, it is exactly 0. `stack.py` says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onelayer_checker.core.balls import NORMAL, Arithmetic, Array, Ball

#: A staircase of so few steps is compared with step by step.
FEW_STEPS = 8


def ends(t: Ball, columns: Array | int, A: Arithmetic) -> tuple[Array, Array]:
    """Bounds of coordinates; a subnormal number may be flushed to 0. Theorem: proofs/Thresholds.v ends_enclose."""
    m, r = t.m[:, columns], t.r[:, columns]
    if not r.any():
        low, high = m, m
    else:
        low, high = np.nextafter(m - r, -np.inf), np.nextafter(m + r, np.inf)
    if A.tiny > 0:
        low = np.where((low > 0) & (low < A.tiny), 0.0, low)
        high = np.where((high < 0) & (high > -A.tiny), 0.0, high)
    return low, high


def within_range(
    low: Array, high: Array, largest: float, units: int, A: Arithmetic, steepest: float | None = None
) -> Array:
    """Where no unit that reads coordinates [T], or [T, c], between low and high overflows; weights and biases are
    at most ``largest``, which is at least 1, or weights at most ``steepest``.

    Theorem: proofs/Range.v within_range_sound.
    """
    slope, most = largest if steepest is None else steepest, A.big / 5 if units <= A.whole else 0.0
    widest = float(np.maximum(-low.min(initial=0.0), high.max(initial=0.0)))  # NaN where there is one
    if units * (widest * slope) < most and units * largest < most:
        return np.ones(len(low), bool)
    reach = np.maximum(np.abs(low), np.abs(high)) * slope
    fits = (units * reach < most) & (units * largest < most)  # false for infinity and NaN
    return np.asarray(fits if fits.ndim == 1 else fits.all(axis=1))


@dataclass(frozen=True, eq=False)
class Steps:
    """Along one coordinate, or its negative: a step is on from ``on`` on, and off up to ``off``."""

    column: int
    sign: float  # -1: along the negative of the coordinate
    on: Array  # [K] sorted
    off: Array  # [K] sorted
    largest: float  # bounds the weights and biases, against overflow
    smallest: float  # nonzero slope or bias, against underflow
    steepest: float | None = None  # bounds the weights, if they are smaller

    def decide(self, t: Ball, A: Arithmetic) -> Array:
        """How many steps are on while all others are off [T]; -1 if that is not certain.

        Theorem: proofs/Steps.v steps_decide; proofs/Search.v steps_counted; proofs/Thresholds.v smallest_suffices.
        """
        low, high = ends(t, self.column, A)
        certain = within_range(low, high, self.largest, 1, A, self.steepest) & (self.smallest >= 8 * A.tiny)
        if self.sign < 0:
            low, high = -high, -low
        if len(self.on) <= FEW_STEPS:
            on, up_to = np.zeros(len(low), np.intp), np.zeros(len(low), np.intp)
            for a, b in zip(self.on.tolist(), self.off.tolist(), strict=True):
                on += low >= a
                up_to += high > b
        else:
            on = np.searchsorted(self.on, low, side="right")
            up_to = np.searchsorted(self.off, high, side="left")
        return np.where(certain & (on == up_to), on, -1)  # those beyond `up_to` are off: high <= off

    @cached_property
    def crisp(self) -> bool:
        """Whether every step comes on at a whole number and is off at the one before."""
        return bool((self.on == np.rint(self.on)).all() and (self.off == self.on - 1).all())

    def count(self, t: Array, A: Arithmetic) -> Array | None:
        """How many steps are on, and all others off, at whole numbers t, none below 0; None if not certain.

        Theorem: proofs/Steps.v steps_decide; proofs/Search.v steps_counted; proofs/Thresholds.v smallest_suffices.
        """
        if not (
            self.crisp
            and self.smallest >= 8 * A.tiny
            and within_range(t, t, self.largest, 1, A, self.steepest).all()
        ):
            return None
        return np.searchsorted(self.on, self.sign * t, side="right")


@dataclass(frozen=True, eq=False)
class RowSteps:
    """Steps along one coordinate whose thresholds are a row of a table: unit g is relu(table[row, g] - slope t).

    The coordinate follows a ReLU: it is never below 0.
    """

    column: int
    slope: float  # a power of two
    table: Array  # [R, G], each row sorted
    below: Array  # table - 1, rounded down

    @staticmethod
    def of(column: int, slope: float, table: Array) -> RowSteps:
        return RowSteps(column, slope, table, np.nextafter(table - 1, -np.inf))

    def decide(self, t: Ball, row: Array, A: Arithmetic) -> Array:
        """How many steps of its row are on while all others are off [T]; -1 if that is not certain.

        Theorem: proofs/Steps.v row_steps_decide, row_on_sound, row_off_sound.
        """
        low, high = ends(t, self.column, A)
        sizes = np.abs(self.table)
        certain = within_range(low, high, max(float(sizes.max()), 1.0), 2, A, self.slope) & (row >= 0)
        faint = 8 * (A.tiny + NORMAL)
        certain &= bool(sizes.min(where=sizes > 0, initial=1.0) >= faint and self.slope >= faint)
        at = np.maximum(row, 0)
        # Multiplying by a power of two is exact, or underflows to what a comparison with normal numbers, or of what
        # is never below 0 with 0, does not notice.
        on = _upto(self.table, at, self.slope * low, inclusive=True)  # table <= slope low
        return np.where(certain & (on == _upto(self.below, at, self.slope * high, inclusive=False)), on, -1)


def _upto(table: Array, row: Array, key: Array, inclusive: bool) -> Array:
    """How many entries of the sorted rows are at most the key, or below it; by bisection.

    Theorem: proofs/Search.v upto_counts.
    """
    G, flat = table.shape[1], np.ascontiguousarray(table).ravel()
    start, found = row * G, np.zeros(len(row), np.intp)
    step = 1 << (G.bit_length() - 1)
    while step:
        tried = found + step
        inside = tried <= G
        entry = flat[start + np.where(inside, tried, 1) - 1]
        found = np.where(inside & ((entry <= key) if inclusive else (entry < key)), tried, found)
        step >>= 1
    return found
