"""Layers of formulas by hand: what is read, what is added up, and what rounding adds, number by number."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, NORMAL, REAL, TINY, UP, U, gamma
from onelayer_checker.functions import blocks, differences, ramps
from onelayer_checker.functions.blocks import (
    Group,
    Number,
    follow_line,
    gap,
    group_columns,
    last,
    layer,
    plain,
    rounding_of_sum,
)
from onelayer_checker.functions.formulas import Meaning, Undefined, read_formula
from onelayer_checker.functions.intervals import out
from onelayer_checker.functions.jets import Jet

#: x in [0, 2], z in [-1, 1], and functions of them.
LINES: list[list[Any]] = [
    ["x", 0],
    ["x", 1],
    ["const", (3.0).hex()],
    ["mul", 0, 0],
    ["mul", 2, 0],
    ["add", 4, 2],
    ["sub", 3, 1],
    ["neg", 6],
    ["mul", 6, 2],
    ["sin", 1],
    ["add", 3, 9],
    ["mul", 0, 1],
    ["add", 5, 10],
    ["add", 0, 1],
    ["sin", 13],
    ["neg", 2],
    ["add", 10, 2],
    ["sub", 16, 15],
    ["add", 10, 10],
    ["sub", 2, 2],
    ["max", 9, 2],
    ["max", 9, 19],
]


def meaning() -> Meaning:
    box = [[(0.0).hex(), (2.0).hex()], [(-1.0).hex(), (1.0).hex()]]
    entry = {"d": 2, "tokens": 3, "per": "token", "box": box, "lines": LINES, "outputs": [0], "meant": [0]}
    return Meaning(read_formula(entry | {"planned": [0], "stages": []}, "target"))


M = meaning()
TWO = plain([Number(0, 0.0, 0.0), Number(1, 0.0, 0.0)])


def units(read: Number, signs: list[float], bias: list[float], first: int = 0, own: float = 0.0) -> Group:
    count = len(signs)
    return Group(read, np.arange(first, first + count), np.array(signs), np.array(bias), np.full(count, own))


def test_plain_numbers_and_corners() -> None:
    first, second = TWO
    assert (first.read, first.units.tolist(), first.signs.tolist(), first.bias) == (
        Number(0, 0.0, 0.0),
        [0],
        [1],
        None,
    )
    assert second.units.tolist() == [1]
    assert second.own.tolist() == [0]
    assert first.corners.shape == (0,)
    assert units(Number(0, 0, 0), [1, -1], [3, 4]).corners.tolist() == [-3, 4]


def test_columns_in_the_order_in_which_they_appear() -> None:
    W = np.array([[2.0, 0, -2, 1, 0], [1.0, 5, -1, 0, 0]])
    assert [(u.tolist(), s.tolist()) for u, s in group_columns(W)] == [
        ([0, 2], [1, -1]),
        ([1], [1]),
        ([3], [1]),
        ([4], [1]),
    ]


def test_a_layer_has_a_group_for_every_number_it_reads() -> None:
    W = np.array([[2.0, -2.0, 0.0], [0.0, 0.0, 1.0]])
    first, second = layer(M, TWO, W, np.array([1.0, 2.0, 3.0]), (4, 1), REAL)  # 3 x, where 2 x is read
    assert (first.units.tolist(), first.signs.tolist(), second.units.tolist()) == ([0, 1], [1, -1], [2])
    assert first.bias is not None
    assert (first.bias.tolist(), first.own.tolist()) == ([1, 2], [0, 0])
    assert (first.read.line, first.read.offset, first.read.error) == (4, pytest.approx(-1), pytest.approx(1))
    assert (second.read.line, second.read.offset) == (1, pytest.approx(0))
    assert second.read.error < 1e-11
    for lines in ((4,), (4, 1, 1)):
        with pytest.raises(Undefined, match=f"2 different columns, the plan names {len(lines)}"):
            layer(M, TWO, W, np.zeros(3), lines, REAL)
    rounding = layer(M, TWO, W, np.array([1.0, 64.0, 3.0]), (4, 1), FLOAT32)[0].own
    assert rounding == pytest.approx([3 * 5 * FLOAT32.u, 3 * 68 * FLOAT32.u], rel=1e-4)
    backwards = layer(M, TWO, -W[:, :1], np.zeros(1), (0,), REAL)[0]
    assert (backwards.signs.tolist(), backwards.read.error) == ([-1], pytest.approx(1))  # 2 x for x


def test_the_last_layer_adds_its_bias_and_its_rounding() -> None:
    W, b = np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([4.0, -1.0])
    found = last(M, TWO, W, b, (0, 13), REAL)
    assert [(n.line, n.offset, n.moved) for n in found] == [(0, pytest.approx(4), 0), (13, pytest.approx(-1.5), 0)]
    assert found[0].error < 1e-10
    assert found[1].error == pytest.approx(0.5)
    read = plain([Number(0, 0.0, 0.0, 1e-3), Number(1, 0.0, 0.0, 1e-4)])
    found = last(M, read, W, b, (0, 13), FLOAT32)
    assert found[0].moved == pytest.approx(1e-3 + 3 * (6 + 1e-3) * FLOAT32.u, rel=1e-6)
    assert found[1].moved == pytest.approx(6e-4 + 4 * (3 + 6e-4) * FLOAT32.u, rel=1e-6)
    for lines in ((0,), (0, 13, 13)):
        with pytest.raises(Undefined, match="2 numbers"):
            last(M, TWO, W, b, lines, REAL)


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=lambda A: A.name)
def test_rounding_of_a_sum_is_as_argued(A: Any) -> None:
    """Terms, twice two, times what they may add up to: of x + 1 in [1, 3], off by 0.3, and of two units of z."""
    group = units(Number(1, 0.5, 0.1, 0.2), [1.0, -1.0], [0.25, 2.0], 1, 0.05)
    read = [plain([Number(0, 1.0, 0.1, 0.2)])[0], group]
    w, b = np.array([-2.0, 3.0, 0.5]), np.array([0.0, -7.0])
    # relu(z + 3/4) 3 + relu(3/2 - z) / 2 for z from -1 to 1: at the ends 5/4 and 11/2
    size = 2 * 3.3 + 5.5 + 3.5 * 0.35
    gamma = 5 * A.u / (1 - 5 * A.u)
    found = rounding_of_sum(M, read, w, b, A)
    flush = 8 * 5 * (A.tiny + NORMAL) * (2 + size + 3 + 7)
    assert found == pytest.approx([gamma * size, gamma * (size + 7)], rel=1e-6)
    assert (found >= [gamma * size, gamma * (size + 7)]).all()
    assert (rounding_of_sum(M, read, w, b, REAL) == 0).all()
    none = rounding_of_sum(M, plain([Number(0, 0.0, 0.0)]), np.zeros(1), np.zeros(2), FLOAT32)
    assert none == pytest.approx(8 * 2 * FLOAT32.tiny * 2, rel=1e-6)
    assert flush < found[0]


def test_what_may_overflow_is_not_bounded() -> None:
    w = np.full(1, 2.0**122)
    for bias, finite in ((0.0, True), (2.0**124, False)):
        assert np.isfinite(rounding_of_sum(M, TWO[:1], w, np.full(1, bias), FLOAT32)[0]) == finite


def test_errors_of_what_is_read_are_multiplied_by_slopes() -> None:
    read = plain([Number(0, 0.25, 0.01, 0.002), Number(1, 0.0, 0.04, 0.003)])
    found = follow_line(M, read, np.array([-3.0, 2.0]), 5.0, 13)
    # -3 (x + 1/4) + 2 z + 5 - x - z is 17/4 - 4 x + z: from -19/4 to 21/4
    assert found.offset == pytest.approx(0.25)
    assert found.error == pytest.approx(5 + 3 * 0.01 + 2 * 0.04)
    assert found.moved == pytest.approx(3 * 0.002 + 2 * 0.003)
    group = units(Number(0, 0.0, 0.01, 0.002), [1.0, 1.0], [0.0, -1.0], own=1e-3)
    found = follow_line(M, [group], np.array([1.0, 2.0]), 0.0, 3)  # x + 2 relu(x - 1): slopes 1 and 3
    assert found.moved == pytest.approx(3 * 0.002 + 3 * 1e-3)
    # x^2 is at most 1/4 above and below it
    assert (found.offset, found.error) == (pytest.approx(0.125, abs=0.01), pytest.approx(0.125 + 0.03, abs=0.01))
    with pytest.raises(Undefined, match="not a sum of functions of single numbers"):
        follow_line(M, TWO, np.array([1.0, 1.0]), 0.0, 11)
    with pytest.raises(Undefined, match="line 1"):
        follow_line(M, TWO, np.array([1.0, 0.0]), 0.0, 13)  # z is not read


def test_a_constant_line_needs_nothing() -> None:
    found = follow_line(M, TWO, np.zeros(2), 3.25, 2)
    assert (found.offset, found.error < 1e-11, found.moved) == (pytest.approx(0.25), True, 0)


def test_lines_are_divided_among_the_numbers_that_are_read() -> None:
    def parts(line: int) -> tuple[Fraction, dict[int, Any]]:
        found: dict[int, Any] = {0: [], 1: []}
        return blocks._divide(M, TWO, line, found), {k: sorted(part) for k, part in found.items()}

    assert parts(2) == (3, {0: [], 1: []})
    assert parts(5) == (0, {0: [(1, 5)], 1: []})
    assert parts(7) == (0, {0: [(-1, 3)], 1: [(1, 1)]})
    assert parts(8) == (0, {0: [(3, 3)], 1: [(-3, 1)]})
    assert parts(12) == (0, {0: [(1, 3), (1, 5)], 1: [(1, 9)]})
    with pytest.raises(Undefined, match="line 14, sin"):
        parts(14)
    with pytest.raises(Undefined, match="line 11, mul"):
        parts(11)


def test_what_a_line_is_a_function_of() -> None:
    wanted = {0: 0, 1: 1, 2: Fraction(3), 3: 0, 4: 0, 5: 0, 6: None, 7: None, 9: 1, 11: None, 13: None, 14: None}
    for line, source in wanted.items():
        assert blocks._source(M, TWO, line, {}) == source, line
        assert type(blocks._source(M, TWO, line, {})) is type(source)
    third = [*TWO, *plain([Number(13, 0.0, 0.0)])]
    assert blocks._source(M, third, 14, {}) == 2
    assert blocks._source(M, TWO[1:], 3, {}) is None


@pytest.mark.parametrize("line", [0, 3, 5, 9])
def test_a_line_follows_the_number_that_is_read(line: int) -> None:
    f = {0: lambda x: x, 3: lambda x: x * x, 5: lambda x: 3 * x + 3, 9: np.sin}[line]
    group = plain([Number(4 if line < 9 else 1, 7.0, 0.0)])[0]  # 3 x + 7, or z + 7
    s = np.array([7.5, 8.0])
    x = (s - 7) / 3 if line < 9 else s - 7
    H = blocks._target_jet(M, group, [(Fraction(1), line), (Fraction(-1, 2), line)], s, s, False)
    assert H.value[0] == pytest.approx(0.5 * f(x), abs=1e-12)
    assert H.value[1] == pytest.approx(0.5 * f(x), abs=1e-12)
    assert (H.value[0] <= H.value[1]).all()


def test_values_are_cut_to_their_ranges_and_derivatives_are_not() -> None:
    group = plain([Number(0, 0.0, 0.0)])[0]
    low, high = np.array([-1.0, 1.0]), np.array([1.0, 5.0])
    free, cut = (blocks._target_jet(M, group, [(Fraction(1), 3)], low, high, cut) for cut in (False, True))
    assert [end.tolist() for end in free.value] == [pytest.approx([0, 1]), pytest.approx([1, 25])]
    assert [end.tolist() for end in cut.value] == [pytest.approx([0, 1], abs=1e-9), pytest.approx([1, 4])]


def test_g_at_numbers() -> None:
    group = units(Number(0, 0, 0), [1.0, -1.0], [-0.5, 0.25])
    s = np.array([-1.0, 0.0, 0.25, 1.0])
    low, high = blocks._network_values(group, np.array([2.0, 3.0]), s)
    exact = [3.75, 0.75, 0.0, 1.0]
    assert low == pytest.approx(exact)
    assert high == pytest.approx(exact)
    assert (low <= exact).all()
    assert (high >= exact).all()
    low, high = blocks._network_values(TWO[0], np.array([-2.0]), s)
    assert low == pytest.approx(-2 * s)
    assert high == pytest.approx(-2 * s)


def test_units_without_a_weight_are_left_out() -> None:
    group = units(Number(0, 0, 0), [1.0, -1.0, 1.0], [1.0, 2.0, 3.0], first=2, own=0.5)
    left = blocks._units_read(group, np.array([9.0, 9.0, 4.0, 0.0, 5.0]))
    assert left.bias is not None
    assert [a.tolist() for a in (left.units, left.signs, left.bias, left.own)] == [
        [2, 4],
        [1, 1],
        [1, 3],
        [0.5] * 2,
    ]
    assert blocks._units_read(TWO[1], np.array([0.0, 1.0])).bias is None


def test_where_a_number_lies() -> None:
    for offset in (0.0, -5.0, 0.1):
        low, high = blocks.domain(M, Number(0, offset, 0.0))
        assert Fraction(low) <= Fraction(offset) < Fraction(low) + Fraction(1, 10**12)
        assert Fraction(high) - Fraction(1, 10**12) < 2 + Fraction(offset) <= Fraction(high)


def test_slopes_without_units_and_beyond_the_range() -> None:
    assert blocks._steepest(M, TWO[0], np.array([-3.0])) == pytest.approx(3)
    for corner, slope in ((2.2, 5.0), (2.4, 1.0), (-0.2, 5.0), (-0.4, 4.0)):  # a number off by at most 0.3
        group = units(Number(0, 0.0, 0.1, 0.2), [1.0, 1.0], [9.0, -corner])
        assert blocks._steepest(M, group, np.array([1.0, 4.0])) == pytest.approx(slope if corner > 0 else 5.0)
        group = units(Number(0, 0.0, 0.1, 0.2), [1.0, -1.0], [9.0, corner])
        wanted = 3.0 if corner > -0.3 else 1.0
        assert blocks._steepest(M, group, np.array([1.0, 4.0])) == pytest.approx(max(wanted, 1.0))


def test_gaps_by_hand() -> None:
    """x^2 on [0, 2] and its chords: 2 x is up to 1 above it, with a corner at 1 up to 1/4."""
    group = units(Number(0, 0.0, 0.0), [1.0, 1.0], [0.0, -1.0])
    for weights, wanted in (([2.0, 0.0], (0, 1)), ([1.0, 2.0], (0, 0.25)), ([0.0, 0.0], (-4, 0))):
        low, high = gap(M, group, np.array(weights), [(Fraction(1), 3)])
        slack = 0.011 * (wanted[1] - wanted[0])
        assert wanted[0] - slack <= low[0] <= wanted[0] + 1e-9
        assert wanted[1] - 1e-9 <= high[0] <= wanted[1] + slack
    low, high = gap(M, group, np.array([0.0, 0.0]), [])
    assert (abs(low[0]) < 1e-12, abs(high[0]) < 1e-12) == (True, True)


def close(wanted: Any) -> Any:
    return pytest.approx(wanted, rel=1e-13, abs=0)


def test_a_sign_is_that_of_the_first_weight_whatever_it_is() -> None:
    found = [(u.tolist(), s.tolist()) for u, s in group_columns(np.array([[1.0, -1.0], [-2.0, 2.0]]))]
    assert found == [([0, 1], [1, -1])]


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=lambda A: A.name)
def test_every_factor_of_the_rounding_of_a_sum(A: Any) -> None:
    """A number in [-3, -1], a unit with a weight beside one without, and a group that is not read at all."""
    lost = units(Number(0, 0.0, 0.0), [1.0], [0.0], 3, np.inf)
    read = [
        plain([Number(1, -2.0, 0.0)])[0],
        units(Number(0, 0.0, 0.25, 0.5), [1.0, -1.0], [-1.0, 9.0], 1, 0.125),
        lost,
    ]
    w = np.array([-8.0, 4.0, 0.0, 0.0])
    more = 1 + 2.0**-30
    ends = [blocks.domain(M, group.read) for group in read[:2]]
    size = 8 * -ends[0][0] * more + 4 * ((ends[1][1] - 1) + (0.125 + 0.75)) * more
    for b in (0.0, -7.0, 7.0):
        found = rounding_of_sum(M, read, w, np.array([b]), A)[0]
        flushed = 8 * 4 * (A.tiny + NORMAL) * (2 + size + 8 + abs(b)) + TINY
        assert found == close(float(gamma(4, A.u)) * (size + abs(b)) * UP + flushed)
    for b in (2.0, -2.0):
        small = replace(A, u=0.0, tiny=2.0**-20)
        found = rounding_of_sum(M, read, w, np.array([b, 0.5]), small)
        assert found == close([8 * 4 * (2.0**-20 + NORMAL) * (2 + size + 8 + 2) + TINY] * 2)
    none = rounding_of_sum(M, read, np.zeros(4), np.zeros(1), replace(A, u=0.0, tiny=2.0**-20))
    assert none == close([8 * 2 * (2.0**-20 + NORMAL) * 2 + TINY])
    below = units(Number(1, -2.0, 0.0), [1.0], [2.0])  # relu(s + 2) of a number in [-3, -1]
    found = rounding_of_sum(M, [below], np.ones(1), np.zeros(1), A)[0]
    assert found == pytest.approx(float(gamma(3, A.u)), rel=1e-6)


def test_a_sum_or_a_bias_that_may_overflow() -> None:
    for w, b, finite in (
        (2.0**122, 0.0, True),
        (2.0**124, 0.0, False),
        (1.0, -(2.0**124), False),
        (1.0, 0.0, True),
    ):
        found = rounding_of_sum(M, TWO[:1], np.array([w]), np.array([b]), FLOAT32)[0]
        assert np.isfinite(found) == finite


def test_every_factor_of_what_is_followed() -> None:
    group = units(Number(0, 0.0, 100.0, 0.002), [1.0, 1.0, 1.0], [0.0, -1.0, -1.5], own=1e-3)
    w = np.array([1.0, -2.0, 0.0])  # slopes 1 and -1
    found = follow_line(M, [group], w, 0.5, 2)
    steep = blocks._steepest(M, group, w)
    assert steep == close(1 * UP)
    low, high = (float(end[0]) for end in gap(M, blocks._units_read(group, w), w[:2], []))
    low, high = (float(end[0]) for end in out(np.array([low - 2.5]), np.array([high - 2.5])))
    assert found.offset == close(low / 2 + high / 2)
    assert found.error == close((steep * 100.0 * UP + (high - low) / 2) * UP + TINY)
    assert found.moved == close((steep * 0.002 + 3 * 1e-3) * (1 + 2.0**-30))
    exact = follow_line(M, TWO, np.zeros(2), 3.0, 2)
    assert exact.error == TINY
    moved = last(M, [group], w[:, None], np.array([0.5]), (2,), FLOAT32)[0].moved
    assert moved == close((found.moved + rounding_of_sum(M, [group], w, np.array([0.5]), FLOAT32)[0]) * UP)


def test_what_has_no_bound_is_undefined_and_what_rounding_makes_of_it_is_infinite() -> None:
    with pytest.raises(Undefined, match="line 0 is not bounded"):
        follow_line(M, plain([Number(0, 0.0, np.inf)]), np.ones(1), 0.0, 0)
    for own, moved in ((0.0, np.inf), (np.inf, 0.0)):
        group = units(Number(0, 0.0, 0.0, moved), [1.0, 1.0], [0.0, 0.0], own=own)
        least = 2.0**-1074
        with np.errstate(all="ignore"):
            assert follow_line(M, [group], np.array([least, -least]), 0.0, 19).moved == np.inf
            assert follow_line(M, [group], np.array([1.0, 1.0]), 0.0, 0).moved == np.inf


def test_constants_and_lines_that_are_met_twice_add_up() -> None:
    def parts(line: int) -> tuple[Fraction, dict[int, Any]]:
        found: dict[int, Any] = {0: [], 1: []}
        return blocks._divide(M, TWO, line, found), {k: sorted(part) for k, part in found.items()}

    assert parts(17) == (6, {0: [(1, 3)], 1: [(1, 9)]})  # x^2 + sin z + 3 - -3
    assert parts(18) == (0, {0: [(2, 3)], 1: [(2, 9)]})
    assert parts(19) == (0, {0: [], 1: []})


def test_a_function_of_a_number_and_of_constants() -> None:
    assert blocks._source(M, TWO, 19, {}) == 0
    assert blocks._source(M, TWO, 20, {}) == blocks._source(M, TWO, 21, {}) == 1
    s = np.array([-0.5, 0.5])
    for line, wanted in ((20, [3.0, 3.0]), (21, [0.0, np.sin(0.5)])):
        H = blocks._target_jet(M, TWO[1], [(Fraction(1), line)], s, s, False)
        assert H.value[0] == pytest.approx(wanted, abs=1e-12)


def test_what_blocks_cost_is_said_before_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(ramps, "spend", lambda *given: said.append(given))
    group = units(Number(0, 0.0, 0.0), [1.0, 1.0, 1.0], [0.0, -1.0, -0.5])
    blocks._network_values(group, np.ones(3), np.zeros(5))
    assert said == [("corners of a block", 1600.0, 512.0)]


def test_corners_beyond_the_range_are_no_ends_of_pieces() -> None:
    group = units(Number(0, 0.0, 0.0), [1.0, 1.0, 1.0], [0.0, -5.0, -6.0])
    low, high = gap(M, group, np.array([2.0, 1.0, 1.0]), [(Fraction(1), 3)])
    assert (low[0], high[0]) == (pytest.approx(0, abs=0.011), pytest.approx(1, abs=0.011))
    assert blocks._steepest(M, group, np.array([2.0, 1.0, 1.0])) == pytest.approx(2)
    assert blocks.domain(M, Number(0, 0.0, 0.0))[0] < 0 < 2 < blocks.domain(M, Number(0, 0.0, 0.0))[1]


def test_units_with_a_corner_at_the_same_place_are_never_on_together() -> None:
    """3 relu(x - 1) + relu(1 - x): slopes -1 and 3, never 2; and the other way round."""
    group = units(Number(0, 0.0, 0.0), [1.0, -1.0], [-1.0, 1.0])
    for w in ([3.0, 1.0], [1.0, 3.0]):
        assert blocks._steepest(M, group, np.array(w)) == close(3 * UP)


def test_slopes_have_a_slack_of_their_own_and_errors_count() -> None:
    group = units(Number(0, 0.0, 0.0), [1.0, 1.0, 1.0], [9.0, 9.0, 9.0])
    found = blocks._steepest(M, group, np.array([2.0**60, -(2.0**60), 0.0]))
    assert found == close(2.0**61 * 5 * 4 * U * UP)
    assert blocks._steepest(M, TWO[0], np.array([-3.0])) == close(3 * UP)
    far = units(Number(0, 0.0, 0.3), [1.0, 1.0], [9.0, -2.2])
    assert blocks._steepest(M, far, np.array([1.0, 4.0])) == pytest.approx(5)


def test_a_corner_counts_up_to_the_last_float_that_a_number_may_reach() -> None:
    """One unit of slope 1 that is always on, and one of slope 4 with its corner at the very end, or beyond it."""
    for error in (0.0, 0.5):
        read = Number(0, 0.0, error)
        low, high = blocks.domain(M, read)
        reach = error * UP + TINY
        ends = np.nextafter(low - reach, -np.inf), np.nextafter(high + reach, np.inf)
        for sign, end in zip((-1.0, 1.0), ends, strict=True):
            for corner, steep in ((np.nextafter(end, 0.0), 5.0), (end, 1.0)):
                group = units(read, [sign, sign], [9.0, -sign * corner])
                assert blocks._steepest(M, group, np.array([1.0, 4.0])) == pytest.approx(steep), (error, corner)


def test_the_offset_is_a_rounded_middle_and_the_error_covers_the_farther_end() -> None:
    """Just below 2 the upper end is rounded to twice as coarse a number."""
    uneven = 0
    for b in 2.0 - np.arange(1, 9) * 2 * U:
        low, high = (float(end[0]) for end in out(np.full(1, b), np.full(1, b)))
        offset = low / 2 + high / 2
        near, far = sorted((high - offset, offset - low))
        uneven += near < far
        assert follow_line(M, TWO, np.zeros(2), float(b), 19).error == far * UP + TINY
    assert uneven > 1


Pair = tuple[float, float]


def stub(
    monkeypatch: pytest.MonkeyPatch, slope: float, start: float, bend: Pair, cut: Pair, rounds: int = 1
) -> list[Any]:
    """G = start + slope s, known to -1/8 and +1/4; H = s, known to -1/16 and +1/2."""
    seen: list[Any] = []

    def network(_group: Any, _w: Any, s: Any) -> Any:
        seen.append(s)
        return start + slope * s - 0.125, start + slope * s + 0.25

    def target(_m: Any, _g: Any, _p: Any, low: Any, high: Any, is_cut: bool) -> Jet:
        one = np.ones_like(low)
        if low is high:
            return Jet((low - 0.0625, low + 0.5) if not is_cut else (low * np.nan, low * np.nan))
        return (
            Jet((cut[0] * one, cut[1] * one)) if is_cut else Jet((low, high), bend=(bend[0] * one, bend[1] * one))
        )

    monkeypatch.setattr(blocks, "_network_values", network)
    monkeypatch.setattr(blocks, "_target_jet", target)
    monkeypatch.setattr(differences, "ROUNDS", rounds)
    return seen


@pytest.mark.parametrize(("slope", "start"), [(3.0, 0.0), (-3.0, 0.0), (3.0, 40.0), (-3.0, -40.0)])
def test_every_part_of_a_gap(monkeypatch: pytest.MonkeyPatch, slope: float, start: float) -> None:
    a, b = blocks.domain(M, Number(0, 5.0, 0.0))
    (far,) = plain([Number(0, 5.0, 0.0)])
    ends = [start + slope * s for s in (a, b)]
    first, second = (
        out(np.array([g - 0.125 - (s + 0.5)]), np.array([g + 0.25 - (s - 0.0625)]))
        for g, s in zip(ends, (a, b), strict=True)
    )
    width = (b - a) * UP
    bow = [bend * (width * width * (UP / 8)) for bend in (6.0, 4.0)]
    wanted = out(np.minimum(first[0], second[0]) - bow[1], np.maximum(first[1], second[1]) + bow[0], TINY)
    stub(monkeypatch, slope, start, (-4.0, 6.0), (-9.0, 11.0))
    assert gap(M, far, np.ones(1), []) == wanted
    wanted = out(np.array([min(ends) - 0.125 - 11.0]), np.array([max(ends) + 0.25 + 9.0]), TINY)
    stub(monkeypatch, slope, start, (-np.inf, np.inf), (-9.0, 11.0))
    with np.errstate(all="ignore"):
        assert gap(M, far, np.ones(1), []) == wanted
        for cut in ((-np.inf, 11.0), (-9.0, np.inf)):
            stub(monkeypatch, slope, start, (-np.inf, np.inf), cut)
            with pytest.raises(Undefined, match="a block is not seen"):
                gap(M, far, np.ones(1), [])


def test_pieces_are_halved_so_often_and_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known but the values: no piece is ever done."""
    with np.errstate(all="ignore"):
        for rounds, most, turns in ((1, 1 << 14, 1), (4, 1 << 14, 4), (60, 8, 4), (60, 1, 1)):
            monkeypatch.setattr(differences, "MOST_PIECES", most)
            seen = stub(monkeypatch, 0.0, 0.0, (-np.inf, np.inf), (-9.0, 11.0), rounds)
            found = gap(M, TWO[0], np.ones(1), [])
            assert [len(s) for s in seen] == [2**k for k in range(turns) for _ in range(2)]
            assert (found[0][0], found[1][0]) == (pytest.approx(-11.125), pytest.approx(9.25))
