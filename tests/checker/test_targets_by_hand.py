"""Enclosures of targets by hand: every factor of a bound, what is lost, and what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import TINY, UP, U
from onelayer_checker.core.files import Malformed
from onelayer_checker.functions import targets
from onelayer_checker.functions.intervals import minus, out, plus, square, tanh
from onelayer_checker.functions.targets import Program, bounds, enclose, read_program

X: list[Any] = ["x", 0, 0]


def program(lines: list[list[Any]], *outputs: int, n: int = 1, d: int = 1) -> Program:
    given = outputs or (len(lines) - 1,)
    head = {"n": n, "d": d, "per": "sequence", "components": len(given)}
    return read_program(head | {"lines": lines, "outputs": list(given)}, "target")


THREE = program(
    [["x", 0, 0], ["x", 0, 1], ["x", 1, 0], ["mul", 0, 1], ["sub", 3, 0], ["sub", 4, 2], ["mul", 5, 5]],
    5,
    6,
    n=2,
    d=2,
)


def boxes(count: int, m: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    low = rng.normal(size=(count, m)) * 2.0 ** rng.integers(-3, 3, (count, m))
    return low, low + rng.random((count, m)) * 2.0 ** rng.integers(-30, 0, (count, m)) * (np.arange(count) % 5 > 0)[
        :, None
    ]


def test_every_factor_of_a_bound_by_slopes() -> None:
    low, high = boxes(200, 4)
    c = np.clip(low / 2 + high / 2, low, high)
    box, point = enclose(THREE, low, high, True), enclose(THREE, c, c, False)
    radius = np.maximum(high - c, c - low) * UP + TINY
    steepest = np.maximum(np.abs(box.slope_low), np.abs(box.slope_high))
    spread = (steepest * radius[:, None, :]).sum(axis=2) * ((1 + 4 * 6 * U) * UP) + TINY
    near = out(point.low - spread, point.high + spread)
    found = bounds(THREE, low, high)
    np.testing.assert_array_equal(found[0], np.maximum(box.low, near[0]))
    np.testing.assert_array_equal(found[1], np.minimum(box.high, near[1]))
    assert (near[0] > box.low).any()
    assert (near[0] < box.low).any()


def test_a_constant_is_as_wide_as_two_tinies() -> None:
    zero = program([X, ["const", (0.0).hex()], ["mul", 0, 1]])
    low, high = bounds(zero, np.zeros((1, 1)), np.zeros((1, 1)))
    assert (low[0, 0], high[0, 0]) == (-TINY, TINY)


@pytest.mark.parametrize(
    "more",
    [
        [["log", 0]],
        [["log", 0], ["tanh", 1]],
        [["log", 0], ["add", 0, 1]],
        [["log", 0], ["add", 1, 0]],
        [["const", (800.0).hex()], ["exp", 1]],
        [["const", (-800.0).hex()], ["exp", 1], ["const", (1.0).hex()], ["div", 3, 2]],
        [["const", (800.0).hex()], ["exp", 1], ["neg", 2]],
        [["log", 0], ["max", 0, 1]],
        [["log", 0], ["min", 1, 0]],
    ],
)
def test_what_may_be_undefined_makes_all_that_uses_it_so(more: list[list[Any]]) -> None:
    found = enclose(program([X, *more]), np.full((1, 1), -1.0), np.ones((1, 1)), True)
    assert (found.low[0, 0], found.high[0, 0]) == (-np.inf, np.inf)
    assert (found.slope_low[0, 0, 0], found.slope_high[0, 0, 0]) == (-np.inf, np.inf)


def test_only_boxes_where_it_is_undefined_are_lost() -> None:
    found = enclose(program([X, ["log", 0]]), np.array([[-1.0], [1.0]]), np.array([[1.0], [2.0]]), True)
    assert np.isfinite(found.low[:, 0]).tolist() == np.isfinite(found.high[:, 0]).tolist() == [False, True]
    assert np.isfinite(found.slope_low[:, 0, 0]).tolist() == [False, True]


def test_what_enclosures_cost_is_said_before_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(targets, "spend", lambda *given: said.append(given))
    for gradient in (False, True):
        enclose(THREE, *boxes(50, 4), gradient)
    work = [7 * terms * (3e4 + 1000.0) for terms in (2, 6)]
    assert said == [
        ("50 boxes of the target", work[0], 16.0 * 50 * 2),
        ("50 boxes of the target", work[1], 16.0 * 50 * 2 * 13),
    ]


def test_boxes_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(boxes: int) -> list[tuple[int, int]]:
        return [(rows.start, rows.stop) for rows in targets._blocks(THREE, boxes)]

    monkeypatch.setattr(targets, "BLOCK", 7)
    assert steps(16) == [(0, 7), (7, 14), (14, 16)]
    monkeypatch.setattr(targets, "HELD", 7 * 5 * 4)
    assert steps(9) == [(0, 4), (4, 8), (8, 9)]
    monkeypatch.setattr(targets, "HELD", 1)
    assert steps(2) == [(0, 1), (1, 2)]


def test_slopes_are_those_of_their_variables() -> None:
    lines = [["x", t, c] for t in range(2) for c in range(3)] + [["const", (2.0).hex()], ["mul", 6, 5]]
    found = enclose(program(lines, 7, 1, n=2, d=3), np.zeros((1, 6)), np.ones((1, 6)), True)
    for slope in (found.slope_low, found.slope_high):
        assert slope[0, 0] == pytest.approx([0, 0, 0, 0, 0, 2])
        assert slope[0, 1].tolist() == [0, 1, 0, 0, 0, 0]
    assert enclose(program(lines, 7, n=2, d=3), np.zeros((1, 6)), np.ones((1, 6)), False).slope_low.shape == (
        1,
        1,
        0,
    )


def test_programs_have_so_many_tokens_lines_and_outputs() -> None:
    assert program([X] * 10_000, *[9_999] * 10_000).components == 10_000
    assert program([X], n=10_000).n == program([X], d=10_000).d == 10_000
    assert program([X], n=100, d=100).d == 100
    for n, d in ((10_001, 1), (1, 10_001), (101, 100), (0, 1), (1, 0)):
        with pytest.raises(Malformed):
            program([X], n=n, d=d)
    with pytest.raises(Malformed):
        program([X] * 10_001)
    for n, d in ((0, 1), (1, 0), (-1, -1)):
        with pytest.raises(Malformed, match="has n="):
            program([["const", (1.0).hex()]], n=n, d=d)


@pytest.mark.parametrize("change", [{"per": "last"}, {"outputs": (0,)}, {"lines": ((*X,),)}])
def test_only_lists_and_known_words_are_read(change: dict[str, Any]) -> None:
    entry = {"n": 1, "d": 1, "per": "sequence", "components": 1, "lines": [X], "outputs": [0]}
    assert read_program(entry, "target").outputs == (0,)
    with pytest.raises(Malformed):
        read_program(entry | change, "target")


def test_what_a_program_says_of_itself() -> None:
    lines = [["x", 0, 0], ["x", 1, 0], ["max", 0, 1]]
    per = {
        "token": Program(2, 1, "token", 1, program(lines, n=2).lines, (0, 1)),
        "sequence": Program(2, 1, "sequence", 2, program(lines, n=2).lines, (0, 1)),
    }
    assert per["token"].symmetric
    assert not per["sequence"].symmetric
    p, low, high = program(lines, n=2), np.array([[0.25, 0.5]]), np.array([[0.75, 1.0]])
    assert p.simplify_ordered((1, 0)).lines[2] == ("x", 1, 0)
    for gradient in (False, True):
        found, wanted = p.enclose(low, high, gradient), enclose(p, low, high, gradient)
        assert all(np.array_equal(getattr(found, name), getattr(wanted, name)) for name in vars(wanted))
    assert np.array_equal(p.bounds(low, high), bounds(p, low, high))


def slopes(lines: list[list[Any]], low: list[float], high: list[float]) -> list[tuple[float, float]]:
    found = enclose(program(lines, n=len(low)), np.array([low]), np.array([high]), True)
    return list(zip(found.slope_low[0, 0].tolist(), found.slope_high[0, 0].tolist(), strict=True))


TWO = [["x", 0, 0], ["x", 1, 0]]


def test_sums_and_negatives_keep_slopes_as_they_are() -> None:
    (steep,) = slopes([X, ["exp", 0]], [0.25], [0.5])
    assert slopes([*TWO, ["exp", 0], ["add", 2, 1]], [0.25, 0.0], [0.5, 1.0]) == [steep, (1.0, 1.0)]
    assert slopes([*TWO, ["exp", 0], ["sub", 1, 2]], [0.25, 0.0], [0.5, 1.0]) == [
        (-steep[1], -steep[0]),
        (1.0, 1.0),
    ]
    assert slopes([X, ["exp", 0], ["neg", 1]], [0.25], [0.5]) == [(-steep[1], -steep[0])]


def test_at_the_last_number_where_one_wins_it_has_won() -> None:
    assert slopes([*TWO, ["min", 0, 1]], [0.0, 1.0], [1.0, 2.0]) == [(1.0, 1.0), (0.0, 0.0)]
    assert slopes([*TWO, ["min", 1, 0]], [0.0, 1.0], [1.0, 2.0]) == [(1.0, 1.0), (0.0, 0.0)]
    assert slopes([*TWO, ["max", 0, 1]], [0.0, 1.0], [1.0, 2.0]) == [(0.0, 0.0), (1.0, 1.0)]
    assert slopes([*TWO, ["max", 1, 0]], [0.0, 1.0], [1.0, 2.0]) == [(0.0, 0.0), (1.0, 1.0)]
    assert slopes([X, ["abs", 0]], [-1.0], [0.0]) == [(-1.0, -1.0)]
    assert slopes([X, ["abs", 0]], [0.0], [1.0]) == [(1.0, 1.0)]
    assert slopes([X, ["abs", 0]], [-1.0], [1.0]) == [(-1.0, 1.0)]


def test_slopes_of_one_or_the_other_or_between() -> None:
    f, g = {0: (np.full(3, -2.0), np.full(3, 5.0))}, {0: (np.full(3, -1.0), np.full(3, 7.0))}
    first, second = np.array([True, False, False]), np.array([False, True, False])
    for one, other, wanted in (
        (f, g, [(-2.0, 5.0), (-1.0, 7.0), (-2.0, 7.0)]),
        (g, f, [(-1.0, 7.0), (-2.0, 5.0), (-2.0, 7.0)]),
    ):
        low, high = targets._choose(first, second, one, other)[0]
        assert list(zip(low.tolist(), high.tolist(), strict=True)) == wanted
    point = {0: (np.full(3, 1.0), np.full(3, 1.0))}
    low, high = targets._choose(first, second, point, {0: (np.full(3, -3.0), np.full(3, -2.0))})[0]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [(1.0, 1.0), (-3.0, -2.0), (-3.0, 1.0)]


def test_a_hyperbolic_tangent_has_a_derivative_of_its_own() -> None:
    a = np.array([-0.5]), np.array([0.75])
    value, steep = targets._of_one("tanh", a, {0: targets.ONE})
    assert value == tanh(a)
    assert steep[0] == plus(targets.ONE, minus(square(value)))
    assert steep[0][0][0] <= 1 - np.tanh(0.75) ** 2 < 1 <= steep[0][1][0]


def test_one_box_that_is_none_is_enough() -> None:
    with pytest.raises(ValueError, match="in order"):
        enclose(program([X]), np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]]), False)


def test_ends_of_a_box_may_be_equal_and_far() -> None:
    far = np.full((1, 1), 1e308)
    assert enclose(program([X]), -far, far, False).high[0, 0] == 1e308
    assert enclose(program([X]), far, far, False).low[0, 0] == 1e308
