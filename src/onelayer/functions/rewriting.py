"""Formulas rewritten so that one layer computes them: functions of single numbers, and one aggregation.

A mean over y of a sum of products is a sum of products of what does not depend on y with means of what depends on y
alone; functions of x and y together are replaced by such sums, and hypot by a sum of absolute values (pairs.py).
e^(a + b) is e^a e^b; a quotient of two means with a common e^g is an average with weights e^g. A product of two
numbers is a difference of squares: u v = ((c u + v/c)^2 - (c u - v/c)^2) / 4. What is left are functions of one
number, which ReLU units interpolate. What would need an average inside an average is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from onelayer.errors import HypothesisError
from onelayer.functions.expansion import Expansion, Terms, add_terms, without
from onelayer.functions.lines import AFFINE, POOLED, Lines
from onelayer.functions.pairs import Nearby
from onelayer.functions.tilts import Head
from onelayer.problems.targets.pooled import Pooled


@dataclass(frozen=True)
class Pool:
    """An average line: of a value, as a function of y and of x; with logits sum_s q_s(x) k_s(y), k as of x."""

    line: int
    value: int  # as a function of x
    kind: str  # one of POOLED, or mixture
    logits: tuple[tuple[int, int], ...] = ()
    tilted: int | None = None  # of a mixture: g, as a function of x
    tilts: tuple[tuple[Fraction, Fraction], ...] = ()  # of a mixture: weights e^(s g) of an average, and its factor

    @property
    def read(self) -> list[int]:
        """Lines that heads read."""
        own = [self.value] if self.tilted is None else [self.value, self.tilted]
        return [*own, *(k for pair in self.logits for k in pair)]


class PairsError(HypothesisError):
    """A function of x and y together is averaged, which no products are."""


class Rewriter(Expansion):
    """Adds the lines of a plan to the lines of a target."""

    def __init__(
        self,
        target: Pooled,
        box: list[tuple[float, float]],
        tolerance: float,
        share: float,
        pairs: bool = False,
        centred: bool = False,
        head: Head | None = None,
    ) -> None:
        """What is replaced by lines near it costs at most a share of the tolerance: distances from 0; with
        ``pairs``, functions of pairs of tokens; with a ``head``, covariances and logarithms of means of
        exponentials."""
        super().__init__(Lines(box), centred)
        self.mixtures: dict[int, tuple[int, int, tuple[tuple[Fraction, Fraction], ...]]] = {}
        self.pools: dict[int, Pool] = {}
        self.bases: dict[int, int | None] = {}
        self.done: dict[tuple[int, bool], int] = {}
        place: list[int] = []
        for op, *of in target.lines:
            if op == "const":
                place.append(self.lines.const(Fraction(of[0])))
            else:
                place.append(self.lines.add(op, *(of if op in ("x", "y") else [place[i] for i in of])))
        self.components = [self.lines.add("x", c) for c in range(len(box))]
        self.outputs = [place[k] for k in target.outputs]
        nearby = Nearby(self, share * tolerance, (1 - share) * tolerance, pairs, head)
        self.meant = nearby.near(self.outputs)
        self.has_moments, self.has_pairs = nearby.has_moments, pairs
        self.planned = [self.build(k) for k in self.meant]

    # What a line is a function of -------------------------------------------------------------------------------

    def base(self, k: int) -> int | None:
        """The one number that a line is a function of: itself, if there is no other; None of a constant."""
        if k not in self.bases:
            op, *of = self.lines.lines[k]
            if op == "const":
                self.bases[k] = None
            elif op in ("x", "y", *POOLED):
                self.bases[k] = k
            else:
                found = {self.base(i) for i in of} - {None}
                self.bases[k] = found.pop() if len(found) == 1 else k
        return self.bases[k]

    def alike(self, a: int, b: int) -> bool:
        return self.base(a) is None or self.base(b) is None or self.base(a) == self.base(b)

    # Lines of the plan ------------------------------------------------------------------------------------------

    def build(self, k: int, swapped: bool = False) -> int:
        """The line of the plan for a line without y; swapped, for a line of y alone, as a function of x."""
        if (k, swapped) not in self.done:
            made = self._build(k, swapped)
            self.lines.narrow(made, k)
            self.done[k, swapped] = made
        return self.done[k, swapped]

    def _build(self, k: int, swapped: bool) -> int:
        op, *of = self.lines.lines[k]
        if op in ("const", "x"):
            return k
        if op == "y":
            return self.lines.add("x", of[0])
        if k in self.mixtures:
            return self.mixture(k)
        if op == "mean":
            return self.mean(of[0])
        if op == "largest":
            return self.largest(of[0])
        if op == "average":  # written by this class
            return k
        if op == "div" and not swapped and "pool" in self.lines.free[of[1]]:
            weighed = self.softmax(*of)
            if weighed is not None:
                return weighed
        return self.combine(op, [self.build(i, swapped) for i in of])

    def combine(self, op: str, of: list[int]) -> int:
        """An operation whose result is a function of one number, or a sum of such."""
        L, (a, b) = self.lines, (of[0], of[-1])
        if len(of) == 1 or op in AFFINE or self.alike(a, b):
            return L.add(op, *of)
        if op == "mul":
            return self.product(a, b)
        if op == "div":
            return self.product(a, L.add("div", L.const(1), b))
        if op in ("max", "min"):
            more = L.add("relu", L.add("sub", a, b))
            return L.add("add", b, more) if op == "max" else L.add("sub", a, more)
        assert op == "hypot"
        return L.add("sqrt", L.add("add", L.add("mul", a, a), L.add("mul", b, b)))

    def product(self, a: int, b: int) -> int:
        """Of two numbers, scaled so that their ranges are about as wide as each other."""
        L = self.lines
        wide = [max(L.ranges[k][1] - L.ranges[k][0], 1e-12) for k in (a, b)]
        c = Fraction(2) ** round(math.log2(wide[1] / wide[0]) / 2)
        u, v = L.scale(c, a), L.scale(1 / c, b)
        p, m = L.add("add", u, v), L.add("sub", u, v)
        squares = L.add("sub", L.add("mul", p, p), L.add("mul", m, m))
        made = L.scale(Fraction(1, 4), squares)
        L.narrow(made, L.add("mul", a, b))
        return made

    def times(self, lines: tuple[int, ...]) -> int:
        found = self.lines.const(1)
        for k in lines:
            found = self.combine("mul", [found, k])
        return found

    # Aggregates -------------------------------------------------------------------------------------------------

    def mean(self, k: int) -> int:
        """The mean of line k over y: for each product without y, that times a mean of a line of y alone."""
        return self._pool_terms(self.expand(k), None)

    def _pool_terms(self, terms: Terms, logits: Terms | None) -> int:
        L, found = self.lines, []
        grouped: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}
        for (free, ys), c in terms.items():
            grouped.setdefault(free, {})[ys] = c
        for free, inside in grouped.items():
            constant = inside.pop((), Fraction(0))
            outside = self.times(tuple(self.build(i) for i in free))
            if inside:
                lead = next(iter(inside.values())) if len(inside) == 1 else Fraction(1)
                pool = self._pool({ys: c / lead for ys, c in inside.items()}, logits)
                found.append(L.scale(lead, self.combine("mul", [outside, pool])))
            found.append(L.scale(constant, outside))
        return L.sum(found)

    def _pool(self, inside: dict[tuple[int, ...], Fraction], logits: Terms | None) -> int:
        L = self.lines
        for ys in inside:
            for y in ys:
                if L.free[y] != {"y"}:
                    raise self._too_deep(y)
        value = L.sum([L.scale(c, self.raw(ys)) for ys, c in inside.items()])
        token = L.sum([L.scale(c, self.times(tuple(self.build(y, True) for y in ys))) for ys, c in inside.items()])
        L.narrow(token, value)
        if not logits:
            line = L.add("mean", value)
            self.pools.setdefault(line, Pool(line, token, "mean"))
            return line
        pairs, written = [], []
        byfree: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}
        for (free, ys), c in logits.items():
            if ys:
                byfree.setdefault(free, {})[ys] = c
        for free, keys in byfree.items():
            if any("pool" in L.free[i] for i in free):
                raise self.refusal("weights of an average depend on another average", "Leave that out.")
            for y in (y for ys in keys for y in ys):
                if L.free[y] != {"y"}:
                    raise self._too_deep(y)
            q = self.times(tuple(self.build(i) for i in free))
            own = L.sum([L.scale(c, self.times(tuple(self.build(y, True) for y in ys))) for ys, c in keys.items()])
            other = L.sum([L.scale(c, self.raw(ys)) for ys, c in keys.items()])
            pairs.append((q, own))
            written.append(L.add("mul", q, other))
        line = L.add("average", L.sum(written), value)
        self.pools.setdefault(line, Pool(line, token, "average", tuple(pairs)))
        return line

    def mixture(self, k: int) -> int:
        """A sum of averages of the same value: one number of the stream, and a head for each."""
        v, g, tilts = self.mixtures[k]
        value, tilted = (self.build(i, True) for i in (v, g))
        self.pools.setdefault(k, Pool(k, value, "mixture", tilted=tilted, tilts=tilts))
        return k

    def largest(self, k: int) -> int:
        L = self.lines
        if L.free[k] != {"y"}:
            raise self.refusal("a maximum of pairs of tokens", "Take the maximum of a function of y alone.")
        line = L.add("largest", k)
        self.pools.setdefault(line, Pool(line, self.build(k, True), "largest"))
        return line

    def _too_deep(self, k: int) -> HypothesisError:
        op, free = self.lines.lines[k][0], self.lines.free[k]
        if "pool" in free:
            return self.refusal(
                f"inside an average, {op} is applied to another average and to y",
                "Write it without an average inside an average, or use another construction.",
            )
        return PairsError(
            "formula",
            "one aggregation, after expanding products",
            f"{op} is applied to x and y together, inside an average",
            "Use a polynomial of x and y, weights exp(polynomial), or another construction.",
        )

    def softmax(self, above: int, below: int) -> int | None:
        """A quotient of two means with a common e^g, as an average with weights e^g; None for other quotients."""
        L, a, b = self.lines, self.pool_terms(above), self.pool_terms(below)
        if len(b) != 1:
            return None
        (((free, mass), c),) = b.items()
        if not mass or any(L.lines[y][0] != "exp" for y in mass):
            return None
        rest: Terms = {}
        for (f, ys), e in a.items():
            left, inside = without(f, free), without(ys, mass)
            if left is None or inside is None:
                return None
            rest[left, inside] = rest.get((left, inside), Fraction(0)) + e / c
        logits = add_terms([(self.expand(L.lines[y][1]), 1) for y in mass])
        return self._pool_terms(rest, logits)
