"""A kernel as a softmax head of its rank."""

from __future__ import annotations

import numpy as np
import pytest

import onelayer

#: Functions that hats between 65 knots hold exactly, so that only the rank matters.
TWO = "2*u*v + abs(u - 0.5)*abs(v - 0.25)"
SIX = " + ".join(f"abs(u - {k}/8)*abs(v - {8 - k}/8)" for k in range(1, 7))


@pytest.mark.parametrize(("kernel", "rank"), [(TWO, 2), (SIX, 6)], ids=["2", "6"])
def test_a_kernel_of_finite_rank_is_held_from_that_rank_on(kernel: str, rank: int) -> None:
    rng = np.random.default_rng(0)
    X, y, queries = rng.uniform(0, 1, 50), rng.choice([-1.0, 1.0], 50), rng.uniform(0, 1, 200)
    logits = eval(kernel, {"abs": np.abs, "u": queries[:, None], "v": X})
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    wanted = weights @ y / weights.sum(axis=1)
    for more in (0, 1, 4):
        model = onelayer.attend(kernel, rank=rank + more, knots=65, certify=False)
        np.testing.assert_allclose(model.predict(X, y, queries), wanted, atol=1e-14)
    fewer = onelayer.attend(kernel, rank=rank - 1, knots=65, certify=False)
    assert np.abs(fewer.predict(X, y, queries) - wanted).max() > 1e-5
