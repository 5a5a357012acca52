"""What a gadget is: a small network with a name and a law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from onelayer.equality import EqualByContent
from onelayer.gadgets.line import Line
from onelayer.network.blocks import apply_stack
from onelayer.network.weights import Array, Layer

#: What each unit of a layer means, in words.
Words = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Gadget(EqualByContent, ABC):
    """A stack of layers, with ReLU between them, that stands for something.

    Two laws, tested for every gadget: ``search(h)`` is what the layers give, to the bit on stored inputs; and
    ``recognise(g.layers()) == g``. A subclass says where else its search is exact, and where it is not.
    """

    kind: ClassVar[str]
    #: How many layers such a gadget has.
    depths: ClassVar[tuple[int, ...]] = ()

    @abstractmethod
    def layers(self) -> tuple[Layer, ...]:
        """The weights that it stands for."""

    @abstractmethod
    def names(self) -> tuple[Words, ...]:
        """What each unit of each layer means."""

    @classmethod
    @abstractmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        """The one gadget that could have these layers, or None; it must not need more memory than they do."""

    @classmethod
    def recognise(cls, layers: tuple[Layer, ...]) -> Self | None:
        """The gadget that these layers are, all of them; None if they are not."""
        found = cls.parse(layers) if len(layers) in cls.depths_of(layers) else None
        if found is None or not same_layers(found.layers(), layers):
            return None
        vars(found)["dense"] = layers
        return found

    @classmethod
    def depths_of(cls, layers: tuple[Layer, ...]) -> Sequence[int]:  # noqa: ARG003
        """How many of the first layers could be a gadget of this kind, in the order in which to try."""
        return cls.depths

    def lines_of_cells(self) -> dict[str, Line]:
        """The input coordinates that it cuts into cells, each by what the cells are called."""
        return {}

    @property
    def searches(self) -> bool:
        """Whether its search is faster than its layers."""
        return False

    def search(self, h: Array) -> Array:
        """Outputs [..., outputs] for inputs [..., inputs]; where the search is not sure, the layers are asked."""
        tokens = h.reshape(-1, h.shape[-1])
        out, sure = self.find(tokens)
        unsure = np.flatnonzero(~sure)
        if unsure.size:
            out[unsure] = apply_stack(self.dense, tokens[unsure])
        return out.reshape(*h.shape[:-1], out.shape[-1])

    def find(self, t: Array) -> tuple[Array, Array]:
        """What comes out for tokens t [T, inputs], and for which of them that is sure."""
        return np.empty((len(t), self.dense[-1].width), t.dtype), np.zeros(len(t), bool)

    @cached_property
    def dense(self) -> tuple[Layer, ...]:
        """The layers, made once."""
        return self.layers()

    def shift_outputs(self, by: Array) -> Self:
        """The same with ``by`` [q] added to its outputs, for gadgets that end in values and a constant."""
        constant: Array = self.constant  # type: ignore[attr-defined]
        return replace(self, constant=(constant + by).astype(constant.dtype))  # type: ignore[call-arg]


def same_layers(found: Sequence[Layer], expected: Sequence[Layer]) -> bool:
    """Equal kinds and numbers; zeros may differ in sign."""
    return len(found) == len(expected) and all(
        type(a) is type(b)
        and a.weight.dtype == b.weight.dtype
        and np.array_equal(a.weight, b.weight)
        and np.array_equal(a.bias, b.bias)
        for a, b in zip(found, expected, strict=True)
    )


def beside(carried: int, units: int) -> Words:
    """Of groups of this many units; the first of each carries something along."""
    rest = [f", unit {j}, always 0" for j in range(1, units)]
    return tuple(f"carried {i}{unit}" for i in range(carried) for unit in ("", *rest))


def number_names(what: str, count: int) -> Words:
    return tuple(f"{what} {i}" for i in range(count))
