"""A next-token model by look-up: whole-number codes per (place, token) are added, cells and entries looked up.

Attention that averages uniformly adds up what each token contributes, and on a lattice these are whole numbers; so
the cells of every whole number, as the search of the tables finds them, can be written down beforehand. No
whole number lies on a ramp between two cells, so every window, stored or not, is answered as by the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.line import Line
from onelayer.gadgets.packed import Packed
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.retrieval import Retrieval
from onelayer.gadgets.stacks import Part, read_stack
from onelayer.network.blocks import Rows, apply_stack, over_threads
from onelayer.network.weights import Array, Attention, Linear, Transformer

#: Windows whose sums are accumulated at a time: they stay in a core's cache.
BLOCK = 1 << 13
#: A coordinate with more whole numbers than this is not tabulated.
MOST_VALUES = 1 << 23


def window_sums(codes: Array, stream: Array) -> Array:
    """Sums [N, s] over the places k of codes[k, token] for the N windows stream[i : i + n], whole numbers."""
    n, _, s = codes.shape
    N = len(stream) - n
    out = np.zeros((N, s), codes.dtype)

    def run(rows: Rows) -> None:
        assert isinstance(rows, slice)
        some = out[rows]
        for k in range(n):
            some += codes[k].take(stream[rows.start + k : rows.start + k + len(some)], axis=0)

    over_threads(run, [slice(start, min(start + BLOCK, N)) for start in range(0, N, BLOCK)])
    return out


@dataclass(frozen=True)
class WindowModel:
    """What a transformer says at the last token of a window of n tokens."""

    codes: Array  # [n, tokens, s] whole numbers: what a token at a place adds to the coordinates
    offset: Array  # [s]
    cells: tuple[Array, ...]  # for each row and column of the tables: the cell of every whole number from 0 on
    lanes: Array  # the lane of every whole number of its coordinate; empty, if there are no lanes
    tables: Retrieval | Packed
    distributions: Array  # [C, V] what follows each class; higher ones are on the plateau of the last

    @property
    def context(self) -> int:
        return len(self.codes)

    def classes(self, stream: Array) -> Array:
        """The class of each window stream[i : i + n] that is followed by a token."""
        return self.look_up(window_sums(self.codes, stream) + self.offset)

    def look_up(self, t: Array) -> Array:
        """Classes of coordinates [N, s] before the ReLU."""
        t = np.maximum(t, 0)
        cells = [table[t[:, line.coordinate]] for table, line in zip(self.cells, self.tables.lines, strict=True)]
        lane = self.lanes[t[:, self._lane]] if self.lanes.size else np.zeros(len(t), np.intp)
        return np.minimum(self.tables.classes_at(cells, lane), len(self.distributions) - 1)

    def next_class(self, window: Array) -> int:
        """The class of one window [n]."""
        flat, base = self._flat
        t = (np.add.reduce(flat.take(window + base, axis=0), axis=0) + self.offset).tolist()
        lines = zip(self.cells, self.tables.lines, strict=True)
        found = [table.item(max(t[line.coordinate], 0)) for table, line in lines]
        lane = self.lanes.item(max(t[self._lane], 0)) if self.lanes.size else 0
        return min(self.tables.class_at(found, lane), len(self.distributions) - 1)

    @property
    def _lane(self) -> int:
        return self.tables.lane if isinstance(self.tables, Packed) else 0

    @cached_property
    def likeliest(self) -> list[int]:
        """The token that follows each class; of equals the one with the smallest id."""
        tokens: list[int] = self.distributions.argmax(axis=1).tolist()
        return tokens

    @cached_property
    def _flat(self) -> tuple[Array, Array]:
        n, tokens, s = self.codes.shape
        return self.codes.reshape(n * tokens, s), tokens * np.arange(n)


def find_windows(model: Transformer, readout: tuple[Part, ...] | None = None) -> WindowModel | None:
    """Recognise a causal lattice of ids and places, read by retrieval or packed cells and then by plateaus."""
    e, offset = model.embedding, _offset(model)
    gadgets = [part.gadget for part in (read_stack(model.readout) if readout is None else readout)]
    if e is None or e.table is None or e.positions is None or e.bias is not None or offset is None:
        return None
    if (
        [type(g) for g in gadgets[::2]] != [Affine, Plateaus]
        or len(gadgets) != 3
        or not _is_uniform(model.attention)
    ):
        return None
    _, tables, plateaus = gadgets
    if not isinstance(tables, Retrieval | Packed):
        return None
    codes = _codes(model, e.table, e.positions)
    if codes is None:
        return None
    top = codes.max(axis=1).sum(axis=0) + offset  # no window goes beyond
    if top.max() > MOST_VALUES:
        return None
    cells = [_tabulate(line, int(top[line.coordinate]), model.dtype) for line in tables.lines]
    lanes, sure = np.empty(0, np.intp), np.ones(0, bool)
    if isinstance(tables, Packed):
        lanes, sure = tables.find_lanes(np.arange(max(int(top[tables.lane]), 0) + 1, dtype=model.dtype))
    if any(cell is None for cell in cells) or not sure.all():
        return None
    known = tuple(cell for cell in cells if cell is not None)
    assert isinstance(plateaus, Plateaus)
    classes = np.arange(plateaus.last_from + 1, dtype=model.dtype)
    return WindowModel(codes, offset, known, lanes, tables, plateaus.search(classes[:, None]))


def _is_uniform(a: Attention) -> bool:
    plain = a.kind == "softmax" and a.causal and a.heads == 1 and a.b_Q is None and a.b_K is None
    return plain and not a.W_Q.any() and not a.W_K.any()


def _offset(model: Transformer) -> Array | None:
    """The bias of the bottleneck that every coordinate passes through, if that is whole."""
    first = model.readout[0] if model.readout else None
    if not isinstance(first, Linear) or (first.bias % 1).any():
        return None
    return first.bias.astype(np.int32)


def _codes(model: Transformer, table: Array, positions: Array) -> Array | None:
    """What the layers before the attention, the attention and the bottleneck make of each token at each place."""
    bottleneck, a = model.readout[0], model.attention
    n = len(positions)
    h = table + positions[:, None, :]
    h = (apply_stack(model.feedforward, h) if model.feedforward else h).astype(np.float64)
    codes = h @ a.W_V[0].astype(np.float64) @ a.W_O[0] / n
    codes[-1] += h[-1]  # the window's last token has itself in the residual stream
    codes = codes @ bottleneck.weight.astype(np.float64)
    return None if (codes % 1).any() else codes.astype(np.int32)


def _tabulate(cells: Line, top: int, dtype: np.dtype[Any]) -> Array | None:
    """The cell of every whole number from 0 to top as the search finds it; None if one lies on a ramp."""
    z = np.arange(max(top, 0) + 1, dtype=dtype)
    cell, sure = cells.find(np.broadcast_to(z[:, None], (len(z), cells.coordinate + 1)))
    return cell if sure.all() else None
