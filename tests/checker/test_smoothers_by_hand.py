"""Softmax heads that are nearly smoothers, part by part: what is a smoother, where neurons begin, and how near."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.claims import KINDS, Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.looped import smoothers
from onelayer_checker.looped.algorithms import Algorithm
from onelayer_checker.looped.definite import gamma
from onelayer_checker.looped.judge import OWN, LoopJudge
from onelayer_checker.looped.network import Network, affine, build
from onelayer_checker.looped.panels import Panel
from onelayer_checker.looped.patches import Patch, bilinear, coordinates
from onelayer_checker.looped.smoothers import SLACK, apart, attends, features, read_smoother, signs, unlike, weights
from tests.checker.looped import program

ONE, NOTHING = f"const {(1.0).hex()}", f"const {(0.0).hex()}"
LAYER = {"attention": "softmax", "causal": False, "context": 3, "mean": False, "window": None, "repeat": 1}
#: u v - v / 8
TILTED = program(["q 0", "x 0", "mul 0 1", f"const {(0.125).hex()}", "mul 1 3", "sub 2 4"], 5)
EXAMPLE, QUERY = ["x 0", "y 0", "y 1", ONE, "s 0", "s 1"], ["x 0", NOTHING, "s 0", "s 1"]
UNIT = np.eye(6)


def smoother(**changes: Any) -> dict[str, Any]:
    """Averages of two numbers, on tokens [x, y0, y1, flag, s0, s1], with the kernel u v."""
    return {
        "x": 1, "y": 2, "m": 2, "steps": 1, "start": [(0.0).hex()] * 2, "gather": "softmax", "ridge": [],
        "logit": program(["q 0", "x 0", "mul 0 1"], 2), "term": program(["y 0", "y 1"], 0, 1),
        "step": program(["m 0", "m 1"], 0, 1), "answer": program(["s 0", "s 1"], 0, 1),
        "example": program(EXAMPLE, *range(6)), "query": program(QUERY, 0, 1, 1, 1, 2, 3),
    } | changes  # fmt: skip


def read(**changes: Any) -> Algorithm:
    return read_smoother(smoother(**changes), "here")


def tensors() -> dict[str, Any]:
    """Queries are (u, u / 2), keys (v / 2, v)."""
    found = {"attention.W_Q": UNIT[None, :, [0, 0]] * [1, 0.5], "attention.W_K": UNIT[None, :, [0, 0]] * [0.5, 1]}
    found |= {"attention.W_V": UNIT[None, :, 1:3], "attention.W_O": UNIT[None, 4:]}
    return found | {"readout.0.weight": UNIT[:, 4:], "readout.0.bias": np.zeros(2)}


def network(**changes: Any) -> Network:
    held = {k: a.copy() for k, a in tensors().items()}
    for name, (index, value) in changes.items():
        held[name][index] = value
    return build(held, {"template": "looped/1", "layers": [LAYER]})


def hidden(weight: Any, bias: Any) -> Network:
    """With a hidden layer of these neurons, of which nothing is read, beside all channels and their opposites."""
    first = np.concatenate([UNIT, -UNIT, np.asarray(weight, np.float64)], axis=1)
    second = np.concatenate([UNIT, -UNIT, np.zeros((first.shape[1] - 12, 6))])
    more = {"feedforward.0.weight": first, "feedforward.0.bias": np.concatenate([np.zeros(12), bias])}
    more |= {"feedforward.1.weight": second, "feedforward.1.bias": np.zeros(6)}
    return build(tensors() | more, {"template": "looped/1", "layers": [LAYER]})


ONLY = "only one softmax head over one hidden layer is compared with a smoother of one number"


def test_only_some_networks_and_algorithms_are_compared() -> None:
    net, a = network(), read()
    assert unlike(net, a) == ""
    assert unlike(hidden(np.zeros((6, 1)), [1.0]), a) == ""
    loop, full = net.loop, affine(UNIT, np.zeros(6))
    panel = Panel(a.example, a.term, a.example, a.term)
    itself = replace(loop, kind="linear", window=1, context=None)
    for other in (
        replace(net, after=(itself,)),
        replace(net, loop=replace(loop, heads=loop.heads * 2)),
        replace(net, loop=replace(loop, heads=())),
        replace(net, loop=replace(loop, feedforward=(full,))),
        replace(net, loop=replace(loop, feedforward=(full,) * 3)),
    ):
        assert unlike(other, a) == ONLY
    for changed in ({"query": None}, {"panel": panel}, {"gather": "mean"}, {"x": 2}, {"m": 3}):
        assert unlike(net, replace(a, **changed)) == ONLY


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 2}, "the loop is run 1 times, the algorithm takes 2 steps"),
        ({"query": program([*QUERY, ONE], 0, 1, 1, 4, 2, 3)}, "start: the flag of the query must be"),
        ({"term": program(["y 0", "y 1"], 1, 0)}, "the algorithm is not an average of y"),
        ({"term": program(["y 0", "y 1"], 0, 0)}, "the algorithm is not an average of y"),
        ({"answer": program(["s 0", "s 1"], 0, 0)}, "the algorithm is not an average of y"),
        ({"step": program(["m 0", "m 1", "s 0"], 0, 0)}, "the algorithm is not an average of y"),
        ({"logit": program(["q 0", "s 1", "mul 0 1"], 2)}, "the kernel reads more"),
        ({"logit": program(["q 0", "y 1", "mul 0 1"], 2)}, "the kernel reads more"),
        ({"example": program([*EXAMPLE, "mul 0 0"], 6, 1, 2, 3, 4, 5)}, "the token of the example is not affine"),
        (
            {"example": program([*EXAMPLE, "mul 0 0", "sub 3 1", "mul 6 7"], 0, 1, 2, 3, 8, 5)},  # if y is 0
            "the token of the example is not affine",
        ),
        ({"query": program([*QUERY, "mul 0 0"], 4, 1, 1, 1, 2, 3)}, "the token of the query is not affine"),
        ({"query": program([*QUERY, "mul 0 0"], 0, 1, 4, 1, 2, 3)}, "the token of the query is not affine"),
    ],
    ids=str,
)
def test_other_algorithms_are_no_smoothers(changes: dict[str, Any], words: str) -> None:
    assert unlike(network(), read(**changes)).startswith(words)


@pytest.mark.parametrize(
    ("name", "index", "value", "words"),
    [
        ("attention.W_V", (0, 1, 0), 2.0, "the head's values are not y"),
        ("attention.W_V", (0, 0, 1), 1.0, "the head's values are not y"),
        ("attention.W_K", (0, 1, 0), 1.0, "keys depend on y"),
        ("attention.W_K", (0, 2, 0), 2.0**-60, "keys depend on y"),
        ("attention.W_O", (0, 0, 4), 2.0, "what is read off a query is not"),
        ("attention.W_O", (0, 1, 4), 1.0, "what is read off a query is not"),
        ("readout.0.weight", (0, 1), 1.0, "what is read off a query is not"),
        ("readout.0.bias", (1,), 1.0, "what is read off a query is not"),
    ],
)
def test_other_heads_average_something_else(name: str, index: Any, value: float, words: str) -> None:
    assert unlike(network(**{name: (index, value)}), read()).startswith(words)


def test_affine_tokens_may_begin_anywhere() -> None:
    """2 - 3 x instead of x, on both."""
    three, two = f"const {(3.0).hex()}", f"const {(2.0).hex()}"
    example = program([*EXAMPLE, three, two, "mul 0 6", "sub 7 8"], 9, 1, 2, 3, 4, 5)
    query = program([*QUERY, three, two, "mul 0 4", "sub 5 6"], 7, 1, 1, 1, 2, 3)
    a, places = read(example=example, query=query), [Fraction(0), Fraction(1, 4), Fraction(1)]
    assert unlike(network(), a) == ""
    head = network().loop.heads[0]
    found = features(network(), a, "query", places, head.query)
    assert found.tolist() == [[2.0, 1.0], [1.25, 0.625], [-1.0, -0.5]]
    found = features(network(), a, "example", places, head.key)
    assert found.tolist() == [[1.0, 2.0], [0.625, 1.25], [-0.5, -1.0]]


def test_features_are_rounded_once() -> None:
    third = [Fraction(1, 3), Fraction(1)]

    def keys(a: Algorithm, **changes: Any) -> Any:
        net = network(**changes)
        return features(net, a, "example", third, net.loop.heads[0].key).tolist()

    assert keys(read(), **{"attention.W_K": ((0, 3, 0), 2.0**-60)}) == [[1 / 6, 1 / 3], [0.5, 1.0]]
    assert keys(read(), **{"attention.W_K": ((0, 0, 0), 3.0)}) == [[1.0, 1 / 3], [3.0, 1.0]]
    begun = read(start=[(2.0).hex()] * 2, example=program(EXAMPLE, 4, 1, 2, 3, 4, 5))
    assert keys(begun) == [[1.0, 2.0], [1.0, 2.0]]
    assert keys(read(), **{"attention.W_K": ((0, 1, 0), 1.0)}) == [[1 / 6, 1 / 3], [0.5, 1.0]]  # y = 0


def test_neurons_begin_where_their_sign_changes() -> None:
    """x - 1/4, 1 - 2 x, 3/4 - x - y, a constant, one outside, one at an end, and 2 x - flag - 1/4."""
    weight = np.zeros((6, 7))
    weight[0] = [1.0, -2, -1, 0, 1, 1, 2]
    weight[1, 2], weight[3, 6] = -1.0, -1.0
    net = hidden(weight, [-0.25, 1, 0.75, 1, -3, -1, -0.25])
    quarters = [Fraction(k, 4) for k in range(4)]
    ends = Fraction(-1, 2), Fraction(1)
    assert signs(net, read(), "query", *ends) == [ends[0], Fraction(0), Fraction(1, 8), *quarters[1:], ends[1]]
    assert signs(net, read(), "example", *ends) == [
        ends[0], Fraction(0), *quarters[1:3], Fraction(5, 8), quarters[3], ends[1],
    ]  # fmt: skip
    assert signs(net, read(), "query", Fraction(1, 4), Fraction(1, 2)) == [Fraction(1, 4), Fraction(1, 2)]
    assert signs(network(), read(), "query", *ends) == list(ends)
    moved = read(start=[(0.5).hex()] * 2)
    weight[4, 0] = -1.0
    assert Fraction(3, 4) in signs(hidden(weight[:, :1], [-0.25]), moved, "query", *ends)


def test_weights_on_the_way_are_counted() -> None:
    """Each output counts its weights that are not 0, and its bias."""
    assert weights(network()) == 2 * 2 + 2 * 2
    net = hidden(np.ones((6, 2)), [0.0, 0.0])
    assert weights(net) == 12 * 2 + 2 * 7 + 6 * 3 + 2 * 2 + 2 * 2


def wanted(asked: Any, held: Any, rho: Any, queries: list[Fraction], keys: list[Fraction]) -> float:
    """The eps of the proof, from queries and keys at the knots."""
    u, v = coordinates(queries, keys)
    radius = (np.abs(asked) @ np.abs(held).T) * gamma(asked.shape[1] + 8) + 2.0**-1000
    off = bilinear(asked @ held.T, radius) - rho(u, v)
    low, high = (off + Patch(0.0, -off.b.mean(axis=1, keepdims=True), 0.0, 0.0, 0.0)).range()
    return max(float(h.max() - l.min()) for h, l in zip(high, low, strict=True)) / 2 * SLACK + 2.0**-1000


def test_how_far_logits_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[Any] = []
    monkeypatch.setattr(smoothers, "spend", lambda *of, **more: spent.append((*of, more)))
    net, a = network(), read(logit=TILTED)
    queries, keys = [Fraction(k, 2) for k in range(-1, 3)], [Fraction(k, 3) for k in range(5)]
    found = apart(net, a, queries, keys)
    asked = np.array([[float(u), float(u / 2)] for u in queries])
    held = np.array([[float(v / 2), float(v)] for v in keys])
    assert found == wanted(asked, held, lambda u, v: u * v - v * Fraction(1, 8), queries, keys)
    assert Fraction(4, 3) / 16 < found < Fraction(4, 3) / 16 * (1 + Fraction(1, 10**9))
    assert spent == [
        ("features at knots", 3e3 * 9 * 8, {"kept": 64.0 * 2 * 5}), ("cells", 1e3 * 20, {"kept": 2e3 * 20}),
    ]  # fmt: skip
    steep = read(logit=program(["q 0", "x 0", "mul 0 1", "mul 0 0", "add 2 3", "mul 1 1", "sub 4 5"], 6))
    curved = apart(net, steep, queries, keys)  # u v + u^2 - v^2: what all keys share is not seen
    assert curved == wanted(asked, held, lambda u, v: u * v + u * u - v * v, queries, keys)
    assert Fraction(16, 9) / 2 < curved
    for at, other in ((queries, keys), (queries[:2], keys[1:]), ([-q for q in queries[:1:-1]], keys[1:])):
        for turned in (other, [-place for place in other[::-1]]):
            some = (
                np.array([[float(u), float(u / 2)] for u in at]),
                np.array([[float(v / 2), float(v)] for v in turned]),
            )
            exact = apart(net, read(), at, turned)
            assert exact == wanted(*some, lambda u, v: u * v, at, turned) > 0
    zero = [Fraction(0), Fraction(0)]
    nothing = apart(net, read(logit=program(["q 0", "x 0", "add 0 1"], 2)), zero, zero)
    assert nothing == wanted(0 * asked[:2], 0 * held[:2], lambda u, v: u + v, zero, zero) > 2.0**-1000


@pytest.mark.parametrize("name", ["attention.W_Q", "attention.W_K"])
def test_logits_of_moderate_size_are_compared(name: str) -> None:
    places = [Fraction(0), Fraction(1)]
    assert np.isfinite(apart(network(**{name: ((0, 0, 0), 1e20)}), read(), places, places))
    assert apart(network(**{name: ((0, 0, 0), 1.01e20)}), read(), places, places) == np.inf
    assert apart(network(**{name: ((0, 0, 0), -1.01e20)}), read(), places, places) == np.inf


@pytest.mark.parametrize("sign", [1000.0, -1000.0])
def test_a_kernel_that_overflows_is_not_compared(sign: float) -> None:
    lines = ["q 0", "x 0", f"const {abs(sign).hex()}", "mul 1 2", "exp 3", "neg 4"]
    places = [Fraction(0), Fraction(1)]
    assert apart(network(), read(logit=program(lines, 4 if sign > 0 else 5)), places, places) == np.inf


def judged(net: Network | None = None, a: Algorithm | None = None, **numbers: float) -> Verdict:
    held = {"bound": 1.0, "low": 0.0, "high": 1.0, "y": 1.0} | numbers
    return attends(LoopJudge(net or network()), Claim("attends", "real", "token", held, a or read()))


@pytest.mark.parametrize(
    ("eps", "y", "near"), [(0.25, 3.0, 0.75), (1.75, 1.0, 1.75), (2.5, 0.5, 1.0), (np.inf, 1.0, 2.0)]
)
def test_the_bound_is_proved_up_to_the_last_bit(
    eps: float, y: float, near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SLACK == 1 + 2.0**-48
    asked = []

    def said(*given: Any) -> float:
        asked.append(given[2:])
        return eps

    monkeypatch.setattr(smoothers, "apart", said)
    bound = near * SLACK
    found = judged(bound=bound, y=y, low=-1.0, high=0.5)
    assert asked == [([Fraction(-1), Fraction(1, 2)], [Fraction(-1), Fraction(1, 2)])]
    words = f"logits of rank 2 are within {eps:.6g} of the kernel's, for every number of examples"
    assert (found.outcome, found.value, found.why) == ("proved", bound, words)
    refused = judged(bound=float(np.nextafter(bound, 0)), y=y)
    assert (refused.outcome, refused.value) == ("undecided", np.inf)
    assert refused.why == f"{words}: answers within {bound:.6g}"


def test_queries_and_examples_have_their_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(smoothers, "apart", lambda *given: asked.append(given[2:]) or 0.0)  # type: ignore[func-returns-value]
    weight = np.zeros((6, 1))
    weight[0, 0], weight[3, 0] = 1.0, -0.25
    net = hidden(weight, [-0.5])
    judged(net)
    ends = Fraction(0), Fraction(1)
    assert asked == [([ends[0], Fraction(1, 2), ends[1]], [ends[0], Fraction(3, 4), ends[1]])]
    assert smoothers.MOST_KNOTS == 1024
    for most, outcome in ((3, "proved"), (2, "undecided")):
        monkeypatch.setattr(smoothers, "MOST_KNOTS", most)
        found = judged(net)
        assert found.outcome == outcome
    assert (found.why, found.value) == ("more than 2 places where a neuron begins", np.inf)
    for name, at in (("query", -0.5), ("example", -0.25)):  # the other one has no place of its own
        weight[3, 0] = -0.25 if name == "example" else 5.0
        monkeypatch.setattr(smoothers, "MOST_KNOTS", 2)
        assert judged(hidden(weight, [at])).outcome == "undecided"


def test_what_is_not_compared_is_undecided_or_malformed() -> None:
    for low, high in ((1.0, 1.0), (1.0, 0.5)):
        found = judged(low=low, high=high, bound=9.0)
        assert (found.outcome, found.why, found.value) == ("undecided", "the box is empty", np.inf)
    found = judged(a=read(term=program(["y 0", "y 1"], 0, 0)), bound=9.0)
    assert (found.outcome, found.value) == ("undecided", np.inf)
    assert found.why == "the algorithm is not an average of y"
    both = judged(a=read(term=program(["y 0", "y 1"], 0, 0)), bound=9.0, low=2.0)
    assert both.why == "the algorithm is not an average of y"
    with pytest.raises(Malformed, match="other tokens"):
        judged(a=read(answer=program(["s 0"], 0)))
    with pytest.raises(Malformed, match="attends is about looped networks"):
        attends(object(), Claim("attends", "real", "token", {}, read()))


def test_the_kind_is_known_by_name_and_its_kernels_may_have_exponentials() -> None:
    kind = KINDS["attends"]
    assert kind.numbers == {"bound", "low", "high", "y"}
    assert (kind.judge, kind.read_target, OWN["attends"]) == (attends, read_smoother, attends)
    assert smoothers.MOST == 1e20
    assert read(logit=program(["q 0", "exp 0"], 1)).logit is not None
    with pytest.raises(Malformed, match=r"here\.term"):
        read(term=program(["y 0", "exp 0"], 0, 1))
