"""Answers in rows and columns: a row one-hot emits the thresholds and values of its row, column steps open one
gate.

Statement  with rows cut along one coordinate and columns along another, or further along the same one, exactly one
           gate relu(value - wall * (below its start) - wall * (from its end on)) is open, and the sum of all is
           its value.
Gives      about two stored numbers per answer (three with a default), widths of about sqrt(M), any floats as
           values.
Rests on   plateaus: saturated steps are exactly 0 or 1, so every sum has one non-zero term.
Why        one trapezoid per answer costs seven numbers and a network as wide as the data.
Differs    each row uses the coordinate that separates its answers; a row that none separates is split, never
           dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.choice import Choice
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.table import Table
from onelayer.readouts.cells import Cells
from onelayer.readouts.false_hits import Stored
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.readout import Readout
from onelayer.readouts.rows import GAP_IN_RADII, Rows, divide
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["table"]
Array = NDArray[Any]

#: Width of a plateau with a default: unknown inputs are taken for stored in proportion to it. Ramps take at most a
#: quarter of it, so a coordinate may move by nearly two radii.
PLATEAU_IN_RADII = 5.0


def construct(
    keys: Array,
    values: Array,
    dtype: np.dtype[Any],
    radius: float,
    default: Array | None = None,
    spread: float = 0.0,
) -> Readout | None:
    """Distinct coordinates [M, c] and answers [M, q]; None if some answers cannot be told apart.

    ``spread``: a sample lies this far from its key at most, where samples with equal answers share one.
    """
    M, c = keys.shape
    if float(np.abs(values).max()) > np.finfo(dtype).max / 8:
        return None  # no wall is higher
    rows = divide(keys, values, row_size(M, c, values.shape[1], default is not None), radius, default is None)
    if rows is None:
        return None
    columns = _Columns.of(rows, keys, values, radius, default is not None, dtype, spread)
    select, inputs, read = _selection(rows, keys, dtype)
    line, guard = rows.cells.line(dtype)
    emitted = (columns.slope, columns.start, columns.end, columns.values, columns.signs.astype(dtype))
    other = None if default is None else default.astype(dtype)
    table = Table(inputs, line, read, *emitted, other, np.zeros(values.shape[1], dtype))
    stored = None if default is None else Stored(rows, c, columns.reach)
    return Readout((*select, table), M, min(guard, columns.guard) - spread, stored)


def row_size(M: int, c: int, q: int, default: bool) -> int:
    """Answers in a row, near the least number of parameters: M (2c + 8) / G for rows, and layers of G x G."""
    squares = (2 + q) * (3 + q) * (2 if default else 1)
    return int(np.clip(round((M * (2 * c + 8) / (2 * squares)) ** (1 / 3)), 2, 256))


def expected_parameters(keys: Array, values: Array) -> float:
    """A forecast, by which readouts are compared before one is built."""
    (M, c), parts = keys.shape, len(_split_signs(values))
    G = row_size(M, c, values.shape[1], False)
    return float(M * (1 + parts) * 1.2 + M / G * (2 * c + 8) + G * G * (1 + parts) * (3 + parts))


def _split_signs(values: Array) -> Array:
    """Values as non-negative parts: [M, q'] and the signs [q', q] that put them together again."""
    parts = [(i, sign) for i in range(values.shape[1]) for sign in (1.0, -1.0) if (sign * values[:, i] > 0).any()]
    signs = np.zeros((max(1, len(parts)), values.shape[1]))
    for p, (i, sign) in enumerate(parts):
        signs[p, i] = sign
    return signs


@dataclass(frozen=True)
class _Columns:
    """What each row emits: W_start and, with a default, W_end [R, G]; parts of values [R, G, q']."""

    slope: float
    start: Array
    end: Array | None
    values: Array
    signs: Array
    guard: float
    reach: float  # how far from a stored coordinate the default begins at the latest; infinite without one

    @staticmethod
    def of(
        rows: Rows,
        keys: Array,
        values: Array,
        radius: float,
        closed: bool,
        dtype: np.dtype[Any],
        spread: float,
    ) -> _Columns:
        z = rows.z  # column coordinate of each key, in the order of rows, then columns
        first = np.concatenate([[True], np.diff(rows.row) != 0])
        wanted = values[rows.order]
        changed = np.concatenate([[True], (wanted[1:] != wanted[:-1]).any(axis=1)])
        begins = np.flatnonzero(
            first | changed | closed
        )  # of columns; without a default, equal neighbours share one
        row, inner = rows.row[begins], ~first[begins]
        column = np.arange(len(begins)) - np.flatnonzero(~inner)[row]
        gap = z[begins] - z[np.maximum(begins - 1, 0)]
        least = float(gap[inner].min(initial=np.inf))
        if not np.isfinite(least):
            least = 1.0
        half = _half_width(z, least, radius, spread) if closed else least / 2
        slope = float(np.exp2(np.ceil(np.log2(2.0 / half))))
        R, G, top = rows.count, int(column.max()) + 1, float(keys.max()) + least
        at = row * G + column

        def thresholds(places: Array, here: Array) -> Array:
            """Steps at these places of the line, beyond everything in columns that are not used."""
            emitted = np.full(R * G, 1.0 + slope * top, dtype)
            emitted[here] = 0.5 + slope * places
            return emitted.reshape(R, G)

        signs = _split_signs(values)
        parts = np.zeros((R * G, len(signs)), dtype)
        parts[at] = np.maximum(wanted[begins] @ signs.T, 0.0)
        if closed:  # a plateau around each key
            start, end = thresholds(z - half, at), thresholds(z + half, at)
            emitted = np.stack([start.ravel()[at], end.ravel()[at]]).astype(np.float64)
            rounded = float(np.abs(emitted - (0.5 + slope * np.stack([z - half, z + half]))).max()) / slope
            guard, reach = half - 0.5 / slope - rounded, half + 0.5 / slope + rounded + radius
        else:
            start, end = thresholds((z[begins] - gap / 2)[inner], at[inner]), None
            start[:, 0] = 0.0
            guard, reach = 0.375 * least, np.inf
        return _Columns(slope, start, end, parts.reshape(R, G, -1), signs, guard, reach)


def _half_width(z: Array, least: float, radius: float, spread: float) -> float:
    """Of a plateau, where there is a default: no wider than rounding asks for, so unknown inputs rarely land on it.

    Between whole numbers nothing lies, so plateaus around them may be as wide as fits.
    """
    return min(least, 1.0 if _whole(z) else PLATEAU_IN_RADII * radius + 2 * spread) / 2


def _whole(z: Array) -> bool:
    return bool((z == np.rint(z)).all())


def _selection(rows: Rows, keys: Array, dtype: np.dtype[Any]) -> tuple[tuple[Gadget, ...], int, tuple[int, ...]]:
    """What passes on coordinate 0 and, of the others, only the one this row is read along; how many coordinates
    there are then, and which of them hold the one that columns are cut along."""
    c = keys.shape[1]
    used = np.unique(rows.coordinate)
    if len(used) == 1:
        return (), c, (int(used[0]),)
    ends = np.flatnonzero(np.diff(rows.coordinate))  # the last row of each run of rows with one coordinate
    runs, _ = Cells(0, rows.cells.low[ends], rows.cells.high[ends]).line(dtype)
    chosen = np.searchsorted(used, rows.coordinate[np.append(ends, rows.count - 1)])
    wall = float(np.exp2(np.ceil(np.log2(keys.max() + 1.0))))
    reach = 1 + len(used)
    return (Choice(c, runs, tuple(used.tolist()), chosen, wall),), reach, tuple(range(1, reach))


@readout
class InTable(ReadoutMethod):
    name, order, knows_stored = "table", 3, True
    why = "it knows what is stored, as a default needs"

    @classmethod
    def on_line(cls, t: Array, answers: Array, task: Task) -> Readout | None:
        starts = np.flatnonzero(np.concatenate([[True], np.diff(t) > GAP_IN_RADII * task.radius]))
        low, high = t[starts], t[np.append(starts[1:], len(t)) - 1]  # ids too close to be told apart share a key
        keys, spread = ((low + high) / 2)[:, None], float((high - low).max()) / 2
        return construct(keys, answers[starts], task.dtype, task.radius, task.default, spread)

    @classmethod
    def on_lattice(cls, keys: Array, values: Array, task: Task) -> Readout | None:
        return construct(keys, values, task.dtype, task.radius, task.default)

    @classmethod
    def expected_parameters(cls, keys: Array, values: Array, task: Task) -> float:  # noqa: ARG003
        return expected_parameters(keys, values)
