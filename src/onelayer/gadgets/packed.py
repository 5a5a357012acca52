"""Three cells and a lane per token: the cells hold packed words, and a lane's digits of them are the class.

A one-hot of the row emits a row of words, a one-hot of the column opens a gate, and the layers of ``digits`` take
word 1 - word 2 - word 3 apart. The search finds cells and lane, and goes on in whole numbers. It equals the layers
everywhere but on the ramps between two cells or two lanes, where the layers are asked.

With fingerprints, the highest digits of what is stored say which input it belongs to: they are compared with the
token's own fingerprint, read off further coordinates, and the default is given where these differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from onelayer.gadgets.digit_names import digit_names
from onelayer.gadgets.digits import compared_layers, digit_layers, digits_in_lanes
from onelayer.gadgets.gadget import Gadget, Words, same_layers
from onelayer.gadgets.layout import LARGEST_BASE, Layout
from onelayer.gadgets.line import Line, lines_of_tables
from onelayer.gadgets.print_steps import PrintSteps, count_steps
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Cells whose words make an answer.
TABLES = 3
#: Layers before the digits: copies, units, one-hots, emitted words.
HEAD = 4
#: Coordinates that a fingerprint is read off, at most.
MOST_PRINTS = 2


class Sizes(NamedTuple):
    words: int
    rows: int
    columns: int
    block: int
    prints: int  # coordinates that are carried beside the lane


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
    words: Array  # [TABLES, m, R, G] whole numbers below the layout's modulus, int32
    prints: tuple[PrintSteps, ...] = ()  # how the own fingerprint is read: its digits, from the lowest on
    default: float = 0.0  # what is given where fingerprints differ

    def layers(self) -> tuple[Layer, ...]:
        (_, m, R, G), B, dtype = self.words.shape, self.block, self.lines[0].weight.dtype
        cells = R + G + B * (1 + len(self.prints))  # rows, columns, and blocks whose first unit is carried
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
        carried = [self.lane, *(steps.coordinate for steps in self.prints)]
        for i, coordinate in enumerate(carried):  # each in a block of its own
            at = carry + i * B
            copy[coordinate, 0, at // B] = 1.0
            units[0, at, 0], bias[0, at], select[0, at], one[0, at] = 1.0, 0.0, [[1.0], [0.0]], 0.0
        emit = np.zeros((TABLES, cells, m * G + len(carried)), dtype)
        for u in range(m):
            emit[:, :R, u * G : (u + 1) * G] = self.words[:, u]
        emit[:, :R, : m * G] -= dtype.type(wall)
        emit[:, R:carry, : m * G] = wall * np.tile(np.eye(G), (1, m))
        emit[0, carry::B, m * G :] = np.eye(len(carried))
        steps = [(steps.slope, steps.bias) for steps in self.prints]
        compared = compared_layers(self.layout, self.default, dtype) if steps else ()
        return (
            Linear(copy.reshape(self.inputs, -1), np.zeros(TABLES * blocks, dtype)),
            Grouped(units.reshape(TABLES * blocks, 1, 2 * B), bias.ravel()),
            Grouped(select.reshape(-1, 2, 1), one.ravel()),
            Grouped(emit, np.zeros(emit[:, 0].size, dtype)),
            *digit_layers(self.layout, G, (self.lane_slope, self.lane_bias), dtype, steps),
            *compared,
        )

    def names(self) -> tuple[Words, ...]:
        _, m, R, G = self.words.shape
        copies, cells, emitted = [], [], []
        carried = ["lane", *(f"digit {i} of the own fingerprint" for i in range(len(self.prints)))]
        for k in range(TABLES):
            kinds = [f"row {i}" for i in range(R)] + [f"column {i}" for i in range(G)]
            for what in carried:
                kinds += [what if k == 0 else f"spare {what}, always 0"]
                kinds += [f"spare cell {j} beside {what}, always 0" for j in range(1, self.block)]
            copies += [f"table {k} / coordinate of {kinds[at]} and on" for at in range(0, len(kinds), self.block)]
            cells += [f"table {k} / {kind}" for kind in kinds]
            emitted += [f"table {k} / word {u} of column {i}" for u in range(m) for i in range(G)]
            emitted += [f"table {k} / " + (what if k == 0 else f"spare {what}, always 0") for what in carried]
        units = tuple(f"{cell} / {side} foot" for cell in cells for side in ("right", "left"))
        return (tuple(copies), units, tuple(cells), tuple(emitted), *digit_names(self.layout, self.print_sizes))

    @property
    def print_sizes(self) -> tuple[int, ...]:
        """Values of each digit of the own fingerprint."""
        return tuple(len(steps.slope) + 1 for steps in self.prints)

    @classmethod
    def depths_of(cls, layers: tuple[Layer, ...]) -> Sequence[int]:
        ways = [layout for sizes in _sizes(layers) for layout in _bases(layers, sizes)]
        return sorted({HEAD + layout.depth for layout in ways})

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        for sizes in _sizes(layers):
            lines = _lines(layers, sizes)
            for layout in _bases(layers, sizes) if lines is not None else []:
                steps = _steps(layers[HEAD:], layout, sizes)
                words = _words(layers[3], layout, sizes)
                if steps is None or words is None or HEAD + layout.depth != len(layers):
                    continue
                source = layers[0].weight.reshape(len(layers[0].weight), TABLES, -1)
                carried = source[:, 0, (sizes.rows + sizes.columns) // sizes.block :].argmax(axis=0).tolist()
                (slope, bias), *others = steps
                prints = tuple(PrintSteps(i, *some) for i, some in zip(carried[1:], others, strict=True))
                default = float(layers[-1].weight[1, 0]) if prints else 0.0
                assert lines is not None
                own = (len(source), layout, sizes.block, lines, carried[0], slope, bias, words)
                return cls(*own, prints, default)
        return None

    def lines_of_cells(self) -> dict[str, Line]:
        return lines_of_tables(self.lines)

    @property
    def searches(self) -> bool:
        return True

    def find(self, t: Array) -> tuple[Array, Array]:
        t = np.maximum(t, 0)  # as the copies are
        lane, sure = self.find_lanes(t[:, self.lane])
        cells = []
        for line in self.lines:
            cell, decided = line.find(t)
            cells.append(cell)
            sure &= decided
        found = self.classes_at(cells, lane)
        if not self.prints:
            return self.layout.values(found).astype(t.dtype), sure
        own = np.zeros(len(t), np.int64)
        for steps, value in zip(self.prints, self._values, strict=True):
            digit, decided = steps.count(t[:, steps.coordinate])
            own += value * digit
            sure &= decided
        number, stored = found % self.layout.classes, found // self.layout.classes
        return np.where(own == stored, number, self.default).astype(t.dtype)[:, None], sure

    def find_lanes(self, z: Array) -> tuple[Array, Array]:
        """The lane of each coordinate, and whether the layers would say just that."""
        return count_steps(self.lane_slope, self.lane_bias, z)

    def find_prints(self, numbers: dict[int, Array]) -> tuple[tuple[tuple[int, Array], ...], bool]:
        """For each coordinate of the fingerprint, what its numbers add to that; and whether the layers say so."""
        found, sure = [], True
        for steps, value in zip(self.prints, self._values, strict=True):
            digit, decided = steps.count(numbers[steps.coordinate])
            found.append((steps.coordinate, value * digit))
            sure &= bool(decided.all())
        return tuple(found), sure

    @property
    def _values(self) -> list[int]:
        """What a step along each coordinate of the fingerprint adds to it."""
        return [int(np.prod(self.print_sizes[:i])) for i in range(len(self.prints))]

    def classes_at(self, cells: Sequence[Array], lane: Array) -> Array:
        """What is stored in known cells of the lines, one array of them for each line, in known lanes."""
        m, G = self.layout.words, self.words.shape[3]
        words = np.zeros((m, len(lane)), np.int64)
        for k, held in enumerate(self.words.reshape(TABLES, m, -1)):
            words += (1 if k == 0 else -1) * held.take(cells[2 * k] * G + cells[2 * k + 1], axis=1)
        return digits_in_lanes(self.layout, words % self.layout.modulus, lane)

    def class_at(self, cells: Sequence[int], lane: int) -> int:
        """The same for one token, without arrays."""
        layout, total, c = self.layout, 0, 0
        at, base, item = lane * layout.digits, layout.base, self.words.item
        while c < layout.digits:  # the digits that one word has
            u, place = divmod(at + c, layout.capacity)
            count = min(layout.capacity - place, layout.digits - c)
            word = item(0, u, cells[0], cells[1]) - item(1, u, cells[2], cells[3]) - item(2, u, cells[4], cells[5])
            total += word % layout.modulus // base**place % base**count * base**c
            c += count
        return total


def _sizes(layers: tuple[Layer, ...]) -> list[Sizes]:
    """What the sizes may be, if the first layers have the shapes of a packed readout."""
    if len(layers) <= HEAD + 1:
        return []
    copy, units, hot_layer, emit, total = layers[: HEAD + 1]
    if not (isinstance(copy, Linear) and all(isinstance(layer, Grouped) for layer in (units, hot_layer, emit))):
        return []
    if len(emit.weight) != TABLES or units.weight.shape[1] != 1 or units.weight.shape[2] < 2:
        return []
    block, (cells, outputs), found = units.weight.shape[2] // 2, emit.weight.shape[1:], []
    if copy.width * block != TABLES * cells or len(hot_layer.weight) != TABLES * cells:
        return []
    for prints in range(MOST_PRINTS + 1):
        m, over = divmod(total.width, 4 + prints)
        G, more = divmod(outputs - 1 - prints, m) if m else (0, 1)
        R = cells - G - block * (1 + prints)
        if not over and not more and R > 0 and G > 0 and R % block == G % block == 0:
            found.append(Sizes(m, R, G, block, prints))
    return found


def _lines(layers: tuple[Layer, ...], sizes: Sizes) -> tuple[Line, ...] | None:
    """Rows and columns of each table; whether these are the layers of that, whoever asks compares himself."""
    (_, R, G, block, _), (copy, units) = sizes, layers[:2]
    source = copy.weight.reshape(len(copy.weight), TABLES, -1)
    weight, bias = (a.reshape(TABLES, -1, 2) for a in (units.weight, units.bias))
    lines = []
    for k in range(TABLES):
        for start, stop in ((0, R), (R, R + G)):
            line = Line.read(weight[None, k, start:stop], bias[k, start:stop])
            if line is None:
                return None
            lines.append(replace(line, coordinate=int(np.argmax(source[:, k, start // block]))))
    return tuple(lines)


def _bases(layers: tuple[Layer, ...], sizes: Sizes) -> list[Layout]:
    """Layouts whose words are below the emitted wall and whose digits have the widths of the layers."""
    m, own = sizes.words, int(sizes.prints > 0)
    wall, found = float(layers[3].weight[0, sizes.rows, 0]), []
    for base in range(2, LARGEST_BASE + 1):
        layout = Layout(base, 1, m)
        at = HEAD + layout.depth - 1
        if layout.modulus != wall or at >= len(layers) or not isinstance(layers[at], Linear):
            continue
        digits = len(layers[at].weight) // m - 2 - own - layout.stages[-1][1]
        prints, parts = (_print_digits(layers[HEAD + 1], base, sizes), 1) if own else (0, layers[at].width)
        if digits - prints >= 1 and digits <= m * layout.capacity and digits % parts == 0:
            found.append(replace(layout, digits=digits, prints=prints, parts=parts))
    return found


def _print_digits(units: Layer, base: int, sizes: Sizes) -> int:
    """How many digits a fingerprint with this many different values has."""
    weight = units.weight.reshape(sizes.words, 4 + sizes.prints, -1)[0]
    values = float(np.prod([1.0 + np.count_nonzero(row) for row in weight[4:]]))
    return round(float(np.log(values) / np.log(base)))


def _words(emit: Layer, layout: Layout, sizes: Sizes) -> Array | None:
    m, R, G = sizes[:3]
    entries, words = emit.weight[:, :R, : m * G], np.empty((TABLES, m, R, G), np.int32)
    if not (entries.min() >= -layout.modulus and entries.max() < 0):
        return None
    for u in range(m):
        words[:, u] = entries[:, :, u * G : (u + 1) * G]  # fractions are lost: whoever asks compares the layers
        words[:, u] += layout.modulus
    return words


def _steps(tail: tuple[Layer, ...], layout: Layout, sizes: Sizes) -> list[tuple[Array, Array]] | None:
    """Slopes and biases of the steps into lanes, and of own fingerprints, if these are the layers of that."""
    if len(tail) < layout.depth:
        return None
    units = tail[1].weight.reshape(layout.words, 4 + sizes.prints, -1)[0]
    counts = [layout.lanes - 1, *(int(np.count_nonzero(row)) for row in units[4:])]
    if units.shape[1] != 3 + sum(counts):
        return None
    found, start = [], 3
    for i, count in enumerate(counts):
        slope, bias = -units[3 + i, start : start + count], tail[1].bias[start : start + count]
        start += count
        if not (slope > 0).all():
            return None
        ends = bias.astype(np.float64) / slope, (bias.astype(np.float64) - 1) / slope
        if any((np.diff(end) < 0).any() for end in ends):
            return None
        found.append((slope, bias))
    expected = digit_layers(layout, sizes.columns, found[0], tail[0].weight.dtype, found[1:])
    return found if same_layers(tail[: len(expected)], expected) else None
