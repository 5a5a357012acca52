"""Units relu(<a, h> + b), added up: one coordinate with kinks, or fitted units of a continuous stream.

The sums have many terms, so there is no search that would give the same bits; the layers are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.network.weights import Array, Layer, Linear


@dataclass(frozen=True, eq=False)
class Ridges(Gadget):
    kind: ClassVar[str] = "ridges"

    weight: Array  # [inputs, M]
    bias: Array  # [M]
    out: Array  # [M, q]
    constant: Array  # [q]

    def layers(self) -> tuple[Layer, ...]:
        return Linear(self.weight, self.bias), Linear(self.out, self.constant)

    def names(self) -> tuple[Words, ...]:
        units = number_names("unit", len(self.bias))
        if len(self.weight) == 1 and (self.weight == 1).all():
            units = tuple(f"kink {i} at {-b:.6g}" for i, b in enumerate(self.bias.tolist()))
        return units, number_names("component", len(self.constant))

    @classmethod
    def depths_of(cls, layers: tuple[Layer, ...]) -> Sequence[int]:
        return (2,) if len(layers) == 2 else ()  # two affine maps with more behind them may be anything

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        if not (isinstance(layers[0], Linear) and isinstance(layers[1], Linear)):
            return None
        first, second = layers
        return cls(first.weight, first.bias, second.weight, second.bias)
