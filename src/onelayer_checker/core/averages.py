"""Averages with equal weights: one sum over the tokens of a sequence instead of a product for every query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import NORMAL, TINY, UP, Arithmetic, Array, Ball, U, exact, gamma, softmax
from onelayer_checker.core.exactness import sums_fit


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over k balls [..., k, b] as float64 computes them, of midpoints, of their sizes and of radii; and the
    largest size of a number in the balls."""

    m: Array
    size: Array
    r: Array
    widest: float
    whole: bool = False  # all of them are known whole numbers

    @staticmethod
    def of(y: Ball) -> Totals:
        size = np.abs(y.m)
        sums = y.m.sum(axis=-2), size.sum(axis=-2), y.r.sum(axis=-2)
        return Totals(*sums, float((size + y.r).max()), are_whole(y))


def are_whole(y: Ball) -> bool:
    """Whether all of the balls are known whole numbers."""
    return bool(not y.r.any() and (y.m == np.rint(y.m)).all())


def mean_alike(y: Totals, k: int, A: Arithmetic) -> Ball:
    """Encloses the mean of k balls, which softmax gives where all logits are 0, given sums over them."""
    mean = averaged_exactly(y, k, A)
    if mean is not None:
        return mean
    return weighed_alike(softmax(exact(np.zeros((1, k))), True, A)[:, :1], y, k, A, extra=4)


def averaged_exactly(y: Totals, k: int, A: Arithmetic) -> Ball | None:
    """The mean of k whole numbers, if k is a power of two, up to 1/u, and no sum is rounded; None otherwise.

    The largest exponentials are e^0 = 1, and k of them add up to k: each weight is 1/k, a power of two, before or
    after the sum. Numbers that add up in any order, divided by k or not, are whole numbers times a power of two.
    Theorem: proofs/Softmax.v equal_average_exact, equal_weights.
    """
    if not (y.whole and k <= A.whole and k & (k - 1) == 0 and sums_fit(y.size, A).all()):
        return None
    return exact(y.m / k)


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
    calm = max(4 * largest, 8 * lost) < A.big and model < np.inf
    return Ball(x.m * y.m, r if calm else np.full_like(r, np.inf))
