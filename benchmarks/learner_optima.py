"""The best step of looped gradient descent on normal tasks, over the rationals.

With inputs of d = 10 independent normal numbers, S = mean x x^T and normal w, L loops of size a leave the error
E tr (1 - a S)^(2L), a polynomial in a whose coefficients are moments of a Wishart matrix. These are known exactly:
a power sum is a sum of zonal polynomials, of which only those of partitions (a, b, 1, ..., 1) are there, and the
mean of a zonal polynomial of a Wishart matrix is a product (Macdonald, Symmetric Functions, VI.10 and VII.2).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb, prod
from typing import Any

import numpy as np

from benchmarks.learner_numbers import SEEDS, spread

D = 10


@cache
def moment(k: int, n: int, d: int = D) -> Fraction:
    """E tr (X^T X)^k, X of n rows and d columns of independent standard normal numbers."""
    if k == 0:
        return Fraction(d)
    return sum((_part(rows, k, n, d) for rows in _partitions(k)), Fraction(0))


def _partitions(k: int) -> list[list[int]]:
    """Those with at most one 2 below the first row: of all others the coefficient is 0."""
    return [
        [a, *([b] if b else []), *[1] * (k - a - b)]
        for a in range(1, k + 1)
        for b in range(min(a, k - a) + 1)
        if b or a == k
    ]


def _part(rows: list[int], k: int, n: int, d: int) -> Fraction:
    """The coefficient of a zonal polynomial in a power sum, times its mean."""
    boxes = [(i, j) for i, row in enumerate(rows) for j in range(row)]
    coefficient = 2 * k * prod(2 * j - i for i, j in boxes[1:])
    mean = prod((d + 2 * j - i) * (n + 2 * j - i) for i, j in boxes)
    below = [sum(row > j for row in rows) for j in range(rows[0])]
    hooks = [2 * (rows[i] - j - 1) + below[j] - i - 1 for i, j in boxes]
    return Fraction(coefficient * mean, prod((h + 1) * (h + 2) for h in hooks))


def best(n: int, L: int) -> tuple[float, float]:
    """The best step, and its error: the error is convex in a, and its slope is bisected."""
    error = [comb(2 * L, k) * (-1) ** k * moment(k, n) / Fraction(n) ** k for k in range(2 * L + 1)]
    slope, low, high = [k * c for k, c in enumerate(error)][1:], Fraction(0), Fraction(1)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _at(slope, middle) < 0 else (low, middle)
    return float(low), float(_at(error, low))


def _at(coefficients: list[Fraction], a: Fraction) -> Fraction:
    return sum((c * a**k for k, c in enumerate(coefficients)), Fraction(0))


def compare_draws(n: int, L: int, tasks: int = 400) -> dict[str, Any]:
    """The same of drawn tasks: rare ones with a large eigenvalue carry the mean of many loops, and few draws miss
    them."""
    shares, found, losses = np.linspace(0.3, 1.0, 281), [], []
    for seed in SEEDS:
        X = np.random.default_rng(seed).normal(size=(tasks, n, D))
        values = np.linalg.eigvalsh(X.swapaxes(1, 2) @ X / n)
        errors = [float(((1 - a * values) ** (2 * L)).sum()) / tasks for a in shares]
        found.append(float(shares[int(np.argmin(errors))]))
        losses.append(min(errors))
    a, error = best(n, L)
    row = {"n": n, "loops": L, "best a, exact": a, "error, exact": error, "seeds": len(SEEDS), "tasks": tasks}
    return row | {"best a, drawn": spread(found), "error, drawn": spread(losses)}


def looped() -> list[dict[str, Any]]:
    return [compare_draws(n, L) for n in (20, 100) for L in (1, 2, 5, 10)]


def tails() -> list[dict[str, Any]]:
    """Ten loops, of which rare tasks carry the mean: the more tasks are drawn, the nearer is the exact optimum."""
    return [compare_draws(n, 10, tasks) for n in (20, 100) for tasks in (400, 4_000, 40_000)]


TABLES = {"looped": looped, "tails": tails}
