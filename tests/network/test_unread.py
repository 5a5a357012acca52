"""Without units that nothing reads, a stack gives the same numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onelayer.network import Grouped, Linear
from onelayer.network.blocks import apply_stack
from onelayer.network.unread import cut_unread


def stack(rng: np.random.Generator, kinds: list[bool]) -> tuple:
    """Full layers (True) and layers in blocks with whole weights, so that every sum is exact; many are 0."""

    def whole(*shape: int) -> np.ndarray:
        return (rng.integers(-2, 3, shape) * (rng.random(shape) < 0.4)).astype(np.float64)

    layers, width = [], 4
    for full in kinds:
        if full:
            outputs = 2 * int(rng.integers(1, 5))
            layers.append(Linear(whole(width, outputs), whole(outputs)))
        else:
            outputs = width // 2 * int(rng.integers(1, 3))
            layers.append(Grouped(whole(width // 2, 2, outputs // (width // 2)), whole(outputs)))
            if outputs % 2:
                layers.append(Linear(whole(outputs, 2), whole(2)))
                outputs = 2
        width = outputs
    return tuple(layers)


@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), min_size=1, max_size=5))
def test_the_outputs_stay_and_no_unit_comes(seed: int, kinds: list[bool]) -> None:
    rng = np.random.default_rng(seed)
    layers = stack(rng, kinds)
    cut = cut_unread(layers)
    X = rng.integers(-5, 6, (9, 4)).astype(np.float64)
    np.testing.assert_array_equal(apply_stack(cut, X), apply_stack(layers, X))
    assert [type(layer) for layer in cut] == [type(layer) for layer in layers]
    assert all(a.width <= b.width for a, b in zip(cut, layers, strict=True))
    assert [layer.width for layer in cut_unread(cut)] == [layer.width for layer in cut]


def test_what_only_unread_units_read_goes_too() -> None:
    """The second block has no weight behind it, so that both units before it go."""
    units = Linear(np.ones((1, 4)), np.arange(4.0))
    blocks = Grouped(np.ones((2, 2, 1)), np.zeros(2))
    cut = cut_unread((units, blocks, Linear(np.array([[1.0], [0.0]]), np.zeros(1))))
    assert [layer.weight.shape for layer in cut] == [(1, 2), (1, 2, 1), (1, 1)]
    np.testing.assert_array_equal(cut[0].bias, [0, 1])


def test_a_layer_keeps_a_unit() -> None:
    cut = cut_unread((Linear(np.ones((1, 3)), np.ones(3)), Linear(np.zeros((3, 1)), np.full(1, 7.0))))
    assert cut[0].width == 1
    assert apply_stack(cut, np.ones((1, 1))) == 7
