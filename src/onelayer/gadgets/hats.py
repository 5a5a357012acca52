"""One hat per vertex of a grid, and values at the vertices: linear interpolation on a Kuhn triangulation.

Of all vertices only the corners of the cell that a token is in matter to the search. Their hats are computed with
the operations of the dense pass; the few that are not 0 may be added in another order, so answers are equal to the
bit at the vertices, and elsewhere up to the rounding of a sum of a few terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, beside, number_names
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Below this many hats the dense pass is as fast.
WORTHWHILE = 4
BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Hats(Gadget):
    """Hats of the vertices of a grid of ``levels`` cells along each of m coordinates, H = ``spacing`` apart."""

    kind: ClassVar[str] = "hats"

    m: int
    levels: int
    spacing: float
    values: Array  # [V, q] values at the vertices over H
    passed: Array  # [k, q] what becomes of k coordinates that are carried past the hats
    constant: Array  # [q]

    def vertices(self) -> Array:
        """[V, m] whole numbers, the first coordinate slowest."""
        V = (self.levels + 1) ** self.m
        return np.stack(np.unravel_index(np.arange(V), (self.levels + 1,) * self.m), axis=1)

    def layers(self) -> tuple[Layer, ...]:
        m, H, dtype, (k, _) = self.m, self.spacing, self.values.dtype, self.passed.shape
        at, V = self.vertices() * H, (self.levels + 1) ** m
        weight, bias = np.zeros((m + k, V + k, m, 2), dtype), np.zeros((V + k, m, 2), dtype)
        for i in range(m):
            weight[i, :V, i], bias[:V, i] = (1.0, -1.0), np.stack([-at[:, i], at[:, i]], axis=1)
        weight[m + np.arange(k), V + np.arange(k), 0, 0] = 1.0
        layers: list[Layer] = [Linear(weight.reshape(m + k, -1), bias.ravel())]
        for i in range(1, m):
            block = np.tile(running_maximum(m, i).astype(dtype), (V + k, 1, 1))
            block[V:] = np.eye(2 * m)
            layers.append(Grouped(block, np.zeros((V + k) * 2 * m, dtype)))
        last, top = np.full((V + k, 2 * m, 1), -1.0, dtype), np.full(V + k, H, dtype)
        last[V:], top[V:] = 0.0, 0.0
        last[V:, 0] = 1.0
        values = np.concatenate([self.values, self.passed]) if k else self.values
        return (*layers, Grouped(last, top), Linear(values, self.constant))

    def names(self) -> tuple[Words, ...]:
        k, sides = len(self.passed), ("above", "below")
        vertices = [f"vertex ({', '.join(map(str, vertex))})" for vertex in self.vertices().tolist()]

        def parts(done: int) -> Words:
            """Of a vertex, coordinates up to ``done`` hold what each adds to the largest distance so far."""
            said = ["distance" if i > done or not done else "share of the largest distance" for i in range(self.m)]
            units = [
                f"{v} / {said[i]} {s} it, coordinate {i}" for v in vertices for i in range(self.m) for s in sides
            ]
            return (*units, *beside(k, 2 * self.m))

        hats = (*(f"hat of {vertex}" for vertex in vertices), *number_names("carried", k))
        return (*(parts(i) for i in range(self.m)), hats, number_names("component", len(self.constant)))

    @classmethod
    def depths_of(cls, layers: tuple[Layer, ...]) -> Sequence[int]:
        m = next((i for i, layer in enumerate(layers[1:]) if not isinstance(layer, Grouped)), 0)
        return (m + 2,) if m else ()

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        m, first, last, values = len(layers) - 2, layers[0], layers[-2], layers[-1]
        if not (isinstance(first, Linear) and isinstance(last, Grouped) and isinstance(values, Linear)):
            return None
        k = len(first.weight) - m
        V, H = len(last.weight) - k, float(last.bias[0])
        D = round(max(V, 1) ** (1 / m)) - 1
        fits = (
            k >= 0
            and last.weight.shape[1:] == (2 * m, 1)
            and D >= 1
            and (D + 1) ** m == V
            and H > 0
            and first.width == (V + k) * 2 * m
        )
        if not fits or len(values.weight) != V + k:
            return None
        return cls(m, D, H, values.weight[:V], values.weight[V:], values.bias)

    @property
    def searches(self) -> bool:
        return len(self.values) >= WORTHWHILE

    def search(self, h: Array) -> Array:
        tokens = h.reshape(-1, h.shape[-1])
        out = np.empty((len(tokens), len(self.constant)), h.dtype)
        for start in range(0, len(tokens), BLOCK):
            rows = slice(start, start + BLOCK)
            out[rows] = self._values(tokens[rows])
        return out.reshape(*h.shape[:-1], out.shape[-1])

    def _values(self, t: Array) -> Array:
        m, H = self.m, t.dtype.type(self.spacing)
        cell = np.clip(np.floor(t[:, :m] / H), 0, self.levels - 1)
        strides = (self.levels + 1) ** np.arange(m - 1, -1, -1)
        first = (cell @ strides).astype(np.int64)
        # [side][bit][m, T]: the part of (token - vertex), or of its negative, above 0; vertices are exact
        away = [np.ascontiguousarray((t[:, :m] - (cell + t.dtype.type(bit)) * H).T) for bit in (0, 1)]
        parts = [[np.maximum(sign * z, 0) for z in away] for sign in (t.dtype.type(1), t.dtype.type(-1))]
        total = np.zeros((len(t), len(self.constant)), t.dtype)
        for corner in np.ndindex(*(2,) * m):
            hat = np.full(len(t), H, t.dtype)
            for side in parts:
                hat -= reduce(np.maximum, [side[bit][i] for i, bit in enumerate(corner)])
            at = first + int(np.dot(corner, strides))
            total += np.maximum(hat, 0)[:, None] * self.values[at]
        if t.shape[1] > m:
            total += np.maximum(t[:, m:], 0) @ self.passed
        total += self.constant
        return total


def running_maximum(m: int, i: int) -> Array:
    """[2 m, 2 m] on (+ and - parts of components 0 .. m-1): part i becomes what it exceeds the sum of the parts
    before it by, so that afterwards parts 0 .. i add up to the largest of the first i + 1."""
    block = np.eye(2 * m)
    for side in (0, 1):
        block[side : 2 * i : 2, 2 * i + side] = -1.0
    return block
