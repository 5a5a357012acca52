"""How far two lines are apart: no less than they are, not much more, and infinitely far where nothing is seen."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.balls import UP
from onelayer_checker.functions.deviation import _hull, deviation
from onelayer_checker.functions.formulas import NAMED, Meaning, read_formula

#: A target and what it is replaced by, as lines; k and j are the last of each. x and y lie in [0, 1].
COMMON = [["x", 0], ["y", 0], ["sub", 0, 1]]
TAYLOR = [["cos", 2], ["mul", 2, 2], ["const", (0.5).hex()], ["mul", 4, 5], ["const", (1.0).hex()], ["sub", 7, 6]]


def meaning(lines: list[list[object]]) -> Meaning:
    head = {"d": 1, "tokens": 3, "per": "token", "box": [[(0.0).hex(), (1.0).hex()]], "lines": lines, "stages": []}
    with np.errstate(all="ignore"):
        return Meaning(read_formula(head | {name: [0] for name in NAMED}, "target"))


def test_two_functions_of_one_line_are_compared_on_its_range() -> None:
    """cos u and 1 - u^2/2 differ most at the ends of [-1, 1]."""
    found = deviation(meaning(COMMON + TAYLOR), 3, 8, {})
    assert np.cos(1) - 0.5 <= found <= 1.02 * (np.cos(1) - 0.5)


def test_an_average_moves_no_further_and_slopes_multiply() -> None:
    lines = [*COMMON, *TAYLOR, ["mean", 3], ["mean", 8], ["exp", 9], ["exp", 10]]
    m = meaning(lines)
    inside = deviation(m, 3, 8, {})
    assert deviation(m, 9, 10, {}) == inside
    assert inside <= deviation(m, 11, 12, {}) <= np.e * 1.01 * inside
    assert deviation(m, 11, 11, {}) == 0


@pytest.mark.parametrize("other", [["sin", 0], ["mean", 0], ["mul", 0, 1]])
def test_what_has_nothing_in_common_is_infinitely_far(other: list[object]) -> None:
    """Of lines of x, of an average, and of x and y nothing is seen."""
    lines = [["x", 0], ["y", 0], other, ["mean", 1]]
    assert deviation(meaning(lines), 3, 2, {}) == np.inf


def test_a_root_at_zero_has_no_slope() -> None:
    lines = [*COMMON, *TAYLOR, ["mul", 3, 3], ["sub", 9, 9], ["mul", 8, 8], ["sqrt", 9], ["sqrt", 11]]
    assert deviation(meaning(lines), 12, 13, {}) > 0


#: A variance, and that plus a small multiple of the mean, which are 0.1 apart at most; and the positive part of a
#: line that is not the variance at all.
VARIANCE = [["y", 0], ["mean", 0], ["sub", 0, 1], ["mul", 2, 2], ["mean", 3]]
MOVED = [["const", (0.1).hex()], ["mul", 5, 1], ["sub", 4, 6]]


def test_roots_are_at_most_the_root_apart_however_steep_they_are() -> None:
    """sqrt(v) and sqrt(max(v - 0.1 m, 0)) are sqrt(0.1) apart at most: v may be 0, and m 1."""
    m = meaning([*VARIANCE, *MOVED, ["relu", 7], ["sqrt", 4], ["sqrt", 8]])
    assert deviation(m, 4, 7, {}) == np.inf  # they are functions of no common line: so it is given
    with np.errstate(all="ignore"):
        found = deviation(m, 9, 10, {(4, 7): 0.1})
    assert np.sqrt(0.1) <= found <= 1.0001 * np.sqrt(0.1)


def test_a_root_that_is_not_steep_moves_by_its_slope() -> None:
    lines = [["x", 0], ["const", (4.0).hex()], ["add", 0, 1], ["sqrt", 2], ["sin", 0], ["add", 4, 1], ["sqrt", 5]]
    apart = 1 - np.sin(1)
    assert np.sqrt(5) - np.sqrt(4 + np.sin(1)) <= deviation(meaning(lines), 3, 6, {}) <= 1.01 * apart / 4


def test_the_positive_part_is_near_only_to_what_is_not_negative() -> None:
    """u = x - 1/2 is 1/2 from its positive part, at x = 0; 2 u^2, which is not negative, is 1 from u at most, so
    that it is no further from its positive part."""
    u = [["x", 0], ["const", (0.5).hex()], ["sub", 0, 1]]
    m = meaning([*u, ["mul", 2, 2], ["add", 3, 3], ["const", (0.0).hex()], ["add", 2, 5], ["relu", 2], ["y", 0]])
    assert deviation(m, 6, 7, {}) == pytest.approx(0.5)
    assert 1 <= deviation(m, 4, 7, {}) == deviation(m, 4, 2, {}) <= 1.0001
    assert deviation(m, 4, 7, {(4, 2): 0.75}) == 0.75
    assert deviation(m, 6, 7, {(6, 2): 0.1}) == pytest.approx(0.5)
    assert deviation(m, 8, 7, {}) == np.inf


def test_a_positive_part_is_compared_on_a_common_line_where_its_line_is_not() -> None:
    """u^2 and the positive part of u = x - y are functions of u; with u itself there is no line before it."""
    m = meaning([*COMMON, ["mul", 2, 2], ["relu", 2]])
    assert deviation(m, 3, 2, {}) == np.inf
    assert 1 <= deviation(m, 3, 4, {}) <= 1.0001


#: e^y and 1 + y, means of them, of cos(x - y) and of what is near it, and of cos(x - y) and e^y together.
SUMS = [*COMMON, *TAYLOR, ["exp", 1], ["add", 7, 1], ["mean", 3], ["mean", 9], ["mean", 8], ["mean", 10]]
WHOLE = [["add", 3, 9], ["sub", 3, 9], ["mean", 15], ["mean", 16]]


@pytest.mark.parametrize(("op", "k", "wrong"), [("add", 17, "sub"), ("sub", 18, "add")])
def test_the_mean_of_a_sum_is_near_a_sum_of_what_is_near_means_of_its_parts(op: str, k: int, wrong: str) -> None:
    m = meaning([*SUMS, *WHOLE, [op, 13, 14], [wrong, 13, 14], ["mul", 13, 14]])
    first, second = deviation(m, 11, 13, {}), deviation(m, 12, 14, {})
    assert min(first, second) > 0
    assert first + second < deviation(m, k, 19, {}) <= (first + second) * UP**2
    assert deviation(m, k, 20, {}) == deviation(m, k, 21, {}) == np.inf


def test_only_means_and_only_of_sums_are_taken_apart() -> None:
    more = [["add", 13, 14], ["exp", 15], ["mul", 3, 9], ["mean", 21], ["mul", 13, 14]]
    m = meaning([*SUMS, *WHOLE, *more])
    assert deviation(m, 20, 19, {}) == np.inf
    assert deviation(m, 22, 23, {}) == np.inf


def test_means_of_parts_must_be_lines() -> None:
    """The mean of y is not: so nothing is said of the sum."""
    lines = [*COMMON, *TAYLOR, ["mean", 3], ["mean", 8], ["add", 3, 1], ["mean", 11], ["add", 10, 0]]
    assert deviation(meaning(lines), 12, 13, {}) == np.inf


#: 2^-700 and 2^700.
FAINT, LOUD = ["const", (2.0**-700).hex()], ["const", (2.0**700).hex()]


def test_what_underflows_is_not_forgotten() -> None:
    """cos u and 1 - u^2/2 times 2^-1400 are apart by less than any float; times 2^1400 they are as they were."""
    lines = [*COMMON, *TAYLOR, FAINT, LOUD]
    for k in (3, 8):
        lines += [["mul", 9, k], ["mul", 9, len(lines)], ["mul", 10, len(lines) + 1], ["mul", 10, len(lines) + 2]]
    with np.errstate(all="ignore"):
        m = meaning(lines)
        assert deviation(m, 14, 18, {}) >= deviation(m, 3, 8, {}) > 0


def test_roots_of_what_underflows_are_not_forgotten() -> None:
    """They are apart by (2^-1400 e)^(1/8) at most, which is a float."""
    lines, ends = [*COMMON, *TAYLOR, FAINT], []
    for k in (3, 8):
        lines += [["mul", 9, k], ["mul", 9, len(lines)], ["abs", len(lines) + 1]]
        for _ in range(3):
            lines.append(["sqrt", len(lines) - 1])
        ends.append(len(lines) - 1)
    with np.errstate(all="ignore"):
        assert deviation(meaning(lines), *ends, {}) >= 2.0 ** (-1400 / 8) * 0.04 ** (1 / 8)


def test_polynomials_that_are_equal_are_not_apart() -> None:
    lines = [["x", 0], ["y", 0], ["sub", 0, 1], ["mul", 2, 2], ["mul", 0, 0], ["mul", 1, 1], ["mul", 0, 1]]
    lines += [["add", 4, 5], ["sub", 7, 6], ["sub", 8, 6]]
    assert deviation(meaning(lines), 3, 9, {}) == 0


#: u = cos(x - y) and v = 1 - (x - y)^2/2 are 3 and 8; both lie in [1/2, 1], if v is seen by its terms.
PAIR = [*COMMON, *TAYLOR]
APART = float(np.cos(1) - 0.5)


@pytest.mark.parametrize(
    ("op", "steep"),
    [("neg", 1), ("abs", 1), ("relu", 1), ("exp", np.e), ("sin", 1), ("tanh", 1), ("sqrt", 0.5 / np.sqrt(0.5))],
)
def test_the_same_operation_multiplies_by_its_largest_slope(op: str, steep: float) -> None:
    m = meaning([*PAIR, [op, 3], [op, 8]])
    low = min(float(m.ranges[k][0][0]) for k in (3, 8))
    if op == "sin":
        steep = np.cos(low)
    if op == "tanh":
        steep = 1 - np.tanh(low) ** 2
    inside = deviation(m, 3, 8, {})
    assert APART <= inside <= 1.02 * APART
    assert deviation(m, 9, 10, {}) == pytest.approx(steep * inside, rel=1e-9)
    assert deviation(m, 9, 10, {}) >= steep * inside * (1 - 1e-12)


def test_both_arguments_add_to_what_two_lines_are_apart() -> None:
    more = [["add", 3, 0], ["add", 8, 0], ["add", 3, 3], ["add", 8, 8], ["sub", 0, 3], ["sub", 0, 8]]
    more += [["mul", 3, 3], ["mul", 8, 8], ["mul", 3, 0], ["mul", 8, 0], ["div", 0, 3], ["div", 0, 8]]
    m = meaning([*PAIR, *more, ["max", 3, 0], ["max", 8, 0], ["hypot", 3, 0], ["hypot", 8, 0]])
    inside, known = deviation(m, 3, 8, {}), {}
    for at, factor in ((9, 1), (11, 2), (13, 1), (15, 2), (17, 1), (19, 4), (21, 1)):
        found = deviation(m, at, at + 1, known)
        assert found == pytest.approx(factor * inside, rel=1e-9), at
        assert found >= factor * inside * (1 - 1e-12), at
    with np.errstate(invalid="ignore"):
        assert 0.9 * inside < deviation(m, 23, 24, known) < 2.01 * inside
    assert known[3, 8] == inside


def test_maxima_and_averages_over_tokens_move_no_further_and_other_pairs_are_not_seen() -> None:
    m = meaning([*PAIR, ["largest", 3], ["largest", 8], ["mean", 3], ["average", 1, 3], ["average", 1, 8]])
    inside = deviation(m, 3, 8, {})
    assert deviation(m, 9, 10, {}) == inside
    for k, j in ((9, 11), (11, 9), (12, 13), (11, 12)):
        assert deviation(m, k, j, {}) == np.inf


def test_where_an_argument_is_infinitely_far_the_lines_may_still_be_functions_of_one() -> None:
    """x and x^2 have no line in common but x; sin x and sin(x^2) are compared as functions of it."""
    m = meaning(
        [["x", 0], ["mul", 0, 0], ["sin", 0], ["sin", 1], ["const", (2.0).hex()], ["add", 1, 4], ["neg", 4]]
    )
    x = np.linspace(0, 1, 10_001)
    wanted = np.abs(np.sin(x) - np.sin(x * x)).max()
    assert wanted <= deviation(m, 2, 3, {}) <= 1.02 * wanted
    assert wanted <= deviation(m, 3, 2, {}) <= 1.02 * wanted
    assert deviation(m, 5, 4, {}) == pytest.approx(1)
    assert deviation(m, 0, 1, {}) == np.inf
    wanted = np.abs(x * x + 2 - np.sin(x)).max()
    assert wanted <= deviation(m, 5, 2, {}) <= 1.02 * wanted


def test_one_argument_that_is_infinitely_far_leaves_the_common_line() -> None:
    """sin x + x and sin x + x^2: x and x^2 are compared with nothing, the sums as functions of x."""
    m = meaning([["x", 0], ["mul", 0, 0], ["sin", 0], ["add", 2, 0], ["add", 2, 1]])
    assert 0.25 <= deviation(m, 3, 4, {}) <= 1.02 * 0.25


def test_where_slopes_are_infinite_so_is_the_sum_though_an_argument_does_not_move() -> None:
    """The length of (u - 3/4, x), which may be 0."""
    with np.errstate(all="ignore"):
        part = [["const", (0.75).hex()], ["sub", 3, 9], ["sub", 8, 9], ["hypot", 10, 0], ["hypot", 11, 0]]
        m = meaning([*PAIR, *part])
        assert deviation(m, 12, 13, {}) == np.inf


def test_a_slope_of_one_is_inflated_twice() -> None:
    """The product and the sum are rounded: each has a factor of its own."""
    m = meaning([*PAIR, ["neg", 3], ["neg", 8]])
    assert deviation(m, 9, 10, {}) == pytest.approx(deviation(m, 3, 8, {}) * UP * UP, rel=1e-15, abs=0)


def test_a_hull_has_both_ends_of_both() -> None:
    a, b = (np.array([0.0]), np.array([3.0])), (np.array([-1.0]), np.array([2.0]))
    for first, second in ((a, b), (b, a)):
        low, high = _hull(first, second)
        assert (low[0], high[0]) == (-1.0, 3.0)
    low, high = _hull((np.array([5.0]), np.array([6.0])), a)
    assert (low[0], high[0]) == (0.0, 6.0)


def test_of_numbers_alone_nothing_is_seen() -> None:
    m = meaning([["const", (1.0).hex()], ["const", (2.0).hex()]])
    assert deviation(m, 0, 1, {}) == deviation(m, 1, 0, {}) == np.inf


def test_lines_whose_difference_is_no_number_are_infinitely_far() -> None:
    """c sin x and -c cos x for c near the largest number of float64."""
    large = [["const", c.hex()] for c in (1.7e308, -1.7e308)]
    m = meaning([["x", 0], *large, ["sin", 0], ["cos", 0], ["mul", 1, 3], ["mul", 2, 4]])
    with np.errstate(all="ignore"):
        assert deviation(m, 5, 6, {}) == np.inf


def test_a_hypot_is_compared_by_norms_and_else_as_a_function_of_one_line() -> None:
    """|x| + |y| exceeds it by 2 - sqrt 2; of one argument twice it is sqrt 2 |u|, which is 1 below cos u at 0."""
    lines = [*COMMON, ["abs", 0], ["abs", 1], ["add", 3, 4], ["hypot", 0, 1], ["hypot", 2, 2], ["cos", 2]]
    m = meaning(lines)
    with np.errstate(all="ignore"):
        assert 2 - 2**0.5 <= deviation(m, 6, 5, {}) <= 1.02 * (2 - 2**0.5)
        assert 1 <= deviation(m, 7, 8, {}) <= 1.02
