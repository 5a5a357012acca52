"""lp_error on a whole box, for one layer of heads on two numbers and a readout of one number with hinges.

The box is cut into boxes. On each, for either token, the stream is a linear function of both numbers, up to a
radius that the patches of expansions.py leave; the readout changes it by a slope, up to what its hinges in reach
leave; and the target is linear up to a radius, too. So the error of a token is at most |A| + r with A linear. Its
powers, and the larger of two of them, are convex: over a box the mean is at most the mean of the values at the
corners. Boxes where this is much more than the error at the centre are halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.core.graph import Network
from onelayer_checker.functions import expansions, hinges
from onelayer_checker.functions.branch import Problem, halves, middle
from onelayer_checker.functions.cells import power
from onelayer_checker.functions.expansions import DEGREE, Heads, Patches
from onelayer_checker.functions.hinges import Hinges
from onelayer_checker.functions.targets import Program, enclose

#: Boxes are halved while each may be off by more than these shares of the mean: the first, or where the bound is
#: missed the second. How often a box is halved, how many are looked at in all, and at once; and of how many at a
#: time nothing may be known.
SHARES, ROUNDS, MOST, BLOCK, UNKNOWN = (2.0**-25, 2.0**-27), 60, 1 << 23, 1 << 13, 1 << 14
#: What covers some thousand roundings, relative to the sum of sizes; and operations for a box.
ROUNDING, COST = 2.0**-40, 1.2e3
#: Values of the polynomial in xi and eta and its derivatives, as powers of (xi, eta) that are taken away.
WANTED = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))


@dataclass(frozen=True)
class Layer:
    heads: Heads
    readout: Hinges


def recognise(network: Network, target: Program) -> Layer | None:
    """Exactly what can be bounded here, or nothing."""
    if (target.n, target.d) != (2, 1):
        return None
    heads = expansions.recognise(network)
    readout = None if heads is None else hinges.recognise(network)
    return None if heads is None or readout is None else Layer(heads, readout)


@dataclass(frozen=True)
class Linear:
    """On boxes: c + p (first - its centre) + q (second - its centre), up to r."""

    c: Array
    p: Array
    q: Array
    r: Array


@dataclass(frozen=True)
class Boxes:
    """Boxes [B, 2] of pairs, and the cells that they lie in."""

    low: Array
    high: Array
    cell: Array  # [B, 2]

    def __getitem__(self, rows: Any) -> Boxes:
        return Boxes(self.low[rows], self.high[rows], self.cell[rows])


class Means:
    """Bounds on the mean over [low, high]^2 of the p-th power of the largest error of either token."""

    def __init__(self, layer: Layer, patches: Patches, target: Program, p: int) -> None:
        self.layer, self.patches, self.target, self.p = layer, patches, target, p
        self.low, self.high = float(patches.edges[0]), float(patches.edges[-1])
        self.reach = 4 * max(abs(self.low), abs(self.high))
        self.halved = target.symmetric  # then (x1, x2) and (x2, x1) have the same errors
        self.looked = 0

    def bound(self, share: float) -> float:
        """At least the mean; boxes are halved while each may be off by more than this share of it."""
        n = len(self.patches.edges) - 1
        first, second = np.nonzero(np.tri(n, dtype=bool) if self.halved else np.ones((n, n), bool))
        at = np.stack([first, second], 1)
        boxes = Boxes(self.patches.edges[at], self.patches.edges[at + 1], at)
        total, least, self.looked = Fraction(0), None, 0
        for _ in range(ROUNDS):
            if self.looked + len(boxes.low) > MOST:
                return np.inf
            self.looked += len(boxes.low)
            spend("boxes of pairs", COST * len(boxes.low), 200.0 * len(boxes.low))
            with np.errstate(all="ignore"):  # what is not known has no slopes
                mean, over, longer = self._bounds(boxes)
            if np.count_nonzero(mean == np.inf) > UNKNOWN:
                return np.inf
            if least is None:
                least = share * float((mean - over)[mean < np.inf].sum())
            split = over > least
            total += _sum(mean[~split])
            if not split.any():
                break
            boxes = _halve(boxes[split], longer[split])
        else:
            total += _sum(mean[split])
        return float(total) * UP if total < 2**1000 else np.inf

    def _bounds(self, boxes: Boxes) -> tuple[Array, Array, Array]:
        parts = [self._block(boxes[a : a + BLOCK]) for a in range(0, len(boxes.low), BLOCK)]
        mean, over, longer = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, over, longer

    def _block(self, boxes: Boxes) -> tuple[Array, Array, Array]:
        """What boxes contribute to the mean, at most; how much of that may be too much; and what makes it so."""
        centre, radius = middle(boxes.low, boxes.high)
        errors, turns = zip(*(self.error(boxes, centre, radius, token) for token in (0, 1)), strict=True)
        side = [(boxes.high[:, k] - boxes.low[:, k]) / (self.high - self.low) for k in (0, 1)]
        area = side[0] * side[1] * UP
        if self.halved:
            area = np.where(boxes.cell[:, 0] > boxes.cell[:, 1], 2 * area, area)
        mean = np.zeros(len(area))
        for a, b in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            sizes = [np.abs(e.c + a * e.p * radius[:, 0] + b * e.q * radius[:, 1]) + e.r for e in errors]
            mean += power(np.maximum(*sizes) * UP, self.p) / 4
        at_centre = power(np.maximum(*(np.abs(e.c) for e in errors)), self.p)
        mean = np.where(np.isfinite(mean), mean * area * UP, np.inf)
        over = np.where(np.isfinite(mean), mean - at_centre * area, np.inf)
        return mean, over, sum(turns) * radius

    def error(self, boxes: Boxes, centre: Array, radius: Array, token: int) -> tuple[Linear, Array]:
        """Of one of the tokens, network less target; and how steep both are in either number, hinges included."""
        mine, others = (0, 1) if token == 0 else (1, 0)
        y = self.stream(boxes.cell[:, [mine, others]], centre[:, [mine, others]], radius[:, [mine, others]])
        r1, r2 = radius[:, mine], radius[:, others]
        reach = (np.abs(y.p) * r1 + np.abs(y.q) * r2 + y.r) * UP
        slope, spread = self.layer.readout.slope(*(np.nextafter(y.c + s * reach, s * np.inf) for s in (-1, 1)))
        value, off = self.layer.readout.value(y.c)
        off = off + (spread * reach + np.abs(slope) * y.r) * UP
        f = self.wanted(boxes, centre, radius, token)
        p, q = slope * y.p, slope * y.q
        p, q = (p, q) if token == 0 else (q, p)
        sizes = np.abs(value) + np.abs(f.c) + (np.abs(p) + np.abs(q) + np.abs(f.p) + np.abs(f.q)) * self.reach
        found = Linear(value - f.c, p - f.p, q - f.q, (off + f.r + sizes * ROUNDING) * UP + TINY)
        steep = np.stack([np.abs(y.p), np.abs(y.q)], 1)[:, [mine, others]] * spread[:, None]
        return found, np.abs(np.stack([found.p, found.q], 1)) + steep

    def wanted(self, boxes: Boxes, centre: Array, radius: Array, token: int) -> Linear:
        """The target at a token, or of the pair."""
        at = token if self.target.per == "token" else 0
        box, point = enclose(self.target, boxes.low, boxes.high, True), enclose(self.target, centre, centre, False)
        value, off = middle(point.low[:, at], point.high[:, at])
        slope, spread = middle(box.slope_low[:, at], box.slope_high[:, at])
        off = (off + (spread * radius).sum(axis=1)) * UP
        unknown = ~np.isfinite(off + value + slope.sum(axis=1))  # then its values may be known
        whole, size = middle(box.low[:, at], box.high[:, at])
        slope[unknown] = 0.0
        value, off = np.where(unknown, whole, value), np.where(unknown, size, off)
        return Linear(value, slope[:, 0], slope[:, 1], off)

    def stream(self, cell: Array, centre: Array, radius: Array) -> Linear:
        """y of the pairs (x, other) of boxes, with the slopes in x and in other."""
        patches, at = self.patches, self.patches.of[cell[:, 0], cell[:, 1]]
        r1, r2 = radius.T
        t, dx, both = centre[:, 0] - centre[:, 1], centre[:, 0] - patches.x[at], r1 + r2
        P = taylor(patches.coefficients[:, at], dx * t / 2, (t - patches.t[at]) / 2)
        # With x and other moved by p and q, xi moves by (p t + dx (p - q) + p (p - q))/2, and eta by (p - q)/2.
        turned, eta = r1 * both / 2, both / 2
        xi = np.abs(t + dx) / 2 * r1 + np.abs(dx) / 2 * r2 + turned
        left = np.abs(P[1]) * turned + np.abs(P[3]) * xi * xi + np.abs(P[4]) * xi * eta + np.abs(P[5]) * eta * eta
        products = (eta * eta * eta, xi * eta * eta, xi * xi * eta, xi * xi * xi)
        for size, part in zip(products, patches.third[:, at], strict=True):
            left += part * size
        left += patches.error[at]
        p, q = P[1] * (t + dx) / 2 + P[2] / 2, -P[1] * dx / 2 - P[2] / 2
        half, own, W = (np.abs(t) + both) / 2, (1 + P[0]) / 2, self.layer.heads.apart / 2
        r = (np.abs(p) * r1 + np.abs(q) * r2) * both / 2 + left * half
        c, p, q = t * own + W * (centre[:, 0] + centre[:, 1]), own + t / 2 * p + W, t / 2 * q - own + W
        rounded = (np.abs(own) + np.abs(p) + np.abs(q) + abs(W)) * (self.reach * ROUNDING)
        return Linear(c, p, q, (r + rounded) * (1 + ROUNDING))


def taylor(coefficients: Array, xi: Array, eta: Array) -> list[Array]:
    """A polynomial and, of xi and eta, its first derivatives and halves of the second (but for the mixed one)."""
    outer = [np.zeros_like(xi) for _ in WANTED]
    k = len(coefficients)
    for i in range(DEGREE, -1, -1):
        inner = [np.zeros_like(xi) for _ in range(3)]
        k -= DEGREE + 1 - i
        for j in range(DEGREE - i, -1, -1):
            inner[2] = inner[2] * eta + inner[1]
            inner[1] = inner[1] * eta + inner[0]
            inner[0] = inner[0] * eta + coefficients[k + j]
        value, by_xi, by_eta, twice, mixed, by_eta_twice = outer
        outer = [
            value * xi + inner[0],
            by_xi * xi + value,
            by_eta * xi + inner[1],
            twice * xi + by_xi,
            mixed * xi + by_eta,
            by_eta_twice * xi + inner[2],
        ]
    return outer


def _sum(parts: Array) -> Fraction:
    """At least the sum of numbers that are not negative."""
    total = float(parts.sum()) * (1 + len(parts) * 2.0**-52) * UP
    return Fraction(total) if total < np.inf else Fraction(2**1000)


def _halve(boxes: Boxes, longer: Array) -> Boxes:
    low, high = halves(boxes.low, boxes.high, longer)
    return Boxes(low, high, np.concatenate([boxes.cell, boxes.cell]))


def mean(layer: Layer, claim: Claim, memo: dict[Any, Any], share: float) -> float:
    """At least the mean in real arithmetic; each is computed once."""
    low, high, p = (claim.numbers[name] for name in ("low", "high", "p"))
    square, key = ("patches", low, high), ("mean", claim.target, low, high, p, share)
    if square not in memo:
        memo[square] = expansions.expand(layer.heads, low, high)
    if memo[square] is None:
        return np.inf
    if key not in memo:
        memo[key] = Means(layer, memo[square], claim.target, int(p)).bound(share)
    return float(memo[key])


def least_bound(network: Network, layer: Layer, claim: Claim, memo: dict[Any, Any]) -> float:
    """What is worth claiming: a little more than the root of the mean, and what an arithmetic adds to any error."""
    found = mean(layer, claim, memo, SHARES[0])
    root = found ** (1 / claim.numbers["p"]) * (1 + 2.0**-30)
    return float(min(claim.numbers["bound"], (root + _rounding(network, claim)) * (1 + 2.0**-30)))


def judge(network: Network, layer: Layer, claim: Claim, memo: dict[Any, Any]) -> Verdict:
    p, bound, rounding = int(claim.numbers["p"]), claim.numbers["bound"], _rounding(network, claim)
    if not rounding < bound:
        return Verdict("undecided", f"{claim.arith} may be {rounding:.6g} off, which leaves nothing", np.inf)
    allowed = (Fraction(bound) - Fraction(rounding)) ** p
    found = np.inf
    for share in SHARES:
        found = min(found, mean(layer, claim, memo, share))
        if found < np.inf and Fraction(found) <= allowed:
            apart = f", and {claim.arith} {rounding:.3g} off" if rounding else ""
            value = min(bound, (found ** (1 / p) * (1 + 2.0**-40) + rounding) * (1 + 2.0**-40))
            why = f"mean of the {p}-th powers {found:.6g} in real numbers{apart}, none left out"
            return Verdict("proved", why, value**p)
    return Verdict("undecided", f"the mean of the {p}-th powers of the error may be {found:.6g}", np.inf)


def _rounding(network: Network, claim: Claim) -> float:
    """How far any answer is from its real value: at least that much more any norm of the error may be."""
    return Problem(network, claim.target, claim.numbers["low"], claim.numbers["high"]).rounding(claim.A)
