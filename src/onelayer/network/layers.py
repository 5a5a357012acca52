"""One linear map on many tokens, with a full or a block-diagonal matrix."""

from __future__ import annotations

from onelayer.network.weights import Array, Grouped, Layer
from onelayer.problems.blocks import product

#: Blocks of grouped layers with more inputs are multiplied as matrices.
LARGE_BLOCK = 16


def by_token(h: Array, weight: Array) -> Array:
    """h @ weight for h [..., width], of all tokens together: NumPy would make a product of each sequence."""
    return product(h.reshape(-1, h.shape[-1]), weight).reshape(*h.shape[:-1], weight.shape[-1])


def apply_layer(layer: Layer, h: Array) -> Array:
    """h W + b for h [..., inputs]."""
    if isinstance(layer, Grouped):
        y = _by_group(layer, h.reshape(-1, h.shape[-1])).reshape(*h.shape[:-1], layer.width)
    else:
        y = by_token(h, layer.weight)
    y += layer.bias
    return y


def _by_group(layer: Grouped, z: Array) -> Array:
    groups, inputs, outputs = layer.weight.shape
    split = z.reshape(-1, groups, inputs)
    if inputs > LARGE_BLOCK:
        y: Array = (split.swapaxes(0, 1) @ layer.weight).swapaxes(0, 1).reshape(-1, groups * outputs)
        return y
    y = split[:, :, 0, None] * layer.weight[:, 0]
    for i in range(1, inputs):
        y += split[:, :, i, None] * layer.weight[:, i]
    return y.reshape(-1, groups * outputs)
