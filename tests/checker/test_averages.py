"""Equal weights: one sum stands for a product with every query, and its ball is no smaller than the product's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.averages import Totals, are_whole, averaged_exactly, mean_alike, weighed_alike
from onelayer_checker.core.balls import FLOAT32, Ball, dot, exact, softmax
from tests.checker.large import ARITHMETICS

parametrize = pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)


def weights(n: int, A) -> Ball:
    return softmax(Ball(np.zeros((1, n)), np.zeros((1, n))), True, A)


@parametrize
def test_it_encloses_what_dot_encloses(A) -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 128):
        p = weights(n, A)
        y = Ball(rng.standard_normal((3, n, 2)) * 100, rng.choice([0.0, 0.25], (3, n, 2)))
        one, all_ = weighed_alike(p[:, :1], Totals.of(y), n, A, extra=4), dot(p[None], y, A, extra=4)
        assert (np.abs(one.m - all_.m[:, 0]) <= one.r * 1e-3 + 1e-12).all()
        assert (one.r >= all_.r[:, 0] * (1 - 1e-9)).all()
        assert (one.r <= all_.r[:, 0] * 1.01 + 1e-12).all()


@parametrize
def test_it_contains_the_exact_average(A) -> None:
    rng = np.random.default_rng(2)
    for n in (2, 3, 24):
        y = rng.integers(-(2**20), 2**20, (50, n, 1)) * 1.0
        found = weighed_alike(weights(n, A)[:, :1], Totals.of(Ball(y, 0 * y)), n, A, extra=4)
        for row, m, r in zip(y[:, :, 0].tolist(), found.m[:, 0].tolist(), found.r[:, 0].tolist(), strict=True):
            exact = sum(map(Fraction, row)) / n
            assert abs(Fraction(m) - exact) <= Fraction(r)
            if A.u > 0:  # every product rounded away from 0, and their sum too
                worst = sum(abs(Fraction(x)) for x in row) / n * 2 * Fraction(A.u)
                assert abs(Fraction(m) - exact) + worst <= Fraction(r)


@parametrize
def test_zeros_are_exact_and_what_overflows_is_unknown(A) -> None:
    y = Ball(np.zeros((1, 4, 2)), np.zeros((1, 4, 2)))
    assert weighed_alike(weights(4, A)[:, :1], Totals.of(y), 4, A, extra=4).r.tolist() == [[0.0, 0.0]]
    y = Ball(np.full((1, 4, 1), A.big / 16), np.zeros((1, 4, 1)))
    assert np.isinf(weighed_alike(weights(4, A)[:, :1], Totals.of(y), 4, A, extra=4).r).all()
    y = Ball(np.ones((1, 4, 1)), np.full((1, 4, 1), np.inf))
    with np.errstate(all="ignore"):
        assert np.isinf(weighed_alike(weights(4, A)[:, :1], Totals.of(y), 4, A, extra=4).r).all()


@parametrize
@pytest.mark.parametrize("k", [2, 64])
def test_its_radius_is_that_of_a_product_of_equal_weights(A, k) -> None:
    """To the last bit, where sums of two powers of two are exact: of points, of balls, of what may be flushed, and
    beside numbers that are so large that flushing costs more."""
    faint, most, large = max(A.tiny, 2.0**-1022), A.big / (4 * k * k), 2.0**40
    for (m, r), points, radii in (
        ((0.25, 0), [1, -2], [0, 0]),
        ((-0.25, 0), [0, 1], [2.0**-20, 0.25]),
        ((0.25, 0), [0, 0], [2.0**-20, 0]),
        ((0, 0.25), [1, 2], [0, 0]),
        ((0, 0.25), [0, 0], [1, 4]),
        ((0.5, 0), [faint, 0.5], [0, 0]),
        ((0.5, 0), [faint, large], [0, 0]),
        ((0.5, 0), [faint, 0], [0, large]),
        ((large, 0), [faint, faint], [0, 0]),
        ((0, large), [faint, faint], [0, 0]),
        ((-large, large / 8), [faint, 0], [0, 0]),
        ((0.5, 0), [most, 1], [0, 0]),
        ((1, 0), [most / 2, 1], [0, 0]),
        ((1, 0), [most, 1], [0, 0]),
        ((0.5, 0.5), [1, 0], [0, most]),
        ((0.5, 0), [1, 1], [0, np.inf]),
        ((0, np.inf), [1, 1], [0, 0]),
        ((np.inf, 0), [0, 0], [0, 0]),
    ):
        y = Ball(*(np.tile(np.array(part, float), (1, k, 1)) for part in (points, radii)))
        x = Ball(np.full((1, 1, k), m, float), np.full((1, 1, k), r, float))
        with np.errstate(all="ignore"):
            one, all_ = weighed_alike(x[0, :, :1], Totals.of(y), k, A, 4), dot(x, y, A, 4)
        exactly = k == 2 and not any(radii)
        np.testing.assert_allclose(one.r, all_.r[0], rtol=0 if exactly else 2.0**-47, atol=0, equal_nan=False)


@parametrize
def test_of_too_many_tokens_nothing_is_known(A) -> None:
    """So many that the error of their roundings means nothing, not even of zeros that are not certain."""
    p, y = exact(np.full((1, 1), 0.5)), Ball(np.zeros((1, 2, 1)), np.full((1, 2, 1), 0.25))
    for many, known in ((1 << 20, True), (1 << 22, A is not FLOAT32)):
        with np.errstate(invalid="ignore"):
            found = weighed_alike(p, Totals.of(y), many, A, 4).r[0, 0]
        assert (found < 1) if known else (found == np.inf)


@parametrize
def test_a_mean_is_exact_where_it_can_be_and_else_weighed(A) -> None:
    """Four whole numbers that add up; numbers that are none; three of them; and one whose sum is too large."""
    y = exact(np.array([[[1.0, -2, 1], [3, 4, 1], [0, 5, 1], [8, -7, 0]]]))
    found = mean_alike(Totals.of(y), 4, A)
    assert found.m.tolist() == [[3.0, 0.0, 0.75]]
    assert found.r.tolist() == [[0.0, 0.0, 0.0]]
    halves, few = exact(y.m + 0.5), y[:, :3]
    large = exact(np.array([[[1.0, A.whole, 0], [3, A.whole, 0], [0, A.whole, 0], [8, A.whole, 0]]]))
    for other, k in ((halves, 4), (few, 3), (large, 4)):
        totals = Totals.of(other)
        assert averaged_exactly(totals, k, A) is None
        wanted = weighed_alike(weights(k, A)[:, :1], totals, k, A, extra=4)
        found = mean_alike(totals, k, A)
        assert found.m.tolist() == wanted.m.tolist()
        assert found.r.tolist() == wanted.r.tolist()


def test_one_unknown_number_is_not_whole() -> None:
    assert are_whole(exact(np.arange(4.0)))
    assert not are_whole(Ball(np.arange(4.0), np.array([0.0, 0, 1, 0])))
    assert not are_whole(exact(np.array([0.0, 1, 2.5, 3])))
