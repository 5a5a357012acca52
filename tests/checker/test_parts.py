"""What chosen rows and a few balls add up to: sums that are called exact are, and the others are enclosed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, Ball, exact
from onelayer_checker.search.parts import Known, Token, added, whole
from tests.checker import radii
from tests.checker.large import ARITHMETICS
from tests.checker.orders import sums
from tests.checker.test_exact_sums import EVERY, LEAST, MOST, all_equal, draw, pool
from tests.checker.test_radii import ball, same, scaled

NOTHING = exact(np.zeros((1, 0)))


def terms_of(kind: str, j: int, count: int, table) -> list[float]:
    """The units of a part for the choice j."""
    if kind == "one":
        return [float(k == j) for k in range(count)]
    return [float(k < j) for k in range(count)] if kind == "upto" else table[j].tolist()


@pytest.mark.parametrize("kind", ["one", "upto", "table"])
def test_rows_are_what_the_units_add(kind) -> None:
    """For every choice, also the one beyond the last: values, and the sizes of their terms."""
    rng = np.random.default_rng(len(kind))
    W, units = rng.integers(-9, 10, (7, 3)).astype(float), np.array([5, 1, 2, 6])
    table = rng.integers(-3, 4, (4, 4)).astype(float)
    part = Known(units, 11, kind, exact(table) if kind == "table" else None)
    rows = part.rows(W)
    assert rows is not None
    assert (rows.by, rows.single, rows.whole) == (11, kind == "one", True)
    assert rows.terms == (1 if kind == "one" else 4)
    assert len(rows.value) == len(rows.size) == (4 if kind == "table" else 5)
    for j in range(len(rows.value)):
        u = terms_of(kind, j, 4, table)
        assert rows.value[j].tolist() == [sum(u[i] * W[units[i], o] for i in range(4)) for o in range(3)]
        assert rows.size[j].tolist() == [sum(abs(u[i] * W[units[i], o]) for i in range(4)) for o in range(3)]
    assert rows.most == rows.size.max()


def test_rows_that_might_be_rounded_are_not_added_up() -> None:
    """But a single one is a copy, whatever its weight."""
    units, third = np.arange(2), np.array([[1.0, 0.1], [2.0, 3.0]])
    one = Known(units, 1, "one").rows(third)
    assert one is not None
    assert not one.whole
    assert one.value.tolist() == [[1, 0.1], [2, 3], [0, 0]]
    assert Known(units, 1, "upto").rows(third) is None
    assert Known(units, 1, "table", exact(np.ones((1, 2)))).rows(third) is None
    W = np.array([[1.0], [2.0]])
    assert Known(units, 1, "table", exact(np.array([[0.5, 1]]))).rows(W) is None
    assert Known(units, 1, "table", Ball(np.ones((1, 2)), np.array([[0, 0.5]]))).rows(W) is None
    for large, kind in ((2.0**53, "upto"), (2.0**53, "table")):
        for weights, known in (([large / 2, large / 2 - 1], True), ([large / 2, -large / 2], False)):
            part = Known(units, 1, kind, exact(np.ones((1, 2))) if kind == "table" else None)
            assert (part.rows(np.array(weights)[:, None]) is not None) == known
    none = Known(np.zeros(0, int), 1, "upto").rows(np.zeros((2, 1)))
    assert none is not None
    assert none.most == 0


def test_a_token_is_unknown_from_the_first_doubt_on() -> None:
    token = Token(unknown=np.zeros(4, bool))
    token.choose(1, np.array([0, -1, 2, 7]))
    assert token.unknown.tolist() == [False, True, False, False]
    assert token.choices[1].tolist() == [0, 0, 2, 7]
    token.choose(2, np.array([-1, 0, 0, 0]))
    assert token.unknown.tolist() == [True, True, False, False]
    token.put(5, Ball(np.zeros((4, 2)), np.array([[0, 0], [0, 0], [0, np.inf], [1, 2]])))
    assert token.unknown.tolist() == [True, True, True, False]
    token.put(6, Ball(np.zeros((4, 2)), np.full((4, 2), np.nan)))
    assert token.unknown.all()
    assert set(token.balls) == {5, 6}
    fine = Token(unknown=np.zeros(1, bool))
    fine.put(1, Ball(np.zeros((1, 0)), np.zeros((1, 0))))
    fine.put(2, Ball(np.ones((1, 1)), np.ones((1, 1))))
    assert not fine.unknown.any()
    assert Token().unknown.shape == (0,)


def test_whole_numbers_are_whole() -> None:
    assert whole(np.array([0.0, -3, 2.0**60]))
    assert not whole(np.array([0.0, 0.5]))
    assert not whole(np.array([np.nan]))
    assert whole(np.zeros(0))


def products(x: Ball, w: np.ndarray, A) -> Ball:
    return added([], x, w[None], np.zeros(len(w)), A)


def chosen(rows, A, b=0.0) -> Ball:
    return added([(row, np.abs(row), True) for row in rows], NOTHING, np.zeros((0, 1)), np.array([b]), A)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_products_that_are_plainly_exact(A) -> None:
    odd, most, least = pool(A, "small")[5], MOST[A.name], LEAST[A.name]
    near = most * (1 - 2.0**-20)
    for x, w, wanted in (
        (3, 5, True),
        (near, 1, True),
        (near / 4, -4, True),
        (most - 1, most - 1, False),
        (odd, 0.25, True),
        (-odd, 0.25, True),
        (odd, -0.25, True),
        (odd, 3, False),
        (1.5, 3, False),
        (3, 1.5, False),
        (odd, 0, True),
        (0, odd, True),
        (odd, least, False),
        (64 * least, 1, True),
        (64 * least, 2.0**-8, False),
        (2.0**60, least / 2, False),
        (least / 2, 2.0**60, False),
        (-64 * least, -1, True),
        (-(2.0**60), -64 * least, True),
    ):
        y = products(exact(np.array([[float(x)]])), np.array([float(w)]), A)
        assert (y.r[0, 0] == 0) == wanted, (x, w)
        assert y.m[0, 0] == x * w
        unknown = Ball(np.array([[float(x)]]), np.full((1, 1), 2.0**-20))
        assert products(unknown, np.array([float(w)]), A).r[0, 0] >= abs(w) * 2.0**-20


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_product_is_exact_beside_others_that_are_zero(A) -> None:
    """Because an input or a weight is, whatever the other factor."""
    odd = pool(A, "small")[5]
    for x, w in (([odd, odd], [0.25, 0.0]), ([odd, 0.0], [0.25, odd]), ([3.0, 0.0], [5.0, odd])):
        assert added([], exact(np.array([x])), np.array([w]).T, np.zeros(1), A).r.tolist() == [[0]], (x, w)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_rows_that_are_plainly_exact(A) -> None:
    odd, most, least = pool(A, "small")[5], MOST[A.name], LEAST[A.name]
    near = most * (1 - 2.0**-20)
    for terms, wanted in (
        ([3, 4, -5], True),
        ([near / 2, -near / 2], True),
        ([most / 2, -most / 2, 1], A is FLOAT32),  # no partial sum is beyond 2^24, and float64 adds them exactly
        ([most - 1, 1], A is FLOAT32),
        ([most, -1, 1], False),
        ([-most, 1, -1], False),
        ([odd, 0, 0], True),
        ([0, odd], True),
        ([0, -odd], True),
        ([most + 2, 0], True),
        ([odd, odd], False),
        ([1, 0.5], False),
        ([0.5, 1], False),
        ([least / 2, 0], False),
        ([64 * least], True),
        ([0, 0], True),
    ):
        rows = [np.array([[float(term)]]) for term in terms]
        assert (chosen(rows, A).r[0, 0] == 0) == wanted, terms
        assert (chosen(rows[1:], A, float(terms[0])).r[0, 0] == 0) == wanted, terms


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_row_of_many_terms_is_exact_or_unknown(A) -> None:
    """Their sum is known, but not what rounding makes of it, nor of it and anything else."""
    most = MOST[A.name]
    for value, size, b, exactly in (
        (3, 7, 0, True),
        (3, most - 1, 0, True),
        (3, most, 0, A is FLOAT32),
        (3, most - 1, 1, A is FLOAT32),
        (3, 2 * most - 3, 0, A is FLOAT32),
        (3, 2 * most - 1, 0, False),
        (-3, 2 * most - 1, 0, False),
        (3, 2 * most - 4, 1, False),
        (3, 7, 0.5, False),
        (0, 0, 0.5, True),
        (0, 0, 3, True),
        (0, 2, 0.5, False),
        (1, 1, 0.5, False),
    ):
        row = (np.array([[float(value)]]), np.array([[float(size)]]), False)
        y = added([row], NOTHING, np.zeros((0, 1)), np.array([float(b)]), A)
        assert y.r[0, 0] == (0 if exactly else np.inf), (value, size, b)
        assert y.m[0, 0] == value + b


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_what_overflows_or_is_unknown_is_not_known(A) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        for x in (A.big, np.inf, np.nan):
            assert np.isinf(products(exact(np.array([[x]])), np.array([2.0]), A).r).all()
        assert np.isinf(chosen([np.array([[A.big]])], A).r).all()
        assert np.isinf(chosen([np.array([[1.0]])], A, A.big).r).all()
        assert np.isfinite(chosen([np.array([[0.4 * A.big]])], A).r).all()
        wide = Ball(np.zeros((1, 1)), np.array([[A.big]]))
        assert np.isinf(products(wide, np.array([1.0]), A).r).all()
        assert np.isinf(products(Ball(np.zeros((1, 1)), np.array([[np.inf]])), np.array([1.0]), A).r).all()


def test_a_fraction_that_no_sum_reads_does_not_matter() -> None:
    W, b = np.array([[0.0], [2.0]]), np.array([1.0])
    y = added([], exact(np.array([[0.5, 3.0]])), W, b, FLOAT32)
    assert (y.m.tolist(), y.r.tolist()) == ([[7]], [[0]])
    assert added([], exact(np.array([[3.0, 0.3]])), W, b, FLOAT32).r.min() > 0


def test_weights_may_differ_from_token_to_token() -> None:
    x, W = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[[1.0], [10.0]], [[100.0], [1000.0]]])
    rows, b = np.array([[5.0], [7.0]]), np.array([0.5])
    assert added([(rows, rows, True)], exact(x), W, b, REAL).m.tolist() == [[26.5], [4307.5]]
    assert added([(rows, rows, True)], exact(x), W[0], b, REAL).m.tolist() == [[26.5], [50.5]]
    assert rows.tolist() == [[5], [7]]  # nothing is changed in place


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
@pytest.mark.parametrize("kind", ["whole", "small", "ordinary"])
def test_every_order_of_a_sum_is_inside(A, kind) -> None:
    """Rows of one term, products and a bias; where the radius is 0, every order gives one number."""
    rng, exactly, rounded = np.random.default_rng([4, len(A.name), len(kind)]), 0, 0
    for _ in range(70):
        count, i = int(rng.integers(0, 3)), int(rng.integers(0, 3))
        rows = [draw(rng, A, kind, (3, 2)) * (rng.random((3, 2)) < 0.6) for _ in range(count)]
        m, W, b = draw(rng, A, kind, (3, i)), draw(rng, A, kind, (i, 2)), draw(rng, A, kind, (2,))
        W, b = W * (rng.random(W.shape) < 0.8), b * (rng.random() < 0.5)
        r = np.where(rng.random(m.shape) < 0.2, 2.0**-30, 0.0)
        y = added([(row, np.abs(row), True) for row in rows], Ball(m, r), W, b, A)
        for t, o in np.ndindex(3, 2):
            sign = int(rng.integers(-1, 2))
            points = [Fraction(m[t, k]) + sign * Fraction(r[t, k]) for k in range(i)]
            pairs = [(row[t, o], 1.0) for row in rows] + list(zip(points, W[:, o].tolist(), strict=True))
            for value in set(sums(pairs, b[o], A.name)):
                assert y.r[t, o] == np.inf or abs(value - Fraction(y.m[t, o])) <= Fraction(y.r[t, o])
            if y.r[t, o] == 0:
                assert all_equal(pairs, b[o], A, y.m[t, o])
            exactly, rounded = exactly + (y.r[t, o] == 0), rounded + (0 < y.r[t, o] < np.inf)
    assert exactly > 50
    assert rounded > 50


def test_the_radius_is_not_absurd() -> None:
    x = Ball(np.array([[0.3, 0.7]]), np.array([[0.0, 0.125]]))
    y = added([(np.array([[0.1]]),) * 2 + (True,)], x, np.array([[1.5], [-2.5]]), np.array([0.2]), FLOAT32)
    assert abs(y.m[0, 0] - (0.1 + 0.45 - 1.75 + 0.2)) < 1e-15
    assert 0.3125 < y.r[0, 0] < 0.3125 + 1e-5


def rounded(rng, A) -> tuple[list, Ball, np.ndarray, np.ndarray]:
    """Rows of one term each, balls, weights and a bias, of sizes at which another part of the radius counts."""
    i = int(rng.integers(0, 4))
    values = [scaled(rng, (2, 2), A) for _ in range(int(rng.integers(0, 4)))]
    rows = [(value, np.abs(value), True) for value in values]
    return rows, ball(rng, (2, i), A), scaled(rng, (i, 2), A), scaled(rng, 2, A)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_the_radius_is_the_one_that_is_written_out(A) -> None:
    """With one matrix of weights, and with one for each token."""
    rng, met = np.random.default_rng(11), 0
    for _ in range(300):
        rows, x, W, b = rounded(rng, A)
        for weights in (W, np.stack([W, W])):
            with np.errstate(under="ignore"):
                y = added(rows, x, weights, b, A)
            for t, o in np.ndindex(2, 2):
                if y.r[t, o]:
                    met += 1
                    assert same(y.r[t, o], radii.of_added(rows, x, W, b, A, t, o)), (A.name, rows, x, W, b)
    assert met > 500


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_the_radius_of_a_long_sum_counts_its_own_roundings(A) -> None:
    n = 1 << 14
    for m, r in ((0.75, 0.0), (0.0, 0.25), (0.75, 0.25)):
        x, W, b = Ball(np.full((1, n), m), np.full((1, n), r)), np.full((n, 1), 0.75), np.zeros(1)
        assert same(added([], x, W, b, A).r[0, 0], radii.of_added([], x, W, b, A, 0, 0)), (m, r)
