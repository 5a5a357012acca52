"""Answers packed into the bits of a few weights, and peeled off again: fewer parameters than answers.

Statement  a word x = label_0 key_1 label_1 .. key_(g-1) label_(g-1) is read by comparing it with powers of two,
           bit = relu(1 - relu(4 (2^k - x) - 2)), x <- x - 2^k bit; where t has not reached the next key, x <- 0.
Gives      M answers, bit for bit, with about 2 M (rho + c)/W + 26 sqrt(M (rho + c)) parameters, for keys of rho
           bits, labels of c bits and words of W = 52 (float64) or 23 (float32) bits.
Rests on   `plateaus`, which finds the group of t; whole numbers below 2^(W + 1) add exactly in any order; monotone
           rounding: comparing t with a key saturates, and so forgets the error of t.
Why        the published theorem stores N answers in O~(sqrt N) parameters, whose bits grow with N; at the precision
           of a machine a term linear in M remains, divided by the W bits of a word.
Differs    published: two numbers hold a group's keys and labels, read by differences of ReLUs, at twice the bits.
           Here a group has as many words as pay, read side by side; keys are distances to the key before, labels
           differences to the label before modulo 2^c; a word whose next key is not reached is cleared, so labels
           need no gate. In the ramps between two answers the output is some number from -1 to G 2^c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError, PrecisionError
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.words import WordReader, carry_bits, in_halves, word_program
from onelayer.readouts import plateaus
from onelayer.readouts.method import ReadoutMethod, Task, readout
from onelayer.readouts.readout import Readout
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["bits"]
Array = NDArray[Any]

#: The layout of words is chosen by looking at this many pieces, in windows of neighbours.
SAMPLE, WINDOW = 2048, 256


@dataclass(frozen=True, kw_only=True)
class Bits(Readout):
    """Its count is of pieces: runs of neighbours with equal answers, or parts of them."""

    group_size: int  # G, the most pieces in a group: words times pieces per word
    words: int  # of a group
    key_bits: int  # rho
    label_bits: int  # c


@dataclass(frozen=True)
class Layout:
    """A word holds ``per_word`` labels of ``c`` bits with keys of ``rho`` bits between them."""

    c: int
    rho: int
    per_word: int
    unit: float  # what a key of 1 means for t; a power of two


@dataclass(frozen=True)
class Pieces:
    """Runs of neighbours. Piece j begins where t climbs the ramp from start[j] to start[j] + ramp."""

    first: Array  # [K] smallest and largest coordinate of each piece
    last: Array
    labels: Array
    aim: Array  # [K] where the ramp should begin, to lie in the middle of the gap; that of piece 0 is below all t
    start: Array  # the same as a number of the dtype
    ramp: float  # a power of two, at most a quarter of the smallest gap between different answers

    def take(self, j: Array) -> Pieces:
        return Pieces(self.first[j], self.last[j], self.labels[j], self.aim[j], self.start[j], self.ramp)


def construct(t: Array, rows: Array, radius: float, dtype: np.dtype[Any]) -> Bits:
    """Sorted coordinates t [M] >= 0, computed up to ``radius``, and whole numbers [M, 1] into layers."""
    c, smallest = hypotheses(t, rows, radius, dtype)
    labels = rows[:, 0].astype(np.int64)
    gaps, changed = np.diff(t), labels[1:] != labels[:-1]
    # One piece for a run of equal answers; or, as keys take bits and dense keys need none, as many as gaps allow.
    cuts = (changed, gaps >= smallest) if changed.any() else (changed,)
    plans = (_plan(_pieces(t, labels, cut, smallest, dtype), c, radius, dtype) for cut in cuts)
    _, L, layout, pieces = min(plans, key=lambda plan: plan[0])
    begins = np.array(list(_begins(_reach(pieces, layout, radius, dtype), layout.per_word)))
    find, guard = _find_words(pieces, layout, begins, L, dtype)
    if guard < radius:
        raise _blurred_error(smallest, guard, radius, dtype)
    gadgets = (find, WordReader(c, layout.rho, layout.per_word, pieces.ramp / layout.unit, L, dtype))
    return Bits(
        gadgets,
        len(pieces.first),
        guard,
        group_size=layout.per_word * L,
        words=L,
        key_bits=layout.rho,
        label_bits=c,
    )


def hypotheses(t: Array, rows: Array, radius: float, dtype: np.dtype[Any]) -> tuple[int, float]:
    """The bits of a label, and the smallest gap between different answers."""
    W = int(np.finfo(dtype).nmant)  # a bit less than numbers hold: the sum of two is still exact
    if rows.shape != (len(t), 1) or not ((rows >= 0) & (rows < 2.0**W) & (rows == np.floor(rows))).all():
        raise HypothesisError(
            "bits",
            f"one whole number from 0 to 2^{W} - 1 per coordinate, as a label must fit a word of {dtype} exactly",
            f"the answers to {len(t)} coordinates have shape {rows.shape} and go from {rows.min()} to {rows.max()}",
            'Use readout="plateaus", which takes any answers.',
        )
    smallest = float(np.diff(t)[rows[1:, 0] != rows[:-1, 0]].min(initial=np.inf))
    if smallest <= 2 * radius:
        raise _blurred_error(smallest, smallest / 2, radius, dtype)
    return max(1, int(rows.max()).bit_length()), smallest


def _blurred_error(smallest: float, guard: float, radius: float, dtype: np.dtype[Any]) -> PrecisionError:
    return PrecisionError(
        "bits",
        f"coordinates of different answers further apart than their error of {radius:.3g} and {dtype} can blur",
        f"two are {smallest:.3g} apart, where {dtype} bears an error of {max(guard, 0.0):.3g}",
        'Use dtype="float64", or a mapping that separates different answers more widely.',
    )


def _pieces(t: Array, labels: Array, cut: Array, smallest: float, dtype: np.dtype[Any]) -> Pieces:
    before = np.flatnonzero(cut)
    begin, end = np.concatenate([[0], before + 1]), np.append(before, len(t) - 1)
    ramp = 2.0 ** floor(log2(smallest / 4)) if before.size else 1.0
    aim = np.concatenate([[-ramp], t[before] + (t[before + 1] - t[before] - ramp) / 2])
    return Pieces(t[begin], t[end], labels[begin], aim, aim.astype(dtype).astype(np.float64), ramp)


def _plan(pieces: Pieces, c: int, radius: float, dtype: np.dtype[Any]) -> tuple[float, int, Layout, Pieces]:
    """The cheapest layout, found by trying: parameters (on large data an estimate), words of a group, layout."""
    K, W = len(pieces.first), int(np.finfo(dtype).nmant)
    windows = np.linspace(0, K - WINDOW, SAMPLE // WINDOW).astype(int)[:, None] + np.arange(WINDOW)
    sample = pieces if K <= SAMPLE else pieces.take(np.unique(windows))
    spacing = max(4 * pieces.ramp, float(np.median(np.diff(sample.aim)))) if K > 1 else 4 * pieces.ramp
    options = [(*_size(Layout(c, 0, 1, 4 * pieces.ramp), K, W), Layout(c, 0, 1, 4 * pieces.ramp))]
    for unit in 2.0 ** np.arange(log2(pieces.ramp) + 1, log2(spacing) + 1):
        usual = max(0, floor(log2(spacing / unit)))
        for rho in range(max(0, usual - 1), usual + 5):
            most = (W + rho) // (c + rho)
            reach = _reach(sample, Layout(c, rho, most, float(unit)), radius, dtype)
            for g in {max(2, most >> i) for i in range(most.bit_length())} if most > 1 else ():
                layout = Layout(c, rho, g, float(unit))
                options.append((*_size(layout, sum(1 for _ in _begins(reach, g)) * K / len(reach), W), layout))
    return (*min(options, key=lambda option: option[0]), pieces)


def _size(layout: Layout, count: float, W: int) -> tuple[float, int]:
    """The fewest parameters with ``count`` words in all, and the number of words of a group that attains it."""
    word = sum(12 if in_halves(A) else A.size for A in word_program(layout.c, layout.rho, layout.per_word))
    best = round((7 * count / (word + 2)) ** 0.5)  # but for rounding; look around it
    return min(
        ((7 + 2 * L) * (ceil(count / L) + 1) + (word + 4) * L + 12 * carry_bits(layout.c, layout.per_word, L), L)
        for L in {1, *range(max(1, best - best // 4 - 2), best + best // 4 + 3)}
        if L == 1 or (count >= L and layout.c + carry_bits(layout.c, layout.per_word, L) <= W)
    )


def _rounding_upper(pieces: Pieces, layout: Layout, dtype: np.dtype[Any]) -> float:
    """How far t minus the keys before can be off when it meets a key, in any order of summation.

    A key takes two sums of five terms, which add up to at most (g + 4) 2^rho + 16 units in absolute value where the
    outcome is in question. The last term is for the float64 arithmetic of this module."""
    g, u = layout.per_word, float(np.finfo(dtype).eps) / 2
    return 8 * g * u * ((g + 4) * 2.0**layout.rho + 16) * layout.unit + float(pieces.last[-1]) * 2.0**-50


def _reach(pieces: Pieces, layout: Layout, radius: float, dtype: np.dtype[Any]) -> list[int]:
    """How many pieces fit into a word that begins with piece j: keys, whole multiples of the unit from the word's
    start, must be at most 2^rho apart, and their ramps keep a radius, and a ramp's width, from both pieces."""
    K, room = len(pieces.first), (pieces.first[1:] - pieces.last[:-1] - pieces.ramp) / 2
    room -= max(radius, pieces.ramp) + _rounding_upper(pieces, layout, dtype)
    length, alive, before = np.ones(K, int), np.arange(K), np.zeros(K)
    for k in range(1, layout.per_word):
        inside = alive < K - k
        alive, before = alive[inside], before[inside]
        exact = (pieces.aim[alive + k] - pieces.start[alive]) / layout.unit
        key = np.rint(exact)
        fits = np.abs(key - exact) * layout.unit <= room[alive + k - 1]
        fits &= (key > before) & (key - before <= 2.0**layout.rho)
        alive, before = alive[fits], key[fits]
        length[alive] += 1
    return list(length.tolist())


def _begins(reach: list[int], g: int) -> Iterator[int]:
    """The pieces with which words of at most g pieces begin."""
    j = 0
    while j < len(reach):
        yield j
        j += min(reach[j], g)


def _find_words(
    pieces: Pieces, layout: Layout, begins: Array, L: int, dtype: np.dtype[Any]
) -> tuple[Plateaus, float]:
    """t into (word, t minus the word's start in units) for each of the L words of its group; and the guard."""
    K, R = len(pieces.first), -(-len(begins) // L)
    word = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, K)))
    place, start = np.arange(K) - begins[word], pieces.start[begins][word]
    key = np.where(place > 0, np.rint((pieces.aim - start) / layout.unit), 0.0)
    ramp = start + key * layout.unit
    guard = np.minimum(ramp[1:] - pieces.last[:-1], pieces.first[1:] - ramp[1:] - pieces.ramp)
    guard -= np.where(place[1:] > 0, _rounding_upper(pieces, layout, dtype), 0.0)
    leads = begins[::L]  # the pieces with which groups begin: labels are counted from 0 there
    label = np.diff(pieces.labels, prepend=0)
    label[leads] = pieces.labels[leads]
    step = np.where(place > 0, np.diff(key, prepend=0.0) - 1, 0.0).astype(np.int64)
    low = (layout.per_word - 1 - place) * (layout.c + layout.rho)
    table = np.zeros((R * L, 2))
    np.add.at(table[:, 0], word, ((step << layout.c) + label % 2**layout.c) * 2.0**low)
    table[: len(begins), 1] = -pieces.start[begins] / layout.unit

    ends = np.stack([pieces.first[leads], pieces.last[np.append(leads[1:], K) - 1]], axis=1)
    found = plateaus.on_a_line(ends.ravel(), np.repeat(table.reshape(R, 2 * L), 2, axis=0), dtype)
    (gadget,) = found.gadgets
    assert isinstance(gadget, Plateaus)
    # t itself passes, too, in units, and is added to minus the start of each word
    passed = np.zeros((1, 2 * L), dtype)
    passed[0, 1::2] = 1.0
    find = replace(gadget, carried=np.array([[1 / layout.unit]], dtype), passed=passed)
    return find, float(min(guard.min(initial=np.inf), found.guard))


@readout
class InBits(ReadoutMethod):
    name, order, only_classes = "bits", 6, True

    @classmethod
    def on_line(cls, t: Array, answers: Array, task: Task) -> Readout:
        return construct(t, answers, task.radius, task.dtype)
