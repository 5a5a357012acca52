"""Hats, by hand: every number of their layers is compared, and what these compute is the interpolant."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import REAL, UP, exact
from onelayer_checker.core.layers import Layer, run_stack
from onelayer_checker.functions.hats import recognise

Layers = tuple[Layer, ...]


def values(m: int, D: int, q: int, seed: int = 0) -> Any:
    """Whole numbers at the vertices, [(D + 1)^m, q]."""
    return np.random.default_rng(seed).integers(0, 8, ((D + 1) ** m, q)).astype(np.float64)


def interpolating(W: Any, m: int, H: float, gates: int = 0, wall: float = 0.0, bias: Any = 0.0) -> Layers:
    """The layers after the bottleneck: [V, q] values over H; with gates [V, gates q], and walls."""
    V = len(W)
    D, G = round(V ** (1 / m)) - 1, V + gates
    first, at = np.zeros((m + gates, G, m, 2)), np.zeros((G, m, 2))
    for v, corner in enumerate(product(range(D + 1), repeat=m)):
        for i in range(m):
            first[i, v, i] = 1, -1
            at[v, i] = -corner[i] * H, corner[i] * H
    for j in range(gates):
        first[m + j, V + j, 0, 0] = 1
    layers = [Layer(first.reshape(m + gates, -1), at.ravel())]
    for i in range(1, m):
        block = np.tile(np.eye(2 * m), (G, 1, 1))
        for v, j, side in product(range(V), range(i), (0, 1)):
            block[v, 2 * j + side, 2 * i + side] = -1
        layers.append(Layer(block, np.zeros(G * 2 * m)))
    last, top = np.full((G, 2 * m, 1), -1.0), np.full(G, H)
    last[V:], top[V:] = 0, 0
    last[V:, 0] = 1
    layers.append(Layer(last, top))
    if not gates:
        return (*layers, Layer(np.asarray(W, np.float64), np.full(W.shape[1], bias, np.float64)))
    q = W.shape[1] // gates
    opened = np.zeros((gates, gates * q))
    for j in range(gates):
        opened[j, j * q : (j + 1) * q] = wall
    layers.append(Layer(np.concatenate([W, opened]), np.full(gates * q, -wall)))
    return (*layers, Layer(np.tile(np.eye(q), (gates, 1)), np.full(q, bias, np.float64)))


#: m, D, H, gates, outputs
SHAPES = [(1, 1, 1.0, 0, 1), (1, 3, 5.0, 0, 2), (2, 1, 4.0, 0, 1), (2, 2, 3.0, 0, 2), (3, 1, 2.0, 0, 1)]
GATED = [(1, 2, 4.0, 1, 2), (1, 1, 2.0, 1, 1), (2, 1, 4.0, 2, 1), (2, 1, 2.0, 2, 2), (3, 1, 3.0, 3, 1)]


def made(m: int, D: int, H: float, gates: int, q: int) -> Layers:
    """Values up to 7, and walls that are just high enough."""
    W = values(m, D, max(gates, 1) * q)
    W[0], W[1] = 7, 0
    return interpolating(W, m, H, gates, 14 * H if gates else 0.0, np.arange(float(q)) - 2)


@pytest.mark.parametrize("shape", SHAPES + GATED)
def test_values_at_the_vertices(shape: Any) -> None:
    """W H + b; what all terms of an answer add up to is at most the largest of each."""
    m, D, H, gates, q = shape
    layers = made(*shape)
    found = recognise(layers)
    assert found is not None
    W, b = (layers[-2].weight[: (D + 1) ** m], layers[-1].bias) if gates else (layers[-1].weight, layers[-1].bias)
    assert (found.H, found.gates, found.m, found.levels) == (H, gates, m, D)
    assert found.values.shape == (D + 1,) * m + (max(gates, 1) * q,)
    np.testing.assert_array_equal(found.values.reshape(W.shape), W * H + np.tile(b, max(gates, 1)))
    wall = 14 * H if gates else 0.0
    assert found.size == (7 * H + 2 + 2 * wall) * UP


def test_values_may_be_negative() -> None:
    for W, b, size in (([-5.0, 2.0], 1.0, 16.0), ([-5.0, -2.0], -3.0, 18.0), ([1.0, 4.0], -3.0, 15.0)):
        found = recognise(interpolating(np.array(W)[:, None], 1, 3.0, bias=b))
        assert found is not None
        assert (found.values.ravel().tolist(), found.size) == ([w * 3 + b for w in W], size * UP)


def interpolated(F: Any, t: list[Fraction]) -> list[Fraction]:
    """The affine interpolant of vertex values at t, in units of the grid: along the largest remainder first."""
    corner = [min(int(x), len(F) - 2) for x in t]
    rest = [x - c for x, c in zip(t, corner, strict=True)]
    value = [Fraction(y) for y in F[tuple(corner)]]
    for i in sorted(range(len(t)), key=lambda i: -rest[i]):
        before = F[tuple(corner)]
        corner[i] += 1
        steps = zip(value, before, F[tuple(corner)], strict=True)
        value = [y + rest[i] * Fraction(float(b - a)) for y, a, b in steps]
    return value


@pytest.mark.parametrize("shape", SHAPES + GATED)
def test_layers_interpolate_between_vertices(shape: Any) -> None:
    """At whole coordinates, where every layer is exact; with gates, of the place whose gate is open."""
    m, D, H, gates, q = shape
    layers, rng = made(*shape), np.random.default_rng(1)
    found = recognise(layers)
    assert found is not None
    for place in range(max(gates, 1)):
        t = rng.integers(0, int(D * H) + 1, (20, m)).astype(np.float64)
        opened = np.tile(np.eye(gates)[place], (20, 1)) if gates else np.zeros((20, 0))
        out = run_stack(layers, exact(np.concatenate([t, opened], axis=1)), REAL)
        assert not out.r.any()
        F = found.values[..., place * q : (place + 1) * q]
        for x, y in zip(t, out.m, strict=True):
            assert y.tolist() == interpolated(F, [Fraction(int(c), int(H)) for c in x])


def changed(layers: Layers, k: int, part: str, at: int, by: float) -> Layers:
    a = getattr(layers[k], part).copy()
    a.ravel()[at] += by
    return (*layers[:k], replace(layers[k], **{part: a}), *layers[k + 1 :])


@pytest.mark.parametrize("shape", SHAPES + GATED)
def test_every_number_but_the_values_is_compared(shape: Any) -> None:
    m, gates = shape[0], shape[3]
    layers = made(*shape)
    free = {(m + 1, "weight"), (m + 1, "bias")} if not gates else {(m + 2, "bias")}
    V = (shape[1] + 1) ** m
    for k, layer in enumerate(layers):
        for part in ("weight", "bias"):
            for at in range(getattr(layer, part).size):
                value = (k, part) in free or (
                    gates and k == m + 1 and part == "weight" and at < V * gates * shape[4]
                )
                if not value:
                    for by in (1.0, -0.5):
                        assert recognise(changed(layers, k, part, at, by)) is None, (k, part, at)


def test_values_behind_gates_are_not_negative_and_stay_below_half_a_wall() -> None:
    layers = made(2, 1, 4.0, 2, 1)  # W[0] is 7, and W[1] is 0
    assert recognise(changed(layers, 3, "weight", 2, -1e-9)) is None
    assert recognise(changed(layers, 3, "weight", 2, 1e-9)) is not None
    assert recognise(changed(layers, 3, "weight", 0, 1e-9)) is None
    assert recognise(changed(layers, 3, "weight", 0, -1e-9)) is not None
    flat = interpolating(np.zeros((4, 2)), 2, 4.0, 2, 0.0)
    assert recognise(flat) is not None
    assert recognise(interpolating(np.full((4, 2), 1e-9), 2, 4.0, 2, -1.0)) is None


def test_a_grid_is_of_whole_numbers_below_those_that_float32_has() -> None:
    for H, fits in ((1.0, True), (2.0, True), (0.0, False), (-1.0, False), (1.5, False), (0.5, False)):
        assert (recognise(interpolating(values(1, 2, 1), 1, H)) is not None) == fits, H
        assert (recognise(interpolating(values(2, 1, 1), 2, H)) is not None) == fits, H
    for D, H, fits in ((1, 2.0**24 - 1, True), (1, 2.0**24, False), (2, 2.0**23 - 1, True), (2, 2.0**23, False)):
        assert (recognise(interpolating(values(1, D, 1), 1, H)) is not None) == fits
    for D in (1, 2):  # between the bounds on the ends of a grid and on its spacing
        assert recognise(interpolating(values(1, D, 1), 1, 2.0**24 / D - 1)) is not None


def test_layers_of_other_shapes_are_no_hats() -> None:
    """One axis more or less, layers in another order, or another number of vertices, gates or units."""
    for shape in (SHAPES[2], GATED[2]):
        layers = made(*shape)
        first, *blocks, tail = layers
        for other in (
            layers[1:],
            layers[:-1],
            (first, first, *blocks, tail),
            (*layers, tail),
            (*layers, tail, tail),
            (blocks[0], first, *blocks[1:], tail),
            (first, tail),
            (first, tail, tail),
            (first, *blocks, Layer(tail.weight[None], tail.bias)),
            (Layer(first.weight[None], first.bias), *blocks, tail),
        ):
            assert recognise(other) is None
    (first, *blocks, tail), gated = made(*SHAPES[2]), made(*GATED[2])
    assert recognise((first, *blocks, *gated[-2:])) is None  # two layers after hats without gates
    assert recognise((*gated[:3], tail)) is None  # one layer after hats with gates
    assert recognise((first, *blocks, Layer(tail.weight, tail.bias), Layer(np.ones((1, 1)), np.ones(1)))) is None


def test_a_vertex_has_two_units_for_each_axis() -> None:
    first, block, tail = made(*SHAPES[0])
    for units in (1, 3):
        other = Layer(np.ones((1, 2 * units)), np.zeros(2 * units)), Layer(np.full((2, units, 1), -1.0), block.bias)
        assert recognise((*other, tail)) is None
    assert recognise((first, block, tail)) is not None


def cut(layers: Layers, keep: Any) -> Layers:
    """Only some vertices."""
    first, *blocks, tail = layers
    m, G = first.inputs, len(keep)
    units = np.arange(first.bias.size).reshape(-1, 2 * m)[keep].ravel()
    left = [Layer(first.weight[:, units], first.bias[units])]
    left += [Layer(b.weight[keep], b.bias.reshape(-1, b.weight.shape[2])[keep].ravel()) for b in blocks]
    assert left[0].bias.size == G * 2 * m
    return (*left, Layer(tail.weight[keep], tail.bias))


def test_every_vertex_of_a_grid_is_there_once_and_in_order() -> None:
    square, line, cube = (made(*shape) for shape in (SHAPES[3], SHAPES[1], SHAPES[4]))
    assert recognise(cut(square, np.arange(9))) is not None
    for layers, count in ((square, 9), (line, 4), (cube, 8)):
        for dropped in range(count):
            kept = np.delete(np.arange(count), dropped)
            smaller = recognise(cut(layers, kept))
            assert (smaller is not None) == (layers is line and dropped == count - 1), dropped
        swapped = np.arange(count)
        swapped[[0, 1]] = 1, 0
        assert recognise(cut(layers, swapped)) is None
        assert recognise(cut(layers, np.append(np.arange(count), count - 1))) is None
    for keep in ([0], [0, 1], [0, 1, 2]):
        assert recognise(cut(square, np.array(keep))) is None
    assert recognise(cut(line, np.array([0]))) is None


def fewer_inputs(layers: Layers, rows: int) -> Layers:
    return (Layer(layers[0].weight[:rows], layers[0].bias), *layers[1:])


def test_there_are_coordinates_for_all_axes_and_a_layer_more_for_gates() -> None:
    for shape in (*SHAPES[2:], *GATED[2:]):
        layers = made(*shape)
        for rows in range(1, layers[0].inputs):
            assert recognise(fewer_inputs(layers, rows)) is None
        wider = np.concatenate([layers[0].weight, np.zeros((1, layers[0].bias.size))])
        assert recognise((Layer(wider, layers[0].bias), *layers[1:])) is None


def test_gates_go_with_outputs() -> None:
    """Walls and answers of another number of outputs than there are."""
    layers = made(*GATED[3])
    *front, walls, answers = layers
    for other in (
        (Layer(walls.weight[:, :3], walls.bias[:3]), Layer(answers.weight[:3], answers.bias)),
        (walls, Layer(answers.weight[:, :1], answers.bias[:1])),
        (walls, Layer(answers.weight[::-1].copy(), answers.bias)),
        (Layer(walls.weight[:, ::-1].copy(), walls.bias), answers),
    ):
        assert recognise((*front, *other)) is None
