"""False claims about layers in which a search replaces the dense evaluation.

Most of these layers are feedforward ones: nobody compares the search with the dense evaluation there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attacks.bundle import Bundle
from attacks.counterexamples import COPY, IDENTITY, Counterexample, Tensors, bundle, claim

Layers = list[tuple[Any, Any]]


def stack_tensors(stack: str, layers: Layers) -> Tensors:
    """Weights and biases as tensors; a readout begins by copying the stream."""
    first = 1 if stack == "readout" else 0
    named = {}
    for i, (weight, bias) in enumerate(layers, start=first):
        named |= {f"{stack}.{i}.weight": weight, f"{stack}.{i}.bias": bias}
    if stack == "feedforward":
        return named | COPY | IDENTITY
    width = len(np.asarray(layers[0][0]))
    return named | {"readout.0.weight": np.eye(width), "readout.0.bias": np.zeros(width)}


def of(dtype: str, arith: str, layers: Layers, token: list[float], answer: float, stack: str) -> Bundle:
    return bundle(dtype, stack_tensors(stack, layers), [[token]], [answer], claim("memorizes", arith, eps=0))


def cells(families: list[int], count: int, width: int) -> Layers:
    """For each family, a coordinate: ``count`` cells around 0, 1, 2, ... along it; the outer ones have no end."""
    slopes, biases = np.zeros((width, len(families), count, 2)), np.zeros((len(families), count, 2))
    for family, column in enumerate(families):
        for k in range(count):
            if k + 1 < count:
                slopes[column, family, k, 0], biases[family, k, 0] = 4, -4 * k - 1
            if k > 0:
                slopes[column, family, k, 1], biases[family, k, 1] = -4, 4 * k - 1
    groups = len(families) * count
    return [(slopes.reshape(width, -1), biases.ravel()), (np.full((groups, 2, 1), -1), np.ones(groups))]


def both(count: int) -> Any:
    """Weights of units that are on, with a bias of -1, if cell j of one family and of the next both are."""
    return np.concatenate([np.eye(count), np.eye(count)])


def searched_claims() -> Iterator[Counterexample]:
    for make in (_few, _gates, _tables, _rows, _unseen_layers):
        yield from make()


def _few() -> Iterator[Counterexample]:
    """Units of which a search names the few that are on."""
    layers = [*cells([0, 0], 8, 1), (both(8), -np.ones(8)), (np.full((8, 1), 2.0**-30), [1])]
    b = of("float32", "float32", layers, [3], 1 + 2.0**-30, "readout")
    yield Counterexample("a fraction of a unit that is on", "1 + 2^-30 is 1 in float32", b)
    layers = [*cells([0] * 4, 8, 1), (np.stack([both(8)] * 2), -np.ones(16))]
    layers += [(np.repeat([[3], [5]], 8, axis=0), [0])]
    b = of("float32", "float32", layers, [3], 6, "feedforward")
    yield Counterexample("units of the second block", "unit 3 of each block is on, which gives 3 + 5", b)


def _gates() -> Iterator[Counterexample]:
    """Sums that are said to be off."""
    steps, columns = 2000, 8
    weights = np.zeros((steps, columns + 1))
    weights[:-1, :columns], weights[-1, :columns], weights[0, columns] = -1, 2.0**25, 1
    layers: Layers = [(np.full((1, steps), -1), np.arange(steps) / 1024)]
    layers += [(np.full((steps, 1, 1), -1), np.ones(steps))]
    layers += [(weights, [1000 - 2.0**25] * columns + [0]), ([[1]] * columns + [[0]], [0])]
    b = of("float32", "float32", layers, [4], 0, "readout")
    yield Counterexample("a gate of many steps", "2^25 - 1 is 2^25 in float32, and the answer 8000", b)
    families = 66
    layers = [(np.tile([[-1, 0], [0, -1]], families // 2), np.full(families, 2))]
    layers += [(np.full((families, 1, 1), -1), np.ones(families))]
    weights = np.full((families, columns), -1.0)
    weights[0] = 100
    layers += [(weights, np.full(columns, -50)), ([[1]] * columns, [0])]
    b = of("float32", "float32", layers, [4, 0], 0, "feedforward")
    yield Counterexample("a gate of many families", "the sums are 100 - 32 - 50, and the answer 144", b)
    table, blocks = np.zeros((8, 16)), np.stack([np.eye(8)] * 2)
    table[:, :8], table[range(8), 8 + np.arange(8)] = 1 - np.eye(8), 5
    layers = [*cells([0], 8, 1), (table, np.zeros(16)), (blocks, np.zeros(16)), (both(8), np.full(8, -2))]
    layers += [(np.eye(8)[:, 3:4], [0])]
    b = of("float32", "float32", layers, [3], 0, "feedforward")
    yield Counterexample("a gate that one choice feeds twice", "unit 3 is 5 - 2", b)


def _tables() -> Iterator[Counterexample]:
    first, second = np.repeat([[1, 0], [0, 2.0**100]], 2, axis=0), np.diag([1, 2.0**100])
    for name, scale in (("layer", second), ("diagonal layer", np.diag(second).reshape(2, 1, 1))):
        layers = [*cells([0, 0], 2, 1), (first, [0, 0]), (scale, [0, 0]), ([[5], [0]], [0])]
        b = of("float32", "float32", layers, [1], 5, "readout")
        yield Counterexample(f"a {name} whose table overflows", "2^200 is infinite, and 0 times that NaN", b)


def _rows() -> Iterator[Counterexample]:
    """Staircases whose thresholds are rows, in real arithmetic; cells along one coordinate, another is carried."""

    def carry_families(families: int) -> Layers:
        (slopes, biases), (groups, ones) = cells([0] * families, 2, 2)
        slopes = np.concatenate([slopes, [[0, 0], [1, 0]]], axis=1)
        layer = np.concatenate([groups, [[[1], [0]]]])
        return [(slopes, np.append(biases, [0, 0])), (layer, np.append(ones, 0))]

    unit = 2.0**-1074
    layers = [*carry_families(1), ([[2 * unit], [2 * unit], [-(2.0**-74)]], [0]), ([[[-1]]], [1])]
    layers += [([[-(2.0**50)]], [2.0**50]), ([[1]], [0])]
    b = of("float64", "real", layers, [1, 1.625 * 2.0**-1000], 0, "readout")
    yield Counterexample("a threshold below all floats", "it is 2^-1074 times 0.375 beyond the coordinate", b)
    weights = np.zeros((5, 2))
    weights[4] = unit, -1
    layers = [*carry_families(2), (weights, [0, 0]), (np.full((2, 1, 1), -1), [1, 1]), ([[0], [3]], [0])]
    b = of("float64", "real", layers, [1, 1], 6, "feedforward")
    yield Counterexample("a step in two rows", "it adds 3 once", b)


def _unseen_layers() -> Iterator[Counterexample]:
    for blind, seen in ("QK", "KQ"):
        model = {f"attention.W_{blind}": [[[0]]], f"attention.W_{seen}": [[[2.0**100]]], **COPY, **IDENTITY}
        b = bundle("float32", model, [[[2.0**50]]], [2.0**50], claim("memorizes", "float32", eps=0))
        yield Counterexample(f"zero times an infinite {seen}", "the logits are 0 times infinity, NaN", b)
