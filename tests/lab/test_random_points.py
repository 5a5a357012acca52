"""Bits that tell the nearest two of M normal points apart: the law against draws, mean and median."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.lab.experiments.rank import nearest_pair
from onelayer.lab.random_points import bits_of_nearest
from onelayer.statements import CATALOGUE


@pytest.mark.parametrize(("M", "s"), [(256, 1), (2048, 1), (512, 2), (2048, 4)])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_the_law_of_the_nearest_pair(M: int, s: int, scale: float) -> None:
    """Standard errors: log2 of an exponential has a deviation of 1.85 bits, over s, and there are 400 draws."""
    rng = np.random.default_rng([M, s])
    bits = np.array([np.log2(scale / nearest_pair(scale * rng.standard_normal((M, s)))) for _ in range(400)])
    error = 1.85 / s / 20
    assert abs(bits.mean() - bits_of_nearest(M, s)) < 4 * error
    assert abs(np.median(bits) - bits_of_nearest(M, s, median=True)) < 5 * error


def test_constants_are_those_of_the_statement() -> None:
    """2 log2(M)/s and a constant, -0.83 - 0.17/s on average, and -0.83 - 0.47/s for the median."""
    for s in (1, 2, 8):
        for name, slope in (("mean", 0.17), ("median", 0.47)):
            found = bits_of_nearest(1024, s, median=name == "median") - 20 / s
            assert found == pytest.approx(-0.83 - slope / s, abs=0.008)
            assert f"-0.83 - {slope}/s for the {name}" in CATALOGUE["boxes"].says
