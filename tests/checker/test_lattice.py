"""The second engine: degrees are bounded from above, and every point of the lattice is looked at."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

from onelayer_checker.looped import lattice
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.lattice import MOST_POINTS, Degree, NoPolynomial, decide, points
from onelayer_checker.looped.network import Network, build
from tests.checker.counted import counted
from tests.checker.looped import LAYER, descent, program, weights

X, Y = ("x", 0), ("y", 1)


def read(**changes: Any) -> Algorithm:
    return read_algorithm(descent(**changes), "here")


def network(layer: dict[str, Any] | None = None, **tensors: np.ndarray) -> Network:
    return build(weights() | tensors, {"template": "looped/1", "layers": [LAYER | (layer or {})]})


def test_degrees_of_sums_are_the_larger_and_those_of_products_add_up() -> None:
    a, b = Degree(2, frozenset({X})), Degree(3, frozenset({Y}))
    both = frozenset({X, Y})
    for found in (a + b, b + a, a - b, b - a):
        assert found == Degree(3, both)
    assert a * b == b * a == Degree(5, both)
    for number in (7, -1):
        assert a + number == number + a == a - number == number - a == a * number == number * a == -a == a
    with pytest.raises(NoPolynomial):
        abs(a)
    assert Degree(1).names == frozenset()


@pytest.mark.parametrize(("names", "degree"), [(0, 3), (1, 4), (2, 3), (3, 2), (4, 0)])
def test_the_points_are_all_whole_numbers_up_to_a_sum(names: int, degree: int) -> None:
    listed = [("v", i) for i in range(names)]
    found = [tuple(point[name] for name in listed) for point in points(listed, degree)]
    assert len(set(found)) == len(found) == comb(names + degree, degree) == lattice._count(degree, names)
    assert all(min(point, default=0) >= 0 and sum(point) <= degree for point in found)


def test_more_points_than_are_looked_at_are_not_counted() -> None:
    assert MOST_POINTS == 50_000
    assert lattice._count(1, MOST_POINTS - 2) == MOST_POINTS - 1
    assert lattice._count(1, MOST_POINTS - 1) == MOST_POINTS + 1
    assert lattice._count(MOST_POINTS, 1) == MOST_POINTS + 1


def test_the_shape_of_an_identity_is_its_largest_degree_and_all_its_variables() -> None:
    assert lattice._shape([Degree(1, frozenset({X})), 0, Degree(3, frozenset({Y}))]) == (3, frozenset({X, Y}))
    assert lattice._shape([0, 5]) == (0, frozenset())


def test_a_step_of_descent_holds_on_the_lattice() -> None:
    """Of two heads that are half of it each."""
    twice = {name: np.concatenate([a, a]) for name, a in weights(0.125).items() if name.startswith("attention")}
    with counted() as spent:
        fine, how = decide(network({"repeat": 1}, **twice), read(steps=1))
    assert fine is True
    # <m, X> and <n, X>; y <x, X> x; <s, X>
    count = sum(comb(names + degree, degree) for names, degree in ((6, 2), (5, 3), (4, 2)))
    assert how == f"{count:,} points of a lattice"
    assert [line for line in spent if line[0] == "points of a lattice"] == [
        ("points of a lattice", 2e4 * 4 * 2, 0.0, 0.0)
    ] * count


@pytest.mark.parametrize("value", [0.25 + 2.0**-40, 0.0, -0.25])
def test_another_step_size_fails_at_a_point(value: float) -> None:
    fine, how = decide(network({"repeat": 1}, **weights(value)), read(steps=1))
    assert fine is False
    assert how.startswith("the identity 'step' fails at {")


def test_the_last_component_of_the_last_identity_counts() -> None:
    wrong = read(steps=1, answer=program(["s 0", "s 1", "x 0", "x 1", "mul 0 2", "mul 1 2", "add 4 5"], 6))
    fine, how = decide(network({"repeat": 1}), wrong)
    assert fine is False
    assert "'answer'" in how
    # s1 x1 is forgotten, and where x1 = 0 nobody sees it
    less = read(steps=1, answer=program(["s 0", "x 0", "mul 0 1"], 2))
    assert decide(network({"repeat": 1}), less)[0] is False


def test_a_product_that_is_zero_on_low_degrees_is_found() -> None:
    """x0 (x0 - 1) (x0 - 2) is 0 at 0, 1 and 2: only the point 3 tells."""
    one, two = f"const {(1.0).hex()}", f"const {(2.0).hex()}"
    more = ["s 0", "s 1", "x 0", "x 1", "mul 0 2", "mul 1 3", "add 4 5", one, two, "sub 2 7", "sub 2 8"]
    more += ["mul 2 9", "mul 11 10", "add 6 12"]
    fine, how = decide(network({"repeat": 1}), read(steps=1, answer=program(more, 13)))
    assert fine is False
    assert "('X', 0): 3" in how


def test_absolute_values_and_too_many_points_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decide(network({"attention": "relu", "repeat": 1}), read(steps=1)) == (
        None,
        "the lattice judges polynomials only",
    )
    count = int(decide(network({"repeat": 1}), read(steps=1))[1].split()[0].replace(",", ""))
    monkeypatch.setattr(lattice, "MOST_POINTS", count)
    assert decide(network({"repeat": 1}), read(steps=1))[0] is True
    monkeypatch.setattr(lattice, "MOST_POINTS", count - 1)
    fine, how = decide(network({"repeat": 1}), read(steps=1))
    assert fine is None
    assert how == f"the lattice has more than {count - 1:,} points"


def test_each_identity_is_evaluated_by_its_place() -> None:
    found = iter([("a", [1]), ("b", [2]), ("c", [3])])
    assert lattice._nth(found, 1) == [2]
