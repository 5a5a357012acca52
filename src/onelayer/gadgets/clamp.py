"""Outputs kept within bounds: high - relu(high - low - relu(out - low)); the layer before subtracts low.

The search is the two layers themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words
from onelayer.network.weights import Array, Layer, Linear


@dataclass(frozen=True, eq=False)
class Clamp(Gadget):
    kind: ClassVar[str] = "clamp"
    depths: ClassVar[tuple[int, ...]] = (2,)

    room: Array  # [q] high - low
    high: Array  # [q]

    def layers(self) -> tuple[Layer, ...]:
        minus = -np.eye(len(self.high), dtype=self.high.dtype)
        return Linear(minus, self.room), Linear(minus.copy(), self.high)

    def names(self) -> tuple[Words, ...]:
        components = range(len(self.high))
        return tuple(f"room of component {i} below its largest value" for i in components), tuple(
            f"component {i} within its bounds" for i in components
        )

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        q = layers[-1].width
        if any(layer.weight.shape != (q, q) for layer in layers):
            return None
        return cls(layers[0].bias, layers[1].bias)
