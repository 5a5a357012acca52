"""Roundings of a layer, number by number: each bound against its formula, in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onelayer_checker.looped.algorithms import read_algorithm
from onelayer_checker.looped.floats import FLOATS, Floats, Known, Unlike, is_copied, sizes_of
from onelayer_checker.looped.limits import up
from onelayer_checker.looped.network import Layer, affine, build
from tests.checker.looped import LAYER, descent, program, weights

U, LEAST = Fraction(1, 256), Fraction(1, 2**40)
F = Floats(U, LEAST, 2**20)
ONE = f"const {(1.0).hex()}"


def g(k: int) -> Fraction:
    return k * U / (1 - k * U)


def near(found: Known, size: Any, off: Any) -> None:
    """Rounded up by at most a few 2^-512."""
    for value, wanted in ((found.size, Fraction(size)), (found.off, Fraction(off))):
        assert 0 <= value - wanted < Fraction(1, 2**500)


def layer(kind: str = "linear", mean: bool = True, **more: np.ndarray) -> Layer:
    entry = LAYER | {"attention": kind, "mean": mean}
    return build(weights() | more, {"template": "looped/1", "layers": [entry]}).loop


def test_the_formats() -> None:
    assert FLOATS["float32"] == (Fraction(2) ** -24, Fraction(2) ** -149, 2**60)
    assert FLOATS["float64"] == (Fraction(2) ** -53, Fraction(2) ** -1074, 2**500)
    assert Known(Fraction(3)).whole == 3
    assert Known(Fraction(3), Fraction(1, 4)).whole == Fraction(13, 4)
    assert F.gamma(3) == g(3)
    assert F.gamma(127) == g(127)
    with pytest.raises(Unlike, match="too long"):
        F.gamma(128)


def test_sums_products_and_sizes() -> None:
    a, b = Known(Fraction(3), Fraction(1, 8)), Known(Fraction(5), Fraction(1, 4))
    whole = Fraction(67, 8)
    near(F.summed([a, b]), 8, Fraction(3, 8) + g(3) * whole + 3 * LEAST)
    near(F.summed([a, b], products=False), 8, Fraction(3, 8) + g(2) * whole + 2 * LEAST)
    product = 3 * Fraction(1, 4) + Fraction(1, 8) * Fraction(21, 4) + U * Fraction(25, 8) * Fraction(21, 4) + LEAST
    near(F.times(a, b), 15, product)
    assert F.known(Fraction(2**20), Fraction(0)) == Known(Fraction(2**20))
    for size, off in ((2**20, LEAST), (2**20 + 1, 0)):
        with pytest.raises(Unlike, match="leave the range"):
            F.known(Fraction(size), Fraction(off))
    assert F.known(Fraction(1, 3), Fraction(1, 3)) == Known(up(Fraction(1, 3)), up(Fraction(1, 3)))


def test_what_one_weight_copies_is_exact() -> None:
    h = [Known(Fraction(3), Fraction(1, 8)), Known(Fraction(5))]
    W = np.array([[1.0, -1.0, 2.0, 1.0, 0.0, -3.0], [0.0, 0.0, 0.0, -2.0, 0.0, 0.0]])
    found = F.affine(affine(W, np.array([0, 0, 0, 0, 0, -0.5])), h)
    assert found[0] == found[1] == h[0]
    near(found[2], 6, Fraction(1, 4) + g(2) * Fraction(25, 4) + 2 * LEAST)
    near(found[3], 13, Fraction(1, 8) + g(3) * (13 + Fraction(1, 8)) + 3 * LEAST)
    assert found[4] == Known(Fraction(0))
    near(found[5], Fraction(19, 2), Fraction(3, 8) + g(3) * (Fraction(19, 2) + Fraction(3, 8)) + 3 * LEAST)
    (fixed,) = F.affine(affine(np.zeros((2, 1)), np.array([2.0])), h)
    near(fixed, 2, g(2) * 2 + 2 * LEAST)
    (alone,) = F.affine(affine(np.array([[1.0], [0.0]]), np.array([2.0])), h)
    near(alone, 5, Fraction(1, 8) + g(3) * (5 + Fraction(1, 8)) + 3 * LEAST)


@pytest.mark.parametrize("kind", ["linear", "relu"])
@pytest.mark.parametrize("mean", [True, False])
def test_attention_over_keys_of_their_own(kind: str, mean: bool) -> None:
    """q = x, k = x, v = -r/4, written to r; keys are larger than the token that asks."""
    h, held = ([Known(Fraction(u)) for u in sizes] for sizes in ((1, 2, 3, 1), (2, 1, 5, 1)))
    products = [F.times(h[i], held[i]) for i in (0, 1)]
    score = F.summed(products, products=False)
    (v,) = F.affine(layer().heads[0].value, held)
    term = F.times(score, v)
    asked = 3 if kind == "linear" else 0
    rounded = g(7 + 2 + 6) * term.whole + 15 * LEAST * (1 + v.whole + asked)
    scale = 1 if mean else 7
    read = Known(scale * term.size, scale * (term.off + rounded))
    found = F.added(layer(kind, mean), h, 7, held)
    assert found[0] == h[0]
    assert found[1] == h[1]
    assert found[3] == h[3]
    wanted = F.summed([h[2], read], products=False)
    near(found[2], wanted.size, wanted.off)
    own = F.added(layer(kind, mean), h, 7)
    assert own == F.added(layer(kind, mean), h, 7, h)
    assert own[2].off < found[2].off


def test_sums_of_keys_and_values_stay_in_range_where_they_are_formed() -> None:
    """Queries of 2^-20, keys of 2^20: the score is moderate, the sum of k v is not; relu has no such sum."""
    tensors = {
        "attention.W_Q": weights()["attention.W_Q"] / 2**20,
        "attention.W_K": weights()["attention.W_K"] * 2**19,
    }
    h = [Known(Fraction(1))] * 4
    assert F.added(layer("relu", **tensors), h, 16)[2].off > 0
    assert F.added(layer("linear", **tensors), h, 7)[2].off > 0  # 8 times 2^19 times 1/4 is 2^20
    with pytest.raises(Unlike, match="leave the range"):
        F.added(layer("linear", **tensors), h, 8)


def test_two_heads_add_and_a_head_that_writes_nothing_does_not() -> None:
    halves = {k: np.concatenate([a, a]) for k, a in weights(0.125).items() if "attention" in k}
    idle = {k: np.concatenate([a, 0 * a]) for k, a in weights(0.125).items() if "attention" in k}
    h = [Known(Fraction(1))] * 4
    one, two = F.added(layer(**idle), h, 4)[2], F.added(layer(**halves), h, 4)[2]
    assert one == F.added(layer(**{k: a[:1] for k, a in halves.items()}), h, 4)[2]
    assert two.size == 1 + 2 * (one.size - 1)
    assert two.off > one.off


COPY = {"feedforward.0.weight": np.eye(4), "feedforward.0.bias": np.zeros(4)}
BOTH = {
    "feedforward.0.weight": np.concatenate([np.eye(4), -np.eye(4)], axis=1),
    "feedforward.0.bias": np.zeros(8),
    "feedforward.1.weight": np.concatenate([np.eye(4), -np.eye(4)]),
    "feedforward.1.bias": np.zeros(4),
}


def changed(which: dict[str, np.ndarray], name: str, index: Any, value: float) -> dict[str, np.ndarray]:
    a = which[f"feedforward.{name}"].copy()
    a[index] = value
    return which | {f"feedforward.{name}": a}


def test_the_feed_forward_part_copies_or_rounds() -> None:
    h = [Known(Fraction(i + 1), Fraction(1, 16)) for i in range(4)]
    assert F.before(layer(), h) == h
    assert F.before(layer(**COPY), h) == h
    assert F.before(layer(**BOTH), h) == h
    once = F.before(layer(**changed(COPY, "0.weight", (1, 1), 0.5)), h)
    assert [once[c] == h[c] for c in range(4)] == [True, False, True, True]
    near(once[1], 1, Fraction(1, 32) + g(2) * Fraction(33, 32) + 2 * LEAST)
    thresholds = changed(BOTH, "0.bias", 2, -0.25)
    twice = F.before(layer(**thresholds), h)
    assert [twice[c] == h[c] for c in range(4)] == [True, True, False, True]
    inner = F.affine(layer(**thresholds).feedforward[0], h)
    assert twice[2] == F.affine(layer(**thresholds).feedforward[1], inner)[2]


@pytest.mark.parametrize(
    ("tensors", "copied"),
    [
        (COPY, True), (BOTH, True),
        (changed(COPY, "0.weight", (1, 1), -1.0), False), (changed(COPY, "0.bias", 1, 1.0), False),
        (changed(COPY, "0.weight", (0, 1), 1.0), False),
        (changed(BOTH, "0.bias", 1, 1.0), False), (changed(BOTH, "0.bias", 5, 1.0), False),
        (changed(BOTH, "1.bias", 1, 1.0), False), (changed(BOTH, "1.weight", (1, 1), 2.0), False),
        (changed(BOTH, "1.weight", (5, 1), 1.0), False), (changed(BOTH, "1.weight", (0, 1), 1.0), False),
        (changed(BOTH, "0.weight", (0, 1), 1.0), False), (changed(BOTH, "0.weight", (1, 5), 1.0), False),
    ],
)  # fmt: skip
def test_a_channel_is_copied_or_not(tensors: dict[str, np.ndarray], copied: bool) -> None:
    net = layer(**tensors)
    assert is_copied(net, 1) is copied
    assert is_copied(net, 3)
    third = {"feedforward.2.weight": np.eye(4), "feedforward.2.bias": np.zeros(4)}
    assert not is_copied(layer(**BOTH, **third), 1)


def test_sizes_are_the_larger_of_examples_and_queries() -> None:
    example = program(["x 0", "x 1", "y 0", "const -0x1.8000000000000p+1"], 0, 1, 2, 3)
    query = program(["x 0", "x 1", "const -0x1.0000000000000p+2", ONE, "s 1"], 0, 1, 2, 3)
    a = read_algorithm(descent(example=example, query=query), "here")
    assert sizes_of(a, Fraction(2), Fraction(5)) == [2, 2, 5, 3]
    assert sizes_of(a, Fraction(2), Fraction(3)) == [2, 2, 4, 3]
