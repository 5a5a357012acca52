"""Values, first and second derivatives of operations: exact at points, enclosed on intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from onelayer_checker.functions.intervals import Interval
from onelayer_checker.functions.jets import Jet, of_one, of_two

Function = Callable[[float], tuple[float, float, float]]
ONES: dict[str, Function] = {
    "neg": lambda u: (-u, -1, 0),
    "exp": lambda u: (np.exp(u), np.exp(u), np.exp(u)),
    "recip": lambda u: (1 / u, -1 / u**2, 2 / u**3),
    "sqrt": lambda u: (u**0.5, 0.5 * u**-0.5, -0.25 * u**-1.5),
    "log": lambda u: (np.log(u), 1 / u, -1 / u**2),
    "tanh": lambda u: (np.tanh(u), 1 - np.tanh(u) ** 2, -2 * np.tanh(u) * (1 - np.tanh(u) ** 2)),
    "sin": lambda u: (np.sin(u), np.cos(u), -np.sin(u)),
    "cos": lambda u: (np.cos(u), -np.sin(u), -np.cos(u)),
    "abs": lambda u: (abs(u), np.sign(u), 0),
    "relu": lambda u: (max(u, 0), float(u > 0), 0),
}


def at(value: float, slope: float, bend: float) -> Jet:
    return Jet(*((np.full(1, float(x)),) * 2 for x in (value, slope, bend)))


def is_point(found: Jet, wanted: tuple[float, float, float]) -> None:
    for (low, high), exact in zip((found.value, found.slope, found.bend), wanted, strict=True):
        slack = 1e-12 * (1 + abs(exact))
        assert exact - slack <= low <= exact + slack
        assert exact - slack <= high <= exact + slack
        assert low <= high


@pytest.mark.parametrize("op", ONES)
@pytest.mark.parametrize("u", [0.3, 1.7, -0.8])
def test_functions_of_one_line_at_a_point(op: str, u: float) -> None:
    """f(u)' = f' u' and f(u)'' = f' u'' + f'' u'^2."""
    if op in ("sqrt", "log") and u < 0:
        with np.errstate(all="ignore"):
            assert not np.isfinite(of_one(op, at(u, 1, 1)).value).any()
        return
    f, first, second = ONES[op](u)
    is_point(of_one(op, at(u, 0.7, -1.3)), (f, first * 0.7, first * -1.3 + second * 0.49))


TWOS = {
    "add": lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
    "sub": lambda a, b: tuple(x - y for x, y in zip(a, b, strict=True)),
    "mul": lambda a, b: (a[0] * b[0], a[1] * b[0] + a[0] * b[1], a[2] * b[0] + 2 * a[1] * b[1] + a[0] * b[2]),
    "min": lambda a, b: min(a, b),
    "max": lambda a, b: max(a, b),
}


@pytest.mark.parametrize("op", TWOS)
@pytest.mark.parametrize(("u", "v"), [(0.4, 1.9), (1.9, 0.4), (-0.5, 0.7)])
def test_functions_of_two_lines_at_a_point(op: str, u: float, v: float) -> None:
    a, b = (u, 0.7, -1.3), (v, -1.1, 0.6)
    is_point(of_two(op, at(*a), at(*b), False), TWOS[op](a, b))


def test_products_of_a_line_with_itself_quotients_and_lengths() -> None:
    a, b = (0.4, 0.7, -1.3), (1.9, -1.1, 0.6)
    is_point(of_two("mul", at(*a), at(*a), True), TWOS["mul"](a, a))
    over = ONES["recip"](b[0])
    inverse = (over[0], over[1] * b[1], over[1] * b[2] + over[2] * b[1] ** 2)
    is_point(of_two("div", at(*a), at(*b), False), TWOS["mul"](a, inverse))
    squares = TWOS["add"](TWOS["mul"](a, a), TWOS["mul"](b, b))
    root = ONES["sqrt"](squares[0])
    is_point(
        of_two("hypot", at(*a), at(*b), False),
        (root[0], root[1] * squares[1], root[1] * squares[2] + root[2] * squares[1] ** 2),
    )


def wide(low: float, high: float) -> Jet:
    """The variable itself, on an interval."""
    return Jet((np.full(1, float(low)), np.full(1, float(high))), (np.ones(1),) * 2)


def numbers(interval: Interval) -> list[float]:
    return [float(end[0]) for end in interval]


def test_a_square_of_an_interval_is_not_a_product() -> None:
    found = of_two("mul", wide(-1, 2), wide(-1, 2), True)
    assert numbers(found.value) == pytest.approx([0, 4])
    assert numbers(found.slope) == pytest.approx([-2, 4])
    assert numbers(found.bend) == pytest.approx([2, 2])
    assert numbers(of_two("mul", wide(-1, 2), wide(-1, 2), False).value) == pytest.approx([-2, 4])


@pytest.mark.parametrize("op", ["abs", "relu"])
def test_of_a_corner_both_slopes_and_no_second_derivative_are_known(op: str) -> None:
    left = -1 if op == "abs" else 0
    found = of_one(op, wide(-1, 2))
    assert numbers(found.value) == [0, 2]
    assert numbers(found.slope) == [left, 1]
    assert numbers(found.bend) == [-np.inf, np.inf]
    for low, high, slope in ((0, 2, 1), (-2, 0, left), (1, 2, 1), (-2, -1, left)):
        found = of_one(op, wide(low, high))
        assert numbers(found.slope) == [slope, slope]
        assert numbers(found.bend) == [0, 0]


def test_of_two_that_cross_both_slopes_are_known() -> None:
    other = Jet((np.full(1, 0.5), np.full(1, 1.5)), (np.full(1, 3.0),) * 2, (np.full(1, 4.0),) * 2)
    for op, value in (("min", [0, 1]), ("max", [0.5, 1.5])):
        found = of_two(op, wide(0, 1), other, False)
        assert numbers(found.value) == value
        assert numbers(found.slope) == [1, 3]
        assert numbers(found.bend) == [-np.inf, np.inf]
    for low, high, smaller in ((-1, 0.5, True), (1.5, 2, False), (-1, 0, True), (1.75, 2, False)):
        found = of_two("min", wide(low, high), other, False)
        assert numbers(found.slope) == ([1, 1] if smaller else [3, 3])
        assert numbers(found.bend) == ([0, 0] if smaller else [4, 4])
        found = of_two("max", wide(low, high), other, False)
        assert numbers(found.slope) == ([3, 3] if smaller else [1, 1])
        assert numbers(found.bend) == ([4, 4] if smaller else [0, 0])


@pytest.mark.parametrize("op", [op for op in ONES if op not in ("abs", "relu")])
def test_intervals_contain_what_happens_inside(op: str) -> None:
    for low, high in ((0.25, 0.5), (0.5, 2.0), (0.125, 4.0)):
        found = of_one(op, wide(low, high))
        for u in np.linspace(low, high, 33):
            for (a, b), exact in zip((found.value, found.slope, found.bend), ONES[op](float(u)), strict=True):
                assert a - 1e-12 <= exact <= b + 1e-12


def test_where_a_function_is_undefined_nothing_is_known() -> None:
    with np.errstate(all="ignore"):
        for op, jet in (("sqrt", wide(-1, 1)), ("log", wide(0, 1)), ("recip", wide(-1, 1))):
            found = of_one(op, jet)
            assert [numbers(part) for part in (found.value, found.bend)] == [[-np.inf, np.inf]] * 2
        found = of_one("sqrt", wide(0, 1))
        assert numbers(found.value) == pytest.approx([0, 1])
        assert numbers(found.bend)[0] == -np.inf


def test_an_exponential_of_a_number_lies_between_two() -> None:
    low, high = of_one("exp", at(0.3, 0, 0)).value
    assert low < np.exp(0.3) < high


@pytest.mark.parametrize("op", ["abs", "relu"])
def test_a_corner_is_at_zero_and_nowhere_else(op: str) -> None:
    found = of_one(op, wide(-1, 0.5))
    assert numbers(found.slope) == [-1 if op == "abs" else 0, 1]
    assert numbers(found.bend) == [-np.inf, np.inf]


def test_a_line_with_itself_is_squared_only_in_a_product() -> None:
    a = at(1.9, -1.1, 0.6)
    is_point(of_two("div", a, a, True), (1, 0, 0))
    is_point(of_two("max", a, a, True), (1.9, -1.1, 0.6))
    is_point(of_two("hypot", a, a, True), tuple(2**0.5 * x for x in (1.9, -1.1, 0.6)))


def test_a_length_is_defined_whatever_the_signs() -> None:
    for a, b in ((wide(-1, 2), wide(1, 2)), (wide(1, 2), wide(-1, 2))):
        assert numbers(of_two("hypot", a, b, False).value) == pytest.approx([1, 8**0.5])
