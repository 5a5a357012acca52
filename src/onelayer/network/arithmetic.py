"""Arithmetic whose bits are the same on every machine, and in a browser.

A matrix product of NumPy adds in an order that the machine and the number of rows decide, and its `exp` is one of
several. Here a sum of products takes its terms in order: in float32 each is fused to the sum with one rounding, as
most machines do; in float64 the product is rounded, and then the sum. `exp` is one polynomial in float64, rounded
once. `explorer/static/arithmetic.js` is the same in JavaScript.
"""

from __future__ import annotations

import math

import numpy as np

from onelayer.network.weights import Array

LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
#: Added and taken off again, it leaves the nearest whole number, of two the even one.
TO_WHOLE = 1.5 * 2.0**52
#: Below this, exp is 0 in float64.
LOWEST = -800.0
COEFFICIENTS = tuple(1.0 / math.factorial(i) for i in range(13, -1, -1))


def multiply(h: Array, weight: Array) -> Array:
    """h [..., k] @ weight [..., k, m], each sum in order of k. A zero has no sign."""
    found = np.zeros(np.broadcast_shapes((*h.shape[:-1], 1), (*weight.shape[:-2], 1, weight.shape[-1])), h.dtype)
    for k in range(h.shape[-1]):
        row = weight[..., k, None, :]
        if row.any():
            found = add_product(found, h[..., k, None], row)
    return np.asarray(found + found.dtype.type(0))


def add_product(total: Array, a: Array, b: Array) -> Array:
    """total + a b; in float32 with one rounding."""
    if total.dtype == np.float64:
        return np.asarray(total + a * b)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 24 and 24 bits
    wide = product + total
    part = wide - product
    left = (product - (wide - part)) + (total - part)  # what rounding to float64 took off, exactly
    bits = wide.view(np.int64)
    away = (left > 0) == (wide > 0)
    # To the odd neighbour, from which a second rounding goes where one rounding would have gone.
    odd = np.where((left != 0) & (bits % 2 == 0) & np.isfinite(wide), bits + np.where(away, 1, -1), bits)
    return odd.view(np.float64).astype(np.float32)


def exp(x: Array) -> Array:
    """e^x for x <= 0."""
    wide = np.maximum(x.astype(np.float64), LOWEST)
    power = (wide * LOG2_E + TO_WHOLE) - TO_WHOLE
    rest = (wide - power * LN2_HIGH) - power * LN2_LOW
    found = np.full_like(wide, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        found = found * rest + coefficient
    half = np.floor(power / 2)
    return np.asarray(np.ldexp(np.ldexp(found, half.astype(int)), (power - half).astype(int)), x.dtype)


def solve(gram: Array, cross: Array) -> Array:
    """gram^-1 cross for positive definite gram [..., s, s] and cross [..., s, v], by elimination in order."""
    gram, cross = gram.copy(), cross.copy()
    s = gram.shape[-1]
    for i in range(s):
        if not gram[..., i, i].all():
            raise np.linalg.LinAlgError("Singular matrix")  # as that of NumPy says
        for j in range(i + 1, s):
            factor = gram[..., j, i] / gram[..., i, i]
            gram[..., j, i:] -= factor[..., None] * gram[..., i, i:]
            cross[..., j, :] -= factor[..., None] * cross[..., i, :]
    for i in range(s - 1, -1, -1):
        for j in range(i + 1, s):
            cross[..., i, :] -= gram[..., i, j, None] * cross[..., j, :]
        cross[..., i, :] /= gram[..., i, i, None]
    return cross
