"""Averages with equal weights: one sum over the tokens of a sequence instead of a product for every query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import NORMAL, TINY, UP, Arithmetic, Array, Ball, U, gamma


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over k balls [..., k, b] as float64 computes them, of midpoints, of their sizes and of radii; and the
    largest size of a number in the balls."""

    m: Array
    size: Array
    r: Array
    widest: float

    @staticmethod
    def of(y: Ball) -> Totals:
        size = np.abs(y.m)
        return Totals(y.m.sum(axis=-2), size.sum(axis=-2), y.r.sum(axis=-2), float((size + y.r).max()))


def weighed_alike(x: Ball, y: Totals, k: int, A: Arithmetic, extra: int) -> Ball:
    """Encloses what `dot` does where all k weights lie in one ball x, given sums over what they multiply.

    Theorem: proofs/Averages.v weighed_alike_encloses; proofs/TwoBalls.v alike_ball.
    """
    ax = np.abs(x.m)
    reach = float((ax + x.r).max()) + y.widest
    inflate = (1 + 4 * (k + 2) * U) * UP * UP
    lost = 4 * (k + 1 + extra) * (A.tiny + NORMAL) * (2 + reach) + TINY
    own, model = float(gamma(k + 2, U)), float(gamma(k + 2 + extra, A.u))
    r = (ax * ((own + model) * y.size + (1 + model) * y.r) + x.r * (1 + model) * (y.size + y.r)) * inflate + lost
    r[(y.size == 0) & (y.r == 0)] = 0.0
    largest = float((ax + x.r).max()) * y.widest * k * k
    return Ball(x.m * y.m, r if 4 * largest < A.big and model < np.inf else np.full_like(r, np.inf))
