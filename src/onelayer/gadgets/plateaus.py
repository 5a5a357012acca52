"""One trapezoid per stored answer, ind_j = relu(1 - sum_i relu(s_i t_i + b_i)), and the sum of their values.

On stored plateaus only one or two trapezoids of K are not zero, so the search finds those. It only selects which
units to evaluate; each is computed with the operations of the dense pass, so outside the ramps between plateaus,
where a single unit is 1 and the rest are 0, the results are equal to the bit. Inside a ramp two terms are added and
the last bit may depend on the order of summation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, beside, number_names
from onelayer.gadgets.line import Line
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Below this many trapezoids the dense pass is as fast.
WORTHWHILE = 64


@dataclass(frozen=True, eq=False)
class Plateaus(Gadget):
    """K trapezoids in the first s coordinates; sums of coordinates may be carried past them."""

    kind: ClassVar[str] = "plateaus"
    depths: ClassVar[tuple[int, ...]] = (3,)

    weight: Array  # [K, s, 2]: of the unit that switches a trapezoid off to the right, and to the left
    bias: Array  # [K, s, 2]
    values: Array  # [K, q]
    constant: Array  # [q]
    carried: Array  # [inputs, k] what is carried along
    passed: Array  # [k, q] and what becomes of it

    @staticmethod
    def of(weight: Array, bias: Array, values: Array) -> Plateaus:
        """Weights and biases [K, s, 2] and values [K, q], nothing else."""
        s, q = weight.shape[1], values.shape[1]
        nothing = np.zeros((s, 0), weight.dtype), np.zeros((0, q), weight.dtype)
        return Plateaus(weight, bias, values.astype(weight.dtype), np.zeros(q, weight.dtype), *nothing)

    def layers(self) -> tuple[Layer, ...]:
        (inputs, k), (K, s, _), dtype = self.carried.shape, self.weight.shape, self.weight.dtype
        units, bias = np.zeros((inputs, K + k, s, 2), dtype), np.zeros((K + k, s, 2), dtype)
        for i in range(s):
            units[i, :K, i] = self.weight[:, i]
        units[:, K:, 0, 0], bias[:K] = self.carried, self.bias
        select, one = np.full((K + k, 2 * s, 1), -1, dtype), np.ones(K + k, dtype)
        select[K:], one[K:] = 0.0, 0.0
        select[K:, 0] = 1.0
        values = np.concatenate([self.values, self.passed]) if k else self.values
        return (
            Linear(units.reshape(inputs, -1), bias.reshape(-1)),
            Grouped(select, one),
            Linear(values, self.constant),
        )

    @property
    def tiles(self) -> bool:
        """Whether the trapezoids add up to 1 everywhere: on a line, each begins where the one before it ends."""
        weight, bias = self.weight[:, 0], self.bias[:, 0].astype(np.float64)
        if self.weight.shape[1] != 1 or Line.read(weight[None], self.bias[:, 0]) is None:
            return False
        rounding = 4 * float(np.finfo(weight.dtype).eps) * np.abs(bias).max(initial=1.0)
        meet = np.abs(bias[:-1, 0] + bias[1:, 1] - 1) <= rounding
        return bool(meet.all() and np.array_equal(weight[:-1, 0], -weight[1:, 1]))

    def merge(self, tolerance: float) -> Plateaus:
        """One trapezoid for each run of neighbours whose values are at most twice the tolerance apart."""
        if not self.tiles:
            return self
        starts, values = [0], self.values.astype(np.float64)
        low = high = values[0]
        middles = []
        for j, value in enumerate(values[1:], 1):
            below, above = np.minimum(low, value), np.maximum(high, value)
            if (above - below > 2 * tolerance).any():
                middles.append((low + high) / 2)
                starts.append(j)
                below = above = value
            low, high = below, above
        first, last = np.array(starts), np.array([*starts[1:], len(values)]) - 1
        weight, bias = (np.stack([a[last, :, 0], a[first, :, 1]], axis=-1) for a in (self.weight, self.bias))
        merged = np.array([*middles, (low + high) / 2], self.values.dtype)
        return replace(self, weight=weight, bias=bias, values=merged)

    def without_commonest(self) -> Plateaus:
        """The same sum with the commonest value as its constant, if that is exact: it needs no trapezoids then."""
        rows, counts = np.unique(self.values, axis=0, return_counts=True)
        common = rows[counts.argmax()]
        others, constant = self.values - common, self.constant + common
        kept = others.any(axis=1)
        exact = np.array_equal(others + constant, self.values + self.constant) and (self.values % 1 == 0).all()
        if not (self.tiles and exact and kept.any()):
            return self
        return replace(self, weight=self.weight[kept], bias=self.bias[kept], values=others[kept], constant=constant)

    def names(self) -> tuple[Words, ...]:
        (K, s, _), k = self.weight.shape, len(self.passed)
        sides = [side if s == 1 else f"{side} of coordinate {i}" for i in range(s) for side in ("right", "left")]
        units = [f"{side} foot of trapezoid {j}" for j in range(K) for side in sides]
        units += beside(k, 2 * s)
        trapezoids = (*number_names("trapezoid", K), *number_names("carried", k))
        return tuple(units), trapezoids, number_names("component", len(self.constant))

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        units, group, values = layers
        if not (isinstance(units, Linear) and isinstance(group, Grouped) and isinstance(values, Linear)):
            return None
        groups, size, outputs = group.weight.shape
        inputs, s, K = len(units.weight), size // 2, int(np.count_nonzero(group.bias))
        if outputs != 1 or size % 2 or units.width != groups * size or not 1 <= s <= inputs or K < 1:
            return None
        weight = units.weight.reshape(inputs, groups, s, 2)
        own = weight[0, :K] if s == 1 else np.stack([weight[i, :K, i] for i in range(s)], axis=1)
        bias = units.bias.reshape(groups, s, 2)[:K]
        parts = values.weight[:K], values.bias, weight[:, K:, 0, 0], values.weight[K:]
        return cls(own, bias, *parts)

    def lines_of_cells(self) -> dict[str, Line]:
        line = Line.read(self.weight[None, :, 0], self.bias[:, 0]) if self.weight.shape[1] == 1 else None
        return {} if line is None else {"plateaus": line}

    @property
    def last_from(self) -> int:
        """The whole number from which on only the last of the trapezoids on a line is on, and is all on."""
        slope, bias = self.weight[-1, 0, 1].astype(float), self.bias[-1, 0, 1].astype(float)
        return int(np.ceil(bias / -slope)) if slope else 0

    @property
    def searches(self) -> bool:
        return len(self.values) >= WORTHWHILE and self._ends is not None

    @cached_property
    def _ends(self) -> tuple[Array, Array] | None:
        """[K] trapezoid j is 0 where the first coordinate is below left[j] or above right[j]; None if unsorted."""
        weight, bias = self.weight[:, 0].astype(np.float64), self.bias[:, 0].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(weight[:, 0] > 0, (1 - bias[:, 0]) / weight[:, 0], np.inf)
            left = np.where(weight[:, 1] < 0, (bias[:, 1] - 1) / -weight[:, 1], -np.inf)
        ordered = not ((right[1:] < right[:-1]).any() or (left[1:] < left[:-1]).any())
        return (left, right) if ordered else None

    def search(self, h: Array) -> Array:
        if self._ends is None:
            return super().search(h)
        (left, right), K = self._ends, len(self.values)
        tokens = h.reshape(-1, h.shape[-1])
        out = np.zeros((len(tokens), len(self.constant)), h.dtype)
        first = np.maximum(np.searchsorted(right, tokens[:, 0]) - 1, 0)
        last = np.minimum(np.searchsorted(left, tokens[:, 0], side="right"), K - 1)
        rows = np.arange(len(tokens))
        j = first.copy()
        while rows.size:
            indicator = self._indicator(j, tokens[rows])
            alive = np.flatnonzero(indicator)
            out[rows[alive]] += indicator[alive, None] * self.values[j[alive]]
            j = j + 1
            more = j <= last[rows]
            rows, j = rows[more], j[more]
        if len(self.passed):
            out += np.maximum(tokens @ self.carried, 0) @ self.passed
        out += self.constant
        return out.reshape(*h.shape[:-1], out.shape[-1])

    def _indicator(self, j: Array, t: Array) -> Any:
        """Trapezoid j[i] at coordinates t[i], by the dense pass's operations in the dense pass's order."""
        total = np.zeros(len(t), t.dtype)
        for i in range(self.weight.shape[1]):
            for side in (0, 1):
                # A unit reads one coordinate; the products with the others are exact zeros.
                pre = t[:, i] * self.weight[j, i, side] + self.bias[j, i, side]
                total = total - np.maximum(pre, 0)
        return np.maximum(total + total.dtype.type(1), 0)
