"""Balls that contain every value an arithmetic may produce.

A ball (m, r) over an arithmetic A contains every value A allows (docs/certificate-v2.md, section 4), for every
choice of points in the operands' balls. Midpoints are float64 results; radii are float64 upper bounds that also
cover the rounding of the midpoints. Trusted: IEEE binary64 + - * / with round to nearest, matrix products evaluated
as sums of products in any order, comparisons, sorting. No mathematical library is: exp is written out below.
"In any order", here and in the other modules: a sum is any bracketing of any permutation of its terms, products
fused with additions or not. An operation with exact result x may give x itself; x rounded to nearest, however ties
are broken; x rounded so to a format with at least 11 more bits, and then or later to the format itself: two
roundings together are off by at most u' + u, with u' <= 2^-11 u, and that is A.u. Each of k terms is rounded at
most k - 1 times by additions and once as a product, so that it is off by gamma(k, A.u). Below A.tiny operands and
results may become 0. Additions of exact zeros, and products with them, round nothing. A radius is computed from
non-negative numbers; UP covers the rounding of up to 4,000 such operations (proofs/Radius.v up_covers).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer_checker.core.budget import spend

Array = NDArray[Any]
U = 2.0**-53
UP = 1.0 + 2.0**-40
TINY = 2.0**-1000
NORMAL = 2.0**-1022


@dataclass(frozen=True)
class Arithmetic:
    name: str
    u: float  # relative error of an operation that is rounded once or twice; 0 means exact
    whole: float  # whole numbers up to here are numbers of the arithmetic and of float64
    tiny: float  # smallest normal number: what underflow or flushing may cost an operation
    big: float  # every intermediate value must provably stay below
    exp_error: float  # logarithmic error of exp
    roundings: float  # of the argument of exp


TWICE = 1 + 2.0**-11
REAL = Arithmetic("real", 0.0, 2.0**53, 0.0, 2.0**1000, 0.0, 0.0)
FLOAT64 = Arithmetic("float64", 2.0**-53 * TWICE, 2.0**53, 2.0**-1022, 2.0**1000, 64 * 2.0**-53, 3.0)
FLOAT32 = Arithmetic("float32", 2.0**-24 * TWICE, 2.0**24, 2.0**-126, 2.0**126, 64 * 2.0**-24, 3.0)
FLOAT16 = Arithmetic("float16", 2.0**-11 * TWICE, 2.0**11, 2.0**-14, 2.0**15, 64 * 2.0**-11, 3.0)
BFLOAT16 = Arithmetic("bfloat16", 2.0**-8 * TWICE, 2.0**8, 2.0**-126, 2.0**126, 64 * 2.0**-8, 3.0)
ARITHMETICS = {a.name: a for a in (REAL, FLOAT64, FLOAT32, FLOAT16, BFLOAT16)}


@dataclass(frozen=True)
class Ball:
    m: Array
    r: Array

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.m[key], self.r[key])

    def reshape(self, *shape: int) -> Ball:
        return Ball(self.m.reshape(*shape), self.r.reshape(*shape))

    @cached_property
    def low(self) -> Array:
        return np.asarray(np.nextafter(self.m - self.r, -np.inf))

    @cached_property
    def high(self) -> Array:
        return np.asarray(np.nextafter(self.m + self.r, np.inf))


def exact(x: Array) -> Ball:
    return Ball(m := np.asarray(x, np.float64), np.zeros_like(m))


def joined(balls: list[Ball], axis: int = 1) -> Ball:
    return Ball(np.concatenate([ball.m for ball in balls], axis), np.concatenate([ball.r for ball in balls], axis))


def gamma(k: Array | float, u: float) -> Array:
    """At least k u / (1 - k u). Theorem: proofs/DotError.v gamma_sound; proofs/Radius.v gamma_computed."""
    x = np.asarray(k, np.float64) * u
    return np.where(x < 0.25, x * (1 + 2 * x) * UP, np.inf)


def guarded(r: Array, size: Array, A: Arithmetic) -> Array:
    """Infinite where a sum up to ``size``, or r, may be too large. Theorem: proofs/Overflow.v guarded_finite."""
    if size.max() * UP < A.big and r.max() < A.big / 8:
        return r
    return np.where((size * UP < A.big) & (r < A.big / 8), r, np.inf)


def around(x: Array, radius: float, A: Arithmetic) -> Ball:
    """Encloses the real numbers within ``radius`` of x, and what the arithmetic rounds each of them to.

    Rounding stays between two numbers of the format. Sums s = x + y are exact where both s - x and s - y give back
    the other term, one of which is not rounded. Theorem: proofs/Sums.v around_between, around_encloses.
    """
    r = np.full_like(x, radius)
    if A.u == 0 or radius == 0:
        return Ball(x, r)
    between = np.ones(x.shape, bool)
    for y in (radius, -radius):
        s = x + y
        between &= (s - x == y) & (s - y == x) & ((s.astype(np.float32) == s) & (A.whole >= 2**24) | (A.u < 2 * U))
    size = np.abs(x) + r
    return Ball(x, guarded(np.where(between, r, (r + size * A.u) * UP + A.tiny), size, A))


def product(a: Array, b: Array) -> Array:
    """The matrix product; by broadcasting where few columns meet few rows, which is much faster."""
    k = b.shape[-2]
    if k > (1 if b.ndim == 2 else 4):
        return np.asarray(a @ b)
    out = a[..., :1] * b[..., :1, :]
    for i in range(1, k):
        out += a[..., i : i + 1] * b[..., i : i + 1, :]
    return np.asarray(out)


def is_power(a: Array) -> Array:
    """Where a finite number is zero or plus or minus a normal power of two: no bit of the mantissa is set."""
    return np.asarray(a.view(np.int64) << 12 == 0)


def linear(x: Ball, W: Array, b: Ball | Array | float, A: Arithmetic) -> Ball:
    """Encloses x W + b [..., T, out] for exact W [..., in, out]: one sum, of which b is a term, in any order.

    b is a bias, or a ball [..., T, out]. Products of exact zeros, or with powers of two, are not rounded. What
    flushing may cost grows with the operands: ``lost``. A sum of exact normal numbers loses nothing.
    Theorem: proofs/Enclosures.v linear_encloses, linear_kept_encloses; proofs/Linear.v linear_ball.
    """
    own_term = b if isinstance(b, Ball) else exact(np.asarray(b))
    n, ax, absW, absb, rb = W.shape[-2], np.abs(x.m), np.abs(W), np.abs(own_term.m), own_term.r
    terms, present = live_terms(x, W), (absb > 0) | (rb > 0)
    inexact = (terms > 0) & ~is_power(W).all(axis=-2, keepdims=True)
    steps = np.maximum(terms + present - 1, 0) + inexact
    rounded = gamma(steps, U + A.u)  # at least what the midpoint and the arithmetic are off, together
    inflate = (1 + 4 * (n + 2) * U) * UP * UP  # S and R are themselves rounded sums
    normal, widest, radius = A.tiny + NORMAL, float(absW.max()), float(x.r.max())
    reach: Any = float(ax.max()) + radius  # at least the largest operand, here and in its row
    most = max((n * reach * widest + absb.max() + rb.max()) * 8, 32 * (n + 1) * normal * (2 + widest + reach))
    calm = most < A.big and reach < 2.0**40 and rounded.max() < np.inf
    if not calm:  # rows are looked at one by one: a value may overflow, or is unknown
        reach = (ax + x.r) @ np.ones((n, 1))
    m = product(x.m, W) + own_term.m
    r, S, R = np.zeros_like(m), np.zeros(1), np.zeros(1)
    if steps.any() or not calm:
        S = (product(ax, absW) + absb) * inflate
        r += S * rounded
    if radius != 0 or rb.any():
        R = (product(x.r, absW) + rb) * inflate
        r += R * (1 + rounded)
    lost = 4 * (n + 1) * normal * (2 + widest + reach) + TINY
    loses = (steps > 0) | present & (absb - rb < 2 * A.tiny)
    if ((terms > 0) & (steps == 0)).any():
        least = absW.min(where=W != 0, initial=1.0)
        small = (ax + x.r > 0) & (np.minimum(ax - x.r, 1.0) * least < 2 * normal)
        small |= (x.r > 0) & (x.r * least < 2 * normal)
        if small.any():
            loses = loses | (product(small.astype(np.float32), (W != 0).astype(np.float32)) > 0)
    r += np.where(loses, lost, 0.0)
    return Ball(m, r if calm else guarded(r, (S + R) * np.where(reach < np.inf, 2.0, np.inf), A))


def live_terms(x: Ball, W: Array) -> Array:
    """At most how many products of x W are not exact zeros: [1, out], or [T, out] for wide rows of mostly zeros."""
    used = W != 0
    if 6 < W.shape[-2] < 1 << 24:  # below, float32 counts exactly
        live = (x.m != 0) | (x.r != 0)
        if 2 * np.count_nonzero(live) < live.size:
            return product(live.astype(np.float32), used.astype(np.float32))
    return np.asarray(np.count_nonzero(used, axis=-2, keepdims=True))


def dot(x: Ball, y: Ball, A: Arithmetic, extra: int = 0) -> Ball:
    """Encloses x y [..., a, b] for balls [..., a, k] and [..., k, b]; sums of exact zeros are exactly 0.

    ``extra`` further roundings divide by a sum of weights, perhaps at the end: sums are up to k times as large.
    Theorem: proofs/Averages.v dot_encloses; proofs/TwoBalls.v dot_ball, dot_zero.
    """
    k, ax, ay = x.m.shape[-1], np.abs(x.m), np.abs(y.m)
    wx, wy = float(ax.max()) + float(x.r.max()), ay + y.r
    reach = wx + float(wy.max())
    inflate = (1 + 4 * (k + 2) * U) * UP * UP
    lost = 4 * (k + 1 + extra) * (A.tiny + NORMAL) * (2 + reach) + TINY
    own, model = float(gamma(k + 2, U)), float(gamma(k + 2 + extra, A.u))
    # With sums S of sizes and R of radii, r is R + own S + model (S + R), inflated; S + R must not overflow.
    r = product(ax, (own + model) * inflate * ay + (1 + model) * inflate * y.r)
    r += product(x.r, (1 + model) * inflate * wy) + lost
    if not (x.r.min() > 0 and wy.min() > 0):
        r[product((ax + x.r > 0) * 1.0, (wy > 0) * 1.0) == 0] = 0.0
    largest = wx * float(wy.max()) * k * (k if extra else 1)
    calm = max(4 * largest, 8 * lost) < A.big and model < np.inf
    return Ball(product(x.m, y.m), r if calm else np.full_like(r, np.inf))


def add(x: Ball, y: Ball, A: Arithmetic) -> Ball:
    """Encloses x + y; adding an exact zero only flushes. Theorem: proofs/Sums.v add_encloses, add_kept."""
    m, R = x.m + y.m, x.r + y.r
    size = np.abs(m)
    r = (R * (1 + A.u) + size * (U + A.u)) * (UP * UP) + (4 * A.tiny + TINY)
    zero = ((x.m == 0) & (x.r == 0)) | ((y.m == 0) & (y.r == 0))
    kept = zero & ((m == 0) | (size - R >= 2 * A.tiny))
    np.copyto(r, R, where=kept)
    return Ball(m, guarded(r, size + R, A))


def relu(x: Ball) -> Ball:
    """Encloses max(x, 0); what is nowhere positive becomes exactly 0. Theorem: proofs/Sums.v relu_encloses."""
    r = np.maximum(np.minimum(x.m, 0.0) + x.r, 0.0) * UP
    return Ball(np.maximum(x.m, 0.0), r if r.max() < np.inf else np.where(r < np.inf, r, np.inf))


# ln 2 in two words: k * LN2_HIGH is exact for |k| < 2^15. Taylor coefficients of exp, rounded once.
LN2_HIGH = float.fromhex("0x1.62e42fefa0000p-1")
LN2_LOW = float.fromhex("0x1.cf79abc9e3b39p-40")
INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
TAYLOR = tuple(1.0 / factorial(i) for i in range(14))
EXP_U = 8 * U


def exp_nonpositive(t: Array) -> Array:
    """exp(t) for t <= 0, off by at most 8 u of it; 0 below -700. Theorem: proofs/Exp.v exp_nonpositive_error."""
    x = np.maximum(t, -700.0)
    k = np.rint(x * INVERSE_LN2)
    x -= k * LN2_HIGH
    x -= k * LN2_LOW
    p = np.full_like(x, TAYLOR[13])
    for c in TAYLOR[12::-1]:
        p *= x
        p += c
    p *= ((k.astype(np.int64) + 1023) << 52).view(np.float64)
    if not t.min(initial=0.0) >= -700.0:
        p[t < -700.0] = 0.0
    return p


def softmax(x: Ball, visible: Array | bool, A: Arithmetic) -> Ball:
    """Encloses the softmax over the last axis; weights of invisible entries are exactly 0.

    With L_k the total perturbation of the k-th exponent, sum_j p_j e^(L_j) lies within e^(+-E), where E = sum_j p_j
    (L_j + L_j^2) while all L_j <= 1 (e^x - 1 <= x + x^2); so log p_k moves by at most L_k + E plus roundings. Where
    all logits of a row are known exactly, the largest have e^0 = 1; up to 1/u such ones add up without rounding.
    Theorem: proofs/Softmax.v softmax_ball, argument_moves, equal_weights.
    """
    n, whole = x.m.shape[-1], np.all(visible)
    m, radius = (x.m, x.r) if whole else (np.where(visible, x.m, -np.inf), np.where(visible, x.r, 0.0))
    t = m - m.max(axis=-1, keepdims=True)
    p = exp_nonpositive(t)
    p /= p.sum(axis=-1, keepdims=True)
    largest = radius.max()
    if not (radius.min() > 0 and largest < 1):
        largest = radius.max(axis=-1, keepdims=True)
    L = (t if whole else np.where(visible, t, 0.0)) * -(2 * U + 2 * A.roundings * A.u) + radius
    L += 4 * A.roundings * A.u * largest + (2 * EXP_U + A.exp_error)
    L *= UP  # the rounding of all that follows is relative to L or to E
    if n <= A.whole and not largest.all():
        L[(t == 0) & (largest == 0)] = 0.0
    E = ((L + 1) * L * p).sum(axis=-1, keepdims=True) * (1 + 8 * n * U) * UP
    g = np.where(E > 0, 2 * gamma(n + 4, U) + gamma(2 * n + 8, A.u), 2 * gamma(4, U) + gamma(4, A.u)) * UP
    v, lost = L + (E + g), 8 * n * (A.tiny + TINY)
    r = (v + 1) * v * p + lost
    if not v.max() <= 1:
        wide = (v > 1) & visible
        rows = wide.any(axis=-1)
        seen = np.broadcast_to(visible, wide.shape)[rows]
        r[rows] = _softmax_of_wide(t[rows], L[rows], p[rows], seen, g[rows]) + lost
    r[~np.isfinite(E + g)[..., 0]] = np.inf  # a logit is unknown
    return Ball(p, r if whole else np.where(visible, r, 0.0))


def _softmax_of_wide(t: Array, L: Array, p: Array, visible: Array, g: Array) -> Array:
    """Radius of p from p_k = 1 / (1 + sum_(j != k) e^(t_j - t_k)), the extremes of each exponent taken."""
    n = t.shape[-1]
    spend("a softmax of wide logits", 150.0 * n * t.size, 100.0 * n * t.size)
    t = np.where(visible, t, -1e6)
    others = ~np.eye(n, dtype=bool) & visible[:, None, :]
    least = (t - L)[:, None, :] - (t + L)[:, :, None]
    most = (t + L)[:, None, :] - (t - L)[:, :, None]
    low = np.where(others, _exp_lower(least * (1 + 8 * np.sign(least) * -U) - TINY), 0.0).sum(axis=-1)
    high = np.where(others, _exp_upper(most * (1 + 8 * np.sign(most) * U) + TINY), 0.0).sum(axis=-1)
    slack = (1 + 8 * n * U) * UP
    p_high = np.minimum(1.0 / (1.0 + low / slack) * slack, 1.0) * (1 + 2 * g) * UP
    p_low = 1.0 / ((1.0 + high * slack) * slack) * (1 - 2 * g) / UP
    return np.asarray(np.maximum(np.maximum(p_high - p, p - p_low), 0.0) * UP + TINY)


def _exp_upper(d: Array) -> Array:
    e = exp_nonpositive(-np.abs(d))
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(d <= 0, e * (1 + 32 * U) + TINY, 1.0 / (e * (1 - 32 * U)) * (1 + 8 * U)))


def _exp_lower(d: Array) -> Array:
    e = exp_nonpositive(-np.abs(d))
    return np.asarray(np.where(d <= 0, e * (1 - 32 * U), 1.0 / (e * (1 + 32 * U) + TINY) * (1 - 8 * U)))
