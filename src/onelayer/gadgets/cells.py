"""Readouts of cells by search: which cell of each coordinate a token is in, then one entry per table is looked up.

Where a coordinate lies on a ramp between two cells, or a threshold of its row is not decided, the dense layers are
asked, so the answers are those of the dense network everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from onelayer.gadgets.line import Cells
from onelayer.gadgets.tails import TABLES, retrieval_tail, same, table_tail
from onelayer.network.blocks import apply_stack
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Answers [T, q] for coordinates [T, c], and for which tokens they are those of the dense layers.
Answer = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class RetrievalSearch:
    """Three cells per token, whose entries are added modulo C."""

    layers: tuple[Layer, ...]
    head: tuple[Layer, ...]
    rows: tuple[Cells, ...]
    columns: tuple[Cells, ...]
    entries: tuple[Array, ...]  # [R, G] each
    C: float
    rest: tuple[Layer, ...]
    finish: Callable[[Array], Array] | None = None  # gives what the rest gives, by a search

    def __call__(self, h: Array) -> Array:
        def answer(t: Array) -> tuple[Array, Array]:
            total, sure = np.zeros(len(t), t.dtype), np.ones(len(t), bool)
            for row, column, entries in zip(self.rows, self.columns, self.entries, strict=True):
                (r, a), (c, b) = row.find(t), column.find(t)
                sure &= a & b
                total += entries.ravel().take(r * entries.shape[1] + c)
            total -= self.C * ((total >= self.C).astype(t.dtype) + (total >= 2 * self.C))
            return total[:, None], sure

        finish = self.finish or (partial(apply_stack, self.rest) if self.rest else None)
        return _searched(self.layers, self.head, answer, finish, h)


@dataclass(frozen=True)
class TableSearch:
    """A row, then a column by bisection of the row's thresholds."""

    layers: tuple[Layer, ...]
    head: tuple[Layer, ...]
    runs: Cells | None  # which coordinate a row is read along
    choice: Array  # [runs] column coordinate
    rows: Cells
    start: Array  # [R, G]
    end: Array | None
    slope: float
    values: Array  # [R, G, q]
    default: Array | None

    def __call__(self, h: Array) -> Array:
        return _searched(self.layers, self.head, self._answer, None, h)

    def _answer(self, t: Array) -> tuple[Array, Array]:
        row, sure = self.rows.find(t)
        run = np.zeros(len(t), np.intp)
        if self.runs is not None:
            run, decided = self.runs.find(t)
            sure = sure & decided
        z = t[np.arange(len(t)), self.choice[run]] * self.start.dtype.type(self.slope)
        G = self.start.shape[1]
        low, high = np.zeros(len(t), np.intp), np.full(len(t), G)  # the last column whose start is not beyond z
        while (low + 1 < high).any():
            middle = (low + high) // 2
            reached = self.start[row, middle] - z <= 0
            low, high = np.where(reached, middle, low), np.where(reached, high, np.maximum(middle, low + 1))
        hit = self.start[row, low] - z <= 0
        following = np.where(hit, np.minimum(low + 1, G - 1), low)
        sure &= (following == low) & hit | (self.start[row, following] - z >= 1)
        answers = self.values[row, low]
        if self.end is None:
            return answers, sure & hit
        assert self.default is not None
        to_end = self.end[row, low] - z
        sure &= ~hit | (to_end <= 0) | (to_end >= 1)
        return np.where((hit & (to_end >= 1))[:, None], answers, self.default), sure


def _searched(
    layers: tuple[Layer, ...],
    head: tuple[Layer, ...],
    answer: Answer,
    finish: Callable[[Array], Array] | None,
    h: Array,
) -> Array:
    tokens = h.reshape(-1, h.shape[-1])
    t = tokens
    for layer in head:
        t = np.maximum(apply_layer(layer, t), 0)
    out, sure = answer(t)
    if finish is not None:
        out = finish(np.maximum(out, 0))
    unsure = np.flatnonzero(~sure)
    if unsure.size:
        out[unsure] = apply_stack(layers, tokens[unsure])
    result: Array = out.reshape(*h.shape[:-1], out.shape[-1])
    return result


def find_retrieval(layers: tuple[Layer, ...]) -> RetrievalSearch | None:
    """Recognise (..., units, one-hots, emitted rows, tail, ...) of a retrieval readout."""
    for at in range(1, len(layers) - 5):
        units, hots, emit = layers[at : at + 3]
        if not (isinstance(units, Linear) and isinstance(hots, Grouped) and isinstance(emit, Grouped)):
            continue
        blocks, size, G = emit.weight.shape
        R, C = size - G, float(layers[at + 3].bias[1]) if len(layers[at + 3].bias) == 3 else 0.0
        if blocks != TABLES or R < 1 or hots.weight.shape != (TABLES * size, 2, 1) or not _plain(hots):
            return None
        if not same(layers[at + 3 : at + 6], retrieval_tail(G, int(C), units.weight.dtype)):
            return None
        wall = float(emit.weight[0, R, 0])
        if (emit.weight[:, R:] != wall * np.eye(G)).any() or (emit.bias != -wall).any():
            return None
        weight = units.weight.reshape(-1, TABLES, size, 2)
        bias = units.bias.reshape(TABLES, size, 2)
        rows = tuple(Cells.of(weight[:, k, :R], bias[k, :R]) for k in range(TABLES))
        columns = tuple(Cells.of(weight[:, k, R:], bias[k, R:]) for k in range(TABLES))
        if None in rows or None in columns or not 0 <= emit.weight[:, :R].min() <= emit.weight[:, :R].max() < wall:
            return None
        entries = tuple(np.ascontiguousarray(emit.weight[k, :R]) for k in range(TABLES))
        return RetrievalSearch(layers, layers[:at], rows, columns, entries, C, layers[at + 6 :])  # type: ignore[arg-type]
    return None


def find_table(layers: tuple[Layer, ...]) -> TableSearch | None:
    """Recognise (head, [selection,] units, one-hots, emitted rows, tail) of a table readout."""
    for tail_size in (4, 5):
        at = len(layers) - tail_size - 3  # units, one-hots, emit come before the tail
        if at < 1:
            return None
        units, hots, emit = layers[at : at + 3]
        if not (isinstance(units, Linear) and isinstance(hots, Grouped) and isinstance(emit, Linear)):
            continue
        R = len(emit.weight) - 1
        if R < 1 or hots.weight.shape != (R + 1, 2, 1) or not _plain(hots, carried=1) or emit.bias.any():
            continue
        columns = _columns(layers[at + 3 :], emit, R)
        weight, bias = units.weight.reshape(-1, R + 1, 2), units.bias.reshape(R + 1, 2)
        cells = Cells.of(weight[:, :R], bias[:R])
        if columns is None or cells is None or bias[R].any() or weight[:, R, 1].any():
            continue
        read = np.flatnonzero(weight[:, R, 0])
        if cells.coordinate == 0 and (weight[read, R, 0] == 1).all():
            selected = _selection(layers, at, read)
            if selected is not None:
                head, runs, choice = selected
                return TableSearch(layers, head, runs, choice, cells, *columns)
    return None


def _columns(tail: tuple[Layer, ...], emit: Linear, R: int):  # type: ignore[no-untyped-def]
    """(start, end, slope, values, default) if the tail is that of a table."""
    closed = len(tail) == 5
    last, dtype = tail[-1], emit.weight.dtype
    K = int(np.count_nonzero(emit.weight[R]))
    G = K // 2 if closed else K
    linear = isinstance(tail[2], Linear) and isinstance(last, Linear)
    if G < 1 or (emit.weight.shape[1] - K) % G or not linear:
        return None
    parts = (emit.weight.shape[1] - K) // G
    signs = last.weight[:parts].astype(np.float64)
    default = last.weight[parts].astype(np.float64) if closed and len(last.weight) == parts + 1 else None
    wall = -float(tail[2].weight[0, 0])
    if parts < 1 or closed != (default is not None) or not same(tail, table_tail(G, signs, wall, default, dtype)):
        return None
    slope = -emit.weight[R, 0]
    values = emit.weight[:R, K:].reshape(R, G, parts)
    start = emit.weight[:R, :G]
    fits = (emit.weight[R, :K] == -slope).all() and not emit.weight[R, K:].any() and np.frexp(slope)[0] == 0.5
    if not fits or values.min() < 0 or values.max() > wall or (np.diff(start, axis=1) < 0).any():
        return None
    end = emit.weight[:R, G:K] if closed else None
    together = (values @ last.weight[:parts]).astype(dtype)
    return start, end, float(slope), together, None if default is None else default.astype(dtype)


def _selection(layers: tuple[Layer, ...], at: int, read: Array):  # type: ignore[no-untyped-def]
    """(head, cells of runs, column coordinate per run) of the layers before the rows."""
    if len(read) == 1:
        return layers[:at], None, read
    units, hots, gate = layers[at - 3 : at] if at >= 4 else (None, None, None)
    if (
        not (isinstance(units, Linear) and isinstance(hots, Grouped) and isinstance(gate, Linear))
        or gate.bias.any()
    ):
        return None
    c = gate.width
    runs = len(gate.weight) - c
    if runs < 1 or not _plain(hots, carried=c) or not np.array_equal(gate.weight[runs:], np.eye(c)):
        return None
    weight, bias = units.weight.reshape(-1, runs + c, 2), units.bias.reshape(runs + c, 2)
    cells = Cells.of(weight[:, :runs], bias[:runs])
    carried = weight[:, runs:, 0]
    if cells is None or cells.coordinate != 0 or bias[runs:].any() or weight[:, runs:, 1].any():
        return None
    source = carried.argmax(axis=0)
    open_ = gate.weight[:runs, 1:] == 0
    one_each = (np.count_nonzero(carried, axis=0) == 1).all() and (carried.max(axis=0) == 1).all()
    if not one_each or source[0] != 0 or (open_.sum(axis=1) != 1).any() or gate.weight[:runs, 0].any():
        return None
    return layers[: at - 3], cells, source[1:][open_.argmax(axis=1)]


def _plain(hots: Grouped, carried: int = 0) -> bool:
    """relu(1 - u - v) for every group but the last ``carried``, which pass their first unit on."""
    K = len(hots.weight) - carried
    if hots.weight.shape[1:] != (2, 1) or K < 1 or (hots.weight[:K] != -1).any() or (hots.bias[:K] != 1).any():
        return False
    return not hots.bias[K:].any() and (hots.weight[K:, 0] == 1).all() and not hots.weight[K:, 1].any()
