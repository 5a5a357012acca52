"""The same answers by search: on stored plateaus only one or two trapezoids of K are not zero, so find those.

The search only selects which units to evaluate; each selected unit is computed with the operations of the dense
pass, so outside the ramps between plateaus, where a single unit is 1 and the rest are 0, the results are equal
to the bit. Inside a ramp two terms are added and the last bit may depend on the order of summation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onelayer.gadgets.cells import find_retrieval, find_table
from onelayer.gadgets.hats import find_hats
from onelayer.gadgets.packed import find_packed
from onelayer.network.blocks import apply_stack
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Below this many trapezoids the dense pass is as fast.
WORTHWHILE = 64


@dataclass(frozen=True)
class PlateauSearch:
    """The tail of a stack (units, trapezoids, values), with the outer ends of the trapezoids sorted."""

    head: tuple[Layer, ...]
    units: Linear
    group: Grouped
    values: Linear
    left: Array  # [K] trapezoid j is 0 where the first coordinate is below left[j]
    right: Array  # [K] and where it is above right[j]

    def __call__(self, h: Array) -> Array:
        tokens = h.reshape(-1, h.shape[-1])
        for layer in self.head:
            tokens = np.maximum(apply_layer(layer, tokens), 0)
        K = len(self.left)
        out = np.zeros((len(tokens), self.values.width), h.dtype)
        first = np.maximum(np.searchsorted(self.right, tokens[:, 0]) - 1, 0)
        last = np.minimum(np.searchsorted(self.left, tokens[:, 0], side="right"), K - 1)
        rows = np.arange(len(tokens))
        j = first.copy()
        while rows.size:
            indicator = self._indicator(j, tokens[rows])
            alive = np.flatnonzero(indicator)
            out[rows[alive]] += indicator[alive, None] * self.values.weight[j[alive]]
            j = j + 1
            more = j <= last[rows]
            rows, j = rows[more], j[more]
        out += self.values.bias
        return out.reshape(*h.shape[:-1], out.shape[-1])

    def _indicator(self, j: Array, t: Array) -> Array:
        """Trapezoid j[i] at coordinates t[i], by the dense pass's operations in the dense pass's order."""
        K, size, _ = self.group.weight.shape
        weight = self.units.weight.reshape(t.shape[1], K, size)
        bias = self.units.bias.reshape(K, size)
        total = np.zeros(len(t), t.dtype)
        for u in range(size):
            # Unit u reads one coordinate; the products with the others are exact zeros.
            pre = t[:, u // 2] * weight[u // 2, j, u] + bias[j, u]
            term = np.maximum(pre, 0) * self.group.weight[j, u, 0]
            total = term if u == 0 else total + term
        result: Array = np.maximum(total + self.group.bias[j], 0)
        return result


def find_search(layers: tuple[Layer, ...]) -> Callable[[Array], Array] | None:
    """A search that gives what these layers give, or None."""
    clamped = len(layers) > 3 and all(is_reflection(layer) for layer in layers[-2:])
    if not clamped:
        cells = find_packed(layers) or find_retrieval(layers)
        if cells is not None:  # it gives class ids, which plateaus may turn into values
            return replace(cells, finish=find_plateaus(cells.rest))
        return find_table(layers) or find_plateaus(layers) or find_hats(layers)
    search = find_search(layers[:-2])
    return None if search is None else lambda h: apply_stack(layers[-2:], np.maximum(search(h), 0))


def is_reflection(layer: Layer) -> bool:
    """y = b - x, which two of make a clamp."""
    return isinstance(layer, Linear) and np.array_equal(layer.weight, -np.eye(*layer.weight.shape))


def find_plateaus(layers: tuple[Layer, ...]) -> PlateauSearch | None:
    """Recognise a stack that ends in trapezoids sorted along the first coordinate; None if it does not."""
    if len(layers) < 3:
        return None
    *head, units, group, values = layers
    if not (isinstance(units, Linear) and isinstance(group, Grouped) and isinstance(values, Linear)):
        return None
    K, size, outputs = group.weight.shape
    coordinates = units.weight.shape[0]
    if outputs != 1 or K < WORTHWHILE or size != 2 * coordinates or units.width != K * size:
        return None
    weight = units.weight.reshape(coordinates, K, coordinates, 2).astype(np.float64)
    bias = units.bias.reshape(K, coordinates, 2).astype(np.float64)
    off_diagonal = ~np.eye(coordinates, dtype=bool)
    if weight.transpose(0, 2, 1, 3)[off_diagonal].any():
        return None
    with np.errstate(divide="ignore"):
        right = np.where(weight[0, :, 0, 0] > 0, (1 - bias[:, 0, 0]) / weight[0, :, 0, 0], np.inf)
        left = np.where(weight[0, :, 0, 1] < 0, (bias[:, 0, 1] - 1) / -weight[0, :, 0, 1], -np.inf)
    if (right[1:] < right[:-1]).any() or (left[1:] < left[:-1]).any():
        return None
    return PlateauSearch(tuple(head), units, group, values, left, right)
