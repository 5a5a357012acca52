"""When a sum of products is computed without any rounding, in every order, fused or not.

Either all terms but one, bias included, are exact zeros, and that one is a bias or a product by a power of two; or
all terms are whole numbers, of which neither the positive nor the negative ones add up to more than 1/u, and every
partial sum is a number of the format. No operand and no term may be subnormal, even in float64: nothing is flushed,
and midpoints are then exact, too.
"""

from __future__ import annotations

import numpy as np

from onelayer_checker.core.balls import (
    BFLOAT16,
    FLOAT16,
    NORMAL,
    REAL,
    Arithmetic,
    Array,
    Ball,
    U,
    add,
    exact,
    is_power,
    product,
)


def exact_products(x: Ball, W: Array, b: Array, A: Arithmetic) -> Array:
    """Where x W + b [..., T, out] is exact: x [..., T, in] of which some balls are points, exact W and b.

    Theorem: proofs/ExactProducts.v exact_products_whole, exact_products_one, exact_products_guard.
    """
    whole_column = (np.rint(W) == W).all(axis=-2, keepdims=True) & (b == np.rint(b))
    if not (whole_column | (b == 0)).any():  # a bias and anything else make two terms
        return np.zeros((*x.m.shape[:-1], W.shape[-1]), bool)
    used, size, point = W != 0, np.abs(x.m), x.r == 0
    whole = whole_column & (_count(~point | (x.m != np.rint(x.m)), used) == 0)
    if whole.any():
        whole &= sums_fit(product(size, np.abs(W)) + np.abs(b), A, product(x.m, W) + b)
    if (b != 0).all():
        return np.asarray(whole)
    live = ~point | (x.m != 0)
    smallest = np.abs(W).min(where=used, initial=1.0)
    faint = live & ~normal(np.minimum(size, 1.0) * smallest, A)
    terms = _count(live, used) + (b != 0)
    rounds = _count(live & ~is_power(x.m), ~is_power(W))
    one = (terms <= 1) & (rounds == 0)
    one &= ((b == 0) | normal(b, A)) & (_count(~point | faint, used) == 0)
    return np.asarray(one | whole)


def whole_products(x: Ball, W: Array, b: Array, A: Arithmetic) -> Ball | None:
    """x W + b for whole numbers W and b, if all of x are known whole numbers too and no sum is rounded.

    Theorem: proofs/ExactProducts.v exact_products_whole.
    """
    if x.r.any() or (x.m != np.rint(x.m)).any():
        return None
    size, m = product(np.abs(x.m), np.abs(W)) + np.abs(b), product(x.m, W) + b
    return exact(m) if sums_fit(size, A, m).all() else None


def add_numbers(x: Ball, y: Array, A: Arithmetic) -> Ball:
    """Encloses x + y for numbers y; whole numbers add exactly.

    Theorem: proofs/ExactProducts.v add_numbers_exact.
    """
    total = add(x, exact(y), A)
    whole = (x.r == 0) & (x.m == np.rint(x.m)) & (y == np.rint(y)) & sums_fit(np.abs(x.m) + np.abs(y), A)
    return Ball(total.m, np.where(whole, 0.0, total.r))


def sums_fit(size: Array | float, A: Arithmetic, m: Array | None = None) -> Array:
    """Where whole numbers add up, and multiply, without rounding in every order, here and in the arithmetic.

    ``size`` is what the sizes of all terms add up to, as float64 computes it. Had any product or partial sum of it
    reached 2^53, its rounding would have too, and so would all that follow: where ``size`` is below, it is exact.
    At 2^53 itself nothing is known, as 2^53 + 1 is rounded to it. So is m, the sum of the terms; with it, the
    positive terms add up to (size + m) / 2 and the negative ones to (size - m) / 2: no partial sum is beyond these.
    Theorem: proofs/ExactSums.v sums_fit_exact, signed_sums_fit_exact, computed_size_exact, fit_has_to_be_strict.
    """
    if m is None:
        return np.asarray(size) < A.whole
    return np.asarray((size < REAL.whole) & (size + np.abs(m) <= 2 * A.whole))


def normal(a: Array, A: Arithmetic) -> Array:
    """Where a number is so large that nobody flushes it, or what rounding made of it.

    Theorem: proofs/ExactProducts.v normal_as_computed.
    """
    return np.asarray(np.abs(a) >= 4 * (A.tiny + NORMAL))


def is_number(x: Array, A: Arithmetic) -> Array:
    """Where a float64 is a number of the format, subnormal ones included: where rounding it gives it back."""
    if A.u < 2 * U:
        return np.ones(x.shape, bool)
    with np.errstate(over="ignore"):  # infinity is not what it was
        rounded = x.astype(np.float16 if A is FLOAT16 else np.float32)
    number = np.asarray(rounded == x)
    return number & (rounded.view(np.uint32) << 16 == 0) if A is BFLOAT16 else number  # the upper half of a float32


def _count(marked: Array, used: Array) -> Array:
    """How many inputs are marked and used [..., T, out]; below 2^24, which is exact."""
    if not (marked.any() and used.any()):
        return np.zeros((*marked.shape[:-1], used.shape[-1]), np.float32)
    return product(marked.astype(np.float32), used.astype(np.float32))
