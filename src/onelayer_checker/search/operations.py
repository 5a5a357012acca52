"""The operations that a search is made of: each computes some numbers of every token from others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Arithmetic, Array, Ball, U, exact, gamma, joined, relu
from onelayer_checker.core.exactness import sums_fit
from onelayer_checker.core.layers import Layer
from onelayer_checker.search.cells import Cells
from onelayer_checker.search.parts import Dense, Known, Token
from onelayer_checker.search.steps import RowSteps, Steps
from onelayer_checker.search.sums import Sums
from onelayer_checker.search.wholes import Kinds, Signed, Weights

#: Units that may differ from 0 for one token; a token that has more stays undecided.
MOST_LIVE = 64
#: So few choices, taken together, are all looked at; of more, those that tokens have made.
FEW_WAYS = 1 << 10


@dataclass(frozen=True, eq=False)
class Decide:
    """A family of cells, or a staircase, that reads balls."""

    family: Cells | Steps
    slot: int
    by: int

    def run(self, token: Token, A: Arithmetic) -> None:
        t, family = token.balls[self.slot], self.family
        if isinstance(family, Steps) and token.are_whole(self.slot)[family.column]:
            counted = family.count(t.m[:, family.column], A)
            if counted is not None:
                token.choices[self.by] = counted
                return
        token.choose(self.by, family.decide(t, A))


@dataclass(frozen=True, eq=False)
class DecideInRow:
    """A staircase whose thresholds another choice names."""

    family: RowSteps
    row: int
    slot: int
    by: int

    def run(self, token: Token, A: Arithmetic) -> None:
        token.choose(self.by, self.family.decide(token.balls[self.slot], token.choices[self.row], A))


@dataclass(frozen=True, eq=False)
class Evaluate:
    """A layer of the core, on units with balls."""

    layer: Layer
    slot: int
    into: int
    last: bool

    def run(self, token: Token, A: Arithmetic) -> None:
        m = self.exactly(token, A)
        if m is None:
            y = self.layer.apply(token.balls[self.slot], A)
            token.put(self.into, y if self.last else relu(y))
        else:
            token.put_whole(self.into, m, self.last)

    def exactly(self, token: Token, A: Arithmetic) -> Array | None:
        """The sums, if they are of whole numbers and nothing is rounded.

        Theorem: proofs/ExactSums.v signed_sums_fit_exact.
        """
        if not (self.layer.whole < np.inf and token.are_whole(self.slot)[self.weights.used].all()):
            return None
        return self.weights.add_exactly(token.balls[self.slot].m, self.bias, A)

    @cached_property
    def weights(self) -> Weights:
        return Weights.of(self.layer.weight)

    @cached_property
    def bias(self) -> Signed:
        return Signed.of(self.layer.bias)


@dataclass(frozen=True, eq=False)
class Add:
    """Sums that are evaluated for every token; ``few`` are slots of units that may differ from 0, and weights."""

    sums: Sums
    few: list[tuple[int, Array]]  # weights [units of the part, o]
    into: int
    last: bool

    def run(self, token: Token, A: Arithmetic) -> None:
        m = self.exactly(token, A)
        if m is None:
            few = [(W[np.maximum(token.few[slot][0], 0)], token.few[slot][1]) for slot, W in self.few]
            y = self.sums.ball(token, few, self.sums.balls(token), self.sums.weight, A)
            token.put(self.into, y if self.last else relu(y))
        else:
            token.put_whole(self.into, m, self.last)

    def exactly(self, token: Token, A: Arithmetic) -> Array | None:
        """The sums, if they are of whole numbers and nothing is rounded.

        Theorem: proofs/ExactSums.v signed_sums_fit_exact.
        """
        few = []
        for (slot, _), kinds in zip(self.few, self.kinds, strict=True):
            products = kinds.times(*token.few[slot]) if slot in token.whole else None
            if products is None:
                return None
            few.append(products)
        return self.sums.exactly(token, few, A)

    @cached_property
    def kinds(self) -> list[Kinds]:
        return [Kinds.of(W) for _, W in self.few]


@dataclass(frozen=True, eq=False)
class Gate:
    """Sums that are at most 0, so that ReLU makes them exactly 0, but for a few that the choices ``by`` name."""

    sums: Sums
    by: list[int]
    into: int

    def run(self, token: Token, A: Arithmetic) -> None:
        x = self.sums.balls(token)
        columns = self.live(token, x, A)
        at, off = np.maximum(columns, 0), columns < 0
        m = self.sums.exactly_at(at, token, A)
        if m is None:
            y = relu(self.sums.ball_at(at, token, x, A))
            y = Ball(np.where(off, 0.0, y.m), np.where(off, 0.0, y.r))
            token.unknown |= ~np.isfinite(y.r).all(axis=1)
        else:
            y = exact(np.where(off, 0.0, np.maximum(m, 0.0)))
            token.whole[self.into] = np.ones(y.m.shape[1], bool)
        token.few[self.into] = columns, y

    def live(self, token: Token, x: Ball, A: Arithmetic) -> Array:
        """For each token the columns [T, m] that may be on, or -1: whatever else is chosen, the others are off.

        Theorem: proofs/Gates.v gate_closed, gate_closed_slack; proofs/Searched.v slack_covers.
        """
        pivots = [[r for r in self.sums.rows if r.by == by] for by in self.by]  # one choice may feed several rows
        keys = np.zeros(len(token.unknown), np.intp)
        for by, (pivot, *_) in zip(self.by, pivots, strict=True):
            keys = keys * len(pivot.value) + token.choices[by]
        ways = prod(len(same[0].value) for same in pivots)
        different, which = (np.arange(ways), keys) if ways <= FEW_WAYS else np.unique(keys, return_inverse=True)
        top, size = self.largest(token, x)
        rest = different
        for same in reversed(pivots):
            rest, j = np.divmod(rest, len(same[0].value))
            for pivot in same:
                top, size = top + pivot.value[j], size + pivot.size[j]
        terms = 2 * (len(self.sums.weight) + sum(r.terms for r in self.sums.rows)) + 8
        widest = float(np.abs(self.sums.weight).max(initial=0.0))
        slack = np.zeros(1)
        if not (self.sums.fit(x, widest, A) and sums_fit(float(size.max(initial=0.0)) * UP * UP, A)):
            reach = 2 + widest + float((np.abs(x.m) + x.r).max(initial=0.0, where=~token.unknown[:, None]))
            slack = size * (4 * gamma(terms, A.u) + 4 * gamma(terms, U)) + 4 * terms * (A.tiny + TINY) * reach
        on = ~((top + slack <= 0) & (4 * size < A.big))  # also where these are NaN
        many = on.sum(axis=1) > MOST_LIVE
        on[many] = False
        token.unknown |= many[which]
        order = np.argsort(~on, axis=1, kind="stable")[:, : int(on.sum(axis=1).max(initial=1))]
        return np.asarray(np.where(np.take_along_axis(on, order, axis=1), order, -1)[which])

    def largest(self, token: Token, x: Ball) -> tuple[Array, Array]:
        """Bounds [o] of the sums without the rows of ``by``, and of what the sizes of their terms add up to.

        Theorem: proofs/Gates.v gate_closed.
        """
        W, known = self.sums.weight, ~token.unknown[:, None]
        low, high = x.low.min(axis=0, initial=0.0, where=known), x.high.max(axis=0, initial=0.0, where=known)
        top = np.maximum(low[:, None] * W, high[:, None] * W).sum(axis=0) + self.sums.bias
        size = (np.maximum(-low, high)[:, None] * np.abs(W)).sum(axis=0) + np.abs(self.sums.bias)
        for r in self.sums.rows:
            if r.by not in self.by:
                some = np.bincount(token.choices[r.by], minlength=len(r.value)) > 0  # that a token has chosen
                top, size = top + r.value[some].max(axis=0), size + r.size[some].max(axis=0)
        return top, size


@dataclass(frozen=True, eq=False)
class Pick:
    """Some of the units with balls."""

    slot: int
    columns: Array
    into: int

    def run(self, token: Token, A: Arithmetic) -> None:  # noqa: ARG002
        token.balls[self.into] = token.balls[self.slot][:, self.columns]
        if self.slot in token.whole:
            token.whole[self.into] = token.whole[self.slot][self.columns]


@dataclass(frozen=True, eq=False)
class Collect:
    """Units with balls, put together of parts."""

    parts: list[Known | Dense]
    into: int

    def run(self, token: Token, A: Arithmetic) -> None:  # noqa: ARG002
        balls = []
        for part in self.parts:
            if isinstance(part, Known):
                assert part.table is not None
                balls.append(looked_up(part.table, token.choices[part.by]))
            else:
                balls.append(token.balls[part.slot])
        if all(isinstance(part, Dense) and token.knows_whole(part.slot) for part in self.parts):
            token.put_whole(self.into, np.concatenate([ball.m for ball in balls], axis=1))
        else:
            token.put(self.into, balls[0] if len(balls) == 1 else joined(balls))


def looked_up(table: Ball, rows: Array) -> Ball:
    """Rows of a table; most are exact, and zeros need no memory."""
    m = table.m[rows]
    return Ball(m, table.r[rows] if table.r.any() else np.broadcast_to(0.0, m.shape))


Operation = Decide | DecideInRow | Evaluate | Add | Gate | Pick | Collect
