"""What must be 0 for a network to be an algorithm: every difference, beside the same computed here, on numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

import onelayer
from onelayer.export import bundle
from onelayer_checker.core.files import CERTIFICATE, MODEL, Malformed
from onelayer_checker.looped.algorithms import (
    MOST,
    Algorithm,
    Values,
    fit,
    identities,
    read_algorithm,
    starts,
    structure,
)
from onelayer_checker.looped.network import Network, build
from tests.checker.looped import LAYER, descent, program, weights

Rules = list[tuple[str, list[Any]]]


def read(**changes: Any) -> Algorithm:
    return read_algorithm(descent(**changes), "here")


def network(layer: dict[str, Any] | None = None, **tensors: np.ndarray) -> Network:
    return build(weights() | tensors, {"template": "looped/1", "layers": [LAYER | (layer or {})]})


def numbers(a: Algorithm) -> Values:
    """Another number for each variable, none of them 0."""
    primes = (Fraction(p) for p in count(2) if all(p % q for q in range(2, p)))
    return Values(**{group: [next(primes) for _ in range(n)] for group, n in Values.sizes(a).items()})


def inner(p: Sequence[Any], q: Sequence[Any]) -> Any:
    return sum(a * b for a, b in zip(p, q, strict=True))


def minus(p: Sequence[Any], q: Sequence[Any]) -> list[Any]:
    return [a - b for a, b in zip(p, q, strict=True)]


def descended(
    a: Algorithm, v: Values, eta: Fraction, summed: bool, state: Sequence[Any], names: Sequence[str]
) -> Rules:
    """The rules of gradient descent with steps of 1/4, of a network that steps by eta."""
    token = {
        "example": lambda s: [*v.X, v.Y[0] - inner(s, v.X), 1],
        "query": lambda s: [*v.X, -inner(s, v.X), 0],
    }
    residual = v.y[0] - inner(state, v.x)
    one = [p + residual * x / 4 for p, x in zip(state, v.x, strict=True)]
    added = [0, 0, -eta * residual * inner(v.X, v.x), 0]
    rules: Rules = []
    for name in names:
        now, after = token[name](state), token[name](one)
        rules.append(("affine", [0, 0, 0, 0]))
        if summed:
            rules += [("step", [0, 0, 0, 0]), ("step", minus(added, minus(after, now)))]
        else:
            rules.append(("step", minus([p + q for p, q in zip(now, added, strict=True)], after)))
    asked = token["example" if a.query is None else "query"](v.s)
    return [*rules, ("answer", [-asked[2] - inner(v.s, v.X)])]


@pytest.mark.parametrize("eta", [0.25, 0.5])
@pytest.mark.parametrize("gather", ["mean", "sum"])
@pytest.mark.parametrize("repeat", [1, 2, 3])
def test_descent_on_numbers(gather: str, repeat: int, eta: float) -> None:
    """One loop is followed from the start, for what is asked; more from any state, for examples too."""
    start = [(0.5).hex(), (-2.0).hex()]
    net = network({"mean": gather == "mean", "repeat": repeat}, **weights(eta))
    for alone in (False, True):
        a = read(gather=gather, start=start, steps=repeat, **({"query": None} if alone else {}))
        v = numbers(a)
        state = v.s if repeat > 1 else [Fraction(1, 2), Fraction(-2)]
        names = ["example"] if alone else ["query"] if repeat == 1 else ["example", "query"]
        if alone:  # what an example holds is no answer: only the rules before are compared
            assert (
                list(identities(net, a, v))[:-1]
                == descended(a, v, Fraction(eta), gather == "sum", state, names)[:-1]
            )
        else:
            assert list(identities(net, a, v)) == descended(a, v, Fraction(eta), gather == "sum", state, names)


def test_a_token_that_waits_is_followed_in_a_sum() -> None:
    """A feed-forward part that changes a token where no key adds anything."""
    more = {"feedforward.0.weight": np.diag([1.0, 1.0, 3.0, 1.0]), "feedforward.0.bias": np.zeros(4)}
    a = read(gather="sum")
    v = numbers(a)
    _, still, moved, *_ = identities(network({"mean": False}, **more), a, v)
    r = v.Y[0] - inner(v.s, v.X)
    assert still == ("step", [0, 0, 2 * r, 0])
    own = v.y[0] - inner(v.s, v.x)
    assert moved == ("step", [0, 0, (1 - 3) * own * inner(v.X, v.x) / 4, 0])


def test_what_is_not_affine_is_noticed_on_numbers() -> None:
    lines = [*descent()["step"]["lines"], "mul 2 3", "add 7 9"]
    a = read(step=program(lines, 10, 8))
    v = numbers(a)
    (rule, parts), *_ = identities(network(), a, v)
    assert rule == "affine"
    mixed = v.m[0] * v.n[1] + v.n[0] * v.m[1]
    assert parts == [0, 0, -v.X[0] * mixed, 0]


def test_terms_of_tokens_are_demanded_for_every_token() -> None:
    """Of a token that a term reads, what varies is a letter of its own, and what is a number stays it."""
    a = read(term=program(["e 2", "e 0", "e 1", "mul 0 1", "mul 0 2", "e 3", "mul 3 5", "mul 4 5"], 6, 7))
    v = numbers(a)
    rules = list(identities(network(**weights(0.5)), a, v))
    e = [*v.e[:3], 1]
    m = [e[2] * e[0], e[2] * e[1]]
    after = [p + q / 4 for p, q in zip(v.s, m, strict=True)]
    added = -e[2] * inner(v.X, e[:2]) / 2
    wanted = [0, 0, (v.Y[0] - inner(v.s, v.X)) + added - (v.Y[0] - inner(after, v.X)), 0]
    assert rules[1] == ("step", wanted)
    plain = read()
    held = plain.token("example", v.s, v.x, v.y)
    assert a.terms(v.s, v.x, v.y) == [held[2] * held[0], held[2] * held[1]] == plain.terms(v.s, v.x, v.y)
    assert plain.terms(v.s, v.x, v.y, v.e) == plain.terms(v.s, v.x, v.y)
    assert read(term=program(["e 2", "e 0"], 0, 1)).terms(v.s, v.x, v.y) == [held[2], held[0]]


Q = [[[1, 2], [0, 1], [3, 0], [0, 0]], [[0, 1], [2, 0], [0, 1], [0, 0]], [[1, 0], [1, 1], [0, 2], [1, 0]]]
K = [[[2, 0], [1, 1], [0, 3], [0, 0]], [[1, 1], [0, 2], [1, 0], [0, 0]], [[0, 1], [3, 0], [1, 1], [0, 1]]]
V = [[[1, 0, 2], [0, 1, 0], [1, 1, 0], [0, 0, 1]], [[0, 2, 1], [1, 0, 0], [0, 1, 3], [0, 0, 0]]]
V += [[[2, 0, 0], [0, 3, 1], [1, 0, 0], [0, 1, 1]]]
O = [[[1, 0, 0, 0], [0, 1, 2, 0], [0, 0, 1, 1]], [[0, 1, 0, 0], [1, 0, 0, 2], [0, 0, 3, 0]]]
O += [[[3, 0, 1, 0], [0, 2, 0, 0], [1, 0, 0, 1]]]
READ = np.array([[1.0], [2.0], [-1.0], [3.0]])


def three_heads(kind: str, **layer: Any) -> Network:
    tensors = {f"attention.W_{name}": np.array(W, float) for name, W in zip("QKVO", (Q, K, V, O), strict=True)}
    tensors |= {"readout.0.weight": READ, "readout.0.bias": np.zeros(1)}
    tensors |= {"attention.ridge": np.array([0.5, 4.0, 1.0])} if kind == "mesa" else {}
    entry = LAYER | {"attention": kind, "mean": False, "repeat": 1} | layer
    return build(tensors, {"template": "looped/1", "layers": [entry]})


def held(outputs: int) -> dict[str, Any]:
    """A program with so many different outputs, of s, x and y."""
    return program(["s 0", "s 1", "x 0", "x 1", "y 0", "add 2 4", "mul 3 4", "sub 0 2"],
                   *((k * 3 + 2) % 8 for k in range(outputs)))  # fmt: skip


def apply(W: Any, h: Sequence[Any]) -> list[Any]:
    return [inner(h, column) for column in zip(*W, strict=True)]


@pytest.mark.parametrize("repeat", [1, 3])
def test_what_is_solved_for_is_read_head_by_head(repeat: int) -> None:
    a = read(gather="solve", ridge=[(0.25).hex(), (1.0).hex(), (3.0).hex()], m=18, steps=repeat, term=held(15),
             step=program(["m 0", "m 7", "s 0", "add 0 2"], 3, 1))  # fmt: skip
    net = three_heads("mesa", repeat=repeat)
    fit(net, a)
    v = numbers(a)
    state = v.s if repeat > 1 else [Fraction(0)] * 2
    key = a.token("example", state, v.x, v.y)
    listed = [u for i in range(3) for u in (*apply(K[i], key), *apply(V[i], key))]
    rules: Rules = [("step", minus(a.term.run({"s": state, "x": v.x, "y": v.y}), listed))]
    rules.append(("step", [Fraction(1, 4), Fraction(3), Fraction(-2)]))
    for name in ["query"] if repeat == 1 else ["example", "query"]:
        asking = a.token(name, state, v.X, v.Y)
        found = list(asking)
        for i in range(3):
            block = [v.m[6 * i : 6 * i + 3], v.m[6 * i + 3 : 6 * i + 6]]
            q = apply(Q[i], asking)
            out = apply(O[i], [q[0] * p + q[1] * r for p, r in zip(*block, strict=True)])
            found = [p + r for p, r in zip(found, out, strict=True)]
        wanted = a.token(name, [v.m[0] + state[0], v.m[7]], v.X, v.Y)
        rules.append(("step", minus(found, wanted)))
    asked = a.token("query", v.s, v.X, [])
    rules.append(("answer", [inner(asked, READ[:, 0].tolist()) - inner(v.s, v.X)]))
    assert list(identities(net, a, v)) == rules


def test_averages_are_read_head_by_head_and_logits_up_to_what_keys_share() -> None:
    logit = program(["q 0", "x 0", "mul 0 1", "y 0", "q 1"], 2, 3, 4)
    a = read(gather="softmax", m=9, steps=1, term=held(9), logit=logit, step=program(["m 1", "m 5"], 0, 1))
    net = three_heads("softmax")
    fit(net, a)
    v, start = numbers(a), [Fraction(0)] * 2
    key, other = a.token("example", start, v.x, v.y), a.token("example", start, v.u, v.z)
    asking = a.token("query", start, v.X, [])
    values = [u for i in range(3) for u in apply(V[i], key)]
    scores = [
        inner(apply(Q[i], asking), apply(K[i], key)) - inner(apply(Q[i], asking), apply(K[i], other))
        for i in range(3)
    ]
    logits = [v.X[0] * v.x[0] - v.X[0] * v.u[0], v.y[0] - v.z[0], 0]
    found = list(asking)
    for i in range(3):
        found = [p + r for p, r in zip(found, apply(O[i], v.m[3 * i : 3 * i + 3]), strict=True)]
    asked = a.token("query", v.s, v.X, [])
    assert list(identities(net, a, v)) == [
        ("step", minus(a.term.run({"s": start, "x": v.x, "y": v.y}), values)),
        ("step", minus(scores, logits)),
        ("step", minus(found, a.token("query", [v.m[1], v.m[5]], v.X, []))),
        ("answer", [inner(asked, READ[:, 0].tolist()) - inner(v.s, v.X)]),
    ]


@pytest.fixture(scope="module")
def selection() -> tuple[Network, dict[str, Any]]:
    model = onelayer.learner("selection", d=2, steps=1, penalties=(0.1, 1.0), delta=2.0**-4)
    files = bundle.files(model)
    certificate = json.loads(files[CERTIFICATE])
    target = next(c for c in certificate["claims"] if c["type"] == "selects")["target"]
    return build(load(files[MODEL]), certificate["graph"]), target


def test_judges_are_followed_through_the_loop_as_queries_are(selection: Any) -> None:
    """After one loop examples are followed too: a layer comes behind it in which they might be seen."""
    net, target = selection
    a = read_algorithm(target, "here")
    fit(net, a)
    v = numbers(a)
    rules = [rule for rule, parts in identities(net, a, v) if not any(parts)]
    assert rules == ["affine", "step"] * 3 + ["affine", "panel", "answer"]
    held = read_algorithm(
        target | {"judge": target["judge"] | {"outputs": target["judge"]["outputs"][::-1]}}, "here"
    )
    rules = [bool(any(parts)) for _, parts in identities(net, held, v)]
    assert rules[:4] == [False] * 4
    assert any(rules[4:6])
    assert held.token("judge", v.s, v.X, v.Y) == a.token("judge", v.s, v.X, v.Y)[::-1]
    assert held.token("example", v.s, v.X, v.Y) == a.token("example", v.s, v.X, v.Y)
    assert Values.sizes(a)["v"] == Values.sizes(a)["t"] == 2
    listed = [(name, token) for name, token, _ in starts(net, a, v)]
    assert [name for name, _ in listed] == ["example", "query", "judge"]
    assert listed[2][1] == a.token("judge", list(a.start), v.X, v.Y)
    for name in ("judge", "judged"):
        shorter = target | {name: target[name] | {"outputs": target[name]["outputs"][1:]}}
        with pytest.raises(Malformed):
            fit(net, read_algorithm(shorter, "here"))
    with pytest.raises(Malformed):
        read_algorithm({name: part for name, part in target.items() if name != "weigh"}, "here")
    with pytest.raises(Malformed):
        read_algorithm(descent(answer=program(["v 0"], 0)), "here")


def test_tokens_at_the_start_and_their_flags() -> None:
    net, a = network(), read(start=[(0.5).hex(), (-2.0).hex()])
    v = numbers(a)
    s = [Fraction(1, 2), Fraction(-2)]
    assert list(starts(net, a, v)) == [
        ("example", [*v.X, v.Y[0] - inner(s, v.X), 1], 1),
        ("query", [*v.X, -inner(s, v.X), 0], 0),
    ]
    alone = read(query=None)
    assert [(name, flag) for name, _, flag in starts(network({"context": None}), alone, v)] == [("example", None)]


def test_lists_have_a_limit_and_tokens_a_width() -> None:
    numbers_ = [(0.0).hex()] * MOST
    step = program(["s 0"], *([0] * MOST))
    assert len(read(start=numbers_, step=step).start) == MOST
    with pytest.raises(Malformed, match="too long"):
        read(start=[*numbers_, (0.0).hex()], step=program(["s 0"], *([0] * (MOST + 1))))
    with pytest.raises(Malformed):  # an example that gives nothing is no token to read
        read(term=program(["e 0"], 0, 0), example={"lines": ["x 0"], "outputs": "0"})
    for name in ("x", "y", "m"):
        with pytest.raises(Malformed, match=f"{name}=0"):
            read(**{name: 0}, term=program(["s 0"], 0, 0), step=program(["s 0"], 0, 0), answer=program(["s 0"], 0),
                 example=program(["s 0"], 0), query=program(["s 0"], 0))  # fmt: skip


def test_two_loops_are_more_than_one() -> None:
    twice = replace(read(), steps=2)
    assert "causal or softmax loop" in structure(network({"causal": True, "repeat": 2}), twice)
    softmax = network({"attention": "softmax", "mean": False, "repeat": 2})
    assert "causal or softmax loop" in structure(softmax, replace(twice, gather="softmax"))


def test_means_and_sums_are_told_apart_where_identities_are_compared() -> None:
    """`fit` refuses other numbers of terms; means and sums are for `structure`: a prompt may tell them apart."""
    fit(network({"mean": False}), read())
    fit(network(), read(gather="sum"))
