"""Steps along a coordinate, in order: how many of them are reached is a lane, or a digit of an own fingerprint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer.equality import EqualByContent
from onelayer.network.weights import Array


@dataclass(frozen=True, eq=False)
class PrintSteps(EqualByContent):
    """A digit of the own fingerprint: how many steps along a coordinate are reached."""

    coordinate: int
    slope: Array
    bias: Array

    def count(self, z: Array) -> tuple[Array, Array]:
        return count_steps(self.slope, self.bias, z)


def count_steps(slope: Array, bias: Array, z: Array) -> tuple[Array, Array]:
    """How many steps relu(1 - relu(bias - slope z)) each z reaches, and whether the layers would say just that."""
    slope, bias, z = (a.astype(np.float64) for a in (slope, bias, z))
    found = np.searchsorted(bias / slope, z, side="right")
    return found, z <= np.append((bias - 1) / slope, np.inf).take(found)
