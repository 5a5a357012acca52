"""A plan tells what compiling takes before anything is compiled."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import plan

memorize = partial(onelayer.memorize, certify=False)

rng = np.random.default_rng(4)
X, ids = rng.standard_normal((50, 6, 4)), rng.integers(0, 30, (50, 6))


@pytest.mark.parametrize(
    ("data", "answers", "options"),
    [
        (X, rng.integers(0, 99, (50, 6)), {}),
        (X, rng.standard_normal((50, 6, 3)), {"dtype": "float32"}),
        (X, rng.integers(0, 99, 50), {"rank": 2}),
        (ids, rng.integers(0, 99, (50, 6)), {"positions": True}),
        (X, rng.integers(0, 99, (50, 6)), {"mapping": "averages"}),
    ],
)
def test_sizes_are_exact(data, answers, options) -> None:
    foreseen, model = plan(data, answers, **options), memorize(data, answers, **options)
    assert foreseen.possible
    assert foreseen.parameters == model.n_parameters == model.ledger["parameters"]
    assert foreseen.bytes == sum(a.nbytes for _, a in model.transformer.tensors())
    assert (foreseen.rank, foreseen.distinct, foreseen.mapping) == tuple(
        model.ledger[name] for name in ("rank", "distinct", "mapping")
    )
    assert foreseen.margin == model.ledger["margin"]
    assert f"{foreseen.parameters:,} parameters" in str(foreseen)


def test_bits_follow_the_data_and_the_dtype() -> None:
    few, many = (plan(X[:k], rng.integers(0, 99, (k, 6))) for k in (5, 50))
    assert few.bits_needed < many.bits_needed
    assert many.bits_available["float64"] - many.bits_available["float32"] == pytest.approx(29)
    assert many.bits_needed <= many.bits_available["float64"]
