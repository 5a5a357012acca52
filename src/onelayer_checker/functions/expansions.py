"""Heads on two numbers, added up before they are bounded: expansions on patches of the square of pairs (x, other).

With t = x - other a head of slope a, shift b and weight w gives token x the weight (1 + tanh u)/2 of itself, with
u = (a x + b) t/2, so that the stream becomes
    y = t/2 (1 + S) + (1 + W) (x + other)/2,    S = sum of w tanh u,    W = sum of w.
On a patch around (x0, t0) let xi = (x - x0) t/2, eta = (t - t0)/2 and e = a x0 + b. Then u = e t0/2 + v with v =
a xi + e eta, and tanh u = sum over k of c_k v^k: a polynomial in xi and eta, whose coefficients are added up over
the heads. So weights of either sign cancel before any size is taken.

Remainder. tanh z is the sum of 1/(z - i pi (j + 1/2)) over all whole j, those of j and -1 - j together, so that
|c_n| at u is at most the sum of (u^2 + pi^2 (j + 1/2)^2)^(-(n + 1)/2): for |u| <= 3 and n > 8 the two terms of the
nearest poles are more than a hundred times the others, and it falls with |u|. What the powers from n on leave is at
most |v|^n |c_n| somewhere on the way, by Taylor. A head with |u| >= m on all of the patch may be its sign instead:
1 - tanh m = 2/(e^(2 m) + 1) < 2 e^(-2 m).

Rounding. u is off by less than 2^-40 (|a x| + |b|) |t| wherever it is computed so, and tanh u by no more. c_0 to
c_K come of a recurrence in which errors grow less than 2^10 times; all else is a sum of products, whose sizes add
up to less than 4 for a head of weight 1, since |v| <= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from onelayer_checker.core.balls import UP, Array, exp_nonpositive
from onelayer_checker.core.budget import spend
from onelayer_checker.core.graph import Network

#: The degree of expansions; it is even, and at least 8.
DEGREE = 10
#: A patch is halved while this much of y is unknown, and lies in a strip in which v is at most so large in xi.
ENOUGH, NARROW = 1e-4, 0.32
#: What rounding may cost: of u, relative to its terms; of a head, relative to its weight; and what underflows.
OF_ARGUMENT, OF_HEAD, LOST = 2.0**-40, 2.0**-32, 2.0**-500
#: Numbers that are not 0 are no larger than this, and there are at most so many heads and strips.
LARGEST, MOST_HEADS, MOST_STRIPS = 2.0**30, 1 << 14, 1 << 12
#: At least 2 (1 + 1/100), at most (pi/2)^2, and at most 2/log(2), so that e^(-2 m) <= 2^(-floor(STEPS m)).
TWICE, POLE, STEPS = 2.02, 2.46, 2.88
#: Operations for a head on a patch, and for looking at it; and for a round of patches by itself.
COST, LOOK, PATCH = 75.0, 20.0, 1e5
#: The powers (i, j) of xi^i eta^j.
POWERS = tuple((i, j) for i in range(DEGREE + 1) for j in range(DEGREE + 1 - i))


@dataclass(frozen=True)
class Heads:
    """Token x gives token z the logit (slope x + shift) z in each head, and adds weight times its mean."""

    slope: Array
    shift: Array
    weight: Array

    @cached_property
    def apart(self) -> float:
        """1 + the sum of the weights, rounded once."""
        return float(1 + sum(map(Fraction, self.weight.tolist()), Fraction(0)))


def recognise(network: Network) -> Heads | None:
    """The layer as such heads, if that is exactly what it is: a stream of the tokens, one number wide."""
    T = network.tensors
    bare = not network.causal and not network.feedforward.layers and not any(x.startswith("embedding") for x in T)
    if not bare or T["attention.W_Q"].shape[1:] != (1, 1) or len(T["attention.W_Q"]) > MOST_HEADS:
        return None
    if not all((T[f"attention.{name}"] == 1).all() for name in ("W_K", "W_V")) or "attention.b_K" in T:
        return None
    slope, weight = T["attention.W_Q"].ravel(), T["attention.W_O"].ravel()
    shift = T["attention.b_Q"].ravel() if "attention.b_Q" in T else np.zeros(len(slope))
    if not max(np.abs(part).max() for part in (slope, shift, weight)) <= LARGEST:
        return None
    return Heads(slope, shift, weight)


@dataclass(frozen=True)
class Patches:
    """Strips of x by pieces of other; strips and pieces end at ``edges``."""

    edges: Array  # [n + 1]
    of: Array  # [n, n] which patch the pair (x, other) of cells lies in
    x: Array  # [P] centres
    t: Array
    coefficients: Array  # [powers, P]
    error: Array  # [P] |S - polynomial| is at most this
    third: Array  # [4, P] what terms of xi^i eta^(3 - i) may be anywhere on the patch, i = 0 to 3


def expand(heads: Heads, low: float, high: float) -> Patches | None:
    """Patches that cover all pairs of numbers of [low, high]; None if that takes too many."""
    reach, width = max(abs(low), abs(high)), (high - low) * UP
    steepest = float(np.abs(heads.slope).max())
    strips = steepest * width * width / (4 * NARROW)
    if not (reach <= LARGEST and strips <= MOST_STRIPS):
        return None
    n = 1 << max(4, math.ceil(math.log2(max(strips, 1.0))))
    spend("strips of patches", 0.0, 64.0 * n * n)
    edges = np.linspace(low, high, n + 1)
    edges[0], edges[-1] = low, high
    if not (np.diff(edges) > 0).all():
        return None
    of, parts, count = np.zeros((n, n), np.int64), [], 0
    for i in range(n):
        strip = _Strip(heads, edges, i, reach, width)
        first, last = strip.cut()
        parts.append(strip.expand(first, last))
        of[i] = np.repeat(np.arange(count, count + len(first)), last - first)
        count += len(first)
    x, t, coefficients, error, third = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return Patches(edges, of, x, t, coefficients, error, third)


class _Strip:
    """All pairs whose x lies in cell i."""

    def __init__(self, heads: Heads, edges: Array, i: int, reach: float, width: float) -> None:
        self.heads, self.edges, self.width = heads, edges, width
        self.x = float(np.clip(edges[i] / 2 + edges[i + 1] / 2, edges[i], edges[i + 1]))
        self.radius = max(edges[i + 1] - self.x, self.x - edges[i]) * UP
        self.e = heads.slope * self.x + heads.shift
        self.rough = (np.abs(heads.slope) * reach + np.abs(heads.shift)) * (width * OF_ARGUMENT)
        weights = np.abs(heads.weight)
        self.rounding = float((weights * (self.rough * 2 + OF_HEAD)).sum()) * UP + LOST

    def place(self, first: Array, last: Array) -> tuple[Array, Array, Array]:
        """Of pieces from one edge to another: the centre of t, and how large xi and eta may be."""
        low, high = self.edges[first], self.edges[last]
        centre = np.clip(low / 2 + high / 2, low, high)
        radius = np.maximum(high - centre, centre - low) * UP
        t = self.x - centre
        apart = (self.radius + radius) * UP
        return t, (np.abs(t) * UP + apart) * self.radius / 2 * UP, apart / 2 * UP

    def moved(self, t: Array, xi: Array, eta: Array) -> tuple[Array, Array, Array]:
        """u at the centres, what each head leaves open, and whether it is a series or its sign that leaves less."""
        u = self.e * (t / 2)[:, None]
        v = np.abs(self.heads.slope) * xi[:, None] + np.abs(self.e) * eta[:, None]
        v = v * UP + self.rough
        m = np.maximum(np.abs(u) - v, 0.0) / UP
        sign = np.ldexp(2.0, -np.floor(np.minimum(STEPS * m, 1000.0)).astype(np.int64))
        near = np.minimum(m, 3.0)
        square, left = v * v, v.copy()
        nearest = 1 / (near * near / UP + POLE)
        for _ in range(DEGREE // 2):
            left *= square * nearest
        left *= TWICE * UP * nearest
        series = (v <= 1) & (left <= sign)
        return u, np.where(series, left, sign), series

    def cut(self) -> tuple[Array, Array]:
        """Pieces of other, halved while they leave too much open."""
        n = len(self.edges) - 1
        first, last = np.array([0]), np.array([n])
        done: list[tuple[Array, Array]] = []
        while len(first):
            t, xi, eta = self.place(first, last)
            spend("patches", LOOK * len(first) * len(self.e) + PATCH, 80.0 * len(first) * len(self.e))
            left = self.moved(t, xi, eta)[1] @ np.abs(self.heads.weight)
            split = (left * (np.abs(t) / 2 + eta) > ENOUGH) & (last - first > 1)
            done.append((first[~split], last[~split]))
            first, last = first[split], last[split]
            middle = (first + last) // 2
            first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
        first, last = (np.concatenate(ends) for ends in zip(*done, strict=True))
        order = np.argsort(first)
        return first[order], last[order]

    def expand(self, first: Array, last: Array) -> tuple[Array, Array, Array, Array, Array]:
        t, xi, eta = self.place(first, last)
        spend("expansions", COST * len(first) * len(self.e) + PATCH, 16.0 * DEGREE * len(first) * len(self.e))
        u, left, series = self.moved(t, xi, eta)
        slopes, shifts = powers(self.heads.slope), powers(self.e) * self.heads.weight
        found, c = np.zeros((len(POWERS), len(first))), np.sign(u)
        for k, part in enumerate(coefficients_of_tanh(u[series])):
            c[series] = part  # of the others, the sign, then nothing
            for j, part in enumerate((c @ (slopes[k::-1] * shifts[: k + 1]).T).T):
                found[POWERS.index((k - j, j))] = part * math.comb(k, j)
            c[~series] = 0.0
        error = (left @ np.abs(self.heads.weight)) * (1 + len(self.e) * 2.0**-50) * UP + self.rounding
        return np.full(len(first), self.x), t, found, error, third_order(found, xi, eta)


def third_order(coefficients: Array, xi: Array, eta: Array) -> Array:
    """At least what the coefficients of xi^p eta^(3 - p) are of the polynomial around another place within."""
    found = np.zeros((4, len(xi)))
    by_xi, by_eta = powers(xi), powers(eta)
    for (i, j), part in zip(POWERS, np.abs(coefficients), strict=True):
        for p in range(max(0, 3 - j), min(i, 3) + 1):
            found[p] += math.comb(i, p) * math.comb(j, 3 - p) * part * by_xi[i - p] * by_eta[j - 3 + p]
    return found * UP + LOST


def powers(x: Array) -> Array:
    """x^0, x^1, ... up to the degree, as products."""
    found = np.ones((DEGREE + 1, len(x)))
    for k in range(DEGREE):
        found[k + 1] = found[k] * x
    return found


def coefficients_of_tanh(u: Array) -> list[Array]:
    """c_0, ..., c_K with tanh(u + v) = sum of c_k v^k + ...; from tanh' = 1 - tanh^2."""
    e = exp_nonpositive(-2 * np.abs(u))
    c = [np.copysign((1 - e) / (1 + e), u)]
    for k in range(DEGREE):
        total = 1.0 - c[0] * c[0] if k == 0 else 2 * c[0] * c[k]
        if k:
            for i in range(1, (k + 1) // 2):
                total = total + 2 * c[i] * c[k - i]
            if k % 2 == 0:
                total = total + c[k // 2] * c[k // 2]
            total = -total
        c.append(total / (k + 1))
    return c
