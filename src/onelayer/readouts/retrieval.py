"""Answers without stored thresholds: three hashed cells per key whose entries add up to the answer.

Statement  answer = T1[h1] + T2[h2] + T3[h3] mod C, where h_i = (row cell of one coordinate, column cell of
           another).
Gives      about 1.25 stored numbers per answer; every step is exact: one-hots, an emitted row, gates, whole-number
           sums.
Rests on   peeling: a random 3-uniform hypergraph with 1.23 cells per key almost surely loses all its keys one by
           one (published for hash functions; for hashes read off coordinates we peel, and see).
Why        a threshold per answer costs as much as the answer itself.
Differs    the hash is read off the network's own coordinates; the sum wraps around by two saturating steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.retrieval import TABLES, Retrieval
from onelayer.network.blocks import over_threads
from onelayer.readouts.cells import Cells, Column, columns_of
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.peeling import solve
from onelayer.readouts.plateaus import on_a_line
from onelayer.readouts.readout import Readout
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["retrieval"]
Array = NDArray[Any]

COORDINATES = 2 * TABLES
LOAD, RELOAD, TRIES = 1.235, 1.06, 8
#: Distinct values of a coordinate per row cell, so that rows fill evenly.
VALUES_PER_ROW = 6
MOST_CLASSES = 1 << 22


def construct(keys: Array, values: Array, dtype: np.dtype[Any], radius: float, seed: int) -> Readout | None:
    """Distinct coordinates [M, 6 or more] and answers [M, q]; None if the keys would not peel."""
    classes, answers = numbered_classes(values)
    C = int(answers.max()) + 1
    if C > MOST_CLASSES:
        return None
    columns = columns_of(keys)
    for attempt in range(TRIES):
        pairing = np.random.default_rng([seed, attempt, 7]).permutation(COORDINATES)
        load = (LOAD + 2.0 / np.sqrt(len(keys))) * RELOAD**attempt
        tables = _hash(columns, pairing, load, radius)
        entries = solve(tables.cell, tables.total, answers, C)
        if entries is not None:
            assert (entries.take(tables.cell).sum(axis=1, dtype=np.int32) % C == answers).all()
            return _build(tables, keys.shape[1], entries, C, classes, dtype)
    return None


@dataclass(frozen=True)
class _Tables:
    rows: list[Cells]
    columns: list[Cells]
    R: int
    G: int
    cell: Array  # [M, 3] index of each key's cell in each table, counted over all tables

    @property
    def total(self) -> int:
        return TABLES * self.R * self.G


def expected_parameters(values: Array) -> float:
    """A forecast, by which readouts are compared before one is built."""
    M, q = values.shape
    per_table = LOAD * M / TABLES
    G = (8.5 * per_table) ** (1 / 3)
    step = max(1, M >> 16)
    whole = whole_answers(values[::step]) is not None
    numbered = 0 if whole else (7 + q) * len(np.unique(values[::step], axis=0)) * step
    return float(TABLES * (per_table + G * G + 17 * (per_table / G + G)) + numbered)


def _hash(keys: list[Column], pairing: Array, load: float, radius: float) -> _Tables:
    M = len(keys[0].values)
    per_table = load * M / TABLES
    G = max(2, round((8.5 * per_table) ** (1 / 3)))  # least 3 cells + 3 G^2 + 17 * 3 (R + G)
    finest = keys[pairing[0]].distinct / VALUES_PER_ROW
    G = max(G, int(np.ceil(per_table / max(finest, np.sqrt(per_table)))))
    R = int(np.ceil(per_table / G))
    rows: list[Any] = [None] * TABLES
    columns: list[Any] = [None] * TABLES
    cell = np.empty((M, TABLES), np.int32)

    def run(table: Any) -> None:
        h = table.start
        rows[h], row = keys[pairing[2 * h]].cut(R, 3 * radius)
        columns[h], column = keys[pairing[2 * h + 1]].cut(G, 3 * radius)
        cell[:, h] = (h * R + row) * G + column

    over_threads(run, [slice(h, h + 1) for h in range(TABLES)])
    return _Tables(rows, columns, R, G, cell)


def numbered_classes(values: Array) -> tuple[Array | None, Array]:
    """Whole numbers from 0 on are their own classes; anything else is numbered, and read off at the end."""
    whole = whole_answers(values)
    if whole is not None and int(whole.max()) < MOST_CLASSES:
        return None, whole
    classes, answers = np.unique(values, axis=0, return_inverse=True)
    return classes, answers.reshape(-1).astype(np.int32)


def whole_answers(values: Array) -> Array | None:
    """Answers [M] that are whole numbers from 0 on, or None."""
    if values.shape[1] > 1 or values.min() < 0 or values.max() >= 2.0**31:
        return None
    whole = values[:, 0].astype(np.int32)
    return whole if np.array_equal(whole, values[:, 0]) else None


def _build(
    tables: _Tables, coordinates: int, entries: Array, C: int, classes: Array | None, dtype: np.dtype[Any]
) -> Readout:
    cuts = [cells.line(dtype) for pair in zip(tables.rows, tables.columns, strict=True) for cells in pair]
    lines, guards = tuple(line for line, _ in cuts), [guard for _, guard in cuts]
    filled = entries.reshape(TABLES, tables.R, tables.G).astype(dtype)
    gadgets: list[Gadget] = [Retrieval(coordinates, lines, filled, C, np.zeros(1, dtype))]
    if classes is not None:
        gadgets += on_a_line(np.arange(len(classes), dtype=np.float64), classes, dtype).gadgets
    return Readout(tuple(gadgets), tables.total, min(guards))


@readout
class ByRetrieval(ReadoutMethod):
    name, order, least_coordinates = "retrieval", 4, COORDINATES

    @classmethod
    def on_lattice(cls, keys: Array, values: Array, task: Task) -> Readout | None:
        return construct(keys, values, task.dtype, task.radius, task.seed)

    @classmethod
    def expected_parameters(cls, keys: Array, values: Array, task: Task) -> float:  # noqa: ARG003
        return expected_parameters(values)
