"""Linear relaxations line by line: every term of a radius, and what is lost where nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import TINY, UP, U
from onelayer_checker.functions import relaxations
from onelayer_checker.functions.intervals import minus, out, plus, times
from onelayer_checker.functions.relaxations import SLACK, Line, relaxed
from onelayer_checker.functions.targets import Program, read_program

B, M = 200, 3


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """As `relaxed` is: what is not finite is looked for afterwards."""
    with np.errstate(all="ignore"):
        yield


EVERYTHING = np.full(B, -np.inf), np.full(B, np.inf)


def numbers(seed: int, *shape: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * 2.0 ** rng.integers(-9, 9, shape)


def line(seed: int) -> Line:
    low = numbers(seed + 3, B)
    return Line(
        numbers(seed, B),
        numbers(seed + 1, M, B),
        np.abs(numbers(seed + 2, B)) * 2.0**-40,
        (low, low + np.abs(numbers(seed + 4, B))),
    )


def are_same(found: Line, wanted: Line) -> None:
    for name in ("centre", "slope", "radius"):
        np.testing.assert_array_equal(*(getattr(x, name) for x in (found, wanted)), name)
    for end in (0, 1):
        np.testing.assert_array_equal(found.value[end], wanted.value[end])


def rounded_line(centre: Any, slope: Any, radius: Any, value: Any) -> Line:
    """What `_line` makes of numbers that are finite."""
    sizes = np.abs(centre) + np.abs(slope).sum(axis=0)
    radius = (radius + sizes * (16 * U * (len(slope) + 8))) * (UP * UP) + TINY
    reach = (np.abs(slope).sum(axis=0) * (1 + 4 * (len(slope) + 2) * U) + radius) * (UP * UP)
    near = out(centre - reach, centre + reach, TINY)
    return Line(centre, slope, radius, (np.fmax(value[0], near[0]), np.fmin(value[1], near[1])))


def test_a_line_reaches_as_far_as_its_slopes_and_its_radius() -> None:
    made = line(1)
    sizes = np.abs(made.slope).sum(axis=0)
    assert SLACK == 16 * U
    np.testing.assert_array_equal(made.reach, (sizes * (1 + 4 * 5 * U) + made.radius) * (UP * UP))


def test_a_line_has_what_its_last_operation_rounds() -> None:
    made = line(2)
    for radius in (made.radius, np.zeros(B)):
        for value in (EVERYTHING, made.value):
            found = relaxations._line(made.centre, made.slope, radius, value)
            are_same(found, rounded_line(made.centre, made.slope, radius, value))
    nothing = relaxations._line(np.zeros(1), np.zeros((M, 1)), np.zeros(1), (np.full(1, -9.0), np.full(1, 9.0)))
    assert nothing.radius.tolist() == [TINY]


def test_of_a_line_that_is_not_finite_only_its_interval_is_known() -> None:
    centre, slope, radius = np.array([np.inf, 1.0, 1.0, np.nan, 1.0, 1.0]), np.ones((M, 6)), np.ones(6)
    slope[1, 1], radius[2], slope[0, 4], radius[5] = -np.inf, np.inf, np.nan, np.nan
    value = np.full(6, -7.0), np.full(6, 5.0)
    found = relaxations._line(centre, slope, radius, value)
    assert found.centre.tolist() == [0.0] * 6
    assert found.slope.tolist() == [[0.0] * 6] * M
    assert found.radius.tolist() == [np.inf] * 6
    assert (found.value[0].tolist(), found.value[1].tolist()) == ([-7.0] * 6, [5.0] * 6)


def ends(seed: int) -> Any:
    low = numbers(seed, B)
    return low, low + np.abs(numbers(seed + 1, B)) * 2.0**-9


def chord(v: Line, first: Any, last: Any) -> tuple[Any, Any, Any, Any]:
    """The slope between the ends, the width, and f less the chord at both ends."""
    low, high = v.value
    width = np.maximum(high - low, 0.0) * UP
    a = np.where(width > 0, (last[0] / 2 + last[1] / 2 - first[0] / 2 - first[1] / 2) / width, 0.0)
    a = np.where(np.isfinite(a), a, 0.0)
    left, right = times((a, a), (low, low)), times((a, a), (high, high))
    at = out(first[0] - left[1], first[1] - left[0]), out(last[0] - right[1], last[1] - right[0])
    return a, width, np.minimum(at[0][0], at[1][0]), np.maximum(at[0][1], at[1][1])


def of_chord(v: Line, a: Any, below: Any, above: Any, value: Any) -> Line:
    below, above = out(below, above, TINY)
    middle = below / 2 + above / 2
    half = np.maximum(above - middle, middle - below) * UP
    rounded = (np.abs(a * v.centre) + np.abs(middle)) * (16 * U)
    return rounded_line(a * v.centre + middle, a * v.slope, np.abs(a) * v.radius + half + rounded, value)


def exact(seed: int) -> Line:
    """Without a radius, so that what is rounded is seen in that of a function."""
    made = line(seed)
    value = made.value[0], np.where(np.arange(B) % 10 == 0, made.value[0], made.value[1])  # some are one number
    return Line(made.centre, made.slope, np.zeros(B), value)


def test_a_function_of_a_line_is_its_chord_and_what_its_bend_takes() -> None:
    for v in (exact(10), line(11)):
        first, last, value = ends(20), ends(22), EVERYTHING
        for bend in (ends(24), (np.full(B, -0.5), np.full(B, 0.25)), (np.zeros(B), np.zeros(B))):
            a, width, below, above = chord(v, first, last)
            lift = width * width * (UP * UP / 8)
            below = below - np.maximum(bend[1], 0.0) * lift * UP
            above = above + np.maximum(-bend[0], 0.0) * lift * UP
            found = relaxations._function(v, value, first, last, bend)
            are_same(found, of_chord(v, a, below, above, value))


def test_a_constant_function_has_no_chord_to_round() -> None:
    """Of a line whose interval is one number, with f = 0 there and at its ends: only TINY is left."""
    v = Line(np.ones(1), np.ones((M, 1)), np.ones(1), (np.ones(1), np.ones(1)))
    zero = np.zeros(1), np.zeros(1)
    found = relaxations._function(v, (np.full(1, -9.0), np.full(1, 9.0)), zero, zero, zero)
    assert (found.centre.tolist(), found.slope.tolist()) == ([0.0], [[0.0]] * M)
    assert 2 * TINY < found.radius[0] < 3 * TINY * (1 + 1e-9)


@pytest.mark.parametrize("end", [np.inf, -np.inf])
def test_a_chord_that_is_not_finite_is_flat(end: float) -> None:
    v, far = exact(12), (np.full(B, end), np.full(B, end))
    found = relaxations._function(v, EVERYTHING, ends(20), far, (np.zeros(B), np.zeros(B)))
    assert (found.slope == 0).all()
    assert (found.radius == np.inf).all()


def test_the_size_of_a_line_is_0_inside_where_its_sign_is_open() -> None:
    v = exact(13)
    low = np.where(np.arange(B) % 7 == 0, 0.0, v.value[0])
    high = np.where(np.arange(B) % 7 == 1, np.maximum(low, 0.0), v.value[1])
    v = Line(v.centre, v.slope, v.radius, (low, np.maximum(low, high)))
    first, last = ends(30), ends(32)
    a, _, below, above = chord(v, first, last)
    inside = (v.value[0] < 0) & (v.value[1] > 0)
    assert 20 < inside.sum() < B - 20
    below, above = (
        np.where(inside, np.minimum(below, 0.0), below),
        np.where(inside, np.maximum(above, 0.0), above),
    )
    are_same(relaxations._function(v, EVERYTHING, first, last, None), of_chord(v, a, below, above, EVERYTHING))


def test_negatives_sums_multiples_and_products() -> None:
    for v, w in ((line(40), line(50)), (exact(41), exact(51))):
        negative = relaxations._of_one("neg", v)
        are_same(negative, rounded_line(-v.centre, -v.slope, v.radius, minus(v.value)))
        for sign, value in ((1.0, plus(v.value, w.value)), (-1.0, plus(v.value, minus(w.value)))):
            rounded = (np.abs(v.centre) + np.abs(w.centre)) * (16 * U)
            centre, slope = v.centre + sign * w.centre, v.slope + sign * w.slope
            wanted = rounded_line(centre, slope, v.radius + w.radius + rounded, value)
            are_same(relaxations._sum(v, w, sign), wanted)
        for factor in (0.5, -3.0):
            one = np.full(1, factor)
            wanted = rounded_line(
                factor * v.centre, factor * v.slope, abs(factor) * v.radius, times((one, one), v.value)
            )
            are_same(relaxations._scaled(v, factor), wanted)


@pytest.mark.parametrize("near", [False, True])
def test_every_term_of_a_product(near: bool) -> None:
    """Near: lines that hardly move, so that what they are off by together hides nothing of the rounding."""
    v, w = (exact(60), exact(70)) if near else (line(61), line(71))
    if near:
        v, w = (Line(x.centre, x.slope * 2.0**-30, x.radius, x.value) for x in (v, w))
    c, d = v.centre, w.centre
    sizes = np.abs(c) * np.abs(w.slope).sum(axis=0) + np.abs(d) * np.abs(v.slope).sum(axis=0) + np.abs(c * d)
    apart = v.reach * w.reach * UP
    radius = np.abs(c) * w.radius + np.abs(d) * v.radius + apart + sizes * (16 * U)
    wanted = rounded_line(c * d, c * w.slope + d * v.slope, radius, times(v.value, w.value))
    are_same(relaxations._product(v, w), wanted)


def program(*lines: Any, outputs: tuple[int, ...] | None = None, n: int = 1, d: int = 1) -> Program:
    given = outputs or (len(lines) - 1,)
    entry = {"n": n, "d": d, "per": "sequence", "components": len(given), "lines": [list(x) for x in lines]}
    return read_program(entry | {"outputs": list(given)}, "program")


def ball(p: Program, low: float, high: float) -> Line:
    return relaxed(p, np.full((1, p.n * p.d), low), np.full((1, p.n * p.d), high))[0]


def test_a_line_times_itself_is_a_square_and_plus_itself_is_none() -> None:
    x = ("x", 0, 0)
    assert ball(program(x, ("mul", 0, 0)), -1.0, 2.0).value[0][0] == 0
    for op, wanted in (("add", (-2.0, 4.0)), ("sub", (0.0, 0.0)), ("max", (-1.0, 2.0)), ("min", (-1.0, 2.0))):
        found = ball(program(x, (op, 0, 0)), -1.0, 2.0)
        assert found.value[0][0] <= wanted[0] <= wanted[1] <= found.value[1][0], op
        assert op == "sub" or (found.value[0][0], found.value[1][0]) == pytest.approx(wanted)


def test_variables_have_places_of_their_own_and_are_as_wide_as_the_box() -> None:
    places = [(t, c) for t in range(2) for c in range(3)]
    p = program(*(("x", t, c) for t, c in places), outputs=(0, 1, 2, 3, 4, 5), n=2, d=3)
    low = numbers(80, 50, 6)
    high = low + np.abs(numbers(81, 50, 6)) * (np.arange(50) % 5 > 0)[:, None]  # some are one number
    centre = np.clip(low / 2 + high / 2, low, high)
    wide = np.maximum(high - centre, centre - low) * UP + TINY
    for v, found in enumerate(relaxed(p, low, high)):
        assert found.centre.tolist() == centre[:, v].tolist()
        assert found.slope.tolist() == [(wide[:, v] if i == v else np.zeros(50)).tolist() for i in range(6)]
        assert (found.value[0].tolist(), found.value[1].tolist()) == (low[:, v].tolist(), high[:, v].tolist())


def test_what_relaxations_cost_is_said_before_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(relaxations, "spend", lambda *given: said.append(given))
    relaxed(program(("x", 0, 0), ("abs", 0)), np.zeros((50, 1)), np.ones((50, 1)))
    assert said == [("50 relaxed boxes", 2 * 11 * (3e4 + 2000.0), 64.0 * 50 * 9)]


def test_nothing_is_known_of_what_uses_a_line_of_which_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries: all is known; a low end is not; a high end; the first line; the second."""
    inf, one = np.inf, np.ones(5)
    made = Line(one, np.ones((M, 5)), one, (np.array([-1, -inf, -1, -1, -1]), np.array([1, 1, inf, 1, 1])))
    first = Line(one, np.ones((M, 5)), one, (np.array([-1, -1, -1, -inf, -1]), one))
    second = Line(one, np.ones((M, 5)), one, (np.array([-1, -1, -1, -1, -inf]), one))
    monkeypatch.setattr(relaxations, "_of_two", lambda *_: made)
    monkeypatch.setattr(relaxations, "_of_one", lambda *_: made)
    for op, given, lost in (("add", [0, 1], [1, 2, 3, 4]), ("abs", [0], [1, 2, 3]), ("exp", [1], [1, 2, 4])):
        found = relaxations._next(op, given, {0: first, 1: second})
        assert np.flatnonzero(found.value[0] == -inf).tolist() == lost
        assert np.flatnonzero(found.value[1] == inf).tolist() == lost
        assert np.flatnonzero(found.radius == inf).tolist() == lost
