"""Stacks of layers in which a search per token replaces most of the dense product.

Group j of two layers is relu(1 - sum_u relu(w_u t_i(u) + b_u)). Let t range over a ball, in any arithmetic of the
specification; weights and biases are zero or normal, and a subnormal t may be read as 0. Rounding is monotone: what
is at most, or at least, a number of the format stays so.
 - On: if all pre-activations are <= 0 as real numbers, the group is exactly 1, whatever the slopes are: w t is at
   most -b, which is a number, and so is the computed product; the sum is at most 0.
 - Off: if one of them is >= 1, its computed sum is >= 1 in any order, and the group is exactly 0. Here w is zero or
   plus or minus a power of two, and t a number of the format: then w t is one, too, unless it is so small that b
   alone decides. With other slopes a product that is rounded may leave less than 1.
So a search finds which groups are on: one of a family of cells, or the first few of a staircase. What follows is
then a function of these choices, and is looked up (`parts.py`, `operations.py`).
Theorem: proofs/Cells.v unit_nonpositive, unit_at_least_one, cell_on, cell_off; proofs/Examples.v
slope_has_to_be_a_power.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from onelayer_checker.core.balls import UP, Arithmetic, Array, Ball
from onelayer_checker.core.graph import Network
from onelayer_checker.core.layers import Layer, Stack, run_stack
from onelayer_checker.search.plan import Plan

#: Products up to which all samples are compared with the dense evaluation, a matter of a second or two; those that
#: go into comparing some where there are more; and those that go into what the search leaves open in a block.
ALL, SOME, WORK = 1 << 25, 1 << 20, 1 << 22


@dataclass(frozen=True, eq=False)
class Searched(Stack):
    """A stack that is searched; what the search leaves open is evaluated."""

    positive: bool = False  # what comes in follows a ReLU
    plans: dict[str, Plan | None] = field(default_factory=dict)  # by arithmetic

    def plan(self, A: Arithmetic) -> Plan | None:
        if A.name not in self.plans:
            self.plans[A.name] = Plan.of(self.layers, A, self.positive)
        return self.plans[A.name]

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        """What the search finds, and the dense evaluation of what it leaves open.

        Theorem: proofs/Answers.v stored_answer_exact, stored_answers_exact.
        """
        plan = self.plan(A)
        if plan is None:
            return run_stack(self.layers, x, A)
        y, unknown = plan.run(x, A)
        rows = np.flatnonzero(unknown)
        few = rows[: WORK // self.work]
        if not rows.size:
            return y
        m, r = y.m.copy(), y.r.copy()
        r[rows] = np.inf
        if few.size:
            found = run_stack(self.layers, x[few], A)
            m[few], r[few] = found.m, found.r
        return Ball(m, r)

    def cut(self) -> tuple[Stack, Layer]:
        return Searched(self.layers[:-1], self.positive), self.layers[-1]

    def disagrees(self, x: Ball, A: Arithmetic) -> Array:
        """The dense evaluation is the definition: on all samples, or as many as seconds allow, it must contain what
        the search found."""
        plan, most = self.plan(A), max(4, SOME // self.work)
        if plan is None:
            return np.zeros(0, np.intp)
        rows = np.arange(len(x.m))
        if len(rows) * self.work > ALL:  # evenly spread, and at random
            some = np.zeros(len(rows), bool)
            some[np.linspace(0, len(rows) - 1, most // 2 + 1).astype(int)] = True
            some[Random(len(rows)).choices(range(len(rows)), k=most // 2)] = True
            rows = np.flatnonzero(some)
        y, unknown = plan.run(x[rows], A)
        dense = run_stack(self.layers, x[rows], A)
        outside = ~(np.abs(y.m - dense.m) <= (y.r + dense.r) * UP) & np.isfinite(y.r)
        return np.asarray(rows[outside.any(axis=1) & ~unknown])

    @property
    def work(self) -> int:
        """Products that evaluating one row takes."""
        return sum(layer.weight.size for layer in self.layers)

    def effort(self, A: Arithmetic) -> float:
        plan = self.plan(A)
        return super().effort(A) if plan is None else plan.effort(A)

    @property
    def widest(self) -> int:
        return max((plan.widest for plan in self.plans.values() if plan is not None), default=64)


def accelerate(network: Network) -> Network:
    """The same network, whose stacks are searched where they can be."""

    def searched(stack: Stack, positive: bool) -> Stack:
        return Searched(stack.layers, positive) if len(stack.layers) > 2 else stack

    feedforward, readout = searched(network.feedforward, False), searched(network.readout, True)
    return replace(network, feedforward=feedforward, readout=readout)
