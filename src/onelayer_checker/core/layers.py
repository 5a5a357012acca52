"""Layers with ReLU between them, over balls. The dense evaluation below is the definition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball, joined, linear, relu
from onelayer_checker.core.exactness import exact_products, whole_products

PART = 1 << 13  # blocks


@dataclass(frozen=True, eq=False)
class Layer:
    """y = x W + b; a block-diagonal W is kept as [groups, inputs, outputs]."""

    weight: Array
    bias: Array

    @property
    def inputs(self) -> int:
        return int(self.weight[..., 0].size)

    @cached_property
    def whole(self) -> float:
        """The largest weight or bias, if all are whole numbers; otherwise infinity."""
        parts = (self.weight, self.bias)
        return float(max(np.abs(a).max() for a in parts)) if all((np.rint(a) == a).all() for a in parts) else np.inf

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        """One product per group, its bias a term of the sum; a full matrix is one group.

        Theorem: proofs/Enclosures.v linear_encloses; proofs/ExactProducts.v exact_products_whole,
        exact_products_one.
        """
        W = self.weight.reshape(-1, *self.weight.shape[-2:])
        groups, inputs, outputs = W.shape
        split = Ball(*(a.reshape(-1, groups, inputs).swapaxes(0, 1) for a in (x.m, x.r)))
        bias = self.bias.reshape(groups, 1, outputs)
        y = whole_products(split, W, bias, A) if self.whole < np.inf else None
        if y is None:
            y = linear(split, W, bias, A)
            if (x.r == 0).any():
                y = Ball(y.m, np.where(exact_products(split, W, bias, A) & np.isfinite(y.r), 0.0, y.r))
        return Ball(*(a.swapaxes(0, 1).reshape(len(x.m), -1) for a in (y.m, y.r)))


def run_stack(layers: tuple[Layer, ...], x: Ball, A: Arithmetic) -> Ball:
    """ReLU between the layers. Of a full layer and a block-diagonal one, a few blocks are evaluated at a time.

    What of these is exactly zero in every row of x adds nothing, not even a rounding, to the sums of a full layer.
    Theorem: proofs/Layers.v run_stack_sound, zeros_left_out.
    """
    first, *rest = layers
    if len(rest) < 2 or first.weight.ndim != 2 or rest[0].weight.ndim != 3:
        y = first.apply(x, A)
        return run_stack(tuple(rest), relu(y), A) if rest else y
    V, following = rest[0].weight, rest[1]
    parts, kept = [], []
    for i in range(0, len(V), PART):
        units, blocks = (slice(i * k, (i + PART) * k) for k in V.shape[1:])
        y = relu(Layer(first.weight[:, units], first.bias[units]).apply(x, A))
        y = relu(Layer(V[i : i + PART], rest[0].bias[blocks]).apply(y, A))
        on = ((y.m != 0) | (y.r != 0)).any(axis=0) | (following.weight.ndim == 3) | (i == 0)
        parts.append(y[:, on])
        kept.append(on)
    if following.weight.ndim == 2:
        following = Layer(following.weight[np.concatenate(kept)], following.bias)
    return run_stack((following, *rest[2:]), joined(parts), A)


@dataclass(frozen=True, eq=False)
class Stack:
    """Layers with ReLU between them, all of them evaluated. A faster way to the same balls is a subclass."""

    layers: tuple[Layer, ...]

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        return run_stack(self.layers, x, A) if self.layers else x

    @property
    def outputs(self) -> int:
        return int(self.layers[-1].bias.size)

    def cut(self) -> tuple[Stack, Layer]:
        """All layers but the last, and that."""
        return Stack(self.layers[:-1]), self.layers[-1]

    def disagrees(self, x: Ball, A: Arithmetic) -> Array:  # noqa: ARG002
        """The rows of x, of those that are compared, where a faster way contradicts the dense evaluation."""
        return np.zeros(0, np.intp)

    def effort(self, A: Arithmetic) -> float:  # noqa: ARG002
        """Operations that one row of x takes, about."""
        return sum(0.6 * layer.weight.size + 60.0 * layer.bias.size for layer in self.layers)

    @property
    def widest(self) -> int:
        """Numbers that one row of x needs at a time."""
        return max((layer.bias.size for layer in self.layers), default=1)
