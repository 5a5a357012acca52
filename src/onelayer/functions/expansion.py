"""Lines as sums of products of lines without y and lines with y: what a mean over y can be taken of."""

from __future__ import annotations

from fractions import Fraction

from onelayer.errors import HypothesisError
from onelayer.functions.lines import Lines

#: Products of lines without y, and of lines with y; times a number each.
Terms = dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction]
MOST_TERMS = 200


class Expansion:
    """Expands the lines of a formula."""

    def __init__(self, lines: Lines, centred: bool = False) -> None:
        """Centred, x and y inside products count from the middle of the box: their powers stay small."""
        self.lines, self.centred = lines, centred
        self.has_middles = False  # whether that would make a difference

    def refusal(self, found: str, remedy: str) -> HypothesisError:
        return HypothesisError("formula", "one aggregation, after expanding products", found, remedy)

    def raw(self, lines: tuple[int, ...]) -> int:
        found = self.lines.const(1)
        for k in lines:
            found = self.lines.add("mul", found, k)
        return found

    def expand(self, k: int) -> Terms:
        """A line as a sum of products of lines without y and lines with y."""
        L, (op, *of) = self.lines, self.lines.lines[k]
        if op == "const":
            return {((), ()): of[0]} if of[0] else {}
        if "y" not in L.free[k]:
            return {((k,), ()): Fraction(1)}
        if L.free[k] == {"y"}:
            return {((), (k,)): Fraction(1)}
        if op in ("add", "sub", "neg"):
            signs = (-1,) if op == "neg" else (1, 1 if op == "add" else -1)
            return add_terms([(self._factor(i), sign) for i, sign in zip(of, signs, strict=True)])
        if op == "mul":
            return self._times(self._factor(of[0]), self._factor(of[1]))
        if op == "div" and ("y" not in L.free[of[1]] or L.free[of[1]] == {"y"}):
            return self._times(self.expand(of[0]), self.expand(L.add("div", L.const(1), of[1])))
        if op == "exp":
            return self._exp(self._as_written(of[0]), k)
        if op in ("sin", "cos"):
            return self._wave(op, self._as_written(of[0]), k)
        return {((), (k,)): Fraction(1)}

    def _as_written(self, k: int) -> Terms:
        """The same of what a function is taken of: from the middle of the box it would be another function."""
        outside, self.centred = self.centred, False
        found = self.expand(k)
        self.centred = outside
        return found

    def _factor(self, k: int) -> Terms:
        """The same of a part of a larger line: of x and y themselves, with the middle of the box apart."""
        L, (op, *of) = self.lines, self.lines.lines[k]
        middle = sum(map(Fraction, L.box[of[0]]), Fraction(0)) / 2 if op in ("x", "y") else Fraction(0)
        self.has_middles |= middle != 0
        if not self.centred or not middle:
            return self.expand(k)
        moved, rest = L.add("sub", k, L.const(middle)), Terms({((), ()): middle})
        return {((moved,), ()): Fraction(1), **rest} if op == "x" else {((), (moved,)): Fraction(1), **rest}

    def _times(self, a: Terms, b: Terms) -> Terms:
        if len(a) * len(b) > MOST_TERMS:
            raise self.refusal(f"an expansion of more than {MOST_TERMS} products", "Write a shorter formula.")
        found: Terms = {}
        for (f, y), c in a.items():
            for (g, z), e in b.items():
                at = tuple(sorted(f + g)), tuple(sorted(y + z))
                found[at] = found.get(at, Fraction(0)) + c * e
        return {at: c for at, c in found.items() if c}

    def _exp(self, terms: Terms, k: int) -> Terms:
        """e^(a + b) as e^a e^b, of what depends on y alone, on more, and not on y."""
        parts = self._parts(terms)
        if len(parts) == 1:
            return {((), (k,)): Fraction(1)}
        made = {name: self.lines.add("exp", part) for name, part in parts.items()}
        with_y = tuple(sorted(made[name] for name in ("y", "both") if name in made))
        return {(((made["free"],) if "free" in made else ()), with_y): Fraction(1)}

    def _wave(self, op: str, terms: Terms, k: int) -> Terms:
        """sin and cos of a + b by those of a and of b, where a depends on y alone and b does not depend on y. What
        begins with a negative factor is replaced by its opposite, so that x and y get the same functions."""
        L, parts = self.lines, self._parts(terms)
        if parts.keys() != {"free", "y"}:
            return {((), (k,)): Fraction(1)}
        signs = {name: Fraction(-1 if _lead(terms, name) < 0 else 1) for name in parts}
        opposite = self._parts({at: -c for at, c in terms.items()})
        (s, c), (u, v) = (
            [L.add(f, (parts if signs[name] > 0 else opposite)[name]) for f in ("sin", "cos")]
            for name in ("y", "free")
        )
        if op == "sin":
            return {((v,), (s,)): signs["y"], ((u,), (c,)): signs["free"]}
        return {((v,), (c,)): Fraction(1), ((u,), (s,)): -signs["y"] * signs["free"]}

    def _parts(self, terms: Terms) -> dict[str, int]:
        """Lines of the terms without y, of those with y alone, and of the others, as far as there are any."""
        parts: dict[str, Terms] = {}
        for (free, ys), c in terms.items():
            parts.setdefault(_name(free, ys), {})[free, ys] = c
        L = self.lines
        return {
            name: L.sum([L.scale(c, self.raw(free + ys)) for (free, ys), c in part.items()])
            for name, part in parts.items()
        }

    def pool_terms(self, k: int) -> Terms:
        """A line without y as products with one mean each: the part with y stands for its mean."""
        op, *of = self.lines.lines[k]
        if op == "const":
            return {((), ()): of[0]} if of[0] else {}
        if op == "mean":
            return self.expand(of[0])
        if op in ("add", "sub", "neg"):
            signs = (-1,) if op == "neg" else (1, 1 if op == "add" else -1)
            return add_terms([(self.pool_terms(i), sign) for i, sign in zip(of, signs, strict=True)])
        if op == "mul":
            a, b = (self.pool_terms(i) for i in of)
            if not (any(ys for _, ys in a) and any(ys for _, ys in b)):
                return self._times(a, b)
        return {((k,), ()): Fraction(1)}


def _name(free: tuple[int, ...], ys: tuple[int, ...]) -> str:
    """What a product depends on."""
    return "free" if not ys else "both" if free else "y"


def _lead(terms: Terms, name: str) -> Fraction:
    """The factor of the first of these terms that is no constant."""
    found = [c for (free, ys), c in terms.items() if _name(free, ys) == name and (free or ys)]
    return found[0] if found else Fraction(1)


def add_terms(parts: list[tuple[Terms, int]]) -> Terms:
    found: Terms = {}
    for terms, sign in parts:
        for at, c in terms.items():
            found[at] = found.get(at, Fraction(0)) + sign * c
    return {at: c for at, c in found.items() if c}


def without(all_: tuple[int, ...], some: tuple[int, ...]) -> tuple[int, ...] | None:
    """What is left of a product after dividing by another; None if that does not go."""
    left = list(all_)
    for k in some:
        if k not in left:
            return None
        left.remove(k)
    return tuple(left)
