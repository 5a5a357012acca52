"""Normal forms against fractions: random programs on polynomials and on numbers, and letters of their own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.looped import lattice, polynomials
from onelayer_checker.looped.polynomials import Poly, Ring, is_zero, joined, nearest, nonzero_point, relu, times
from onelayer_checker.looped.programs import Program
from tests.checker.counted import counted

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


# One operation at a time: terms, the power of two, and what it is said to cost


def test_terms_and_powers_of_two_are_those_of_the_operation() -> None:
    x, y = Ring().variables("x", 2)
    half = x * Fraction(3, 2) + y
    assert (half.terms, half.e) == ({(0,): 3, (1,): 2}, 1)
    assert ((half * half).terms, (half * half).e) == ({(0, 0): 9, (0, 1): 12, (1, 1): 4}, 2)
    assert ((half * y).terms, (half * y).e) == ((y * half).terms, 1) == ({(0, 1): 3, (1, 1): 2}, 1)
    assert ((2 - half).terms, (half - 2).terms) == ({(0,): -3, (1,): -2, (): 4}, {(0,): 3, (1,): 2, (): -4})
    assert (half - half).terms == (half * 0).terms == (0 * half).terms == {}
    assert ((x + y) * (x - x)).terms == ((x - x) * (x + y)).terms == {}
    assert (half + Fraction(1, 4)).terms == (Fraction(1, 4) + half).terms == {(0,): 6, (1,): 4, (): 1}
    assert (-half).terms == {(0,): -3, (1,): -2}
    assert half.letters() == {0, 1}
    assert half.at(0, 2).terms == {(): 6, (1,): 2}
    assert (x * x * y + x * 3 + y).at(0, -2).terms == {(1,): 5, (): -6}
    with pytest.raises(AssertionError):
        x + Fraction(1, 3)


def test_a_sum_grows_in_its_place_or_is_a_new_one() -> None:
    x, y = Ring().variables("x", 2)
    total = x * Fraction(3, 2)
    assert total.grow(y) is total
    assert (total.terms, total.e) == ({(0,): 3, (1,): 2}, 1)
    assert total.grow(y * -1) is total
    assert total.terms == {(0,): 3}
    assert total.grow(1) is total
    finer = total.grow(y * Fraction(1, 4))
    assert finer is not total
    assert (finer.terms, finer.e) == ({(0,): 6, (): 4, (1,): 1}, 2)
    assert total.terms == {(0,): 3, (): 2}
    before = x + y
    assert before + x is not before
    assert before.terms == {(0,): 1, (1,): 1}


def test_absolute_values_of_numbers_and_multiples() -> None:
    ring = Ring()
    (x,) = ring.variables("x", 1)
    minus = x - x - Fraction(3, 2)
    assert (abs(minus).terms, abs(minus).e) == ({(): 3}, 1)
    assert abs(x - x).terms == {}
    assert (abs(x * Fraction(-6, 4)).terms, abs(x * Fraction(-6, 4)).e) == ({(1,): 3}, 1)
    assert ring.names == [("x", 0), None]
    assert abs(x * 6 - 4).terms == abs(4 - 6 * x).terms == {(2,): 2}
    assert abs(abs(x)).terms == {(3,): 1}
    assert relu(Fraction(3)) == 3
    assert relu(Fraction(-3)) == 0
    assert (relu(x).terms, relu(x).e) == ({(0,): 1, (1,): 1}, 1)


def test_monomials_zeros_and_numbers_beyond_the_floats() -> None:
    assert joined((0, 2), (1,)) == (0, 1, 2)
    assert joined((), (1,)) == joined((1,), ()) == (1,)
    assert joined((), ()) == ()
    assert is_zero(0)
    assert is_zero(Fraction(0))
    assert not is_zero(1)
    (x,) = Ring().variables("x", 1)
    assert is_zero(x - x)
    assert not is_zero(x)
    assert (nearest(Fraction(10) ** 400), nearest(-(Fraction(10) ** 400))) == (np.inf, -np.inf)
    assert nearest(Fraction(1, 2)) == 0.5
    assert times(3, Fraction(1, 2)) == Fraction(3, 2)
    assert nonzero_point(x * (x - 1)) == {("x", 0): -1}
    assert nonzero_point(x * (x - 1) * (x + 1) * (x - 2) * (x + 2)) == {("x", 0): 3}
    assert nonzero_point(x + 1) == {("x", 0): 0}
    with pytest.raises(AssertionError):
        nonzero_point(abs(x))


def test_too_many_terms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert polynomials.MOST_TERMS == 1 << 19
    monkeypatch.setattr(polynomials, "MOST_TERMS", 3)
    x, y, z = Ring().variables("x", 3)
    three = x + y + z
    for grown in (
        lambda: three + 1,
        lambda: (x + y) * (x + z),
        lambda: Poly(three.ring, dict.fromkeys([(), (0,), (1,), (2,)], 1), 0),
    ):
        with pytest.raises(Beyond, match="4 terms, 3 are allowed"):
            grown()


def test_operations_are_charged_by_terms_letters_and_digits() -> None:
    x, y = Ring().variables("x", 2)
    p, q = x * y * 5 + 1, x * Fraction(3, 8) + y
    with counted() as spent:
        p + q
        q + p
    assert spent == [("sums of polynomials", 200 * 2, 0, 0), ("sums of polynomials", 200 * 2 + 2 * 3 * 2, 0, 0)] * 2
    with counted() as spent:
        (x * x + y + 1) + q
    assert [line[1] for line in spent[-2:]] == [200 * 2, 200 * 3 + 2 * 3 * 3]
    with counted() as spent:
        p * q  # 2 x 2 terms, 2 letters, numbers up to 8 = 1000
    assert spent == [("products of polynomials", 1500 * 4 * (1 + 2 / 8 + 4 / 1000) + 200 * 6, 0, 0)]
    with counted() as spent:
        p * (x * 9)
        (x * 9) * p
    charge = 1000 * 3 * (1 + 1 / 8 + 7 / 1000)
    assert spent[1] == spent[3] == ("products of polynomials", charge, 0, 0)
    zero = x - x
    with counted() as spent:
        zero * (x * 9)
    assert spent[1] == ("products of polynomials", 1000 * (1 + 1 / 8 + 4 / 1000), 0, 0)
    with counted() as spent:
        (x - x) * (x - x)
    assert spent[-1] == ("products of polynomials", 0, 0, 0)
    with counted() as spent:
        times(Fraction(5, 2), 3)
        times(x, 3)
    assert spent[0] == ("operations on numbers", 500 + 10 * 8 + 64 / 100, 0, 0)
    assert spent[1] == ("operations on numbers", 500 + 10 * 3 + 9 / 100, 0, 0)
