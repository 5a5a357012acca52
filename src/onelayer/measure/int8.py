"""The forward pass with full layers of 8 bits, as dynamic quantisation makes them; the rest stays in the dtype.

A weight is a whole number up to 127 times a scale of its output, and what it is multiplied with one times a scale
of its token; products are summed as whole numbers. These are the finest scales in use: PyTorch's `quantize_dynamic`
has one for all weights of a layer and one for all tokens of a batch, and keeps fewer answers as a rule. Grouped
layers, attention and tables are not quantised, there or here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onelayer.network.blocks import attention_in_blocks, over_threads, sequence_blocks
from onelayer.network.forward import forward
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Grouped, Layer, Linear, Transformer

#: The largest whole number of 8 bits with a sign.
LARGEST = 127
#: Scratch of one block of tokens in a stack.
BLOCK_BYTES = 1 << 24


def int8_outputs(model: Transformer, X: Array, lengths: Array | None, i: Array, k: Array) -> Array:
    """What a model gives at token k[a] of sequence i[a], [answers, q]; X and lengths as in `forward`."""
    used, row = np.unique(i, return_inverse=True)
    X, lengths = X[used], None if lengths is None else lengths[used]
    out = np.empty((*X.shape[:2], model.output_width), model.dtype)

    def run(rows: slice | Array) -> None:
        seen = None if lengths is None else lengths[rows]
        longest = X.shape[1] if seen is None else int(seen.max())
        out[rows, :longest] = forward(
            model,
            X[rows, :longest],
            seen,
            feedforward=quantised_stack,
            attention=attention_in_blocks,
            readout=quantised_stack,
        )

    over_threads(run, list(sequence_blocks(X, lengths, model.dtype.itemsize)))
    return np.asarray(out[row, k])


def quantise_weights(model: Transformer) -> tuple[Transformer, int]:
    """The model whose full layers have weights of 8 bits, as numbers of its dtype, and how many changed."""
    stacks = [tuple(map(_rounded, layers)) for layers in (model.feedforward, model.readout)]
    pairs = zip((*model.feedforward, *model.readout), (*stacks[0], *stacks[1]), strict=True)
    changed = sum(int(np.count_nonzero(a.weight != b.weight)) for a, b in pairs)
    return replace(model, feedforward=stacks[0], readout=stacks[1]), changed


def _rounded(layer: Layer) -> Layer:
    if isinstance(layer, Grouped):
        return layer
    whole, scale = to_whole(layer.weight, axis=0)
    return Linear((whole * scale).astype(layer.weight.dtype), layer.bias)


def quantised_stack(layers: tuple[Layer, ...], h: Array) -> Array:
    """As `run_stack`, some tokens at a time."""
    tokens = h.reshape(-1, h.shape[-1])
    out = np.empty((len(tokens), layers[-1].width), h.dtype)
    step = max(1, BLOCK_BYTES // (max(layer.width for layer in layers) * 8))
    for start in range(0, len(tokens), step):
        z = tokens[start : start + step]
        for place, layer in enumerate(layers):
            z = apply_layer(layer, z) if isinstance(layer, Grouped) else _product(layer, z)
            z = np.maximum(z, 0) if place + 1 < len(layers) else z
        out[start : start + step] = z
    return out.reshape(*h.shape[:-1], out.shape[-1])


def _product(layer: Layer, z: Array) -> Array:
    """h W + b: whole numbers are multiplied exactly, then scaled."""
    (weight, outputs), (tokens, inputs) = to_whole(layer.weight, axis=0), to_whole(z, axis=1)
    return np.asarray((tokens @ weight * inputs * outputs + layer.bias).astype(z.dtype))


def to_whole(values: Array, axis: int) -> tuple[Array, Array]:
    """The nearest whole numbers of 8 bits, as float64, and their scale, one for each line along the axis."""
    scale = np.abs(values.astype(np.float64)).max(axis=axis, keepdims=True) / LARGEST
    scale = np.where(scale == 0, 1.0, scale)
    return np.rint(values / scale), scale
