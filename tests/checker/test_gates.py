"""Gates at the very edge: how far below 0 a sum must be to be off, written out a second time in exact rationals.

That it is enough is an argument, and other tests try to break it. Here it is what it says: no constant becomes
another, smaller or larger, without being changed in two places.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, Ball, exact
from onelayer_checker.search.operations import Gate
from onelayer_checker.search.parts import Rows, Token
from onelayer_checker.search.sums import Sums
from tests.checker.large import ARITHMETICS
from tests.checker.radii import TINY, U, gamma, number

EVERY = pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)
NOTHING, NO_WEIGHTS = exact(np.zeros((1, 0))), np.zeros((0, 2))


def row(*values: float, by: int = 1, terms: int = 1, more: float = 0.0, whole: bool = False) -> Rows:
    """Values of the first sum, whose terms are larger than they are by ``more``; the second has zeros."""
    value = np.array([[value, 0.0] for value in values])
    return Rows(by, value, np.abs(value) + np.array([more, 0.0]), terms, terms == 1, whole)


#: Rows, weights of balls [i, 2], and the balls. The choices 1 and 3 are the gate's, and 2 is any.
GATES = {
    "one term": ([row(0.75)], NO_WEIGHTS, NOTHING),
    "a term below zero": ([row(-0.75), row(1.5, by=3)], NO_WEIGHTS, NOTHING),
    "many terms": ([row(0.75, terms=40)], NO_WEIGHTS, NOTHING),
    "terms that are larger than their sum": ([row(0.75, terms=2, more=64.0)], NO_WEIGHTS, NOTHING),
    "two choices": ([row(1.75), row(-1.25, by=3)], NO_WEIGHTS, NOTHING),
    "another choice": ([row(0.75), row(0.5, -6.5, 3.0, by=2)], NO_WEIGHTS, NOTHING),
    "another choice of larger terms": ([row(0.75), row(0.5, 1.0, by=2, terms=3, more=9.0)], NO_WEIGHTS, NOTHING),
    "balls": (
        [row(0.75)],
        np.array([[2.5, 0], [-3.5, 0], [0.125, 0]]),
        Ball(np.array([[3.0, 2.5, -7.0]]), np.array([[0.5, 0.0, 0.25]])),
    ),
    "balls below zero": (
        [row(0.75)],
        np.array([[2.5, 0], [-3.5, 0]]),
        Ball(np.array([[-3.0, -2.5]]), np.array([[0.5, 0.0]])),
    ),
    "nearly nothing": ([row(0.0)], NO_WEIGHTS, NOTHING),
    "nearly nothing of many terms": ([row(0.0, terms=40)], NO_WEIGHTS, NOTHING),
    "a large weight elsewhere": ([row(0.0)], np.array([[0, 99.0]]), exact(np.zeros((1, 1)))),
    "a large weight below zero elsewhere": ([row(0.0)], np.array([[0, -99.0]]), exact(np.zeros((1, 1)))),
    "a large ball that is not read": ([row(0.0)], np.zeros((1, 2)), exact(np.array([[-70.0]]))),
    "a wide ball that is not read": ([row(0.0)], np.zeros((1, 2)), Ball(np.ones((1, 1)), np.full((1, 1), 70.0))),
}


def edge(rows: list[Rows], W: np.ndarray, x: Ball, A) -> tuple[Fraction, Fraction]:
    """The bias at which the first sum is as far below 0 as it must be, and how far that is."""
    pivots = [r for r in rows if r.by != 2]
    top = sum(number(r.value[0, 0] if r in pivots else r.value[:, 0].max()) for r in rows)
    size = sum(number(r.size[0, 0] if r in pivots else r.size[:, 0].max()) for r in rows)
    for m, r, w in zip(x.m[0], x.r[0], W[:, 0], strict=True):
        low, high = min(number(m) - number(r), Fraction(0)), max(number(m) + number(r), Fraction(0))
        top += max(low * number(w), high * number(w))
        size += max(-low, high) * abs(number(w))
    terms = 2 * (len(W) + sum(r.terms for r in rows)) + 8
    reach = 2 + number(np.abs(W).max(initial=0.0)) + number((np.abs(x.m) + x.r).max(initial=0.0))
    relative = 4 * gamma(terms, Fraction(A.u)) + 4 * gamma(terms, U)
    flushed = 4 * terms * (Fraction(A.tiny) + TINY) * reach
    bias = -(top + size * relative + flushed) / (1 - relative)  # the size of the bias counts, too
    return bias, -bias - top


def is_off(rows: list[Rows], W: np.ndarray, x: Ball, bias: float, A) -> bool:
    """Of tokens that choose everything that there is to be chosen beside the pivots."""
    count = max(len(r.value) for r in rows)
    x = Ball(np.repeat(x.m, count, axis=0), np.repeat(x.r, count, axis=0))
    token = Token(unknown=np.zeros(count, bool))
    token.choices |= {r.by: np.arange(count) % len(r.value) if r.by == 2 else np.zeros(count, int) for r in rows}
    token.balls[9] = x
    by = [choice for choice in (1, 3) if choice in token.choices]
    columns = Gate(Sums.of(rows, 9, W, np.array([bias, -1e3]), []), by, 10).live(token, x, A)
    assert not token.unknown.any()
    return 0 not in columns[0].tolist()


@EVERY
@pytest.mark.parametrize("name", GATES)
def test_a_sum_is_off_exactly_where_it_is_far_enough_below_zero(name, A) -> None:
    rows, W, x = GATES[name]
    bias, slack = edge(rows, W, x, A)
    assert bias < 0
    assert is_off(rows, W, x, float(bias - slack / 5), A)
    assert not is_off(rows, W, x, float(bias + slack / 5), A)


def test_only_what_a_token_has_chosen_holds_a_gate_open() -> None:
    """Row 2 would open the gate for everyone; as long as nobody chooses it, it does not count."""
    rows = [row(0.75), row(0.5, -6.5, 2.0**126, by=2)]
    sums = Sums.of(rows, None, NO_WEIGHTS, np.array([-1.5, -1e3]), [])
    for chosen, off in (([0, 1, 1], True), ([0, 2, 1], False)):
        token = Token(unknown=np.zeros(3, bool))
        token.choices |= {1: np.zeros(3, int), 2: np.array(chosen)}
        columns = Gate(sums, [1], 10).live(token, Ball(np.zeros((3, 0)), np.zeros((3, 0))), FLOAT32)
        assert (0 not in columns[0].tolist()) == off


def test_sums_that_nearly_overflow_are_still_off() -> None:
    for size, off in ((2.0**123, True), (2.0**124, False)):
        assert is_off([row(-size)], NO_WEIGHTS, NOTHING, -2.0, FLOAT32) == off


def fits(x, W, bias, rows: list[Rows], A=FLOAT32) -> bool:
    x, W = np.array(x, float), np.array(W, float)
    return Sums.of(rows, 9, W, np.array(bias, float), []).fit(exact(x), float(np.abs(W).max(initial=0.0)), A)


def test_whole_numbers_fit_if_their_sizes_do() -> None:
    """All coordinates count, of either sign, each at the token where it is largest; and the largest bias."""
    limit, ones = 2.0**24, [[1.0], [1.0]]
    assert fits([[0.4 * limit // 1, 0.4 * limit // 1]], ones, [0], [])
    assert not fits([[0.5 * limit, 0.5 * limit]], ones, [0], [])
    assert not fits([[0.5 * limit, 0], [0, 0.5 * limit]], ones, [0], [])
    assert not fits([[-0.5 * limit, -0.5 * limit]], ones, [0], [])
    assert not fits([[1.0, 1.0]], [[1.0, 1.0]] * 2, [0, limit], [])
    assert fits([[0.0, 0.0]], [[2 * limit]] * 2, [5], [])  # nothing times anything
    half = row(0.5, by=2)
    assert fits([[1.0, 1.0]], [[1.0, 1.0]] * 2, [0, 0], [row(1, whole=True)])
    assert not fits([[1.0, 1.0]], [[1.0, 1.0]] * 2, [0, 0], [row(1, whole=True), half])


def test_the_rounding_of_the_bound_itself_is_counted_twice() -> None:
    """Once for its sums, and once for the sizes of rows, which are sums, too."""
    for share, known in ((3, True), (1.5, False), (0.5, False)):
        assert fits(np.zeros((1, 0)), np.zeros((0, 1)), [2.0**53 - share * 2.0**13], [], REAL) == known


@pytest.mark.parametrize("sign", [1, -1])
def test_products_that_are_rounded_are_not_called_exact(sign) -> None:
    """3 times 2^23 + 1 is odd, and more than 2^24."""
    sums = Sums.of([], 9, np.array([[sign * (2.0**23 + 1)]]), np.zeros(1), [])
    token = Token(unknown=np.zeros(1, bool))
    token.balls[9] = exact(np.array([[3.0]]))
    for y in (
        sums.ball(token, [], token.balls[9], sums.weight, FLOAT32),
        sums.ball_at(np.zeros((1, 1), int), token, token.balls[9], FLOAT32),
    ):
        assert y.m.tolist() == [[sign * 3 * (2.0**23 + 1)]]
        assert y.r[0, 0] >= 1


def test_one_unit_that_is_not_known_leaves_a_token_open() -> None:
    rows = Rows(1, np.array([[5.0, 0.0], [7.0, 2.0**125]]), np.array([[5.0, 0], [7, 2.0**125]]), 1, True, True)
    token = Token(unknown=np.zeros(2, bool))
    token.choices[1] = np.array([0, 1])
    Gate(Sums.of([rows], None, np.zeros((0, 2)), np.ones(2), []), [1], 2).run(token, FLOAT32)
    assert token.few[2][1].r.tolist() == [[0, 0], [0, np.inf]]
    assert token.unknown.tolist() == [False, True]
