"""What is known of the units of a layer where most of them are exactly 0: a few numbers instead of all units.

A search decides which cells are on. From then on most units are functions of a few whole numbers, the *choices*
of a token. What is said of units holds after ReLU, for all values that the arithmetic allows. Units that no part
names are exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onelayer_checker.core.balls import (
    REAL,
    TINY,
    UP,
    Arithmetic,
    Array,
    Ball,
    U,
    gamma,
    guarded,
    is_power,
)
from onelayer_checker.core.exactness import normal, sums_fit
from onelayer_checker.search.wholes import Signed


@dataclass(frozen=True, eq=False)
class Known:
    """Units that are one row of a table, which the choice ``by`` of a token names.

    kind "one": unit j is 1 if j is chosen, the others are 0; beyond the last unit, none is 1.
    kind "upto": the first j units are 1, the others are 0.   kind "table": row j of ``table`` [K, U].
    """

    units: Array
    by: int
    kind: str
    table: Ball | None = None

    def rows(self, W: Array) -> Rows | None:
        """What the part adds to sums with weights W [units of the layer, o]; None if that might be rounded.

        Theorem: proofs/Lookups.v one_hot_row, staircase_row, table_row.
        """
        own = W[self.units]
        if self.kind == "one":
            padded = np.pad(own, ((0, 1), (0, 0)))
            return Rows(self.by, padded, np.abs(padded), 1, True, whole(own))
        if not whole(own):
            return None
        if self.kind == "upto":
            padded = np.pad(own, ((1, 0), (0, 0)))
            value, size = np.cumsum(padded, axis=0), np.cumsum(np.abs(padded), axis=0)
        else:
            assert self.table is not None
            if self.table.r.any() or not whole(self.table.m):
                return None
            value, size = self.table.m @ own, np.abs(self.table.m) @ np.abs(own)
        return Rows(self.by, value, size, len(own), False, True) if sums_fit(size.max(initial=0.0), REAL) else None


@dataclass(frozen=True, eq=False)
class Few:
    """For each token at most m units differ from 0; ``slot`` says which of ``units``, and what they are."""

    units: Array
    slot: int


@dataclass(frozen=True, eq=False)
class Dense:
    """Units with a ball for each token, in ``slot``."""

    units: Array
    slot: int


Part = Known | Few | Dense


@dataclass(frozen=True, eq=False)
class Rows:
    """Row ``by`` of ``value`` [K, o] is added to a sum: exact numbers, of terms whose sizes add up to ``size``."""

    by: int
    value: Array
    size: Array
    terms: int  # at most
    single: bool  # each is one weight, times 1
    whole: bool  # of whole numbers

    @property
    def most(self) -> float:
        return float(self.size.max(initial=0.0))

    @cached_property
    def signed(self) -> Signed:
        """Of whole numbers: what the positive terms add up to, and the sizes of the negative ones."""
        plus, minus = (self.size + self.value) / 2, (self.size - self.value) / 2
        return Signed(plus, minus if minus.any() else None)


@dataclass(eq=False)
class Token:
    """What is known of the tokens at hand: choices [T], balls [T, U], and the few units that may differ from 0."""

    choices: dict[int, Array] = field(default_factory=dict)
    balls: dict[int, Ball] = field(default_factory=dict)
    few: dict[int, tuple[Array, Ball]] = field(default_factory=dict)
    whole: dict[int, Array] = field(default_factory=dict)  # [U] which balls are whole numbers, not below 0, exactly
    unknown: Array = field(default_factory=lambda: np.zeros(0, bool))  # [T] a choice, or a ball, is not certain

    def choose(self, by: int, cell: Array) -> None:
        self.unknown |= cell < 0
        self.choices[by] = np.maximum(cell, 0)

    def put(self, slot: int, ball: Ball) -> None:
        if not ball.r.max(initial=0.0) < np.inf:
            self.unknown |= ~np.isfinite(ball.r).all(axis=1)
        self.balls[slot] = ball

    def put_whole(self, slot: int, m: Array, last: bool = False) -> None:
        """Whole numbers, known exactly, before ReLU, which the last layer does not have; they are overwritten."""
        m = m if last else np.maximum(m, 0.0, out=m)
        self.balls[slot] = Ball(m, np.broadcast_to(0.0, m.shape))
        if not last:
            self.whole[slot] = np.ones(m.shape[1], bool)

    def knows_whole(self, slot: int) -> bool:
        """Whether all units of a slot are known to be whole numbers, none below 0, without looking at them."""
        return slot in self.whole and bool(self.whole[slot].all())

    def are_whole(self, slot: int) -> Array:
        """Which units [U] are whole numbers, none below 0, known exactly, for all tokens."""
        if slot not in self.whole:
            ball = self.balls[slot]
            some = _are_whole(ball[:1]).nonzero()[0]  # most that are not show at the first token
            found = np.zeros(ball.m.shape[1], bool)
            found[some] = _are_whole(ball[:, some])
            self.whole[slot] = found
        return self.whole[slot]


def _are_whole(ball: Ball) -> Array:
    return np.asarray(((ball.r == 0) & (ball.m == np.rint(ball.m)) & (ball.m >= 0)).all(axis=0))


def whole(a: Array) -> bool:
    return bool((np.rint(a) == a).all())


def added(rows: list[tuple[Array, Array, bool]], x: Ball, W: Array, b: Array, A: Arithmetic) -> Ball:
    """Encloses a sum in any order: chosen rows, products of x [T, i] with W [i, o] or [T, i, o], and a bias.

    A chosen row is a value and a size [T, o], and whether it is one term.

    It is exact where only one term is not 0, or where all are whole numbers that `sums_fit`.
    Theorem: proofs/Lookups.v added_whole_exact, added_one_exact; proofs/Searched.v added_encloses.
    """
    m, S = b + _products(x.m, W), np.abs(b) + _products(np.abs(x.m), np.abs(W))
    R = _products(x.r, np.abs(W))
    for value, size, _ in rows:
        m, S = m + value, S + size
    k = 2 * (len(rows) + W.shape[-2]) + 4
    reach = (np.abs(x.m) + x.r).max(axis=1, initial=0.0)[:, None] + np.abs(W).max(initial=0.0)
    inflate = (1 + 2 * k * U) * UP  # S and R are themselves rounded sums
    r = (R + gamma(k, U) * S + gamma(k, A.u) * (S + R)) * inflate + 4 * k * (A.tiny + TINY) * (2 + reach)
    for _, size, single in rows:
        if not single:  # of many terms: known only where nothing is rounded
            r = np.where(size > 0, np.inf, r)
    r = np.where(_is_exact(rows, x, W, b, S, m, A), 0.0, r)
    return Ball(m, guarded(r, 2 * (S + R), A))


def _products(x: Array, W: Array) -> Array:
    """x [T, i] times weights [i, o], or [T, i, o]."""
    return np.asarray(x @ W if W.ndim == 2 else np.einsum("ti,tio->to", x, W))


def _is_exact(
    rows: list[tuple[Array, Array, bool]], x: Ball, W: Array, b: Array, S: Array, m: Array, A: Arithmetic
) -> Array:
    """Where all terms are whole and their sizes fit, or only one is not 0, and nothing of it is rounded or flushed.

    Theorem: proofs/Lookups.v added_whole_exact, added_one_exact.
    """
    sure = _products((x.r != 0).astype(np.float32), (W != 0).astype(np.float32)) == 0  # all that is read is known
    if not sure.any():
        return np.asarray(sure)
    W = W if W.ndim == 3 else W[None]
    terms, used = x.m[:, :, None] * W, W != 0
    integral = (x.m == np.rint(x.m))[:, :, None] & (np.rint(W) == W)
    fits = sums_fit(S, A, m)
    every = sure & (integral | ~used).all(axis=1) & (b == np.rint(b)) & fits
    live = used & (x.m != 0)[:, :, None]
    solid = normal(x.m, A)[:, :, None] & normal(W, A) & normal(terms, A)
    kept = solid & (is_power(np.ascontiguousarray(W)) | (integral & fits[:, None]))
    one = sure & (kept | ~live).all(axis=1) & ((b == 0) | normal(b, A))
    count = live.sum(axis=1) + (b != 0)
    for value, size, single in rows:
        every = every & (value == np.rint(value))
        count = count + (size != 0) * (1 if single else 2)
        one = one & ((size == 0) | normal(value, A))
    return np.asarray(every | (one & (count <= 1)))
