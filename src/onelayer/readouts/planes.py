"""Answers read off small whole numbers: hashes of coordinates, and three cells for each digit of a class.

Statement  with h_i = (row, column), each made of random digits that are read off one coordinate each, a digit of
           the answer is T1[h1] + T2[h2] + T3[h3] modulo its base; all sums are whole numbers up to 2^8, or 2^11.
Gives      about 1.25 stored numbers for each answer and digit, in formats of 8 or 11 bits, exact in every order.
Rests on   retrieval: keys that are hashed well are peeled off cell by cell; we peel, and see.
Why        `retrieval` cuts wide coordinates into hundreds of cells, which a coordinate of 8 bits does not have.
Differs    coordinates are hashed before they are cut, and a class is given digit by digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import PrecisionError
from onelayer.gadgets.line import Line, whole_cells
from onelayer.gadgets.lookups import Lookups
from onelayer.gadgets.planes import Planes
from onelayer.gadgets.retrieval import TABLES
from onelayer.network.formats import FORMATS, Format
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.peeling import peel
from onelayer.readouts.readout import Readout
from onelayer.readouts.retrieval import numbered_classes
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["planes"]
Array = NDArray[Any]

LOAD, RELOAD, TRIES = 1.27, 1.05, 12
#: Up to this try keys are hashed once; after it twice, by way of so many coordinates.
ONE_STAGE, BETWEEN = 6, 8
#: A coordinate has so many values for each digit that is read off it, so that digits are equally frequent.
VALUES_A_DIGIT = 3
#: How far a coordinate may move without leaving its cell.
GUARD = 0.25


def construct(keys: Array, values: Array, dtype: np.dtype[Any], format_: Format, seed: int) -> Readout | None:
    """Distinct whole coordinates [M, c] and classes [M, 1]; None if the keys would not peel."""
    classes, answers = numbered_classes(values)
    if classes is not None or keys.max() > format_.whole:
        return None
    base, planes = digits_of(int(answers.max()) + 1, format_)
    digits = np.stack([answers // base**p % base for p in range(planes)], axis=1)
    for attempt in range(TRIES):
        R, G = sides(len(keys), (LOAD + 4.0 / np.sqrt(len(keys))) * RELOAD**attempt, format_)
        rng = np.random.default_rng([seed, attempt, 13])
        hashes, gadgets = keys.astype(np.intp), []
        if attempt >= ONE_STAGE:  # of contexts and tokens together, so that tables are no products of the two
            hashes, gadget = hashed(hashes, [highest_hash(format_)] * BETWEEN, dtype, rng)
            gadgets.append(gadget)
        hashes, gadget = hashed(hashes, [R, G] * TABLES, dtype, rng)
        cell = (np.arange(TABLES) * R + hashes[:, ::2]) * G + hashes[:, 1::2]
        entries = _solve(cell.astype(np.int32), TABLES * R * G, digits, base)
        if entries is not None:
            break
    else:
        return None
    cells = tuple(Line(i, *whole_cells(np.arange(1, (R, G)[i % 2]), dtype)) for i in range(2 * TABLES))
    filled = entries.reshape(TABLES, R, G, planes).swapaxes(2, 3).astype(dtype)
    reading = Planes(2 * TABLES, cells, np.ascontiguousarray(filled), base, np.zeros(1, dtype))
    return Readout((*gadgets, gadget, reading), TABLES * R * G, GUARD)


def digits_of(classes: int, format_: Format) -> tuple[int, int]:
    """The base, and how many digits a class has: three entries, or an entry and two walls, must fit the format."""
    largest, planes = (format_.whole - 1) // 3, 1
    while largest**planes < classes:
        planes += 1
    base = max(2, int(np.ceil(classes ** (1 / planes))))
    while base**planes < classes:
        base += 1
    return base, planes


def sides(keys: int, load: float, format_: Format) -> tuple[int, int]:
    """Rows and columns of a table: twice as many rows, whose gates cost nothing, where the format has so many."""
    cells, most = load * keys / TABLES, highest_hash(format_)
    if cells > most * most:
        needs = f"at most about {int(TABLES * most * most / load):,} different contexts in {format_.name}"
        raise PrecisionError("planes", needs, f"there are {keys:,}", 'Use dtype="float32".')
    rows = min(most, max(2, int(np.ceil(np.sqrt(2 * cells)))))
    return rows, max(2, int(np.ceil(cells / rows)))


def highest_hash(format_: Format) -> int:
    """A hash is below this: its cells have biases of 8 bits or fewer, and nothing overflows."""
    return 1 << min(format_.bits - 1, 8)


def hashed(keys: Array, sizes: list[int], dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, Lookups]:
    """Hashes [M, hashes] below ``sizes`` of whole keys [M, c], and what computes them: each is made of digits of
    some coordinates."""
    lines = tuple(
        Line(i, *whole_cells(np.arange(1, max(1, top) + 1), dtype))
        for i, top in enumerate(keys.max(axis=0).tolist())
    )
    starts = np.cumsum([0, *(line.count for line in lines)])
    tables, found = np.zeros((starts[-1], len(sizes)), np.intp), np.zeros((len(keys), len(sizes)), np.intp)
    counts = [np.bincount(column, minlength=line.count) for column, line in zip(keys.T, lines, strict=True)]
    reads = _in_turn(keys.shape[1], rng)
    for k, size in enumerate(sizes):
        unit, most = 1, int(np.ceil(np.sqrt(size)))
        while 2 * unit <= size:
            i = next(reads)
            base = min(most, max(2, int(np.count_nonzero(counts[i])) // VALUES_A_DIGIT), size // unit)
            digit = unit * _balanced(counts[i], base, rng)
            tables[starts[i] : starts[i + 1], k] += digit
            found[:, k] += digit.take(keys[:, i])
            unit *= base
    gadget = Lookups(keys.shape[1], lines, (), tables.astype(dtype), np.zeros(len(sizes), dtype))
    return found, gadget


def _in_turn(coordinates: int, rng: np.random.Generator) -> Iterator[int]:
    """Coordinates at random, one of the first half, where contexts are, and one of the second, where tokens are."""
    half = -(-coordinates // 2)
    while True:
        first, second = rng.permutation(half), half + rng.permutation(coordinates - half)
        for k in range(half):
            yield int(first[k])
            if k < len(second):
                yield int(second[k])


def _balanced(counts: Array, size: int, rng: np.random.Generator) -> Array:
    """A digit for every value of a coordinate, such that all digits are about equally frequent."""
    order = rng.permutation(len(counts))
    order = order[np.argsort(-counts[order], kind="stable")]
    digit, filled = np.empty(len(counts), np.intp), rng.random(size)
    for value in order:
        digit[value] = at = int(filled.argmin())
        filled[at] += counts[value]
    return digit


def _solve(cell: Array, total: int, digits: Array, base: int) -> Array | None:
    """Entries [total, planes], whole numbers below the base; those of a key add up to its digits modulo it."""
    rounds = peel(cell, total)
    if rounds is None:
        return None
    entries = np.zeros((total, digits.shape[1]), np.int32)
    for keys, own, cells in reversed(rounds):
        entries[own] = (digits.take(keys, axis=0) - entries[cells].sum(axis=1)) % base
    return entries


@readout
class ByPlanes(ReadoutMethod):
    name, order, only_classes, automatic, least_coordinates = "planes", 6, True, False, 2

    @classmethod
    def on_lattice(cls, keys: Array, values: Array, task: Task) -> Readout | None:
        return construct(keys, values, task.dtype, task.format or FORMATS["bfloat16"], task.seed)
