"""Three cells and a lane per token: the cells hold packed words, of which a lane's digits are the class.

A one-hot of the row emits a row of words, a one-hot of the column opens a gate, and the layers of ``digits`` take
word 1 - word 2 - word 3 apart. The search finds cells and lane, and goes on in whole numbers. It equals the layers
everywhere but on the ramps between two cells or two lanes, where the layers are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from onelayer.gadgets.digit_names import digit_names
from onelayer.gadgets.digits import LARGEST_BASE, Layout, digit_layers, digits_in_lanes
from onelayer.gadgets.gadget import Gadget, Words, same_layers
from onelayer.gadgets.line import Line
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Cells whose words make an answer.
TABLES = 3
#: Layers before the digits: copies, units, one-hots, emitted words.
HEAD = 4


@dataclass(frozen=True, eq=False)
class Packed(Gadget):
    kind: ClassVar[str] = "packed"

    inputs: int
    layout: Layout
    block: int  # B, cells that are computed together from a copy of one coordinate
    lines: tuple[Line, ...]  # rows, then columns, of each table
    lane: int  # the coordinate that says whose digits are wanted
    lane_slope: Array  # [k - 1] the step into lane j is relu(1 - relu(bias - slope z))
    lane_bias: Array
    words: Array  # [TABLES, m, R, G] whole numbers below the layout's modulus, int64

    def layers(self) -> tuple[Layer, ...]:
        (_, m, R, G), B, dtype = self.words.shape, self.block, self.lines[0].weight.dtype
        cells = R + G + B  # rows, columns, and a block of which the first carries the lane
        blocks, carry, wall = cells // B, R + G, float(self.layout.modulus)
        copy = np.zeros((self.inputs, TABLES, blocks), dtype)
        units, bias = np.zeros((TABLES, cells, 2), dtype), np.ones((TABLES, cells, 2), dtype)
        select, one = np.full((TABLES, cells, 2, 1), -1.0, dtype), np.ones((TABLES, cells), dtype)
        for i, line in enumerate(self.lines):
            table = i // 2
            start, stop = (0, R) if i % 2 == 0 else (R, carry)
            here = slice(start, start + line.count)
            units[table, here], bias[table, here] = line.weight, line.bias
            copy[line.coordinate, table, start // B : stop // B] = 1.0
        copy[self.lane, 0, carry // B] = 1.0
        units[0, carry, 0], bias[0, carry], select[0, carry], one[0, carry] = 1.0, 0.0, [[1.0], [0.0]], 0.0
        emit = np.zeros((TABLES, cells, m * G + 1), dtype)
        emit[:, :R, : m * G] = self.words.transpose(0, 2, 1, 3).reshape(TABLES, R, m * G) - wall
        emit[:, R:carry, : m * G] = wall * np.tile(np.eye(G), (1, m))
        emit[0, carry, -1] = 1.0
        return (
            Linear(copy.reshape(self.inputs, -1), np.zeros(TABLES * blocks, dtype)),
            Grouped(units.reshape(TABLES * blocks, 1, 2 * B), bias.ravel()),
            Grouped(select.reshape(-1, 2, 1), one.ravel()),
            Grouped(emit, np.zeros(TABLES * (m * G + 1), dtype)),
            *digit_layers(self.layout, G, (self.lane_slope, self.lane_bias), dtype),
        )

    def names(self) -> tuple[Words, ...]:
        _, m, R, G = self.words.shape
        copies, cells, emitted = [], [], []
        for k in range(TABLES):
            kinds = [f"row {i}" for i in range(R)] + [f"column {i}" for i in range(G)]
            kinds += ["lane" if k == 0 and i == 0 else f"spare cell {i}, always 0" for i in range(self.block)]
            copies += [f"table {k} / coordinate of {kinds[at]} and on" for at in range(0, len(kinds), self.block)]
            cells += [f"table {k} / {kind}" for kind in kinds]
            emitted += [f"table {k} / word {u} of column {i}" for u in range(m) for i in range(G)]
            emitted.append(f"table {k} / lane" if k == 0 else f"table {k} / spare, always 0")
        units = tuple(f"{cell} / {side} foot" for cell in cells for side in ("right", "left"))
        return (tuple(copies), units, tuple(cells), tuple(emitted), *digit_names(self.layout))

    @classmethod
    def depths_of(cls, layers: tuple[Layer, ...]) -> Sequence[int]:
        sizes = _sizes(layers)
        ways = _bases(layers, sizes) if sizes else []
        return sorted({HEAD + layout.depth for layout in ways})

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        sizes = _sizes(layers)
        lines = _lines(layers, sizes) if sizes else None
        if sizes is None or lines is None:
            return None
        m, R, G, block = sizes
        source = layers[0].weight.reshape(len(layers[0].weight), TABLES, -1)
        lane = int(np.argmax(source[:, 0, (R + G) // block]))
        for layout in _bases(layers, sizes):
            found = _steps(layers[HEAD:], layout, G)
            if found is None:
                continue
            entries = layers[3].weight[:, :R, : m * G].astype(np.float64) + layout.modulus
            if entries.min() < 0 or entries.max() >= layout.modulus or (entries % 1).any():
                return None
            words = entries.astype(np.int64).reshape(TABLES, R, m, G).transpose(0, 2, 1, 3)
            return cls(len(layers[0].weight), layout, block, lines, lane, *found, np.ascontiguousarray(words))
        return None

    @property
    def searches(self) -> bool:
        return True

    @cached_property
    def _lane_ends(self) -> tuple[Array, Array]:
        """[k - 1] from where on lane j + 1 is reached, and [k] up to where lane j is not left."""
        slope, bias = self.lane_slope.astype(np.float64), self.lane_bias.astype(np.float64)
        return bias / slope, np.append((bias - 1) / slope, np.inf)

    def find(self, t: Array) -> tuple[Array, Array]:
        t = np.maximum(t, 0)  # as the copies are
        lane, sure = self.find_lanes(t[:, self.lane])
        cells = []
        for line in self.lines:
            cell, decided = line.find(t)
            cells.append(cell)
            sure &= decided
        return self.classes_at(cells, lane).astype(t.dtype)[:, None], sure

    def find_lanes(self, z: Array) -> tuple[Array, Array]:
        """The lane of each coordinate, and whether the layers would say just that."""
        on, off = self._lane_ends
        z = z.astype(np.float64)
        lane = np.searchsorted(on, z, side="right")
        return lane, z <= off.take(lane)

    def classes_at(self, cells: Sequence[Array], lane: Array) -> Array:
        """Classes of known cells of the lines, one array of them for each line, in known lanes."""
        m, G = self.layout.words, self.words.shape[3]
        words = np.zeros((m, len(lane)), np.int64)
        for k, held in enumerate(self.words.reshape(TABLES, m, -1)):
            words += (1 if k == 0 else -1) * held.take(cells[2 * k] * G + cells[2 * k + 1], axis=1)
        return digits_in_lanes(self.layout, words % self.layout.modulus, lane)

    def class_at(self, cells: Sequence[int], lane: int) -> int:
        """The same for one token, without arrays."""
        layout, total = self.layout, 0
        for c in range(layout.digits):
            u, place = layout.place(lane, c)
            first, second, third = (self.words.item(k, u, cells[2 * k], cells[2 * k + 1]) for k in range(TABLES))
            word = (first - second - third) % layout.modulus
            total += word // layout.base**place % layout.base * layout.base**c
        return total


def _sizes(layers: tuple[Layer, ...]) -> tuple[int, int, int, int] | None:
    """Words, rows, columns and cells of a block, if the first layers have the shapes of a packed readout."""
    if len(layers) <= HEAD + 1:
        return None
    copy, units, hots, emit, total = layers[: HEAD + 1]
    if not (isinstance(copy, Linear) and all(isinstance(layer, Grouped) for layer in (units, hots, emit))):
        return None
    if len(emit.weight) != TABLES or units.weight.shape[1] != 1 or units.weight.shape[2] < 2 or total.width % 4:
        return None
    block, m, (cells, outputs) = units.weight.shape[2] // 2, total.width // 4, emit.weight.shape[1:]
    G = (outputs - 1) // m if m else 0
    R = cells - G - block
    fits = R > 0 and G > 0 and copy.width * block == TABLES * cells and len(hots.weight) == TABLES * cells
    return (m, R, G, block) if fits and R % block == G % block == 0 else None


def _lines(layers: tuple[Layer, ...], sizes: tuple[int, int, int, int]) -> tuple[Line, ...] | None:
    """Rows and columns of each table; whether these are the layers of that, whoever asks compares himself."""
    _, R, G, block = sizes
    copy, units = layers[:2]
    source = copy.weight.reshape(len(copy.weight), TABLES, -1)
    weight, bias = (a.reshape(TABLES, R + G + block, 2) for a in (units.weight, units.bias))
    lines = []
    for k in range(TABLES):
        for start, stop in ((0, R), (R, R + G)):
            line = Line.read(weight[None, k, start:stop], bias[k, start:stop])
            if line is None:
                return None
            lines.append(replace(line, coordinate=int(np.argmax(source[:, k, start // block]))))
    return tuple(lines)


def _bases(layers: tuple[Layer, ...], sizes: tuple[int, int, int, int]) -> list[Layout]:
    """Layouts whose words are below the emitted wall and whose digits have the widths of the layers."""
    m, R, _, _ = sizes
    wall, found = float(layers[3].weight[0, R, 0]), []
    for base in range(2, LARGEST_BASE + 1):
        layout = Layout(base, 1, m)
        at = HEAD + layout.depth - 1
        if layout.modulus != wall or at >= len(layers):
            continue
        digits = layers[at].weight.shape[0] // m - 2 - layout.stages[-1][1]
        if isinstance(layers[at], Linear) and 1 <= digits <= m * layout.capacity:
            found.append(replace(layout, digits=digits))
    return found


def _steps(tail: tuple[Layer, ...], layout: Layout, columns: int) -> tuple[Array, Array] | None:
    """Slopes and biases of the steps into lanes, if these are the layers that take such words apart."""
    steps = layout.lanes - 1
    if len(tail) < layout.depth or tail[1].width != layout.words * (3 + steps):
        return None
    weight = tail[1].weight.reshape(-1, 4, 3 + steps)
    slope, bias = -weight[0, 3, 3:], tail[1].bias[3 : 3 + steps]
    if not (slope > 0).all():
        return None
    ends = bias.astype(np.float64) / slope, (bias.astype(np.float64) - 1) / slope
    if any((np.diff(end) < 0).any() for end in ends):
        return None
    expected = digit_layers(layout, columns, (slope, bias), slope.dtype)
    return (slope, bias) if same_layers(tail[: layout.depth], expected) else None
