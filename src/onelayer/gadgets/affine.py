"""One affine map: a bottleneck, a table of codes, a sum. Every layer that is nothing else is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.network.weights import Layer


@dataclass(frozen=True, eq=False)
class Affine(Gadget):
    kind: ClassVar[str] = "affine"
    depths: ClassVar[tuple[int, ...]] = (1,)

    layer: Layer

    def layers(self) -> tuple[Layer, ...]:
        return (self.layer,)

    def names(self) -> tuple[Words, ...]:
        return (number_names("channel", self.layer.width),)

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        return cls(layers[0])
