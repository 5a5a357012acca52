"""Roundings of a layer, followed value by value: how large a number may be, and how far off.

Encloses: a sum of k terms, in any order, is off by gamma(k) times the sum of magnitudes, and by k times the least
positive number. For linear attention q (sum k v) and sum (q k) v are both allowed: then no sum of products k v may
be too large, and what each of them loses by underflow is multiplied by q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from onelayer_checker.looped.algorithms import Algorithm
from onelayer_checker.looped.limits import up
from onelayer_checker.looped.network import Affine, Layer

#: The unit roundoff, the least positive number, and sizes beyond which nothing is said.
FLOATS = {
    "float32": (Fraction(1, 2**24), Fraction(1, 2**149), 2**60),
    "float64": (Fraction(1, 2**53), Fraction(1, 2**1074), 2**500),
}


class Unlike(Exception):
    """The network is of another form, or its numbers do not fit."""


@dataclass(frozen=True)
class Known:
    """At most how large a number is, in reals, and how far off it is."""

    size: Fraction
    off: Fraction = Fraction(0)

    @property
    def whole(self) -> Fraction:
        return self.size + self.off


@dataclass(frozen=True)
class Floats:
    u: Fraction
    least: Fraction
    most: int

    def gamma(self, k: int) -> Fraction:
        if k * self.u >= Fraction(1, 2):
            raise Unlike("sums are too long for this arithmetic")
        return k * self.u / (1 - k * self.u)

    def summed(self, terms: Sequence[Known], products: bool = True) -> Known:
        """A sum in any order, of products that are rounded too."""
        size, whole = sum((t.size for t in terms), Fraction(0)), sum((t.whole for t in terms), Fraction(0))
        k = len(terms) + (1 if products else 0)
        off = sum((t.off for t in terms), Fraction(0)) + self.gamma(k) * whole + k * self.least
        return self.known(size, off)

    def known(self, size: Fraction, off: Fraction) -> Known:
        if size + off > self.most:
            raise Unlike("numbers may leave the range of this arithmetic")
        return Known(up(size), up(off))

    def affine(self, layer: Affine, h: Sequence[Known]) -> list[Known]:
        found = []
        for column, bias in zip(layer.columns, layer.bias, strict=True):
            terms = [Known(abs(w) * h[i].size, abs(w) * h[i].off) for i, w in column]
            terms += [Known(abs(bias))] if bias else []
            copied = len(column) == 1 and not bias and abs(column[0][1]) == 1
            found.append(terms[0] if copied else self.summed(terms) if terms else Known(Fraction(0)))
        return found

    def times(self, a: Known, b: Known) -> Known:
        off = a.size * b.off + a.off * b.whole + self.u * a.whole * b.whole + self.least
        return self.known(a.size * b.size, off)

    def before(self, layer: Layer, h: list[Known]) -> list[Known]:
        """The feed-forward part; a number that is copied as relu(u) - relu(-u) is exact."""
        found = h
        for one in layer.feedforward:
            found = self.affine(one, found)
        copied = [c for c in range(len(h)) if layer.feedforward and is_copied(layer, c)]
        return [h[c] if c in copied else value for c, value in enumerate(found)]

    def added(self, layer: Layer, h: list[Known], keys: int, held: list[Known] | None = None) -> list[Known]:
        """A token after attention over at most so many keys, all of them with its bounds, or with ``held``."""
        seen = h if held is None else held
        listed: list[list[Known]] = [[] for _ in h]
        for head in layer.heads:
            q, k, v = self.affine(head.query, h), self.affine(head.key, seen), self.affine(head.value, seen)
            score = self.summed([self.times(a, b) for a, b in zip(q, k, strict=True)], products=False)
            read = []
            inside = layer.kind == "linear"
            asked = sum((a.whole for a in q), Fraction(0)) if inside else Fraction(0)
            for one in v:
                for a in k if inside else ():
                    self.known(keys * a.whole * one.whole, Fraction(0))
                term, steps = self.times(score, one), keys + len(q) + 6
                rounded = self.gamma(steps) * term.whole + steps * self.least * (1 + one.whole + asked)
                scale = 1 if layer.mean else keys
                read.append(Known(up(scale * term.size), up(scale * (term.off + rounded))))
            for c, (column, value) in enumerate(zip(head.out.columns, self.affine(head.out, read), strict=True)):
                listed[c] += [value] if column else []
        return [
            self.summed([t, *parts], products=False) if parts else t for t, parts in zip(h, listed, strict=True)
        ]


def sizes_of(a: Algorithm, x: Fraction, y: Fraction) -> list[Fraction]:
    """The largest magnitude of each number of a token that is x, y or a constant; w is put in later."""
    tokens = [a.token(name, [0] * len(a.start), [x] * a.x, [y]) for name in ("example", "query")]
    return [max(abs(Fraction(u)) for u in pair) for pair in zip(*tokens, strict=True)]


def is_copied(layer: Layer, c: int) -> bool:
    """Whether a channel comes through the feed-forward part as it is: by one weight 1, or as relu(u) - relu(-u)."""
    stack = layer.feedforward
    if len(stack) == 1:
        return stack[0].columns[c] == ((c, Fraction(1)),) and stack[0].bias[c] == 0
    if len(stack) != 2 or stack[1].bias[c] != 0 or len(stack[1].columns[c]) != 2:
        return False
    units = {w: (stack[0].columns[i], stack[0].bias[i]) for i, w in stack[1].columns[c]}
    one, none = Fraction(1), Fraction(0)
    return units == {one: (((c, one),), none), -one: (((c, -one),), none)}
