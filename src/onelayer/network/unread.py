"""Units that nothing reads: the same network without them.

A unit whose weights in the next layer are all 0 adds nothing to any sum, so that without it every other value is
the same number. Going back from the outputs, units that only such units read are unread, too. A layer in blocks
keeps its form: only whole blocks leave it, and only where the layer before it is a full one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.network.weights import Grouped, Layer, Linear, Transformer

Array = NDArray[Any]


def without_unread(network: Transformer) -> Transformer:
    """The network without the units of its stacks that nothing reads."""
    return replace(network, feedforward=cut_unread(network.feedforward), readout=cut_unread(network.readout))


def cut_unread(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """A stack without its unread units; what goes in and what comes out keep their widths."""
    if not layers:
        return ()
    live = np.ones(layers[-1].width, bool)
    kept = [live] * len(layers)  # outputs of each layer
    for i in range(len(layers) - 1, -1, -1):
        kept[i], live = _needs(layers[i], layers[i - 1] if i else None, live)
    first = layers[0]
    whole = np.ones(len(first.weight) if isinstance(first, Linear) else first.weight[..., 0].size, bool)
    return tuple(_cut(layer, rows, out) for layer, rows, out in zip(layers, [whole, *kept], kept, strict=False))


def _needs(layer: Layer, before: Layer | None, live: Array) -> tuple[Array, Array]:
    """Which outputs a layer keeps if these are read, and which inputs it reads then."""
    if not live.any():
        live = np.arange(len(live)) == 0  # a layer has at least one unit
    if isinstance(layer, Linear):
        return live, (layer.weight[:, live] != 0).any(axis=1)
    groups, inputs, outputs = layer.weight.shape
    blocks = live.reshape(groups, outputs).any(axis=1) | (not isinstance(before, Linear))
    return blocks.repeat(outputs), blocks.repeat(inputs)


def _cut(layer: Layer, rows: Array, outputs: Array) -> Layer:
    if isinstance(layer, Linear):
        return Linear(layer.weight[rows][:, outputs], layer.bias[outputs])
    return Grouped(layer.weight[outputs[:: layer.weight.shape[2]]], layer.bias[outputs])
