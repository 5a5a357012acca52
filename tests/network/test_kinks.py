"""A unit between two others of its direction can go: nothing changes but between them, and there by little."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onelayer.network import Attention, Grouped, Linear, Transformer
from onelayer.network.blocks import apply_stack
from onelayer.network.kinks import find_kinks, spare

NOTHING = Attention(*(np.zeros((1, 2, 1)) for _ in range(3)), np.zeros((1, 1, 2)))


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, -1.0]))
def test_only_the_piece_between_the_neighbours_changes(seed: int, sign: float) -> None:
    rng = np.random.default_rng(seed)
    places = np.cumsum(rng.uniform(0.1, 1, 3))
    scale = np.exp2(rng.integers(-3, 4, 3))
    weight = np.outer([sign, 0.5], scale)
    out = rng.normal(size=(3, 2))
    network = Transformer(NOTHING, readout=(Linear(weight, -places * scale), Linear(out, np.zeros(2))))
    (kink,) = find_kinks(network)
    assert (kink.unit, kink.before, kink.after) == (1, 0, 2)
    z = np.linspace(places[0] - 1, places[2] + 1, 301)
    X = np.stack([sign * z, np.zeros_like(z)], axis=1)
    changed = apply_stack(spare(network, [kink]).readout, X) - apply_stack(network.readout, X)
    a, t, b = places
    assert np.abs(changed[(z <= a) | (z >= b)]).max() < 1e-12
    most = np.abs(out[1]) * scale[1] * (t - a) * (b - t) / (b - a)
    assert (np.abs(changed) <= most + 1e-12).all()
    at = apply_stack(spare(network, [kink]).readout, np.array([[sign * t, 0.0]]))
    before = apply_stack(network.readout, np.array([[sign * t, 0.0]]))
    np.testing.assert_allclose(np.abs(at - before)[0], most, atol=1e-12)  # attained at the kink


def test_units_of_other_directions_and_of_blocks_are_no_neighbours() -> None:
    weight = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    last = Linear(np.ones((3, 1)), np.zeros(1))
    assert find_kinks(Transformer(NOTHING, readout=(Linear(weight, np.arange(3.0)), last))) == []
    blocks = Grouped(np.ones((3, 1, 1)), np.zeros(3)), last
    parallel = Linear(np.ones((2, 3)), np.arange(3.0))
    assert find_kinks(Transformer(NOTHING, readout=(parallel, *blocks))) == []
    assert len(find_kinks(Transformer(NOTHING, readout=(parallel, last)))) == 1
