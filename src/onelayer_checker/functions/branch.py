"""sup_error_everywhere: how far the network is from a function on the whole box, by branch and bound.

On a box with centre c and half-widths r, |T(x) - f(x)| <= |T(c) - f(c)| + sum_i |J_i - G_i| r_i, where J and G
enclose the slopes of the network and of the target: where the two cancel, little is left. Boxes whose bound is too
large are halved; halves share the number at which they meet, so that all of the box is covered. An arithmetic adds
what it may round, bounded on the whole box at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onelayer_checker.core.balls import REAL, TINY, UP, Arithmetic, Array
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network
from onelayer_checker.functions.rounding import largest_rounding
from onelayer_checker.functions.slopes import inflation, network_slopes, spread
from onelayer_checker.functions.targets import Program, enclose

Outcome = Literal["proved", "refuted", "undecided"]

#: Components of all tokens, and boxes that one claim may take: beyond it stays undecided.
MOST_VARIABLES, MOST_BOXES = 4, 1 << 20
#: How often a box is halved at most: near a point where nothing is known few boxes are left, but never none.
ROUNDS = 120
#: Boxes to begin with, at most; numbers of scratch in one block; boxes on which rounding is bounded, at most.
FIRST, SCRATCH, ROUNDED = 1024, 1 << 21, 1024
#: Where the smallest bound is looked for, boxes with more than this share of the worst are halved together.
STEP = 0.8


@dataclass(frozen=True)
class Problem:
    """A network and a program with the same inputs and outputs, on the box [low, high]^(n d)."""

    network: Network
    program: Program
    low: float
    high: float

    @property
    def m(self) -> int:
        return self.program.n * self.program.d

    @property
    def block(self) -> int:
        """Boxes that are looked at together."""
        n, w = self.program.n, len(self.network.bottleneck.weight)
        widest = max(layer.bias.size for layer in (self.network.bottleneck, *self.network.readout.layers))
        return max(16, SCRATCH // (n * (w + self.m) * max(widest, 8)))

    def grid(self, most: int) -> tuple[Array, Array]:
        """At most so many equal boxes that cover the box, as lows and highs [B, m]; neighbours share edges."""
        parts = max(1, int(most ** (1 / self.m) + 1e-9))
        edges = np.linspace(self.low, self.high, parts + 1)
        edges[0], edges[-1] = self.low, self.high
        at = np.stack(np.unravel_index(np.arange(parts**self.m), (parts,) * self.m), axis=1)
        return edges[at], edges[at + 1]

    def rounding(self, A: Arithmetic) -> float:
        """At least |T_A(x) - T(x)| on the whole box."""
        if A is REAL:
            return 0.0
        low, high = self.grid(ROUNDED)
        found = [self._rounding(low[a : a + 64], high[a : a + 64], A) for a in range(0, len(low), 64)]
        return float(np.max(found))

    def _rounding(self, low: Array, high: Array, A: Arithmetic) -> float:
        centre, radius = middle(low, high)
        shape = (-1, self.program.n, self.program.d)
        return float(np.max(largest_rounding(self.network, centre.reshape(shape), radius.reshape(shape), A)))


@dataclass(frozen=True)
class Bounds:
    """Of boxes: no error in them exceeds ``upper``, some error at the centre is at least ``lower``."""

    upper: Array  # [B]
    lower: Array  # [B]
    share: Array  # [B, m] what each variable contributes to the worst upper bound


def middle(low: Array, high: Array) -> tuple[Array, Array]:
    """Centres that lie in the boxes, and at least the distance from there to their ends."""
    centre = np.clip(low / 2 + high / 2, low, high)
    return centre, np.maximum(high - centre, centre - low) * UP + TINY


def bounds(problem: Problem, low: Array, high: Array) -> Bounds:
    """Upper and lower bounds of |T - f| on boxes [B, m], in real arithmetic."""
    step = problem.block
    parts = [_bounds(problem, low[a : a + step], high[a : a + step]) for a in range(0, len(low), step)]
    return Bounds(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("upper", "lower", "share"))
    )


def _bounds(problem: Problem, low: Array, high: Array) -> Bounds:
    network, program, (B, m) = problem.network, problem.program, low.shape
    centre, radius = middle(low, high)
    shape = (B, program.n, program.d)
    found = network_slopes(network, centre.reshape(shape), radius.reshape(shape))
    n, q = program.n, program.components
    value, r = (a.reshape(B, n, q) for a in (found.value.m, found.value.r))
    box, point = enclose(program, low, high, True), enclose(program, centre, centre, False)
    f_low, f_high, at_low, at_high = (a.reshape(B, -1, q) for a in (box.low, box.high, point.low, point.high))
    # |J - G| from the slopes of the target as centre and radius; both are [B, tokens, q, m].
    J = (found.Z.m @ found.C).reshape(B, n, m, q).swapaxes(2, 3)
    loose = (spread(found.Z, found.C) + found.R).reshape(B, n, m, q).swapaxes(2, 3)
    g, wide = middle(box.slope_low.reshape(B, -1, q, m), box.slope_high.reshape(B, -1, q, m))
    each = (np.abs(J - g) + loose + wide) * radius[:, None, None, :] * (UP * UP)
    alone = ((np.abs(J) + loose) * radius[:, None, None, :]).sum(axis=3) * inflation(m)
    distance = np.maximum(at_high - value, value - at_low) * UP + r
    upper = (distance + each.sum(axis=3)) * inflation(m) + TINY
    # Where slopes of the target are unknown its values may be known.
    apart = (np.maximum(f_high - value, value - f_low) * UP + (r + alone)) * inflation(1) + TINY
    upper = np.fmin(apart, upper).reshape(B, -1)
    lower = (np.maximum(at_low - value, value - at_high) / UP - r) / UP - TINY
    worst = np.argmax(np.where(np.isnan(upper), np.inf, upper), axis=1)
    share = np.broadcast_to(each, (B, n, q, m)).reshape(B, -1, m)[np.arange(B), worst]
    return Bounds(upper.max(axis=1), lower.reshape(B, -1).max(axis=1), share)


def halves(low: Array, high: Array, share: Array) -> tuple[Array, Array]:
    """Each box cut in two across the variable that contributes most; the widest where that is unknown."""
    rows, known = np.arange(len(low)), np.isfinite(share).all(axis=1, keepdims=True)
    at = np.argmax(np.where(known, share, high - low), axis=1)
    cut = middle(low, high)[0][rows, at]
    left, right = high.copy(), low.copy()
    left[rows, at], right[rows, at] = cut, cut
    return np.concatenate([low, right]), np.concatenate([left, high])


@dataclass(frozen=True)
class Search:
    """What a search found: ``upper`` bounds the error on all boxes that are not open, ``lower`` is reached."""

    upper: float
    lower: float
    where: Array  # [m] a point whose error is at least ``lower``
    boxes: int  # that were looked at
    open: tuple[Array, Array]  # boxes [B, m] that are left
    open_upper: float


def search(problem: Problem, bound: float, most: int = MOST_BOXES) -> Search:
    """Halve boxes until no error in one can exceed the bound; an error that certainly exceeds it ends it too."""
    low, high = problem.grid(min(FIRST, most))
    upper, lower, where, boxes, left = 0.0, -np.inf, low[0], 0, np.inf
    for _ in range(ROUNDS):
        if not len(low) or boxes + len(low) > most or lower > bound:
            break
        found = bounds(problem, low, high)
        boxes += len(low)
        at = int(np.argmax(found.lower))
        if found.lower[at] > lower:
            lower, where = float(found.lower[at]), middle(low[at], high[at])[0]
        done = found.upper <= bound
        upper = max(upper, float(found.upper.max(where=done, initial=0.0)))
        left = float(np.max(found.upper[~done], initial=0.0))
        low, high = halves(low[~done], high[~done], found.share[~done])
    return Search(upper, lower, where, boxes, (low, high), left if len(low) else 0.0)


def smallest_bound(problem: Problem, slack: float, most: int = MOST_BOXES, enough: float = 0.0) -> float:
    """About the smallest bound that ``search`` proves with so many boxes; or one that is ``enough``, or (1 + slack)
    times an error that is reached. The worst boxes are halved first; the search will halve no others."""
    with np.errstate(all="ignore"):
        low, high = problem.grid(min(FIRST, most))
        found, boxes = bounds(problem, low, high), len(low)
        for _ in range(ROUNDS):
            worst, reached = float(np.max(found.upper)), max(float(np.max(found.lower)), 0.0)
            split = ~(found.upper <= max(worst * STEP, reached * (1 + slack), enough))
            if not split.any() or boxes + 2 * int(split.sum()) > most:
                break
            a, b = halves(low[split], high[split], found.share[split])
            more, boxes = bounds(problem, a, b), boxes + len(a)
            low, high = np.concatenate([low[~split], a]), np.concatenate([high[~split], b])
            sides = ("upper", "lower", "share")
            old, new = ([getattr(x, name) for name in sides] for x in (found, more))
            found = Bounds(*(np.concatenate([x[~split], y]) for x, y in zip(old, new, strict=True)))
    return worst * (1 + 2.0**-30)  # sums of other blocks may round otherwise


def judge(claim: Any, network: Network) -> tuple[Outcome, str, float]:
    """Outcome, reason and certified value of the claim, whose target is a program that fits the network."""
    program, number, A = claim.target, claim.numbers, claim.A
    if not number["low"] < number["high"] or program.n * program.d > MOST_VARIABLES:
        raise Malformed("claim", f"the box must have an inside, and at most {MOST_VARIABLES} variables")
    problem = Problem(network, program, number["low"], number["high"])
    rounding = problem.rounding(A)
    bound = (number["bound"] - rounding) / UP - TINY
    if not bound > 0:
        return "undecided", f"{A.name} may be {rounding:.6g} off, which leaves nothing of the bound", np.inf
    found = search(problem, bound, MOST_BOXES)
    if found.lower > bound:
        return _too_large(found, number["bound"], rounding, A)
    if len(found.open[0]):
        box = ", ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(found.open[0][0], found.open[1][0], strict=True))
        why = f"{found.boxes} boxes were not enough; open is {box}, where the error may be {found.open_upper:.6g}"
        return "undecided", why, np.inf
    value = min((found.upper + rounding) * (1 + 2.0**-30), number["bound"])  # other blocks may round otherwise
    return "proved", f"largest error {value:.6g} on the whole box, {found.boxes} boxes", value


def _too_large(found: Search, bound: float, rounding: float, A: Arithmetic) -> tuple[Outcome, str, float]:
    """Refuted, if the point is a number of the arithmetic and rounding cannot make up for it."""
    point = found.where.astype(np.float32) if A.name == "float32" else found.where
    why = f"at {found.where.tolist()} the error is at least {found.lower:.6g} before rounding"
    certain = (found.lower - rounding) / UP > bound and bool((point == found.where).all())
    return ("refuted" if certain else "undecided"), why, np.inf
