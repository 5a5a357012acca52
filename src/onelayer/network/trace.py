"""The same forward pass, keeping every named intermediate value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from onelayer.network.forward import forward
from onelayer.network.weights import Array, Transformer


@dataclass(frozen=True)
class Trace:
    """Values by name: embedded, head0.logits, head0.attention, head0.averages, context, readout.0 ..."""

    values: Mapping[str, Array]
    channels: tuple[str, ...]
    names: Callable[[str], tuple[str, ...]] = lambda _: ()  # of the channels of a value, in words

    def __iter__(self) -> Iterator[str]:
        yield from self.values
        yield from self.channels

    def __getitem__(self, name: str) -> Array:
        if name in self.values:
            return self.values[name]
        if name in self.channels:  # a named residual channel, after attention
            return self.values["context"][..., self.channels.index(name)]
        raise KeyError(f"no value {name!r}; there are {', '.join([*self.values, *self.channels])}")


def trace(
    model: Transformer,
    X: Array,
    lengths: Array | None = None,
    names: Callable[[str], tuple[str, ...]] = lambda _: (),
) -> Trace:
    """Run the model on a small batch and keep everything. Memory grows with the widest layer times the tokens."""
    values: dict[str, Array] = {}

    def keep(name: str, value: Array) -> None:
        values[name] = value.copy()  # the pass goes on in the same memory

    values["output"] = forward(model, X, lengths, keep)
    return Trace(values, model.channels, names)
