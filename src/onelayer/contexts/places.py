"""Codes that know their place: an exact gate picks the matrix of this position, h_k = (raw - middle) P_k + o_k.

Averaging forgets the order, and adding a code of the place to that of the token does not bring it back; a code of
both jointly does. The place arrives on channel 0 as a multiple of ``spacing``, beyond every raw code; everything
here is whole numbers below 2^24, so all of it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.network import Grouped, Layer, Linear

Array = NDArray[Any]


@dataclass(frozen=True)
class Places:
    spacing: float  # channel 0 holds raw + spacing * place
    mixing: Array  # [n, s, s] P_k, entries -1, 0, 1, times the weight of a token's own code
    shift: Array  # [n, s] o_k - middle P_k
    dtype: np.dtype[Any]

    def codes(self, raw: Array, k: int) -> Array:
        """h of non-negative raw codes [..., s] at place k."""
        return np.asarray(raw @ self.mixing[k] + self.shift[k], np.float64)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """From s channels to s channels: one-hot of the place, gates, mixing."""
        n, s, _ = self.mixing.shape
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
            _linear(units.reshape(s, -1), unit_bias.ravel(), self.dtype),
            Grouped(select.astype(self.dtype), select_bias.astype(self.dtype)),
            _linear(gates, gate_bias, self.dtype),
            _linear(mix, np.zeros(s), self.dtype),
        )


def draw_places(n: int, largest: Array, own: float, dtype: np.dtype[Any], rng: np.random.Generator) -> Places:
    """Random matrices and shifts, ``own`` times, for raw codes between 0 and ``largest`` [s]."""
    s, top = len(largest), float(largest.max())
    mixing = rng.integers(-1, 2, (n, s, s)).astype(np.float64)
    mixing[:, np.arange(s), np.arange(s)] = rng.choice([-1.0, 1.0], (n, s))  # no channel is lost
    shift = rng.integers(-int(top // 2) - 1, int(top // 2) + 2, (n, s)) - np.rint(largest / 2) @ mixing
    return Places(float(np.exp2(np.ceil(np.log2(top + 3)))), own * mixing, own * shift, dtype)


def _linear(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Linear:
    return Linear(weight.astype(dtype), bias.astype(dtype))
