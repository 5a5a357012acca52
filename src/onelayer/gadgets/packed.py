"""Packed readouts by search: three cells and a lane per token, then whole-number arithmetic on three words.

Where a coordinate lies on a ramp between two cells or two lanes, the dense layers are asked, so the answers are
those of the dense network everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onelayer.gadgets.digits import LARGEST_BASE, Layout, digit_layers, digits_in_lanes
from onelayer.gadgets.line import Cells
from onelayer.gadgets.tails import TABLES, same
from onelayer.network.blocks import apply_stack
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True)
class Lanes:
    """Steps along one coordinate: lane j from on[j - 1] on, and up to off[j]."""

    coordinate: int
    on: Array  # [k - 1] sorted
    off: Array

    def find(self, t: Array) -> tuple[Array, Array]:
        z = t[:, self.coordinate].astype(np.float64)
        lane = np.searchsorted(self.on, z, side="right")
        return lane, z <= np.append(self.off, np.inf).take(lane)


@dataclass(frozen=True)
class PackedSearch:
    layers: tuple[Layer, ...]
    head: tuple[Layer, ...]
    rows: tuple[Cells, ...]
    columns: tuple[Cells, ...]
    lanes: Lanes
    words: Array  # [TABLES, m, R, G] whole numbers
    layout: Layout
    rest: tuple[Layer, ...]
    finish: Callable[[Array], Array] | None = None  # gives what the rest gives, by a search

    def __call__(self, h: Array) -> Array:
        tokens = h.reshape(-1, h.shape[-1])
        t = tokens
        for layer in self.head:
            t = np.maximum(apply_layer(layer, t), 0)
        lane, sure = self.lanes.find(t)
        m, (R, G) = self.layout.words, self.words.shape[2:]
        words = np.zeros((m, len(t)), np.int64)
        for k in range(TABLES):
            (row, a), (column, b) = self.rows[k].find(t), self.columns[k].find(t)
            sure &= a & b
            words += (1 if k == 0 else -1) * self.words[k].reshape(m, R * G).take(row * G + column, axis=1)
        found = digits_in_lanes(self.layout, words % self.layout.modulus, lane)
        out = found.astype(h.dtype)[:, None]
        if self.rest:
            out = self.finish(out) if self.finish else apply_stack(self.rest, out)
        unsure = np.flatnonzero(~sure)
        if unsure.size:
            out[unsure] = apply_stack(self.layers, tokens[unsure])
        result: Array = out.reshape(*h.shape[:-1], out.shape[-1])
        return result


def find_packed(layers: tuple[Layer, ...]) -> PackedSearch | None:
    """Recognise (head, copies, units, one-hots, emitted words, digits, ...) of a packed readout."""
    for at in range(1, len(layers) - 10):
        copy, units, hots, emit, total = layers[at : at + 5]
        if not (isinstance(copy, Linear) and all(isinstance(x, Grouped) for x in (units, hots, emit))):
            continue
        size = units.weight.shape[2] // 2
        if len(emit.weight) != TABLES or units.weight.shape[1] != 1 or total.width % 4 or copy.bias.any():
            return None
        m, (cells, outputs) = total.width // 4, emit.weight.shape[1:]
        G = (outputs - 1) // m
        R = cells - G - size
        fits = R > 0 and G > 0 and len(copy.bias) * size == TABLES * cells and len(hots.weight) == TABLES * cells
        return _read(layers, at, (m, R, G, size)) if fits else None
    return None


def _read(layers: tuple[Layer, ...], at: int, sizes: tuple[int, int, int, int]) -> PackedSearch | None:
    m, R, G, size = sizes
    copy, units, hots, emit = layers[at : at + 4]
    source = copy.weight.reshape(len(copy.weight), TABLES, -1)
    weight, bias = (a.reshape(TABLES, R + G + size, 2) for a in (units.weight, units.bias))
    found: list[list[Cells]] = [[], []]
    for k in range(TABLES):
        for family, start, stop in ((found[0], 0, R), (found[1], R, R + G)):
            block = source[:, k, start // size : stop // size]
            cells = Cells.of(weight[None, k, start:stop], bias[k, start:stop])
            i = int(np.argmax(block[:, 0]))
            if cells is None or not np.array_equal(block, np.eye(len(block))[:, [i] * block.shape[1]]):
                return None
            family.append(replace(cells, coordinate=i))
    lane = source[:, 0, (R + G) // size]
    wall, entries = float(emit.weight[0, R, 0]), emit.weight[:, :R, : m * G].astype(np.float64)
    if not _is_plain(hots, units, emit, sizes, wall) or np.count_nonzero(lane) != 1 or lane.max() != 1:
        return None
    words = (entries + wall).astype(np.int64).reshape(TABLES, R, m, G).transpose(0, 2, 1, 3)
    if words.min() < 0 or words.max() >= wall:
        return None
    for layout in _layouts(int(wall), m):
        tail, steps = _tail(layers[at + 4 :], layout, G)
        if steps is not None:
            lanes = Lanes(int(np.argmax(lane)), steps[1] / steps[0], (steps[1] - 1) / steps[0])
            if (np.diff(lanes.on) < 0).any() or (np.diff(lanes.off) < 0).any():
                return None
            rows, columns, rest = tuple(found[0]), tuple(found[1]), layers[at + 4 + tail :]
            head = layers[:at]
            return PackedSearch(layers, head, rows, columns, lanes, np.ascontiguousarray(words), layout, rest)
    return None


def _is_plain(hots: Layer, units: Layer, emit: Layer, sizes: tuple[int, int, int, int], wall: float) -> bool:
    """One-hots, but for one cell that is carried; walls around every column; what is carried is emitted."""
    m, R, G, size = sizes
    select, one = np.full((TABLES, R + G + size, 2), -1.0), np.ones((TABLES, R + G + size))
    select[0, R + G], one[0, R + G] = (1.0, 0.0), 0.0
    dead = units.weight.reshape(TABLES, -1, 2)[:, R + G :].copy()
    off = units.bias.reshape(TABLES, -1, 2)[:, R + G :].copy()
    carried = np.array_equal(dead[0, 0], [1, 0]) and not off[0, 0].any()
    dead[0, 0], off[0, 0] = 0.0, 1.0
    below = emit.weight[:, R:].copy()
    carried = carried and below[0, G, -1] == 1
    below[0, G, -1] = 0.0
    below[:, :G, : m * G] -= wall * np.tile(np.eye(G), (1, m))
    plain = np.array_equal(hots.weight.reshape(TABLES, -1, 2), select) and np.array_equal(hots.bias, one.ravel())
    nothing_else = not (below.any() or dead.any() or emit.bias.any() or emit.weight[:, :R, -1].any())
    return bool(plain and carried and (off == 1).all() and nothing_else)


def _layouts(modulus: int, words: int) -> list[Layout]:
    """All whose words are whole numbers below this."""
    found = [Layout(b, 1, words) for b in range(2, LARGEST_BASE + 1)]
    return [
        replace(layout, digits=q)
        for layout in found
        if layout.modulus == modulus
        for q in range(1, words * layout.capacity + 1)
    ]


def _tail(tail: tuple[Layer, ...], layout: Layout, columns: int) -> tuple[int, tuple[Array, Array] | None]:
    """How many layers take the digits out, and the steps into lanes, if these are the layers of that layout."""
    depth, steps = 9 + 3 * len(layout.stages) + 1, layout.lanes - 1
    if len(tail) < depth or tail[1].width != layout.words * (3 + steps):
        return 0, None
    weight = tail[1].weight.reshape(layout.words, 4, -1)
    slopes, biases = -weight[0, 3, 3:].astype(np.float64), tail[1].bias[3 : 3 + steps].astype(np.float64)
    if not (slopes > 0).all():
        return 0, None
    expected = digit_layers(layout, columns, (slopes, biases), tail[0].weight.dtype)
    return (depth, (slopes, biases)) if same(tail[:depth], expected) else (0, None)
