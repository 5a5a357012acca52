"""Stacks that end in trapezoids: structure verified once, then a search per token instead of a dense product.

Group j computes ind_j = relu(1 - sum_i (relu(w_i t_i + b_i) + relu(-w'_i t_i + b'_i))) with w, w' zero or powers
of two, and the stack returns sum_j ind_j values_j. Let t range over a ball, in any arithmetic of the specification:
 - w t is exact and rounding is monotone: if all pre-activations are <= 0 as real numbers, ind_j is exactly 1;
 - if one of them is >= 1 as a real number, the computed sum is >= 1 in any order, and ind_j is exactly 0;
 - if one ind_j is 1 and the others are 0, all products but one are exact zeros: the result is values_j exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer_checker.kernel import Arithmetic, Array, Ball, relu
from onelayer_checker.layers import Layer, run_stack

#: Groups looked at for one token; a token in a more crowded place stays undecided.
CROWD = 4096


@dataclass(frozen=True)
class Plateaus:
    """Along each of c coordinates: group j is on within [on_low, on_high], and off beyond off_low and off_high."""

    on_low: Array  # [K, c]
    on_high: Array
    off_low: Array
    off_high: Array
    values: Array  # [K, q]
    largest: float  # bounds the weights and biases, against overflow
    smallest: float  # nonzero bias, against underflow

    def decide(self, t: Ball, A: Arithmetic) -> Array:
        """For each row of t [T, c] the group that is on while all others are off, or -1 if that is not certain."""
        low, high = t.low, t.high
        first, stop = np.empty(len(low), np.intp), np.empty(len(low), np.intp)
        order = np.argsort(low[:, 0])  # neighbouring look-ups share the cache
        # Groups before `first` are off, low >= off_high; so are those from `stop` on, high <= off_low.
        first[order] = np.searchsorted(self.off_high[:, 0], low[order, 0], side="right")
        stop[order] = np.searchsorted(self.off_low[:, 0], high[order, 0], side="left")
        group = np.full(len(low), -1)
        certain = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
        certain &= (np.maximum(np.abs(low), np.abs(high)).max(axis=1) + 2) * self.largest < A.big / 8
        certain &= self.smallest >= 8 * A.tiny
        rows = np.flatnonzero(certain & (first < stop))
        j = first[rows]
        for _ in range(CROWD):
            if not rows.size:
                break
            l, h = low[rows], high[rows]
            off = ((l >= self.off_high[j]) | (h <= self.off_low[j])).any(axis=1)
            on = ((h <= self.on_high[j]) & (l >= self.on_low[j])).all(axis=1)
            certain[rows[~off & ~on]] = False
            certain[rows[on & (group[rows] >= 0)]] = False
            group[rows[on]] = j[on]
            j = j + 1
            more = (j < stop[rows]) & certain[rows]
            rows, j = rows[more], j[more]
        certain[rows] = False
        return np.where(certain, group, -1)


@dataclass(frozen=True)
class Stack:
    """Layers with ReLU between them; ``plateaus`` replaces the last three where it could be recognised."""

    layers: tuple[Layer, ...]
    plateaus: Plateaus | None

    @staticmethod
    def of(layers: list[Layer]) -> Stack:
        return Stack(tuple(layers), recognise(layers[-3:]) if len(layers) >= 3 else None)

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        """Encloses the stack's value: exactly a stored one where that is certain, else by the dense evaluation."""
        if self.plateaus is None:
            return run_stack(self.layers, x, A)
        for layer in self.layers[:-3]:
            x = relu(layer.apply(x, A))
        group = self.plateaus.decide(x, A)
        r = np.where(group < 0, np.inf, 0.0)[:, None]
        return Ball(self.plateaus.values[group], np.broadcast_to(r, (len(group), self.plateaus.values.shape[1])))

    @property
    def widest(self) -> int:
        return 1 if self.plateaus is not None else max(layer.bias.size for layer in self.layers)


def recognise(layers: list[Layer]) -> Plateaus | None:
    """Three layers that make up trapezoids; None if they are of another kind."""
    units, group, values = layers
    if units.weight.ndim != 2 or group.weight.ndim != 3 or values.weight.ndim != 2 or values.bias.any():
        return None
    (c, width), (K, size, outputs) = units.weight.shape, group.weight.shape
    if size != 2 * c or outputs != 1 or width != K * size or values.weight.shape[0] != K:
        return None
    if (group.weight != -1).any() or (group.bias != 1).any():
        return None
    W = units.weight.reshape(c, K, c, 2)
    b = units.bias.reshape(K, c, 2)
    diagonal = np.einsum("ikiu->kiu", W)  # [K, c, 2]: unit (i, u) of group k reads coordinate i
    if np.count_nonzero(W) != np.count_nonzero(diagonal):
        return None
    up, down = diagonal[..., 0], -diagonal[..., 1]
    slopes = np.concatenate([up.ravel(), down.ravel()])
    if ((slopes != 0) & (np.frexp(slopes)[0] != 0.5)).any():  # zero or a positive power of two
        return None
    if (b[..., 0][up == 0] > 0).any() or (
        b[..., 1][down == 0] > 0
    ).any():  # a unit that never switches must stay off
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        on_high = np.where(up > 0, -b[..., 0] / up, np.inf)
        on_low = np.where(down > 0, b[..., 1] / down, -np.inf)
        off_high = np.where(up > 0, np.nextafter(np.nextafter(1 - b[..., 0], np.inf) / up, np.inf), np.inf)
        off_low = np.where(down > 0, np.nextafter(np.nextafter(b[..., 1] - 1, -np.inf) / down, -np.inf), -np.inf)
    if (np.diff(off_high[:, 0]) < 0).any() or (np.diff(off_low[:, 0]) < 0).any():
        return None
    # Dividing by a power of two is exact unless it leaves the normal range.
    finite = np.concatenate([a[np.isfinite(a) & (a != 0)] for a in (on_high, on_low)])
    if finite.size and not (np.abs(finite).min() > 2.0**-900 and np.abs(finite).max() < 2.0**900):
        return None
    biases = np.abs(b[b != 0])
    largest = float(max(np.abs(units.weight).max(), biases.max(initial=0.0), 1.0))
    smallest = float(biases.min(initial=1.0))
    return Plateaus(on_low, on_high, off_low, off_high, values.weight, largest, smallest)
