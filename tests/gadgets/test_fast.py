"""The search gives what the dense network gives: to the bit on stored data and outside the ramps."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import approximate
from onelayer.gadgets.stacks import find_search, read_stack
from onelayer.network import Grouped, Linear
from onelayer.network.blocks import apply_stack

memorize = partial(onelayer.memorize, certify=False)

rng = np.random.default_rng(2)
X = rng.standard_normal((60, 8, 5))


@pytest.fixture(scope="module", params=[("float64", 1), ("float32", 2), ("float64", 3)], ids=str)
def model(request):
    dtype, rank = request.param
    return memorize(X, rng.standard_normal((60, 8, 2)), dtype=dtype, rank=rank)


def test_is_found_and_equals_the_dense_network_on_stored_data(model) -> None:
    assert model.evaluator.searches["readout"] is not None
    sequences = model.read(X)
    np.testing.assert_array_equal(model.outputs(sequences, "fast"), model.outputs(sequences, "dense"))


def test_equals_the_dense_network_on_unknown_inputs_outside_the_ramps(model) -> None:
    unknown = model.read(rng.standard_normal((300, 8, 5)))
    fast, dense = model.outputs(unknown, "fast"), model.outputs(unknown, "dense")
    trapezoids = model.trace(unknown.tokens)["readout.2"]
    saturated = ((trapezoids == 0) | (trapezoids == 1)).all(-1)
    assert saturated.mean() > 0.3
    np.testing.assert_array_equal(fast[saturated], dense[saturated])
    np.testing.assert_allclose(fast, dense, rtol=1e-5, atol=1e-5)


def test_far_away_inputs_fall_on_the_outermost_plateau() -> None:
    line = memorize(X, rng.standard_normal((60, 8)))
    far = line.read(np.full((1, 8, 5), 1e9) * np.array([1, -1, 1, -1, 1, -1, 1, -1])[:, None])
    np.testing.assert_array_equal(line.outputs(far, "fast"), line.outputs(far, "dense"))


@pytest.mark.parametrize("spoil", ["order", "other coordinate", "shape"])
def test_other_stacks_are_left_to_the_dense_pass(spoil: str) -> None:
    layers = memorize(X, rng.standard_normal((60, 8)), rank=2).transformer.readout
    bottleneck, units, group, values = layers
    assert find_search(layers, read_stack(layers)) is not None
    if spoil == "order":
        units = Linear(units.weight, units.bias[::-1].copy())
    elif spoil == "other coordinate":
        weight = units.weight.copy()
        weight[1, 0] = 1.0
        units = Linear(weight, units.bias)
    else:
        group = Grouped(group.weight.reshape(-1, 2, 1), np.ones(2 * len(group.bias)))
    other = (bottleneck, units, group, values)
    assert find_search(other, read_stack(other)) is None


def test_the_trapezoids_on_a_line_add_up_to_one() -> None:
    line = memorize(X, rng.standard_normal((60, 8)))
    t = np.sort(rng.uniform(-10, 1000, (5000, 1)), axis=0)
    indicators = apply_stack(line.transformer.readout[1:3], t)
    np.testing.assert_allclose(np.maximum(indicators, 0).sum(1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("target", "n", "construction"),
    [
        ("softmax", 2, "positional"),
        ("reversal", 2, "positional"),
        ("sort", 3, "positional"),
        ("standardise", 2, "positional"),
        ("polynomial", 2, "quantise"),
    ],
)
def test_approximations_by_search(target, n, construction) -> None:
    """Hats, few or many, and values behind a retrieval: where the bound holds, as the dense network."""
    model = approximate(target, n=n, tolerance=0.1, construction=construction)
    X = model.interface.box.admit(np.random.default_rng(0).uniform(0, 1, (3000, n, 1)))
    assert any(search is not None for search in model.evaluator.searches.values())
    fast, dense = model.predict(X, path="fast"), model.predict(X, path="dense")
    if construction == "quantise":
        np.testing.assert_array_equal(fast, dense)
    else:
        np.testing.assert_allclose(fast, dense, rtol=0, atol=1e-6)
