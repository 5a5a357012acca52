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

from onelayer.constructions.readout.cells import Cells, cut, one_hots
from onelayer.constructions.readout.plateaus import on_a_line
from onelayer.data.blocks import blocks
from onelayer.model import Grouped, Layer
from onelayer.model.forward import over_threads
from onelayer.model.tails import TABLES, retrieval_tail
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["retrieval"]
Array = NDArray[Any]

COORDINATES = 2 * TABLES
LOAD, RELOAD, TRIES = 1.235, 1.06, 8
#: Distinct values of a coordinate per row cell, so that rows fill evenly.
VALUES_PER_ROW = 6
MOST_CLASSES = 1 << 22
#: A round of peeling touches few cells if they are fewer than the FEW-th part of all.
FEW = 24


@dataclass(frozen=True)
class Retrieval:
    layers: tuple[Layer, ...]
    count: int  # cells of all tables
    guard: float


def construct(keys: Array, values: Array, dtype: np.dtype[Any], radius: float, seed: int) -> Retrieval | None:
    """Distinct coordinates [M, 6] and answers [M, q]; None if the keys would not peel."""
    classes, answers = _classes(values)
    C = int(answers.max()) + 1
    if C > MOST_CLASSES:
        return None
    for attempt in range(TRIES):
        pairing = np.random.default_rng([seed, attempt, 7]).permutation(COORDINATES)
        load = (LOAD + 2.0 / np.sqrt(len(keys))) * RELOAD**attempt
        tables = _hash(keys, pairing, load, radius)
        cells = _solve(tables.cell, tables.total, answers, C)
        if cells is not None:
            return _build(tables, cells, C, classes, dtype)
    return None


@dataclass(frozen=True)
class _Tables:
    rows: list[Cells]
    columns: list[Cells]
    R: int
    G: int
    cell: Array  # [3, M] index of each key's cell in each table, counted over all tables

    @property
    def total(self) -> int:
        return TABLES * self.R * self.G


def expected_parameters(values: Array) -> float:
    """A forecast, by which readouts are compared before one is built."""
    M, q = values.shape
    per_table = LOAD * M / TABLES
    G = (8.5 * per_table) ** (1 / 3)
    whole = q == 1 and bool((values >= 0).all() and (values % 1 == 0).all())
    numbered = 0 if whole else (7 + q) * len(np.unique(values[:: max(1, M >> 16)], axis=0)) * max(1, M >> 16)
    return float(TABLES * (per_table + G * G + 17 * (per_table / G + G)) + numbered)


def _hash(keys: Array, pairing: Array, load: float, radius: float) -> _Tables:
    M = len(keys)
    per_table = load * M / TABLES
    G = max(2, round((8.5 * per_table) ** (1 / 3)))  # least 3 cells + 3 G^2 + 17 * 3 (R + G)
    finest = len(np.unique(keys[:: max(1, M >> 16), pairing[0]])) / VALUES_PER_ROW
    G = max(G, int(np.ceil(per_table / max(finest, np.sqrt(per_table)))))
    R = int(np.ceil(per_table / G))
    rows: list[Any] = [None] * TABLES
    columns: list[Any] = [None] * TABLES
    cell = np.empty((TABLES, M), np.int32)

    def run(table: Any) -> None:
        h = table.start
        i, j = int(pairing[2 * h]), int(pairing[2 * h + 1])
        rows[h], columns[h] = cut(keys[:, i], i, R, 3 * radius), cut(keys[:, j], j, G, 3 * radius)
        for part in blocks(keys):
            cell[h, part] = (h * R + rows[h].of(keys[part, i])) * G + columns[h].of(keys[part, j])

    over_threads(run, [slice(h, h + 1) for h in range(TABLES)])
    return _Tables(rows, columns, R, G, cell)


def peel(cell: Array, total: int) -> list[tuple[Array, Array]] | None:
    """Rounds of (keys, the cell that only each of them still uses); None if some keys never get one."""
    M = cell.shape[1]
    degree, sums = np.zeros(total, np.int32), np.zeros(total)  # number and sum of the keys using a cell
    number = np.arange(M, dtype=np.float64)
    for h in cell:
        degree += np.bincount(h, minlength=total)
        sums += np.bincount(h, weights=number, minlength=total)
    users = sums.astype(np.int64)
    del number, sums
    rounds, left = [], M
    chosen = np.full(M, -1, np.int32)
    lonely = np.flatnonzero(degree == 1).astype(np.int32)  # as cells are counted
    while lonely.size:
        keys = users[lonely].astype(np.int32)
        chosen[keys] = lonely  # a key with several lonely cells keeps the last
        last = chosen[keys] == lonely
        keys, lonely = keys[last], lonely[last]
        rounds.append((keys, lonely))
        left -= len(keys)
        touched = cell[:, keys]
        candidates = touched.ravel()
        if len(candidates) * FEW > total:  # counting all cells anew is faster than touching many one by one
            degree -= np.bincount(candidates, minlength=total)
            users -= np.bincount(candidates, weights=np.tile(keys, len(cell)), minlength=total).astype(np.int64)
        else:
            for h in touched:
                np.subtract.at(degree, h, 1)
                np.subtract.at(users, h, keys)
        lonely = np.unique(candidates[degree[candidates] == 1])
    return rounds if left == 0 else None


def _solve(cell: Array, total: int, answers: Array, C: int) -> Array | None:
    """Entries of all cells, whole numbers below C: keys in the reverse order of peeling each set their own cell."""
    rounds = peel(cell, total)
    if rounds is None:
        return None
    entries = np.zeros(total, np.int64)
    for keys, own in reversed(rounds):
        entries[own] = (answers[keys] - entries[cell[:, keys]].sum(axis=0)) % C  # own is still 0
    return entries


def _classes(values: Array) -> tuple[Array | None, Array]:
    """Whole numbers from 0 on are their own classes; anything else is numbered, and read off at the end."""
    if values.shape[1] == 1 and (values >= 0).all() and values.max() < MOST_CLASSES and (values % 1 == 0).all():
        return None, values[:, 0].astype(np.int64)
    classes, answers = np.unique(values, axis=0, return_inverse=True)
    return classes, answers.reshape(-1)


def _build(tables: _Tables, entries: Array, C: int, classes: Array | None, dtype: np.dtype[Any]) -> Retrieval:
    R, G = tables.R, tables.G
    cuts = [cells for pair in zip(tables.rows, tables.columns, strict=True) for cells in pair]
    hots, guard = one_hots(cuts, [R, G] * TABLES, COORDINATES, [], dtype)
    wall = float(np.exp2(np.ceil(np.log2(C + 1))))
    emit = np.zeros((TABLES, R + G, G), dtype)
    emit[:, :R] = entries.reshape(TABLES, R, G)
    emit[:, R:] = wall * np.eye(G)
    layers: list[Layer] = [
        *hots,
        Grouped(emit, np.full(TABLES * G, -wall, dtype)),
        *retrieval_tail(G, C, dtype),
    ]
    if classes is not None:
        layers += on_a_line(np.arange(len(classes), dtype=np.float64), classes, dtype).layers
    return Retrieval(tuple(layers), tables.total, guard)
