"""Many narrow layers at once: estimates in float64 are the exact bounds, and the smallest is found."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.impossible import narrow_stream
from onelayer.lab.narrow_layers import draw, estimate, layer, smallest


@pytest.mark.parametrize(("n", "d", "heads"), [(2, 1, 1), (3, 1, 4), (2, 2, 2), (3, 3, 4)])
def test_estimates_are_the_exact_bounds(n: int, d: int, heads: int) -> None:
    weights = draw(np.random.default_rng([n, d]), 12, heads, d)
    exact = [narrow_stream.error_lower(layer(one), n) for one in weights]
    np.testing.assert_allclose(estimate(weights, n), exact, rtol=1e-6)
    assert smallest(weights, n) == min(exact)
    assert min(exact) >= narrow_stream.ERROR_LOWER


def test_layers_that_stay_in_the_box_and_that_leave_it_are_both_there() -> None:
    """Small weights keep the diagonal near 0, and then t = 1 costs about 1/2; large ones throw it out."""
    weights = draw(np.random.default_rng(0), 6, 2, 1)
    for factor in (0.01, 3.0):
        exact = [narrow_stream.error_lower(layer(one * factor), 2) for one in weights]
        np.testing.assert_allclose(estimate(weights * factor, 2), exact, rtol=1e-6)
