"""Steps and the affine map behind them are searched as one, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer import memorize
from onelayer.gadgets.affine import Affine
from onelayer.gadgets.stacks import find_search, read_stack
from onelayer.gadgets.staircase import WORTHWHILE, Staircase
from onelayer.gadgets.steps import Steps
from onelayer.network import Linear
from onelayer.network.blocks import apply_stack

DTYPES = ("float32", "float64")


def stairs(seed: int, dtype: str, size: int = 1000, steps: int = 40) -> tuple[Steps, Affine]:
    """Of two components, the second also passed on."""
    rng = np.random.default_rng(seed)
    component = np.sort(rng.integers(0, 2, steps))
    starts = np.concatenate([np.sort(rng.choice(300, (component == i).sum(), replace=False)) for i in range(2)])
    slope = np.full(steps, 2, dtype)
    carried = np.array([[0, 0], [1, -1]], dtype)
    weight = rng.integers(-size, size + 1, (steps + 2, 3)).astype(dtype)
    bias = rng.integers(-size, size + 1, 3).astype(dtype)
    return Steps(component, slope, (1.5 + 2 * starts).astype(dtype), carried), Affine(Linear(weight, bias))


@given(st.integers(0, 99), st.sampled_from(DTYPES))
def test_gives_what_the_layers_give_for_whole_and_for_other_numbers(seed: int, dtype: str) -> None:
    parts = stairs(seed, dtype)
    found = Staircase.of(*parts)
    assert found is not None
    rng = np.random.default_rng(seed)
    tokens = rng.integers(-50, 400, (60, 2)).astype(dtype)
    tokens[:20] += rng.choice([0.25, 0.5, 0.75], (20, 2))  # on ramps
    tokens[20] = found.largest
    tokens[21] = 4e7  # beyond what whole numbers are sure up to
    by_search, by_layers = found.search(tokens), apply_stack(found.layers, tokens)
    np.testing.assert_array_equal(by_search[22:], by_layers[22:])
    np.testing.assert_array_equal(by_search[20], by_layers[20])
    np.testing.assert_allclose(by_search, by_layers, rtol=1e-5)  # sums of fractions depend on how many are asked


def test_whole_tokens_are_not_left_to_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Staircase.of(*stairs(1, "float32"))
    assert found is not None
    wanted = apply_stack(found.layers, np.array([[17, 130]], "float32"))
    monkeypatch.setattr("onelayer.gadgets.staircase.apply_stack", None)
    np.testing.assert_array_equal(found.search(np.array([[17, 130]], "float32")), wanted)


@pytest.mark.parametrize(
    "parts",
    [
        stairs(0, "float32", steps=WORTHWHILE - 1),
        stairs(0, "float32", size=1 << 22),  # sums are rounded
        (stairs(0, "float32")[0], Affine(Linear(np.full((42, 3), 0.3, "float32"), np.zeros(3, "float32")))),
        (stairs(0, "float32")[1], stairs(0, "float32")[1]),
        (stairs(0, "float32")[0], None),
    ],
    ids=["few", "too large", "not whole", "no steps", "nothing behind"],
)
def test_is_for_many_steps_whose_sums_are_exact(parts) -> None:
    assert Staircase.of(*parts) is None


def test_a_stack_is_searched_across_both_gadgets() -> None:
    (steps, affine), (more, last) = stairs(3, "float32"), stairs(4, "float32", size=2)
    turned = Affine(Linear(np.abs(affine.layer.weight[:, :2]), np.zeros(2, "float32")))  # back to two components
    layers = (*steps.dense, *turned.dense, *more.dense, *last.dense)
    search = find_search(layers, read_stack(layers))
    assert search is not None
    tokens = np.random.default_rng(0).integers(0, 400, (5, 20, 2)).astype("float32")
    np.testing.assert_array_equal(search(tokens), apply_stack(layers, tokens))


def test_contexts_of_many_ids_are_the_same_by_search() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 20_000, (3_000, 8)), rng.integers(0, 9, (3_000, 8))
    model = memorize(X, Y, positions=True, certify=False)
    assert model.evaluator.searches["feedforward"] is not None
    some = model.read(X[:300])
    np.testing.assert_array_equal(model.outputs(some), model.outputs(some, "dense"))
