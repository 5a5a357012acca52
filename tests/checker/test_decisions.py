"""Which steps and cells are on, at the edges: of a threshold, of a format, and of what does not overflow."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, NORMAL, REAL, Ball, exact
from onelayer_checker.search.steps import RowSteps, Steps, ends, within_range
from tests.checker.large import ARITHMETICS

EVERY = list(ARITHMETICS.values())
parametrize = pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)


def column(*values: float) -> np.ndarray:
    return np.array(values, float)[:, None]


@parametrize
def test_the_ends_of_coordinates_include_what_is_flushed(A) -> None:
    """A point is its own end, unless it is subnormal; a ball has ends outside of it."""
    tiny = A.tiny
    points = column(0.0, 1.0, -1.0, tiny, -tiny, 2 * tiny, -2 * tiny, tiny / 2, -tiny / 2)
    low, high = ends(exact(points), 0, A)
    flat = points[:, 0]
    assert low.tolist() == np.where((flat > 0) & (flat < tiny), 0, flat).tolist()
    assert high.tolist() == np.where((flat < 0) & (flat > -tiny), 0, flat).tolist()
    low, high = ends(Ball(column(1.0, 3 * tiny + 1e-3), column(0.25, 0.0)), np.array([0]), A)
    assert low.tolist() == [[np.nextafter(0.75, 0)], [np.nextafter(3 * tiny + 1e-3, 0)]]
    assert high.tolist() == [[np.nextafter(1.25, 2)], [np.nextafter(3 * tiny + 1e-3, 1)]]


@parametrize
@pytest.mark.parametrize("units", [1, 3])
def test_what_does_not_overflow_is_known_by_its_ends(A, units) -> None:
    """The number of units, times the coordinate times the largest weight, or the bias, is below a fifth."""
    largest, edge = A.big / 40 / units, 8.0
    for inside, outside in ((edge * (1 - 2.0**-30), edge), (0.0, np.inf), (1.0, np.nan)):
        for a, b in ((inside, inside), (-inside, inside), (-inside, -inside), (-inside, 0.0)):
            low, high = np.array([a]), np.array([b])
            assert within_range(low, high, largest, units, A).tolist() == [True]
        for a, b in ((outside, outside), (-outside, outside), (-outside, -outside), (-outside, 0.0)):
            low, high = np.array([a]), np.array([b])
            assert within_range(low, high, largest, units, A).tolist() == [False]
            low, high = np.array([-inside, a, 0.0]), np.array([inside, b, 0.0])
            assert within_range(low, high, largest, units, A).tolist() == [True, False, True]
    assert within_range(np.zeros(0), np.zeros(0), largest, units, A).shape == (0,)
    apart = np.array([[0.0, 0.0], [0.0, 16.0], [16.0, 0.0]])  # every coordinate of a token counts
    assert within_range(-apart, apart, largest, units, A).tolist() == [True, False, False]
    assert within_range(np.zeros((0, 2)), np.zeros((0, 2)), A.big, units, A).shape == (0,)
    one, fifth = np.ones(1), A.big / 5 / units
    for steepest, bias, fits in ((1.0, 0.5, True), (0.5, 1.0, True), (1.01, 0.5, False), (0.5, 1.01, False)):
        most = 0.999 * bias * fifth, units, A, 0.999 * steepest * fifth
        assert within_range(-one, one, *most).tolist() == [fits], (steepest, bias)
        beside = within_range(np.array([-1.0, 1.0]), np.array([1.0, np.nan]), *most)
        assert beside.tolist() == [fits, False]
    assert within_range(one, one, 1.0, int(min(A.whole, 2.0**53)), A).tolist() == [True]
    assert within_range(one, one, 1.0, int(A.whole) + 1, A).tolist() == [False]  # the theorem is about fewer units


def steps(count: int, sign: float, largest: float = 1.0, smallest: float = 1.0) -> Steps:
    """On from 1, 2, 3, ... on, and off up to a half below."""
    return Steps(0, sign, np.arange(1.0, count + 1), np.arange(1.0, count + 1) - 0.5, largest, smallest)


@parametrize
@pytest.mark.parametrize("count", [1, 3, 7, 8, 9, 20])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_steps_are_on_at_their_edge_and_off_at_the_other(A, count, sign) -> None:
    for k in range(count):
        below = [k + 0.5, np.nextafter(k + 0.5, 0), k + 0.25] + ([float(k)] if k else [0.0])
        found = steps(count, sign).decide(exact(sign * column(*below, k + 1.0)), A)
        assert found.tolist() == [k] * len(below) + [k + 1]
        between = column(np.nextafter(k + 0.5, np.inf), k + 0.75, np.nextafter(k + 1.0, 0))
        assert (steps(count, sign).decide(exact(sign * between), A) == -1).all()
        ball = Ball(sign * column(k + 0.25, k + 0.25, k + 0.75), column(0.125, 0.5, 0.5))
        assert steps(count, sign).decide(ball, A).tolist() == [k, -1, -1]
    assert steps(count, sign).decide(exact(sign * column(count + 99.0)), A).tolist() == [count]


@parametrize
def test_steps_that_overflow_or_underflow_are_not_decided(A) -> None:
    assert steps(1, 1.0, A.big / 40).decide(exact(column(7.9, 8.0)), A).tolist() == [1, -1]
    for smallest, known in ((8 * A.tiny, True), (np.nextafter(8 * A.tiny, 0), A.tiny == 0)):
        found = steps(1, 1.0, smallest=smallest).decide(exact(column(2.0)), A)
        assert found.tolist() == [1 if known else -1]


def rows(*table: list[float], slope: float = 1.0) -> RowSteps:
    return RowSteps.of(0, slope, np.array(table, float))


@parametrize
@pytest.mark.parametrize("slope", [1.0, 0.25, 8.0])
def test_steps_of_a_row_are_on_at_their_edge_and_off_at_the_other(A, slope) -> None:
    """Unit g is table[g] - slope t: at most 0, or at least 1, but for a rounding."""
    for count in (1, 2, 3, 4, 5, 9):
        table = np.arange(2.0, 2 + 2 * count, 2)
        family = rows(table, table + 1, slope=slope)
        for row, first in ((0, 2.0), (1, 3.0)):
            for k in range(count):
                last = np.nextafter(first + 2 * k - 1, 0)  # the last that is off for sure
                t = column(first + 2 * k, last, first + 2 * k - 0.5, np.nextafter(first + 2 * k, 0)) / slope
                found = family.decide(exact(t), np.full(4, row), A)
                assert found.tolist() == [k + 1, k, -1, -1]
        assert family.decide(exact(column(1e6)), np.array([1]), A).tolist() == [count]
        assert family.decide(exact(column(1e6)), np.array([-1]), A).tolist() == [-1]


@parametrize
def test_steps_of_a_row_that_overflow_or_underflow_are_not_decided(A) -> None:
    def decided(family: RowSteps, *t: float) -> list[bool]:
        return (family.decide(exact(column(*t)), np.zeros(len(t), int), A) >= 0).tolist()

    for bias, known in ((A.big / 11, True), (A.big / 10, False)):
        assert decided(rows([bias]), 0.0, 1.9) == decided(rows([-bias, 1.0]), 1.0, 1.9) == [known] * 2
    assert decided(rows([0.5], slope=A.big / 16), 1.0, 2.0) == [True, False]
    assert decided(rows([0.5], slope=0.5), A.big / 5 * (1 - 2.0**-30), A.big / 5) == [True, False]
    least = 8 * (A.tiny + NORMAL)
    for faint, known in ((least, True), (least * (1 - 2.0**-30), False), (least / 2, False), (0.0, True)):
        assert decided(rows([faint]), 1.0) == decided(rows([-faint, 0.5]), 1.0) == [known]
    assert decided(rows([2.0], slope=least), 0.0) == [True]
    assert decided(rows([2.0], slope=least / 2), 0.0) == [False]


def test_a_product_that_underflows_does_not_reach_a_threshold() -> None:
    """2^-50 t is three quarters of the threshold, and rounded to it: the step is not on."""
    family, t = rows([2.0**-1074], slope=2.0**-50), 0.75 * 2.0**-1024
    assert family.slope * t == 2.0**-1074
    assert family.decide(exact(column(t)), np.zeros(1, int), REAL).tolist() == [-1]


def test_formats_differ_by_what_they_flush() -> None:
    for A, known in ((REAL, True), (FLOAT64, True), (FLOAT32, False)):
        assert (steps(1, 1.0, smallest=2.0**-126).decide(exact(column(2.0)), A).tolist() == [1]) is known
