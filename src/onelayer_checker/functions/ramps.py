"""Sums of ramps w relu(sign (s - c)), by running sums: their values at many numbers, and their slopes.

With the corners of one sign in order, the slope behind the k-th is w_1 + ... + w_k, and the value there is what it
was at the corner before plus that slope times the distance: a number needs its place among the corners, not every
unit. Rounding. A value is a sum of w_i (c_(j+1) - c_j), of which every distance is positive. Each of them meets at
most k roundings in its slope, two in the distance and the product, and k in the running sum: with those of the last
piece, and of the sum of both signs, less than 2 k + 8. So a value is off by gamma(2 k + 8) times the sum of |w_i
(s - c_i)|, which the same running sums of |w_i| give as closely; and a product that is too small by TINY.
"""

from __future__ import annotations

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array, U, gamma
from onelayer_checker.core.budget import spend
from onelayer_checker.functions.intervals import Interval, out


def values(corners: Array, signs: Array, w: Array, s: Array) -> Interval:
    """Encloses the sum at the numbers s; nothing is known where it is too large."""
    spend("corners of a block", 200.0 * (s.size + w.size), 64.0 * (s.size + w.size))
    found, size = np.zeros(s.shape), np.zeros(s.shape)
    with np.errstate(all="ignore"):
        for sign in (1.0, -1.0):
            mine = signs == sign
            c, v = in_order(sign * corners[mine], w[mine])
            found += _running(c, v, sign * s)
            size += _running(c, np.abs(v), sign * s)
        off = gamma(2 * w.size + 8, U)
        radius = size * (off * (1 + 4 * off) * UP) + TINY * (w.size + 8)
        return out(found - radius, found + radius)  # of what overflows nothing is known


def slopes(corners: Array, signs: Array, w: Array, ends: Array) -> Array:
    """About the slope between each two of these ends, where every corner between the first and the last is one of
    them: each is off by no more than a sum of all w in any order."""
    found = np.zeros(ends.size - 1)
    for sign, starts in ((1.0, ends[:-1]), (-1.0, ends[1:])):
        mine = signs == sign
        c, v = in_order(sign * corners[mine], w[mine])
        found += sign * np.concatenate([[0.0], np.cumsum(v)])[np.searchsorted(c, sign * starts, "right")]
    return found


def in_order(corners: Array, w: Array) -> tuple[Array, Array]:
    order = np.argsort(corners, kind="stable")
    return corners[order], w[order]


def _running(c: Array, v: Array, s: Array) -> Array:
    """The sum of v relu(s - c), for c in order."""
    if not c.size:
        return np.zeros(s.shape)
    slope = np.cumsum(v)
    at = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(c))])
    i = np.searchsorted(c, s) - 1
    return np.where(i < 0, 0.0, at[i] + slope[i] * (s - c[i]))
