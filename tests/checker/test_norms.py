"""How far hypot and a sum of absolute values are apart: no less than they are, and not much more."""

from __future__ import annotations

from fractions import Fraction
from math import cos, hypot, pi, sin, tan
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import UP, U, gamma
from onelayer_checker.functions import norms
from onelayer_checker.functions.deviation import deviation
from onelayer_checker.functions.formulas import NAMED, Meaning, read_formula
from onelayer_checker.functions.intervals import out

#: Two components, their hypot, and a sum of absolute values.
LEAVES: list[list[Any]] = [["x", 0], ["x", 1], ["hypot", 0, 1]]
BOX = ((-1.0, 2.0), (-0.5, 0.25))


def meaning(lines: list[list[Any]], box: Any = BOX) -> Meaning:
    sides = [[float(a).hex(), float(b).hex()] for a, b in box]
    head = {"d": 2, "tokens": 3, "per": "token", "box": sides, "lines": lines, "stages": []}
    with np.errstate(all="ignore"):
        return Meaning(read_formula(head | {name: [0] for name in NAMED}, "target"))


def polygon(forms: list[tuple[float, float]], more: list[list[Any]] | None = None) -> list[list[Any]]:
    """The lines of sum |p a + q b|, of which the last is the sum."""
    lines = [*LEAVES]

    def put(*line: Any) -> int:
        lines.append(list(line))
        return len(lines) - 1

    sums = []
    for p, q in forms:
        a, b = (put("mul", put("const", c.hex()), i) for i, c in ((0, p), (1, q)))
        sums.append(put("abs", put("add", a, b)))
    at = sums[0]
    for k in sums[1:]:
        at = put("add", at, k)
    return lines + (more or [])


def even(count: int) -> list[tuple[float, float]]:
    half = pi / (2 * count)
    scale = 2 * sin(half) / (1 + cos(half))
    return [(scale * cos(2 * half * i), scale * sin(2 * half * i)) for i in range(count)]


def bound(lines: list[list[Any]], box: Any = BOX, k: int = 2) -> float:
    with np.errstate(all="ignore"):
        return norms.apart(meaning(lines, box), k, len(lines) - 1)


def reached(forms: list[tuple[float, float]], box: Any = BOX) -> float:
    """On the edge of the rectangle around 0 that holds the box."""
    A, B = (max(map(abs, side)) for side in box)
    s = np.linspace(-1, 1, 4001)
    sides = [(A + 0 * s, B * s), (-A + 0 * s, B * s), (A * s, B + 0 * s), (A * s, -B + 0 * s)]
    return max(float(np.abs(sum(abs(p * a + q * b) for p, q in forms) - np.hypot(a, b)).max()) for a, b in sides)


@pytest.mark.parametrize(
    "forms",
    [
        even(3),
        even(8),
        [(1.0, 0.0), (0.0, 1.0)],
        [(0.9, 0.1)],
        [(0.25, -0.75), (0.75, 0.25), (0.125, 0.5)],
        [(2.0, 0.0)],
        [(0.0, 0.5)],
    ],
)
@pytest.mark.parametrize("box", [BOX, BOX[::-1], ((0.0, 1.0), (0.0, 1.0))])
def test_a_sum_is_as_far_from_hypot_as_is_said(forms: list[tuple[float, float]], box: Any) -> None:
    found, wanted = bound(polygon(forms), box), reached(forms, box)
    assert wanted * (1 - 1e-9) <= found <= wanted * 1.03


def test_even_angles_are_off_by_the_square_of_a_tangent() -> None:
    for count in (4, 16):
        found = bound(polygon(even(count)), ((-1.0, 1.0), (-1.0, 1.0)))
        assert found == pytest.approx(hypot(1, 1) * tan(pi / (4 * count)) ** 2, rel=0.03)


def test_differences_multiples_and_negatives_are_read() -> None:
    """-3 (-(|a| - |b|)): 3 |a| - 3 |b|."""
    lines = [*LEAVES, ["abs", 0], ["abs", 1], ["sub", 3, 4], ["neg", 5], ["const", (-3.0).hex()]]
    m = meaning([*lines, ["mul", 6, 7], ["mul", 7, 6]])
    for line in (8, 9):
        read = norms._read_sum(m, line, leaves())
        assert read is not None
        assert (read.linear, sorted(read.terms)) == ((0, 0), [(-3, (0, 1)), (3, (1, 0))])
    assert norms._read_sum(m, 5, leaves()) == norms.Absolutes(
        (Fraction(0),) * 2, ((Fraction(1), A), (Fraction(-1), B))
    )


A, B = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))


def leaves() -> dict[int, norms.Absolutes | None]:
    return {0: norms.Absolutes(A), 1: norms.Absolutes(B)}


def test_multiples_of_multiples_are_multiplied() -> None:
    found = norms.Absolutes((Fraction(1), Fraction(2)), ((Fraction(5), A),)).times(Fraction(3))
    assert found == norms.Absolutes((Fraction(3), Fraction(6)), ((Fraction(15), A),))


def test_linear_parts_add_up() -> None:
    lines = [*LEAVES, ["const", (2.0).hex()], ["mul", 3, 1], ["sub", 0, 4], ["add", 5, 0], ["neg", 6], ["abs", 7]]
    read = norms._read_sum(meaning(lines), 7, leaves())
    assert read == norms.Absolutes((Fraction(-2), Fraction(2)))
    read = norms._read_sum(meaning(lines), 8, leaves())
    assert read == norms.Absolutes((Fraction(0), Fraction(0)), ((Fraction(1), (Fraction(-2), Fraction(2))),))


@pytest.mark.parametrize(
    "more",
    [
        [["sin", 0]],
        [["relu", 0]],
        [["max", 0, 1]],
        [["mul", 0, 1]],
        [["mul", 0, 0]],
        [["abs", 1], ["mul", 0, 3]],
        [["abs", 1], ["mul", 3, 0]],
        [["abs", 0], ["abs", 1], ["mul", 3, 4]],
        [["const", (1.0).hex()], ["abs", 0], ["add", 4, 3]],
        [["const", (1.0).hex()], ["abs", 0], ["add", 3, 4]],
        [["const", (1.0).hex()], ["abs", 3]],
        [["abs", 0], ["add", 3, 0]],
        [["abs", 0], ["add", 3, 1]],
        [["abs", 0], ["abs", 3]],
        [["add", 0, 1]],
        [["sub", 0, 0]],
        [["x", 1]],
    ],
)
def test_nothing_is_seen_of_other_lines(more: list[list[Any]]) -> None:
    assert bound([*LEAVES, *more]) == np.inf


def test_the_hypot_of_a_line_with_itself_is_left_to_others() -> None:
    assert bound([["x", 0], ["x", 1], ["hypot", 0, 0], ["abs", 0]]) == np.inf


def test_a_deviation_asks_for_it() -> None:
    lines = polygon(even(5))
    with np.errstate(all="ignore"):
        found = deviation(meaning(lines), 2, len(lines) - 1, {})
    assert found == bound(lines) < 0.1
    other = [*LEAVES, ["sin", 0]]
    with np.errstate(all="ignore"):
        assert deviation(meaning(other), 2, 3, {}) == np.inf


def test_sums_of_rows_are_enclosed() -> None:
    rows = np.array([[1.0, 2.0**60], [2.0**-60, 1.0], [-1.0, -(2.0**60)]])
    low, high = norms._sum((rows, rows))
    for at, a, b in zip(rows.T, low, high, strict=True):
        assert Fraction(float(a)) <= sum(map(Fraction, at.tolist())) <= Fraction(float(b))
        assert b - a <= 4 * 5 * 2.0**-53 * np.abs(at).sum()
    with np.errstate(all="ignore"):
        low, high = norms._sum((np.array([[-np.inf], [1.0]]), np.array([[1.0], [np.inf]])))
    assert (low[0], high[0]) == (-np.inf, np.inf)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_every_factor_of_a_sum(count: int) -> None:
    """The rows add up to 0, and their sizes to 2^71 count below and 2^81 count above: only the slack is seen."""
    signs = np.where(np.arange(2 * count) % 2, -1.0, 1.0)[:, None]
    low, high = signs * 2.0**70, signs * 2.0**80
    off = gamma(2 * count + 2, U) * UP
    wanted = out(np.full(1, -2 * count * 2.0**70 * off), np.full(1, 2 * count * 2.0**80 * off))
    assert norms._sum((low, high)) == wanted
