"""Functions of two variables on the cells of a grid: a bilinear function and a radius on each, with all roundings.

Encloses: on a cell, with s and t in [-1, 1] from its one end to its other, the function is a + b s + c t + d s
t up to r. Sums and products do that term by term: what is not bilinear goes into r, squares as 1/2 +- 1/2. |z|
of a z in [low, high] is k z + M/2 +- M/2 with any k in [-1, 1] and M the larger of high - k high and -low - k
low, since |z| - k z is convex, 0 at 0. exp(z) is k z + (U + L)/2 +- (U - L)/2 with k the slope at the middle m of
[low, high], L = k (1 - m) since a tangent lies below, and U the larger of exp(z) - k z at both ends, since that is
convex. Every number is computed by fewer than 20 roundings from a sum of
magnitudes that is at most the product, or the sum, of the sizes |a| + |b| + |c| + |d| + r: LOST times that is
added to r, and TINY for underflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array, exp_nonpositive
from onelayer_checker.looped.polynomials import nearest

LOST, TINY = 2.0**-47, 2.0**-1000


@dataclass(frozen=True, eq=False)
class Patch:
    a: Any
    b: Any
    c: Any
    d: Any
    r: Any

    @property
    def bilinear_size(self) -> Any:
        return np.abs(self.a) + np.abs(self.b) + np.abs(self.c) + np.abs(self.d)

    @property
    def size(self) -> Any:
        return self.bilinear_size + self.r

    def range(self) -> tuple[Array, Array]:
        """At most, and at least, every value on a cell: a bilinear function is largest at a corner."""
        corners = [self.a + self.b * s + self.c * t + self.d * (s * t) for s in (-1.0, 1.0) for t in (-1.0, 1.0)]
        r = self.r + LOST * self.size + TINY
        return np.minimum.reduce(corners) - r, np.maximum.reduce(corners) + r

    def __add__(self, other: Any) -> Patch:
        o = as_patch(other)
        r = self.r + o.r + LOST * (self.size + o.size) + TINY
        return Patch(self.a + o.a, self.b + o.b, self.c + o.c, self.d + o.d, r)

    def __neg__(self) -> Patch:
        return Patch(-self.a, -self.b, -self.c, -self.d, self.r)

    def __sub__(self, other: Any) -> Patch:
        return self + -as_patch(other)

    def __rsub__(self, other: Any) -> Patch:
        return as_patch(other) + -self

    def __mul__(self, other: Any) -> Patch:
        p, o = self, as_patch(other)
        squares = p.b * o.b, p.c * o.c, p.d * o.d
        odd = np.abs(p.b * o.d + p.d * o.b) + np.abs(p.c * o.d + p.d * o.c)
        r = p.bilinear_size * o.r + o.bilinear_size * p.r + p.r * o.r + odd
        r = r + (np.abs(squares[0]) + np.abs(squares[1]) + np.abs(squares[2])) / 2
        return Patch(
            p.a * o.a + (squares[0] + squares[1] + squares[2]) / 2,
            p.a * o.b + p.b * o.a,
            p.a * o.c + p.c * o.a,
            p.a * o.d + p.d * o.a + p.b * o.c + p.c * o.b,
            r + LOST * (p.size * o.size) + TINY,
        )

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self) -> Patch:
        low, high = self.range()
        inside = (low < 0) & (high > 0)
        k = np.where(inside, (high + low) / np.where(inside, high - low, 1.0), np.where(low >= 0, 1.0, -1.0))
        half = np.where(inside, np.maximum(high - k * high, -low - k * low), 0.0) / 2
        r = self.r + half + LOST * (self.size + half) + TINY
        return Patch(k * self.a + half, k * self.b, k * self.c, k * self.d, r)

    def exp(self) -> Patch:
        low, high = (np.asarray(end, np.float64) for end in self.range())
        middle = (low + high) / 2
        k, ends = _exp(middle), (_exp(low), _exp(high))
        least, most = k * (1 - middle), np.maximum(ends[0] - k * low, ends[1] - k * high)
        half, centre = (most - least) / 2, (most + least) / 2
        sizes = ends[0] + ends[1] + k * (1 + np.abs(low) + np.abs(high) + self.size)
        r = k * self.r + np.maximum(half, 0.0) + LOST * sizes + TINY
        return Patch(k * self.a + centre, k * self.b, k * self.c, k * self.d, r)


def _exp(t: Any) -> Any:
    """exp(t), off by less than 16 u of it, or by less than TINY; infinite from 700 on."""
    e = exp_nonpositive(-np.abs(np.asarray(t, np.float64)))
    return np.where(t > 0, 1 / e, e)


def as_patch(number: Any) -> Patch:
    """A number that is the same on all cells."""
    if isinstance(number, Patch):
        return number
    a = nearest(Fraction(number))
    return Patch(a, 0.0, 0.0, 0.0, LOST * abs(a) + TINY)


def coordinates(first: list[Fraction], second: list[Fraction]) -> tuple[Patch, Patch]:
    """Both variables on the cells [first, second] between consecutive places."""
    u, v = (np.array([nearest(x) for x in places]) for places in (first, second))
    parts = []
    for w in (u, v):
        middle, half = (w[1:] + w[:-1]) / 2, (w[1:] - w[:-1]) / 2
        parts.append((middle, half, LOST * (np.abs(w[1:]) + np.abs(w[:-1])) + TINY))
    (a, b, r), (e, c, q) = parts
    zero = np.zeros((len(u) - 1, len(v) - 1))
    return (
        Patch(a[:, None] + zero, b[:, None] + zero, zero, zero, r[:, None] + zero),
        Patch(e[None] + zero, zero, c[None] + zero, zero, q[None] + zero),
    )


def bilinear(corners: Array, radius: Array) -> Patch:
    """What is bilinear on every cell and known at its corners up to a radius."""
    p, q, s, t = corners[:-1, :-1], corners[:-1, 1:], corners[1:, :-1], corners[1:, 1:]
    near = np.maximum.reduce([radius[:-1, :-1], radius[:-1, 1:], radius[1:, :-1], radius[1:, 1:]])
    size = np.abs(p) + np.abs(q) + np.abs(s) + np.abs(t)
    return Patch(
        (p + q + s + t) / 4,
        (s + t - p - q) / 4,
        (q + t - p - s) / 4,
        (p + t - q - s) / 4,
        near + LOST * size + TINY,
    )
