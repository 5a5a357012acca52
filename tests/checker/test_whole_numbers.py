"""Whole numbers around 1/u: whoever says that their sums are exact is compared with Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.balls import Ball, exact
from onelayer_checker.core.exactness import (
    add_numbers,
    exact_products,
    sums_fit,
    whole_products,
)
from onelayer_checker.search.parts import added
from tests.checker.large import ARITHMETICS

parametrize = pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)


def chosen(rows, A) -> Ball:
    """A sum of chosen rows, each of which is one term."""
    nothing = exact(np.zeros((1, 0)))
    return added([(row, np.abs(row), True) for row in rows], nothing, np.zeros((0, 1)), np.zeros(1), A)


def times(x: Ball, w: float, A) -> Ball:
    """A product with a carried number."""
    return added([], x, np.array([[w]]), np.zeros(1), A)


def around_the_edge(A, rng, count: int) -> list[int]:
    """This many numbers of the format whose sizes add up to nearly 1/u, a little less or a little more."""
    most = int(A.whole)
    cuts = sorted(int(rng.integers(0, most)) for _ in range(count - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, most + int(rng.integers(-3, 4))], strict=True)]
    return [int(rng.choice([-1, 1])) * max(0, part) for part in parts]


@parametrize
def test_sums_fit_only_below_the_edge(A) -> None:
    most = int(A.whole)
    for size in range(most - 5, most + 6):
        assert sums_fit(float(size), A) == (size < most)
    for count in range(2, 2000):
        largest = most // count + 1
        assert not sums_fit(count * float(largest), A), (count, largest)
    assert not sums_fit(np.inf, A)
    assert not sums_fit(np.nan, A)


@parametrize
def test_a_sum_that_is_called_exact_is(A) -> None:
    rng, most, called = np.random.default_rng(11), int(A.whole), dict.fromkeys(range(4), 0)
    for _ in range(1500):
        terms = around_the_edge(A, rng, int(rng.integers(2, 6)))
        x, sizes = np.array([terms[:-1]], float), sum(map(abs, terms))
        weights, bias = np.ones((len(terms) - 1, 1)), np.full((1, 1), float(terms[-1]))
        rows, total = [np.full((1, 1), float(term)) for term in terms], float(x.sum() + bias[0, 0])
        one, other = x[:, :1], np.array([float(sum(terms[1:]))])
        found = whole_products(exact(x), weights, bias, A)
        two = add_numbers(exact(one), other, A)
        values = [
            None if found is None else found.m[0, 0],
            total if exact_products(exact(x), weights, bias, A)[0, 0] else None,
            total if chosen(rows, A).r[0, 0] == 0 else None,
        ]
        for k, value in enumerate(values):
            if value is not None and sum(map(bool, terms)) > 1:  # one term alone may be as large as it likes
                called[k] += 1
                assert sizes < 2**53
                assert max(sum(t for t in terms if t > 0), -sum(t for t in terms if t < 0)) <= most
                assert int(value) == sum(terms)
        if two.r[0, 0] == 0:
            called[3] += 1
            assert int(two.m[0, 0]) == int(one[0, 0]) + int(other[0])
            assert abs(int(two.m[0, 0])) <= most
    assert min(called.values()) > 200, called


@parametrize
def test_a_product_that_is_called_exact_is(A) -> None:
    rng, most, called = np.random.default_rng(12), int(A.whole), 0
    for _ in range(3000):
        w = int(rng.integers(1, 2 ** int(rng.integers(2, 26))))
        x = most // w + int(rng.integers(-2, 3))
        if times(exact(np.full((1, 1), float(x))), float(w), A).r[0, 0] == 0:
            called += 1
            assert x * w <= most or w & (w - 1) == 0
    assert called > 1000
    unknown = Ball(np.ones((1, 1)), np.full((1, 1), 2.0**-60))
    assert times(unknown, 1.0, A).r[0, 0] > 0
