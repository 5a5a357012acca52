"""One logit per class behind a class number: logit c of class j is (j^2 - (j - c)^2) times the margin.

That is 2cj - c^2, linear in j: two numbers a class, and to take the largest is to round to the nearest class. The
right logit exceeds every other by at least the margin. Products and sums are whole numbers, times a power of two,
that the dtype holds, so they are exact in any order. Where classes are too many for that, j is cut into two digits
by saturating steps, and a class is a pair of them: three numbers a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from onelayer.errors import PrecisionError
from onelayer.gadgets.gadget import Gadget, Words, number_names
from onelayer.network.weights import Array, Grouped, Layer, Linear

#: By so much the right logit exceeds the others: they have a probability of about 1e-14 together.
MARGIN = 32.0


@dataclass(frozen=True, eq=False)
class Logits(Gadget):
    """The search is exact where the class number is a whole number of a class."""

    kind: ClassVar[str] = "logits"
    depths: ClassVar[tuple[int, ...]] = (1, 4)

    classes: int  # C, at least 2
    base: int  # of the lower digit; C if there is but one
    dtype: np.dtype[Any]

    @staticmethod
    def of(classes: int, dtype: np.dtype[Any]) -> Logits:
        bits = np.finfo(dtype).nmant + 1
        base = 1 << -(-int(classes - 1).bit_length() // 2)
        if classes <= 1 << bits // 2:
            return Logits(classes, classes, dtype)
        if 4 * base**2 > 1 << bits:
            needs = f"at most {1 << bits - 2:,} classes for logits in {dtype}"
            raise PrecisionError("memorize", needs, f"there are {classes:,}", 'Use dtype="float64".')
        return Logits(classes, base, dtype)

    @property
    def steps(self) -> int:
        """The largest upper digit."""
        return (self.classes - 1) // self.base

    @cached_property
    def codes(self) -> Array:
        """[C, digits] of every class."""
        number = np.arange(self.classes)
        digits = [number // self.base, number % self.base] if self.steps else [number]
        return np.stack(digits, axis=1).astype(np.float64)

    @property
    def numbers(self) -> int:
        """Weights and biases."""
        return sum(layer.weight.size + layer.bias.size for layer in self.dense)

    def layers(self) -> tuple[Layer, ...]:
        codes, dtype, T, b = self.codes, self.dtype, self.steps, float(self.base)
        read = Linear(
            (2 * MARGIN * codes.T).astype(dtype, order="C"), (-MARGIN * (codes**2).sum(axis=1)).astype(dtype)
        )
        if not T:
            return (read,)
        lacks, lack = np.full((1, T + 1), -1, dtype), (b * np.arange(1, T + 2)).astype(dtype)
        step, one = np.full((T + 1, 1, 1), -1, dtype), np.ones(T + 1, dtype)
        digits = np.tile(np.array([1, -b], dtype), (T + 1, 1))
        lacks[0, T], lack[T], step[T], one[T], digits[T] = 1, 0, 1, 0, (0, 1)  # the number itself is carried along
        return Linear(lacks, lack), Grouped(step, one), Linear(digits, np.zeros(2, dtype)), read

    def names(self) -> tuple[Words, ...]:
        logits = number_names("logit of class", self.classes)
        if not self.steps:
            return (logits,)
        above = [f"class number from {self.base * t}" for t in range(1, self.steps + 1)]
        lacks = (*(f"what lacks to {step}" for step in above), "class number")
        return lacks, (*above, "class number"), ("upper digit", "lower digit"), logits

    @classmethod
    def parse(cls, layers: tuple[Layer, ...]) -> Self | None:
        read, first = layers[-1], layers[0]
        if not isinstance(read, Linear) or not isinstance(first, Linear) or read.width < 2:
            return None
        base = read.width if len(layers) == 1 else int(np.clip(np.nan_to_num(first.bias[0]), 0, 1 << 30))
        if base < 1 or (base < read.width) != (len(layers) == 4):
            return None
        return cls(read.width, base, read.weight.dtype)

    @property
    def searches(self) -> bool:
        return self.steps > 0

    def find(self, t: Array) -> tuple[Array, Array]:
        number = t[:, 0].astype(np.float64)
        sure = self.is_class(number)
        number = np.where(sure, number, 0.0)
        digits = np.stack([number // self.base, number % self.base] if self.steps else [number], axis=1)
        read = self.dense[-1]
        return (digits.astype(t.dtype) @ read.weight + read.bias).astype(t.dtype), sure

    def is_class(self, number: Array) -> Array:
        """Where the number is that of a class, so that its logit is the largest."""
        return np.asarray((number == np.rint(number)) & (number >= 0) & (number < self.classes))
