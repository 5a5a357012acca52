"""Loops that hold their weights: which of them are followed, and which are not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.looped.floats import Unlike
from onelayer_checker.looped.judge import LoopJudge
from onelayer_checker.looped.network import affine
from onelayer_checker.looped.rounding import rounds, shape_of
from tests.checker.held_weights import (
    E7,
    ETA,
    EXAMPLE,
    FLAG,
    HALF,
    QUERY,
    UNIT,
    W,
    X,
    Y,
    claim,
    cutting,
    fractions,
    network,
    read,
    shape,
    shrinking,
    step,
    taking,
)
from tests.checker.looped import program


def test_a_token_holds_the_weights_themselves() -> None:
    """Half of them, and scores that read them twice: steps seem half as large, and these diverge."""
    held = [HALF, "mul 0 9", "mul 1 9"]
    a = read(
        **taking(1.5),
        example=program([*EXAMPLE, *held], 2, 3, 7, 8, 8, 10, 11),
        query=program([*QUERY, *held], 2, 3, 7, 7, 8, 10, 11),
    )
    Q, K, V, O = step(eta=0.75)
    Q[W] *= 2
    net = network((Q, K, V, O), dtype="float32")
    (last,) = net.after
    twice = replace(last.heads[0], query=affine(Q, np.zeros(4)))
    net = replace(net, after=(replace(last, heads=(twice,)),))
    found = rounds(LoopJudge(net), claim(a))
    assert found.outcome == "undecided"
    assert found.why.startswith("a token holds something else than x, y, w and constants; ")
    for other in ("example", "query"):
        mixed = read(**{other: program([*(EXAMPLE if other == "example" else QUERY), *held],
                                       2, 3, 7, 8 if other == "example" else 7, 8, 10, 11)})  # fmt: skip
        with pytest.raises(Unlike, match="a token holds something else"):
            shape_of(net, mixed)


def test_loops_are_read_off_their_weights() -> None:
    a = read()
    assert shape_of(network(), a) == shape((1, -1, 0, -ETA))
    assert shape_of(network(step(b=3.0, c=2.0)), a) == shape((1, -3, -2, -ETA))
    assert shape_of(network(step(a=0.0, b=3.0, c=2.0)), a) == shape((0, 3 * ETA, 2 * ETA, 1))
    both = network(step(), step(eta=0.5, a=1.0, b=0.0, c=1.0))
    assert shape_of(both, a) == shape((1, 1, 2, 0.25))
    idle = network(step(), step(eta=0.0))
    assert shape_of(idle, a) == shape((1, -1, 0, -ETA))
    assert shape_of(network(step(), shrinking(0.125), shrinking(0.25)), a) == shape((1, -1, 0, -ETA), shrink=0.375)
    cut = network(step(), **cutting(0.5))
    assert shape_of(cut, a) == shape((1, -1, 0, -ETA), threshold=0.5)
    assert shape_of(network(step(), **cutting(0.0)), a) == shape((1, -1, 0, -ETA))
    single: dict[str, Any] = {"feedforward.0.weight": E7, "feedforward.0.bias": np.zeros(7)}
    assert shape_of(network(step(), **single), a) == shape((1, -1, 0, -ETA))
    bent = network(step(), step(eta=-0.5, a=1.0, b=-1.0, c=2.0), shrinking(0.125), kind="relu")
    assert shape_of(bent, a) == shape((-1, 1, 0, ETA), (1, -1, 2, -0.5), shrink=0.125)
    assert shape_of(network(step(), step(eta=0.0), kind="relu"), a) == shape((-1, 1, 0, ETA), (-1, 1, 0, 0))


def test_other_algorithms_are_not_followed() -> None:
    net, a = network(), read()
    for changed in ({"y": 2}, {"start": (Fraction(0),)}, {"start": fractions(0, 1)}, {"query": None}):
        with pytest.raises(Unlike, match="the state is not one weight for each number of x, from 0"):
            shape_of(net, replace(a, **changed))
    (itself,) = net.after
    for other in (
        replace(net, loop=replace(net.loop, mean=False)), replace(net, loop=replace(net.loop, causal=True)),
        replace(net, panel=itself),
    ):  # fmt: skip
        with pytest.raises(Unlike, match="the state is not one weight for each number of x, from 0"):
            shape_of(other, a)
    with pytest.raises(Unlike, match="only linear and relu attention are followed"):
        shape_of(replace(net, loop=replace(net.loop, kind="softmax")), a)


@pytest.mark.parametrize(
    "changes",
    [
        {"example": program([*EXAMPLE, "mul 2 2"], 2, 3, 7, 8, 9, 0, 1)},
        {"query": program([*QUERY, "mul 2 2"], 2, 3, 7, 7, 9, 0, 1)},
        {"example": program([*EXAMPLE, "add 2 3"], 9, 3, 7, 8, 8, 0, 1)},
        {"example": program(EXAMPLE, 2, 3, 7, 8, 8, 0, 2)},
        {"example": program(EXAMPLE, 2, 3, 7, 8, 8, 8, 1)},
        {"example": program(EXAMPLE, 2, 3, 7, 8, 8, 0, 0)},
        {"example": program(EXAMPLE, 2, 3, 7, 8, 0, 0, 1)},
        {"example": program(EXAMPLE, 2, 3, 7, 8, 8, 0, 8), "query": program(QUERY, 2, 3, 7, 7, 8, 0, 8)},
        {"query": program(QUERY, 2, 3, 7, 7, 8, 1, 0)},
        {"query": program(QUERY, 2, 3, 7, 7, 8, 0, 8)},
        {"query": program(QUERY, 2, 3, 7, 7, 0, 0, 1)},
        {"example": program([*EXAMPLE, "add 0 0"], 2, 3, 7, 8, 8, 9, 1)},
    ],
    ids=range(12),
)
def test_other_tokens_are_not_followed(changes: dict[str, Any]) -> None:
    with pytest.raises(Unlike, match="a token holds something else than x, y, w and constants"):
        shape_of(network(), read(**changes))


def test_tokens_may_hold_shares_of_x_and_y() -> None:
    """A quarter of y, and a score that reads it four times."""
    quarter = f"const {(0.25).hex()}"
    a = read(example=program([*EXAMPLE, quarter, "mul 7 9"], 2, 3, 10, 8, 8, 0, 1))
    assert shape_of(network(step(b=4.0)), a) == shape((1, -1, 0, -ETA))


@pytest.mark.parametrize(
    "more",
    [
        cutting(-0.5), cutting([0.5, 0.25]), cutting([0.0, 0.25]), cutting(0.5, copied=2.0),
        cutting(0.0) | {"feedforward.1.bias": np.ones(7)},
        {"feedforward.0.weight": 2 * E7, "feedforward.0.bias": np.zeros(7)},
        {"feedforward.0.weight": E7[:, :5], "feedforward.0.bias": np.zeros(5),
         "feedforward.1.weight": E7[:5], "feedforward.1.bias": np.zeros(7)},
        {"feedforward.0.weight": E7[:, :3], "feedforward.0.bias": np.zeros(3),
         "feedforward.1.weight": E7[:3], "feedforward.1.bias": np.zeros(7)},
        {"feedforward.0.weight": np.concatenate([E7, -E7], axis=1), "feedforward.0.bias": np.full(14, -0.5),
         "feedforward.1.weight": np.concatenate([E7, -E7]), "feedforward.1.bias": np.zeros(7)},
    ],
    ids=range(9),
)  # fmt: skip
def test_other_feedforward_parts_are_not_followed(more: dict[str, Any]) -> None:
    with pytest.raises(Unlike, match="the feed-forward part is not soft thresholding"):
        shape_of(network(step(), **more), read())


def changed(part: int, index: tuple[int, int], value: float, own: Any = None) -> Any:
    parts = [a.copy() for a in own or step()]
    parts[part][index] = value
    return tuple(parts)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (changed(3, (0, Y), 1.0), "something else than w is written"),
        (changed(0, (FLAG, 2), 1.0), "queries have other scores"),
        (changed(2, (X[1], 1), 0.5), "a head writes neither x nor w"),
        (changed(3, (0, W[1]), 1.0), "a head writes neither x nor w"),
        (changed(2, (W[0], 0), 1.0), "a head writes neither x nor w"),
        (changed(2, (Y, 0), 1.0), "a head writes neither x nor w"),
        (changed(2, (UNIT, 0), 1.0), "a head writes neither x nor w"),
        (changed(2, (W[1], 1), 0.25, shrinking(0.125)), "a head writes neither x nor w"),
        (changed(1, (UNIT, 0), 2.0, shrinking(0.125)), "a head writes neither x nor w"),
        (changed(1, (Y, 0), 1.0, shrinking(0.125)), "a head writes neither x nor w"),
        (changed(1, (X[0], 0), 2.0), "a score is no function of <w, x> and y"),
        (changed(1, (X[1], 0), 1.0), "a score is no function of <w, x> and y"),
        (changed(1, (W[0], 2), 1.0), "a score is no function of <w, x> and y"),
        (changed(1, (X[0], 2), 1.0), "a score is no function of <w, x> and y"),
        (changed(0, (X[0], 2), 1.0), "a score is no function of <w, x> and y"),
    ],
    ids=range(15),
)
def test_other_heads_are_not_followed(own: Any, words: str) -> None:
    with pytest.raises(Unlike, match=words):
        shape_of(network(own), read())
