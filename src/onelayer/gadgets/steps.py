"""Real components to 0/1 steps: relu(1 - relu(bias - slope x)) is 0 below a threshold, exactly 1 beyond its ramp.

The search is the two layers themselves: one product per step is all there is to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True, eq=False)
class Steps(Gadget):
    kind: ClassVar[str] = "steps"
    depths: ClassVar[tuple[int, ...]] = (2,)

    component: Array  # [K] which input a step reads
    slope: Array  # [K]
    bias: Array  # [K] 1 + slope * start
    carried: Array  # [inputs, k] what is passed on

    def layers(self) -> tuple[Layer, ...]:
        K, (inputs, k), dtype = len(self.component), self.carried.shape, self.slope.dtype
        weight, bias = np.zeros((inputs, K + k), dtype), np.zeros(K + k, dtype)
        weight[self.component, np.arange(K)] = -self.slope
        weight[:, K:], bias[:K] = self.carried, self.bias
        sign, one = np.ones((K + k, 1, 1), dtype), np.zeros(K + k, dtype)
        sign[:K], one[:K] = -1.0, 1.0
        return Linear(weight, bias), Grouped(sign, one)

    def names(self) -> tuple[Words, ...]:
        starts = (self.bias.astype(np.float64) - 1) / self.slope
        each = enumerate(zip(self.component.tolist(), starts.tolist(), strict=True))
        above = [f"step {k}: component {i} above {z:.6g}" for k, (i, z) in each]
        passed = number_names("carried", self.carried.shape[1])
        return (*(f"what lacks to {step}" for step in above), *passed), (*above, *passed)

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        if not (isinstance(layers[0], Linear) and isinstance(layers[1], Grouped)):
            return None
        first, second = layers
        K = int(np.count_nonzero(second.bias))
        if second.weight.shape != (first.width, 1, 1) or not K:
            return None
        component = first.weight[:, :K].argmin(axis=0)
        slope = -first.weight[component, np.arange(K)]
        return cls(component, slope, first.bias[:K], first.weight[:, K:]) if (slope > 0).all() else None
