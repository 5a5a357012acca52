"""Words peeled off bit by bit: pairs (word, z), z in units from the word's start, become the label at z modulo 2^c.

A word x = label_0 key_1 label_1 .. key_(g-1) label_(g-1) is compared with powers of two; where z has not reached
the next key, nothing is left of x. The search is the layers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from onelayer.gadgets.gadget import Gadget, Words, same_layers
from onelayer.network.weights import Array, Grouped, Layer, Linear


@dataclass(frozen=True, eq=False)
class WordReader(Gadget):
    kind: ClassVar[str] = "words"

    c: int  # bits of a label
    rho: int  # bits of a key
    per_word: int  # g, labels in a word
    ramp: float  # over which a key is reached, in units; a power of two
    words: int  # L, read side by side
    dtype: np.dtype[Any]

    def layers(self) -> tuple[Layer, ...]:
        return tuple(self._layers())

    def _layers(self) -> Iterator[Layer]:
        """All words of a group side by side, then the sum of what they give, modulo 2^c."""
        L, dtype = self.words, self.dtype
        for A in word_program(self.c, self.rho, self.per_word, self.ramp):
            blocks = np.stack([A[:2, :2], A[2:4, 2:]]) if in_halves(A) else A[None, :-1]
            yield Grouped(np.tile(blocks, (L, 1, 1)).astype(dtype), np.tile(A[-1], L).astype(dtype))
        tape, total = _Tape(L), np.append(np.ones(L), 0.0)
        for k in range(self.c + carry_bits(self.c, self.per_word, L) - 1, self.c - 1, -1):
            (total,) = tape.peel(total, k)
        for A in (*tape.maps, total[:, None]):
            yield Linear(A[:-1].astype(dtype), A[-1].astype(dtype))

    def names(self) -> tuple[Words, ...]:
        """Every layer compares, or takes off, one bit of a word; what else there is goes along."""
        found = []
        for i, layer in enumerate(self.layers()):
            if isinstance(layer, Grouped):
                per = layer.width // self.words
                whats = {
                    1: ["label"],
                    4: ["bit", "word", "place", "sum"],
                    5: ["bit", "word", "place", "sum", "not reached"],
                }
                said = whats.get(per, [f"value {j}" for j in range(per)])
                found.append(
                    tuple(f"word {w} / {what} after {i} steps" for w in range(self.words) for what in said)
                )
            else:
                found.append(("carry", "label")[-layer.width :])
        return tuple(found)

    @classmethod
    def depths_of(cls, layers: tuple[Layer, ...]) -> Sequence[int]:
        grouped = next((i for i, layer in enumerate(layers) if isinstance(layer, Linear)), len(layers))
        linear = (i for i, layer in enumerate(layers[grouped:]) if layer.width == 1)
        return [grouped + i + 1 for i in linear] if grouped else []

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        first, last = layers[0], layers[-1]
        if not (isinstance(first, Grouped) and isinstance(last, Linear)) or first.weight.shape[1:] != (2, 5):
            return None
        scale, z, dtype = float(first.bias[0]) + 2.0, -float(first.weight[0, 1, 4]), first.weight.dtype
        if not (z > 0 and scale >= 4 and np.frexp(scale)[0] == 0.5):
            return None
        top = int(np.log2(scale)) - 1  # bits of a word
        for c in range(1, top + 1):
            for rho in range(top - c + 1) if c < top else [0]:
                g, left = divmod(top + rho, c + rho)
                if left or (g == 1 and rho):
                    continue
                found = cls(c, rho, g, 1.0 / z, len(first.weight), dtype)
                if found.depth == len(layers) and all(map(_same, found._layers(), layers)):
                    return found
        return None

    @property
    def depth(self) -> int:
        top = self.per_word * (self.c + self.rho) - self.rho
        return 2 * top + 2 + 2 * carry_bits(self.c, self.per_word, self.words)


def _same(a: Layer, b: Layer) -> bool:
    return same_layers([a], [b])


class _Tape:
    """Affine maps with ReLU between them. Expressions are coefficients of the last layer's units, and of 1."""

    def __init__(self, inputs: int) -> None:
        self.maps: list[Array] = []
        *self.units, self.one = np.eye(inputs + 1)

    def relu(self, *expressions: Array) -> list[Array]:
        """The next layer, one unit per expression; returns its units."""
        self.maps.append(np.stack(expressions, axis=1))
        *self.units, self.one = np.eye(len(expressions) + 1)
        return self.units

    def below(self, x: Array, k: int) -> Array:
        """At most -2 where the whole number x is 2^k or more, at least 2 where it is less."""
        return np.asarray((2.0 ** (k + 2) - 2) * self.one - 4 * x)

    def peel(self, x: Array, k: int, *carried: Array) -> list[Array]:
        """Two layers that take bit k, the highest, off the whole number x."""
        a, x, *carried_on = self.relu(self.below(x, k), x, *carried)
        bit, x, *carried_on = self.relu(self.one - a, x, *carried_on)
        return [x - 2.0**k * bit, *carried_on]


@lru_cache(maxsize=256)
def word_program(c: int, rho: int, g: int, ramp: float = 0.25) -> tuple[Array, ...]:
    """Reads a word x at z, t minus the word's start in units: the sum of the labels of the pieces reached.

    Digits are not put together from bits: a digit is (x before - x after) / 2^low, so z and the sum take in x
    before the digit is peeled off, and give back what is left of x afterwards.
    """
    tape = _Tape(2)
    x, z = tape.units
    total, top = 0 * x, g * (c + rho) - rho
    for j in range(g):
        # `off` is 0 where t has reached the piece, and at least 1 where it has not: then nothing is left of x.
        a, x, z, total, off = tape.relu(tape.below(x, top - 1), x, z, total, tape.one - z / ramp)
        bit, x, z, total = tape.relu(tape.one - a - off, x - 2.0**top * off, z, total)
        total = total + x / 2.0 ** (top - c)
        x = x - 2.0 ** (top - 1) * bit
        for k in range(top - 2, top - c - 1, -1):
            x, z, total = tape.peel(x, k, z, total)
        top -= c
        total = total - x / 2.0**top
        if j + 1 < g:
            z = z - x / 2.0 ** (top - rho) + 2.0**rho * tape.one  # so it stays positive
            for k in range(top - 1, top - rho - 1, -1):
                x, z, total = tape.peel(x, k, z, total)
            top -= rho
            z = z + x / 2.0**top - (2.0**rho + 1) * tape.one
    tape.relu(total)
    return tuple(tape.maps)


def in_halves(A: Array) -> bool:
    """Whether the map falls into two blocks: what is being peeled, and what is carried past it."""
    return A.shape == (5, 4) and not A[:2, 2:].any() and not A[2:4, :2].any()


def carry_bits(c: int, per_word: int, words: int) -> int:
    """By how many bits the labels of a group, added up, can exceed c bits."""
    return int(words * per_word * (2**c - 1) >> c).bit_length()
