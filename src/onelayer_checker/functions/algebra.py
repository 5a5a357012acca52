"""Formulas as polynomials with rational coefficients: two lines with the same polynomial are the same function.

A polynomial is over atoms: components of the token x that is answered and of the token y that a mean runs over,
functions of polynomials, and averages over y. Every rule is an identity wherever both sides are defined: an average
is linear, and what does not depend on y comes out of it; e^(a + b) = e^a e^b, and sin and cos of a + b likewise;
sin is odd and cos is even; |a| and the larger of two are written with relu, and relu(c a) = c relu(a) for c > 0,
relu(-a) = relu(a) - a; a quotient cancels common factors; mean(e^g v) / mean(e^g) is the average of v with weights
e^g, which a part of g without y leaves as they are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from onelayer_checker.core.files import Malformed

Monomial = tuple[tuple[int, int], ...]  # (atom, power), atoms in ascending order
Polynomial = dict[Monomial, Fraction]
Key = tuple[tuple[Monomial, Fraction], ...]

#: Terms of a polynomial, bits of a coefficient, atoms, and a power of one: beyond, nothing is decided.
MOST_TERMS, MOST_BITS, MOST_ATOMS, MOST_POWER = 2_000, 1 << 14, 5_000, 1_000
ONE: Polynomial = {(): Fraction(1)}


def key(p: Polynomial) -> Key:
    """Equal for equal polynomials."""
    return tuple(sorted(p.items()))


def total(*terms: tuple[Polynomial, Fraction | int]) -> Polynomial:
    """The sum of polynomials, each times a number."""
    found: Polynomial = {}
    for p, factor in terms:
        for m, c in p.items():
            found[m] = found.get(m, Fraction(0)) + c * factor
    return {m: c for m, c in found.items() if c}


def product(p: Polynomial, q: Polynomial) -> Polynomial:
    found: Polynomial = {}
    if len(p) * len(q) > MOST_TERMS:
        raise Malformed("claim", f"a product of more than {MOST_TERMS} terms")
    for m, c in p.items():
        for n, e in q.items():
            powers = dict(m)
            for atom, power in n:
                powers[atom] = powers.get(atom, 0) + power
                if powers[atom] > MOST_POWER:
                    raise Malformed("claim", f"a power above {MOST_POWER:,}")
            at = tuple(sorted(powers.items()))
            found[at] = found.get(at, Fraction(0)) + c * e
            if found[at].numerator.bit_length() + found[at].denominator.bit_length() > MOST_BITS:
                raise Malformed("claim", f"a coefficient of more than {MOST_BITS} bits")
    return {m: c for m, c in found.items() if c}


class Algebra:
    """Atoms by number: what each is, and what it depends on: "x", "y", and "pool" if an average is in it."""

    def __init__(self) -> None:
        self.atoms: list[tuple[Any, ...]] = []
        self.free: list[frozenset[str]] = []
        self.number: dict[tuple[Any, ...], int] = {}

    def atom(self, what: tuple[Any, ...], free: frozenset[str]) -> Polynomial:
        if what not in self.number:
            if len(self.atoms) >= MOST_ATOMS:
                raise Malformed("claim", f"a formula of more than {MOST_ATOMS} parts")
            self.number[what] = len(self.atoms)
            self.atoms.append(what)
            self.free.append(free)
        return {((self.number[what], 1),): Fraction(1)}

    def needs(self, *monomials: Monomial) -> frozenset[str]:
        """What they depend on."""
        return frozenset[str]().union(*(self.free[atom] for m in monomials for atom, _ in m))

    def function(self, name: str, p: Polynomial) -> Polynomial:
        if name == "exp":
            return self.exp(p)
        if name == "relu":
            return self.relu(p)
        if name in ("sin", "cos"):
            return self.wave(name, p)
        return self.atom((name, key(p)), self.needs(*p))

    def relu(self, p: Polynomial) -> Polynomial:
        if not p:
            return {}
        lead = key(p)[0][1]
        unit = total((p, 1 / lead))
        found = self.atom(("relu", key(unit)), self.needs(*p))
        return total((found, lead)) if lead > 0 else total((found, -lead), (p, 1))

    def exp(self, p: Polynomial) -> Polynomial:
        """Three factors: of what depends on y alone, on y and more, and not on y."""
        found, parts = ONE, self.parts(p)
        for which in sorted(parts):
            found = product(found, self.atom(("exp", key(parts[which])), self.needs(*parts[which])))
        return found

    def wave(self, name: str, p: Polynomial) -> Polynomial:
        """sin or cos of a + b, where a depends on y alone and b does not depend on y, by those of a and of b; and
        of what begins with a negative factor by that of its opposite."""
        if p and key(p)[0][1] < 0:
            return total((self.wave(name, total((p, -1))), -1 if name == "sin" else 1))
        parts = self.parts(p)
        if parts.keys() != {"y", "rest"}:
            return self.atom((name, key(p)), self.needs(*p))
        (s, c), (u, v) = ([self.wave(f, parts[part]) for f in ("sin", "cos")] for part in ("y", "rest"))
        if name == "sin":
            return total((product(s, v), 1), (product(c, u), 1))
        return total((product(c, v), 1), (product(s, u), -1))

    def parts(self, p: Polynomial) -> dict[str, Polynomial]:
        """The terms that depend on y alone, on y and more, and not on y; those that there are."""
        found: dict[str, Polynomial] = {}
        for m, c in p.items():
            names = self.needs(m)
            which = "rest" if "y" not in names else "y" if names == {"y"} else "both"
            found.setdefault(which, {})[m] = c
        return found

    def average(self, logit: Polynomial, value: Polynomial) -> Polynomial:
        """The mean over y of a value, with weights e^logit."""
        seen = {m: c for m, c in logit.items() if "y" in self.needs(m)}
        found: list[tuple[Polynomial, Fraction]] = []
        for m, c in value.items():
            inside = tuple(part for part in m if "y" in self.free[part[0]])
            outside: Polynomial = {tuple(part for part in m if "y" not in self.free[part[0]]): Fraction(1)}
            if inside:
                names = (self.needs(inside, *seen) - {"y"}) | {"pool"}
                outside = product(outside, self.atom(("average", key(seen), inside), names))
            found.append((outside, c))
        return total(*found)

    def quotient(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """p / q, where q is nowhere 0."""
        if len(q) != 1:
            lead = key(q)[0][1] if q else Fraction(1)
            over = self.atom(("recip", key(total((q, 1 / lead)))), self.needs(*q))
            return total((product(p, over), 1 / lead))
        ((below, factor),) = q.items()
        return total(*((self._divide(m, below), c / factor) for m, c in p.items()))

    def _divide(self, above: Monomial, below: Monomial) -> Polynomial:
        up, down = _cancel_factors(above, below)
        if len(down) == 1 and down[0][1] == 1:
            weights = self.atoms[down[0][0]]
            for atom, _ in up if self._is_mass(weights) else ():
                what = self.atoms[atom]
                values, mass = (
                    _cancel_factors(what[2], weights[2]) if what[:2] == ("average", ()) else ((), weights[2])
                )
                if not mass:  # mean(e^g v) over mean(e^g)
                    logit = total(*((dict(self.atoms[e][1]), k) for e, k in weights[2]))
                    rest = tuple((a, k - (a == atom)) for a, k in up if (a, k) != (atom, 1))
                    return product({rest: Fraction(1)}, self.average(logit, {values: Fraction(1)}))
        found: Polynomial = {up: Fraction(1)}
        for atom, power in down:
            over = self.atom(("recip", (((((atom, 1),)), Fraction(1)),)), self.free[atom])
            for _ in range(power):
                found = product(found, over)
        return found

    def _is_mass(self, what: tuple[Any, ...]) -> bool:
        """Whether it is the mean of a product of exponentials."""
        return what[:2] == ("average", ()) and all(self.atoms[atom][0] == "exp" for atom, _ in what[2])


def _cancel_factors(above: Monomial, below: Monomial) -> tuple[Monomial, Monomial]:
    """Both without their common factors."""
    up, down = dict(above), dict(below)
    for atom in up.keys() & down.keys():
        common = min(up[atom], down[atom])
        up[atom], down[atom] = up[atom] - common, down[atom] - common
    first, second = (tuple(sorted((a, k) for a, k in d.items() if k)) for d in (up, down))
    return first, second
