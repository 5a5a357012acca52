"""Polynomials of formulas: equal functions have equal polynomials, and different ones have not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from onelayer_checker.core.files import Malformed
from onelayer_checker.functions import algebra
from onelayer_checker.functions.algebra import ONE, Algebra, Polynomial, key, product, total

A = Algebra()
X, Y, Z = (A.atom((name, i), frozenset({name})) for name, i in (("x", 0), ("y", 0), ("x", 1)))


def plus(*of: Polynomial) -> Polynomial:
    return total(*((p, 1) for p in of))


def times(c: float, p: Polynomial) -> Polynomial:
    return total((p, Fraction(c)))


def mean(p: Polynomial) -> Polynomial:
    return A.average({}, p)


def test_sums_and_products() -> None:
    assert total((X, 2), (X, -2)) == {}
    assert total((X, 2), (Y, 1), (X, Fraction(1, 3))) == {((0, 1),): Fraction(7, 3), ((1, 1),): Fraction(1)}
    p, q = plus(X, Y), total((X, 1), (Y, -1))
    assert product(p, q) == {((0, 2),): 1, ((1, 2),): -1}
    assert product(p, times(3, Y)) == {((0, 1), (1, 1)): 3, ((1, 2),): 3}
    assert product(product(Y, Y), X) == product(Y, product(X, Y)) == {((0, 1), (1, 2)): 1}
    assert product(p, {}) == {}
    assert product(p, ONE) == p
    assert product(times(2, X), times(3, Y)) == {((0, 1), (1, 1)): 6}
    assert key(plus(X, Y)) == key(plus(Y, X)) != key(plus(X, Z))


def test_what_is_too_large_is_refused() -> None:
    many = {((k, 1),): Fraction(1) for k in range(50)}
    few = {((k, 1),): Fraction(1) for k in range(100, 140)}
    assert len(product(many, few)) == algebra.MOST_TERMS
    with pytest.raises(Malformed, match="2000 terms"):
        product(many, few | {((200, 1),): Fraction(1)})
    power = {((0, 999),): Fraction(1)}
    assert product(power, X) == {((0, 1000),): 1}
    with pytest.raises(Malformed, match="power above 1,000"):
        product(power, {((0, 2),): Fraction(1)})
    half = 1 << 13
    assert product(times(1, ONE), {(): Fraction(1 << half - 1, (1 << half) - 1)})
    for large in (Fraction(1 << 2 * half), Fraction(1, 1 << 2 * half), Fraction(1 << half, (1 << half) - 1)):
        with pytest.raises(Malformed, match="bits"):
            product(ONE, {(): large})


def test_there_is_an_end_of_atoms() -> None:
    small = Algebra()
    first, second, *_ = (small.atom((k,), frozenset()) for k in range(5_000))
    assert small.atom((0,), frozenset()) == first != second
    with pytest.raises(Malformed, match="more than 5000 parts"):
        small.atom((5_000,), frozenset())


def test_what_something_depends_on() -> None:
    assert A.needs(*plus(X, Z)) == {"x"}
    assert A.needs(*product(X, Y)) == {"x", "y"}
    assert A.needs(*mean(Y)) == {"pool"}
    assert A.needs(*mean(product(X, product(Y, Y)))) == {"x", "pool"}
    assert A.needs(*A.average(product(X, Y), Y)) == {"x", "pool"}
    assert A.needs(*A.function("log", plus(X, mean(Y)))) == {"x", "pool"}
    assert A.needs(*A.relu(product(X, Y))) == {"x", "y"}
    assert A.needs(*A.quotient(ONE, plus(X, Y))) == {"x", "y"}
    assert A.needs(*A.quotient(ONE, Y)) == {"y"}
    assert A.needs(*ONE) == frozenset()


def test_relu_and_its_multiples() -> None:
    p = total((X, 1), (Y, -3))
    assert A.relu({}) == {}
    assert A.relu(times(2.5, p)) == times(2.5, A.relu(p))
    assert A.relu(times(-2, p)) == total((A.relu(p), 2), (p, -2))
    assert A.relu(p) != A.relu(X)
    assert A.relu(p) not in (p, {})
    assert A.function("relu", times(2, p)) == times(2, A.relu(p))
    ((monomial, factor),) = A.relu(times(3, X)).items()
    assert A.atoms[monomial[0][0]] == ("relu", key(X))
    assert factor == 3


def test_exponentials_of_sums_are_products() -> None:
    both = product(X, Y)
    assert A.function("exp", plus(X, Y, both)) == product(product(A.exp(X), A.exp(Y)), A.exp(both))
    assert A.exp({}) == ONE
    assert A.exp(X) != A.exp(Y)
    assert A.exp(X) != A.function("sqrt", X)
    assert len(A.exp(plus(X, Z))) == 1
    assert sum(power for _, power in next(iter(A.exp(plus(X, Z))))) == 1


def test_sines_are_odd_and_cosines_are_even() -> None:
    for p in (X, Y, plus(X, Y), plus(total((X, 3)), total((Y, -2))), total((X, Fraction(1, 2)))):
        back = total((p, -1))
        assert A.function("sin", back) == total((A.function("sin", p), -1))
        assert A.function("cos", back) == A.function("cos", p)
    assert A.function("sin", {}) != A.function("cos", {})


def test_waves_of_a_sum() -> None:
    s, c = (A.function(name, plus(Y, X)) for name in ("sin", "cos"))
    sx, cx, sy, cy = (A.function(name, p) for p in (X, Y) for name in ("sin", "cos"))
    assert s == plus(product(sy, cx), product(cy, sx))
    assert c == total((product(cy, cx), 1), (product(sy, sx), -1))
    assert len({key(p) for p in (sx, cx, sy, cy)}) == 4
    assert len(A.function("sin", plus(product(X, Y), X))) == 1  # not a sum of functions of y and of others
    assert len(A.function("log", plus(X, Y))) == 1


def test_parts() -> None:
    both = product(X, Y)
    assert A.parts(plus(X, Y, both, mean(Y), ONE)) == {"rest": plus(X, mean(Y), ONE), "y": Y, "both": both}


def test_averages_are_linear_and_leave_alone_what_has_no_y() -> None:
    assert mean(plus(X, ONE)) == plus(X, ONE)
    assert mean(product(X, Y)) == product(X, mean(Y))
    assert mean(total((Y, 2), (X, -1))) == total((mean(Y), 2), (X, -1))
    assert mean(product(Y, Y)) != product(mean(Y), mean(Y))
    assert mean(mean(Y)) == mean(Y)
    logit = product(X, Y)
    assert A.average(plus(logit, X, ONE), Y) == A.average(logit, Y)
    assert A.average(logit, Y) != mean(Y)
    assert A.average(logit, ONE) == ONE
    assert A.average(logit, product(Z, Y)) == product(Z, A.average(logit, Y))


def test_quotients() -> None:
    assert A.quotient(product(X, Y), times(2, X)) == times(0.5, Y)
    assert A.quotient(product(X, X), X) == X
    over = A.quotient(ONE, X)
    assert A.quotient(ONE, product(X, X)) == product(over, over)
    assert A.quotient(Y, product(X, X)) == product(Y, product(over, over))
    assert A.quotient(plus(X, Y), X) == plus(ONE, product(Y, over))
    sum_ = plus(X, Y)
    assert (
        A.quotient(Z, times(4, sum_))
        == times(0.25, A.quotient(Z, sum_))
        == times(0.25, product(Z, A.quotient(ONE, sum_)))
    )
    assert A.quotient(Z, sum_) != A.quotient(Z, total((X, 1), (Y, -1)))
    for below, unit, factor in (
        (X, X, 1),
        (total((X, 2), (Y, 6)), total((X, 1), (Y, 3)), Fraction(1, 2)),
        ({}, {}, 1),
    ):
        ((m, c),) = A.quotient(ONE, below).items()
        assert (A.atoms[m[0][0]], c) == (("recip", key(unit)), factor)


def test_a_mean_over_a_mean_of_weights_is_an_average() -> None:
    e = A.exp(product(X, Y))
    mass = mean(e)
    wanted = A.average(product(X, Y), Y)
    assert A.quotient(mean(product(e, Y)), mass) == wanted
    assert A.quotient(times(6, mean(product(e, Y))), times(3, mass)) == times(2, wanted)
    assert A.quotient(product(Z, mean(product(e, Y))), mass) == product(Z, wanted)
    f = A.exp(Y)
    assert A.quotient(mean(product(product(e, f), Y)), mean(product(e, f))) == A.average(plus(product(X, Y), Y), Y)
    assert A.quotient(mean(product(product(e, e), Y)), mean(product(e, e))) == A.average(times(2, product(X, Y)), Y)
    square = product(mean(product(e, Y)), mean(product(e, Y)))
    assert A.quotient(square, mass) == product(mean(product(e, Y)), wanted)
    assert A.quotient(mass, mass) == ONE


def test_other_quotients_of_means_are_no_averages() -> None:
    e, f = A.exp(product(X, Y)), A.exp(Y)

    def averages(p: Polynomial) -> set[object]:
        return {A.atoms[atom][1] for m in p for atom, _ in m if A.atoms[atom][0] == "average"}

    assert averages(A.quotient(mean(product(e, Y)), mean(f))) == {()}
    assert averages(A.quotient(mean(product(f, Y)), product(mean(f), mean(f)))) == {()}
    assert averages(A.quotient(mean(product(Y, Y)), mean(Y))) == {()}
    assert averages(A.quotient(mean(product(product(f, Y), Y)), mean(product(f, Y)))) == {()}
    assert averages(A.quotient(mean(Y), mean(f))) == {()}
    assert averages(A.quotient(X, mean(f))) == set()
    weighted = A.average(product(X, Y), product(f, Y))
    assert averages(A.quotient(weighted, mean(f))) == {key(product(X, Y))}
    assert averages(A.quotient(mean(product(f, Y)), A.average(product(X, Y), f))) == {()}
