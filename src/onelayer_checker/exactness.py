"""When a sum of products is computed without any rounding, in every order, fused or not.

Either every product is exact (a factor is a power of two) and all terms but one, bias included, are exact zeros; or
all terms are whole numbers whose sizes add up to at most 1/u, and every partial sum is a number of the format. No
term may be subnormal, even in float64: midpoints are then exact too, as the u that is used is at least their own.
"""

from __future__ import annotations

import numpy as np

from onelayer_checker.kernel import NORMAL, UP, Arithmetic, Array, Ball, U, add, exact, product


def exact_products(x: Ball, W: Array, b: Array, A: Arithmetic) -> Array:
    """Where x W + b [..., T, out] is exact: x [..., T, in] of which some balls are points, exact W and b."""
    broken_W = np.rint(W) != W
    odd_W = (W != 0) & ~_is_power(W)
    whole_column = ~broken_W.any(axis=-2, keepdims=True) & (b == np.rint(b))
    if not (whole_column | (b == 0)).any():  # a bias and anything else make two terms
        return np.zeros((*x.m.shape[:-1], W.shape[-1]), bool)
    point = x.r == 0
    live = ~point | (x.m != 0)
    used = (W != 0).astype(np.float32)  # counts below 2^24 are exact
    terms = _count(live, used) + (b != 0)
    rounds = _count(live & ~_is_power(x.m), odd_W) if odd_W.any() else 0
    one = (terms <= 1) & (rounds == 0)
    size = (product(np.abs(x.m), np.abs(W)) + np.abs(b)) * UP  # exact itself where it matters
    whole = whole_column & (_count(live & (x.m != np.rint(x.m)), used) == 0) & (size <= limit(A))
    sharp = (one | whole) & (_count(~point, used) == 0) if not point.all() else one | whole
    least = np.where(live, np.abs(x.m), 1.0).min(axis=-1, keepdims=True, initial=1.0)
    smallest = np.abs(W).min(where=W != 0, initial=1.0)
    return np.asarray(sharp & _normal(least * smallest, A) & ((b == 0) | _normal(np.abs(b), A)))


def add_numbers(x: Ball, y: Array, A: Arithmetic) -> Ball:
    """Encloses x + y for numbers y; whole numbers add exactly."""
    total = add(x, exact(y), A)
    whole = (x.r == 0) & (x.m == np.rint(x.m)) & (y == np.rint(y)) & ((np.abs(x.m) + np.abs(y)) * UP <= limit(A))
    return Ball(total.m, np.where(whole, 0.0, total.r))


def exact_product(x: Ball, w: Array, A: Arithmetic) -> Array:
    """Where x w, for x [T, 1] and weights w [out], is one number that is computed exactly."""
    whole = (x.m == np.rint(x.m)) & (w == np.rint(w)) & (np.abs(x.m * w) * UP <= limit(A))
    power = _is_power(w) & _normal(np.abs(x.m * w), A)
    return np.asarray((x.r == 0) & (whole | power | (x.m == 0) | (w == 0)))


def exact_rows(rows: list[Array], inexact: list[Array], A: Arithmetic) -> Array:
    """Where a sum of rows of exact numbers is exact; where a row is ``inexact``, nothing is."""
    fits, whole = np.ones(1, bool), np.ones(1, bool)
    terms, size = np.zeros(1), np.zeros(1)
    for row in rows:
        terms = terms + (row != 0)
        size = size + np.abs(row)
        whole = whole & (row == np.rint(row))
        fits = fits & ((row == 0) | _normal(np.abs(row), A))
    for row in inexact:
        fits = fits & ~row
    return np.asarray(fits & ((terms <= 1) | (whole & (size * UP <= limit(A)))))


def limit(A: Arithmetic) -> float:
    """Whole numbers up to here, and all partial sums of them, are numbers of the arithmetic and of float64."""
    return 1.0 / max(A.u, U)


def _normal(size: Array, A: Arithmetic) -> Array:
    return np.asarray(size >= 4 * (A.tiny + NORMAL))


def _count(a: Array, b: Array) -> Array:
    return product(a.astype(np.float32), b.astype(np.float32))


def _is_power(a: Array) -> Array:
    return np.asarray(np.frexp(np.abs(a))[0] == 0.5)
