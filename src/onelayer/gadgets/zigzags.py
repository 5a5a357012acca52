"""Hashes of whole numbers: in each channel a zigzag f(z), linear between knots, beside what stays of z.

With a sink there is a mark as well, 1 at the first place and 0 elsewhere: the hash then goes to channels of its own
at the first place. The search looks f up, and adds whole numbers, which is exact in any order; numbers that are not
whole, or beyond the last knot, are left to the layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.network.weights import Array, Grouped, Layer, Linear
from onelayer.problems.blocks import product

#: Below this many pieces the dense pass is as fast.
WORTHWHILE = 8


@dataclass(frozen=True, eq=False)
class Zigzags(Gadget):
    kind: ClassVar[str] = "zigzags"
    depths: ClassVar[tuple[int, ...]] = (4, 3)

    step: int  # from knot to knot
    knots: Array  # [s, pieces + 1] f there, multiples of step from -step to step
    own: Array  # [s, s] what stays is z times this
    sink: bool

    def layers(self) -> tuple[Layer, ...]:
        s, F, dtype, step = len(self.own), self.knots.shape[1] - 1, self.own.dtype, self.step
        groups = s + self.sink
        slopes = np.diff(self.knots, axis=1) / step
        units = np.tile(-step * np.arange(F, dtype=np.float64), (groups, 1))
        read, shift = np.zeros((groups, F, 2)), np.zeros((groups, 2))
        read[:s, :, 0] = np.diff(slopes, axis=1, prepend=0.0)
        read[:, 0, 1] = 1.0
        shift[:s, 0] = self.knots[:, 0] + step  # not negative
        hashed = (
            Grouped(np.ones((groups, 1, F), dtype), units.ravel().astype(dtype)),
            Grouped(read.astype(dtype), shift.ravel().astype(dtype)),
        )
        h, z = np.arange(0, 2 * s, 2), np.arange(1, 2 * s, 2)
        if not self.sink:
            last = np.zeros((2 * s, 2 * s), dtype)
            last[h, :s], last[z, s:] = np.eye(s), self.own
            return (*hashed, Linear(last, np.repeat([-float(step), 0.0], s).astype(dtype)))
        wall, mark = 2.0 * step, 2 * s + 1
        gates, gate_bias = np.zeros((2 * s + 2, 3 * s + 1), dtype), np.zeros(3 * s + 1, dtype)
        gates[h, :s], gates[mark, :s] = np.eye(s), -wall
        gates[h, s : 2 * s], gates[mark, s : 2 * s], gate_bias[s : 2 * s] = np.eye(s), wall, -wall
        gates[mark, 2 * s] = 1.0
        gates[z, 2 * s + 1 :] = np.eye(s)
        last, bias = np.eye(3 * s + 1, dtype=dtype), np.zeros(3 * s + 1, dtype)
        last[2 * s, :s], bias[:s] = step, -step
        last[2 * s, s : 2 * s] = -step
        last[2 * s + 1 :, 2 * s + 1 :] = self.own
        return (*hashed, Linear(gates, gate_bias), Linear(last, bias))

    def names(self) -> tuple[Words, ...]:
        s, F = len(self.knots), self.knots.shape[1] - 1
        codes = [*number_names("code", s), *(["mark of the first place"] * self.sink)]
        beyond = tuple(f"{code} beyond knot {j}" for code in codes for j in range(F))
        both = tuple(name for code in codes for name in (f"hash of {code}", code))
        stays = number_names("what stays", s)
        if not self.sink:
            return beyond, both, (*number_names("hash", s), *stays)
        later, first = (
            number_names("hash, not at the first place,", s),
            number_names("hash, at the first place,", s),
        )
        return (
            beyond,
            both,
            (*later, *first, codes[-1], *number_names("code", s)),
            (*later, *first, codes[-1], *stays),
        )

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        sink, last = len(layers) == 4, layers[-1]
        if not all(isinstance(layer, Grouped) for layer in layers[:2]) or layers[0].weight.ndim != 3:
            return None
        groups, _, F = layers[0].weight.shape
        s, step = groups - sink, -float(last.bias[0])
        width = 3 * s + 1 if sink else 2 * s
        fits = s >= 1 and layers[1].weight.shape == (groups, F, 2) and last.weight.shape == (width, width)
        if not fits or step < 1 or step % 1:
            return None
        slopes = np.cumsum(layers[1].weight[:s, :, 0].astype(np.float64), axis=1)
        first = layers[1].bias.reshape(groups, 2)[:s, :1] - step
        knots = np.concatenate([first, first + step * np.cumsum(slopes, axis=1)], axis=1).astype(last.weight.dtype)
        own = last.weight[2 * s + 1 :, 2 * s + 1 :] if sink else last.weight[1::2, s:]
        return cls(int(step), knots, own, sink)

    @cached_property
    def _tables(self) -> list[Array]:
        """f at every whole number up to the last knot, in each channel."""
        at = self.step * np.arange(self.knots.shape[1])
        return [np.interp(np.arange(at[-1] + 1), at, f).astype(self.own.dtype) for f in self.knots]

    @cached_property
    def _exact(self) -> bool:
        """Whether no sum of whole numbers on the way is rounded."""
        reach = self.step * (self.knots.shape[1] - 1)
        stays = float(np.abs(self.own).sum(axis=0, dtype=np.float64).max()) * reach
        slopes = np.abs(np.diff(self.knots, n=2, axis=1)).sum(axis=1, dtype=np.float64).max(initial=0.0) / self.step
        whole = not (self.own % 1).any() and bool(np.isin(self.knots / self.step, (-1, 0, 1)).all())
        return whole and max(stays, (slopes + 2) * reach) < 2.0 ** (np.finfo(self.own.dtype).nmant + 1)

    @property
    def searches(self) -> bool:
        return self.knots.shape[1] > WORTHWHILE and self._exact

    def find(self, t: Array) -> tuple[Array, Array]:
        if not self._exact:
            return super().find(t)
        s, reach = len(self.knots), self.step * (self.knots.shape[1] - 1)
        z = t[:, :s]
        sure = ((z >= 0) & (z <= reach) & (z == np.floor(z))).all(axis=1)
        at = np.where(sure[:, None], z, 0).astype(np.int32)
        hashes = np.stack([table.take(at[:, i]) for i, table in enumerate(self._tables)], axis=1)
        stays = product(z, self.own)
        if not self.sink:
            return np.concatenate([hashes, stays], axis=1), sure
        mark = t[:, s:]
        sure &= (mark[:, 0] == 0) | (mark[:, 0] == 1)
        return np.concatenate([hashes * (1 - mark), hashes * mark, mark, stays], axis=1), sure
