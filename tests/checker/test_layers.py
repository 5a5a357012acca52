"""Layers and stacks of layers over balls, against exact rationals: what is inside, exact, or not known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core import layers
from onelayer_checker.core.balls import FLOAT32, REAL, Ball, exact, relu
from onelayer_checker.core.layers import Layer, Stack, run_stack
from tests.checker.large import ARITHMETICS

EVERY = list(ARITHMETICS.values())


def rational(layer: Layer, x: list[Fraction]) -> list[Fraction]:
    """x W + b, or the same block by block."""
    W = layer.weight if layer.weight.ndim == 3 else layer.weight[None]
    groups, a, b = W.shape
    out = []
    for g in range(groups):
        for j in range(b):
            terms = (x[g * a + i] * Fraction(W[g, i, j]) for i in range(a))
            out.append(sum(terms, Fraction(layer.bias[g * b + j])))
    return out


def through(stack: list[Layer], x: list[Fraction]) -> list[Fraction]:
    for i, layer in enumerate(stack):
        x = rational(layer, x if i == 0 else [max(a, Fraction(0)) for a in x])
    return x


def inside(values: list[Fraction], ball: Ball, row: int) -> bool:
    return all(
        abs(v - Fraction(m)) <= Fraction(r)
        for v, m, r in zip(values, ball.m[row].tolist(), ball.r[row].tolist(), strict=True)
    )


def random_layer(rng, *shape: int, whole: bool = False) -> Layer:
    W = rng.standard_normal(shape)
    b = rng.standard_normal(shape[-1] * (shape[0] if len(shape) == 3 else 1))
    return Layer(np.round(4 * W), np.round(4 * b)) if whole else Layer(W, b)


def test_a_layer_knows_its_inputs_and_whether_it_is_whole() -> None:
    assert Layer(np.zeros((5, 2)), np.zeros(2)).inputs == 5
    assert Layer(np.zeros((3, 5, 2)), np.zeros(6)).inputs == 15
    assert Layer(np.zeros((3, 5, 1)), np.zeros(3)).inputs == 15
    for weight, bias, whole in (
        ([[3, -7]], [2, 0], 7),
        ([[3, -4]], [-9, 0], 9),
        ([[3.5, 4]], [1, 0], np.inf),
        ([[3, 4]], [1, 0.25], np.inf),
        ([[0.5, 4]], [0.5, 0.25], np.inf),
        ([[[2], [1]]], [2.0**-1074], np.inf),
        ([[0, 0]], [0, 0], 0),
    ):
        assert Layer(np.asarray(weight, float), np.asarray(bias, float)).whole == whole


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (3, 1, 2), (3, 2, 1)])
@pytest.mark.parametrize("whole", [False, True])
def test_a_layer_encloses_its_product(A, shape, whole) -> None:
    """Points of balls of several rows, each group with its own inputs and its own bias."""
    rng = np.random.default_rng([len(A.name), *shape])
    for radius in (0.0, 0.25):
        layer = random_layer(rng, *shape, whole=whole)
        x = Ball(np.round(3 * rng.standard_normal((5, layer.inputs))), np.full((5, layer.inputs), radius))
        y = layer.apply(x, A)
        assert y.m.shape == y.r.shape == (5, layer.bias.size)
        for row in range(5):
            for sign in (-1, 0, 1):
                point = [Fraction(m) + sign * Fraction(radius) for m in x.m[row].tolist()]
                assert inside(rational(layer, point), y, row)
        assert y.r.any() == bool(radius or not whole)  # whole numbers add without rounding


def test_what_adds_without_rounding_is_exact_and_nothing_else_is() -> None:
    """One term that is a product with a power of two; and a sum of two that is rounded."""
    layer = Layer(np.array([[0.5, 0.5], [0, 0.3]]), np.zeros(2))
    y = layer.apply(exact(np.array([[0.1, 0.7], [3.0, 0.0]])), FLOAT32)
    assert (y.r == 0).tolist() == [[True, False], [True, True]]
    assert y.m[:, 0].tolist() == [0.05, 1.5]
    unknown = Ball(np.array([[2.0, 0.7]]), np.array([[0.0, 0.125]]))  # the second input alone is not known
    layer = Layer(np.array([[0.3, 0.5], [0, 0.3]]), np.zeros(2))
    assert (layer.apply(unknown, FLOAT32).r == 0).tolist() == [[True, False]]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_an_exact_product_that_overflows_is_not_known(A) -> None:
    """A power of two times a power of two, beyond what the arithmetic holds."""
    for W in (np.full((1, 1), A.big), np.full((1, 1, 1), A.big)):
        for b in (0.0, 0.5):
            with np.errstate(over="ignore", invalid="ignore"):
                y = Layer(W, np.full(1, b)).apply(exact(np.full((1, 1), A.big / 4)), A)
            assert np.isinf(y.r).all()


def test_what_is_not_known_stays_unknown() -> None:
    unknown = Ball(np.array([[1.0, 0.0]]), np.array([[0.0, np.inf]]))
    for W in (np.array([[1.0], [0.0]]), np.array([[1.0], [0.5]]), np.array([[[1.0]], [[0.0]]])):
        layer = Layer(W, np.zeros(W.shape[-1] * (len(W) if W.ndim == 3 else 1)))
        with np.errstate(invalid="ignore"):
            assert np.isinf(layer.apply(unknown, FLOAT32).r[0, -1])


STACKS = {
    "one": [(4, 3)],
    "full layers": [(4, 3), (3, 2), (2, 2)],
    "blocks first": [(2, 2, 3), (6, 2), (2, 1)],
    "blocks of blocks": [(2, 2, 3), (3, 2, 2), (6, 1)],
    "blocks, then full": [(4, 10), (5, 2, 1), (5, 2)],
    "blocks of two outputs": [(4, 10), (5, 2, 2), (10, 2), (2, 1)],
    "blocks, then blocks": [(4, 10), (5, 2, 2), (5, 2, 1)],
    "blocks, then larger blocks": [(4, 12), (6, 2, 1), (2, 3, 2), (4, 1)],
    "blocks last": [(4, 10), (5, 2, 1)],
    "pairs twice": [(4, 6), (3, 2, 1), (3, 8), (4, 2, 1), (4, 2)],
}


@pytest.mark.parametrize("part", [1, 2, 5, layers.PART])
@pytest.mark.parametrize("name", STACKS)
def test_a_stack_is_its_layers_one_after_the_other(monkeypatch, part, name) -> None:
    """Whatever number of blocks is evaluated at a time, and whichever of them are zero."""
    monkeypatch.setattr(layers, "PART", part)
    rng = np.random.default_rng([part, len(name)])
    for off in (0.0, 1.0, 30.0):  # with a bias far below zero most units are off
        stack = [random_layer(rng, *shape) for shape in STACKS[name]]
        stack = [Layer(layer.weight, layer.bias - off * rng.random(layer.bias.size)) for layer in stack]
        stack[-1] = random_layer(rng, *STACKS[name][-1])
        m = rng.standard_normal((6, stack[0].inputs))
        for radius in (0.0, 0.05):
            y = run_stack(tuple(stack), Ball(m, np.full_like(m, radius)), REAL)
            for row in range(len(m)):
                point = [Fraction(a) + Fraction(radius) * int(rng.integers(-1, 2)) for a in m[row].tolist()]
                assert inside(through(stack, point), y, row)
            if radius == 0:
                assert (y.r < 1e-12).all()


ON = Layer(np.ones((1, 4)), np.array([0.0, -10, -10, -20]))  # units that begin one after the other
COPIES = Layer(np.ones((4, 1, 1)), np.zeros(4))
VALUES = np.array([[1.0], [0.3], [0.7], [0.9]])


@pytest.mark.parametrize("part", [1, 4])
def test_blocks_that_are_zero_in_every_row_add_not_even_a_rounding(monkeypatch, part) -> None:
    monkeypatch.setattr(layers, "PART", part)
    stack = (ON, COPIES, Layer(VALUES, np.zeros(1)))
    y = run_stack(stack, exact(np.array([[0.1], [3.3]])), FLOAT32)
    assert y.r.tolist() == [[0.0], [0.0]]
    assert y.m.tolist() == [[0.1], [3.3]]


def test_many_blocks_that_are_zero_cost_no_more_than_none(monkeypatch) -> None:
    """Each sum is of the two blocks that are on, with the radius that two terms have."""
    monkeypatch.setattr(layers, "PART", 2)
    x, many = exact(np.array([[0.7], [0.9]])), 300
    begins, values = np.r_[0.0, -0.1, np.full(many, -5.0)], np.full((2 + many, 1), 0.3)
    layers_of = [
        (
            Layer(np.ones((1, k)), begins[:k]),
            Layer(np.ones((k, 1, 1)), np.zeros(k)),
            Layer(values[:k], np.full(1, 0.2)),
            Layer(np.ones((1, 1)), np.zeros(1)),
        )
        for k in (2, 2 + many)
    ]
    for length in (3, 4):
        few, all_ = (run_stack(stack[:length], x, FLOAT32).r for stack in layers_of)
        assert (few[:, 0] > 0).all()
        assert (all_ <= few * (1 + 1e-9)).all()


@pytest.mark.parametrize("part", [1, 4])
def test_a_block_that_is_on_anywhere_is_kept(monkeypatch, part) -> None:
    """In one row or in all; by one, by another number, or only perhaps."""
    monkeypatch.setattr(layers, "PART", part)
    stack = (ON, COPIES, Layer(VALUES, np.zeros(1)))
    for t in ([0.1, 12.0], [12.0, 12.0], [11.0, 11.0], [11.0], [12.0]):
        y = run_stack(stack, exact(np.array(t)[:, None]), REAL)
        for value, m, r in zip(t, y.m[:, 0], y.r[:, 0], strict=True):
            assert abs(m - (value + max(value - 10, 0))) <= r < 1e-9
    for rows in ([[0.1, 0.0], [9.0, 2.0]], [[9.0, 2.0]]):
        m, r = np.array(rows).T[:, :, None]
        assert run_stack(stack, Ball(m, r), REAL).r[-1, 0] >= 2 + 0.3 + 0.7


def test_a_block_that_is_perhaps_on_by_one_is_kept(monkeypatch) -> None:
    """Its midpoint is 0 and its radius exactly 1."""
    monkeypatch.setattr(layers, "PART", 1)

    def second(radius: float) -> tuple[Ball, float]:
        x = Ball(np.array([[10.0]]), np.array([[radius]]))
        block = relu(COPIES.apply(relu(ON.apply(x, REAL)), REAL))
        assert block.m[0, 1] == 0
        return x, float(block.r[0, 1])

    least = 1 / second(1.0)[1] - 2.0**-50
    x = next(x for x, r in (second(least + k * 2.0**-53) for k in range(64)) if r == 1)
    y = run_stack((ON, COPIES, Layer(np.array([[0.0], [1], [0], [0]]), np.zeros(1))), x, REAL)
    assert y.r[0, 0] >= x.r[0, 0]


def test_a_stack_without_layers_changes_nothing() -> None:
    x, layer = exact(np.ones((2, 3))), Layer(np.eye(3), np.ones(3))
    assert Stack(()).apply(x, REAL) is x
    assert Stack((layer,)).apply(x, REAL).m.tolist() == [[2, 2, 2]] * 2
    assert Stack((layer,)).disagrees(x, REAL).shape == (0,)


def test_the_last_layer_has_the_outputs() -> None:
    stack = Stack((Layer(np.ones((2, 5)), np.zeros(5)), Layer(np.ones((5, 3)), np.zeros(3))))
    assert stack.outputs == 3


def test_the_widest_layer_says_what_a_row_needs() -> None:
    wide, narrow = Layer(np.zeros((2, 7)), np.zeros(7)), Layer(np.zeros((7, 3)), np.zeros(3))
    assert Stack((wide, narrow)).widest == 7
    assert Stack(()).widest == 1


def test_the_effort_of_a_stack_is_counted_from_its_shapes() -> None:
    stack = Stack((Layer(np.zeros((3, 4)), np.zeros(4)), Layer(np.zeros((2, 2, 5)), np.zeros(10))))
    assert stack.effort(REAL) == pytest.approx(0.6 * (12 + 20) + 60 * (4 + 10), rel=1e-12)
    assert Stack(()).effort(REAL) == 0


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_blocks_may_follow_two_full_layers(A) -> None:
    rng = np.random.default_rng(11)
    stack = [random_layer(rng, *shape) for shape in ((2, 3), (3, 4), (2, 2, 2), (4, 1))]
    for size in (3, 4):
        layers_, x = tuple(stack[:size]), exact(np.round(8 * rng.standard_normal((4, 2))) / 8)
        y = run_stack(layers_, x, A)
        for row in range(4):
            assert inside(through(list(layers_), [Fraction(v) for v in x.m[row].tolist()]), y, row)
