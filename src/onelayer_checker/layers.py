"""Layers of a stack over balls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.exactness import exact_products
from onelayer_checker.kernel import Arithmetic, Array, Ball, joined, linear, relu

PART = 1 << 12  # blocks


@dataclass(frozen=True)
class Layer:
    """y = x W + b; a block-diagonal W is kept as [groups, inputs, outputs]."""

    weight: Array
    bias: Array

    @property
    def inputs(self) -> int:
        return int(self.weight[..., 0].size)

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        """One product per group, its bias a term of the sum; a full matrix is one group."""
        W = self.weight.reshape(-1, *self.weight.shape[-2:])
        groups, inputs, outputs = W.shape
        split = Ball(*(a.reshape(-1, groups, inputs).swapaxes(0, 1) for a in (x.m, x.r)))
        bias = self.bias.reshape(groups, 1, outputs)
        y = linear(split, W, bias, A)
        if (x.r == 0).any():
            y = Ball(y.m, np.where(exact_products(split, W, bias, A) & np.isfinite(y.r), 0.0, y.r))
        return Ball(*(a.swapaxes(0, 1).reshape(len(x.m), -1) for a in (y.m, y.r)))


def run_stack(layers: tuple[Layer, ...], x: Ball, A: Arithmetic) -> Ball:
    """ReLU between the layers. Of a full layer and a block-diagonal one, a few blocks are evaluated at a time."""
    if len(layers) == 1:
        return layers[0].apply(x, A)
    (W, b), (V, c) = ((layer.weight, layer.bias) for layer in layers[:2])
    if len(layers) == 2 or W.ndim != 2 or V.ndim != 3:
        return run_stack(layers[1:], relu(layers[0].apply(x, A)), A)
    _, a, o = V.shape
    parts = []
    for i in range(0, len(V), PART):
        k = i + PART
        y = Layer(W[:, i * a : k * a], b[i * a : k * a]).apply(x, A)
        parts.append(relu(Layer(V[i:k], c[i * o : k * o]).apply(relu(y), A)))
    return run_stack(layers[2:], joined(parts), A)
