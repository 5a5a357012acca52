"""From three packed words and a lane to the digits that the lane holds: constant in size, exact on whole numbers.

A word is a whole number below b^D, D digits of base b. What is stored is word 1 - word 2 - word 3 modulo b^D, with
borrows, so that one number is taken apart instead of three: in stages of a few digits from the top, each by
saturating steps at the multiples of a power of b. A digit that belongs to the lane of the token passes a gate.
Of every sum, the positive terms add up to 2^24 at most, and so do the negative ones: no order of summation rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from onelayer.network.weights import Array, Grouped, Layer, Linear

#: Bits of a word: whole numbers up to 2^24 are numbers of float32.
WORD_BITS = 24
#: Values that one stage tells apart at most, unless a single digit has more.
STAGE = 16
LARGEST_BASE = 32
MOST_WORDS = 6


@dataclass(frozen=True)
class Layout:
    """How classes are packed: q digits of base b each, and the digits of all lanes one after the other in words."""

    base: int  # b
    digits: int  # q, of a class
    words: int  # m, of a cell

    @cached_property
    def capacity(self) -> int:
        """D, digits of a word."""
        return _capacity(self.base)

    @property
    def lanes(self) -> int:
        """k, answers that share a cell."""
        return self.words * self.capacity // self.digits

    @property
    def modulus(self) -> int:
        return int(self.base**self.capacity)

    @property
    def stages(self) -> list[tuple[int, int]]:
        """(lowest digit, digits) of each stage, from the top."""
        per = max(1, int(np.floor(np.log(STAGE + 0.5) / np.log(self.base))))
        starts = range(0, self.capacity, per)
        return [(i, min(per, self.capacity - i)) for i in reversed(starts)]

    @property
    def depth(self) -> int:
        """How many layers take a word apart: sums, lane, two borrows, three to a stage, the class."""
        return 9 + 3 * len(self.stages) + 1

    def place(self, lane: int, digit: int) -> tuple[int, int]:
        """In which word, and at which place of it, a lane has a digit of its class."""
        return divmod(lane * self.digits + digit, self.capacity)

    def held(self, word: int, place: int) -> tuple[int, int] | None:
        """Whose digit that is: (lane, digit), or None."""
        lane, digit = divmod(word * self.capacity + place, self.digits)
        return (lane, digit) if lane < self.lanes else None


def layouts(classes: int) -> list[Layout]:
    """Ways to pack, each with more answers to a word than those of fewer words."""
    found: list[Layout] = []
    for m in range(1, MOST_WORDS + 1):
        fitting = [Layout(b, q, m) for b, q in _bases(classes)]
        best = max(fitting, key=lambda layout: (layout.lanes, -layout.digits))
        if best.lanes > max((m * layout.lanes // layout.words for layout in found), default=0):
            found.append(best)
    return found


def of_fewer_lanes(layout: Layout) -> list[Layout]:
    """The same words with more digits to a class than it needs: for few answers, which fill no lane each."""
    digits = [layout.capacity * layout.words // lanes for lanes in range(layout.lanes - 1, 0, -1)]
    return [replace(layout, digits=q) for q in dict.fromkeys(digits) if q > layout.digits]


def _bases(classes: int) -> list[tuple[int, int]]:
    """The smallest base of which so many digits tell the classes apart, for each number of digits."""
    found = []
    for q in range(1, WORD_BITS + 1):
        b = max(2, round(classes ** (1.0 / q)) - 1)
        while b**q < classes:
            b += 1
        if b <= LARGEST_BASE:
            found.append((b, q))
        if b == 2:
            break
    return found


def _capacity(base: int) -> int:
    digits = 0
    while base ** (digits + 1) <= 1 << WORD_BITS:
        digits += 1
    return digits


def digit_layers(
    layout: Layout, columns: int, lane_steps: tuple[Array, Array], dtype: np.dtype[Any]
) -> tuple[Layer, ...]:
    """From gated columns of three tables, [table, (word, column), lane coordinate], to the class.

    ``lane_steps``: slope and bias [k - 1] of relu(1 - relu(bias - slope z)), which is 1 from a lane on.
    """
    m, W = layout.words, float(layout.modulus)
    table = m * columns + 1
    total = np.zeros((3, table, m, 4))
    for u in range(m):
        cells = slice(u * columns, (u + 1) * columns)
        total[0, cells, u, :2], total[1, cells, u, :2] = (1.0, -1.0), (-1.0, 1.0)
        total[2, cells, u, 2] = 1.0
        total[0, -1, u, 3] = 1.0
    layers: list[Layer] = [Linear(total.reshape(3 * table, 4 * m).astype(dtype), np.zeros(4 * m, dtype))]
    # Per word: d+, d-, third word, lane coordinate. First, the lane as a whole number: how many steps are reached.
    layers += _lane_number(lane_steps, m, dtype)
    layers += _wrapped([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], W, m, dtype)
    # d+ + (W - d-) - third word, and its negative
    apart = np.array([[1.0, -1, 0], [1, -1, 0], [-1, 1, 0], [0, 0, 1]])
    layers.append(_alike(apart, np.zeros(3), m, dtype))
    layers += _wrapped([[1, 0, 0], [0, 1, 0], [0, 0, 1]], W, m, dtype)
    read = np.array([[1.0, 0], [1, 0], [0, 1]])  # the rest is the sum of the first two
    for at, _ in enumerate(layout.stages):
        layers += _stage(layout, at, read if at == 0 else None, dtype)
    return (*layers, _last(layout, dtype))


def _lane_number(lane_steps: tuple[Array, Array], m: int, dtype: np.dtype[Any]) -> list[Layer]:
    """Three layers: units, steps, and their number."""
    slopes, biases = lane_steps
    units = np.concatenate([np.eye(4, 3), np.concatenate([np.zeros((3, len(slopes))), -slopes[None]])], axis=1)
    step = np.append(np.ones(3), np.full(len(slopes), -1.0))
    number = np.concatenate([np.eye(3, 4), np.tile([0.0, 0, 0, 1], (len(slopes), 1))])
    return [
        _alike(units, np.append(np.zeros(3), biases), m, dtype),
        Grouped(np.tile(step, m).reshape(-1, 1, 1).astype(dtype), np.tile(step < 0, m).astype(dtype)),
        _alike(number, np.zeros(4), m, dtype),
    ]


def _wrapped(passed: list[list[int]], W: float, m: int, dtype: np.dtype[Any]) -> list[Layer]:
    """x+, x-, others to x+, W - x- if x- > 0 else 0, others; two layers."""
    passes, n = np.array(passed, float), len(passed)
    first = np.zeros((n, n + 1))
    first[:, :n], first[1, n] = passes, -1.0
    second = np.zeros((n + 1, n))
    second[:n] = passes
    second[1, 1], second[n, 1] = -1.0, -W
    bias = np.zeros(n)
    bias[1] = W
    return [_alike(first, np.append(np.zeros(n), 1.0), m, dtype), _alike(second, bias, m, dtype)]


def _stage(layout: Layout, at: int, read: Array | None, dtype: np.dtype[Any]) -> list[Layer]:
    """Three layers: units, steps, gates. Words stand side by side, each with units of the same kinds."""
    (start, count), b, q, m = layout.stages[at], layout.base, layout.digits, layout.words
    before = layout.stages[at - 1][1] if at else 0
    inputs = before + 2 + q if read is None else len(read)
    values, unit = b**count, float(b**start)
    T = values - 1
    lanes = [lane_boundaries(layout, u, start, count) for u in range(m)]
    L = max(len(lane) for lane in lanes)
    wide = T + L + 2 + q
    units, unit_bias = np.zeros((m, inputs, wide)), np.zeros((m, wide))
    gates, gate_bias = np.zeros((m, wide, count + 2 + q)), np.zeros((m, count + 2 + q))
    for u in range(m):
        rest, lane = _sources(layout, at, read, inputs)
        units[u, :, :T], unit_bias[u, :T] = -rest[:, None], unit * np.arange(1, values)
        for i, boundary in enumerate(lanes[u]):  # the step into lane ``boundary``
            units[u, :, T + i], unit_bias[u, T + i] = -lane, boundary
        units[u, :, T + L], units[u, :, T + L + 1] = rest, lane
        if read is None:
            units[u, :, T + L + 2 :] = _found(layout, at, u, inputs)
        steps = np.arange(1, values)
        for i in range(count):
            # Digit i of the value v of the stage changes at v = t by as much as (t / b^i) mod b does.
            gates[u, :T, i] = (steps // b**i) % b - ((steps - 1) // b**i) % b
            held = layout.held(u, start + i)
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
    step = np.concatenate([np.full(T + L, -1.0), np.ones(2 + q)])
    return [
        _each(units, unit_bias, dtype),
        Grouped(np.tile(step, m).reshape(-1, 1, 1).astype(dtype), np.tile(step < 0, m).astype(dtype)),
        _each(gates, gate_bias, dtype),
    ]


def lane_boundaries(layout: Layout, word: int, start: int, count: int) -> list[int]:
    """The boundaries, into lanes 1 to k - 1, that the gates of a stage look at."""
    held = [layout.held(word, start + i) for i in range(count)]
    wanted = {lane + side for lane, _ in filter(None, held) for side in (0, 1)}
    return sorted(boundary for boundary in wanted if 0 < boundary < layout.lanes)


def _sources(layout: Layout, at: int, read: Array | None, inputs: int) -> tuple[Array, Array]:
    """Which inputs of a stage add up to the rest of the word, and which is the lane."""
    if read is not None:
        return read[:, 0], read[:, 1]
    before = layout.stages[at - 1][1]
    eye = np.eye(inputs)
    return eye[before], eye[before + 1]


def _found(layout: Layout, at: int, word: int, inputs: int) -> Array:
    """[inputs, q]: digits found before, and by the gates of the last stage."""
    start, before = layout.stages[at - 1]
    q = layout.digits
    found = np.zeros((inputs, q))
    found[inputs - q :] = np.eye(q)
    for i in range(before):
        held = layout.held(word, start + i)
        if held is not None:
            found[i, held[1]] = 1.0
    return found


def _last(layout: Layout, dtype: np.dtype[Any]) -> Linear:
    """The class, of the digits of all words."""
    at, inputs = len(layout.stages), layout.stages[-1][1] + 2 + layout.digits
    powers = float(layout.base) ** np.arange(layout.digits)
    weight = np.concatenate([_found(layout, at, u, inputs) @ powers for u in range(layout.words)])
    return Linear(weight[:, None].astype(dtype), np.zeros(1, dtype))


def _alike(weight: Array, bias: Array, m: int, dtype: np.dtype[Any]) -> Layer:
    """The same small layer for every word."""
    return _each(np.tile(weight, (m, 1, 1)), np.tile(bias, (m, 1)), dtype)


def _each(weight: Array, bias: Array, dtype: np.dtype[Any]) -> Layer:
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
