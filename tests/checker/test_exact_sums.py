"""What is called exact is computed without rounding, in every order, fused or flushed; what plainly is, is so."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, Ball, exact
from onelayer_checker.core.exactness import (
    add_numbers,
    exact_products,
    sums_fit,
    whole_products,
)
from tests.checker.large import ARITHMETICS
from tests.checker.orders import sums

EVERY = list(ARITHMETICS.values())
MOST = {"real": 2.0**53, "float64": 2.0**53, "float32": 2.0**24}
LEAST = {"real": 2.0**-1022, "float64": 2.0**-1022, "float32": 2.0**-126}


def pool(A, kind: str) -> list[float]:
    """Numbers of the format around the rules: whole ones near 1/u, small ones near underflow, and ordinary ones."""
    most, least = MOST[A.name], LEAST[A.name]
    odd = float(np.float32(0.1)) if A is FLOAT32 else 0.1
    if kind == "whole":
        return [
            0,
            1,
            -1,
            2,
            3,
            -3,
            most / 4,
            most / 4 - 1,
            most / 2,
            most / 2 - 1,
            1 - most / 2,
            most,
            most - 1,
            0.5,
        ]
    if kind == "small":
        near = [least * k for k in (1, 2, 4, 6, 8, 16, 0.5, 0.25, 0.75, 1.5, 7)]
        return [0, 1, -2, 0.5, 3, odd, 2.0**-60, 2.0**60, least * 2.0**60, least * 2.0**62, *near]
    return [
        0,
        0,
        1,
        -1,
        2,
        0.25,
        3,
        -5,
        odd,
        1 / 4096,
        most + 2,
        1.5,
        6 * odd if A is not FLOAT32 else float(np.float32(0.6)),
    ]


def draw(rng, A, kind: str, shape: tuple[int, ...]):
    return rng.choice(pool(A, kind), shape)


def all_equal(terms, bias, A, value: float) -> bool:
    return all(v == Fraction(value) for v in sums(terms, bias, A.name))


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_sum_is_exact_for_each_column_on_its_own(A) -> None:
    odd, half = pool(A, "small")[5], 2.0**-30
    m = np.array([[3.0, 0.0, odd], [2.0, odd, 0.0], [odd, 0.0, 1.0]])
    W = np.array([[1, 0.5, odd, 0, 3, 1], [2, 0, 1, 0, 1, 1], [0, 0, 1, 0, 0, 1]])
    b = np.array([0, 0, 0, odd, 1, odd])
    wanted = [
        [True, True, False, True, True, False],  # whole; a power; two terms; only a bias; whole; a bias and more
        [False, True, False, True, False, False],  # two terms
        [True, True, False, True, False, False],
    ]
    assert exact_products(exact(m), W, b, A).tolist() == wanted
    r = np.zeros_like(m)
    r[0, 1] = r[2, 0] = half
    known = exact_products(Ball(m, r), W, b, A)
    assert known[1].tolist() == wanted[1]
    assert known[0].tolist() == [False, True, False, True, False, False]
    assert known[2].tolist() == [False, False, False, True, False, False]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_blocks_have_their_own_biases(A) -> None:
    odd = pool(A, "small")[5]
    x, W = exact(np.full((2, 1, 1), odd)), np.ones((2, 1, 1))
    b = np.array([0, odd]).reshape(2, 1, 1)
    assert exact_products(x, W, b, A).tolist() == [[[True]], [[False]]]
    assert exact_products(exact(np.full((2, 1, 1), 2.0)), W, np.full((2, 1, 1), odd), A).tolist() == [[[False]]] * 2
    x, W, b = exact(np.full((2, 4, 1), odd)), np.full((2, 1, 3), 0.25), np.full((2, 1, 3), odd)
    assert exact_products(x, W, b, A).tolist() == [[[False] * 3] * 4] * 2
    assert exact_products(x, W, 0 * b, A).tolist() == [[[True] * 3] * 4] * 2
    x, W = exact(np.full((2, 4, 2), 2.0)), np.full((2, 2, 3), [[odd], [0.0]])
    assert exact_products(x, W, np.zeros((2, 1, 3)), A).tolist() == [[[True] * 3] * 4] * 2


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_one_term_is_exact_if_nothing_of_it_rounds_or_underflows(A) -> None:
    """Each factor normal, their product too, and one of them a power of two; or both whole."""
    odd, least = pool(A, "small")[5], LEAST[A.name]

    def one(x: float, w: float, b: float = 0.0) -> bool:
        """Beside a column without a bias: where all have one, a bias alone is not looked for."""
        found = exact_products(exact(np.array([[x]])), np.array([[w, 0]]), np.array([b, 0]), A)
        assert found[0, 1]
        return bool(found[0, 0])

    assert one(odd, 0.25)
    assert one(0.25, odd)
    assert one(2.0**40 * odd, -(2.0**-40))
    assert one(0.0, odd)
    assert one(0.0, odd, odd)
    assert one(odd, 0.0, odd)
    assert not one(odd, odd)
    assert not one(odd, 0.25, odd)
    assert not one(odd, 2 * least)
    assert not one(least / 2, 0.25)
    assert not one(least / 2, 1.0)
    assert not one(least / 2, 2.0**100)
    assert not one(2.0**100, least / 2)
    assert not one(0.25, 2 * least)
    assert not one(0.0, 0.0, least / 2)
    assert one(0.0, 0.0, 64 * least)
    assert one(0.0, 0.0, -64 * least)
    assert one(-64 * least, 1.0)
    assert one(64 * least, 1.0)
    assert one(64 * least * 3, -1.0)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_whole_numbers_are_exact_up_to_the_limit(A) -> None:
    most = MOST[A.name]
    assert (
        sums_fit(np.array([0, most - 1, most, most + 2, np.inf, np.nan]), A).tolist() == [True, True] + [False] * 4
    )
    near = most * (1 - 2.0**-20)  # short of it by more than the margin for rounding
    for x, W, b, wanted in (
        ([near], [1], 0, True),
        ([near / 2, near / 4], [1, -2], 0, True),
        ([most], [1], 1, False),
        ([most - 1], [1], 1, most < 2**53),  # 2^24 is a number, and float64 has added up 2^24 exactly
        ([most - 2], [1], 1, True),
        ([most / 2, most / 2], [1, -1], 1, most < 2**53),  # no partial sum is beyond the positive terms
        ([most - 1, most - 1], [1, -1], 1, most < 2**53),
        ([most - 1, most - 1], [1, -1], 2, False),
        ([most / 2 + 1, 3], [-2, 1], 0, False),
        ([1, 1], [most / 2, most / 2], 1, False),
        ([0, 3], [most * 4, 1], near, True),
        ([1.5, 2], [0, 1], 1, True),
        ([1.5, 2], [2, 1], 1, False),
        ([3, 2], [1.5, 1], 1, False),
        ([3, 2], [1, 1], 1.5, False),
    ):
        m, w = np.array([x], float), np.array(W, float)[:, None]
        assert exact_products(exact(m), w, np.array([float(b)]), A).tolist() == [[wanted]], (x, W, b)
        taken = whole_products(exact(m), w, np.array([float(b)]), A) if (w == np.rint(w)).all() else None
        if (m != np.rint(m)).any() or not wanted:
            assert taken is None or b != np.rint(b)
        else:
            assert taken is not None
            assert taken.m.tolist() == (m @ w + b).tolist()
            assert taken.r.tolist() == [[0.0]]


def test_rows_of_many_columns_need_room_for_the_largest() -> None:
    x, W = exact(np.array([[2.0**23 + 1, 1.0], [1.0, 1.0]])), np.array([[1.0, 1], [0, 2.0**23]])
    assert whole_products(x, W, np.zeros(2), FLOAT32) is None
    assert whole_products(x, W, np.zeros(2), FLOAT64).m.tolist() == [[2.0**23 + 1, 2.0**24 + 1], [1, 2.0**23 + 1]]
    for unknown in (
        Ball(np.ones((1, 2)), np.array([[0, 1.0]])),
        exact(np.array([[0.5, 1]])),
        exact(np.array([[1, 0.5]])),
    ):
        assert whole_products(unknown, np.ones((2, 1)), np.zeros(1), REAL) is None


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_numbers_are_added(A) -> None:
    """Whole numbers exactly; others within a radius that contains every computed value, but for the input's own."""
    most, odd = MOST[A.name], pool(A, "small")[5]
    near = most * (1 - 2.0**-20)
    for x, r, y, wanted in (
        (3, 0, 4, True),
        (near / 2, 0, -near / 4, True),
        (most, 0, 1, False),
        (most / 2, 0, most / 2, False),
        (-most / 2, 0, most / 2, False),
        (3, 0.25, 4, False),
        (odd, 0, 1, False),
        (1, 0, odd, False),
        (1.5, 0, 4, False),
        (3, 0, 4.5, False),
    ):
        total = add_numbers(Ball(np.array([[float(x)]]), np.array([[float(r)]])), np.array([[float(y)]]), A)
        assert (total.r[0, 0] == 0) == wanted, (x, r, y)
        for moved in (x - r, x, x + r):
            for value in sums([(moved, 1.0)], y, A.name):
                assert abs(value - Fraction(total.m[0, 0])) <= Fraction(total.r[0, 0])


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
@pytest.mark.parametrize("kind", ["whole", "small", "ordinary"])
def test_an_exact_sum_of_products_is_the_same_in_every_order(A, kind) -> None:
    rng, seen = np.random.default_rng([1, len(A.name), len(kind)]), 0
    for _ in range(60):
        n = int(rng.integers(1, 4))
        m, W, b = draw(rng, A, kind, (4, n)), draw(rng, A, kind, (n, 4)), draw(rng, A, kind, (4,))
        W *= rng.random(W.shape) < rng.choice([0.4, 1])
        b *= rng.random() < 0.5
        r = np.where(rng.random(m.shape) < rng.choice([0, 0, 0.2]), 2.0**-30, 0.0)
        found, value = exact_products(Ball(m, r), W, b, A), m @ W + b
        for t, j in np.argwhere(found):
            assert not r[t, W[:, j] != 0].any(), "an input that is not known"
            assert all_equal(zip(m[t], W[:, j], strict=True), b[j], A, value[t, j]), (m[t], W[:, j], b[j])
            seen += 1
    assert seen > 50
