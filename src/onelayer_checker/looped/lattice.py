"""The second engine: identities between polynomials, by exact evaluation on a lattice of points.

Decides: a polynomial of total degree D that is 0 at all points of whole numbers >= 0 with sum at most D is 0
everywhere. Degrees are bounded by running the same programs on degrees; absolute values have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

from onelayer_checker.core.budget import spend
from onelayer_checker.looped.algorithms import Algorithm, Values, identities
from onelayer_checker.looped.network import Network

MOST_POINTS = 50_000
Name = tuple[str, int]


class NoPolynomial(Exception):
    """There is an absolute value."""


@dataclass(frozen=True)
class Degree:
    """A bound on the degree of an expression, and the variables it has."""

    of: int
    names: frozenset[Name] = frozenset()

    def __add__(self, other: Any) -> Degree:
        return self if not isinstance(other, Degree) else Degree(max(self.of, other.of), self.names | other.names)

    def __mul__(self, other: Any) -> Degree:
        return self if not isinstance(other, Degree) else Degree(self.of + other.of, self.names | other.names)

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Degree:
        return self

    def __abs__(self) -> Degree:
        raise NoPolynomial


def points(names: list[Name], degree: int) -> Iterator[dict[Name, int]]:
    """All whole numbers >= 0 for these variables with sum at most ``degree``."""
    if not names:
        yield {}
        return
    for value in range(degree + 1):
        for rest in points(names[1:], degree - value):
            yield {names[0]: value, **rest}


def decide(network: Network, a: Algorithm) -> tuple[bool | None, str]:
    """Whether all identities hold, and how that was seen; None if the lattice cannot tell."""
    sizes = Values.sizes(a)
    letters = {g: [Degree(1, frozenset({(g, i)})) for i in range(count)] for g, count in sizes.items()}
    try:
        shapes = [(rule, _shape(parts)) for rule, parts in identities(network, a, Values(**letters))]
    except NoPolynomial:
        return None, "the lattice judges polynomials only"
    count = sum(_count(degree, len(names)) for _, (degree, names) in shapes)
    if count > MOST_POINTS:
        return None, f"the lattice has more than {MOST_POINTS:,} points"
    for at, (rule, (degree, names)) in enumerate(shapes):
        for point in points(sorted(names), degree):
            spend("points of a lattice", 2e4 * network.loop.width * len(network.loop.heads))
            values = {g: [Fraction(point.get((g, i), 0)) for i in range(c)] for g, c in sizes.items()}
            if any(_nth(identities(network, a, Values(**values)), at)):
                return False, f"the identity {rule!r} fails at {point}"
    return True, f"{count:,} points of a lattice"


def _count(degree: int, names: int) -> int:
    """Points of a lattice; what is far more than all of them is not computed."""
    return comb(names + degree, degree) if names + degree < MOST_POINTS else MOST_POINTS + 1


def _shape(parts: list[Any]) -> tuple[int, frozenset[Name]]:
    known = [part for part in parts if isinstance(part, Degree)]
    names: frozenset[Name] = frozenset().union(*(part.names for part in known))
    return max((part.of for part in known), default=0), names


def _nth(found: Iterator[tuple[str, list[Any]]], at: int) -> list[Any]:
    return next(parts for i, (_, parts) in enumerate(found) if i == at)
