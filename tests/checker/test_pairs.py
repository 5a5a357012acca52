"""Two layers as cells and steps: which groups are, in which blocks, and what becomes of the others beside them."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.balls import REAL, exact
from onelayer_checker.core.layers import Layer, run_stack
from onelayer_checker.search import plan
from onelayer_checker.search.plan import Plan
from tests.checker.test_plans import kinds, not_written_again
from tests.checker.test_search import carried, last, line, stacked
from tests.checker.test_steps_and_cells import staircase

FINE = np.arange(0, 160) / 16  # ramps of slope 4 or 2 are met where their units are between 1 and 2


def points(c: int) -> np.ndarray:
    rng = np.random.default_rng(c)
    return np.stack([FINE, *(rng.permutation(FINE) for _ in range(c - 1))], axis=1)


def found(*layers: Layer, least: float = 0.3) -> list[str]:
    """The operations of a plan that decides many points, each of them as the layers do."""
    made = Plan.of(layers, REAL)
    assert made is not None
    not_written_again(made)
    t = exact(points(layers[0].inputs))
    y, unknown = made.run(t, REAL)
    dense = run_stack(layers, t, REAL)
    assert (np.abs(y.m - dense.m) <= y.r + dense.r)[~unknown].all()
    assert (y.r < 1e-9)[~unknown].all()
    assert (~unknown).mean() > least
    return kinds(made.operations)


def answers(inputs: int, outputs: int = 2) -> Layer:
    return last(np.random.default_rng(inputs), inputs, outputs, whole=True)


def test_a_group_of_other_weights_or_another_bias_is_no_cell() -> None:
    """With half the weight it is off only where its unit is 2, and with twice the bias it is 2 where it is on."""
    units, groups = stacked(line(2, 4, 6, 8))
    assert found(units, groups, answers(5)) == ["Decide", "Collect"]
    for place, value in (((2, 0, 0), -0.5), ((2, 1, 0), -0.5), ((2, slice(None), 0), -0.5), ((2, 0, 0), 1.0)):
        weight = groups.weight.copy()
        weight[place] = value
        operations = found(units, Layer(weight, groups.bias), answers(5))
        assert operations[:2] == ["Decide", "Decide"]
        assert "Evaluate" in operations
    for value in (2.0, 0.5, 0.0):
        bias = groups.bias.copy()
        bias[2] = value
        assert "Evaluate" in found(units, Layer(groups.weight, bias), answers(5))


@pytest.mark.parametrize(("blocks", "outputs"), [(2, 1), (2, 3), (4, 1), (4, 2)])
@pytest.mark.parametrize("before", [False, True])
def test_cells_that_different_blocks_read_are_different_families(blocks, outputs, before) -> None:
    """Along one coordinate, and also where another layer stands before them."""
    rng = np.random.default_rng(blocks)
    following = Layer(np.round(rng.standard_normal((blocks, 8 // blocks, outputs)) * 9), np.zeros(blocks * outputs))
    layers = [*stacked(line(*range(1, 8))), following, answers(blocks * outputs)]
    first = [Layer(np.ones((1, 1)), np.full(1, 0.5))] if before else []
    operations = found(*first, *layers)
    assert operations[: blocks + before] == ["Evaluate"] * before + ["Decide"] * blocks
    assert operations.count("Decide") == blocks


def test_a_diagonal_layer_divides_no_family() -> None:
    scaled = Layer(np.arange(1.0, 5).reshape(4, 1, 1), np.zeros(4))
    assert found(*stacked(line(2, 4, 6)), scaled, answers(4)) == ["Decide", "Collect"]


@pytest.mark.parametrize("at", [0, 3, 5])
def test_groups_that_are_neither_cells_nor_steps_are_evaluated(at) -> None:
    """Both of their units count, also where they are below 0, and so do groups below 0."""
    units, groups = stacked(line(1, 3, 5, 7))
    W, b = units.weight.reshape(1, 5, 2), units.bias.reshape(5, 2)
    other = np.array([[[1.0, -2.0], [3.0, 1.0]]]), np.array([[-4.0, 6.0], [-9.0, -5.0]])
    W = np.concatenate([W[:, :at], other[0], W[:, at:]], axis=1).reshape(1, -1)
    b = np.concatenate([b[:at], other[1], b[at:]]).ravel()
    weight = np.concatenate([groups.weight[:at], [[[1.0], [-3.0]], [[-2.0], [1.0]]], groups.weight[at:]])
    bias = np.concatenate([groups.bias[:at], [0.5, 7.0], groups.bias[at:]])
    operations = found(Layer(W, b), Layer(weight, bias), answers(7))
    assert operations.count("Evaluate") == 2
    assert operations[0] == "Decide"


def test_groups_that_only_cells_feed_are_no_cells() -> None:
    """No coordinate is left to search along: what follows is looked up."""
    rng = np.random.default_rng(1)
    units, groups = (
        Layer(np.round(rng.standard_normal((4, 6)) * 3), np.zeros(6)),
        Layer(-np.ones((3, 2, 1)), np.ones(3)),
    )
    assert found(*stacked(line(2, 4, 6)), units, groups, answers(3)).count("Decide") == 1


def rows_and_a_number() -> list[Layer]:
    """Four cells along the first coordinate, and the second one carried."""
    return carried(stacked(line(2, 4, 6), (np.zeros((1, 0, 1)), np.zeros((0, 1)))), 1)


def test_cells_along_a_number_that_stands_beside_other_cells() -> None:
    """Those that read only the number are decided; one that reads the cells, too, is evaluated."""
    W, b = line(2, 4, 6, 8)
    K = W.shape[1]
    units = np.concatenate([np.zeros((4, K, 2)), W])
    groups = Layer(-np.ones((K, 2, 1)), np.ones(K))
    operations = found(*rows_and_a_number(), Layer(units.reshape(5, -1), b.ravel()), groups, answers(K))
    assert operations == ["Decide", "Evaluate", "Evaluate", "Decide", "Collect"]
    units[:4, 2] = 1
    operations = found(*rows_and_a_number(), Layer(units.reshape(5, -1), b.ravel()), groups, answers(K))
    assert operations.count("Decide") == 3
    assert "Add" in operations


def test_each_step_is_taken_once_and_only_if_it_is_one() -> None:
    """The first reads no row, and is a staircase of its own; the last two are relu(1 - u / 2) and relu(2 - u)."""
    table = np.array([[0.0, 1, 2, 5, 6, 7], [0, 2, 2, 3, 4, 9], [0, 0, 4, 4, 5, 5], [0, 1, 1, 1, 2, 8]])
    units = Layer(4 * np.concatenate([table, np.full((1, 6), -1.0)]), np.zeros(6))
    groups = Layer(np.array([-1, -1, -1, -1, -0.5, -1]).reshape(6, 1, 1), np.array([1.0, 1, 1, 1, 1, 2]))
    operations = found(*rows_and_a_number(), units, groups, answers(6), least=0.15)
    assert operations.count("DecideInRow") == 1
    assert operations.count("Decide") == 2


def test_steps_beside_cells_along_the_same_coordinate() -> None:
    assert found(*stacked(line(2, 4, 6), staircase(1, 3, 5)), answers(7)) == ["Decide", "Decide", "Add"]


def test_more_families_than_are_looked_for_one_by_one(monkeypatch) -> None:
    layers = (*stacked(line(2, 4, 6), line(3, 5), line(4, 5)), answers(10))
    for most in (3, 2):
        monkeypatch.setattr(plan, "MOST_FAMILIES", most)
        assert ("Evaluate" in found(*layers, least=0.1)) == (most < 3)
