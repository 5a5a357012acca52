"""The numbers of 16 bits: float16 and bfloat16. NumPy has no bfloat16, so both are held in float32 arrays.

A float32 computes more finely than either, and every number of theirs is one of its own: what is exact in 16 bits
is exact in float32, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onelayer.network.weights import Array

Half = Literal["float16", "bfloat16"]


@dataclass(frozen=True)
class Format:
    """Numbers of ``bits`` significant bits, from 2^lowest on without loss, and below 2^highest."""

    name: Half
    bits: int
    lowest: int
    highest: int

    @property
    def whole(self) -> int:
        """Whole numbers up to here are numbers of the format."""
        return 1 << self.bits

    @property
    def largest(self) -> float:
        return float((2.0 - 2.0 ** (1 - self.bits)) * 2.0 ** (self.highest - 1))

    @property
    def room(self) -> float:
        """Values of units that a proof looks up, two to a cell, stay below this, so that nothing overflows."""
        return 2.0 ** (self.highest - 1) / 5

    def holds(self, values: Array) -> Array:
        """Which of the values are numbers of the format."""
        return np.asarray(nearest(values, self.name) == values)


FORMATS: dict[Half, Format] = {
    "float16": Format("float16", 11, -14, 16),
    "bfloat16": Format("bfloat16", 8, -126, 128),
}
#: The largest finite number of each.
LIMITS: dict[Half, float] = {name: format_.largest for name, format_ in FORMATS.items()}


def nearest(values: Array, dtype: Half) -> Array:
    """The nearest numbers of the dtype, ties to even, as float32; what is beyond its range becomes infinite."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = np.asarray(values).astype(np.float32, copy=False)
        if dtype == "float16":
            return single.astype(np.float16).astype(np.float32)
    # bfloat16 is the upper half of a float32: add just under half of its last bit, or just half if that bit is
    # set, and cut. A carry goes into the exponent as it should; only a NaN may not be touched by one.
    bits = single.view(np.uint32)
    kept = (bits >> np.uint32(16)) & np.uint32(1)
    kept += np.uint32(0x7FFF)
    kept += bits
    kept &= np.uint32(0xFFFF0000)
    result: Array = np.where(np.isnan(single), np.float32(np.nan), kept.view(np.float32))
    return result
