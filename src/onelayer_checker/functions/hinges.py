"""A readout of one number with hinges: R(y) = constant + sum of out_i max(y - knot_i, 0), on intervals of y.

Values at the knots and slopes between them are exact rational numbers, rounded once. Between two points of an
interval R differs by a slope times their distance, and the slope lies between the least and the largest of the
pieces that the interval meets.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.graph import Network

#: Hinges that one readout may have, and how large its numbers may be.
MOST, LARGEST = 1 << 12, 2.0**60
#: What covers the roundings of a value: a few units of its terms.
FEW = 2.0**-48


@dataclass(frozen=True)
class Hinges:
    """R on its pieces: piece i reaches from knot i - 1 to knot i, without end on either side."""

    knots: Array  # [m] rising
    values: Array  # [m] at the knots
    slopes: Array  # [m + 1] of the pieces
    least: tuple[Array, ...]  # level l: the least slope of 2^l pieces from each on
    largest: tuple[Array, ...]

    def value(self, y: Array) -> tuple[Array, Array]:
        """R(y), and at least how far off that is."""
        at = np.searchsorted(self.knots, y)
        nearest = np.maximum(at - 1, 0)
        step = self.slopes[at] * (y - self.knots[nearest])
        size = np.abs(self.values[nearest]) + np.abs(step)
        return self.values[nearest] + step, size * FEW + TINY

    def slope(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The middle of the slopes of all pieces that [low, high] meets, and at least their distance from it."""
        first, last = np.searchsorted(self.knots, low, "left"), np.searchsorted(self.knots, high, "right")
        level = np.frexp(last - first + 1.0)[1] - 1  # 2^level pieces, twice, cover those from the first to the last
        least, largest = np.empty_like(low), np.empty_like(low)
        for one in np.unique(level):
            at = level == one
            a, b = first[at], last[at] + 1 - (1 << int(one))
            least[at] = np.minimum(self.least[one][a], self.least[one][b])
            largest[at] = np.maximum(self.largest[one][a], self.largest[one][b])
        middle = least / 2 + largest / 2
        radius = np.maximum(largest - middle, middle - least) * UP + np.abs(middle) * FEW + TINY
        return middle, np.where(largest > least, radius, np.abs(middle) * FEW + TINY)


def recognise(network: Network) -> Hinges | None:
    """The readout as such a function, if that is exactly what it is: one number in, one out, unit slopes."""
    layers = (network.bottleneck, *network.readout.layers)
    if len(layers) != 2 or layers[1].weight.ndim != 2:
        return None
    (W, b), (V, c) = ((layer.weight, layer.bias) for layer in layers)
    if W.shape[0] != 1 or V.shape[1] != 1 or not (W == 1).all() or len(b) > MOST:
        return None
    if not max(np.abs(b).max(), np.abs(V).max(), abs(float(c[0]))) <= LARGEST:
        return None
    spend(f"{len(b):,} hinges", 2e4 * len(b))
    order = np.argsort(-b, kind="stable")
    return _pieces(-b[order], V[order, 0], float(c[0]))


def _pieces(knots: Array, out: Array, constant: float) -> Hinges:
    exact = [Fraction(x) for x in knots.tolist()]
    slope, value = Fraction(0), Fraction(constant)
    slopes, values = [slope], [value]
    for (here, there), turn in zip(pairwise([*exact, exact[-1]]), out.tolist(), strict=True):
        slope += Fraction(turn)
        value += slope * (there - here)
        slopes.append(slope)
        values.append(value)
    rounded = np.array([float(x) for x in slopes])
    least, largest = [rounded], [rounded]
    while 2 << len(least) - 1 <= len(rounded):
        half = 1 << len(least) - 1
        least.append(np.minimum(least[-1][:-half], least[-1][half:]))
        largest.append(np.maximum(largest[-1][:-half], largest[-1][half:]))
    return Hinges(knots, np.array([float(x) for x in values[:-1]]), rounded, tuple(least), tuple(largest))
