"""Answers without stored thresholds, several to a weight: cells hold digits of several answers, lanes say whose.

Statement  a float32 weight is a whole number below 2^24, that is k digits of base b. With lanes read off one more
           coordinate, k answers share three cells, and word 1 - word 2 - word 3 mod b^k has the digit of each.
Gives      1.25/k words per answer: up to 24 / 1.25 bits a weight, for two classes as for many.
Rests on   retrieval, lane by lane: lower digits are solved first, so that borrows are known when higher ones are.
Why        a cell that holds one class number wastes what the class number does not need.
Differs    sums of packed words have borrows; a network takes them apart by saturating steps, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.layout import Layout
from onelayer.gadgets.line import trapezoids
from onelayer.gadgets.packed import TABLES, Packed
from onelayer.gadgets.print_steps import PrintSteps
from onelayer.network.blocks import over_threads
from onelayer.readouts.cells import Cells, Column, columns_of
from onelayer.readouts.false_hits import Fingerprints
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.packed_sizes import COORDINATES, FOR_FEW, LOAD, Shape, finest_rows, print_sizes, shapes
from onelayer.readouts.peeling import Round, peel
from onelayer.readouts.plateaus import on_a_line
from onelayer.readouts.readout import Readout
from onelayer.readouts.retrieval import MOST_CLASSES, numbered_classes, whole_answers
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["packed"]
Array = NDArray[Any]

#: Cells per key are raised by so much, so often.
RELOAD, TRIES = 1.01, 16
#: Keys that lie in clusters need more room, or other lanes: then it is raised by more, and lanes change.
CLUSTERED, CLUSTERED_TRIES = 1.06, 12
#: Of unknown inputs, with a default: the share that may get another answer, where nobody chose.
FALSE_HITS = 1e-4
#: Keys by which sizes are forecast.
SAMPLE = 1 << 16


def expected_parameters(keys: Array, values: Array, print_bits: float = 0.0) -> float:
    """A forecast, by which readouts are compared before one is built; infinite where none can be."""
    some = slice(None, None, max(1, len(keys) // SAMPLE))
    finest = finest_rows(columns_of(keys[some, : 2 * TABLES]))
    if whole_answers(values[some]) is None or keys.shape[1] < COORDINATES:
        way = _best_way(keys, values, print_bits, finest)
        return float("inf") if way is None else way.parameters
    ways = shapes(len(keys), int(values.max()) + 1, finest, print_bits)
    room = bool(ways) and keys.shape[1] >= COORDINATES + len(print_sizes(ways[0].layout))
    return float(ways[0].parameters) if room else float("inf")


@dataclass(frozen=True)
class _Way:
    """Numbers that are packed [M], how, and what they number, if that is listed [C, q]."""

    shape: Shape
    answers: Array
    classes: Array | None
    finest: float  # row cells that the coordinates allow

    @property
    def parameters(self) -> float:
        """With a line that says what each number stands for, if there is one."""
        listed = 0 if self.classes is None else (7 + self.classes.shape[1]) * len(self.classes)
        return float(self.shape.parameters + listed)


def _best_way(keys: Array, values: Array, print_bits: float, finest: float) -> _Way | None:
    """The smallest: answers are numbered, or, if they are vectors of classes, each class has digits of its own."""
    found = []
    whole = values.shape[1] > 1 and not print_bits and values.min() >= 0 and values.max() < MOST_CLASSES
    if whole and not (values % 1).any():
        ways = shapes(len(keys), int(values.max()) + 1, finest, parts=values.shape[1])
        if ways:
            found.append(_Way(ways[0], ways[0].layout.number(values.astype(np.int64)), None, finest))
    classes, answers = numbered_classes(values)
    ways = shapes(len(keys), int(answers.max()) + 1, finest, print_bits)
    found += [_Way(ways[0], answers, classes, finest)] if ways else []
    found = [way for way in found if keys.shape[1] >= COORDINATES + len(print_sizes(way.shape.layout))]
    return min(found, key=lambda way: way.parameters, default=None)


def construct(
    keys: Array,
    values: Array,
    dtype: np.dtype[Any],
    radius: float,
    seed: int,
    default: Array | None = None,
    false_hits: float = 1.0,
    tries: int = TRIES + CLUSTERED_TRIES,
) -> Readout | None:
    """Distinct coordinates [M, 7 or more] and answers [M, q]; None if the keys would not peel, as equal ones never
    do: they share all their cells. With a default, fingerprints: about a share of ``false_hits`` of them agree by
    chance, say what is stored."""
    columns = columns_of(keys)
    way = _best_way(keys, values, 0.0 if default is None else -np.log2(false_hits), finest_rows(columns))
    if way is None:
        return None
    classes, layout = way.classes, way.shape.layout
    sizes = print_sizes(layout)
    cuts = [columns[i].cut(size, 3 * radius) for i, size in enumerate(sizes, COORDINATES)]
    if any(cells.count != size for (cells, _), size in zip(cuts, sizes, strict=True)):
        return None
    own, value = way.answers, layout.classes
    for (_, digit), size in zip(cuts, sizes, strict=True):
        own = own + value * digit.astype(np.int64)
        value *= size
    packed = _pack(columns, own, layout, dtype, radius, seed, way.finest, tries)
    if packed is None:
        return None
    (gadget,), other = packed.gadgets, 0.0
    assert isinstance(gadget, Packed)
    if default is not None:
        other = float(default[0]) if classes is None else float(len(classes))
        classes = None if classes is None else np.concatenate([classes, default[None]])
    steps = tuple(print_steps(cells, dtype) for cells, _ in cuts)
    guard = min([packed.guard, *(room for _, room in steps)])
    gadgets: list[Gadget] = [replace(gadget, prints=tuple(some for some, _ in steps), default=other)]
    if classes is not None:
        gadgets += on_a_line(np.arange(len(classes), dtype=np.float64), classes, dtype).gadgets
    stored = Fingerprints(layout.fingerprints) if sizes else None
    return replace(packed, gadgets=tuple(gadgets), guard=guard, stored=stored)


def print_steps(cells: Cells, dtype: np.dtype[Any]) -> tuple[PrintSteps, float]:
    weight, bias, guard = trapezoids(cells.low, cells.high, dtype)
    return PrintSteps(cells.coordinate, -weight[1:, 1], bias[1:, 1]), guard


def _pack(
    columns: list[Column],
    answers: Array,
    layout: Layout,
    dtype: np.dtype[Any],
    radius: float,
    seed: int,
    finest: float,
    tries: int,
) -> Readout | None:
    for attempt in range(tries):
        rng, later = np.random.default_rng([seed, attempt, 13]), max(0, attempt + 1 - TRIES)
        order = np.append(rng.permutation(2 * TABLES), 2 * TABLES) if not later else rng.permutation(COORDINATES)
        lane_cells, lane = columns[order[-1]].cut(layout.lanes, 3 * radius)
        if lane_cells.count != layout.lanes:
            continue
        by_lane = np.argsort(lane.astype(np.min_scalar_type(layout.lanes)), kind="stable")
        ends = np.cumsum(np.bincount(lane))
        fullest = int(np.diff(ends, prepend=0).max())
        load = (LOAD + FOR_FEW / np.sqrt(fullest)) * RELOAD ** (attempt - later) * CLUSTERED**later
        shape = Shape.of(layout, fullest, load, finest)
        cuts, cell = _hash(columns, order, shape, by_lane, radius)
        lanes = zip(np.split(cell, ends[:-1]), np.split(answers.take(by_lane), ends[:-1]), strict=True)
        words = fill_lanes(layout, lanes, TABLES * shape.rows * shape.columns)
        if words is not None:
            return build(shape, cuts, lane_cells, words, len(columns), dtype)
    return None


def _hash(
    columns: list[Column], pairing: Array, shape: Shape, by_lane: Array, radius: float
) -> tuple[list[tuple[Cells, Cells]], Array]:
    """Rows and columns of each table, and the cell [M, 3] of each key, counted over all tables, lane by lane."""
    cuts: list[Any] = [None] * TABLES
    cell = np.empty((len(by_lane), TABLES), np.int32)

    def run(table: Any) -> None:
        h = table.start
        row_cells, at = columns[pairing[2 * h]].cut(shape.rows, 3 * radius)
        column_cells, column = columns[pairing[2 * h + 1]].cut(shape.columns, 3 * radius)
        cuts[h] = row_cells, column_cells
        at += h * shape.rows
        at *= shape.columns
        at += column
        cell[:, h] = at.take(by_lane)

    over_threads(run, [slice(h, h + 1) for h in range(TABLES)])
    return cuts, cell


def fill_lanes(layout: Layout, lanes: Iterable[tuple[Array, Array]], total: int) -> Array | None:
    """Words [m, total], for the cells [k, 3] of the keys of each lane and their numbers [k]; None as soon as those
    of a lane do not peel.

    Of the three cells of a key, the first less the others has its digits in its lane. They are solved from the
    lowest of a word on: what a key's cells hold below is known then, and so the borrow.
    """
    words = np.zeros((layout.words, total), np.int32)
    for lane, (cell, own) in enumerate(lanes):
        rounds = peel(cell, total)
        if rounds is None:
            return None
        _fill_lane(layout, lane, rounds, own, words)
    return words


def _fill_lane(layout: Layout, lane: int, rounds: list[Round], own: Array, words: Array) -> None:
    """The digits of one lane, when all lower lanes are filled; those that lie in one word are solved together."""
    b = layout.base
    for u, place, first, count in layout.runs(lane):
        unit, size, word = b**place, b**count, words[u]
        wanted = (own // b**first % size).astype(np.int32)
        for keys, at, cells in reversed(rounds):
            held = word.take(cells)  # of the cell that is still to be set, only what is below
            lacking = wanted.take(keys) - (held[:, 0] - held[:, 1] - held[:, 2]) // unit
            word[at] += np.where(at == cells[:, 0], lacking, -lacking) % size * unit


def build(
    shape: Shape,
    cuts: list[tuple[Cells, Cells]],
    lanes: Cells,
    words: Array,
    coordinates: int,
    dtype: np.dtype[Any],
) -> Readout:
    made = [cells.line(dtype) for pair in cuts for cells in pair]
    # A step into a lane is the unit that switches the lane off to its left.
    weight, bias, guard = trapezoids(lanes.low, lanes.high, dtype)
    layout, R, G = shape.layout, shape.rows, shape.columns
    gadget = Packed(
        coordinates,
        layout,
        shape.block,
        tuple(line for line, _ in made),
        lanes.coordinate,
        -weight[1:, 1],
        bias[1:, 1],
        np.ascontiguousarray(words.reshape(layout.words, TABLES, R, G).swapaxes(0, 1)),
    )
    return Readout((gadget,), words.size, min(guard, *(room for _, room in made)))


@readout
class InPackedCells(ReadoutMethod):
    name, order, least_coordinates = "packed", 5, COORDINATES
    knows_stored, chooses_false_hits, refuses_equals = True, True, True
    why = "its fingerprints let through as few unknown inputs as was asked for"

    @classmethod
    def on_lattice(cls, keys: Array, values: Array, task: Task) -> Readout | None:
        share = FALSE_HITS if task.false_hits is None else task.false_hits
        tries = 1 if task.once else TRIES + CLUSTERED_TRIES
        made = construct(keys, values, task.dtype, task.radius, task.seed, task.default, share, tries)
        asked_for = task.readout == "packed" or task.false_hits is not None
        if made is None and not task.once and task.default is not None and asked_for:
            needs = f"classes and enough stored contexts for fingerprints of {-np.log2(share):.0f} bits"
            found = f"there are {len(keys):,} contexts with {len(np.unique(values, axis=0)):,} different answers"
            remedy = (
                'Leave false_hits and readout="packed" out: few answers, and many classes, are kept in a table.'
            )
            raise HypothesisError("packed", needs, found, remedy)
        return made

    @classmethod
    def expected_parameters(cls, keys: Array, values: Array, task: Task) -> float:
        share = FALSE_HITS if task.false_hits is None else task.false_hits
        return expected_parameters(keys, values, 0.0 if task.default is None else -np.log2(share))
