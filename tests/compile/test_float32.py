"""float32 by default where it holds the data, defaults for unknown inputs, and what a parameter stores."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import OptionError

memorize = partial(onelayer.memorize, certify=False)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_float32_is_chosen_where_it_holds_the_data(rng) -> None:
    X = rng.standard_normal((50, 3, 2))
    Y = rng.integers(0, 9, (50, 3))
    assert memorize(X.astype(np.float32), Y).transformer.dtype == np.float32
    assert memorize(X, Y).transformer.dtype == np.float64  # rounding the tokens would change them
    assert memorize(X.astype(np.float32), Y + 0.1).transformer.dtype == np.float64  # and here the answers
    assert memorize(X, Y, dtype="float32").transformer.dtype == np.float32


def test_defaults_of_reals_and_vectors(rng) -> None:
    X, unknown = (rng.standard_normal((N, 4, 3)).astype(np.float32) for N in (300, 50))
    Y = rng.standard_normal((300, 4, 2)).astype(np.float32)
    model = memorize(X, Y, default=[0.5, -2.0])
    np.testing.assert_array_equal(model.predict(X), Y)
    given = model.predict(unknown)
    assert (given == np.array([0.5, -2.0])).all(axis=2).mean() > 0.97
    with pytest.raises(OptionError, match="a finite default"):
        memorize(X, Y, default=[0.5, 1.0, 2.0])


def test_bits_per_parameter_counts_every_parameter(rng) -> None:
    X = rng.standard_normal((500, 4, 3)).astype(np.float32)
    Y = np.arange(2000).reshape(500, 4) % 256
    model = memorize(X, Y)
    stored = sum(array.size for _, array in model.transformer.tensors())
    assert model.bits_per_parameter == pytest.approx(2000 * 8 / stored)
