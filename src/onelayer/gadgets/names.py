"""What the channels of every value of a forward pass mean, in words: stack / gadget / unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Words, number_names
from onelayer.gadgets.stacks import STACKS, Parts
from onelayer.network.weights import Array, Transformer

#: A sum of more channels than this is not spelled out.
SPELLED = 3


def unit_names(model: Transformer, parts: Parts, value: str) -> Words:
    """Of the channels of a value, by the name under which a trace keeps it."""
    first, _, rest = value.partition(".")
    if first in STACKS and rest.isdigit():
        return _of_layer(model, parts, first, int(rest))
    if value == "embedded":
        return embedded_names(model)
    if value == "context":
        return residual_names(model)
    if value == "output":
        last = len(model.readout) - 1
        return _of_layer(model, parts, "readout", last) if model.readout else residual_names(model)
    head = int(first.removeprefix("head")) if first.removeprefix("head").isdigit() else model.attention.heads
    if head < model.attention.heads and rest in ("queries", "keys", "values", "averages"):
        return head_names(model, head, rest)
    if head < model.attention.heads and rest in ("logits", "attention"):
        return ()  # one number per pair of tokens: no channels
    raise KeyError(f"no value {value!r} in the forward pass of this model")


@dataclass(frozen=True)
class Described:
    """A value of the forward pass, and the numbers that make it: what `inspect` shows in a line."""

    value: str  # by which a trace keeps it
    made_by: str  # a gadget, the embedding, the attention
    numbers: int  # weights and biases
    units: Words


def describe_units(model: Transformer, parts: Parts) -> list[Described]:
    """Every value from the embedding to the output, in order, with names for all of its channels."""
    tensors, found = list(model.tensors()), []

    def add(value: str, made_by: str, prefix: str) -> None:
        numbers = sum(array.size for name, array in tensors if name.startswith(prefix))
        units = unit_names(model, parts, value)
        found.append(Described(value, made_by, numbers, units))

    def add_stack(stack: str) -> None:
        for part in parts[stack]:
            for i in range(part.covered.start, part.covered.stop):
                add(f"{stack}.{i}", part.covered.kind, f"{stack}.{i}.")

    add("embedded", "embedding", "embedding.")
    add_stack("feedforward")
    for head in range(model.attention.heads):
        for value in ("queries", "keys", "averages"):
            add(f"head{head}.{value}", "attention", "head")  # its numbers are counted once, below
    add("context", "attention", "attention.")
    add_stack("readout")
    return found


def _of_layer(model: Transformer, parts: Parts, stack: str, layer: int) -> Words:
    for part in parts[stack]:
        if part.covered.start <= layer < part.covered.stop:
            if stack == "feedforward" and layer + 1 == len(model.feedforward):
                return tuple(f"{stack} / {part.covered.kind} / {name}" for name in residual_names(model))
            if stack == "readout" and layer == 0 and isinstance(part.gadget, Affine):
                return tuple(f"{stack} / {name}" for name in number_names("coordinate", part.gadget.layer.width))
            return part.unit_names(layer - part.covered.start)
    raise KeyError(f"the {stack} has no layer {layer}")


def residual_names(model: Transformer) -> Words:
    """Channels of the residual stream that attention reads and writes."""
    width = int(model.attention.W_Q.shape[1])
    return model.channels if len(model.channels) == width else number_names("channel", width)


def embedded_names(model: Transformer) -> Words:
    """Channels of what the embedding gives; without layers before the attention, the residual stream."""
    e = model.embedding
    if e is None:
        return residual_names(model) if not model.feedforward else number_names("x", model.token_width)
    table = e.table if e.lift is None else e.lift
    assert table is not None
    if not model.feedforward and len(model.channels) == table.shape[1]:
        return model.channels
    placed = np.zeros_like(table[:1]) if e.positions is None else e.positions
    return tuple(
        _describe_embedding(table, bool(placed[:, c].any()), c, e.lift is not None) for c in range(table.shape[1])
    )


def _describe_embedding(table: Array, placed: bool, c: int, real: bool) -> str:
    used = np.flatnonzero(table[:, c])
    own = ""
    if real and used.size:
        own = " + ".join(f"x{i}" for i in used[:SPELLED].tolist()) + (" + ..." if used.size > SPELLED else "")
    elif not real:
        own = f"column {c} of the token table"
    if placed:
        return f"{own} + place" if own else f"place, channel {c}"
    return own or f"channel {c}, always 0"


def head_names(model: Transformer, head: int, what: str) -> Words:
    """Queries, keys, values or averages of a head: which channels each of its coordinates reads."""
    a, channels = model.attention, residual_names(model)
    one = {"queries": "query", "keys": "key", "values": "value", "averages": "average of value"}[what]
    weight = {"queries": a.W_Q, "keys": a.W_K}.get(what, a.W_V)[head]
    bias = {"queries": a.b_Q, "keys": a.b_K}.get(what)
    return tuple(
        f"head {head} / {one} {i} ({_sum(weight[:, i], channels, bias is not None and bool(bias[head, i]))})"
        for i in range(weight.shape[1])
    )


def _sum(column: Array, channels: Words, constant: bool) -> str:
    used = np.flatnonzero(column)
    said = [channels[i] for i in used[:SPELLED]] + (["..."] if used.size > SPELLED else [])
    return " + ".join(said + ["constant"] * constant) or "always 0"
