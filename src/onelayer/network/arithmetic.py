"""Arithmetic whose bits are the same on every machine, for any number of inputs, and in a browser.

A matrix product of NumPy adds in an order that the machine and the number of rows decide, and its `exp` is one of
several. Here a sum takes its terms in order, each product rounded before it is added. `exp` is one polynomial in
float64, rounded once. Channels are the first axis, so that one weight meets many numbers at a time and a weight of
0 costs nothing. `explorer/static/arithmetic.js` is the same in JavaScript.
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
#: So few weights of a row are multiplied one by one, and so few numbers added up in one call.
FEW, FEW_NUMBERS = 4, 1 << 9


def multiply(h: Array, weight: Array) -> Array:
    """[m, ...] the sums of weight [k, m] times h [k, ...], in order of k. A zero has no sign."""
    used = weight != 0
    if (used.sum(axis=0) == 1).all():  # each is one product
        at = used.argmax(axis=0)
        factors = weight[at, np.arange(len(at))]
        found = h[at] + h.dtype.type(0)
        return found if (factors == 1).all() else np.asarray(found * _beside(factors, h[0]) + h.dtype.type(0))
    found = np.zeros((weight.shape[1], *h.shape[1:]), h.dtype)
    for x, row in zip(h, weight, strict=True):
        used = np.flatnonzero(row)
        if len(used) <= FEW:
            for j in used:
                found[j] += x * row[j]
        else:
            found += x * _beside(row, x)
    return np.asarray(found + found.dtype.type(0))


def multiply_groups(h: Array, weight: Array) -> Array:
    """[g m, ...] the sums of each block of weight [g, k, m] times its part of h [g k, ...], in order of k."""
    groups, inputs, outputs = weight.shape
    split = h.reshape(groups, inputs, 1, *h.shape[1:])
    found = np.zeros((groups, outputs, *h.shape[1:]), h.dtype)
    for k in range(inputs):
        found += split[:, k] * _beside(weight[:, k], h[0])
    return np.asarray(found.reshape(groups * outputs, *h.shape[1:]) + h.dtype.type(0))


def add_up(products: Array) -> Array:
    """The sum over the first axis, in its order."""
    if products[0].size < FEW_NUMBERS:
        return np.asarray(np.add.accumulate(products)[-1])  # in order, too: it gives all sums on the way
    total = products[0] + products.dtype.type(0)
    for product in products[1:]:
        total += product
    return np.asarray(total)


def _beside(weights: Array, numbers: Array) -> Array:
    """With further axes, to meet numbers."""
    return weights.reshape(*weights.shape, *[1] * numbers.ndim)


def exp(x: Array) -> Array:
    """e^x for x <= 0."""
    wide = np.maximum(x, LOWEST, dtype=np.float64)
    power = wide * LOG2_E
    power += TO_WHOLE
    power -= TO_WHOLE
    wide -= power * LN2_HIGH
    wide -= power * LN2_LOW
    found = np.full_like(wide, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        found *= wide
        found += coefficient
    half = np.floor(power / 2)
    return np.asarray(np.ldexp(np.ldexp(found, half.astype(np.int32)), (power - half).astype(np.int32)), x.dtype)


def solve(gram: Array, cross: Array) -> Array:
    """gram^-1 cross for positive definite gram [s, s, ...] and cross [s, v, ...], by elimination in order."""
    gram, cross = gram.copy(), cross.copy()
    s = len(gram)
    for i in range(s):
        if not gram[i, i].all():
            raise np.linalg.LinAlgError("Singular matrix")  # as that of NumPy says
        for j in range(i + 1, s):
            factor = gram[j, i] / gram[i, i]
            gram[j, i:] -= factor * gram[i, i:]
            cross[j] -= factor * cross[i]
    for i in range(s - 1, -1, -1):
        for j in range(i + 1, s):
            cross[i] -= gram[i, j] * cross[j]
        cross[i] /= gram[i, i]
    return cross
