"""Products of many rows with a small matrix."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.problems.blocks import FEW_ROWS, UNTHREADED, product


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "m"), [(1, 1), (16, 8), (64, 64), (64, 65), (300, 200), (5, 0)])
def test_a_product_is_that_of_all_rows(monkeypatch, dtype, k, m) -> None:
    """Whole numbers: to the bit. Of a small matrix no part is so large that BLAS starts threads for it."""
    rng = np.random.default_rng(k)
    matrix = rng.integers(-9, 10, (k, m)).astype(dtype)
    step, parts = UNTHREADED // max(1, matrix.size), []
    multiply = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b, out: (parts.append(len(a)), multiply(a, b, out=out)))
    for T in (0, 1, 100, 2 * min(step, 5000) + 1):
        rows = rng.integers(-9, 10, (T, k)).astype(dtype)
        found = product(rows, matrix)
        assert found.dtype == dtype
        assert np.array_equal(found, rows @ matrix)
    small = FEW_ROWS <= step <= 5000
    assert all(part * matrix.size <= UNTHREADED for part in parts)
    assert bool(parts) == small
