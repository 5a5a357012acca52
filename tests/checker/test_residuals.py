"""Roundings of networks that hold residuals: which networks these are, and how far off they may be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.looped.algorithms import read_algorithm
from onelayer_checker.looped.floats import FLOATS, Floats, Known, Unlike
from onelayer_checker.looped.network import Network, affine, build
from onelayer_checker.looped.polynomials import Ring
from onelayer_checker.looped.residuals import Residual, followed, put, residual_of, slope
from tests.checker.looped import ETA, INNER, LAYER, descent, program, weights

ZERO, ONE = f"const {(0.0).hex()}", f"const {(1.0).hex()}"
SINGLE, DOUBLE = (Floats(*FLOATS[name]) for name in ("float32", "float64"))
NONE = {"feedforward.0.bias": np.zeros(4)}
BOX = {"x": Fraction(1), "y": Fraction(1), "examples": Fraction(10)}


def network(layer: dict[str, Any] | None = None, further: tuple[Any, ...] = (), **tensors: np.ndarray) -> Network:
    return build(weights() | tensors, {"template": "looped/1", "layers": [LAYER | (layer or {}), *further]})


def found(net: Network, **changes: Any) -> Residual:
    return residual_of(net, read_algorithm(descent(**changes), "here"))


def shrinking(keep: float) -> tuple[Network, dict[str, Any]]:
    """Tokens [x0, x1, r, flag, y], and r <- keep r + (1 - keep) y before each step."""
    wide = {
        n: np.concatenate([a, np.zeros((1, 1, a.shape[2]))], axis=1)
        for n, a in weights().items()
        if "W_O" not in n and "readout" not in n
    }
    wide |= {
        "attention.W_O": np.array([[[0.0, 0, 1, 0, 0]]]),
        "readout.0.weight": np.array([[0.0], [0], [-1], [0], [0]]),
    }
    W = np.eye(5)
    W[2, 2], W[4, 2] = keep, 1 - keep
    wide |= {"readout.0.bias": np.zeros(1), "feedforward.0.weight": W, "feedforward.0.bias": np.zeros(5)}
    net = build(wide, {"template": "looped/1", "layers": [LAYER]})
    example = program([*INNER, "y 0", "sub 7 6", ONE], 2, 3, 8, 9, 7)
    query = program([*INNER, "neg 6", ZERO], 2, 3, 7, 8, 8)
    return net, descent(example=example, query=query)


def test_descent_is_read_off_its_weights() -> None:
    assert found(network()) == Residual(2, Fraction(1), Fraction(ETA))
    net, algorithm = shrinking(0.75)
    assert residual_of(net, read_algorithm(algorithm, "here")) == Residual(2, Fraction(3, 4), Fraction(ETA))
    halves = {k: np.concatenate([a, a]) for k, a in weights(ETA / 2).items() if "attention" in k}
    assert found(network(**halves)) == Residual(2, Fraction(1), Fraction(ETA))
    idle = {k: np.concatenate([a, 0 * a]) for k, a in weights().items() if "attention" in k}
    assert found(network(**idle)) == Residual(2, Fraction(1), Fraction(ETA))
    halves["attention.W_Q"][1, 2, 0] = 1.0
    with pytest.raises(Unlike, match="scores read"):
        found(network(**halves))
    lines = [*INNER, "neg 6", ZERO, "sub 2 2", ONE, "add 9 10"]  # a number, by way of a variable
    assert found(network(), query=program(lines, 2, 3, 7, 11)) == found(network())


def changed(name: str, index: tuple[int, ...], value: float = 1.0) -> dict[str, np.ndarray]:
    a = weights()[name].copy()
    a[index] = value
    return {name: a}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layer": {"attention": "relu"}}, "mean of linear"),
        ({"layer": {"mean": False}}, "mean of linear"),
        ({"layer": {"causal": True}}, "mean of linear"),
        (changed("attention.W_O", (0, 0, 3)), "writes one number"),
        (changed("attention.W_O", (0, 0, 2), 0.0), "writes one number"),
        (changed("attention.W_Q", (0, 2, 0)), "scores read"),
        (changed("attention.W_K", (0, 2, 0)), "scores read"),
        (changed("attention.W_Q", (0, 3, 0)), "no step"),  # examples move otherwise than queries do
        (changed("attention.W_K", (0, 3, 0)), "no step"),
        (changed("attention.W_V", (0, 3, 0)), "no step"),
        (changed("attention.W_Q", (0, 0, 0), 2.0), "no step"),
        ({"feedforward.0.weight": np.eye(4) + np.eye(4)[[1, 0, 2, 3]] * [1, 0, 0, 0], **NONE}, "no step"),
        ({"feedforward.0.weight": np.eye(4), "feedforward.0.bias": np.array([0, 0, 1.0, 0])}, "no step"),
        ({"feedforward.0.weight": np.diag([1, 1, 0.5, 1]), **NONE}, "no step"),
    ],
    ids=str,
)  # fmt: skip
def test_other_networks_are_not_followed(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Unlike, match=words):
        found(network(**change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": [(1.0).hex()] * 2}, "does not begin"),
        ({"query": program([*INNER, ONE, ZERO], 2, 3, 7, 8)}, "does not begin"),
        ({"example": program([*INNER, "y 0", "sub 7 6", ONE, "add 8 8"], 2, 3, 10, 9)}, "does not begin"),
        ({"example": program([*INNER, "y 0", "sub 7 6", ONE, "mul 2 2"], 10, 3, 8, 9)}, "something else"),
        ({"query": program([*INNER, "neg 6", ZERO, "mul 2 2"], 9, 3, 7, 8)}, "something else"),
        ({"query": None, "answer": program(INNER, 6)}, "mean of linear"),
    ],
    ids=str,
)
def test_other_tokens_are_not_followed(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Unlike, match=words):
        found(network(), **change)


def test_further_layers_and_two_answers_are_not_followed() -> None:
    itself = LAYER | {"context": None, "window": 1, "repeat": 1, "mean": False}
    tensors = {k.replace("readout", "1.readout"): a for k, a in weights().items()}
    tensors |= {f"1.{k}": a for k, a in weights().items() if "attention" in k}
    for further in (itself, LAYER | {"repeat": 1}):
        net = build(tensors, {"template": "looped/1", "layers": [LAYER, further]})
        with pytest.raises(Unlike, match="mean of linear"):
            found(net)
    with pytest.raises(Unlike, match="mean of linear"):
        found(network(), y=2)


def bound(keep: float = 1.0, floats: Floats = SINGLE, steps: int = 3, **box: Any) -> Fraction:
    net, algorithm = (network(), descent()) if keep == 1 else shrinking(keep)
    numbers = BOX | {k: Fraction(v) for k, v in box.items()}
    return followed(net, read_algorithm(algorithm | {"steps": steps}, "here"), numbers, floats)[0]


def by_hand(keep: Fraction, L: int, N: int, x: Fraction, y: Fraction, u: Fraction) -> Fraction:
    """The formula of the module's docstring, to first order: 2 numbers in x, a score of 2 products."""
    moves = Fraction(ETA) * 2 * x * x
    G = Fraction(L) if keep == 1 else min(Fraction(L), 1 / (1 - keep))
    Q = moves * y * G
    attended = (N + 8 + 4) * u * moves * y  # the score, the value and the sum over keys
    shrunk = 0 if keep == 1 else 3 * u
    delta = attended + u * (y + moves * y) * 2 + shrunk * (y + moves * y)
    asked = attended + u * (Q + moves * y) * 2 + shrunk * (Q + moves * y)
    return G * (moves * G * delta + asked)


@pytest.mark.parametrize("keep", [1.0, 0.75])
@pytest.mark.parametrize("floats", [SINGLE, DOUBLE], ids=["float32", "float64"])
@pytest.mark.parametrize("box", [{}, {"x": 0.5}, {"y": 4.0}, {"examples": 100.0}, {"steps": 40}], ids=str)
def test_the_bound_is_the_formula_but_for_little(keep: float, floats: Floats, box: dict[str, Any]) -> None:
    whole = {k: Fraction(v) for k, v in (BOX | {"steps": 3} | box).items()}
    wanted = by_hand(Fraction(keep), int(whole["steps"]), int(whole["examples"]), whole["x"], whole["y"], floats.u)
    assert Fraction(7, 10) < bound(keep, floats, **box) / wanted < Fraction(14, 10)


@pytest.mark.parametrize(
    ("keep", "box", "wanted"),
    [
        (1.0, {"y": 4.0}, 9.508441346695085e-05), (1.0, {"x": 0.5}, 3.7362370142149026e-06),
        (0.75, {"y": 4.0}, 0.0001210850988377012), (0.75, {"x": 0.5}, 5.677958423844001e-06),
    ],
)  # fmt: skip
def test_the_bound_of_two_answers_is_that_of_the_worse_one(
    keep: float, box: dict[str, float], wanted: float
) -> None:
    """Three times r, and r: numbers as they were once computed, each near the formula above."""
    net, algorithm = (network(), descent()) if keep == 1 else shrinking(keep)
    read = np.zeros((net.loop.width, 2))
    read[2] = (-3, -1)
    numbers = BOX | {k: Fraction(v) for k, v in box.items()}
    whole = replace(net, readout=(affine(read, np.zeros(2)),))
    found = followed(whole, read_algorithm(algorithm, "here"), numbers, SINGLE)[0]
    assert float(found) == pytest.approx(wanted, rel=1e-9)
    first = by_hand(Fraction(keep), 3, 10, numbers["x"], numbers["y"], SINGLE.u)
    assert 2 < found / first < 4


def test_roundings_are_small_beside_what_is_rounded_or_nothing_is_said() -> None:
    """Up to an eighth of the largest r of a query: for longer roundings numbers might be larger than is assumed."""
    most = Fraction(0.0014089718266143691)
    assert bound(floats=replace(SINGLE, u=most * Fraction(999, 1000))) > 0
    with pytest.raises(Unlike, match="beyond the size"):
        bound(floats=replace(SINGLE, u=most * Fraction(1001, 1000)))


def test_steps_that_are_too_large_and_sizes_that_are_lost_are_refused() -> None:
    assert bound(x=2) > 0  # eta B^2 = 2
    for change in ({"x": 2.01}, {"keep": 1.25}, {"keep": -0.25}, {"keep": 0.0}):
        with pytest.raises(Unlike, match="steps are too large"):
            bound(**change)
    with pytest.raises(Unlike, match="beyond the size"):
        bound(steps=1 << 12, examples=1 << 10)
    with pytest.raises(Unlike, match="beyond the size"):
        bound(x=2.0**-74)  # a query moves less than what is added for underflow
    with pytest.raises(Unlike, match="leave the range"):
        bound(y=2.0**60)
    negative = build(weights(-ETA), {"template": "looped/1", "layers": [LAYER]})
    with pytest.raises(Unlike, match="steps are too large"):
        followed(negative, read_algorithm(descent(), "here"), BOX, SINGLE)


def test_a_rounded_channel_of_another_kind_is_refused() -> None:
    """x is copied as (2 x) / 2: exact in reals, and said to be rounded."""
    parts = {"feedforward.0.weight": np.diag([2.0, 1, 1, 1]), "feedforward.0.bias": np.zeros(4)}
    second = np.diag([0.5, 1, 1, 1])
    both = np.concatenate([parts["feedforward.0.weight"], -parts["feedforward.0.weight"]], axis=1)
    parts = {"feedforward.0.weight": both, "feedforward.0.bias": np.zeros(8)}
    parts |= {"feedforward.1.weight": np.concatenate([second, -second]), "feedforward.1.bias": np.zeros(4)}
    net = network(**parts)
    assert found(net) == Residual(2, Fraction(1), Fraction(ETA))
    with pytest.raises(Unlike, match="another channel"):
        followed(net, read_algorithm(descent(), "here"), BOX, SINGLE)


def test_small_parts() -> None:
    x, y = Ring().variables("x", 2)
    assert slope(x * Fraction(3, 4) + y, x) == Fraction(3, 4)
    assert slope(x * y * 5 + x, x * y) == 5
    assert slope(y, x) == slope(Fraction(3), x) == 0
    assert put([1, 2, 3], 1, 9) == [1, 9, 3]
    assert Known(Fraction(1), Fraction(2)).whole == 3
