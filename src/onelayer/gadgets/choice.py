"""Coordinate 0 and one other coordinate, which the cell of coordinate 0 chooses; the rest fall below 0 by a wall.

The search equals the layers but on ramps between two cells, where the layers are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words
from onelayer.gadgets.line import Line
from onelayer.gadgets.one_hots import names_of_one_hots, one_hots, read_one_hots
from onelayer.network.weights import Array, Layer, Linear


@dataclass(frozen=True, eq=False)
class Choice(Gadget):
    kind: ClassVar[str] = "choice"
    depths: ClassVar[tuple[int, ...]] = (3,)

    inputs: int
    runs: Line  # along coordinate 0
    used: tuple[int, ...]  # the coordinates among which is chosen
    chosen: Array  # [runs] which of them
    wall: float  # beyond every coordinate

    def layers(self) -> tuple[Layer, ...]:
        K, u, dtype = self.runs.count, len(self.used), self.runs.weight.dtype
        weight = np.zeros((K + 1 + u, 1 + u), dtype)
        weight[K:] = np.eye(1 + u)
        weight[:K, 1:] = np.where(self.chosen[:, None] == np.arange(u), 0.0, -self.wall)
        first = one_hots([self.runs], [K], self.inputs, [[0], *[[i] for i in self.used]])
        return (*first, Linear(weight, np.zeros(1 + u, dtype)))

    def names(self) -> tuple[Words, ...]:
        runs = [f"run {i}" for i in range(self.runs.count)]
        carried = ["coordinate 0", *(f"coordinate {i}" for i in self.used)]
        chosen = ("coordinate 0", *(f"coordinate {i}, where it is chosen" for i in self.used))
        return (*names_of_one_hots(runs, carried), chosen)

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        if not isinstance(layers[2], Linear):
            return None
        units, hot_layer, gate = layers
        K = len(gate.weight) - gate.width
        found = (
            read_one_hots(units, hot_layer, [K]) if K >= 1 and len(hot_layer.weight) == len(gate.weight) else None
        )
        if found is None or gate.width < 2 or found[0][0].count != K or found[0][0].coordinate != 0:
            return None
        carried, closed = found[1], gate.weight[:K, 1:]
        used = tuple(carried[:, 1:].argmax(axis=0).tolist())
        chosen, wall = (closed == 0).argmax(axis=1), -float(closed.min())
        return cls(len(units.weight), found[0][0], used, chosen, wall) if wall > 0 else None

    def lines_of_cells(self) -> dict[str, Line]:
        return {"runs": self.runs}

    @property
    def searches(self) -> bool:
        return True

    def find(self, t: Array) -> tuple[Array, Array]:
        run, sure = self.runs.find(t)
        chosen, wall = self.chosen.take(run), t.dtype.type(self.wall)
        out = np.empty((len(t), 1 + len(self.used)), t.dtype)
        out[:, 0] = t[:, 0]
        for k, i in enumerate(self.used):
            out[:, k + 1] = np.where(chosen == k, t[:, i], t[:, i] - wall)
        return out, sure
