"""Normal forms against fractions: random programs on polynomials and on numbers, and letters of their own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.looped import lattice
from onelayer_checker.looped.polynomials import Poly, Ring, is_zero, nonzero_point, relu
from onelayer_checker.looped.programs import Program

WORDS = ("add", "sub", "mul", "neg", "abs", "max", "min")


def value(p: Any, point: dict[int, Fraction]) -> Fraction:
    """A polynomial at a point; absolute values are taken of what their letters stand for."""
    if not isinstance(p, Poly):
        return Fraction(p)
    known = {letter: key for key, letter in p.ring._absolute.items()}

    def letter_at(letter: int) -> Fraction:
        return abs(terms_at(dict(known[letter]))) if letter in known else point[letter]

    def terms_at(terms: dict[tuple[int, ...], int]) -> Fraction:
        total = Fraction(0)
        for monomial, c in terms.items():
            product = Fraction(c)
            for letter in monomial:
                product *= letter_at(letter)
            total += product
        return total

    return terms_at(p.terms) / 2**p.e


def random_program(rng: np.random.Generator, count: int) -> Program:
    lines: list[tuple[Any, ...]] = [("x", 0), ("x", 1), ("x", 2)]
    lines += [("const", Fraction(float(c))) for c in (0.0, 1.0, -0.375, 2.0**-40)]
    for _ in range(count):
        word = WORDS[rng.integers(len(WORDS))]
        arguments = rng.integers(0, len(lines), 1 if word in ("neg", "abs") else 2).tolist()
        lines.append((word, *arguments))
    return Program(tuple(lines), tuple(range(len(lines))))


@pytest.mark.parametrize("seed", range(60))
def test_a_program_on_polynomials_is_the_program_on_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program, ring = random_program(rng, 9), Ring()
    with limited(3e8, None):
        try:
            found = program.run({"x": list(ring.variables("x", 3))})
        except Beyond:
            return
    for _ in range(4):
        numbers = [Fraction(int(a), 8) for a in rng.integers(-20, 21, 3)]
        wanted = program.run({"x": numbers})
        point = dict(enumerate(numbers))
        assert [value(p, point) for p in found] == wanted


def test_equal_functions_have_equal_terms_where_signs_and_scales_differ() -> None:
    x, y = Ring().variables("x", 2)
    assert is_zero(abs(x - y) - abs(y - x))
    assert is_zero(abs((x - y) * Fraction(-3, 4)) - abs(x - y) * Fraction(3, 4))
    assert is_zero(relu(x) - relu(-x) - x)
    assert is_zero(abs(x * 0 - 2) - 2)
    assert not is_zero(abs(x - y) - abs(x + y))
    assert not is_zero(abs(x) - x)
    assert not is_zero(abs(abs(x) - y) - abs(x - y))
    assert is_zero((x + y) * (x - y) - x * x + y * y)


def test_a_letter_is_one_of_its_ring() -> None:
    ring = Ring()
    (x,), (y,) = ring.variables("x", 1), ring.variables("y", 1)
    assert abs(x).letters() != abs(y).letters()
    assert ring.names[:2] == [("x", 0), ("y", 0)]
    assert x.is_polynomial
    assert not (x * abs(y)).is_polynomial
    assert (x - x + Fraction(3, 4)).terms == {(): 3}


@pytest.mark.parametrize("seed", range(20))
def test_a_polynomial_that_is_not_zero_has_a_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ring = Ring()
    x = ring.variables("x", 3)
    p: Any = 0
    for _ in range(4):
        term: Any = Fraction(int(rng.integers(-3, 4)))
        for i in rng.integers(0, 3, 4):
            term = term * (x[i] - int(rng.integers(-1, 2)))
        p = p + term
    if isinstance(p, Poly) and p.terms:
        point = nonzero_point(p)
        numbers = {i: Fraction(point.get(("x", i), 0)) for i in range(3)}
        assert value(p, numbers) != 0


def test_the_lattice_holds_as_many_points_as_polynomials_have_coefficients() -> None:
    """(x)(x-1)(x-2) is zero at 0, 1, 2: the lattice of degree 3 sees it, that of degree 2 would not."""
    names = [("x", 0), ("y", 0)]
    assert len(list(lattice.points(names, 3))) == 10
    found = [p[("x", 0)] * (p[("x", 0)] - 1) * (p[("x", 0)] - 2) for p in lattice.points(names, 3)]
    assert any(found)
    assert not any(p[("x", 0)] * (p[("x", 0)] - 1) * (p[("x", 0)] - 2) for p in lattice.points(names, 2))
    matrix = [
        [p[names[0]] ** i * p[names[1]] ** j for i in range(4) for j in range(4 - i)]
        for p in lattice.points(names, 3)
    ]
    assert np.linalg.matrix_rank(np.array(matrix, float)) == 10


def test_degrees_are_bounds() -> None:
    x, y = (lattice.Degree(1, frozenset({(g, 0)})) for g in "xy")
    p = (x * y + 3) * (x - Fraction(1, 2)) + 0 * y
    assert p.of == 3
    assert p.names == {("x", 0), ("y", 0)}
    with pytest.raises(lattice.NoPolynomial):
        abs(x)
