"""Readouts of hats by search: of all vertices of a grid only the corners of the cell that a token is in matter.

The hats of those corners are computed with the operations of the dense pass; the few that are not 0 may be added in
another order, so answers agree up to the rounding of a sum of a few terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from onelayer.network.blocks import apply_stack
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Below this many hats the dense pass is as fast.
WORTHWHILE = 4
BLOCK = 1 << 14


@dataclass(frozen=True)
class HatSearch:
    """The first layer of a readout, a grid of hats with spacing H, and what is done with them."""

    coordinates: Layer
    m: int
    levels: int
    spacing: float
    values: Linear  # rows of vertices, then of coordinates that are carried along
    tail: tuple[Layer, ...]

    def __call__(self, h: Array) -> Array:
        tokens = h.reshape(-1, h.shape[-1])
        out = np.empty((len(tokens), (self.tail or (self.values,))[-1].width), h.dtype)
        for start in range(0, len(tokens), BLOCK):
            rows = slice(start, start + BLOCK)
            answers = self._values(np.maximum(apply_layer(self.coordinates, tokens[rows]), 0))
            out[rows] = apply_stack(self.tail, np.maximum(answers, 0)) if self.tail else answers
        return out.reshape(*h.shape[:-1], out.shape[-1])

    def _values(self, t: Array) -> Array:
        m, H = self.m, t.dtype.type(self.spacing)
        cell = np.clip(np.floor(t[:, :m] / H), 0, self.levels - 1)
        strides = (self.levels + 1) ** np.arange(m - 1, -1, -1)
        first = (cell @ strides).astype(np.int64)
        # [side][bit][m, T]: the part of (token - vertex), or of its negative, above 0; vertices are exact
        away = [np.ascontiguousarray((t[:, :m] - (cell + t.dtype.type(bit)) * H).T) for bit in (0, 1)]
        parts = [[np.maximum(sign * z, 0) for z in away] for sign in (t.dtype.type(1), t.dtype.type(-1))]
        total = np.zeros((len(t), self.values.width), t.dtype)
        for corner in np.ndindex(*(2,) * m):
            hat = np.full(len(t), H, t.dtype)
            for side in parts:
                hat -= reduce(np.maximum, [side[bit][i] for i, bit in enumerate(corner)])
            at = first + int(np.dot(corner, strides))
            total += np.maximum(hat, 0)[:, None] * self.values.weight[at]
        if t.shape[1] > m:
            total += t[:, m:] @ self.values.weight[(self.levels + 1) ** m :]
        total += self.values.bias
        return total


def find_hats(layers: tuple[Layer, ...]) -> HatSearch | None:
    """Recognise a readout of hats; None if it is of another kind, or small."""
    m = sum(isinstance(layer, Grouped) for layer in layers)
    if m < 1 or len(layers) < m + 3 or not all(isinstance(layer, Grouped) for layer in layers[2 : m + 2]):
        return None
    first, last, values = layers[1], layers[m + 1], layers[m + 2]
    if not isinstance(first, Linear) or not isinstance(values, Linear) or last.weight.shape[1] != 2 * m:
        return None
    carried = first.weight.shape[0] - m
    V, H = last.weight.shape[0] - carried, float(last.bias[0])
    D = round(max(V, 1) ** (1 / m)) - 1
    if carried < 0 or V < WORTHWHILE or (D + 1) ** m != V or not (last.bias[:V] == H).all():
        return None
    grid = np.stack(np.unravel_index(np.arange(V), (D + 1,) * m), axis=1) * H
    if not np.array_equal(first.bias.reshape(-1, m, 2)[:V, :, 1], grid.astype(first.bias.dtype)):
        return None
    return HatSearch(layers[0], m, D, H, values, layers[m + 3 :])
