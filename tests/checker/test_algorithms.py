"""Algorithms as they are read, and which of them a network can be: every size, word and part."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.files import Malformed
from onelayer_checker.looped.algorithms import MOST, Algorithm, Values, fit, read_algorithm, structure
from onelayer_checker.looped.network import Network, build
from onelayer_checker.looped.programs import OF_KERNELS
from tests.checker.looped import INNER, LAYER, descent, program, weights

STEP = program(["s 0", "m 0"], 0, 1)
ONE = f"const {(1.0).hex()}"


def read(**changes: Any) -> Algorithm:
    return read_algorithm(descent(**changes), "here")


def network(layer: dict[str, Any] | None = None, **tensors: np.ndarray) -> Network:
    return build(weights() | tensors, {"template": "looped/1", "layers": [LAYER | (layer or {})]})


def test_descent_is_read_as_it_is_written() -> None:
    a = read(start=[(0.5).hex(), (-2.0).hex()])
    assert (a.x, a.y, a.m, a.steps, a.gather, a.ridge, a.logit) == (2, 1, 2, 3, "mean", (), None)
    assert a.start == (Fraction(1, 2), -2)
    assert a.asked == "query"
    assert a.panel is None
    x, y = [Fraction(3), Fraction(1)], [Fraction(7)]
    s = [Fraction(1), Fraction(2)]
    assert a.token("example", s, x, y) == [3, 1, 2, 1]
    assert a.token("query", s, x, y) == [3, 1, -5, 0]
    assert a.token("judge", s, x, y) == [3, 1, 2, 1]
    assert a.terms(s, x, y) == [6, 2]
    alone = read(query=None)
    assert alone.asked == "example"
    assert alone.token("query", s, x, y) == [3, 1, 2, 1]


def test_a_term_may_read_the_token_of_its_example() -> None:
    a = read(term=program(["e 2", "e 0", "mul 0 1", "x 1"], 2, 3))
    s, x, y = [Fraction(1), Fraction(2)], [Fraction(3), Fraction(1)], [Fraction(7)]
    assert a.terms(s, x, y) == [6, 1]
    assert a.terms(s, x, y, [Fraction(10), 0, Fraction(4), 0]) == [40, 1]
    with pytest.raises(Malformed):
        read(term=program(["e 4"], 0, 0))
    assert read(term=program(["e 3"], 0, 0)).term.lines == (("e", 3),)
    for example in (None, [], {"outputs": 4}, {"lines": ["x 0"]}):
        with pytest.raises(Malformed):
            read(term=program(["e 0"], 0, 0), example=example)


@pytest.mark.parametrize("name", ["x", "y", "m"])
def test_sizes_are_whole_numbers_up_to_a_limit(name: str) -> None:
    assert MOST == 4096
    assert getattr(read(**{name: 4096}), name) == 4096
    for size in (0, 4097, -1, True, 1.0, "1", None):
        with pytest.raises(Malformed):
            read(**{name: size})
    assert read(x=2, y=1, m=2).m == 2
    one = read(x=1, y=1, m=1, start=[(0.0).hex()], term=program(["y 0"], 0), step=program(["m 0"], 0),
               answer=program(["s 0"], 0), example=program(["x 0"], 0), query=program(["x 0"], 0))  # fmt: skip
    assert (one.x, one.y, one.m) == (1, 1, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0}, {"steps": True}, {"steps": 1.0}, {"steps": -3}, {"gather": "median"}, {"gather": None},
        {"gather": "solve"}, {"gather": "softmax"}, {"ridge": [(1.0).hex()]}, {"logit": program(["q 0"], 0)},
        {"start": None}, {"start": "00"}, {"start": [0.0, 0.0]}, {"start": [(0.0).hex()] * 4097},
        {"start": [(0.0).hex()]},
        {"ridge": None}, {"term": None}, {"step": None}, {"answer": None}, {"example": None}, {"further": 1},
        {"step": program(["m 2"], 0, 0)}, {"step": program(["s 2"], 0, 0)}, {"step": program(["x 0"], 0, 0)},
        {"step": program(["m 0"], 0)}, {"answer": program(["y 0"], 0)}, {"answer": program(["v 0"], 0)},
        {"answer": program(["m 0"], 0)}, {"query": program(["y 0"], 0)}, {"example": program(["m 0"], 0)},
        {"term": program(["q 0"], 0)}, {"term": program(["v 0"], 0)}, {"judge": program(["x 0"], 0)},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_algorithm_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read(**change)


def test_what_each_program_may_read() -> None:
    every = ["s 1", "x 1", "y 0"]
    assert read(answer=program(every, 0), query=None).query is None
    assert read(example=program(every, 0, 1, 2, 0)).example.outputs == (0, 1, 2, 0)
    assert read(term=program([*every, "e 3"], 3, 2)).m == 2
    assert read(step=program(["s 1", "m 1"], 0, 1)).step.outputs == (0, 1)
    assert read(query=program(["s 1", "x 1"], 0, 1, 0, 1)).query is not None
    assert read(steps=1).steps == 1
    for entry in (None, [], "descent"):
        with pytest.raises(Malformed):
            read_algorithm(entry, "here")
    logit = program([*every, "q 1", "exp 3"], 4)
    with pytest.raises(Malformed):
        read(gather="softmax", logit=logit)
    kernel = read_algorithm(descent(gather="softmax", logit=logit), "here", OF_KERNELS)
    assert kernel.logit is not None
    with pytest.raises(Malformed):  # only logits have it
        read_algorithm(
            descent(gather="softmax", logit=logit, answer=program(["x 0", "exp 0"], 1)), "here", OF_KERNELS
        )
    solve = read(gather="solve", ridge=[(0.5).hex()])
    assert solve.ridge == (Fraction(1, 2),)


def test_which_algorithms_fit_a_network() -> None:
    net = network()
    fit(net, read())
    for change in (
        {"example": program(["x 0"], 0, 0, 0)}, {"query": program(["x 0"], 0, 0, 0)},
        {"answer": program(INNER, 6, 6)},
        {"m": 3}, {"term": program(["x 0"], 0)}, {"term": program(["x 0"], 0, 0, 0)},
    ):  # fmt: skip
        with pytest.raises(Malformed):
            fit(net, read(**change))
    with pytest.raises(Malformed, match="not what linear attention does"):
        fit(net, read(gather="solve", ridge=[ONE.split()[1]], term=program(["x 0"], 0, 0, 0)))
    with pytest.raises(Malformed, match="not what linear attention does"):
        fit(net, read(gather="softmax", m=1, step=STEP, logit=program(["q 0"], 0), term=program(["y 0"], 0)))
    fit(net, read(query=None))


def test_keys_values_ridges_and_logits_are_those_of_the_heads() -> None:
    mesa = network({"attention": "mesa", "mean": False}, **{"attention.ridge": np.ones(1)})
    ridge = [(1.0).hex()]
    fit(mesa, read(gather="solve", ridge=ridge, m=2, term=program(["x 0"], 0, 0, 0)))
    for change in ({"m": 1}, {"m": 3}, {"term": program(["x 0"], 0, 0)}, {"ridge": ridge * 2}):
        with pytest.raises(Malformed):
            fit(
                mesa,
                read(**({"gather": "solve", "ridge": ridge, "m": 2, "term": program(["x 0"], 0, 0, 0)} | change)),
            )
    softmax = network({"attention": "softmax", "mean": False})
    given = {"gather": "softmax", "m": 1, "step": STEP, "term": program(["y 0"], 0), "logit": program(["q 0"], 0)}
    fit(softmax, read(**given))
    for change in ({"m": 2}, {"term": program(["y 0"], 0, 0)}, {"logit": program(["q 0"], 0, 0)}):
        with pytest.raises(Malformed, match=r"no m of|a logit for each"):
            fit(softmax, read(**(given | change)))


def test_structure_is_compared_before_identities() -> None:
    net, a = network(), read()
    assert structure(net, a) == ""
    assert "run 3 times" in structure(net, replace(a, steps=2))
    assert "causal or softmax loop" in structure(network({"causal": True}), a)
    assert structure(network({"causal": True, "repeat": 1}), replace(a, steps=1)) == ""
    assert "queries are keys too" in structure(network({"context": None}), a)
    assert structure(network({"context": None}), replace(a, query=None)) == ""
    assert "gathers by sum" in structure(network({"mean": False}), a)
    assert structure(network({"mean": False}), replace(a, gather="sum")) == ""
    softmax = network({"attention": "softmax", "mean": False})
    assert "causal or softmax loop" in structure(softmax, replace(a, gather="softmax"))
    once = network({"attention": "softmax", "mean": False, "repeat": 1})
    assert structure(once, replace(a, gather="softmax", steps=1)) == ""
    mesa = network({"attention": "mesa", "mean": False}, **{"attention.ridge": np.ones(1)})
    assert structure(mesa, replace(a, gather="solve")) == ""
    assert "gathers by solve" in structure(mesa, a)


def test_letters_for_every_variable() -> None:
    sizes = Values.sizes(read(m=5, start=[(0.0).hex()] * 2))
    assert sizes == {"s": 2, "e": 4, "x": 2, "u": 2, "X": 2, "y": 1, "z": 1, "Y": 1, "m": 5, "n": 5, "v": 0, "t": 0}
