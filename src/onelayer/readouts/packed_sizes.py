"""Sizes of packed readouts: how many rows and columns, and how many parameters that makes, before one is built."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from onelayer.gadgets.digits import compared_layers, digit_layers
from onelayer.gadgets.layout import Layout, layouts, of_fewer_lanes
from onelayer.gadgets.packed import TABLES
from onelayer.readouts.cells import Column

#: Rows and columns of three tables, and the lane.
COORDINATES = 2 * TABLES + 1
#: Coordinates that fingerprints may be read off, besides; and cells of one of them, at most.
WITH_PRINTS, MOST_PRINT_CELLS = COORDINATES + 2, 256
#: Cells per key: where peeling begins to work, and what a lane of few keys needs more. If rows of all tables are
#: cut along one coordinate in turn, so that a key's cells lie in neighbouring rows, 1.16 is enough, but only with
#: 600 columns or more, whose walls cost more than that saves; rows by two coordinates save 3 % at most.
LOAD, FOR_FEW = 1.235, 2.0
#: Distinct values of a coordinate per row cell, so that rows fill evenly.
VALUES_PER_ROW = 6
#: Fewest keys of a lane: fewer do not peel at a load worth having.
FEWEST_KEYS = 64
#: A further word of a cell takes time to read and to prove: it has to save this share of the parameters.
WORTH_A_WORD = 0.015
#: What a cell costs beside its entries: two units of two numbers, and three to make one of them.
PER_CELL = 7
FLOAT32 = np.dtype("float32")


@dataclass(frozen=True)
class Shape:
    """Sizes of a packed readout."""

    layout: Layout
    block: int  # B, cells that are computed together from a copy of one coordinate
    rows: int  # R of each table
    columns: int  # G

    @staticmethod
    def of(layout: Layout, keys: float, load: float, finest: float) -> Shape:
        """Near the least number of parameters for this many keys of a lane; rows no finer than values allow."""
        m, best = layout.words, None
        per_table = load * keys / TABLES
        for block in (4, 6, 8, 12, 16, 24):
            G = max(1.0, (PER_CELL * per_table / (2.0 * m)) ** (1 / 3), per_table / finest)
            for columns in {block * max(1, round(G / block) + i) for i in (-1, 0, 1) if round(G / block) + i > 0}:
                rows = block * max(1, int(np.ceil(per_table / columns / block)))
                shape = Shape(layout, block, rows, columns)
                if best is None or shape.parameters < best.parameters:
                    best = shape
        assert best is not None
        return best

    @property
    def parameters(self) -> int:
        """Of all layers: copies, units, one-hots, emitted words with their walls, digits."""
        m, carried = self.layout.words, 1 + len(print_sizes(self.layout))
        cells = TABLES * (self.rows + self.columns + self.block * carried)
        copies = cells // self.block * (COORDINATES + carried)
        emitted = (cells + TABLES) * (m * self.columns + carried)
        added = TABLES * m * (self.columns - 1) * m * (3 + carried)  # columns of a word are added up
        return copies + PER_CELL * cells + emitted + added + _count_digits(self.layout)


@cache
def _count_digits(layout: Layout) -> int:
    """Parameters of the layers that take words apart, of one column each."""
    lanes, *prints = ((np.ones(k - 1), np.ones(k - 1)) for k in (layout.lanes, *print_sizes(layout)))
    layers = digit_layers(layout, 1, lanes, FLOAT32, prints)
    layers = (*layers, *compared_layers(layout, 0.0, FLOAT32)) if prints else layers
    return sum(layer.weight.size + layer.bias.size for layer in layers)


def print_sizes(layout: Layout) -> tuple[int, ...]:
    """Cells of each coordinate that a fingerprint is read off."""
    if layout.fingerprints <= MOST_PRINT_CELLS:
        return (layout.fingerprints,) if layout.prints else ()
    low = layout.prints // 2
    return layout.base**low, layout.base ** (layout.prints - low)


def shapes(keys: int, classes: int, finest: float, print_bits: float = 0.0, parts: int = 1) -> list[Shape]:
    """Ways to pack, the smallest first, and of nearly the same size that of fewer words; none, if classes and
    fingerprints, or all ``parts``, are too long."""
    found = []
    ways = layouts(classes, print_bits, parts)
    if not ways:
        return []
    for layout in [*ways, *of_fewer_lanes(ways[0])]:
        each = keys / layout.lanes
        if each >= FEWEST_KEYS or layout.lanes == 1:
            found.append(Shape.of(layout, each, LOAD + FOR_FEW / np.sqrt(each), finest))
    return sorted(found, key=lambda shape: shape.parameters * (1 + WORTH_A_WORD * shape.layout.words))


def finest_rows(columns: list[Column]) -> float:
    """Row cells that the coordinates allow; those of a sample allow fewer."""
    return max(1.0, float(min(column.distinct for column in columns[: 2 * TABLES])) / VALUES_PER_ROW)
