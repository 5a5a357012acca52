"""Numbers that are too long to be followed exactly: a middle and how far off it may be, in units of 2^-4096.

Encloses: if two numbers are within what they say, so are their sum, difference, product and absolute values. Only
refutations rest on this: answers whose enclosures do not meet are different numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from onelayer_checker.core.budget import spend

BITS = 1 << 12


@dataclass(frozen=True)
class Near:
    """A number at most ``off`` units from ``middle`` units."""

    middle: int
    off: int

    def __add__(self, other: Near | Fraction | int) -> Near:
        other = near(other)
        return Near(self.middle + other.middle, self.off + other.off)

    def __mul__(self, other: Near | Fraction | int) -> Near:
        """|ab - mn| <= |m| s + |n| r + rs for a within r of m and b within s of n; each shift loses less than 1."""
        other = near(other)
        bits = max(u.bit_length() for u in (self.middle, self.off, other.middle, other.off))
        spend("enclosures of numbers", 5e3 + bits * bits / 100)
        off = abs(self.middle) * other.off + abs(other.middle) * self.off + self.off * other.off
        return Near(self.middle * other.middle >> BITS, (off >> BITS) + 2)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Near:
        return Near(-self.middle, self.off)

    def __sub__(self, other: Near | Fraction | int) -> Near:
        return self + -near(other)

    def __rsub__(self, other: Fraction | int) -> Near:
        return near(other) + -self

    def __abs__(self) -> Near:
        """Absolute values are no farther apart than the numbers."""
        return Near(abs(self.middle), self.off)

    @property
    def is_not_zero(self) -> bool:
        return abs(self.middle) > self.off


def near(u: Near | Fraction | int) -> Near:
    """The number itself, or the whole number of units below it."""
    return u if isinstance(u, Near) else Near((u.numerator << BITS) // u.denominator, 1)


def differ(p: Near | Fraction, q: Near | Fraction) -> bool:
    """Whether two numbers are different for certain."""
    found = p - q
    return found.is_not_zero if isinstance(found, Near) else found != 0


def fraction(u: Near | Fraction) -> Fraction:
    """The number, or the middle of what it may be."""
    return Fraction(u.middle, 1 << BITS) if isinstance(u, Near) else u
