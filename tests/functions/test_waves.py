"""Sums of waves: as near as was asked for, few, and with small weights."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.compile.asked import request_for
from onelayer.functions.smallest import smallest
from onelayer.functions.waves import Waves, dyadic, fit_waves

S = -np.cos(np.linspace(0, np.pi, 401))


def at(waves: Waves, s: np.ndarray) -> np.ndarray:
    angle = s[:, None] * np.array([float(w) for w in waves.frequencies])
    return waves.constant + np.sin(angle) @ waves.sines + np.cos(angle) @ waves.cosines


def test_a_force_takes_half_as_many_waves_as_those_of_one_period() -> None:
    f = S / (0.1 + S * S)
    found = fit_waves(S, f, 0.002)
    assert found is not None
    assert len(found.frequencies) <= 5  # 9 of one period
    assert (found.constant, np.abs(found.cosines).max()) == (0, 0)
    assert np.abs(at(found, S) - f).max() == pytest.approx(found.error)
    assert found.error <= 0.002
    assert found.size <= 3


@pytest.mark.parametrize("f", [np.cos, lambda s: np.exp(-s * s), lambda s: np.tanh(3 * s + 1), np.ones_like])
def test_between_the_points_they_are_as_near(f) -> None:
    found = fit_waves(S, f(S), 1e-3)
    assert found is not None
    s = np.linspace(-1, 1, 3001)
    assert np.abs(at(found, s) - f(s)).max() <= 1.01e-3
    if f(0.3) == f(-0.3):
        assert np.abs(found.sines).max() == 0


def test_what_has_a_corner_takes_too_many() -> None:
    assert fit_waves(S[::2], np.sign(S[::2]), 1e-3) is None


def test_frequencies_have_few_bits() -> None:
    assert dyadic(0.1) * 4096 == 410


def test_a_force_takes_fewer_than_five_thousand_numbers_and_blocks_of_one_number() -> None:
    target = request_for("mean((y - x)/(0.1 + (y - x)**2))", n=5, tolerance=0.01).target.pooled
    assert target is not None
    made = smallest(target, [(0.0, 1.0)], 5, 0.0092, np.dtype("float32"))[1].transformer
    assert made.n_parameters <= 5_000
    assert [layer.weight.ndim for layer in made.readout] == [2, 3, 2]
    assert made.readout[1].weight.shape[1] == 1
