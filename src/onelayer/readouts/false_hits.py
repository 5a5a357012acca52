"""How many unknown inputs land on a plateau: a bound from how densely they lie around stored coordinates.

An unknown input is taken for a stored one if its coordinate comes within ``reach`` of a stored one in its row. Let
d be the distance to the nearest. If unknown inputs are nowhere denser than between 0 and some h > reach on average,
then

    P(d <= reach)  <=  reach / h * P(d <= h).

P(d <= h) is met often enough to be estimated where P(d <= reach) is not. The bound takes for h the 8th, the 32nd,
the 128th and the 512th smallest distance of m drawn unknown inputs, P(d <= h) at its upper limit, and the largest
of the results. It assumes that drawn ones are like those to come, and that their density does not rise any further
below the first h. Should a larger share of them come within reach, it does rise, and that share, at its upper
limit, is the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.readouts.rows import Rows

Array = NDArray[Any]

#: The density of unknown inputs is estimated from this many of the nearest.
NEAREST = (8, 32, 128, 512)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Stored:
    """The coordinates that a table with a default knows, and how near to one of them an answer is given."""

    rows: Rows
    coordinates: int
    reach: float

    assumes = "they lie nowhere denser around stored contexts than sequences drawn at random do"

    def bound(self, t: Array) -> float:
        """Upper bound on the share of unknown inputs taken for stored ones, from the coordinates [T, c] of some."""
        return bound(self.distances(t), self.reach)

    def distances(self, t: Array) -> Array:
        """Of coordinates [T, c] to the nearest stored ones in their rows."""
        row = np.searchsorted((self.rows.cells.low + self.rows.cells.high) / 2, t[:, 0])
        z = t[np.arange(len(t)), self.rows.coordinate[row]].astype(np.float64)
        nearest = np.full(len(t), np.inf)
        at = np.searchsorted(self._along, self._shift(row, z))
        for neighbour in (np.maximum(at - 1, 0), np.minimum(at, len(self.rows.z) - 1)):
            here = self.rows.row[neighbour] == row
            nearest = np.where(here, np.minimum(nearest, np.abs(self.rows.z[neighbour] - z)), nearest)
        # What lies below every stored coordinate is put at 0 by a ReLU: all at one point, which is hit or not.
        return np.where((z == 0) & (nearest > self.reach), np.inf, nearest)

    @cached_property
    def _along(self) -> Array:
        """Stored coordinates, row after row, as one ascending line."""
        return self._shift(self.rows.row, self.rows.z)

    def _shift(self, row: Array, z: Array) -> Array:
        if self.coordinates == 1:  # rows are pieces of the line itself
            return z
        low, high = float(self.rows.z.min()), float(self.rows.z.max())
        return np.asarray(row * (high - low + 3.0) + np.clip(z, low - 1.0, high + 1.0))


@dataclass(frozen=True)
class Fingerprints:
    """Stored answers with one of this many fingerprints of their inputs."""

    values: int

    assumes = "the fingerprint of an unknown input and the one stored where it looks agree by chance"

    def bound(self, t: Array) -> float:  # noqa: ARG002
        return 1.0 / self.values


def bound(distances: Array, reach: float) -> float:
    """Upper bound on the share of unknown inputs within ``reach``, from the distances of some."""
    d, m = np.sort(distances), len(distances)
    if m < NEAREST[0]:
        return 1.0
    found = max(upper_limit(k, m) * reach / max(reach, float(d[k - 1])) for k in NEAREST if k <= m)
    inside = int(np.searchsorted(d, reach, side="right"))
    return max(found, upper_limit(inside, m)) if inside > m * found else found


def upper_limit(k: int, m: int) -> float:
    """The largest p for which k or fewer successes in m tries still have a chance of 5% (Clopper and Pearson)."""
    if k >= m:
        return 1.0
    i = np.arange(k + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((m - i[:-1]) / i[1:]))])  # log of m over i
    low, high = k / m, 1.0
    for _ in range(60):
        p = (low + high) / 2
        chance = float(np.exp(ways + i * math.log(p) + (m - i) * math.log1p(-p)).sum()) if p < 1 else 0.0
        low, high = (p, high) if chance > 1 - CONFIDENCE else (low, p)
    return high
