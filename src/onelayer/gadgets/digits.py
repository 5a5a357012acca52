"""From three packed words and a lane to the digits that the lane holds: constant in size, exact on whole numbers.

A word is a whole number below b^D, D digits of base b. What is stored is word 1 - word 2 - word 3 modulo b^D, with
borrows, so that one number is taken apart instead of three: in stages of a few digits from the top, each by
saturating steps at the multiples of a power of b. A digit that belongs to the lane of the token passes a gate.
The highest digits may be a fingerprint: it is compared with the token's own, which is carried past all this.
Of every sum, the positive terms add up to 2^24 at most, and so do the negative ones: no order of summation rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onelayer.gadgets.layout import Layout
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Slopes and biases [K] of relu(1 - relu(bias - slope z)), each 1 from some z on.
Steps = tuple[Array, Array]


def digit_layers(
    layout: Layout, columns: int, lane_steps: Steps, dtype: np.dtype[Any], prints: Sequence[Steps] = ()
) -> tuple[Layer, ...]:
    """From gated columns of three tables, [table, (word, column), lane coordinate, coordinates of fingerprints], to
    the class; with fingerprints to the class, the stored fingerprint and the token's own.
    """
    m, W, e = layout.words, float(layout.modulus), len(prints)
    table, own = m * columns + 1 + e, int(e > 0)
    total = np.zeros((3, table, m, 4 + e))
    for u in range(m):
        cells = slice(u * columns, (u + 1) * columns)
        total[0, cells, u, :2], total[1, cells, u, :2] = (1.0, -1.0), (-1.0, 1.0)
        total[2, cells, u, 2] = 1.0
        total[0, m * columns :, u, 3:] = np.eye(1 + e)
    width = (4 + e) * m
    layers: list[Layer] = [Linear(total.reshape(3 * table, width).astype(dtype), np.zeros(width, dtype))]
    # Per word: d+, d-, third word, lane coordinate. First, the lane as a whole number: how many steps are reached.
    layers += _step_numbers((lane_steps, *prints), m, dtype)
    layers += _wrap_layers([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], W, m, dtype, own)
    # d+ + (W - d-) - third word, and its negative
    apart = np.array([[1.0, -1, 0], [1, -1, 0], [-1, 1, 0], [0, 0, 1]])
    layers.append(_alike(apart, np.zeros(3), m, dtype, own))
    layers += _wrap_layers([[1, 0, 0], [0, 1, 0], [0, 0, 1]], W, m, dtype, own)
    # The rest is the sum of the first two; one of them is 0. As one number, steps are found on it by search.
    layers.append(_alike(np.array([[1.0, 0], [1, 0], [0, 1]]), np.zeros(2), m, dtype, own))
    for at, _ in enumerate(layout.stages):
        layers += _stage(layout, at, dtype, own)
    return (*layers, _last(layout, dtype, own))


def _step_numbers(steps: Sequence[Steps], m: int, dtype: np.dtype[Any]) -> list[Layer]:
    """Three layers: units, steps, and their numbers. Those of the first are the lane; those of others are digits
    of the own fingerprint, each of as many values as it has steps, and one."""
    counts = [len(slopes) for slopes, _ in steps]
    outputs = 4 + (len(steps) > 1)
    units, number = np.zeros((3 + len(steps), 3 + sum(counts))), np.zeros((3 + sum(counts), outputs))
    units[:3, :3], number[:3, :3] = np.eye(3), np.eye(3)
    start, value = 3, 1.0
    for i, (slopes, _) in enumerate(steps):
        here = slice(start, start + counts[i])
        units[3 + i, here], number[here, min(3 + i, 4)] = -slopes, value if i else 1.0
        start, value = here.stop, value * (counts[i] + 1) if i else 1.0
    step = np.append(np.ones(3), np.full(sum(counts), -1.0))
    biases = np.concatenate([np.zeros(3), *(bias for _, bias in steps)])
    return [
        _alike(units, biases, m, dtype),
        Grouped(np.tile(step, m).reshape(-1, 1, 1).astype(dtype), np.tile(step < 0, m).astype(dtype)),
        _alike(number, np.zeros(outputs), m, dtype),
    ]


def _wrap_layers(passed: list[list[int]], W: float, m: int, dtype: np.dtype[Any], own: int) -> list[Layer]:
    """x+, x-, others to x+, W - x- if x- > 0 else 0, others; two layers."""
    passes, n = np.array(passed, float), len(passed)
    first = np.zeros((n, n + 1))
    first[:, :n], first[1, n] = passes, -1.0
    second = np.zeros((n + 1, n))
    second[:n] = passes
    second[1, 1], second[n, 1] = -1.0, -W
    bias = np.zeros(n)
    bias[1] = W
    return [_alike(first, np.append(np.zeros(n), 1.0), m, dtype, own), _alike(second, bias, m, dtype, own)]


def _stage(layout: Layout, at: int, dtype: np.dtype[Any], own: int) -> list[Layer]:
    """Three layers: units, steps, gates. Words stand side by side, each with units of the same kinds."""
    (start, count), b, q, m = layout.stages[at], layout.base, layout.digits, layout.words
    before = layout.stages[at - 1][1] if at else 0
    inputs = before + 2 + (q if at else 0)
    values, unit = b**count, float(b**start)
    T = values - 1
    lanes = [lane_boundaries(layout, u, start, count) for u in range(m)]
    L = max(len(lane) for lane in lanes)
    wide = T + L + 2 + q
    units, unit_bias = np.zeros((m, inputs, wide)), np.zeros((m, wide))
    gates, gate_bias = np.zeros((m, wide, count + 2 + q)), np.zeros((m, count + 2 + q))
    for u in range(m):
        rest, lane = np.eye(inputs)[before], np.eye(inputs)[before + 1]
        units[u, :, :T], unit_bias[u, :T] = -rest[:, None], unit * np.arange(1, values)
        for i, boundary in enumerate(lanes[u]):  # the step into lane ``boundary``
            units[u, :, T + i], unit_bias[u, T + i] = -lane, boundary
        units[u, :, T + L], units[u, :, T + L + 1] = rest, lane
        if at:
            units[u, :, T + L + 2 :] = _digits_found(layout, at, u, inputs)
        steps = np.arange(1, values)
        for i in range(count):
            # Digit i of the value v of the stage changes at v = t by as much as (t / b^i) mod b does.
            gates[u, :T, i] = (steps // b**i) % b - ((steps - 1) // b**i) % b
            held = layout.digit_at(u, start + i)
            if held is None:
                gates[u, :T, i] = 0.0
                continue
            gate_bias[u, i] = -(b - 1.0)
            for boundary, sign in ((held[0], 1.0), (held[0] + 1, -1.0)):
                if boundary == 0:
                    gate_bias[u, i] += b - 1.0
                elif boundary < layout.lanes:
                    gates[u, T + lanes[u].index(boundary), i] += sign * (b - 1.0)
        gates[u, :T, count], gates[u, T + L, count] = -unit, 1.0
        gates[u, T + L + 1 :, count + 1 :] = np.eye(1 + q)
    step = np.concatenate([np.full(T + L, -1.0), np.ones(2 + q + own)])
    return [
        _each(units, unit_bias, dtype, own),
        Grouped(np.tile(step, m).reshape(-1, 1, 1).astype(dtype), np.tile(step < 0, m).astype(dtype)),
        _each(gates, gate_bias, dtype, own),
    ]


def lane_boundaries(layout: Layout, word: int, start: int, count: int) -> list[int]:
    """The boundaries, into lanes 1 to k - 1, that the gates of a stage look at."""
    held = [layout.digit_at(word, start + i) for i in range(count)]
    wanted = {lane + side for lane, _ in filter(None, held) for side in (0, 1)}
    return sorted(boundary for boundary in wanted if 0 < boundary < layout.lanes)


def _digits_found(layout: Layout, at: int, word: int, inputs: int) -> Array:
    """[inputs, q]: digits found before, and by the gates of the last stage."""
    start, before = layout.stages[at - 1]
    q = layout.digits
    found = np.zeros((inputs, q))
    found[inputs - q :] = np.eye(q)
    for i in range(before):
        held = layout.digit_at(word, start + i)
        if held is not None:
            found[i, held[1]] = 1.0
    return found


def _last(layout: Layout, dtype: np.dtype[Any], own: int) -> Linear:
    """Classes, of the digits of all words; and the stored fingerprint, and the token's own, of the first word."""
    at, inputs, outputs = len(layout.stages), layout.stages[-1][1] + 2 + layout.digits, layout.parts + 2 * own
    b, q, f = float(layout.base), layout.digits - layout.prints, layout.prints
    read, each = np.zeros((layout.digits, outputs)), q // layout.parts
    read[np.arange(q), np.arange(q) // each] = b ** (np.arange(q) % each)
    read[q:, own] += b ** np.arange(f)
    weight = np.zeros((layout.words, inputs + own, outputs))
    for u in range(layout.words):
        weight[u, :inputs] = _digits_found(layout, at, u, inputs) @ read
    if own:
        weight[0, -1, 2] = 1.0
    return Linear(weight.reshape(-1, outputs).astype(dtype), np.zeros(outputs, dtype))


def compared_layers(layout: Layout, default: float, dtype: np.dtype[Any]) -> tuple[Layer, ...]:
    """From class, stored and own fingerprint to the class where these are equal, and the default elsewhere."""
    wall = float(1 << int(layout.classes - 1).bit_length())  # beyond every class
    apart = np.array([[1.0, 0, 0], [0, 1, -1], [0, -1, 1]])
    equal = np.array([[1.0, 0], [0, -1], [0, -1]])
    gates = np.array([[1.0, 0], [wall, -1]])
    biases = np.zeros(3), np.array([0.0, 1]), np.array([-wall, 1])
    layers = (Linear(w.astype(dtype), b.astype(dtype)) for w, b in zip((apart, equal, gates), biases, strict=True))
    return (*layers, Linear(np.array([[1.0], [default]], dtype), np.zeros(1, dtype)))


def _alike(weight: Array, bias: Array, m: int, dtype: np.dtype[Any], own: int = 0) -> Layer:
    """The same small layer for every word."""
    return _each(np.tile(weight, (m, 1, 1)), np.tile(bias, (m, 1)), dtype, own)


def _each(weight: Array, bias: Array, dtype: np.dtype[Any], own: int) -> Layer:
    """A small layer for every word, past which the own fingerprint is carried."""
    if own:
        weight, bias = np.pad(weight, ((0, 0), (0, 1), (0, 1))), np.pad(bias, ((0, 0), (0, 1)))
        weight[:, -1, -1] = 1.0
    if len(weight) == 1:
        return Linear(weight[0].astype(dtype), bias[0].astype(dtype))
    return Grouped(weight.astype(dtype), bias.ravel().astype(dtype))


def digits_in_lanes(layout: Layout, words: Array, lane: Array) -> Array:
    """Classes, of words [m, T] below b^D, by whole-number arithmetic."""
    found = np.zeros(len(lane), np.int64)
    for k in range(layout.lanes):
        here = np.flatnonzero(lane == k)
        for c in range(layout.digits):
            u, place = layout.place(k, c)
            found[here] += words[u, here] // layout.base**place % layout.base * layout.base**c
    return found
