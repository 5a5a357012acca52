"""Kinks that can be spared: units that read the same number bend at different places of one line.

Between two others, relu(z - a) and relu(z - b) with a < t < b, a unit relu(z - t) can be replaced by
p relu(z - a) + (1 - p) relu(z - b) with p = (b - t) / (b - a). They are equal outside of a and b, and between them
differ by at most (t - a)(b - t) / (b - a): both are straight outside, and meet at a and b. So a unit can go and
leave its weights to its neighbours; without that, everything beyond it would bend.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.network.weights import Linear, Transformer

Array = NDArray[Any]
#: Relative: directions that differ by less are one.
SAME = 1e-6


class Kink(NamedTuple):
    """A unit of a full layer with another full layer behind it, and the units that bend next to it."""

    stack: str
    layer: int
    unit: int
    before: int
    after: int
    share: float  # of its weight that the one before takes


def find_kinks(network: Transformer) -> list[Kink]:
    """Every unit that bends between two others of the same direction."""
    found = []
    for stack in ("feedforward", "readout"):
        layers = getattr(network, stack)
        for i, (layer, behind) in enumerate(pairwise(layers)):
            if isinstance(layer, Linear) and isinstance(behind, Linear):
                found += [Kink(stack, i, *units) for units in _between(layer)]
    return found


def _between(layer: Linear) -> list[tuple[int, int, int, float]]:
    """Units with a neighbour on either side, and the share of the one before."""
    weight, bias = layer.weight.astype(np.float64), layer.bias.astype(np.float64)
    lines = defaultdict(list)
    size = np.abs(weight).max(axis=0)
    for j in np.flatnonzero(size).tolist():
        direction = tuple(np.round(weight[:, j] / size[j] / SAME).astype(np.int64).tolist())
        lines[direction].append((-bias[j] / size[j], j))
    found = []
    for units in lines.values():
        units.sort()
        for (low, before), (t, unit), (high, after) in zip(units, units[1:], units[2:], strict=False):
            if low < t < high:
                found.append((unit, before, after, (high - t) / (high - low)))
    return found


def spare(network: Transformer, kinks: list[Kink]) -> Transformer:
    """The network without these units, of which no two are neighbours; their neighbours take their weights."""
    stacks = {name: list(getattr(network, name)) for name in ("feedforward", "readout")}
    for (stack, i), some in _by_layer(kinks).items():
        layers = stacks[stack]
        size = np.abs(layers[i].weight.astype(np.float64)).max(axis=0)
        behind = layers[i + 1].weight.astype(np.float64)
        for kink in some:
            for unit, part in ((kink.before, kink.share), (kink.after, 1 - kink.share)):
                behind[unit] += part * size[kink.unit] / size[unit] * behind[kink.unit]
        left = np.ones(len(behind), bool)
        left[[kink.unit for kink in some]] = False
        layers[i] = Linear(layers[i].weight[:, left], layers[i].bias[left])
        layers[i + 1] = replace(layers[i + 1], weight=behind[left].astype(network.dtype))
    return replace(network, feedforward=tuple(stacks["feedforward"]), readout=tuple(stacks["readout"]))


def _by_layer(kinks: list[Kink]) -> dict[tuple[str, int], list[Kink]]:
    found = defaultdict(list)
    for kink in kinks:
        found[kink.stack, kink.layer].append(kink)
    return found
