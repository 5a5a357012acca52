"""Functions with names: what examples, tests and experiments approximate.

Each is a formula in the components of the tokens. A Lipschitz constant that is known by a short argument stands
with it (sup norm to sup norm); where none is, it is derived from the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from onelayer.errors import HypothesisError
from onelayer.targets.program import Builder, Node, Per, Program

Kind = Literal["equivariant", "invariant", "ordered"]
#: (builder, whole parameter or 0) -> outputs
Formula = Callable[[Builder, int], list[Node]]
#: A Lipschitz constant of the program on the box, or None
Known = Callable[["Asked"], float | None]
#: Covers the roundings of a constant, and those of numbers in a formula.
SLACK = 1.0 + 2.0**-40


class Asked(NamedTuple):
    """What a known constant may depend on."""

    n: int
    low: float
    high: float
    parameter: int


@dataclass(frozen=True)
class Named:
    """A named target; ``least`` tokens are needed, ``parameter`` is the default of a name that takes one."""

    name: str
    kind: Kind
    per: Per
    formula: Formula
    says: str
    known: Known | None = None
    least: int = 1
    parameter: int = 0

    def program(self, n: int, d: int, parameter: int | None = None) -> Program:
        if n < self.least:
            needs = f"at least {self.least} tokens for {self.name!r}"
            raise HypothesisError("target", needs, f"n={n}", "Take longer sequences.")
        builder = Builder(n, d)
        return builder.program(self.formula(builder, self.parameter if parameter is None else parameter), self.per)

    def lipschitz(self, n: int, low: float, high: float, parameter: int | None = None) -> float | None:
        """The constant known on paper, or None."""
        asked = Asked(n, low, high, self.parameter if parameter is None else parameter)
        return None if self.known is None else self.known(asked)


def _column(b: Builder, c: int) -> list[Node]:
    return [b.x(j, c) for j in range(b.n)]


def _mean(b: Builder, nodes: list[Node]) -> Node:
    return b.fold("add", nodes) / b.n


def _per_component(formula: Callable[[Builder, list[Node]], list[Node]]) -> Formula:
    """Each component of the tokens on its own; what it gives is ordered first by place, then by component."""

    def outputs(b: Builder, _: int) -> list[Node]:
        columns = [formula(b, _column(b, c)) for c in range(b.d)]
        return [column[k] for k in range(len(columns[0])) for column in columns]

    return outputs


def comparators(n: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs of places to be put in order, for any n."""
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(j, min(j + k, n - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        yield i, i + k
            k //= 2
        p *= 2


def _sort(b: Builder, x: list[Node]) -> list[Node]:
    x = list(x)
    for i, k in comparators(len(x)):
        x[i], x[k] = b.op("min", x[i], x[k]), b.op("max", x[i], x[k])
    return x


def _standardise(b: Builder, x: list[Node]) -> list[Node]:
    """The deviation is a Euclidean norm, not the root of a variance: its slopes stay finite where all are equal."""
    mean = _mean(b, x)
    centred = [node - mean for node in x]
    deviation = b.fold("hypot", centred) / math.sqrt(b.n)
    return [node / (deviation + 0.1) for node in centred]


def _softmax(b: Builder, x: list[Node]) -> list[Node]:
    """1 / sum_k e^(x_k - x_j): each variable occurs with one sign, so that intervals lose nothing."""
    return [1.0 / b.fold("add", [b.op("exp", other - own) for other in x]) for own in x]


def _polynomial(b: Builder, degree: int) -> list[Node]:
    """Chebyshev's recursion T_(k+1) = 2 t T_k - T_(k-1) in t = 2 mean - 1."""
    outputs = []
    for c in range(b.d):
        t = 2.0 * _mean(b, _column(b, c)) - 1.0
        before, now = b.const(1.0), t
        for _ in range(degree - 1):
            before, now = now, 2.0 * t * now - before
        outputs.append(now)
    return outputs


def _standardise_known(asked: Asked) -> float:
    """|d(x_j - mean)| <= 2 (1 - 1/n), |d deviation| <= 1 (it is a seminorm below the sup norm), and |x_j - mean| <=
    deviation sqrt(n - 1), where s / (0.1 + s)^2 <= 2.5."""
    return (20 * (1 - 1 / asked.n) + 2.5 * math.sqrt(asked.n - 1)) * SLACK


def _chebyshev_known(asked: Asked) -> float | None:
    """|T_k'| <= k^2 on [-1, 1], and t = 2 mean - 1 has slopes that add up to 2."""
    return 2.0 * asked.parameter**2 if asked.low >= 0 and asked.high <= 1 else None


_NAMED = (
    # An order statistic moves by at most as much as the token that moves most.
    Named("sort", "invariant", "sequence", _per_component(_sort), "the tokens in ascending order", lambda _: 1.0),
    Named(
        "max",
        "invariant",
        "sequence",
        _per_component(lambda b, x: [b.fold("max", x)]),
        "the largest token, per component",
        lambda _: 1.0,
    ),
    Named(
        "mean",
        "invariant",
        "sequence",
        _per_component(lambda b, x: [_mean(b, x)]),
        "the mean of the tokens",
        lambda _: 1.0,
    ),
    Named(
        "standardise",
        "equivariant",
        "token",
        _per_component(_standardise),
        "(x - mean) / (0.1 + standard deviation), per component",
        _standardise_known,
    ),
    # The slopes of p_j add up to p_j (1 - p_j) + sum_(k != j) p_j p_k = 2 p_j (1 - p_j) <= 1/2.
    Named(
        "softmax",
        "equivariant",
        "token",
        _per_component(_softmax),
        "e^x / sum of e^y over the tokens, per component",
        lambda _: 0.5,
    ),
    Named(
        "polynomial",
        "invariant",
        "sequence",
        _polynomial,
        "Chebyshev polynomial of 2 mean - 1, per component; its degree after a colon",
        _chebyshev_known,
        parameter=3,
    ),
)
ZOO: dict[str, Named] = {named.name: named for named in _NAMED}
