"""Algorithms as data, and the identities that make a looped network one of them.

An algorithm has a state s with a start; from each example (x, y) a term; from all terms what they gather to, m; a
step from s and m to the next state; and an answer from the state and a query. It also says what tokens hold in
state s. Decides: if every identity below holds for all numbers, then for every prompt of tokens in the start
state the network's answer at every query is the algorithm's, after as many steps as there are loops.

start   (E1) at the start, tokens are polynomials of x and y, and the flag of keys is a number: 0 on queries only
affine  (E2) tokens(step(s, m)) is affine in m: f(m + n) - f(m) - f(n) + f(0) = 0
step    (E3) one block, on a token and ONE generic example as its key, gives the token in the next state
answer  (E4) what is read off a token is the answer

Why one example is enough: the block gives a(t) + mean_i b(e_i, t), and the algorithm, being affine in the mean,
c(t) + mean_i d(e_i, t). The identity a + b = c + d in (e, t, s), averaged over the examples, is the claim for
every number of them; for sums a = c and b = d are demanded. A term may be a function of the example's token, e:
then the identities are demanded for every e, and there are fewer tokens than that. Why one loop is enough: the
identity holds in every state, so loops are steps, by induction. A causal token, or an average by softmax, has a
state of its own, which its keys do not share: such a layer is not repeated. What is solved for (mesa) or averaged
by softmax is the same function of the same keys and values on both sides; there m stands for its result, and
keys, values and logits are compared instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onelayer_checker.core.files import Malformed, fields, real, shown
from onelayer_checker.looped import panels
from onelayer_checker.looped.network import Head, Network, Numbers, total
from onelayer_checker.looped.panels import Panel, read_panel
from onelayer_checker.looped.programs import ARGUMENTS, Program, read_program

GATHERS = ("mean", "sum", "solve", "softmax")
MOST = 4096
FIELDS = {"x", "y", "m", "steps", "start", "gather", "ridge", "logit", "term", "step", "answer", "example", "query"}


@dataclass(frozen=True)
class Algorithm:
    x: int
    y: int
    m: int
    steps: int
    start: tuple[Fraction, ...]
    gather: str
    ridge: tuple[Fraction, ...]  # of "solve", one for each system
    logit: Program | None  # of "softmax", one for each average
    term: Program
    step: Program
    answer: Program
    example: Program
    query: Program | None  # None: every token is an example and is asked
    panel: Panel | None = None

    @property
    def asked(self) -> str:
        return "example" if self.query is None else "query"

    def token(self, name: str, s: Sequence[Any], x: Sequence[Any], y: Sequence[Any]) -> Numbers:
        """What an example, a query or a judge holds in state s."""
        program = self.query if name == "query" and self.query is not None else self.example
        program = self.panel.judge if name == "judge" and self.panel is not None else program
        return program.run({"s": s, "x": x, "y": y})

    def terms(self, s: Sequence[Any], x: Sequence[Any], y: Sequence[Any], token: Numbers | None = None) -> Numbers:
        """What an example contributes; its token is made if it is not given and matters."""
        read = any(word == "e" for word, *_ in self.term.lines)
        e = self.token("example", s, x, y) if read and token is None else token
        return self.term.run({"s": s, "x": x, "y": y, "e": e or []})


def read_algorithm(entry: Any, where: str, logits: Mapping[str, int] = ARGUMENTS) -> Algorithm:
    """An algorithm in the form of the specification, with logits of these words; whatever else it is makes it
    malformed."""
    judging = isinstance(entry, dict) and "judge" in entry
    fields(entry, FIELDS | (panels.FIELDS if judging else set()), where)
    x, y, m, steps, gather = (entry[name] for name in ("x", "y", "m", "steps", "gather"))
    if not all(type(size) is int and 1 <= size <= MOST for size in (x, y, m)) or gather not in GATHERS:
        raise Malformed("claim", f"{where} has x={shown(x)}, y={shown(y)}, m={shown(m)}, gather={shown(gather)}")
    if type(steps) is not int or steps < 1:
        raise Malformed("claim", f"{where} takes {shown(steps)} steps")
    start, ridge = ([real(text, where) for text in _list(entry[name], where)] for name in ("start", "ridge"))
    if (gather == "solve") != bool(ridge) or (gather == "softmax") != (entry["logit"] is not None):
        raise Malformed("claim", f"{where}: only solve has ridges, and only softmax has logits")
    s, pair = {"s": len(start)}, {"x": x, "y": y}
    alone = entry["query"] is None
    panel = read_panel(entry, s, pair, where)
    found = {} if panel is None else {"v": panel.size}
    groups: dict[str, dict[str, int]] = {
        "term": s | pair | {"e": _width(entry["example"])},
        "step": s | {"m": m},
        "answer": s | (pair if alone else {"x": x}) | found,
        "example": s | pair,
        "query": s | {"x": x},
        "logit": s | pair | {"q": x},
    }
    programs = {
        name: None if entry[name] is None else read_program(entry[name], known, f"{where}.{name}", words)
        for name, known in groups.items()
        for words in (logits if name == "logit" else ARGUMENTS,)
    }
    term, step, answer, example = (programs[name] for name in ("term", "step", "answer", "example"))
    if term is None or step is None or answer is None or example is None or len(step.outputs) != len(start):
        raise Malformed("claim", f"{where}: a program is missing, or a step gives another state")
    numbers = (tuple(map(Fraction, listed)) for listed in (start, ridge))
    states, ridges = numbers
    made = x, y, m, steps, states, gather, ridges, programs["logit"], term, step, answer, example
    return Algorithm(*made, programs["query"], panel)


def _width(program: Any) -> int:
    """Numbers in a token; how it is made is looked at where it is read."""
    outputs = program.get("outputs") if isinstance(program, dict) else None
    return len(outputs) if isinstance(outputs, list) else 0


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST:
        raise Malformed("claim", f"{where} has something that is no list, or a list that is too long")
    return value


def fit(network: Network, a: Algorithm) -> None:
    """Refuse an algorithm that takes or gives other numbers than the network."""
    judges = () if a.panel is None else (a.panel.judge, a.panel.judged)
    widths = {len(program.outputs) for program in (a.example, a.query, *judges) if program is not None}
    if widths != {network.loop.width} or len(a.answer.outputs) != network.outputs:
        raise Malformed("claim", "the algorithm has other tokens, or other answers, than the network")
    heads, kind = network.loop.heads, network.loop.kind
    values = [len(head.value.bias) for head in heads]
    sizes = {"softmax": (sum(values), sum(values)), "solve": (sum(_systems(heads)), _pairs(heads))}
    wanted, terms = sizes.get(a.gather, (len(a.term.outputs), a.m))
    alike = {"softmax": "softmax", "mesa": "solve"}.get(kind) == a.gather
    if (a.m, len(a.term.outputs)) != (wanted, terms):
        raise Malformed("claim", f"from {len(a.term.outputs)} terms there is no m of {a.m} numbers")
    if a.gather in ("solve", "softmax") and not alike:
        raise Malformed("claim", f"{a.gather} is not what {kind} attention does")
    if a.logit is not None and len(a.logit.outputs) != len(heads):
        raise Malformed("claim", "there must be a logit for each head")
    if a.ridge and len(a.ridge) != len(heads):
        raise Malformed("claim", "there must be a ridge for each head")


def _systems(heads: Sequence[Head]) -> list[int]:
    return [len(head.key.bias) * len(head.value.bias) for head in heads]


def _pairs(heads: Sequence[Head]) -> int:
    return sum(len(head.key.bias) + len(head.value.bias) for head in heads)


@dataclass(frozen=True)
class Values:
    """Numbers, or letters, for the variables: a state; a key (x, y) and another one (u, z); the token that asks
    (X, Y); what terms gather to, twice; what judges found, twice; and the token of a key."""

    s: Numbers
    x: Numbers
    y: Numbers
    u: Numbers
    z: Numbers
    X: Numbers
    Y: Numbers
    m: Numbers
    n: Numbers
    v: Numbers
    t: Numbers
    e: Numbers

    @staticmethod
    def sizes(a: Algorithm) -> dict[str, int]:
        sizes = (
            {"s": len(a.start), "e": len(a.example.outputs)} | dict.fromkeys("xuX", a.x) | dict.fromkeys("yzY", a.y)
        )
        return sizes | dict.fromkeys("mn", a.m) | dict.fromkeys("vt", 0 if a.panel is None else a.panel.size)


Identity = tuple[str, Numbers]  # which rule, and differences that must be 0


def structure(network: Network, a: Algorithm) -> str:
    """What is wrong with the way tokens see each other, before any identity is looked at; empty if nothing is."""
    loop = network.loop
    if loop.repeat != a.steps:
        return f"the loop is run {loop.repeat} times, the algorithm takes {a.steps} steps"
    if (loop.causal or loop.kind == "softmax") and loop.repeat > 1:
        return "in a causal or softmax loop keys are in other states than the tokens that see them"
    if loop.context is None and a.query is not None:
        return "queries are keys too"
    alike = {"softmax": "softmax", "mesa": "solve"}.get(loop.kind, "mean" if loop.mean else "sum")
    other = f"the network gathers by {alike}, the algorithm by {a.gather}"
    return panels.unlike(network, a) if alike == a.gather else other


def identities(network: Network, a: Algorithm, v: Values) -> Iterator[Identity]:
    """Everything that must be 0, for these numbers or letters."""
    loop = network.loop
    state = v.s if loop.repeat > 1 else list(a.start)  # one loop begins in the start state and in no other
    last = loop.repeat == 1 and a.panel is None  # nobody sees examples after it
    names = ["example"] if a.query is None else ["query"] if last else ["example", "query"]
    names += [] if a.panel is None else ["judge"]
    token = a.token("example", state, v.x, v.y)
    if any(word == "e" for word, *_ in a.term.lines):
        token = [e if free else u for u, e, free in zip(token, v.e, a.example.varies, strict=True)]
    key, term = loop.before(token), a.terms(state, v.x, v.y, token)
    if a.gather == "solve":
        yield "step", _apart(term, [u for head in loop.heads for u in (*head.key(key), *head.value(key))])
        yield (
            "step",
            [head.ridge - r for head, r in zip(loop.heads, a.ridge, strict=True) if head.ridge is not None],
        )
    elif a.gather == "softmax":
        yield "step", _apart(term, [u for head in loop.heads for u in head.value(key)])
    if a.gather not in ("solve", "softmax"):
        both = [p + q for p, q in zip(v.m, v.n, strict=True)]
        listed = {"m": v.m, "n": v.n, "both": both, "nothing": [0] * a.m, "one": term}
        moved = {which: a.step.run({"s": state, "m": m}) for which, m in listed.items()}
    for name in names:
        asking = loop.before(a.token(name, state, v.X, v.Y))
        if a.gather in ("mean", "sum"):
            after = {which: a.token(name, s, v.X, v.Y) for which, s in moved.items()}
            nothing, one = after["nothing"], after["one"]
            parts = zip(after["both"], after["m"], after["n"], nothing, strict=True)
            yield "affine", [p - q - r + t for p, q, r, t in parts]
            added = loop.add_key(asking, key)
            if a.gather == "sum":
                yield "step", _apart(asking, nothing)
                yield "step", [p - q + r for p, q, r in zip(added, one, nothing, strict=True)]
            else:
                yield "step", [p + q - r for p, q, r in zip(asking, added, one, strict=True)]
        else:
            if a.gather == "softmax":
                yield "step", _logits(network, a, v, state, asking, key)
            wanted = a.token(name, a.step.run({"s": state, "m": v.m}), v.X, v.Y)
            yield "step", _apart(_gather(loop.heads, a.gather, asking, v.m), wanted)
    if a.panel is not None:
        yield from panels.identities(network, a, v)
        return
    asked = a.token(a.asked, v.s, v.X, v.Y)
    yield "answer", _apart(network.answer(asked), a.answer.run({"s": v.s, "x": v.X, "y": v.Y}))


def _apart(found: Sequence[Any], wanted: Sequence[Any]) -> Numbers:
    return [p - q for p, q in zip(found, wanted, strict=True)]


def _gather(heads: Sequence[Head], gather: str, asking: Numbers, m: Sequence[Any]) -> Numbers:
    """A token after attention, where m is what each head averaged, or solved for."""
    at, found = 0, list(asking)
    for head in heads:
        size, queries = len(head.value.bias), head.query(asking)
        rows = len(queries) if gather == "solve" else 1
        block = m[at : at + rows * size]
        read = (
            [total(q * block[i * size + c] for i, q in enumerate(queries)) for c in range(size)]
            if gather == "solve"
            else list(block)
        )
        found = [p + q for p, q in zip(found, head.out(read), strict=True)]
        at += rows * size
    return found


def _logits(network: Network, a: Algorithm, v: Values, state: Numbers, asking: Numbers, key: Numbers) -> Numbers:
    """Logits may differ by what is the same for all keys: softmax does not see it."""
    assert a.logit is not None
    other = network.loop.before(a.token("example", state, v.u, v.z))
    first, second = (a.logit.run({"s": state, "x": x, "y": y, "q": v.X}) for x, y in ((v.x, v.y), (v.u, v.z)))
    scores = [(head.score(asking, key), head.score(asking, other)) for head in network.loop.heads]
    return [(p - f) - (q - g) for (p, q), f, g in zip(scores, first, second, strict=True)]


def starts(network: Network, a: Algorithm, v: Values) -> Iterator[tuple[str, Numbers, Any]]:
    """Each kind of token at the start, and its flag."""
    judges = () if a.panel is None else ("judge",)
    for name in ("example",) if a.query is None else ("example", "query", *judges):
        token = a.token(name, list(a.start), v.X, v.Y)
        yield name, token, None if network.loop.context is None else token[network.loop.context]
