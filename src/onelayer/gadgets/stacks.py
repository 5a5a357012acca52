"""The gadgets of a transformer: which layers each of them covers, and what they give together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, zip_longest
from typing import Any

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget, Words
from onelayer.gadgets.registry import GADGETS
from onelayer.gadgets.staircase import Staircase
from onelayer.network.blocks import apply_stack
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Attention, Embedding, Layer, Transformer

STACKS = ("feedforward", "readout")


@dataclass(frozen=True)
class Covered:
    """Layers ``start`` to ``stop`` of a stack are a gadget of some kind: a hint, until the weights are read."""

    stack: str
    start: int
    stop: int
    kind: str

    def to_json(self) -> list[Any]:
        return [self.stack, self.start, self.stop, self.kind]

    @staticmethod
    def from_json(entry: list[Any]) -> Covered:
        stack, start, stop, kind = entry
        if stack not in STACKS or type(start) is not int or type(stop) is not int or type(kind) is not str:
            raise ValueError(f"{entry!r} does not say which layers are a gadget")
        return Covered(stack, start, stop, kind)


@dataclass(frozen=True)
class Part:
    """A gadget, and the layers that it was recognised in."""

    covered: Covered
    gadget: Gadget

    def unit_names(self, layer: int) -> Words:
        """What the units of a layer, counted from the gadget's first, are called: stack / gadget / unit."""
        path = f"{self.covered.stack} / {self.covered.kind} / "
        return tuple(path + name for name in self.gadget.names()[layer])


Parts = dict[str, tuple[Part, ...]]


def layers_of(gadgets: Sequence[Gadget]) -> tuple[Layer, ...]:
    return tuple(layer for gadget in gadgets for layer in gadget.dense)


def compose(
    attention: Attention,
    embedding: Embedding | None = None,
    feedforward: Sequence[Gadget] = (),
    readout: Sequence[Gadget] = (),
    channels: tuple[str, ...] = (),
) -> tuple[Transformer, tuple[Covered, ...]]:
    """A transformer whose stacks are made of gadgets, and which of its layers are which of them."""
    stacks = layers_of(feedforward), layers_of(readout)
    return Transformer(attention, embedding, *stacks, channels), cover(feedforward, readout)


def cover(feedforward: Sequence[Gadget], readout: Sequence[Gadget]) -> tuple[Covered, ...]:
    covered: list[Covered] = []
    for stack, gadgets in zip(STACKS, (feedforward, readout), strict=True):
        start = 0
        for gadget in gadgets:
            covered.append(Covered(stack, start, start + len(gadget.dense), gadget.kind))
            start = covered[-1].stop
    return tuple(covered)


def read_parts(model: Transformer, hints: Sequence[Covered] = ()) -> Parts:
    """The gadgets of both stacks. Hints that the weights do not bear out are not believed."""
    return {
        stack: read_stack(getattr(model, stack), stack, [h for h in hints if h.stack == stack]) for stack in STACKS
    }


def covered_by(parts: Parts) -> tuple[Covered, ...]:
    """Which layers the gadgets of both stacks cover, in order."""
    return tuple(part.covered for stack in STACKS for part in parts[stack])


def read_stack(
    layers: tuple[Layer, ...], stack: str = "readout", hints: Sequence[Covered] = ()
) -> tuple[Part, ...]:
    parts: list[Part] = []
    start = 0
    hinted = _verify_hints(layers, hints)
    while start < len(layers):
        gadget = hinted[len(parts)] if hinted else _recognise(layers[start:])
        stop = start + len(gadget.dense)
        parts.append(Part(Covered(stack, start, stop, gadget.kind), gadget))
        start = stop
    return tuple(parts)


def _verify_hints(layers: tuple[Layer, ...], hints: Sequence[Covered]) -> list[Gadget]:
    """The gadgets that the hints name, if they cover these layers and each is what its layers are; else none.

    That a layer is an affine map is always so: hints that say nothing else are not worth believing.
    """
    ends = [0, *(hint.stop for hint in hints)]
    if [hint.start for hint in hints] != ends[:-1] or ends[-1] != len(layers) or ends != sorted(set(ends)):
        return []
    if all(hint.kind == Affine.kind for hint in hints):
        return []
    kinds = {kind.kind: kind for kind in GADGETS}
    found = [kinds[h.kind].recognise(layers[h.start : h.stop]) for h in hints if h.kind in kinds]
    gadgets = [gadget for gadget in found if gadget is not None]
    return gadgets if len(gadgets) == len(hints) else []


def _recognise(layers: tuple[Layer, ...]) -> Gadget:
    for kind in GADGETS:
        for depth in kind.depths_of(layers):
            found = kind.recognise(layers[:depth]) if depth <= len(layers) else None
            if found is not None:
                return found
    return Affine(layers[0])


def find_search(layers: tuple[Layer, ...], parts: Sequence[Part]) -> Callable[[Array], Array] | None:
    """A search that gives what these layers give, by the searches of their gadgets; None if there are none."""
    found = list(_searches(parts))
    if not any(found):
        return None
    steps: list[Callable[[Array], Array]] = []
    for searching, group in groupby(zip(parts, found, strict=True), lambda pair: pair[1] is not None):
        some = list(group)
        if not searching:
            dense = layers[some[0][0].covered.start : some[-1][0].covered.stop]
            steps.append(partial(apply_layer, *dense) if len(dense) == 1 else partial(apply_stack, dense))
            continue
        for part, searches in some:
            first = layers[part.covered.start].weight
            for search in searches or ():
                # The first search makes what later ones use: here, and not in every thread at once.
                search(np.zeros((1, first[..., 0].size), first.dtype))
                steps.append(search)
    return partial(_run, steps)


def _searches(parts: Sequence[Part]) -> Iterator[tuple[Callable[[Array], Array], ...] | None]:
    """Of each part, its search; none at all if the one before it has searched for both, None if it has none."""
    both = None
    for part, after in zip_longest(parts, parts[1:]):
        if both is not None:
            both = None
            yield ()
            continue
        both = Staircase.of(part.gadget, None if after is None else after.gadget)
        if both is not None:
            yield (both.search,)
        else:
            yield (part.gadget.search,) if part.gadget.searches else None


def _run(steps: list[Callable[[Array], Array]], h: Array) -> Array:
    z = h.reshape(-1, h.shape[-1])
    for i, step in enumerate(steps):
        z = step(z)
        if i + 1 < len(steps):
            np.maximum(z, 0, out=z)
    return z.reshape(*h.shape[:-1], z.shape[-1])
