"""Numbers of very different sizes in one data set: float64 tells them apart, by codes where no direction does."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer import HypothesisError, memorize

rng = np.random.default_rng(0)
small_or_large = np.where(rng.random((200, 4, 3)) < 0.5, 1e-12, 1e12)
DATA = {
    "1e-12 and 1e12 in one token": rng.standard_normal((200, 4, 3)) * small_or_large,
    "1e-12 and 1e12, one component": (rng.standard_normal((200, 4, 3)) * small_or_large)[..., :1],
    "lognormal of width 8": np.exp(8 * rng.standard_normal((600, 4, 2))),
    "lognormal of width 8, one component": np.exp(8 * rng.standard_normal((200, 4, 1))),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("options", [{}, {"default": -1}, {"readout": "table"}])
def test_is_stored_and_proved(name, options) -> None:
    X, Y = DATA[name], rng.integers(0, 9, DATA[name].shape[:2])
    model = memorize(X, Y, certify=True, **options)
    assert (model.predict(X) == Y).all()
    assert model.ledger["dtype"] == "float64"
    assert model.ledger["mapping"] == "lattice"
    assert "thresholds on their components" in model.ledger.meaning("mapping")


def test_what_is_still_refused_names_the_two_places() -> None:
    X = np.tile([[[1.0, 3.0], [-2.0, 0.5]]], (3, 1, 1))
    X[:, 0, 0] = 1.0, np.nextafter(1.0, 2.0), 2.0
    with pytest.raises(HypothesisError, match=r"sequence 0, token [01] and sequence 1, token [01]"):
        memorize(X, [[1, 2], [3, 4], [5, 6]])


def test_a_mapping_that_was_asked_for_is_not_replaced() -> None:
    X, Y = DATA["1e-12 and 1e12 in one token"], rng.integers(0, 9, (200, 4))
    for options in ({"mapping": "temperature"}, {"rank": 1}, {"readout": "plateaus"}):
        with pytest.raises(HypothesisError, match="contexts that float64 can tell apart"):
            memorize(X, Y, **options)
