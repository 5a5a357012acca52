"""Prompts on which a network and an algorithm differ: anyone can repeat a refutation.

Both are run over the rationals; a number that gets too long goes on as an enclosure of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onelayer_checker.core.budget import spend
from onelayer_checker.looped.algorithms import Algorithm
from onelayer_checker.looped.near import Near, differ, fraction, near
from onelayer_checker.looped.network import Layer, Network, Numbers, total
from onelayer_checker.looped.panels import mean_of
from onelayer_checker.looped.polynomials import times

#: Digits, in bits, up to which numbers are exact, and up to which enclosures of them are followed.
EXACT_BITS, MOST_BITS = 1 << 12, 1 << 14
Example = tuple[tuple[int, ...], tuple[int | Fraction, ...]]
#: What the answers of a prompt with judges are multiplied by.
SCALES = (1, Fraction(1, 8), Fraction(1, 1024))


@dataclass(frozen=True)
class Prompt:
    examples: tuple[Example, ...]
    query: tuple[int, ...]
    judges: tuple[Example, ...] = ()

    def __str__(self) -> str:
        said, judges = (
            "; ".join(f"x = {_format_numbers(x)}, y = {_format_numbers(y)}" for x, y in listed)
            for listed in (self.examples, self.judges)
        )
        said += f"; judges {judges}" if judges else ""
        return f"examples {said}" + (f"; query {_format_numbers(self.query)}" if self.query else "")


class Lost(Exception):
    """Numbers grew too large, or are no rationals."""


def tells_apart(network: Network, a: Algorithm, prompts: Iterable[Prompt]) -> str:
    """The first prompt on which the answers differ, with both of them; empty if there is none among these."""
    for prompt in prompts:
        try:
            found, wanted = answers(network, a, prompt)
        except Lost:
            continue
        for i, (p, q) in enumerate(zip(found, wanted, strict=True)):
            if differ(p, q):
                at = f", component {i}" if len(found) > 1 else ""
                values = f"the network gives {_real(p)}, the algorithm {_real(q)}"
                return f"{prompt}{at}: {values}, apart by {_real(p - q)}"
    return ""


def answers(network: Network, a: Algorithm, prompt: Prompt) -> tuple[Numbers, Numbers]:
    """The network's answer at the last token of a prompt, and the algorithm's."""
    pairs, judges = (
        [([Fraction(u) for u in x], [Fraction(u) for u in y]) for x, y in listed]
        for listed in (prompt.examples, prompt.judges)
    )
    last = ([Fraction(u) for u in prompt.query], []) if a.query is not None else pairs[-1]
    tokens = [a.token("example", a.start, x, y) for x, y in pairs]
    tokens += [a.token("judge", a.start, x, y) for x, y in judges]
    tokens += [] if a.query is None else [a.token("query", a.start, *last)]
    tokens = _run(network.loop, tokens)
    tokens = tokens if network.panel is None else _run(network.panel, tokens)
    out = network.answer(tokens[-1])
    s: Numbers = list(a.start)
    for _ in range(a.steps):
        m = _gather(a, network.loop, [a.terms(s, x, y) for x, y in pairs])
        s = _short(a.step.run({"s": s, "m": m}))
    found = {} if a.panel is None else {"v": mean_of(a.panel, s, judges)}
    return out, a.answer.run({"s": s, "x": last[0], "y": last[1], **found})


def _run(loop: Layer, tokens: list[Numbers]) -> list[Numbers]:
    keys = [j for j, token in enumerate(tokens) if loop.context is None or _is_marked(token[loop.context])]
    for _ in range(loop.repeat):
        h = [loop.before(token) for token in tokens]
        tokens = [
            _short(_update(loop, h, k, [j for j in keys if not loop.causal or j <= k])) for k in range(len(h))
        ]
    return tokens


def _update(loop: Layer, h: list[Numbers], k: int, keys: list[int]) -> Numbers:
    """Token k after attention over some keys."""
    token = h[k]
    if not keys:
        return token
    if loop.kind in ("linear", "relu"):
        share = Fraction(1, len(keys)) if loop.mean else 1
        added = [loop.add_key(token, h[j]) for j in keys]
        return [t + share * total(column) for t, *column in zip(token, *added, strict=True)]
    for head in loop.heads:
        K, V = [head.key(h[j]) for j in keys], [head.value(h[j]) for j in keys]
        solution = [_one(V)] if head.ridge is None else _solve(K, V, head.ridge)
        queries = [Fraction(1)] if head.ridge is None else head.query(h[k])
        read = [total(q * row[c] for q, row in zip(queries, solution, strict=True)) for c in range(len(V[0]))]
        token = [p + q for p, q in zip(token, head.out(read), strict=True)]
    return token


def _gather(a: Algorithm, loop: Layer, terms: list[Numbers]) -> Numbers:
    if a.gather in ("mean", "sum"):
        share = Fraction(1, len(terms)) if a.gather == "mean" else 1
        return [share * total(column) for column in zip(*terms, strict=True)]
    if a.gather == "softmax":
        return _one(terms)
    size = len(terms[0]) // len(a.ridge)
    rows = len(loop.heads[0].key.bias)  # terms do not say where keys end, and values begin
    found: Numbers = []
    for i, ridge in enumerate(a.ridge):
        part = [term[i * size : (i + 1) * size] for term in terms]
        solution = _solve([p[:rows] for p in part], [p[rows:] for p in part], ridge)
        found += [u for row in solution for u in row]
    return found


def _one(rows: list[Numbers]) -> Numbers:
    """The softmax average of one value is that value; of more it is no rational number."""
    if len(rows) > 1:
        raise Lost
    return rows[0]


def _solve(K: list[Numbers], V: list[Numbers], ridge: Fraction) -> list[Numbers]:
    """(K^T K + ridge I)^-1 K^T V by elimination; the matrix is positive definite, so no pivot is 0."""
    s, v = len(K[0]), len(V[0])
    rows = [
        [total(times(k[i], k[j]) for k in K) + (ridge if i == j else 0) for j in range(s)]
        + [total(times(k[i], u[c]) for k, u in zip(K, V, strict=True)) for c in range(v)]
        for i in range(s)
    ]
    for i in range(s):
        rows[i] = [times(u, 1 / rows[i][i]) for u in rows[i]]
        for j in range(s):
            if j != i and rows[j][i] != 0:
                rows[j] = [p - times(rows[j][i], q) for p, q in zip(rows[j], rows[i], strict=True)]
    return [row[s:] for row in rows]


def _is_marked(flag: Fraction | Near) -> bool:
    """Whether a token is a key: its flag is not 0."""
    if isinstance(flag, Near) and not flag.is_not_zero:
        raise Lost
    return flag != 0


def _short(numbers: Sequence[Any]) -> Numbers:
    """The numbers, enclosed where they are too long to stay exact."""
    return [_shortened(u) for u in numbers]


def _shortened(u: Any) -> Any:
    bits = max(abs(u.numerator), u.denominator).bit_length() if isinstance(u, int | Fraction) else 0
    spend("exact prompts", 1e4 * (1 + bits / 500))
    found = near(u) if bits > EXACT_BITS else u
    if isinstance(found, Near) and found.middle.bit_length() > MOST_BITS:
        raise Lost
    return found


def prompts(a: Algorithm, point: dict[tuple[str, int], int]) -> Iterator[Prompt]:
    """Prompts that may tell a network and an algorithm apart. Judges, where there are any, may be nearly undecided:
    then answers are small, and the query so large that its two answers are far apart."""
    if a.panel is None:
        yield from plain_prompts(a, point)
        return
    for scale in SCALES:
        for prompt in plain_prompts(a, point):
            examples = tuple((x, tuple(u * scale for u in y)) for x, y in prompt.examples)
            query = tuple(int(u / scale / scale) for u in prompt.query)
            x, y = examples[-1]
            yield Prompt(examples, query, ((x, y),))
            yield Prompt(examples, query, ((x, tuple(-u for u in y)), ((1,) * a.x, (2 * scale,) * a.y)))


def plain_prompts(a: Algorithm, point: dict[tuple[str, int], int]) -> Iterator[Prompt]:
    """The one that a point at which an identity fails suggests; then small ones, of one, two and three examples."""

    def at(group: str, count: int) -> tuple[int, ...]:
        return tuple(point.get((group, i), 0) for i in range(count))

    def ask(x: tuple[int, ...]) -> tuple[int, ...]:
        return () if a.query is None else x

    if point:
        first, own = (at("x", a.x), at("y", a.y)), (at("X", a.x), at("Y", a.y))
        ones = (tuple(1 for _ in own[0]), tuple(1 for _ in own[1]))
        for listed in ((first,), (first, own), (first, ones), (own, ones)):
            yield Prompt(listed if a.query is not None else (*listed, own), ask(own[0]))
            yield Prompt(listed if a.query is not None else (*listed, own), ask(ones[0]))
    for c in range(min(a.x, 64)):
        unit = tuple(int(i == c) for i in range(a.x))
        yield Prompt(((unit, (1,) * a.y),), ask(unit))
    for count in (1, 2, 3):
        for turn in range(4):
            xs = [tuple((3 * i + 7 * turn + i * c) % 5 - 2 for c in range(a.x)) for i in range(count + 1)]
            ys = [tuple((2 * i + 3 * c + turn) % 4 - 1 for c in range(a.y)) for i in range(count)]
            yield Prompt(tuple(zip(xs, ys, strict=False)), ask(xs[-1]))


def _real(number: Fraction | Near) -> str:
    """A number for people; it may be beyond the largest float."""
    value = fraction(number)
    try:
        return repr(float(value))
    except OverflowError:
        return f"{'-' if value < 0 else ''}2^{abs(value.numerator).bit_length() - value.denominator.bit_length()}"


def _format_numbers(numbers: Sequence[int | Fraction]) -> str:
    if len(numbers) > 4 and sum(u != 0 for u in numbers) <= 2:
        return " + ".join(f"{u} e{i}" if u != 1 else f"e{i}" for i, u in enumerate(numbers) if u) or "0"
    return f"({', '.join(map(str, numbers))})" if len(numbers) != 1 else str(numbers[0])
