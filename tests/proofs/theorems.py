"""The theorems of proofs/*.v as functions over fractions: their hypotheses, and the bounds of their conclusions.

A function has the name of its theorem and says whether its hypotheses hold, or how large its bound is. Nothing here
knows the checker's code: the tests put both side by side, wherever the code says that something is exact, on, off,
or within a radius.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

Q = Fraction
#: A product of an input and a weight, or a bias.
Term = tuple[Fraction, Fraction] | Fraction
#: What the input of a unit w t + b may be read as, at its extremes; its weight, and its bias.
Unit = tuple[set[Fraction], Fraction, Fraction]


@dataclass(frozen=True)
class Format:
    """Numbers of ``prec`` bits, the least of them 2^emin; without bits, all real numbers: nothing is rounded."""

    prec: int | None
    emin: int = 0
    flushes: bool = True  # subnormal numbers may become 0

    @cached_property
    def tiny(self) -> Fraction:
        return Q(0) if self.prec is None else Q(2) ** (self.emin + self.prec - 1)

    @cached_property
    def u(self) -> Fraction:
        """What one operation is off, relative to its result: rounded once, or twice through 11 more bits."""
        return Q(0) if self.prec is None else Q(2) ** -self.prec * (1 + Q(2) ** -11)

    def number(self, x: Fraction) -> bool:
        if self.prec is None or x == 0:
            return True
        above = abs(x.numerator)
        twos = (above & -above).bit_length() - 1
        least = twos - x.denominator.bit_length() + 1  # the exponent of the last bit
        return power(Q(1, x.denominator)) and above.bit_length() - twos <= self.prec and least >= self.emin

    def normal(self, x: Fraction) -> bool:
        """Nothing flushes it."""
        return x == 0 or abs(x) >= self.tiny or not self.flushes

    def solid(self, x: Fraction) -> bool:
        return self.number(x) and self.normal(x)

    def reads(self, x: Fraction) -> set[Fraction]:
        """What an operand may be read as."""
        return {x} if self.normal(x) else {x, Q(0)}


BINARY16, BFLOAT16 = Format(11, -24), Format(8, -133)
BINARY32, BINARY64, EXACT = Format(24, -149), Format(53, -1074), Format(None)
#: In which the checker itself computes midpoints: it refuses to start on a machine that flushes.
OWN = Format(53, -1074, flushes=False)
#: The arithmetic of a claim; and that in which sums must be exact, which of real numbers are the midpoints.
FORMATS = {"float16": BINARY16, "bfloat16": BFLOAT16, "float32": BINARY32, "float64": BINARY64}
MODEL, SUMS = FORMATS | {"real": EXACT}, FORMATS | {"real": OWN}


def power(x: Fraction) -> bool:
    """Plus or minus a power of two."""
    above, below = abs(x.numerator), x.denominator
    return above > 0 and above & (above - 1) == 0 and below & (below - 1) == 0


def whole(x: Fraction) -> bool:
    return x.denominator == 1


def value(term: Term) -> Fraction:
    return term if isinstance(term, Fraction) else term[0] * term[1]


# ExactSums.v and ExactProducts.v


def products_whole(terms: Sequence[Term]) -> bool:
    return all(value(t) == 0 or all(map(whole, (t,) if isinstance(t, Fraction) else t)) for t in terms)


def any_order_product_exact(f: Format, terms: Sequence[Term]) -> bool:
    """Terms of whole numbers, or with a factor 0, whose sizes add up to at most 2^prec."""
    assert f.prec is not None
    return products_whole(terms) and sum(abs(value(t)) for t in terms) <= 2**f.prec


def signed_product_exact(f: Format, terms: Sequence[Term]) -> bool:
    """Such terms, of which neither the positive nor the negative ones add up to more than 2^prec."""
    assert f.prec is not None
    signed = [sum((max(sign * value(t), Q(0)) for t in terms), Q(0)) for sign in (1, -1)]
    return products_whole(terms) and max(signed) <= 2**f.prec


def exact_product_power(f: Format, x: Fraction, w: Fraction) -> bool:
    """x, w and x w are each zero or normal; where nothing is flushed, x w must be a number."""
    return f.number(x) and power(w) and all(map(f.normal, (x, w, x * w))) and f.number(x * w)


def exact_product_whole(f: Format, x: Fraction, w: Fraction) -> bool:
    return f.prec is not None and whole(x) and whole(w) and abs(x * w) <= 2**f.prec


def one_value(f: Format, term: Term) -> bool:
    """Whether the term has one value, whatever is flushed, fused or rounded; for a product by three theorems."""
    if isinstance(term, Fraction):
        return f.solid(term)
    x, w = term
    if 0 in (x, w):  # exact_product_zero
        return True
    return exact_product_power(f, x, w) or exact_product_power(f, w, x) or exact_product_whole(f, x, w)


def one_term_exact(f: Format, terms: Sequence[Term]) -> bool:
    """All terms have one value, which is solid, and at most one is not 0."""
    return all(one_value(f, t) and f.solid(value(t)) for t in terms) and sum(value(t) != 0 for t in terms) <= 1


def exact_sum(f: Format, terms: Sequence[Term]) -> str:
    """The theorem by which every evaluation of the sum gives one number; empty if none applies."""
    for theorem in (any_order_product_exact, signed_product_exact, one_term_exact):
        if theorem(f, terms):
            return theorem.__name__
    return ""


# Cells.v, Thresholds.v


def readings(f: Format, low: Fraction, high: Fraction) -> set[Fraction]:
    """The least and the largest of what numbers between low and high may be read as; what is linear in them is
    largest and least there."""
    found = {low, high}
    if f.flushes and low < f.tiny and high > -f.tiny:
        found.add(Q(0))
    return found


def unit_nonpositive(f: Format, unit: Unit) -> bool:
    """For any normal slope, and a bias that is zero or normal: w t + b <= 0 for all that t may be read as."""
    reads, w, b = unit
    return f.normal(w) and f.solid(b) and all(w * t + b <= 0 for t in reads)


def unit_at_least_one(f: Format, unit: Unit) -> bool:
    """For a slope that is zero or a power of two, and inputs that are numbers of the format: w t + b >= 1."""
    reads, w, b = unit
    return (w == 0 or power(w)) and f.normal(w) and f.solid(b) and all(w * t + b >= 1 for t in reads)


def constant_nonpositive(f: Format, unit: Unit) -> bool:
    """A unit of weight zero whose bias is at most 0: what it is read as is at most 0, too."""
    return unit[1] == 0 and max(f.reads(unit[2])) <= 0


def cell_on(f: Format, units: Iterable[Unit]) -> bool:
    return all(unit_nonpositive(f, unit) or constant_nonpositive(f, unit) for unit in units)


def cell_off(f: Format, units: Iterable[Unit]) -> bool:
    return any(unit_at_least_one(f, unit) for unit in units)


# Rounding.v, DotError.v, Linear.v


def growth(k: int, u: Fraction) -> Fraction:
    """(1 + u)^k - 1: the relative error of k operations, which gamma_sound bounds."""
    return (1 + u) ** k - 1


@dataclass(frozen=True)
class Sum:
    """A sum of products of balls (m, r) with balls, and perhaps a bias, which is a ball, too."""

    products: list[tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]]
    bias: tuple[Fraction, Fraction] = (Q(0), Q(0))

    @cached_property
    def live(self) -> list[tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]]:
        """Products of which neither factor is exactly 0."""
        return [(x, w) for x, w in self.products if any(x) and any(w)]

    @cached_property
    def mid(self) -> Fraction:
        return sum((x[0] * w[0] for x, w in self.products), self.bias[0])

    @cached_property
    def size(self) -> Fraction:
        """Of the terms, at the midpoints."""
        return sum((abs(x[0] * w[0]) for x, w in self.products), abs(self.bias[0]))

    @cached_property
    def spread(self) -> Fraction:
        """How far the points of the balls move the sum."""
        moved = (abs(x[0]) * w[1] + x[1] * abs(w[0]) + x[1] * w[1] for x, w in self.products)
        return sum(moved, self.bias[1])

    @cached_property
    def roundings(self) -> int:
        """That a term goes through, at most: additions, and one of its product, unless no product is rounded."""
        powers = all(w[1] == 0 and power(w[0]) for _, w in self.live)
        return max(len(self.live) + any(self.bias) - 1, 0) + (bool(self.live) and not powers)

    def reach(self) -> Fraction:
        """The largest operand on one side, and on the other."""
        sides = ([abs(m) + r for m, r in side] for side in zip(*self.products, strict=True))
        return sum((max(side) for side in sides), Q(0))

    def is_kept(self, f: Format) -> bool:
        """Nothing of it is rounded, and nothing can be flushed, at any point of its balls (single_power_exact)."""
        terms = [x[0] * w[0] for x, w in self.live] + [self.bias[0]] * any(self.bias)
        if self.roundings or not all(map(OWN.number, terms)):
            return False
        least = [abs(a[0]) - a[1] for pair in self.live for a in pair]
        least += [(abs(x[0]) - x[1]) * abs(w[0]) for x, w in self.live]
        least += [abs(self.bias[0]) - self.bias[1]] * any(self.bias)
        return f.prec is None or all(a >= f.tiny for a in least)


def gamma(k: Fraction, q: Fraction) -> Fraction:
    return k * q * (1 + 2 * k * q)


def linear_ball(f: Format, total: Sum) -> Fraction:
    """At least how large a radius must be: the roundings of the midpoint and of the arithmetic, the spread of the
    balls, and what underflow may cost both; or only the spread (linear_kept)."""
    if total.is_kept(f):
        return total.spread
    n, rounded = len(total.products), gamma(Q(total.roundings), f.u + Q(2) ** -53)
    lost = 2 * (n + 1) * (f.tiny + Q(2) ** -1074) * (2 + (total.reach() if n else 0))
    return total.size * rounded + total.spread * (1 + rounded) + lost


def dot_ball(f: Format, total: Sum, extra: int) -> Fraction:
    """The same for products of two balls, with this many operations more."""
    k = len(total.products)
    own, model = gamma(Q(k + 2), Q(2) ** -53), gamma(Q(k + 2 + extra), f.u)
    lost = 3 * (k + 1 + extra) * (f.tiny + Q(2) ** -1074) * (2 + total.reach())
    return total.spread + own * total.size + model * (total.size + total.spread) + lost


def no_overflow(f: Format, total: Sum) -> Fraction:
    """What no partial sum can exceed, in any order."""
    return (1 + growth(total.roundings, f.u)) * (total.size + total.spread)


def add_error(f: Format, x: tuple[Fraction, Fraction], y: tuple[Fraction, Fraction]) -> Fraction:
    """At least how large the radius of a sum of two balls must be: two operands and the sum may be flushed.

    The code takes 4 where 3 are needed, which pays for the rounding of its own last addition.
    """
    total = Sum([], (x[0] + y[0], x[1] + y[1]))
    zero = not any(x) or not any(y)
    if zero and (total.is_kept(f) or total.mid == 0):  # what is flushed to 0 stays in a ball around 0
        return total.spread
    return total.spread * (1 + f.u) + total.size * (f.u + Q(2) ** -53) + 3 * (1 + f.u) * f.tiny


def gamma_sound(k: Fraction, u: Fraction) -> Fraction:
    """k u / (1 - k u), which is at least (1 + u)^k - 1; for k u below 1/4."""
    assert k * u < Q(1, 4)
    return k * u / (1 - k * u)


def nearest(f: Format, x: Fraction) -> set[Fraction]:
    """x rounded to nearest in the format: both neighbours if it is in the middle."""
    if f.number(x):
        return {x}
    assert f.prec is not None
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Q(2) ** exponent
    unit = Q(2) ** max(exponent - f.prec + 1, f.emin)
    below = x // unit * unit
    return {y for y in (below, below + unit) if abs(y - x) <= unit / 2}
