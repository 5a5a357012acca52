"""Layers of a stack over balls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.kernel import Arithmetic, Array, Ball, add, exact, linear, relu


@dataclass(frozen=True)
class Layer:
    """y = x W + b; a block-diagonal W is kept as [groups, inputs, outputs]."""

    weight: Array
    bias: Array

    @property
    def inputs(self) -> int:
        return int(self.weight.shape[0] if self.weight.ndim == 2 else self.weight.shape[0] * self.weight.shape[1])

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        if self.weight.ndim == 2:
            return linear(x, self.weight, self.bias, A)
        groups, inputs, outputs = self.weight.shape
        parts = []
        for o in range(outputs):  # each output of a group is a short dot product
            weight = self.weight[:, :, o]
            split = x.reshape(-1, groups, inputs)
            product = Ball(split.m * weight, split.r * np.abs(weight))
            parts.append(_sum(product, weight, self.bias.reshape(groups, outputs)[:, o], A))
        m, r = (np.stack(a, axis=-1).reshape(len(x.m), -1) for a in ([p.m for p in parts], [p.r for p in parts]))
        return Ball(m, r)


def _sum(product: Ball, weight: Array, bias: Array, A: Arithmetic) -> Ball:
    """A group's products and bias added up: each group as a product with ones, its weights' rounding included."""
    ones = np.ones((product.m.shape[-1], 1))
    flat = product.reshape(-1, product.m.shape[-1])
    rounding = A.u + 2.0**-53
    inexact = np.frexp(np.abs(weight))[0] != 0.5
    slack = np.where(inexact & (weight != 0), np.abs(product.m) * rounding, 0.0) + 4 * (A.tiny + 2.0**-1022)
    total = linear(
        Ball(flat.m, (flat.r * (1 + 2 * rounding) + slack.reshape(flat.m.shape)) * (1 + 2.0**-40)), ones, None, A
    )
    return add(total.reshape(*product.m.shape[:-1]), exact(np.broadcast_to(bias, product.m.shape[:-1])), A)


def run_stack(layers: tuple[Layer, ...], x: Ball, A: Arithmetic) -> Ball:
    for i, layer in enumerate(layers):
        x = layer.apply(x, A)
        if i + 1 < len(layers):
            x = relu(x)
    return x
