"""Polynomials over the dyadic rationals, with |u| as a further letter: the normal form in which maps are compared.

Decides: two polynomials with equal terms are the same function, whatever real numbers their variables are. Without
letters |u| the converse holds too: a polynomial with a term is not zero everywhere. Weights are floats, so every
coefficient is a whole number over a power of two, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, inf
from typing import Any

from onelayer_checker.core.budget import Beyond, spend

Monomial = tuple[int, ...]  # letters in order, each as often as it is a factor
Scalar = int | Fraction
MOST_TERMS = 1 << 19
#: What a product of two terms takes, in operations of a nanosecond.
A_PRODUCT = 1500.0


class Ring:
    """The letters of some polynomials: variables by group and number, and absolute values."""

    def __init__(self) -> None:
        self.names: list[tuple[str, int] | None] = []  # None: an absolute value
        self._absolute: dict[tuple[tuple[Monomial, int], ...], int] = {}

    def variables(self, group: str, count: int) -> list[Poly]:
        start = len(self.names)
        self.names += [(group, i) for i in range(count)]
        return [Poly(self, {(start + i,): 1}, 0) for i in range(count)]

    def absolute(self, u: Poly) -> Poly:
        """|u| = c |v|, where v has whole coefficients without a common factor, the first of them positive."""
        if set(u.terms) <= {()}:
            return Poly(self, {k: abs(c) for k, c in u.terms.items()}, u.e)
        listed = sorted(u.terms.items())
        common = gcd(*u.terms.values())
        sign = common if listed[0][1] > 0 else -common
        key = tuple((k, c // sign) for k, c in listed)
        if key not in self._absolute:
            self._absolute[key] = len(self.names)
            self.names.append(None)
        return Poly(self, {(self._absolute[key],): common}, u.e)


class Poly:
    """The sum of coefficients times monomials, times 2^-e."""

    __slots__ = ("e", "ring", "terms")

    def __init__(self, ring: Ring, terms: Mapping[Monomial, int], e: int) -> None:
        self.ring, self.terms, self.e = ring, {k: c for k, c in terms.items() if c}, e
        limited(self.terms)

    def _same(self, other: Poly | Scalar) -> Poly:
        """The other as a polynomial; its denominator is a power of two, as that of every float is."""
        if isinstance(other, Poly):
            return other
        numerator, denominator = other.as_integer_ratio()
        assert denominator & (denominator - 1) == 0
        return Poly(self.ring, {(): numerator}, denominator.bit_length() - 1)

    def __add__(self, other: Poly | Scalar) -> Poly:
        other = self._same(other)
        low, high = (self, other) if self.e <= other.e else (other, self)
        spend("sums of polynomials", 200.0 * len(high.terms))
        return _made(self.ring, dict(high.terms), high.e).grow(low)

    def grow(self, other: Poly | Scalar) -> Poly:
        """The sum, in the place of this polynomial if its power of two allows that: nobody else may hold it."""
        other = self._same(other)
        if other.e > self.e:
            return self + other
        shift, terms = self.e - other.e, self.terms
        spend("sums of polynomials", 200.0 * len(other.terms) + 2.0 * shift * len(other.terms))
        for k, c in other.terms.items():
            found = terms.get(k, 0) + (c << shift)
            if found:
                terms[k] = found
            else:
                del terms[k]
        limited(terms)
        return self

    def __mul__(self, other: Poly | Scalar) -> Poly:
        other = self._same(other)
        if len(other.terms) == 1 or len(self.terms) == 1:
            return self._times_one(other) if len(other.terms) == 1 else other._times_one(self)
        size = max((len(k) for k in (*self.terms, *other.terms)), default=0)
        bits = max((c.bit_length() for c in (*self.terms.values(), *other.terms.values())), default=0)
        work = len(self.terms) * len(other.terms)
        spend("products of polynomials", A_PRODUCT * work * (1 + size / 8 + bits / 1000) + 200.0 * (size + bits))
        terms: dict[Monomial, int] = {}
        for k, c in self.terms.items():
            for l, b in other.terms.items():
                m = joined(k, l)
                terms[m] = terms.get(m, 0) + c * b
        return Poly(self.ring, terms, self.e + other.e)

    def _times_one(self, other: Poly) -> Poly:
        """The product with one term: different monomials stay different, and none becomes 0."""
        ((l, b),) = other.terms.items()
        bits = b.bit_length() + max((c.bit_length() for c in self.terms.values()), default=0)
        spend("products of polynomials", 1000.0 * (1 + len(self.terms)) * (1 + len(l) / 8 + bits / 1000))
        return _made(self.ring, {joined(k, l): c * b for k, c in self.terms.items()}, self.e + other.e)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Poly:
        return Poly(self.ring, {k: -c for k, c in self.terms.items()}, self.e)

    def __sub__(self, other: Poly | Scalar) -> Poly:
        return self + -self._same(other)

    def __rsub__(self, other: Scalar) -> Poly:
        return -self + other

    def __abs__(self) -> Poly:
        return self.ring.absolute(self)

    def letters(self) -> set[int]:
        return {letter for k in self.terms for letter in k}

    @property
    def is_polynomial(self) -> bool:
        """Whether no letter is an absolute value."""
        return all(self.ring.names[letter] is not None for letter in self.letters())

    def at(self, letter: int, value: int) -> Poly:
        """With a whole number for a variable, which occurs in no absolute value."""
        terms: dict[Monomial, int] = {}
        for k, c in self.terms.items():
            rest = tuple(i for i in k if i != letter)
            terms[rest] = terms.get(rest, 0) + c * value ** (len(k) - len(rest))
        return Poly(self.ring, terms, self.e)


def _made(ring: Ring, terms: dict[Monomial, int], e: int) -> Poly:
    """A polynomial without terms that are 0; it has no more terms than before."""
    found = Poly.__new__(Poly)
    found.ring, found.terms, found.e = ring, terms, e
    return found


def limited(terms: Mapping[Monomial, int]) -> None:
    """Refuse too many terms."""
    if len(terms) > MOST_TERMS:
        raise Beyond(f"a polynomial of {len(terms):,} terms, {MOST_TERMS:,} are allowed")


def joined(k: Monomial, l: Monomial) -> Monomial:
    """The product of two monomials."""
    return tuple(sorted(k + l)) if k and l else k or l


def is_zero(u: Poly | Scalar) -> bool:
    return not u.terms if isinstance(u, Poly) else u == 0


def times(a: Any, b: Any) -> Any:
    """The product. That of numbers is charged by their digits: a few squares make them longer than any memory."""
    charge(a, b)
    return a * b


def charge(*numbers: Any) -> None:
    """What an operation on numbers takes; polynomials charge for their own."""
    listed = [u for u in numbers if isinstance(u, int | Fraction)]
    bits = sum(u.numerator.bit_length() + u.denominator.bit_length() for u in listed)
    spend("operations on numbers", 500.0 + 10.0 * bits + bits * bits / 100)


def nearest(u: Fraction) -> float:
    """A number in words only: beyond the floats it is infinite."""
    try:
        return float(u)
    except OverflowError:
        return inf if u > 0 else -inf


def relu(u: Any) -> Any:
    """(u + |u|) / 2, of a number or a polynomial."""
    return (u + abs(u)) * Fraction(1, 2)


def nonzero_point(p: Poly) -> dict[tuple[str, int], int]:
    """Whole numbers for the variables of a polynomial that is not zero, at which it is not zero.

    One variable after the other gets the first of 0, 1, -1, 2, ... that leaves a term: at most as many values as
    the degree make a polynomial that is not zero vanish.
    """
    point: dict[tuple[str, int], int] = {}
    for letter in sorted(p.letters()):
        name, value = p.ring.names[letter], 0
        assert name is not None
        while is_zero(q := p.at(letter, value)):
            value = 1 - value if value <= 0 else -value
        point[name], p = value, q
    return point
