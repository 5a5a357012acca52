"""The radii of the kernel written out a second time, number by number, sums of sizes apart in exact rationals.

That they are enough is the kernel's argument, and other tests try to break it. Here they are what it says: no
constant of a radius becomes another, smaller or larger, without being changed in two places.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

ZERO = Fraction(0)
U, UP, TINY, NORMAL = Fraction(1, 2**53), 1 + Fraction(1, 2**40), Fraction(1, 2**1000), Fraction(1, 2**1022)


def number(x) -> Fraction:
    return Fraction(float(x))


def total(terms: np.ndarray) -> Fraction:
    return Fraction(math.fsum(terms.ravel().tolist()))


def gamma(k: int, u: Fraction) -> Fraction:
    return k * u * (1 + 2 * k * u) * UP


def inflate(k: int) -> Fraction:
    return (1 + 4 * (k + 2) * U) * UP**2


def are_powers(w: np.ndarray) -> bool:
    """Zeros, or plus or minus powers of two that are no subnormal numbers."""
    return bool(((w == 0) | ((np.abs(np.frexp(w)[0]) == 0.5) & (np.abs(w) >= 2.0**-1022))).all())


def of_linear(x, W, b, A, t: int, o: int, calm: bool = True) -> Fraction:
    """Of one sum, which does not overflow; b is a ball [T, out]. Unless all is calm, a row has its own reach."""
    n, m, r, w = len(W), np.abs(x.m[t]), x.r[t], np.abs(W[:, o])
    bias, spread = abs(number(b.m[t, o])), number(b.r[t, o])
    few = n > 6 and 2 * np.count_nonzero((x.m != 0) | (x.r != 0)) < x.m.size
    live = np.count_nonzero((w > 0) & ((m > 0) | (r > 0) | (not few)))
    present = bool(bias or spread)
    steps = max(live + present - 1, 0) + bool(live and not are_powers(w))
    rounded = gamma(steps, U + Fraction(A.u))
    sizes, spreads = (total(m * w) + bias) * inflate(n), (total(r * w) + spread) * inflate(n)
    normal, widest = Fraction(A.tiny) + NORMAL, number(np.abs(W).max())
    reach = number(np.abs(x.m).max()) + number(x.r.max()) if calm else total(m + r)
    lost = 4 * (n + 1) * normal * (2 + widest + reach) + TINY
    least, small = float(np.abs(W).min(where=W != 0, initial=1.0)), float(2 * normal)
    near = (m + r > 0) & (np.minimum(m - r, 1.0) * least < small)
    faint = ((near | ((r > 0) & (r * least < small))) & (w > 0)).any()
    loses = (live and (steps or faint)) or (present and bias - spread < 2 * Fraction(A.tiny))
    return sizes * rounded + spreads * (1 + rounded) + (lost if loses else 0)


def of_dot(x, y, A, extra: int, i: int, j: int) -> Fraction:
    """Of one product of two rows, where nothing is large."""
    k, a, p, b, q = x.m.shape[1], np.abs(x.m[i]), x.r[i], np.abs(y.m[:, j]), y.r[:, j]
    if not ((a + p > 0) & (b + q > 0)).any():
        return ZERO
    reach = number(np.abs(x.m).max()) + number(x.r.max()) + number((np.abs(y.m) + y.r).max())
    own, model = gamma(k + 2, U), gamma(k + 2 + extra, Fraction(A.u))
    S, R = total(a * b), total(a * q + p * (b + q))
    lost = 4 * (k + 1 + extra) * (Fraction(A.tiny) + NORMAL) * (2 + reach) + TINY
    return (own * S + model * (S + R) + R) * inflate(k) + lost


def of_add(x, y, A, i: int) -> Fraction:
    size, R, u = abs(float(x.m[i] + y.m[i])), float(x.r[i] + y.r[i]), Fraction(A.u)
    if (x.m[i] == x.r[i] == 0 or y.m[i] == y.r[i] == 0) and (size == 0 or size - R >= 2 * A.tiny):
        return Fraction(R)
    return (Fraction(R) * (1 + u) + Fraction(size) * (U + u)) * UP**2 + 4 * Fraction(A.tiny) + TINY


def of_around(x: float, radius: float, A) -> Fraction:
    """Of a number that is moved, where the ends are no numbers of the format."""
    size = abs(Fraction(x)) + Fraction(radius)
    return (Fraction(radius) + size * Fraction(A.u)) * UP + Fraction(A.tiny)


def exponents(m: np.ndarray, r: np.ndarray, visible: np.ndarray, p: np.ndarray, A):
    """What the exponents of one row may be off, and what their sum and what follows add; p are the midpoints."""
    u, rho, error = Fraction(A.u), Fraction(A.roundings), 2 * 8 * U + Fraction(A.exp_error)
    seen = [k for k in range(len(m)) if visible[k]]
    n, top, largest = len(m), max(float(m[k]) for k in seen), Fraction(max(float(r[k]) for k in seen))
    L = {}
    for k in seen:
        t = Fraction(float(m[k]) - top)
        known = t == 0 and largest == 0
        own = -t * (2 * U + 2 * rho * u) + Fraction(float(r[k])) + 4 * rho * u * largest + error
        L[k] = ZERO if known else own * UP
    E = sum((v + 1) * v * Fraction(float(p[k])) for k, v in L.items()) * (1 + 8 * n * U) * UP
    g = (2 * gamma(n + 4, U) + gamma(2 * n + 8, u) if E > 0 else 2 * gamma(4, U) + gamma(4, u)) * UP
    return L, E, g


def of_softmax(m: np.ndarray, r: np.ndarray, visible: np.ndarray, p: np.ndarray, A) -> list[Fraction] | None:
    """Of one row; None where an exponent is not known up to 1."""
    L, E, g = exponents(m, r, visible, p, A)
    lost, out = 8 * len(m) * (Fraction(A.tiny) + TINY), [ZERO] * len(m)
    for k, own in L.items():
        v = own + E + g
        if v > 1:
            return None
        out[k] = (v + 1) * v * Fraction(float(p[k])) + lost
    return out


def of_added(rows, x, W, b, A, t: int, o: int) -> Fraction:
    """Of chosen rows (values and sizes), products with W [i, o] and a bias, where a sum may be rounded."""
    m, r, w = np.abs(x.m[t]), x.r[t], np.abs(W[:, o])
    S = total(m * w) + abs(number(b[o])) + sum((number(size[t, o]) for _, size, _ in rows), ZERO)
    R, k = total(r * w), 2 * (len(rows) + len(W)) + 4
    reach = number((m + r).max(initial=0.0)) + number(np.abs(W).max(initial=0.0))
    relative = R + gamma(k, U) * S + gamma(k, Fraction(A.u)) * (S + R)
    return relative * (1 + 2 * k * U) * UP + 4 * k * (Fraction(A.tiny) + TINY) * (2 + reach)
