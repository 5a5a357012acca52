"""Cells and steps piece by piece: thresholds to the last bit, which groups are cells, and what is looked at."""

from __future__ import annotations

import itertools
from math import inf, nextafter

import numpy as np
import pytest

from onelayer_checker.core.balls import REAL, Ball, exact
from onelayer_checker.search.cells import Cells, families, in_range, staircases
from tests.checker.counted import counted
from tests.checker.large import ARITHMETICS
from tests.checker.test_steps_and_cells import column, only_family, staircase

EVERY = pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)


def off_beyond(slope: float, bias: float) -> float:
    """Where slope t + bias is at least 1, slope positive: rounded outward, once for each operation."""
    return nextafter(nextafter(1 - bias, inf) / slope, inf)


def test_thresholds_are_rounded_outward_once_for_each_operation() -> None:
    """Of biases with all their bits, some large and some small; on one side of a cell, and on the other."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        s = float(2.0 ** rng.integers(-3, 4))
        low, high = np.sort(rng.uniform(-1, 1, 2) * 10.0 ** rng.integers(-3, 4)).tolist()
        W, b = np.array([[[-s, s]]]), np.array([[low, -high]])
        cells = only_family(W, b)
        assert cells.on_low.tolist() == [[low / s]]
        assert cells.on_high.tolist() == [[high / s]]
        assert cells.off_low.tolist() == [[-off_beyond(s, low)]]
        assert cells.off_high.tolist() == [[off_beyond(s, -high)]]
        for sign in (1, -1):
            ((_, steps),) = staircases(
                np.array([[[sign * s]]]), np.array([[low]]), np.ones(1, bool), np.zeros(1, int)
            )
            assert steps.on.tolist() == [low / s]
            assert steps.off.tolist() == [-off_beyond(s, low)]
            assert steps.sign == -sign


def test_steps_of_whole_biases_are_off_up_to_the_very_edge() -> None:
    """A whole bias other than 0, above -2^53 and up to 2^53, less 1, over a power of two is exact; other edges are
    rounded outward."""
    exact_ones = (1.0, 2.0, 5.0, 2.0**52, 2.0**53 - 1, 2.0**53, -1.0, -3.0, -(2.0**52), -(2.0**53) + 1)
    rounded = (0.5, 2.5, 0.0, -0.5, -2.5, -(2.0**53), 2.0**53 + 2, -(2.0**60), 2.0**60)
    for bias, sign, s in itertools.product((*exact_ones, *rounded), (1, -1), (0.25, 1.0, 8.0)):
        W, b = np.array([[[sign * s]]]), np.array([[bias]])
        ((_, steps),) = staircases(W, b, np.ones(1, bool), np.zeros(1, int))
        assert steps.off.tolist() == [(bias - 1) / s if bias in exact_ones else -off_beyond(s, bias)], bias


def test_weights_and_biases_are_bounded_from_both_sides() -> None:
    """By 1 where all are smaller, or larger."""
    for slope, edge, largest, smallest in ((0.25, 0.5, 1.0, 0.125), (4.0, 2.0, 8.0, 1.0), (2.0, 0.25, 1.0, 0.5)):
        cells = only_family(*column((-inf, edge, slope), (64, 80, slope), (96, inf, slope)))
        assert cells.smallest == smallest
        assert cells.units == 2
        ((_, steps),) = staircases(*staircase(edge, edge, edge, slope=slope), np.ones(3, bool), np.zeros(3, int))
        assert (steps.largest, steps.smallest, steps.steepest) == (largest, smallest, slope)
    small = only_family(np.array([[[0.25, -0.25], [0.25, -0.25]]]), np.array([[-0.25, 0.125], [-0.5, 0.375]]))
    assert (small.largest, small.smallest, small.steepest) == (1, 0.125, 1)
    W, b = column((-inf, 1, 4), (2, inf, 4))
    steep, flat = np.concatenate([W, 0 * W]), np.concatenate([0 * W, W / 4])
    both, biases = np.concatenate([steep, flat], axis=1), np.concatenate([b, b / 4 + 9])
    found, _ = families(both, biases, np.ones(4, bool), np.arange(4) // 2)
    assert [(cells.steepest, cells.largest) for _, cells in found] == [(4.0, 8.0), (1.0, 11.0)]  # each by its own


def test_edges_are_divided_exactly_up_to_these_bounds() -> None:
    edges = [2.0**-900, nextafter(2.0**-900, 1), nextafter(2.0**900, 0), 2.0**900]
    assert in_range(np.ones(4), np.array(edges)).tolist() == [False, True, True, False]
    assert in_range(np.full(4, -4.0), -4 * np.array(edges)).tolist() == [False, True, True, False]


def test_a_group_that_is_always_off_is_a_cell_at_the_end() -> None:
    for bias in (1.0, 5.0):
        W, b = column((-inf, 1, 4), (2, inf, 4), (2, inf, 4))
        W[0, 2], b[2] = 0, [bias, -1]
        cells = only_family(W, b)
        assert cells.off_low[2, 0] == cells.on_low[2, 0] == inf
        assert cells.decide(exact(np.array([[0.0], [3.0], [1.5], [99.0]])), REAL).tolist() == [0, 1, 3, 1]
    b[2, 0] = 0.75  # a little on, wherever t is
    assert families(W, b, np.ones(3, bool), np.zeros(3, int))[1].tolist() == [2]


@pytest.mark.parametrize("ends", ["ss", "sss", "ess", "ses", "eses"])
def test_groups_that_stay_on_are_no_cells(ends) -> None:
    """All but the last have to end somewhere (e), and none may stay on (s) before it."""
    W, b = column(*((4 * k + 1, 4 * k + 3 if end == "e" else inf, 4) for k, end in enumerate(ends)))
    listed, rest = families(W, b, np.ones(len(ends), bool), np.zeros(len(ends), int))
    assert (listed, rest.tolist()) == ([], list(range(len(ends))))
    W, b = column(*((4 * k + 1, 4 * k + 3, 4) for k in range(len(ends) - 1)), (99, inf, 4))
    assert len(only_family(W, b).on_low) == len(ends)


def test_cells_are_sorted_along_a_coordinate_in_which_they_end() -> None:
    """Here the second one; the first only bounds them from below, or is not read."""
    W, b = column((0, 1, 4), (2, 3, 4), (4, inf, 4))
    along = np.concatenate([np.zeros_like(W), W])
    assert only_family(along, b).columns.tolist() == [1, 0]
    wide, more = np.concatenate([along, np.zeros((2, 3, 1))], axis=2), np.pad(b, ((0, 0), (0, 1)))
    wide[0, :, 2], more[:, 2] = -4, [4, 8, 12]
    cells = only_family(wide, more)
    assert cells.columns.tolist() == [1, 0]
    assert cells.decide(exact(np.array([[9.0, 2.5], [9.0, 0.5], [0.0, 0.5]])), REAL).tolist() == [1, 0, 3]


def two_by_two() -> Cells:
    """Three cells over each other from 0 to 1 along the first coordinate, and apart along the second."""
    W, b = np.zeros((2, 3, 4)), np.zeros((3, 4))
    for k in range(3):
        W[0, k, :2], b[k, :2] = (-4, 4), (0, -4)
        W[1, k, 2:], b[k, 2:] = (-4, 4), (4 * 3 * k, -4 * (3 * k + 1))
    return only_family(W, b)


def test_cells_that_crowd_include_their_edges() -> None:
    """On at both edges, off where another unit reaches 1, and open just inside of that."""
    cells = two_by_two()
    on = [[0.0, 3.0], [1.0, 4.0], [0.0, 4.0]]
    off = [
        [0.5, float(cells.off_low[1, 1])],
        [0.5, float(cells.off_high[1, 1])],
        [float(cells.off_high[0, 0]), 3.5],
    ]
    off += [[float(cells.off_low[0, 0]), 3.5]]
    near = [[0.5, nextafter(off[0][1], 9)], [0.5, nextafter(off[1][1], 0)], [0.5, nextafter(3.0, 0)]]
    assert cells.decide(exact(np.array(on)), REAL).tolist() == [1, 1, 1]
    assert cells.decide(exact(np.array(off)), REAL).tolist() == [3, 3, 3, 3]
    assert cells.decide(exact(np.array(near)), REAL).tolist() == [-1, -1, -1]


def test_looking_closely_is_counted_before_it_is_done() -> None:
    """Two coordinates of each token that is left, 60 operations each; one that is not certain is left no longer."""
    tokens = exact(np.array([[0.5, 0.5], [0.5, 3.5], [0.5, 1.1], [9.0, 0.5]]))
    with counted() as lines:
        assert two_by_two().decide(tokens, REAL).tolist() == [0, 1, -1, 3]
    assert lines == [("cells that crowd", 60.0 * rows * 2, 0, 0) for rows in (3, 2, 2)]


@EVERY
def test_every_coordinate_has_to_be_within_range(A) -> None:
    """At both ends of its ball, on either side of 0."""
    cells = two_by_two()
    half = A.big / 2
    for at in (0, 1):
        for m, r in ((A.big, 0.0), (-A.big, 0.0), (half, half), (-half, half)):
            t = Ball(np.full((1, 2), 0.5), np.zeros((1, 2)))
            t.m[0, at], t.r[0, at] = m, r
            with np.errstate(over="ignore"):
                assert cells.decide(t, A).tolist() == [-1], (at, m, r)


@EVERY
def test_a_ball_that_reaches_too_far_is_not_decided(A) -> None:
    """Though it begins within range, and lies in one cell, which is open to the left or to the right."""
    cells, half = only_family(*column((-inf, 1, 4), (2, inf, 4))), A.big / 2
    for sign, cell in ((1, 1), (-1, 0)):
        t = Ball(np.array([[sign * half], [sign * 9.0]]), np.array([[half * (1 - 2.0**-20)], [1.0]]))
        assert cells.decide(t, A).tolist() == [-1, cell]


LEFT, CELL, RIGHT, CONSTANT = (-inf, 1, 4), (2, 3, 4), (4, inf, 4), (-inf, inf, 4)


def steps_among(*groups, columns=None, block=None, slope: float = 4.0) -> list[list[int]]:
    """Which of these groups are steps; each reads its own coordinate, the first if nothing is said."""
    W, b = column(*((low, high, slope) for low, high, _ in groups))
    K = len(groups)
    own = np.zeros((2, K, 2))
    for k, at in enumerate(columns or [0] * K):
        own[at, k] = W[0, k]
    found = staircases(own, b, np.ones(K, bool), np.array(block or [0] * K))
    return sorted(order.tolist() for order, _ in found)


@pytest.mark.parametrize("slope", [4.0, 1.0, 0.5])
def test_a_single_end_with_a_neighbour_on_its_open_side_is_left_to_the_cells(slope) -> None:
    """One that is on to the left is the first of a line, and one that is on to the right is the last."""
    for groups, steps in (
        ((LEFT,), [[0]]),
        ((RIGHT,), [[0]]),
        ((LEFT, CELL), []),
        ((CELL, RIGHT), []),
        ((CELL, LEFT), [[1]]),
        ((RIGHT, CELL), [[0]]),
        ((LEFT, CELL, RIGHT), []),
        ((CONSTANT, LEFT, CELL), []),
        ((CONSTANT, CELL, RIGHT), []),
        ((CONSTANT, LEFT), [[1]]),
        ((LEFT, CONSTANT), [[0]]),
        ((CONSTANT, RIGHT), [[1]]),
        ((RIGHT, CONSTANT), [[0]]),
        ((LEFT, LEFT, CELL), [[0, 1]]),
        ((CELL, RIGHT, RIGHT), [[1, 2]]),
    ):
        assert steps_among(*groups, slope=slope) == steps, groups


def test_neighbours_read_one_coordinate_and_are_read_by_one_block() -> None:
    for groups, own in (((LEFT, CELL), 0), ((CELL, RIGHT), 1)):
        assert steps_among(*groups, columns=[0, 1]) == [[own]]
        assert steps_among(*groups, columns=[1, 0]) == [[own]]
        assert steps_among(*groups, columns=[1, 1]) == []
        assert steps_among(*groups, block=[0, 1]) == [[own]]
        assert steps_among(*groups, block=[1, 1]) == []
        assert steps_among(*groups, columns=[0, 1], block=[0, 1]) == [[own]]
    for columns, block in (([0, 1], [0, 0]), ([0, 0], [0, 1]), ([0, 1], [0, 1])):
        assert steps_among(CONSTANT, RIGHT, columns=columns, block=block) == [[1]]
        assert steps_among(LEFT, CONSTANT, columns=columns, block=block) == [[0]]


def test_a_staircase_knows_its_largest_bias_and_its_steepest_slope() -> None:
    W, b = np.array([[[-2.0], [-8.0], [-4.0]]]), np.array([[-64.0], [1.0], [16.0]])
    ((_, steps),) = staircases(W, b, np.ones(3, bool), np.zeros(3, int))
    assert (steps.largest, steps.steepest, steps.smallest) == (64.0, 8.0, 1.0)
