"""Sums of several parts: what each part adds, and whether any order of summation rounds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onelayer_checker.core.balls import UP, Arithmetic, Array, Ball, exact, joined
from onelayer_checker.core.exactness import sums_fit
from onelayer_checker.search.parts import Rows, Token, added, whole
from onelayer_checker.search.wholes import Signed, Weights, add_exactly


@dataclass(frozen=True, eq=False)
class Sums:
    """What o sums are made of: chosen rows, balls x with weights [i, o], and a bias."""

    rows: list[Rows]
    slot: int | None  # of the balls
    weight: Array
    bias: Array
    integral: bool  # all of these are whole numbers, and the weights of few units that are added besides

    @staticmethod
    def of(rows: list[Rows], slot: int | None, weight: Array, bias: Array, few: list[Array]) -> Sums:
        integral = all(r.whole for r in rows) and all(whole(a) for a in (weight, bias, *few))
        return Sums(rows, slot, weight, bias, integral)

    def balls(self, token: Token) -> Ball:
        return exact(np.zeros((len(token.unknown), 0))) if self.slot is None else token.balls[self.slot]

    def ball(self, token: Token, few: list[tuple[Array, Ball]], x: Ball, W: Array, A: Arithmetic) -> Ball:
        """Encloses all sums, with products of ``few`` units (their weights [T, m, o], and balls) besides.

        Theorem: proofs/Answers.v stored_answers_exact.
        """
        values = [r.value[token.choices[r.by]] for r in self.rows]
        if few:
            W = np.concatenate([np.broadcast_to(W, (len(x.m), *W.shape)), *(v for v, _ in few)], axis=1)
            x = joined([x, *(value for _, value in few)])
        sizes = [r.size[token.choices[r.by]] for r in self.rows]
        return added(list(zip(values, sizes, [r.single for r in self.rows], strict=True)), x, W, self.bias, A)

    def ball_at(self, columns: Array, token: Token, x: Ball, A: Arithmetic) -> Ball:
        """Encloses the sums at some columns [T, m] of each token.

        Theorem: proofs/Answers.v stored_answers_exact.
        """
        values = [r.value[token.choices[r.by][:, None], columns] for r in self.rows]
        W, b = self.weight.T[columns].swapaxes(1, 2), self.bias[columns]
        sizes = [r.size[token.choices[r.by][:, None], columns] for r in self.rows]
        return added(list(zip(values, sizes, [r.single for r in self.rows], strict=True)), x, W, b, A)

    def exactly(self, token: Token, few: list[Signed], A: Arithmetic) -> Array | None:
        """All sums, if they are of whole numbers and nothing is rounded; ``few`` are sums of products besides.

        Theorem: proofs/ExactSums.v signed_sums_fit_exact; proofs/Lookups.v lookup_exact.
        """
        if not self.reads_whole(token):
            return None
        terms = [*(r.signed.rows(token.choices[r.by]) for r in self.rows), *few, self.signed_bias]
        if self.slot is not None:
            terms.append(self.weights.times(token.balls[self.slot].m))
        return add_exactly(terms, A)

    def exactly_at(self, columns: Array, token: Token, A: Arithmetic) -> Array | None:
        """The sums at some columns [T, m] of each token, if they are of whole numbers and nothing is rounded.

        Theorem: proofs/ExactSums.v signed_sums_fit_exact; proofs/Lookups.v lookup_exact.
        """
        if self.slot is not None or not self.integral:
            return None
        terms = [r.signed.at(token.choices[r.by][:, None], columns) for r in self.rows]
        return add_exactly([*terms, self.signed_bias.at(columns)], A)

    def reads_whole(self, token: Token) -> bool:
        """Whether all terms are whole numbers that are known exactly."""
        return self.integral and (self.slot is None or bool(token.are_whole(self.slot)[self.weights.used].all()))

    @cached_property
    def weights(self) -> Weights:
        return Weights.of(self.weight)

    @cached_property
    def signed_bias(self) -> Signed:
        return Signed.of(self.bias)

    def fit(self, x: Ball, widest: float, A: Arithmetic) -> bool:
        """Whether all terms are whole numbers, and no order of summation rounds any of the sums.

        Theorem: proofs/Gates.v fit_sound; proofs/ExactSums.v computed_expression_exact.
        """
        if not self.integral or x.r.any() or not whole(x.m):
            return False
        most = float(np.abs(x.m).max(axis=0, initial=0.0).sum()) * widest + float(np.abs(self.bias).max())
        return bool(sums_fit((most + sum(r.most for r in self.rows)) * UP * UP, A))
