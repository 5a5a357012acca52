"""All values that an arithmetic may compute for a sum of products: in any order, fused, wider or flushed.

Written with exact rationals and a rounding of its own, so that it owes nothing to the code that it checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache

Number = Fraction | float


class Format:
    """Numbers of ``digits`` binary digits; below the least normal number they are spaced evenly, or flushed."""

    def __init__(self, digits: int, least: int, flush: bool) -> None:
        self.digits, self.least, self.flush = digits, least, flush

    def load(self, x: Fraction) -> Fraction:
        return Fraction(0) if self.flush and abs(x) < Fraction(2) ** self.least else x

    def round(self, x: Fraction) -> Fraction:
        if x == 0:
            return x
        exponent = max(_exponent(abs(x)), self.least)
        unit = Fraction(2) ** (exponent - self.digits + 1)
        return self.load(round(x / unit) * unit)  # ties go to even


def _exponent(x: Fraction) -> int:
    """The e with 2^e <= x < 2^(e + 1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


FORMATS = {
    "float32": [Format(24, -126, flush) for flush in (False, True)],
    "float64": [Format(53, -1022, flush) for flush in (False, True)],
    "real": [Format(53, -1022, False)],  # in which the checker itself computes the midpoint
}


def sums(terms: Iterable[tuple[Number, Number]], bias: Number, arith: str) -> Iterator[Fraction]:
    """Every value of the sum of products, and of the bias unless it is zero; products with zero are left out."""
    pairs = [(Fraction(x), Fraction(w)) for x, w in terms]
    pairs = [(x, w) for x, w in pairs if x and w]
    for form in FORMATS[arith]:
        factors = tuple((form.load(x), form.load(w)) for x, w in pairs)
        if bias:
            factors += ((form.load(Fraction(bias)), Fraction(1)),)
        yield form.round(sum((x * w for x, w in factors), Fraction(0)))  # rounded once
        if len(factors) > 1:
            yield from _sums(factors, form)
        for x, w in factors if len(factors) == 1 else ():
            yield form.round(x * w)


@cache
def _sums(factors: tuple[tuple[Fraction, Fraction], ...], form: Format) -> frozenset[Fraction]:
    """Of every split of the factors in two; a product that is added to may be fused."""
    if len(factors) == 1:
        (x, w) = factors[0]
        return frozenset({form.round(x * w)})
    found = set()
    for chosen in range(1, 2 ** (len(factors) - 1)):
        one = tuple(f for i, f in enumerate(factors) if chosen >> i & 1)
        rest = tuple(f for i, f in enumerate(factors) if not chosen >> i & 1)
        lefts, rights = _sums(one, form), _sums(rest, form)
        if len(one) == 1:
            lefts = lefts | {one[0][0] * one[0][1]}
        if len(rest) == 1:
            rights = rights | {rest[0][0] * rest[0][1]}
        found |= {form.round(a + b) for a in lefts for b in rights}
    return frozenset(found)
