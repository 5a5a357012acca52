"""Entries of hashed cells that add up to given answers: keys are peeled off cell by cell, and set in reverse.

A cell that a single key still uses can make up for whatever the key's other cells hold. Peeling finds such cells in
rounds; setting them in the reverse order, each key finds its other cells final.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Recounting all cells is faster than touching some one by one, if those are more than this part of all.
MANY = 6
#: Sums of whole numbers below this are exact in float64, in which they are counted.
EXACT_BITS = 53
#: Fewer keys than this use any one cell, as a rule.
USUAL = 64


class Round(NamedTuple):
    keys: Array  # [k]
    own: Array  # [k] the cell that only this key still used
    cells: Array  # [k, tables] all cells of each key


def peel(cell: Array, total: int) -> list[Round] | None:
    """Rounds for the cells [M, tables] of M keys, counted over all tables; None if some keys never get one."""
    M, tables = cell.shape
    state, shift = _count(cell, total, USUAL)
    if int(state.max(initial=0)) >> shift >= USUAL:  # then the sum of the keys may reach into their number
        fullest = int(np.bincount(cell.ravel()).max())
        if (fullest * M).bit_length() + fullest.bit_length() > EXACT_BITS:
            return None  # so full a cell among so many keys: one table is no hash at all, and two do not peel
        state, shift = _count(cell, total, fullest)
    unit = 1 << shift
    rounds, left = [], M
    last_seen = np.empty(M, np.int32)
    lonely = np.flatnonzero(state >> shift == 1)
    while lonely.size:
        keys = state.take(lonely) - unit
        place = np.arange(len(keys), dtype=np.int32)
        last_seen[keys] = place  # a key with several lonely cells keeps the last, and a cell met twice counts once
        kept = last_seen.take(keys) == place
        keys, own = keys[kept], lonely[kept]
        touched = cell.take(keys, axis=0)
        rounds.append(Round(keys.astype(np.int32), own.astype(np.int32), touched))
        left -= len(keys)
        flat, gone = touched.ravel(), np.repeat(keys + unit, tables)
        if len(flat) * MANY > total:
            state -= np.bincount(flat, weights=gone, minlength=total).astype(np.int64)
        else:
            np.subtract.at(state, flat, gone)
        lonely = flat[state.take(flat) >> shift == 1]
    return rounds if left == 0 else None


def _count(cell: Array, total: int, fullest: int) -> tuple[Array, int]:
    """For each cell the sum of the keys that use it and, this many bits above it, their number, if that is at most
    ``fullest``."""
    M, tables = cell.shape
    shift = (fullest * M).bit_length()
    weights = np.arange(1 << shift, (1 << shift) + M, dtype=np.float64)
    found = sum(np.bincount(cell[:, h], weights, total) for h in range(tables))
    return np.asarray(found).astype(np.int64), shift


def solve(cell: Array, total: int, answers: Array, C: int) -> Array | None:
    """Entries of all cells, whole numbers below C, such that those of a key add up to its answer modulo C."""
    rounds = peel(cell, total)
    if rounds is None:
        return None
    entries = np.zeros(total, np.int32)
    for keys, own, cells in reversed(rounds):
        entries[own] = (answers.take(keys) - entries.take(cells).sum(axis=1, dtype=np.int32)) % C  # own is still 0
    return entries
