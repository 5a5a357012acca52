"""Sums of whole numbers that are known exactly: no ball is needed, only that no order of summation rounds anything.

What follows a ReLU is never below 0. So the sign of a term is that of its weight, and the positive terms of a sum,
and the sizes of the negative ones, add up apart: ``plus`` and ``minus``. No partial sum is beyond these.
Arrays [T, o] lie in memory unit by unit: units are picked, joined and compared one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball, product
from onelayer_checker.core.exactness import sums_fit


@dataclass(frozen=True, eq=False)
class Signed:
    """Whole numbers by their signs: each is plus - minus."""

    plus: Array
    minus: Array | None  # None: no number is below 0

    @cached_property
    def value(self) -> Array:
        return self.plus if self.minus is None else self.plus - self.minus

    @staticmethod
    def of(a: Array) -> Signed:
        return Signed(np.maximum(a, 0.0), np.maximum(-a, 0.0) if (a < 0).any() else None)

    def rows(self, at: Array) -> Signed:
        """Rows of a table, for each token one."""
        return Signed(_rows(self.plus, at), None if self.minus is None else _rows(self.minus, at))

    def at(self, *index: Array) -> Signed:
        """Entries of a table, or of a bias."""
        return Signed(self.plus[index], None if self.minus is None else self.minus[index])

    def times(self, x: Array) -> Signed:
        """Sums of x [T, i], none below 0, with weights [i, o], or with those of a block-diagonal layer."""
        return Signed(_times(x, self.plus), None if self.minus is None else _times(x, self.minus))


def _rows(table: Array, at: Array) -> Array:
    return table.T.take(at, axis=1).T


def _times(x: Array, W: Array) -> Array:
    if W.ndim == 2:
        return (W.T @ x.T).T
    groups, inputs, outputs = W.shape
    blocks = product(W.swapaxes(1, 2), x.T.reshape(groups, inputs, len(x)))
    return blocks.reshape(groups * outputs, len(x)).T


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a layer; a unit that no sum reads need not be a whole number."""

    used: Array  # [units]
    signed: Signed

    @staticmethod
    def of(W: Array) -> Weights:
        used = (W != 0).any(axis=-1).ravel()
        return Weights(used, Signed.of(W[used])) if W.ndim == 2 else Weights(np.ones_like(used), Signed.of(W))

    def times(self, x: Array) -> Signed:
        """Sums of products with x [T, units], none below 0."""
        return self.signed.times(self.read(x))

    def read(self, x: Array) -> Array:
        return x if self.used.all() else x.T[self.used].T

    def add_exactly(self, x: Array, bias: Signed, A: Arithmetic) -> Array | None:
        """The same with a bias, as `add_exactly`. Sums of one sign grow with every number of x: where those of a
        token with the largest numbers of all fit, the others need not be taken apart.

        Theorem: proofs/ExactSums.v signed_sums_fit_exact, computed_size_exact.
        """
        x = self.read(x)
        largest = self.signed.times(x.max(axis=0, keepdims=True, initial=0.0))
        if add_exactly([largest, bias], A) is None:
            return add_exactly([self.signed.times(x), bias], A)
        total = _times(x, self.signed.value)
        total += bias.value  # in place: it may be large
        return total


@dataclass(frozen=True, eq=False)
class Kinds:
    """Weights [units, o] of units of a few kinds: those of a kind have the same weights."""

    of_unit: Array  # [units]
    weights: Signed  # [kinds, o]

    @staticmethod
    def of(W: Array) -> Kinds:
        different, kind = np.unique(W, axis=0, return_inverse=True)
        return Kinds(kind.reshape(-1), Signed.of(different))

    def times(self, units: Array, y: Ball) -> Signed | None:
        """Sums with the values y of some units [T, m], -1 for none; None if a column has units of two kinds."""
        total = np.zeros((len(self.weights.plus), len(units)))
        for unit, value in zip(units.T, y.m.T, strict=True):
            kind = self.of_unit[unit]
            first = int(kind[np.argmax(unit >= 0)])
            if ((kind != first) & (unit >= 0)).any():
                return None
            total[first] += np.where(unit >= 0, value, 0.0)
        return self.weights.times(total.T)


def add_exactly(terms: list[Signed], A: Arithmetic) -> Array | None:
    """The sum of all terms [T, o], or None where some order of summation might round one of them.

    Theorem: proofs/ExactSums.v signed_sums_fit_exact, computed_size_exact.
    """
    plus, below = _add([t.plus for t in terms]), [t.minus for t in terms if t.minus is not None]
    minus = _add(below) if below else np.zeros(1)
    most, least = float(plus.max(initial=0.0)), float(minus.max(initial=0.0))
    return plus - minus if sums_fit(most + least, A, np.asarray(most - least)) else None


def _add(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
