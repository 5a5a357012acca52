"""What a readout's construction returns."""

from __future__ import annotations

from dataclasses import dataclass

from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.stacks import layers_of
from onelayer.network import Layer
from onelayer.readouts.false_hits import Fingerprints, Stored


@dataclass(frozen=True)
class Readout:
    """Gadgets from coordinates t >= 0 to answers, and how far t may be off before an answer can change."""

    gadgets: tuple[Gadget, ...]
    count: int  # plateaus, boxes, cells
    guard: float  # smallest distance of a stored coordinate to the end of its plateau
    stored: Stored | Fingerprints | None = None  # where a stored answer is given instead of a default
    kind: str = ""
    compared: str = ""  # why this one, instead of others

    @property
    def layers(self) -> tuple[Layer, ...]:
        return layers_of(self.gadgets)

    @property
    def parameters(self) -> int:
        return sum(layer.weight.size + layer.bias.size for layer in self.layers)
