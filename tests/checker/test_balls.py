"""The operations on balls, each by its definition: constants, ends, error factors, guards, products, tokens."""

from __future__ import annotations

from dataclasses import astuple, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from onelayer_checker.core import balls
from onelayer_checker.core.balls import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, REAL, UP, Ball, U, exact
from tests.checker.large import ARITHMETICS

EVERY = list(ARITHMETICS.values())


def test_the_arithmetics_are_those_of_the_specification() -> None:
    twice = 1 + 2.0**-11
    assert astuple(REAL) == ("real", 0, 2.0**53, 0, 2.0**1000, 0, 0)
    assert astuple(FLOAT64) == ("float64", 2.0**-53 * twice, 2.0**53, 2.0**-1022, 2.0**1000, 2.0**-47, 3)
    assert astuple(FLOAT32) == ("float32", 2.0**-24 * twice, 2.0**24, 2.0**-126, 2.0**126, 2.0**-18, 3)
    assert astuple(FLOAT16) == ("float16", 2.0**-11 * twice, 2.0**11, 2.0**-14, 2.0**15, 2.0**-5, 3)
    assert astuple(BFLOAT16) == ("bfloat16", 2.0**-8 * twice, 2.0**8, 2.0**-126, 2.0**126, 2.0**-2, 3)
    assert list(balls.ARITHMETICS.values()) == [REAL, FLOAT64, FLOAT32, FLOAT16, BFLOAT16]
    assert list(balls.ARITHMETICS) == [A.name for A in balls.ARITHMETICS.values()]
    assert (U, UP, balls.TINY, balls.NORMAL) == (2.0**-53, 1 + 2.0**-40, 2.0**-1000, 2.0**-1022)


def test_the_ends_of_a_ball_are_outside() -> None:
    rng = np.random.default_rng(0)
    m, r = rng.standard_normal(200) * 10.0 ** rng.uniform(-3, 3, 200), np.abs(rng.standard_normal(200))
    ball = Ball(m, r * 10.0 ** rng.uniform(-17, 3, 200))
    for a, z, x, y in zip(ball.low.tolist(), ball.high.tolist(), ball.m.tolist(), ball.r.tolist(), strict=True):
        assert Fraction(a) <= Fraction(x) - Fraction(y)
        assert Fraction(z) >= Fraction(x) + Fraction(y)
        assert z - a <= 2 * y + 8 * U * (abs(x) + y)


def test_balls_are_cut_and_put_together_with_their_radii() -> None:
    ball = Ball(np.arange(6.0).reshape(2, 3), -np.arange(6.0).reshape(2, 3))
    assert ball[1].m.tolist() == [3, 4, 5]
    assert ball[1].r.tolist() == [-3, -4, -5]
    assert ball.reshape(3, 2).m.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert ball.reshape(3, 2).r.tolist() == [[0, -1], [-2, -3], [-4, -5]]
    for axis, shape in ((0, (4, 3)), (1, (2, 6))):
        both = balls.joined([ball, ball], axis)
        assert both.m.shape == both.r.shape == shape
        assert (both.r == -both.m).all()
    assert balls.joined([ball, ball]).m.tolist() == [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]
    known = exact(np.array([1, 2], np.float32))
    assert known.m.dtype == np.float64
    assert known.r.tolist() == [0, 0]


def test_the_error_of_many_roundings_is_not_understated() -> None:
    """At least k u / (1 - k u), for units of any size; infinite where that means nothing."""
    for u in (2.0**-53, 2.0**-24, 2.0**-60, 2.0**-70, 1e-3, FLOAT32.u, FLOAT64.u):
        for k in (0, 1, 2, 3, 5, 7, 100, 4097, 123457):
            found, x = float(balls.gamma(k, u)), Fraction(k) * Fraction(u)
            if k * u >= 0.25:
                assert found == np.inf
            else:
                assert Fraction(found) >= x / (1 - x)
                assert found <= k * u * (1 + 2 * k * u) * (1 + 1e-11)
    assert np.isinf(balls.gamma(1, 0.25))
    assert balls.gamma(np.array([0, 1]), 0.0).tolist() == [0, 0]
    assert balls.gamma(np.nan, 0.5) == np.inf
    assert 0.3 < balls.gamma(1, 0.24) < 0.36


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_what_might_overflow_has_no_radius(A) -> None:
    """Entry by entry, also where most are harmless."""
    r = np.array([0.0, 1.0, 2.0, 3.0, np.nan, np.inf, 4.0])
    size = np.array([0.0, A.big / 2, A.big, np.inf, 0.0, 0.0, np.nan])
    assert balls.guarded(r, size, A).tolist() == [0, 1] + [np.inf] * 5
    for k in range(7):
        assert balls.guarded(r[[k, 1]], size[[k, 1]], A).tolist() == [[0, 1, *[np.inf] * 5][k], 1]
    near = A.big * (1 - 2.0**-41)
    assert balls.guarded(np.ones(1), np.array([near]), A).tolist() == [np.inf]
    assert balls.guarded(np.ones(2), np.array([near, 1]), A).tolist() == [np.inf, 1]
    assert balls.guarded(np.ones(1), np.array([A.big / 2]), A).tolist() == [1]
    last = next(x for x in A.big * (1 - 2.0**-40 + np.arange(-8, 8) * 2.0**-53) if x * UP == A.big)
    assert balls.guarded(np.ones(1), np.array([last]), A).tolist() == [np.inf]
    assert balls.guarded(np.ones(2), np.array([last, 1]), A).tolist() == [np.inf, 1]


def test_products_are_matrix_products() -> None:
    rng = np.random.default_rng(1)
    for shape, k, out in product(((), (3,)), range(1, 8), (1, 4)):
        a, b = rng.standard_normal((*shape, 5, k)), rng.standard_normal((*shape, k, out))
        before = a.copy(), b.copy()
        np.testing.assert_allclose(balls.product(a, b), a @ b, rtol=1e-13, atol=1e-13)
        assert (a == before[0]).all()
        assert (b == before[1]).all()


def test_powers_of_two_are_told_from_other_numbers() -> None:
    powers = [0.0, -0.0, 1, -1, 2, 0.5, 2.0**-1022, 2.0**1000, -(2.0**-126)]
    others = [3, -1.5, 1 + 2.0**-52, 2.0**-1023, 2.0**-1074, 0.1, 1 - 2.0**-53]
    assert balls.is_power(np.array(powers)).all()
    assert not balls.is_power(np.array(others)).any()


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_tokens_that_are_known_are_points(A) -> None:
    x = np.array([[0.1, 3.0]])
    assert balls.around(x, 0.0, A).r.tolist() == [[0, 0]]
    assert balls.around(x, 0.25, A).m is x
    assert (balls.around(x, 0.25, A).r >= 0.25).all()
    with np.errstate(over="ignore"):  # numbers that are none of float32
        assert np.isinf(balls.around(x, A.big, A).r).all() or A is REAL
    assert balls.around(np.array([1.0, 0.75]), 0.25, A).r.tolist() == [0.25, 0.25]


def test_live_terms_are_counted() -> None:
    """A term may be other than zero if its weight is, and its input is not exactly zero."""
    rng = np.random.default_rng(2)
    for n, share in product((1, 3, 6, 7, 8, 20), (0.0, 0.2, 0.45, 0.55, 1.0)):
        for shape in ((), (2,)):
            m = np.where(rng.random((*shape, 9, n)) < share, rng.standard_normal((*shape, 9, n)), 0.0)
            r = np.where(rng.random(m.shape) < share / 4, 0.5, 0.0)
            W = rng.standard_normal((*shape, n, 4)) * (rng.random((*shape, n, 4)) < 0.7)
            wanted = (((m != 0) | (r != 0)) * 1.0) @ ((W != 0) * 1.0)
            found = np.broadcast_to(balls.live_terms(Ball(m, r), W), wanted.shape)
            assert (found >= wanted).all()
            assert (found <= np.count_nonzero(W, axis=-2, keepdims=True)).all()
            if n > 6 and 2 * np.count_nonzero((m != 0) | (r != 0)) < m.size:
                assert (found == wanted).all()


def test_more_live_terms_than_float32_counts() -> None:
    """One full row of three: to add 1 to 2^24 in float32 changes nothing."""
    n = (1 << 24) + 1
    m, r = np.zeros((3, n), np.int8), np.broadcast_to(np.int8(0), (3, n))
    m[1] = 1
    assert balls.live_terms(Ball(m, r), np.broadcast_to(np.int8(1), (n, 1))).max() >= n


def needed(x: Ball, W, b, A, t: int, o: int) -> Fraction:
    """What the radius of a sum must be at least: every term is off by all the roundings it may meet."""
    terms = [(abs(Fraction(x.m[t, i])), Fraction(x.r[t, i]), abs(Fraction(W[i, o]))) for i in range(len(W))]
    terms = [(m, r, w) for m, r, w in terms if w and (m or r)]
    inexact = any(not is_power(w) for _, _, w in terms)
    count = len(terms) + bool(b[o])
    steps = max(count - 1, 0) + inexact
    grown = (1 + Fraction(A.u)) ** steps - 1
    sizes = sum((m * w for m, _, w in terms), abs(Fraction(b[o])))
    spread = sum((r * w for _, r, w in terms), Fraction(0))
    return grown * (sizes + spread) + spread


def is_power(w: Fraction) -> bool:
    return w.numerator & (w.numerator - 1) == 0 and w.denominator & (w.denominator - 1) == 0


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_sum_has_at_least_the_radius_that_it_needs(A) -> None:
    """And not much more; also where it stands beside sums and rows of quite another size."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        n, rows, outs = int(rng.integers(1, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        m = np.round(rng.standard_normal((rows, n)) * 64) / 64 * (rng.random((rows, n)) < rng.choice([0.3, 1]))
        r = np.abs(rng.standard_normal((rows, n))) * rng.choice([0, 0, 1e-9, 0.5])
        W = rng.standard_normal((n, outs)) * (rng.random((n, outs)) < 0.8)
        W = np.where(rng.random((n, outs)) < 0.4, np.sign(W) * 2.0 ** rng.integers(-3, 4, (n, outs)), W)
        b = rng.standard_normal(outs) * (rng.random(outs) < 0.5)
        y = balls.linear(Ball(m, r), W, b, A)
        stream = Ball(np.broadcast_to(b, (rows, outs)).copy(), np.zeros((rows, outs)))
        beside = balls.linear(Ball(m, r), W, stream, A)
        np.testing.assert_allclose(beside.r, y.r, rtol=1e-9)
        for t, o in np.ndindex(rows, outs):
            least = needed(Ball(m, r), W, b, A, t, o)
            assert Fraction(y.r[t, o]) >= least
            sizes = np.abs(m[t]) @ np.abs(W[:, o]) + abs(b[o])
            assert y.r[t, o] <= float(least) * 1.01 + 4 * (n + 2) * (U + A.u) * sizes + 1e-30


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_stream_is_a_term_with_its_own_radius(A) -> None:
    x, W = exact(np.array([[0.0, 0.0]])), np.ones((2, 1))
    y = balls.linear(x, W, Ball(np.array([[3.0]]), np.array([[0.25]])), A)
    assert y.m.tolist() == [[3]]
    assert 0.25 <= y.r[0, 0] < 0.250001
    y = balls.linear(exact(np.array([[1.0, 0.5]])), W, Ball(np.array([[0.0]]), np.array([[0.25]])), A)
    assert 0.25 + 1.75 * A.u <= y.r[0, 0] < 0.2500009
    huge = balls.linear(x, W, Ball(np.array([[0.0]]), np.array([[A.big]])), A)
    assert np.isinf(huge.r).all()
    huge = balls.linear(x, W, exact(np.array([[A.big]])), A)
    assert np.isinf(huge.r).all()


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_one_row_that_overflows_does_not_make_the_others_unknown(A) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        x = exact(np.array([[A.big / 2, A.big / 2], [1.0, 1.0], [0.0, 0.0]]))
        y = balls.linear(x, np.array([[1.5, 0.0], [1.5, 1.0]]), np.zeros(2), A)
        assert np.isinf(y.r[0]).all()
        assert (y.r[1:] < 1e-5).all()
        many = exact(np.full((2, 64), [[A.big / 64], [1.0]]))
        y = balls.linear(many, np.full((64, 1), 1.5), 0.0, A)
        assert np.isinf(y.r[0, 0])
        assert y.r[1, 0] < 1e-2
        unknown = Ball(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[np.inf, 0.0], [0.0, 0.0]]))
        y = balls.linear(unknown, np.array([[0.0], [1.0]]), 0.0, A)
        assert np.isinf(y.r[0, 0])
        assert y.r[1, 0] == 0


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_sum_of_two_has_the_radius_that_it_needs(A) -> None:
    rng = np.random.default_rng(4)
    x, y = (
        Ball(rng.standard_normal(300), np.abs(rng.standard_normal(300)) * rng.choice([0, 1e-9, 1])) for _ in "xy"
    )
    total = balls.add(x, y, A)
    for a, p, b, q, m, r in zip(*(z.tolist() for z in (x.m, x.r, y.m, y.r, total.m, total.r)), strict=True):
        spread, middle = Fraction(p) + Fraction(q), Fraction(a) + Fraction(b)
        worst = max(
            abs((middle + s * spread) * (1 + t * Fraction(A.u)) - Fraction(m)) for s in (-1, 1) for t in (-1, 1)
        )
        assert (
            worst
            <= Fraction(r)
            <= worst * (1 + Fraction(1, 10**6)) + Fraction(4 * U * (abs(a) + abs(b))) + Fraction(1e-30)
        )
    for m, r in ((0.0, 0.0), (3.0, 0.0), (3.0, 0.5), (-2.0, 0.0)):
        for zero in (exact(np.zeros(1)), exact(-np.zeros(1))):
            for pair in ((Ball(np.array([m]), np.array([r])), zero), (zero, Ball(np.array([m]), np.array([r])))):
                assert balls.add(*pair, A).r.tolist() == [r]
    if A.tiny:
        faint = exact(np.array([A.tiny / 2]))
        assert balls.add(faint, exact(np.zeros(1)), A).r[0] >= A.tiny / 2


def test_relu_keeps_what_is_positive() -> None:
    for m, r, middle, radius in (
        (3, 0, 3, 0),
        (3, 1, 3, 1),
        (-3, 0, 0, 0),
        (-3, 2, 0, 0),
        (-3, 4, 0, 1),
        (0, 2, 0, 2),
        (1, 4, 1, 4),
    ):
        y = balls.relu(Ball(np.array([float(m)]), np.array([float(r)])))
        assert y.m.tolist() == [middle]
        assert radius <= y.r[0] <= radius * (1 + 2.0**-39)
        beside = balls.relu(Ball(np.array([float(m), 0.0, 1.0]), np.array([float(r), np.inf, np.nan])))
        assert radius <= beside.r[0] <= radius * (1 + 2.0**-39)
        assert beside.r[1:].tolist() == [np.inf, np.inf]
    for x in np.random.default_rng(5).uniform(1, 2, 200).tolist():
        y = balls.relu(Ball(np.array([-0.3]), np.array([x])))
        assert Fraction(y.r[0]) >= Fraction(x) - Fraction(0.3)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_product_of_balls_has_the_radius_that_it_needs(A) -> None:
    """Ends of all balls, every rounding of as many as are counted the same way; exact zeros stay exact."""
    rng = np.random.default_rng(6)
    for _ in range(40):
        k, extra = int(rng.integers(1, 6)), int(rng.choice([0, 4]))
        x, y = (
            Ball(
                rng.standard_normal(s) * (rng.random(s) < 0.8),
                np.abs(rng.standard_normal(s)) * rng.choice([0, 1e-9, 1]),
            )
            for s in ((2, k), (k, 2))
        )
        z = balls.dot(x, y, A, extra)
        for i, j in np.ndindex(2, 2):
            a, p, b, q = ([Fraction(v) for v in part.tolist()] for part in (x.m[i], x.r[i], y.m[:, j], y.r[:, j]))
            sizes = sum((abs(u) * abs(v) for u, v in zip(a, b, strict=True)), Fraction(0))
            spread = sum(
                (abs(u) * t + s * (abs(v) + t) for u, s, v, t in zip(a, p, b, q, strict=True)), Fraction(0)
            )
            grown = (1 + Fraction(A.u)) ** (k + 1 + extra) - 1
            assert Fraction(z.r[i, j]) >= spread + grown * (sizes + spread)
            assert (
                z.r[i, j]
                <= float(spread * (1 + 2 * grown)) * (1 + 1e-9) + float(sizes) * 2 * (k + 8) * (U + A.u) + 1e-30
            )
            middle = sum((u * v for u, v in zip(a, b, strict=True)), Fraction(0))
            assert abs(middle - Fraction(z.m[i, j])) <= Fraction(z.r[i, j])
    zero = balls.dot(exact(np.array([[0.0, 2.0]])), exact(np.array([[5.0], [0.0]])), A)
    assert zero.m.tolist() == zero.r.tolist() == [[0]]
    half = balls.dot(exact(np.array([[0.0, 2.0]])), Ball(np.array([[5.0], [0.0]]), np.array([[0.0], [0.5]])), A)
    assert half.r[0, 0] >= 1


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_sums_overflow_of_inputs_that_are_small(A) -> None:
    """Weights, biases and their number are what is large; the inputs are below 2^40, and nothing cancels."""
    for x, W, b in (
        (np.full((1, 1), 2.0**39), np.full((1, 1), A.big * 2.0**-30), np.zeros(1)),
        (np.full((1, 64), 2.0**30), np.full((64, 1), A.big * 2.0**-34), np.zeros(1)),
        (np.full((1, 2), 1.0), np.full((2, 1), A.big / 2), np.zeros(1)),
        (np.full((1, 1), 4.0), np.full((1, 1), A.big / 2), np.zeros(1)),
        (np.ones((1, 1)), np.ones((1, 1)), np.full(1, A.big)),
    ):
        y = balls.linear(exact(x), W, b, A)
        assert y.r.tolist() == [[np.inf]]
        y = balls.linear(Ball(0 * x, x), W, b, A)
        assert y.r.tolist() == [[np.inf]]
        beside = np.concatenate([W, 0 * W], axis=1)
        y = balls.linear(exact(x), beside, np.concatenate([b, 0 * b]), A)
        assert (y.r[0, 0], y.r[0, 1] < 1) == (np.inf, True)
    stream = Ball(np.zeros((1, 2)), np.array([[A.big, 0.0]]))
    y = balls.linear(exact(np.ones((1, 1))), np.ones((1, 2)), stream, A)
    assert (y.r[0, 0], y.r[0, 1] < 1) == (np.inf, True)


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_copy_may_overflow(A) -> None:
    """A product with a power of two rounds nothing, and is too large all the same."""
    for x, w in ((A.big / 2, 4.0), (A.big, 1.0), (2.0**60, A.big * 2.0**-59)):
        y = balls.linear(exact(np.array([[x], [1.0]])), np.array([[w]]), 0.0, A)
        assert (y.r[0, 0], y.r[1, 0] < A.big) == (np.inf, True)


def test_a_radius_of_one_is_a_radius() -> None:
    y = balls.linear(Ball(np.array([[3.0]]), np.array([[1.0]])), np.array([[1.0]]), 0.0, REAL)
    assert y.r[0, 0] >= 1


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_a_ball_that_reaches_what_is_flushed_reaches_zero(A) -> None:
    x = Ball(np.array([[5 * A.tiny]]), np.array([[4.5 * A.tiny]]))
    assert balls.linear(x, np.array([[1.0]]), 0.0, A).r[0, 0] >= 5 * A.tiny


def test_of_too_many_roundings_nothing_is_known() -> None:
    """Not even of a sum of zeros, nor of weights: an arithmetic as coarse as that stands for very long sums."""
    coarse = replace(FLOAT32, u=0.05)
    W = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    with np.errstate(invalid="ignore"):
        y = balls.linear(exact(np.zeros((1, 6))), W, 0.0, coarse)
        assert (y.r[0, 0], y.r[0, 1]) == (np.inf, 0)
        z = balls.dot(Ball(np.zeros((1, 3)), np.full((1, 3), 0.5)), Ball(np.zeros((3, 1)), np.ones((3, 1))), coarse)
        assert z.r.tolist() == [[np.inf]]
        p = balls.softmax(exact(np.array([[0.0, -800.0, -1.0]])), True, coarse)
        assert p.r.tolist() == [[np.inf] * 3]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_product_of_balls_overflows_where_four_times_its_terms_do(A) -> None:
    for k, extra in ((1, 0), (4, 0), (4, 4)):
        most = A.big / 4 / k / (k if extra else 1)
        for size, known in ((most, False), (most * (1 - 2.0**-20), True)):
            for x, y in (
                (exact(np.ones((1, k))), exact(np.array([[size, 0.0]] + [[0.0, 0.0]] * (k - 1)))),
                (exact(np.full((1, k), 2.0)), Ball(np.zeros((k, 2)), np.full((k, 2), size / 2))),
                (Ball(np.full((1, k), 0.5), np.full((1, k), 0.5)), exact(np.full((k, 2), size))),
            ):
                z = balls.dot(x, y, A, extra)
                assert (z.r[0, 0] < np.inf) if known else (z.r == np.inf).all()


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_sum_of_two_overflows_by_its_radius(A) -> None:
    x = Ball(np.array([1.0, 0.0, 1.0]), np.array([A.big, A.big, 1.0]))
    for y in (exact(np.zeros(3)), exact(np.ones(3))):
        assert (balls.add(x, y, A).r == np.inf).tolist() == [True, True, False]


def test_an_exponential_is_zero_only_far_below() -> None:
    found = balls.exp_nonpositive(np.array([-700.0, -700.5, -1400.0, -np.inf, 0.0]))
    assert (found > 0).tolist() == [True, False, False, False, True]


def test_more_terms_than_float32_counts() -> None:
    """Whether a product in float32 loses one of them depends on its order: they are counted otherwise."""
    n = 1 << 24
    x = Ball(np.zeros((1, n), np.int8), np.broadcast_to(np.int8(0), (1, n)))
    found = balls.live_terms(x, np.broadcast_to(1.0, (n, 1)))
    assert found.dtype.kind == "i"
    assert found[0, 0] == n


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("wide", [False, True])
def test_what_flushing_costs_may_be_too_large(n, wide) -> None:
    """Of a large weight or a large operand beside a faint one: an eighth of what may not be reached is too much."""
    A = FLOAT16
    faint = 2.0**-14
    far = A.big / (32 * (n + 1) * (faint + 2.0**-1022)) - 2 - faint
    for large, known in ((far, False), (far * (1 - 2.0**-40), True)):
        x, w = (faint, large) if wide else (large, faint)
        operands = np.zeros((1, n))
        operands[0, 0] = x
        found = balls.linear(exact(operands), np.full((n, 1), w), 0.0, A)
        assert np.isfinite(found.r).all() == known


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_a_radius_counts_beside_what_overflows(A) -> None:
    x = Ball(np.array([[0.45 * A.big]]), np.array([[0.1 * A.big]]))
    assert np.isinf(balls.linear(x, np.ones((1, 1)), 0.0, A).r).all()
    near = Ball(x.m, x.r / 4)
    assert np.isfinite(balls.linear(near, np.ones((1, 1)), 0.0, A).r).all()
    x = Ball(np.array([0.95 * A.big]), np.array([0.1 * A.big]))
    assert np.isinf(balls.add(x, exact(np.zeros(1)), A).r).all()
    assert np.isfinite(balls.add(Ball(x.m, x.r / 4), exact(np.zeros(1)), A).r).all()
