"""A next-token model by look-up: whole-number codes per (place, token) are added, cells and entries looked up.

Attention that averages uniformly adds up what each token contributes, and on a lattice these are whole numbers; so
the cells of every whole number, as the search of a retrieval finds them, can be written down beforehand. No
whole number lies on a ramp between two cells, so every window, stored or not, is answered as by the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.line import Line
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
    coordinates: tuple[int, ...]
    entries: tuple[Array, ...]  # of each table, int64
    C: int
    distributions: Array  # [C, V] what follows each class

    @property
    def context(self) -> int:
        return len(self.codes)

    def classes(self, stream: Array) -> Array:
        """The class of each window stream[i : i + n] that is followed by a token."""
        return self.look_up(window_sums(self.codes, stream) + self.offset)

    def look_up(self, t: Array) -> Array:
        """Classes of coordinates [N, s] before the ReLU."""
        t = np.maximum(t, 0)
        total = np.zeros(len(t), np.int64)
        for i, entries in enumerate(self.entries):
            r, c = (self.cells[j][t[:, self.coordinates[j]]] for j in (2 * i, 2 * i + 1))
            total += entries[r, c]
        return total % self.C

    def next_class(self, window: Array) -> int:
        """The class of one window [n]."""
        flat, base = self._flat
        t = (np.add.reduce(flat.take(window + base, axis=0), axis=0) + self.offset).tolist()
        found = [self.cells[j].item(max(t[i], 0)) for j, i in enumerate(self.coordinates)]
        total: int = sum(e.item(r, c) for e, r, c in zip(self.entries, found[::2], found[1::2], strict=True))
        return total % self.C

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
    """Recognise a causal lattice of ids and places, read by retrieval and then by plateaus."""
    e, offset = model.embedding, _offset(model)
    gadgets = [part.gadget for part in (read_stack(model.readout) if readout is None else readout)]
    if e is None or e.table is None or e.positions is None or e.bias is not None or offset is None:
        return None
    if [type(gadget) for gadget in gadgets] != [Affine, Retrieval, Plateaus] or not _is_uniform(model.attention):
        return None
    _, retrieval, plateaus = gadgets
    assert isinstance(retrieval, Retrieval)
    codes = _codes(model, e.table, e.positions)
    if codes is None:
        return None
    top = codes.max(axis=1).sum(axis=0) + offset  # no window goes beyond
    if top.max() > MOST_VALUES:
        return None
    tables = [_tabulate(line, int(top[line.coordinate]), model.dtype) for line in retrieval.lines]
    if any(table is None for table in tables):
        return None
    return WindowModel(
        codes,
        offset,
        tuple(table for table in tables if table is not None),
        tuple(line.coordinate for line in retrieval.lines),
        tuple(entries.astype(np.int64) for entries in retrieval.entries),
        retrieval.C,
        plateaus.search(np.arange(retrieval.C, dtype=model.dtype)[:, None]),
    )


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
