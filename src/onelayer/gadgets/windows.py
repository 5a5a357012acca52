"""A next-token model by look-up: whole-number codes per (place, token) are added, cells and entries looked up.

Attention that averages uniformly adds up what each token contributes, and on a lattice these are whole numbers; so
the cells of every whole number, as the search of the tables finds them, can be written down beforehand. No
whole number lies on a ramp between two cells, so every window, stored or not, is answered as by the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.line import Line
from onelayer.gadgets.packed import Packed
from onelayer.gadgets.place_gates import PlaceGates
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.retrieval import Retrieval
from onelayer.gadgets.stacks import Part, read_stack
from onelayer.gadgets.window_sums import WindowSums
from onelayer.network.blocks import apply_stack
from onelayer.network.weights import Array, Attention, Linear, Transformer

#: A coordinate with more whole numbers than this is not tabulated.
MOST_VALUES = 1 << 23
#: Windows that are looked up at a time.
BLOCK = 1 << 18
#: Tokens that follow one another before the sums of those to come are moved to the front.
AHEAD = 1 << 12


@dataclass(frozen=True)
class WindowModel:
    """What a transformer says at the last token of a window of n tokens."""

    sums: WindowSums  # whole numbers: the coordinates of a window
    cells: tuple[Array, ...]  # for each row and column of the tables: the cell of every whole number from 0 on
    lanes: Array  # the lane of every whole number of its coordinate; empty, if there are no lanes
    prints: tuple[tuple[int, Array], ...]  # what each whole number of a coordinate adds to the own fingerprint
    tables: Retrieval | Packed
    distributions: Array  # [C, V] what follows each class; higher ones are on the plateau of the last

    @property
    def context(self) -> int:
        return self.sums.context

    def classes(self, stream: Array) -> Iterator[tuple[slice, Array]]:
        """The classes of the windows stream[i : i + n] that are followed by a token, some at a time."""
        N = len(stream) - self.context
        for start in range(0, N, BLOCK):
            rows = slice(start, min(start + BLOCK, N))
            yield rows, self.look_up(self.sums.of(stream[start : rows.stop + self.context - 1]))

    def look_up(self, t: Array) -> Array:
        """Classes of coordinates [N, s] before the ReLU."""
        t = np.maximum(t, 0)
        cells = [table[t[:, line.coordinate]] for table, line in zip(self.cells, self.tables.lines, strict=True)]
        lane = self.lanes[t[:, self._lane]] if self.lanes.size else np.zeros(len(t), np.intp)
        found = self.tables.classes_at(cells, lane)
        if self.prints:
            own = sum(digit[t[:, i]] for i, digit in self.prints)
            found = np.where(own == found // self._classes, found % self._classes, self._default)
        return np.minimum(found, len(self.distributions) - 1)

    def class_at(self, t: list[int]) -> int:
        """The class of the coordinates of one window."""
        t = [max(z, 0) for z in t]
        found = [table.item(t[i]) for i, table in self._of_lines]
        number = self.tables.class_at(found, self.lanes.item(t[self._lane]) if self.lanes.size else 0)
        if self.prints:
            stored, number = divmod(number, self._classes)
            if stored != sum(digit.item(t[i]) for i, digit in self.prints):
                number = self._default
        return min(number, len(self.distributions) - 1)

    def next_class(self, window: Array) -> int:
        """The class of one window [n]."""
        return self.class_at(self.sums.of(np.asarray(window))[0].tolist())

    def following(self, window: Array, choose: Callable[[int], int | None]) -> Iterator[int]:
        """Tokens after a window, one at a time, each chosen by its class, until none is. A token is added to the
        sums of all windows that it will be in, so that it costs no more than a window's length of additions."""
        n, s = self.context, len(self.sums.constant)
        codes, constant = self.sums.codes, self.sums.constant
        ahead = list(np.ascontiguousarray(codes[::-1].swapaxes(0, 1)))  # of a token: [n, s], the next window first
        sums = np.empty((AHEAD + n, s), codes.dtype)
        sums[:] = constant
        for k, token in enumerate(window.tolist()):
            sums[: k + 1] += ahead[token][n - 1 - k :]
        while True:
            for i in range(AHEAD):
                token = choose(self.class_at(sums[i].tolist()))
                if token is None:
                    return
                yield token
                sums[i + 1 : i + 1 + n] += ahead[token]
            sums[:n] = sums[AHEAD:]
            sums[n:] = constant

    @cached_property
    def _of_lines(self) -> list[tuple[int, Array]]:
        return [(line.coordinate, table) for table, line in zip(self.cells, self.tables.lines, strict=True)]

    @cached_property
    def _classes(self) -> int:
        return self.tables.layout.classes if isinstance(self.tables, Packed) else 1

    @cached_property
    def _default(self) -> int:
        return int(self.tables.default) if isinstance(self.tables, Packed) else 0

    @property
    def fingerprints(self) -> int:
        """How many there are; 1, if it is not known what is stored."""
        return self.tables.layout.fingerprints if isinstance(self.tables, Packed) else 1

    @cached_property
    def nothing(self) -> int | None:
        """The class that no token follows: that of the end, and of what is not stored; None if there is none."""
        last = len(self.distributions) - 1
        return None if self.distributions[last].any() else last

    @cached_property
    def _lane(self) -> int:
        return self.tables.lane if isinstance(self.tables, Packed) else 0

    @cached_property
    def likeliest(self) -> list[int]:
        """The token that follows each class; of equals the one with the smallest id."""
        tokens: list[int] = self.distributions.argmax(axis=1).tolist()
        return tokens


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
    sums = _sums(model, e.table, codes, offset)
    top = sums.codes.max(axis=1).sum(axis=0) + sums.constant  # no window goes beyond
    if top.max() > MOST_VALUES:
        return None
    cells = [_tabulate(line, int(top[line.coordinate]), model.dtype) for line in tables.lines]
    lanes, sure = np.empty(0, np.intp), True
    prints: tuple[tuple[int, Array], ...] = ()
    if isinstance(tables, Packed):
        lanes, known_lanes = tables.find_lanes(_whole(top, tables.lane, model.dtype))
        numbers = {i: _whole(top, i, model.dtype) for i in (steps.coordinate for steps in tables.prints)}
        prints, decided = tables.find_prints(numbers)
        sure = bool(known_lanes.all()) and decided
    if any(cell is None for cell in cells) or not sure:
        return None
    known = tuple(cell for cell in cells if cell is not None)
    assert isinstance(plateaus, Plateaus)
    classes = np.arange(plateaus.last_from + 1, dtype=model.dtype)
    return WindowModel(sums, known, lanes, prints, tables, plateaus.search(classes[:, None]))


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
    return None if (codes % 1).any() else codes


def _sums(model: Transformer, table: Array, codes: Array, offset: Array) -> WindowSums:
    """These codes as a matrix for each place, if gates of places come before attention; or as they are."""
    gates = PlaceGates.recognise(model.feedforward)
    if gates is not None:
        a, n = model.attention, len(codes)
        through = a.W_V[0].astype(np.float64) @ a.W_O[0] / n
        out = np.tile(through, (n, 1, 1))
        out[-1] += np.eye(len(through))
        out = out @ model.readout[0].weight.astype(np.float64)
        taps, shift = gates.mixing.astype(np.float64) @ out, (gates.shift[:, None].astype(np.float64) @ out)[:, 0]
        if np.array_equal(table @ taps + shift[:, None], codes):
            return WindowSums(table, taps, (shift.sum(axis=0) + offset).astype(np.int64))
    return WindowSums(np.eye(codes.shape[1]), codes, offset.astype(np.int64))


def _whole(top: Array, coordinate: int, dtype: np.dtype[Any]) -> Array:
    """The whole numbers of a coordinate."""
    return np.arange(max(int(top[coordinate]), 0) + 1, dtype=dtype)


def _tabulate(cells: Line, top: int, dtype: np.dtype[Any]) -> Array | None:
    """The cell of every whole number from 0 to top as the search finds it; None if one lies on a ramp."""
    z = np.arange(max(top, 0) + 1, dtype=dtype)
    cell, sure = cells.find(np.broadcast_to(z[:, None], (len(z), cells.coordinate + 1)))
    return cell if sure.all() else None
