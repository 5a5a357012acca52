"""How classes, and fingerprints of their inputs, are packed as digits into words, which float32 holds exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onelayer.network.weights import Array

#: Bits of a word: whole numbers up to 2^24 are numbers of float32.
WORD_BITS = 24
#: Values that one stage tells apart at most, unless a single digit has more.
STAGE = 16
LARGEST_BASE = 32
MOST_WORDS = 6
#: Bits of the number that all digits of an answer make.
NUMBER_BITS = 62


@dataclass(frozen=True)
class Layout:
    """How classes are packed: q digits of base b each, and the digits of all lanes one after the other in words."""

    base: int  # b
    digits: int  # q, of a class and of its fingerprint
    words: int  # m, of a cell
    prints: int = 0  # of these, the highest, which are a fingerprint
    parts: int = 1  # components of an answer; each has the same number of digits

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
        """Layers that take a word apart: sums, lane, two borrows, a rest, three to a stage, class; a comparison."""
        return 10 + 3 * len(self.stages) + (1 if self.prints == 0 else 5)

    @property
    def classes(self) -> int:
        """Numbers that the digits of a class tell apart."""
        return int(self.base ** (self.digits - self.prints))

    @property
    def fingerprints(self) -> int:
        return int(self.base**self.prints)

    def values(self, numbers: Array) -> Array:
        """[T, parts] the components of answers, of the number [T] that all their digits make."""
        each = self.base ** (self.digits // self.parts)
        return np.stack([numbers // each**i % each for i in range(self.parts)], axis=1)

    def number(self, values: Array) -> Array:
        """The same back."""
        each = self.base ** (self.digits // self.parts)
        return np.asarray(values @ np.array([each**i for i in range(self.parts)], np.int64))

    def place(self, lane: int, digit: int) -> tuple[int, int]:
        """In which word, and at which place of it, a lane has a digit of its class."""
        return divmod(lane * self.digits + digit, self.capacity)

    def runs(self, lane: int) -> list[tuple[int, int, int, int]]:
        """Where the digits of a lane lie: (word, lowest place, first digit, digits) of each word that has some."""
        places = [self.place(lane, c) for c in range(self.digits)]
        starts = [c for c, (_, place) in enumerate(places) if c == 0 or place == 0]
        return [(*places[a], a, z - a) for a, z in zip(starts, [*starts[1:], self.digits], strict=True)]

    def digit_at(self, word: int, place: int) -> tuple[int, int] | None:
        """Whose digit that is: (lane, digit), or None."""
        lane, digit = divmod(word * self.capacity + place, self.digits)
        return (lane, digit) if lane < self.lanes else None


def layouts(classes: int, print_bits: float = 0.0, parts: int = 1) -> list[Layout]:
    """Ways to pack, each with more answers to a word than those of fewer words; an answer has ``parts`` classes."""
    found: list[Layout] = []
    for m in range(1, MOST_WORDS + 1):
        fitting = []
        for b, q in _bases(classes):
            prints = int(np.ceil(print_bits / np.log2(b) - 1e-9))
            if parts > 1:
                way = Layout(b, q * parts, m, parts=parts)
                fitting += [way] if way.lanes and b**way.digits < 1 << NUMBER_BITS else []
            elif b ** (q + prints) <= 1 << WORD_BITS:  # class and fingerprint are compared as whole numbers
                fitting.append(Layout(b, q + prints, m, prints))
        if not fitting and parts == 1:
            break
        if not fitting:
            continue
        best = max(fitting, key=lambda layout: (layout.lanes, -layout.digits))
        if best.lanes > max((m * layout.lanes // layout.words for layout in found), default=0):
            found.append(best)
    return found


def of_fewer_lanes(layout: Layout) -> list[Layout]:
    """The same words with more digits to a class than it needs: for few answers, which fill no lane each."""
    if layout.parts > 1:
        return []
    digits = [layout.capacity * layout.words // lanes for lanes in range(layout.lanes - 1, 0, -1)]
    return [replace(layout, digits=q) for q in dict.fromkeys(digits) if q > layout.digits]


def _bases(classes: int) -> list[tuple[int, int]]:
    """For each number of digits, the smallest base in which they tell the classes apart."""
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
