"""Codes that know their place: an exact gate picks the matrix of this position, h_k = raw P_k + o_k.

The place arrives on channel 0 as a multiple of ``spacing``, beyond every raw code. The search reads the place off
and multiplies by one matrix. Sums of whole numbers below 2^24 are exact in any order, so it equals the layers on
whole numbers, and other inputs are left to these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.gadgets.one_hots import names_of_one_hots
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: With fewer places the dense pass is as fast.
WORTHWHILE = 4


@dataclass(frozen=True, eq=False)
class PlaceGates(Gadget):
    kind: ClassVar[str] = "place_gates"
    depths: ClassVar[tuple[int, ...]] = (4,)

    spacing: float  # channel 0 holds raw + spacing * place
    mixing: Array  # [n, s, s] P_k, whole numbers
    shift: Array  # [n, s] o_k

    def codes(self, raw: Array, k: int) -> Array:
        """h of non-negative raw codes [..., s] at place k."""
        return np.asarray(raw @ self.mixing[k].astype(np.float64) + self.shift[k], np.float64)

    def layers(self) -> tuple[Layer, ...]:
        """From s channels to s channels: one-hot of the place, gates, mixing."""
        (n, s, _), dtype = self.mixing.shape, self.mixing.dtype
        units, unit_bias = np.zeros((s, n + s, 2)), np.zeros((n + s, 2))
        k = np.arange(n)
        units[0, :n, 0], unit_bias[:n, 0] = 1.0, 2.5 - (k + 1) * self.spacing  # half a step of room
        units[0, :n, 1], unit_bias[:n, 1] = -1.0, k * self.spacing - 0.5
        units[np.arange(s), n + np.arange(s), 0] = 1.0
        select, select_bias = np.zeros((n + s, 2, 1)), np.zeros(n + s)
        select[:n], select_bias[:n] = -1.0, 1.0
        select[n:, 0] = 1.0
        wall = n * self.spacing  # beyond every channel
        gates, gate_bias = np.zeros((n + s, n + n * s)), np.zeros(n + n * s)
        gates[:n, :n] = np.eye(n)
        inner = gates[:, n:].reshape(n + s, n, s)
        inner[n + np.arange(s), :, np.arange(s)] = 1.0
        inner[k, k, :] = wall
        inner[k, k, 0] -= k * self.spacing
        gate_bias[n:] = -wall
        mix = np.concatenate([self.shift, self.mixing.reshape(n * s, s)])
        return (
            _linear(units.reshape(s, -1), unit_bias.ravel(), dtype),
            Grouped(select.astype(dtype), select_bias.astype(dtype)),
            _linear(gates, gate_bias, dtype),
            _linear(mix, np.zeros(s), dtype),
        )

    def names(self) -> tuple[Words, ...]:
        n, s, _ = self.mixing.shape
        places, raw = number_names("place", n), number_names("raw code", s)
        gates = tuple(f"gate of place {k} / raw code {i}" for k in range(n) for i in range(s))
        return (
            *names_of_one_hots(places, raw),
            (*places, *gates),
            number_names("code", s),
        )

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        if not all(isinstance(layers[i], Linear) for i in (0, 2, 3)):
            return None
        s, mix = len(layers[0].weight), layers[3].weight
        n = len(mix) // (1 + s)
        shapes = [(s, 2 * (n + s)), (n + s, 2, 1), (n + s, n * (1 + s)), (n * (1 + s), s)]
        if n < 1 or [layer.weight.shape for layer in layers] != shapes:
            return None
        spacing = 2.5 - float(layers[0].bias[0])
        return cls(spacing, mix[n:].reshape(n, s, s), mix[:n])

    @property
    def searches(self) -> bool:
        return len(self.mixing) >= WORTHWHILE and self._exact

    @cached_property
    def _exact(self) -> bool:
        """Whether no sum of whole numbers on the way is rounded."""
        largest = 2.0 ** (np.finfo(self.mixing.dtype).nmant + 1)
        sums = np.abs(self.mixing).sum(axis=1, dtype=np.float64) * self.spacing + np.abs(self.shift)
        whole = not (self.mixing % 1).any() and not (self.shift % 1).any()
        return whole and max(2 * len(self.mixing) * self.spacing, float(sums.max())) <= largest

    def find(self, t: Array) -> tuple[Array, Array]:
        if not self._exact:
            return super().find(t)
        n = len(self.mixing)
        with np.errstate(invalid="ignore"):
            place = np.clip(np.nan_to_num(np.floor(t[:, 0] / t.dtype.type(self.spacing))), 0, n - 1)
            raw = t.copy()
            raw[:, 0] -= place * t.dtype.type(self.spacing)
            sure = (raw == np.floor(raw)).all(axis=1) & (raw >= 0).all(axis=1)
            # A place is decided up to two steps before the next; and walls hold back what is below them.
            sure &= (raw[:, 0] <= self.spacing - 3) & (raw <= self.spacing).all(axis=1)
        out = np.empty_like(raw)
        for k in range(n):
            rows = np.flatnonzero(place == k)
            out[rows] = raw[rows] @ self.mixing[k] + self.shift[k]
        return out, sure


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
