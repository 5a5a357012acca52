"""Other answers in the cells that are there: the same hash and the same peeling, and only entries that must change.

A key's own cell, which peeling gave it, makes up for whatever the key's other cells hold. To change an answer, its
own cell is changed, then those of the keys that were peeled before and use that cell, and so on: keys whose answer
still comes out are left alone, so the change goes no further than the peeling needs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.packed import Packed
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.retrieval import TABLES, Retrieval
from onelayer.gadgets.table import Table
from onelayer.readouts.peeling import peel

Array = NDArray[Any]


def refill(gadget: Gadget, t: Array, numbers: Array) -> Gadget | None:
    """The gadget that gives these whole numbers [T] at coordinates t [T, inputs], all of those that it stores; None
    if its cells, or its columns, cannot hold them. Whoever asks looks whether it does."""
    if isinstance(gadget, Packed):
        return _refill_packed(gadget, t, numbers)
    if isinstance(gadget, Retrieval):
        return _refill_retrieval(gadget, t, numbers)
    if isinstance(gadget, Plateaus | Table):
        return _rewrite_values(gadget, t, numbers)
    return None


def _cells(gadget: Packed | Retrieval, t: Array, rows: int, columns: int) -> Array | None:
    """[T, 3] the cell of each token in each table, counted over all tables; None if one is on a ramp."""
    cell = np.empty((len(t), TABLES), np.int32)
    for h in range(TABLES):
        (row, a), (column, b) = gadget.lines[2 * h].find(t), gadget.lines[2 * h + 1].find(t)
        if not (a & b).all():
            return None
        cell[:, h] = (h * rows + row) * columns + column
    return cell


def _keys(cell: Array, total: int, lane: Array) -> Array:
    """The first token of each key: of those with the same cells in the same lane."""
    code = (lane.astype(np.int64) * total + cell[:, 0]) * total + cell[:, 1]
    order = np.lexsort((cell[:, 2], code))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(code[order]) != 0) | (np.diff(cell[order, 2]) != 0)
    return np.sort(order[new])


def _refill_packed(gadget: Packed, t: Array, numbers: Array) -> Packed | None:
    layout, (_, m, R, G) = gadget.layout, gadget.words.shape
    cell, (lane, sure) = _cells(gadget, t, R, G), gadget.find_lanes(t[:, gadget.lane])
    inside = layout.parts == 1 and 0 <= numbers.min() <= numbers.max() < layout.classes
    if cell is None or not sure.all() or not inside:
        return None
    total = TABLES * R * G
    first = _keys(cell, total, lane)
    cell, lane, wanted = cell[first], lane[first], numbers[first].astype(np.int64)
    if gadget.prints:
        prints, decided = gadget.find_prints({s.coordinate: t[first, s.coordinate] for s in gadget.prints})
        if not decided:
            return None
        wanted = wanted + layout.classes * sum(digit for _, digit in prints)
    words = np.ascontiguousarray(gadget.words.swapaxes(0, 1)).reshape(m, total).astype(np.int64)
    for k in range(layout.lanes):  # lower digits are final, and so are borrows, before higher ones are looked at
        members = np.flatnonzero(lane == k)
        rounds = peel(np.ascontiguousarray(cell[members]), total)
        if rounds is None:
            return None
        for u, place, start, count in layout.runs(k):
            unit, size, word = layout.base**place, layout.base**count, words[u]
            digits = wanted[members] // layout.base**start % size
            for keys, own, cells in reversed(rounds):
                held = word.take(cells)
                lacking = (digits.take(keys) - (held[:, 0] - held[:, 1] - held[:, 2]) // unit) % size
                off = np.flatnonzero(lacking)
                at = own[off]
                more = np.where(at == cells[off, 0], lacking[off], -lacking[off])
                old = word[at] // unit % size
                word[at] += ((old + more) % size - old) * unit
    back = words.reshape(m, TABLES, R, G).swapaxes(0, 1).astype(gadget.words.dtype)
    return replace(gadget, words=np.ascontiguousarray(back))


def _refill_retrieval(gadget: Retrieval, t: Array, numbers: Array) -> Retrieval | None:
    _, R, G = gadget.entries.shape
    cell, wanted = _cells(gadget, t, R, G), numbers - int(gadget.constant[0])
    if cell is None or not 0 <= wanted.min() <= wanted.max() < gadget.C:
        return None
    first = _keys(cell, TABLES * R * G, np.zeros(len(t), np.int64))
    rounds = peel(np.ascontiguousarray(cell[first]), TABLES * R * G)
    if rounds is None:
        return None
    entries, wanted = gadget.entries.astype(np.int64).ravel(), wanted[first].astype(np.int64)
    for keys, own, cells in reversed(rounds):
        entries[own] = (entries[own] + wanted.take(keys) - entries.take(cells).sum(axis=1)) % gadget.C
    return replace(gadget, entries=entries.reshape(gadget.entries.shape).astype(gadget.entries.dtype))


def _rewrite_values(gadget: Plateaus | Table, t: Array, numbers: Array) -> Gadget | None:
    """Values that one number each stands for: which one a token gets shows if each gives its own place."""
    values = gadget.values.reshape(-1, gadget.values.shape[-1])
    signs = gadget.signs if isinstance(gadget, Table) else np.ones((1, 1), values.dtype)
    if values.shape[1] != 1 or signs.shape != (1, 1) or signs[0, 0] != 1:
        return None
    places = np.arange(len(values), dtype=values.dtype).reshape(gadget.values.shape)
    marked = replace(gadget, values=places, constant=np.zeros_like(gadget.constant))
    place = np.rint(marked.search(t)[:, 0]).astype(np.int64)
    if not 0 <= place.min() <= place.max() < len(values):
        return None
    wanted = (numbers - gadget.constant[0]).astype(values.dtype)
    made = values.copy()
    made[place, 0] = wanted
    return None if (made[place, 0] != wanted).any() else replace(gadget, values=made.reshape(gadget.values.shape))
