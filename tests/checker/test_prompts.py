"""Prompts that tell networks and algorithms apart: run here once more, in plain fractions, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from onelayer_checker.looped import witnesses
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.near import BITS, Near
from onelayer_checker.looped.network import Network, build
from onelayer_checker.looped.panels import Panel
from onelayer_checker.looped.programs import read_program
from onelayer_checker.looped.witnesses import SCALES, Lost, Prompt, answers, plain_prompts, prompts, tells_apart
from tests.checker.looped import LAYER, descent, program, weights
from tests.checker.test_identities import K, O, Q, V, held, inner, selection, three_heads  # noqa: F401

X = [[Fraction(2), Fraction(-1)], [Fraction(1), Fraction(3)], [Fraction(0), Fraction(5)]]
Y = [Fraction(7), Fraction(-2), Fraction(4)]
ASKED = [Fraction(3), Fraction(2)]


def read(**changes: Any) -> Algorithm:
    return read_algorithm(descent(**changes), "here")


def network(layer: dict[str, Any] | None = None, **tensors: np.ndarray) -> Network:
    return build(weights() | tensors, {"template": "looped/1", "layers": [LAYER | (layer or {})]})


def prompt(count: int = 3, query: bool = True) -> Prompt:
    listed = tuple((tuple(x), (y,)) for x, y in zip(X[:count], Y[:count], strict=True))
    return Prompt(listed, tuple(ASKED) if query else ())  # type: ignore[arg-type]


def descended(count: int, eta: Fraction, steps: int, mean: bool) -> Fraction:
    w = [Fraction(0)] * 2
    for _ in range(steps):
        terms = [[(y - inner(w, x)) * u for u in x] for x, y in zip(X[:count], Y[:count], strict=True)]
        share = Fraction(1, count) if mean else Fraction(1)
        w = [p + eta * share * sum(column) for p, column in zip(w, zip(*terms, strict=True), strict=True)]
    return inner(w, ASKED)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("mean", [True, False])
def test_descent_is_run_as_it_is_on_paper(count: int, mean: bool) -> None:
    """The network takes other steps than the algorithm, and both are right."""
    net = network({"mean": mean, "repeat": 2}, **weights(0.5))
    a = read(gather="mean" if mean else "sum", steps=3)
    found, wanted = answers(net, a, prompt(count))
    assert found == [descended(count, Fraction(1, 2), 2, mean)]
    assert wanted == [descended(count, Fraction(1, 4), 3, mean)]


def test_a_causal_token_sees_those_before_it() -> None:
    """Every token is an example and is asked; the last one sees all, and of more steps those before saw less."""
    layer = {"causal": True, "repeat": 1, "context": None}
    a = read(
        query=None,
        steps=1,
        answer=program(["s 0", "s 1", "x 0", "x 1", "mul 0 2", "mul 1 3", "add 4 5", "y 0", "add 6 7"], 8),
    )
    found, wanted = answers(network(layer), a, prompt(query=False))
    residuals = [y - Fraction(1, 4) * Fraction(1, 3) * sum(
        Y[j] * inner(X[j], X[i]) for j in range(3)
    ) for i, y in enumerate(Y)]  # fmt: skip
    assert found == [-residuals[2]]
    assert wanted == [2 * Y[2] - residuals[2]]
    twice, _ = answers(network(layer | {"repeat": 2}), replace(a, steps=1), prompt(query=False))
    r = [Y[i] - Fraction(1, 4 * (i + 1)) * sum(Y[j] * inner(X[j], X[i]) for j in range(i + 1)) for i in range(3)]
    assert twice == [-(r[2] - Fraction(1, 12) * sum(r[j] * inner(X[j], X[2]) for j in range(3)))]


def apply(W: Any, h: Sequence[Any]) -> list[Any]:
    return [inner(h, column) for column in zip(*W, strict=True)]


def solved(K: list[list[Fraction]], V: list[list[Fraction]], ridge: Fraction) -> list[list[Fraction]]:
    """(K^T K + ridge)^-1 K^T V of two columns, by its formula."""
    (a, b), (_, d) = (
        [inner([k[i] for k in K], [k[j] for k in K]) + (ridge if i == j else 0) for j in range(2)] for i in range(2)
    )
    c = [[inner([k[i] for k in K], column) for column in zip(*V, strict=True)] for i in range(2)]
    det = a * d - b * b
    return [
        [(d * p - b * q) / det for p, q in zip(*c, strict=True)],
        [(a * q - b * p) / det for p, q in zip(*c, strict=True)],
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_is_solved_for_is_that_of_the_formula(count: int) -> None:
    ridges = [Fraction(1, 4), Fraction(1), Fraction(3)]
    a = read(gather="solve", ridge=[float(r).hex() for r in ridges], m=18, steps=1, term=held(15),
             step=program(["m 0", "m 17"], 0, 1))  # fmt: skip
    found, wanted = answers(three_heads("mesa"), a, prompt(count))
    zero = [Fraction(0)] * 2
    tokens = [a.token("example", zero, x, [y]) for x, y in zip(X[:count], Y[:count], strict=True)]
    asking = a.token("query", zero, ASKED, [])
    out = list(asking)
    for i, ridge in enumerate((Fraction(1, 2), Fraction(4), Fraction(1))):
        z = solved([apply(K[i], t) for t in tokens], [apply(V[i], t) for t in tokens], ridge)
        q = apply(Q[i], asking)
        read_off = [q[0] * p + q[1] * r for p, r in zip(*z, strict=True)]
        out = [p + r for p, r in zip(out, apply(O[i], read_off), strict=True)]
    assert found == [inner(out, [1, 2, -1, 3])]
    terms = [a.term.run({"s": zero, "x": x, "y": [y]}) for x, y in zip(X[:count], Y[:count], strict=True)]
    m = []
    for i, ridge in enumerate(ridges):
        part = [t[5 * i : 5 * i + 5] for t in terms]
        m += [u for line in solved([p[:2] for p in part], [p[2:] for p in part], ridge) for u in line]
    assert wanted == [m[0] * ASKED[0] + m[17] * ASKED[1]]


def test_a_softmax_average_of_one_value_is_it_and_of_more_no_rational() -> None:
    logit = program(["q 0"], 0, 0, 0)
    a = read(gather="softmax", m=9, steps=1, term=held(9), logit=logit, step=program(["m 1", "m 8"], 0, 1))
    found, wanted = answers(three_heads("softmax"), a, prompt(1))
    zero = [Fraction(0)] * 2
    token, asking = a.token("example", zero, X[0], [Y[0]]), a.token("query", zero, ASKED, [])
    out = list(asking)
    for i in range(3):
        out = [p + q for p, q in zip(out, apply(O[i], apply(V[i], token)), strict=True)]
    assert found == [inner(out, [1, 2, -1, 3])]
    term = a.term.run({"s": zero, "x": X[0], "y": [Y[0]]})
    assert wanted == [term[1] * ASKED[0] + term[8] * ASKED[1]]
    with pytest.raises(Lost):
        answers(three_heads("softmax"), a, prompt(2))
    assert tells_apart(three_heads("softmax"), a, [prompt(2)]) == ""


def test_without_keys_a_token_stays_what_it_is() -> None:
    """The flag of examples is 0: nobody is a key."""
    example = descent()["example"]["lines"]
    a = read(example=program([*example[:-1], f"const {(0.0).hex()}"], 2, 3, 8, 9))
    found, _ = answers(network(), a, prompt())
    assert found == [0]


def test_the_first_prompt_that_tells_is_said_with_both_answers() -> None:
    net, a = network(**weights(0.5)), read()
    nothing = Prompt((((0, 0), (0,)),), (0, 0))
    told = tells_apart(net, a, [nothing, Prompt((((1, 0), (1,)),), (1, 0)), prompt()])
    # 1 - (1 - eta)^3
    both = "the network gives 0.875, the algorithm 0.578125, apart by 0.296875"
    assert told == f"examples x = (1, 0), y = 1; query (1, 0): {both}"
    assert tells_apart(network(), a, [nothing, prompt()]) == ""
    assert tells_apart(net, a, [nothing]) == ""
    double = weights() | {"readout.0.weight": np.eye(4)[:, 2:3] @ [[-1.0, -1.0]], "readout.0.bias": np.zeros(2)}
    two = read(answer=program(["s 0", "s 1", "x 0", "x 1", "mul 0 2", "mul 1 3", "add 4 5", "add 6 6"], 6, 7))
    told = tells_apart(network(**double), two, [Prompt((((1, 0), (1,)),), (1, 0))])
    assert told.startswith("examples x = (1, 0), y = 1; query (1, 0), component 1: the network gives 0.578125, ")


def test_prompts_are_written_for_people() -> None:
    assert str(Prompt((((1,), (2, 3)), ((4,), (5, 6))), ())) == "examples x = 1, y = (2, 3); x = 4, y = (5, 6)"
    judged = Prompt((((1, 0), (1,)),), (2, 2), (((0, 1), (Fraction(1, 8),)),))
    assert str(judged) == "examples x = (1, 0), y = 1; judges x = (0, 1), y = 1/8; query (2, 2)"
    for numbers, words in (
        ((0, 0, 0, 0, 0), "0"), ((0, 0, 1, 0, 0), "e2"), ((3, 0, 0, 0, -1), "3 e0 + -1 e4"),
        ((1, 0, 0, 0), "(1, 0, 0, 0)"),
        ((1, 1, 1, 0, 0), "(1, 1, 1, 0, 0)"), ((7,), "7"), ((), "()"),
    ):  # fmt: skip
        assert witnesses._format_numbers(numbers) == words


def test_numbers_are_written_also_beyond_floats() -> None:
    assert witnesses._real(Fraction(2**3000, 3)) == "2^2999"
    assert witnesses._real(Fraction(-(2**3000))) == "-2^3000"
    assert witnesses._real(Near(1 << BITS, 1)) == "1.0"


POINT = {("x", 0): 2, ("y", 0): 3, ("X", 1): 5, ("Y", 0): 7}
SMALL = [
    (((1, 0), (1,)),),
    (((0, 1), (1,)),),
]


def test_the_point_where_an_identity_fails_is_tried_first() -> None:
    listed = list(plain_prompts(read(), POINT))
    first, own, ones = ((2, 0), (3,)), ((0, 5), (7,)), ((1, 1), (1,))
    for at, examples in enumerate(((first,), (first, own), (first, ones), (own, ones))):
        assert listed[2 * at] == Prompt(examples, (0, 5))
        assert listed[2 * at + 1] == Prompt(examples, (1, 1))
    assert [p.examples for p in listed[8:10]] == SMALL
    assert [p.query for p in listed[8:10]] == [(1, 0), (0, 1)]
    assert listed[8:] == list(plain_prompts(read(), {}))
    alone = list(plain_prompts(read(query=None), POINT))
    for at, examples in enumerate(((first,), (first, own), (first, ones), (own, ones))):
        assert alone[2 * at] == alone[2 * at + 1] == Prompt((*examples, own), ())
    assert alone[8] == Prompt(SMALL[0], ())


def test_small_prompts_are_of_one_two_and_three_examples() -> None:
    listed = list(plain_prompts(read(), {}))[2:]
    assert [len(p.examples) for p in listed] == [1] * 4 + [2] * 4 + [3] * 4
    for p, (count, turn) in zip(listed, product((1, 2, 3), range(4)), strict=True):
        xs = [tuple((3 * i + 7 * turn + i * c) % 5 - 2 for c in range(2)) for i in range(count + 1)]
        assert p == Prompt(tuple((xs[i], ((2 * i + turn) % 4 - 1,)) for i in range(count)), xs[-1])
    both = list(plain_prompts(replace(read(), y=2), {}))[-1]
    assert [y for _, y in both.examples] == [((2 * i + 3) % 4 - 1, (2 * i + 6) % 4 - 1) for i in range(3)]
    many = [
        p for p in plain_prompts(replace(read(), x=70), {}) if sum(p.examples[0][0]) == 1 and len(p.examples) == 1
    ]
    units = [p for p in many if max(p.query) == 1 and sum(map(abs, p.query)) == 1]
    assert [p.query.index(1) for p in units] == list(range(64))
    wide = replace(read(), y=3)
    assert next(iter(plain_prompts(wide, {}))).examples == (((1, 0), (1, 1, 1)),)


def test_judges_are_tried_nearly_undecided() -> None:
    groups = {"s": 2, "x": 2}
    parts = [read_program(program(["x 0"], 0), groups, "here")] * 4
    a = replace(read(), y=2, panel=Panel(*parts))
    plain, found = list(plain_prompts(a, POINT)), list(prompts(a, POINT))
    assert (1, Fraction(1, 8), Fraction(1, 1024)) == SCALES
    assert list(prompts(read(), POINT)) == list(plain_prompts(read(), POINT))
    assert len(found) == 2 * len(SCALES) * len(plain)
    for k, scale in enumerate(SCALES):
        for at in (0, 3, 11):
            own = plain[at]
            examples = tuple((x, tuple(u * scale for u in y)) for x, y in own.examples)
            query = tuple(int(u / scale / scale) for u in own.query)
            one, two = found[2 * (k * len(plain) + at) : 2 * (k * len(plain) + at) + 2]
            x, y = examples[-1]
            assert one == Prompt(examples, query, ((x, y),))
            assert two == Prompt(examples, query, ((x, tuple(-u for u in y)), ((1, 1), (2 * scale, 2 * scale))))


def test_a_system_is_solved_whatever_its_entries_are() -> None:
    one = [Fraction(1), Fraction(1)]
    assert witnesses._solve([one], [[Fraction(1)]], Fraction(1)) == [[Fraction(1, 3)], [Fraction(1, 3)]]
    apart = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(2)]]
    assert witnesses._solve(apart, [[Fraction(3)], [Fraction(5)]], Fraction(1)) == [[Fraction(3, 2)], [Fraction(2)]]


def test_one_head_that_solves() -> None:
    """Least squares of one example with ridge 1: x y / (|x|^2 + 1)."""
    r = np.eye(4)[:, 2:3]
    tensors = {"attention.W_V": r[None], "attention.ridge": np.ones(1), "readout.0.weight": r}
    net = network({"attention": "mesa", "mean": False, "repeat": 1}, **tensors)
    a = read(gather="solve", ridge=[(1.0).hex()], steps=1, term=program(["x 0", "x 1", "y 0"], 0, 1, 2),
             step=program(["m 0", "m 1"], 0, 1))  # fmt: skip
    found, wanted = answers(net, a, prompt(1))
    assert found == wanted == [Y[0] * inner(X[0], ASKED) / (inner(X[0], X[0]) + 1)]


def test_judges_choose(selection: Any) -> None:  # noqa: F811
    """The network and the algorithm choose alike; other judges, another choice."""
    net, target = selection
    a = read_algorithm(target, "here")
    listed = tuple((tuple(x), (y,)) for x, y in zip(X, Y, strict=True))
    chosen = []
    for y in (Fraction(0), Fraction(50)):
        judged = Prompt(listed, (1, 1), (((1, 1), (y,)), ((1, 2), (y,))))  # type: ignore[arg-type]
        found, wanted = answers(net, a, judged)
        assert found == wanted
        chosen.append(found)
    assert chosen[0] != chosen[1]
