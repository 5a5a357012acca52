"""Functions with names: what examples, tests and experiments approximate.

Each is a formula in the components of the tokens. A Lipschitz constant that is known by a short argument stands
with it (sup norm to sup norm); where none is, it is derived from the program.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from onelayer.errors import OptionError
from onelayer.problems.targets.program import Builder, Node, Per, Program

Kind = Literal["equivariant", "invariant", "ordered"]
#: (builder, whole parameter or 0) -> outputs
Formula = Callable[[Builder, int], list[Node]]
#: (builder, one component of all tokens) -> outputs
Columns = Callable[[Builder, list[Node]], list[Node]]
#: A Lipschitz constant of the program on the box, or None
Known = Callable[["Asked"], float | None]
#: Covers the roundings of a constant, and those of numbers in a formula.
SLACK = 1.0 + 2.0**-40


class Asked(NamedTuple):
    """What a known constant may depend on."""

    n: int
    d: int
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
            raise OptionError("target", needs, f"n={n}", "Take longer sequences.")
        builder = Builder(n, d)
        return builder.program(self.formula(builder, self.parameter if parameter is None else parameter), self.per)

    def lipschitz(self, n: int, d: int, low: float, high: float, parameter: int | None = None) -> float | None:
        """The constant known on paper, or None."""
        asked = Asked(n, d, low, high, self.parameter if parameter is None else parameter)
        return None if self.known is None else self.known(asked)


def _column(b: Builder, c: int) -> list[Node]:
    return [b.x(j, c) for j in range(b.n)]


def _mean(b: Builder, nodes: list[Node]) -> Node:
    return b.fold("add", nodes) / b.n


def _per_component(formula: Columns) -> Formula:
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


def _attention(b: Builder, _: int) -> list[Node]:
    """One softmax head: the mean of the tokens with weights e^(x . y)."""
    outputs = []
    for j in range(b.n):
        scores = [b.fold("add", [b.x(j, c) * b.x(k, c) for c in range(b.d)]) for k in range(b.n)]
        weights = [b.op("exp", score) for score in scores]
        total = b.fold("add", weights)
        outputs += [b.fold("add", [weights[k] * b.x(k, c) for k in range(b.n)]) / total for c in range(b.d)]
    return outputs


def _nearest(b: Builder, _: int) -> list[Node]:
    def distance(j: int, k: int) -> Node:
        return b.fold("max", [abs(b.x(min(j, k), c) - b.x(max(j, k), c)) for c in range(b.d)])

    return [b.fold("min", [distance(j, k) for k in range(b.n) if k != j]) for j in range(b.n)]


def _interaction(b: Builder, _: int) -> list[Node]:
    def energy(j: int, k: int) -> Node:
        steps = [b.x(min(j, k), c) - b.x(max(j, k), c) for c in range(b.d)]
        return b.op("exp", -b.fold("add", [step * step for step in steps]))

    return [b.fold("add", [energy(j, k) for k in range(b.n) if k != j]) for j in range(b.n)]


def _moving_average(b: Builder, x: list[Node]) -> list[Node]:
    windows = [x[max(j - 1, 0) : j + 2] for j in range(b.n)]
    return [b.fold("add", window) / len(window) for window in windows]


def _random(b: Builder, count: int) -> list[Node]:
    """sum_k a_k sin(3 mean_j sin(w_k . x_j + b_k) + c_k) with frequencies that grow with k.

    Term k has slopes that add up to at most 3 |a_k| |w_k|_1, which a_k makes a share 1 / count of 1.
    """
    draw = random.Random(f"{count} {b.d}").random
    terms = []
    for k in range(count):
        w = [(k + 1) * (2 * draw() - 1) * math.pi for _ in range(b.d)]
        inside, outside, sign = 6 * draw(), 6 * draw(), math.copysign(1.0, draw() - 0.5)
        waves = []
        for j in range(b.n):
            angle = b.fold("add", [b.x(j, c) * w[c] for c in range(b.d)])
            waves.append(b.op("sin", angle + inside))
        size = sign / (3 * count * sum(map(abs, w)) * SLACK)
        terms.append(size * b.op("sin", 3.0 * _mean(b, waves) + outside))
    return [b.fold("add", terms)]


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
    """At most a/t + b (t - 0.1)/t^2 with t = 0.1 + deviation, a = 2 (1 - 1/n) and b = sqrt(n - 1).

    For |d(x_j - mean)| <= a, |d deviation| <= 1 (it is a seminorm below the sup norm), and |x_j - mean| <= b times
    the deviation. Over t >= 0.1 that is largest at t = 0.2 b / (a + b), or at 0.1.
    """
    a, b = 2 * (1 - 1 / asked.n), math.sqrt(asked.n - 1)
    return ((a + b) ** 2 / (0.4 * b) if b > a else 10 * a) * SLACK


def _interaction_known(asked: Asked) -> float:
    """The gradient of e^(-|r|^2) is at most sqrt(2/e) long, and r = x - y moves by at most 2 sqrt(d)."""
    return (asked.n - 1) * math.sqrt(8 / math.e * asked.d) * SLACK


def _chebyshev_known(asked: Asked) -> float | None:
    """|T_k'| <= k^2 on [-1, 1], and t = 2 mean - 1 has slopes that add up to 2."""
    return 2.0 * asked.parameter**2 if asked.low >= 0 and asked.high <= 1 else None


def _constant(value: float) -> Known:
    return lambda _: value


def _middle(b: Builder, x: list[Node]) -> Node:
    ordered = _sort(b, x)
    return (ordered[(b.n - 1) // 2] + ordered[b.n // 2]) / 2 if b.n % 2 == 0 else ordered[b.n // 2]


def _of_sequence(name: str, says: str, formula: Columns, known: Known | None, least: int = 1) -> Named:
    return Named(name, "invariant", "sequence", _per_component(formula), says, known, least)


def _of_token(name: str, says: str, formula: Formula, known: Known | None, least: int = 1) -> Named:
    return Named(name, "equivariant", "token", formula, says, known, least)


_NAMED = (
    # An order statistic moves by at most as much as the token that moves most; a mean likewise.
    _of_sequence("sort", "the tokens in ascending order, per component", _sort, _constant(1.0)),
    _of_sequence("max", "the largest, per component", lambda b, x: [b.fold("max", x)], _constant(1.0)),
    _of_sequence("median", "the middle one, or the mean of two", lambda b, x: [_middle(b, x)], _constant(1.0)),
    _of_sequence("mean", "the mean of the tokens", lambda b, x: [_mean(b, x)], _constant(1.0)),
    _of_sequence(
        "range",
        "the largest minus the smallest, per component",
        lambda b, x: [b.fold("max", x) - b.fold("min", x)],
        _constant(2.0),
    ),
    _of_sequence(
        "gap",
        "the largest minus the second largest, per component",
        lambda b, x: [_sort(b, x)[-1] - _sort(b, x)[-2]],
        _constant(2.0),
        least=2,
    ),
    # Slopes 2 (x_j - mean) / n; twice the mean deviation is at most the width of the box.
    _of_sequence(
        "variance",
        "the mean square of x - mean, per component",
        lambda b, x: [_mean(b, [(node - _mean(b, x)) ** 2 for node in x])],
        lambda asked: (asked.high - asked.low) * SLACK,
    ),
    _of_token(
        "standardise",
        "(x - mean) / (0.1 + standard deviation), per component",
        _per_component(_standardise),
        _standardise_known,
    ),
    # The slopes of p_j add up to p_j (1 - p_j) + sum_(k != j) p_j p_k = 2 p_j (1 - p_j) <= 1/2.
    _of_token(
        "softmax", "e^x / sum of e^y over the tokens, per component", _per_component(_softmax), _constant(0.5)
    ),
    _of_token("attention", "the mean of the tokens y with weights e^(x . y)", _attention, None),
    # A distance of two tokens moves by at most twice what a token moves; so does a minimum of distances.
    _of_token(
        "nearest", "the distance to the nearest other token, in the sup norm", _nearest, _constant(2.0), least=2
    ),
    _of_token(
        "interaction", "the sum of e^(-|x - y|^2) over the other tokens", _interaction, _interaction_known, 2
    ),
    Named(
        "moving_average",
        "ordered",
        "token",
        _per_component(_moving_average),
        "the mean of a token and its neighbours",
        _constant(1.0),
    ),
    Named(
        "reversal",
        "ordered",
        "token",
        _per_component(lambda _, x: x[::-1]),
        "the tokens in the opposite order",
        _constant(1.0),
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
    Named(
        "random",
        "invariant",
        "sequence",
        _random,
        "waves of waves in random directions; how many after a colon, always the same for that number",
        _constant(1.0),
        parameter=4,
    ),
)
ZOO: dict[str, Named] = {named.name: named for named in _NAMED}
