"""How far two lines are apart: no less than they are, not much more, and infinitely far where nothing is seen."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.functions.deviation import deviation
from onelayer_checker.functions.formulas import NAMED, Meaning, read_formula

#: A target and what it is replaced by, as lines; k and j are the last of each. x and y lie in [0, 1].
COMMON = [["x", 0], ["y", 0], ["sub", 0, 1]]
TAYLOR = [["cos", 2], ["mul", 2, 2], ["const", (0.5).hex()], ["mul", 4, 5], ["const", (1.0).hex()], ["sub", 7, 6]]


def meaning(lines: list[list[object]]) -> Meaning:
    head = {"d": 1, "tokens": 3, "per": "token", "box": [[(0.0).hex(), (1.0).hex()]], "lines": lines, "stages": []}
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


def test_polynomials_that_are_equal_are_not_apart() -> None:
    lines = [["x", 0], ["y", 0], ["sub", 0, 1], ["mul", 2, 2], ["mul", 0, 0], ["mul", 1, 1], ["mul", 0, 1]]
    lines += [["add", 4, 5], ["sub", 7, 6], ["sub", 8, 6]]
    assert deviation(meaning(lines), 3, 9, {}) == 0
