"""Errors fall with the number of cells at the rates of theory, measured and proved; edges cost nothing."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rates import ALLOWED, LEVELS, SMOOTH, THEORY, fit_rate, point
from onelayer.functions.positional import Lattice, at_vertices, interpolate

SMALL = {1: (8, 16, 32, 64), 2: (6, 9, 13, 19), 3: (4, 5, 7)}


def deviations(target: str, n: int, construction: str, levels: tuple[int, ...], samples: int) -> list[float]:
    points = [point(target, n, construction, D, samples) for D in levels]
    assert all(p.measured <= p.proved for p in points)
    row = fit_rate(target, n, construction, points)
    return [row["deviation %"] / 100, row["deviation of the proved %"] / 100]


@pytest.mark.parametrize("construction", THEORY)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_errors_fall_at_the_rate_of_theory(construction, n) -> None:
    assert np.abs(deviations("x * mean(y)", n, construction, SMALL[n], 20_000)).max() <= ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize("construction", THEORY)
@pytest.mark.parametrize(("target", "n"), [(target, n) for target, lengths in SMOOTH[1:] for n in lengths])
def test_rates_of_other_targets(construction, target, n) -> None:
    assert np.abs(deviations(target, n, construction, LEVELS[n][1:5], 50_000)).max() <= ALLOWED


@pytest.mark.parametrize("levels", [1, 3, 128, 1000])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.3, 0.7), (1000.3, 1001.0)])
def test_cells_that_stick_out_of_the_box_cost_nothing(levels, low, high) -> None:
    """What is linear on every simplex is interpolated without an error, up to the ends of the box."""
    low, high = (float(np.float32(end)) for end in (low, high))
    lattice = Lattice(2, 1, low, high, levels, np.dtype(np.float32))
    assert lattice.levels * lattice.spacing < 2**24

    def ordered(X: np.ndarray) -> np.ndarray:
        return np.sort(X[:, :, 0], axis=1)

    def inside(X: np.ndarray) -> np.ndarray:
        assert low <= X.min()
        assert X.max() <= high
        return ordered(X)

    X = np.random.default_rng(0).uniform(low, high, (1000, 2, 1))
    X[::2, 0], X[::3, 1] = high, low
    found = interpolate(at_vertices(inside, lattice), lattice, X)
    np.testing.assert_allclose(found, ordered(X), rtol=0, atol=1e-9)
