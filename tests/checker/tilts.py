"""Lines with averages of weights e^(s g), for tests of what is proved of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from onelayer_checker.functions import tilted
from onelayer_checker.functions.formulas import NAMED, Meaning, read_formula
from onelayer_checker.functions.tilted import Tilted

F = Fraction
G = {((0, 1),): F(1)}
#: Two components of y, their products, and means of all.
LEAVES: list[list[Any]] = [["y", 0], ["y", 1], ["mul", 0, 0], ["mul", 0, 1], ["mean", 0], ["mean", 1], ["mean", 2]]
LEAVES += [["mean", 3], ["mul", 4, 4], ["mul", 4, 5], ["sub", 6, 8], ["sub", 7, 9]]
VARIANCE, COVARIANCE = 10, 11


class Sheet:
    """Lines that are added one by one; y lies in [0, 1] and in [-1, 2]."""

    def __init__(self) -> None:
        self.lines = [*LEAVES]

    def put(self, *line: Any) -> int:
        self.lines.append(list(line))
        return len(self.lines) - 1

    def ratio(self, c: Fraction | float, k: int | None = None) -> int:
        value = F(c)
        at = self.put("ratio", value.numerator, value.denominator)
        return at if k is None else self.put("mul", at, k)

    def average(self, s: Fraction | float, g: int, v: int) -> int:
        return self.put("average", self.ratio(s, g), v)

    def sum(self, terms: Any, g: int = 0, v: int = 0) -> int:
        """Of w times the average of v with weights e^(s g)."""
        made = [self.ratio(w, self.average(s, g, v)) for s, w in terms]
        at = made[0]
        for k in made[1:]:
            at = self.put("add", at, k)
        return at

    @property
    def meaning(self) -> Meaning:
        box = [[(0.0).hex(), (1.0).hex()], [(-1.0).hex(), (2.0).hex()]]
        head = {"d": 2, "tokens": 3, "per": "token", "box": box, "lines": self.lines, "stages": []}
        return Meaning(read_formula(head | {name: [0] for name in NAMED}, "target"))

    def read(self, k: int) -> Tilted | None:
        m = self.meaning
        return tilted.read(m.algebra, m.normal(k))


def of(*terms: tuple[Any, Any]) -> Tilted:
    return Tilted(G, G, tuple((F(s), F(w)) for s, w in terms))
