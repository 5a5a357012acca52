"""Steps and the affine map behind them, searched as one: what a token has climbed is a row of prefix sums.

The layers compute hundreds of steps for every token; the search finds how many of them it has reached along each
component. Thresholds, weights and tokens must be whole numbers, or halves, whose sums the dtype holds: then every
order of summation gives the same. Other tokens are for the layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.print_steps import count_steps
from onelayer.gadgets.steps import Steps
from onelayer.network.blocks import apply_stack
from onelayer.network.weights import Array, Layer, Linear

#: Fewer steps are as fast by their layers.
WORTHWHILE = 16


@dataclass(frozen=True)
class Flight:
    """The steps along one component, in order, and what the first k of them add, for every k."""

    component: int
    slope: Array
    bias: Array
    sums: Array  # [steps + 1, outputs]


@dataclass(frozen=True)
class Staircase:
    layers: tuple[Layer, ...]
    flights: tuple[Flight, ...]
    carried: Array  # [inputs, k] what is passed on,
    weight: Array  # [k, outputs] and what it is multiplied with
    largest: Array  # [inputs] whole tokens up to this size are sure

    @staticmethod
    def of(first: Gadget, second: Gadget | None) -> Staircase | None:
        """The search of both; None if it is not one, or not worth while."""
        if not (isinstance(first, Steps) and isinstance(second, Affine) and isinstance(second.layer, Linear)):
            return None
        K, weight, bias = len(first.component), second.layer.weight, second.layer.bias
        numbers = (2 * first.slope, 2 * first.bias, first.carried, weight, bias)
        if K < WORTHWHILE or any((a % 1).any() for a in numbers):
            return None
        flights = []
        for i in np.unique(first.component).tolist():
            own = np.flatnonzero(first.component == i)
            own = own[np.argsort(first.bias[own].astype(np.float64) / first.slope[own], kind="stable")]
            slope, start = first.slope[own], first.bias[own]
            if (np.diff((start.astype(np.float64) - 1) / slope) < 0).any():
                return None
            sums = np.zeros((len(own) + 1, weight.shape[1]))
            np.cumsum(weight[own], axis=0, dtype=np.float64, out=sums[1:])
            flights.append(Flight(i, slope, start, sums.astype(weight.dtype)))
        flights[0] = Flight(flights[0].component, flights[0].slope, flights[0].bias, flights[0].sums + bias)
        layers, largest = (*first.dense, *second.dense), _largest(first, second.layer)
        found = Staircase(layers, tuple(flights), first.carried, weight[K:], largest)
        return found if (largest >= 1).all() else None

    def search(self, h: Array) -> Array:
        """What the layers give, to the bit."""
        tokens = h.reshape(-1, h.shape[-1])
        sure = ((np.abs(tokens) <= self.largest) & (tokens == np.floor(tokens))).all(axis=1)
        some = np.where(sure[:, None], tokens, 0)
        out = np.maximum(some @ self.carried, 0) @ self.weight
        for flight in self.flights:
            climbed, decided = count_steps(flight.slope, flight.bias, some[:, flight.component])
            out += flight.sums.take(climbed, axis=0)
            sure &= decided
        unsure = np.flatnonzero(~sure)
        if unsure.size:
            out[unsure] = apply_stack(self.layers, tokens[unsure])
        return np.asarray(out.reshape(*h.shape[:-1], out.shape[-1]))


def _largest(steps: Steps, layer: Linear) -> Array:
    """[inputs] how large whole tokens may be, so that no product or sum of the layers is rounded."""
    K, inputs = len(steps.component), len(steps.carried)
    exact = 2.0 ** np.finfo(layer.weight.dtype).nmant  # of halves
    slope, carried = np.zeros(inputs), np.abs(steps.carried.astype(np.float64))
    np.maximum.at(slope, steps.component, steps.slope.astype(np.float64))
    size = np.abs(layer.weight.astype(np.float64))
    left = exact - float((size[:K].sum(axis=0) + np.abs(layer.bias)).max())  # for what is passed on
    reach = np.maximum(carried.sum(axis=1), carried @ size[K:].max(axis=1, initial=0.0))  # of a token of size 1
    largest = np.full(inputs, exact if left > 0 else 0.0)
    np.divide(left / inputs, reach, out=largest, where=reach > 0)
    over = np.full(inputs, exact)
    np.divide(exact - float(np.abs(steps.bias).max()), slope, out=over, where=slope > 0)
    return np.asarray(np.floor(np.minimum(largest, over)))
