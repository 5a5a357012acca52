"""Piecewise linear blocks: functions of one number share their corners, and each keeps its own tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onelayer.functions.pieces import fit, shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_one_number_share_corners_and_keep_their_tolerances(dtype: type) -> None:
    functions, eps = (np.exp, lambda s: np.sin(3 * s), lambda s: np.abs(s - 0.25)), [1e-3, 1e-2, 1e-4]
    looks = [shape(f, -1.0, 2.0, [0.25]) for f in functions]
    blocks, s = fit(looks, eps, np.dtype(dtype)), np.linspace(-1, 2, 5001)
    for block, f, e in zip(blocks, functions, eps, strict=True):
        assert np.array_equal(block.corners, blocks[0].corners)
        assert np.array_equal(block.signs, blocks[0].signs)
        assert np.abs(block(s) - f(s)).max() <= 1.01 * e
    alone = sum(len(fit([look], [e], np.dtype(dtype))[0].corners) for look, e in zip(looks, eps, strict=True))
    assert len(blocks[0].corners) < alone


@pytest.mark.parametrize(("f", "low", "high"), [(np.sin, -2, 2), (np.tanh, -3, 3), (lambda s: s**3, -1, 1)])
def test_a_turn_makes_only_its_own_pieces_narrower(f: Callable[[Any], Any], low: float, high: float) -> None:
    """Where one chord is moved up and the next one down, both miss: a few units, not a share of all."""
    look, s = shape(f, low, high), np.linspace(low, high, 20_001)
    for eps in (1e-2, 1e-3, 1e-4):
        (block,) = fit([look], [eps], np.dtype(np.float64))
        assert np.abs(block(s) - f(s)).max() <= 1.01 * eps
        assert len(block.corners) <= look.size / np.sqrt(eps) + 4
