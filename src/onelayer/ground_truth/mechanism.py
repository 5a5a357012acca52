"""The mechanism of a model as data: what every channel carries and where it points, and who reads and writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.gadgets.names import residual_names
from onelayer.model import Model
from onelayer.network.weights import Array, Linear, Transformer

Edge = tuple[str, str]


@dataclass(frozen=True)
class Mechanism:
    """Channels by name, the direction that each is written along, and the true edges between channels and parts.

    A part is "head 0 query", "head 0 key", "head 0 value", "head 0 output" or "readout". An edge is (channel, part)
    where the part reads the channel, (part, channel) where it writes it.
    """

    channels: tuple[str, ...]
    directions: Array  # [channels, width]: the gauge
    edges: frozenset[Edge]
    units: dict[str, tuple[str, ...]]  # what every unit of every value is called
    pattern: str  # what the heads attend to
    heads: int

    @property
    def readers(self) -> Array:
        """[width, channels]: a stream times a column is the channel's value."""
        return np.linalg.inv(self.directions)

    @property
    def parts(self) -> tuple[str, ...]:
        """Whoever reads or writes channels."""
        return tuple(sorted({part for edge in self.edges for part in edge if part not in self.channels}))

    def to_json(self) -> dict[str, Any]:
        return {
            "channels": list(self.channels),
            "directions": self.directions.tolist(),
            "edges": sorted(map(list, self.edges)),
            "units": {value: list(names) for value, names in self.units.items()},
            "pattern": self.pattern,
            "heads": self.heads,
        }

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Mechanism:
        units = {value: tuple(names) for value, names in entry["units"].items()}
        edges = frozenset((a, b) for a, b in entry["edges"])
        directions = np.array(entry["directions"])
        return Mechanism(tuple(entry["channels"]), directions, edges, units, entry["pattern"], entry["heads"])


def mechanism_of(model: Model, G: Array) -> Mechanism:
    """Read off a model that is not mixed yet: its weights are 0 wherever there is no edge."""
    channels = residual_names(model.transformer)
    units = {line.value: line.units for line in model.described()}
    same = not (model.transformer.attention.W_Q.any() and model.transformer.attention.W_K.any())
    pattern = "every place alike" if same else "places with a large level, more than others"
    edges = frozenset(edges_of(model.transformer, channels))
    return Mechanism(channels, G, edges, units, pattern, model.transformer.attention.heads)


def edges_of(model: Transformer, channels: tuple[str, ...]) -> set[Edge]:
    a, first = model.attention, model.readout[0]
    assert isinstance(first, Linear)
    found = {(channels[c], "readout") for c in np.flatnonzero(first.weight.any(axis=1))}
    for head in range(a.heads):
        for name, W in (("query", a.W_Q), ("key", a.W_K), ("value", a.W_V)):
            found |= {(channels[c], f"head {head} {name}") for c in np.flatnonzero(W[head].any(axis=1))}
        found |= {(f"head {head} output", channels[c]) for c in np.flatnonzero(a.W_O[head].any(axis=0))}
    return found
