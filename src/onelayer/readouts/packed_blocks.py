"""Packed cells of so many keys that they come in blocks: they are counted first, then sent to their lanes' cells.

Keys are whole numbers. Of each coordinate it is enough to know how often each number occurs: that says where cells
begin. A second pass sends every key to its lane, as three cells and what is stored in them; lanes are peeled and
filled one after the other, each in memory for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.layout import Layout, layouts
from onelayer.gadgets.packed import TABLES, Packed
from onelayer.readouts.cells import Cells, cut_counted
from onelayer.readouts.false_hits import Fingerprints
from onelayer.readouts.packed import CLUSTERED, CLUSTERED_TRIES, RELOAD, TRIES, build, fill_lanes, print_steps
from onelayer.readouts.packed_sizes import COORDINATES, FOR_FEW, LOAD, VALUES_PER_ROW, Shape, print_sizes, shapes
from onelayer.readouts.peeling import peel
from onelayer.readouts.readout import Readout

Array = NDArray[Any]
#: Keys [B, c] and what is stored for each [B].
Block = tuple[Array, Array]

#: From this many keys on, lanes are few, even if that takes a bit more; but no lane has more keys than are peeled.
MANY_KEYS, WORTH_FEW_LANES, LARGE_LANE = 1 << 20, 1.25, 1 << 24
MOST_WORDS = 48
#: And the load is raised in larger steps: each draw of cells takes long.
RELOAD_OF_MANY = 1.03


@dataclass(frozen=True)
class KeyBlocks:
    """Different keys that can be gone through again and again, and how often each number occurs in a coordinate."""

    blocks: Callable[[], Iterator[Block]]
    counts: Sequence[Array]  # for each coordinate, of the whole numbers from ``low`` on
    low: int
    wide: int  # this many of the first coordinates take more values: rows are cut along them; 0 if all are alike

    @property
    def count(self) -> int:
        return int(self.counts[0].sum())

    @property
    def finest_rows(self) -> float:
        """Row cells that the coordinates allow."""
        values = [np.count_nonzero(some) for some in self.counts[: self.wide or 2 * TABLES]]
        return max(1.0, float(min(values)) / VALUES_PER_ROW)

    def cut(self, coordinate: int, cells: int) -> tuple[Cells, Array]:
        return cut_counted(self.counts[coordinate], self.low, coordinate, cells)


class Cuts(NamedTuple):
    """Where rows and columns of each table, lanes and digits of fingerprints begin, and a cell for each number."""

    tables: list[tuple[Cells, Cells]]
    lines: list[tuple[int, Array]]  # row, column of each table: the coordinate and the cell of each number of it
    lane: Cells
    lane_of: Array
    prints: list[tuple[int, Array]]


def best_shape(keys: int, classes: int, finest: float, print_bits: float = 0.0) -> Shape | None:
    """The smallest; of many keys, one of few lanes that is not much larger: two keys that are nearly alike, as two
    windows that differ in a token, share all their cells the more often, the fewer cells a lane has, and then no
    draw of others tells them apart."""
    ways = shapes(keys, classes, finest, print_bits)
    if not ways or keys < MANY_KEYS:
        return ways[0] if ways else None
    found = []
    for layout in layouts(classes, print_bits):
        for times in range(1, MOST_WORDS // layout.words + 1):
            more = replace(layout, words=layout.words * times)
            each = keys / more.lanes
            if each <= LARGE_LANE:
                found.append(Shape.of(more, each, LOAD + FOR_FEW / np.sqrt(each), finest))
    least = min((shape.parameters for shape in found), default=np.inf)
    few = [shape for shape in found if shape.parameters <= WORTH_FEW_LANES * least]
    return min(few, key=lambda shape: shape.layout.lanes, default=ways[0])


def construct(
    keys: KeyBlocks,
    classes: int,
    dtype: np.dtype[Any],
    radius: float,
    seed: int,
    default: int | None = None,
    false_hits: float = 1.0,
) -> Readout | None:
    """A readout of classes below ``classes``; None if keys do not peel, or there are too few for fingerprints."""
    bits = 0.0 if default is None else -np.log2(false_hits)
    shape = best_shape(keys.count, classes, keys.finest_rows, bits)
    if shape is None or 3 * radius >= 1:
        return None
    sizes = print_sizes(shape.layout)
    if len(keys.counts) < COORDINATES + len(sizes):
        return None
    cut_prints = [keys.cut(i, size) for i, size in enumerate(sizes, COORDINATES)]
    if any(cells.count != size for (cells, _), size in zip(cut_prints, sizes, strict=True)):
        return None
    packed = _pack_lanes(keys, shape.layout, dtype, seed, [(cells.coordinate, lut) for cells, lut in cut_prints])
    if packed is None:
        return None
    (gadget,) = packed.gadgets
    assert isinstance(gadget, Packed)
    steps = [print_steps(cells, dtype) for cells, _ in cut_prints]
    prints, guards = tuple(some for some, _ in steps), [room for _, room in steps]
    gadget = replace(gadget, prints=prints, default=float(default or 0) if prints else 0.0)
    stored = Fingerprints(shape.layout.fingerprints) if prints else None
    return replace(packed, gadgets=(gadget,), guard=min([packed.guard, *guards]), stored=stored)


def _pack_lanes(
    keys: KeyBlocks, layout: Layout, dtype: np.dtype[Any], seed: int, prints: list[tuple[int, Array]]
) -> Readout | None:
    first_lane: tuple[int, Array] | None = None  # by which coordinate, and its keys
    step = RELOAD if keys.count < MANY_KEYS else RELOAD_OF_MANY
    for attempt in range(TRIES + CLUSTERED_TRIES):
        later = max(0, attempt + 1 - TRIES)
        order = _order(keys.wide, np.random.default_rng([seed, attempt, 13]), lanes_too=later > 0)
        lane, lane_of = keys.cut(int(order[-1]), layout.lanes)
        if lane.count != layout.lanes:
            continue
        filled = np.bincount(lane_of, weights=keys.counts[lane.coordinate]).astype(np.int64)
        fullest = int(filled.max())
        load = (LOAD + FOR_FEW / np.sqrt(fullest)) * step ** (attempt - later) * CLUSTERED**later
        shape = Shape.of(layout, fullest, load, keys.finest_rows)
        sides = (shape.rows, shape.columns)
        lines = [keys.cut(int(i), sides[k % 2]) for k, i in enumerate(order[:-1])]
        tables = [(lines[2 * h][0], lines[2 * h + 1][0]) for h in range(TABLES)]
        cuts = Cuts(tables, [(c.coordinate, lut) for c, lut in lines], lane, lane_of, prints)
        if attempt:  # going through all keys takes longer than peeling those of a lane
            if first_lane is None or first_lane[0] != lane.coordinate:
                first_lane = lane.coordinate, _of_first_lane(keys, cuts, filled)
            if peel(_cells(first_lane[1], shape, cuts), TABLES * shape.rows * shape.columns) is None:
                continue
            first_lane = None  # its memory is needed for all lanes
        words = _fill_lanes(keys, shape, cuts, filled)
        if words is not None:
            return build(shape, tables, lane, words, len(keys.counts), dtype)
    return None


def _of_first_lane(keys: KeyBlocks, cuts: Cuts, filled: Array) -> Array:
    """[k, c] its keys, as steps from the lowest number on."""
    found, done = np.empty((int(filled[0]), len(keys.counts)), np.int32), 0
    for z, _ in keys.blocks():
        steps = z - keys.low
        own = steps[cuts.lane_of.take(steps[:, cuts.lane.coordinate]) == 0]
        found[done : done + len(own)] = own
        done += len(own)
    return found


def _cells(steps: Array, shape: Shape, cuts: Cuts) -> Array:
    """[B, 3] of keys, counted over all tables."""
    cell = np.empty((len(steps), TABLES), np.int32)
    for h in range(TABLES):
        (i, row), (j, column) = cuts.lines[2 * h], cuts.lines[2 * h + 1]
        cell[:, h] = row.take(steps[:, i]) * shape.columns + column.take(steps[:, j])
        cell[:, h] += h * shape.rows * shape.columns
    return cell


def _order(wide: int, rng: np.random.Generator, lanes_too: bool) -> Array:
    """Coordinates of row, column, row, column, row, column and lane."""
    if not wide:
        return rng.permutation(COORDINATES) if lanes_too else np.append(rng.permutation(2 * TABLES), 2 * TABLES)
    others = np.arange(wide, COORDINATES)
    others = rng.permutation(others) if lanes_too else np.append(rng.permutation(others[:-1]), others[-1])
    pairs = np.column_stack([rng.permutation(wide)[:TABLES], others[:TABLES]])
    return np.append(pairs.ravel(), others[-1])


def _fill_lanes(keys: KeyBlocks, shape: Shape, cuts: Cuts, filled: Array) -> Array | None:
    """Words [m, cells of all tables]; None as soon as the keys of a lane do not peel."""
    lanes = _send_to_lanes(keys, shape, cuts, filled)
    freed = (lanes.pop() for _ in range(len(lanes)))  # the memory of each is free for the next
    return fill_lanes(shape.layout, freed, TABLES * shape.rows * shape.columns)


def _send_to_lanes(keys: KeyBlocks, shape: Shape, cuts: Cuts, filled: Array) -> list[tuple[Array, Array]]:
    """For each lane, the last first, the cells [k, 3] of its keys and what is to be stored in them [k]."""
    lanes = [(np.empty((k, TABLES), np.int32), np.empty(k, np.int32)) for k in filled.tolist()]
    done, low = [0] * len(lanes), keys.low
    for z, answers in keys.blocks():
        steps = z - low
        cell = _cells(steps, shape, cuts)
        stored, value = answers.astype(np.int32), shape.layout.classes
        for i, digit in cuts.prints:
            stored += value * digit.take(steps[:, i])
            value *= int(digit[-1]) + 1
        lane = cuts.lane_of.take(steps[:, cuts.lane.coordinate])
        order = np.argsort(lane.astype(np.uint8 if len(lanes) <= 256 else np.int32), kind="stable")
        cell, stored = cell[order], stored[order]
        start = 0
        for k, count in enumerate(np.bincount(lane, minlength=len(lanes)).tolist()):
            here = slice(done[k], done[k] + count)
            lanes[k][0][here], lanes[k][1][here] = cell[start : start + count], stored[start : start + count]
            done[k] += count
            start += count
    return lanes[::-1]
