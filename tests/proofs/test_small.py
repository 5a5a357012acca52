"""The small functions that the others rest on, each against its lemma: gamma, guarded, around, UP."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer_checker.core.balls import (
    ARITHMETICS,
    NORMAL,
    TINY,
    TWICE,
    UP,
    Ball,
    U,
    around,
    gamma,
    guarded,
    product,
)
from onelayer_checker.core.exactness import _count
from tests.proofs.edges import beside, numbers
from tests.proofs.modules import NAMES
from tests.proofs.theorems import MODEL, SUMS, Q, gamma_sound, growth, nearest

everywhere = settings(max_examples=250, derandomize=True, deadline=None, database=None)
arithmetics = st.sampled_from([ARITHMETICS[name] for name in NAMES])


def edges(name: str) -> st.SearchStrategy[float]:
    kind = 32 if name == "float32" else 64
    return st.one_of(st.sampled_from(numbers(name)), st.floats(width=kind, allow_nan=False, allow_infinity=False))


@pytest.mark.parametrize("name", NAMES)
def test_the_constants_are_those_of_the_formats(name) -> None:
    A, f = ARITHMETICS[name], MODEL[name]
    assert (Q(A.u), Q(A.tiny)) == (f.u, f.tiny)
    assert Q(A.whole) == 2 ** SUMS[name].prec
    assert Q(A.big) <= Q(2) ** (126 if name == "float32" else 1000)
    assert Q(2) ** -53 == Q(U)
    assert Q(2) ** -1022 == Q(NORMAL)
    assert Q(TWICE) == 1 + Q(2) ** -11
    assert 0 < TINY <= 2.0**-1000


def test_up_covers_four_thousand_roundings() -> None:
    assert (1 - Q(U)) ** 4000 * Q(UP) >= 1
    assert (1 - Q(U)) ** 4000 * (1 - Q(U)) * Q(UP) >= 1  # and its own


@everywhere
@given(st.integers(0, 1 << 52), st.sampled_from([U, *(A.u for A in ARITHMETICS.values())]))
def test_gamma_is_at_least_what_the_theorem_says(k, u) -> None:
    for count in {k, k % 300, int(0.25 / u) + k % 5 - 2 if u else 0}:
        found = float(gamma(count, u))
        if found < np.inf:
            assert Q(found) >= gamma_sound(Q(count), Q(u))
            if count < 300:
                assert Q(found) >= growth(count, Q(u))
        else:
            assert not Q(count) * Q(u) < Q(1, 4) * (1 - Q(2) ** -50)


@everywhere
@given(st.data(), arithmetics)
def test_what_is_guarded_does_not_overflow(data, A) -> None:
    sizes = st.sampled_from(
        [0.0, 1.0, np.nan, np.inf, *beside("real", A.big), *beside("real", A.big / UP), A.big / 2]
    )
    radii = st.sampled_from([0.0, 1.0, np.nan, np.inf, 1e300])
    size = np.array(data.draw(st.lists(sizes, min_size=2, max_size=4)))
    r = np.array(data.draw(st.lists(radii, min_size=len(size), max_size=len(size))))
    with np.errstate(all="ignore"):
        found = guarded(r.copy(), size, A)
    for k, x in enumerate(found.tolist()):
        assert not np.isnan(x)
        if x < np.inf:
            assert x == r[k]
            assert Q(float(size[k])) < Q(A.big)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_what_a_token_is_rounded_to_stays_around_it(name) -> None:
    """Any real number within the radius, and what it is rounded to, is in the ball, also if it is not widened."""
    A, f = ARITHMETICS[name], MODEL[name]
    kept = 0

    @everywhere
    @given(edges(name), edges(name), st.sampled_from([1, 0, -1, Fraction(1, 3), Fraction(-7, 8)]))
    def is_near(x, radius, part) -> None:
        nonlocal kept
        radius = abs(radius)
        with np.errstate(all="ignore"):
            ball = around(np.array([x]), radius, A)
        r = float(ball.r[0])
        assert float(ball.m[0]) == x
        assert r >= radius
        kept += r == radius
        y = Q(x) + Q(radius) * part
        if r < np.inf and abs(y) < Q(A.big):
            assert radius == 0 or abs(Q(x)) + Q(radius) < Q(A.big)
            for z in nearest(f, y):
                assert abs(z - Q(x)) <= Q(r), (x, radius, part)

    is_near()
    assert kept > 20


@everywhere
@given(st.data())
def test_counting_and_small_products_are_exact(data) -> None:
    """`_count` counts, and a product of few columns is the sum of their products."""
    k, T, o = (data.draw(st.integers(1, 6)) for _ in range(3))
    bits = st.booleans()
    marked = np.array(data.draw(st.lists(bits, min_size=T * k, max_size=T * k))).reshape(T, k)
    used = np.array(data.draw(st.lists(bits, min_size=k * o, max_size=k * o))).reshape(k, o)
    wanted = (marked[:, :, None] & used[None]).sum(axis=1)
    assert _count(marked, used).tolist() == wanted.tolist()
    for groups in ((), (1,), (2,)):
        a, b = np.broadcast_to(marked * 3.0, (*groups, T, k)), np.broadcast_to(used * -5.0, (*groups, k, o))
        assert product(a, b).tolist() == np.broadcast_to(-15.0 * wanted, (*groups, T, o)).tolist()


def test_the_ends_of_a_ball_contain_it() -> None:
    """Theorem ball_encloses, at the edges of float64."""
    some = np.array([x for x in numbers("float64") if abs(x) < 2.0**1000])
    m, r = (a.ravel() for a in np.meshgrid(some, np.abs(some)))
    ball = Ball(m, r)
    for middle, radius, low, high in zip(
        m.tolist(), r.tolist(), ball.low.tolist(), ball.high.tolist(), strict=True
    ):
        assert Q(low) <= Q(middle) - Q(radius)
        assert Q(high) >= Q(middle) + Q(radius)
