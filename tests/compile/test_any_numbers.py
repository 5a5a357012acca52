"""Numbers of very different sizes in one data set: float64 tells them apart, by codes where no direction does."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer import HypothesisError, memorize
from onelayer.errors import PrecisionError

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


def one_ulp_apart(kind: str, N: int, n: int, d: int) -> np.ndarray:
    """Sequences that differ by one unit in the last place of one component of one token, or of many."""
    if kind == "twins":
        base = rng.standard_normal((N // 2, n, d))
        place = (np.arange(N // 2), rng.integers(0, n, N // 2), rng.integers(0, d, N // 2))
        moved = base.copy()
        moved[place] = np.nextafter(moved[place], np.inf)
        return np.concatenate([base, moved])
    X = np.repeat(rng.standard_normal((1, n, d)), N, axis=0)
    if kind == "neighbours":
        X[:, 0, 0] += np.arange(N) * np.spacing(abs(X[0, 0, 0]))
        return X
    return np.unique(np.where(rng.random(X.shape) < 0.5, np.nextafter(X, np.inf), X), axis=0)


def consistent_answers(X: np.ndarray) -> np.ndarray:
    known: dict[object, int] = {}
    return np.array(
        [
            [known.setdefault((*sorted(map(bytes, x)), bytes(token)), int(rng.integers(0, 9))) for token in x]
            for x in X
        ]
    )


@pytest.mark.parametrize("kind", ["twins", "neighbours", "last bits"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 3), (4, 4)])
def test_one_unit_in_the_last_place_is_told_apart(kind, n, d) -> None:
    X = one_ulp_apart(kind, 400, n, d)
    Y = consistent_answers(X)
    model = memorize(X, Y, certify=True)
    assert (model.predict(X) == Y).all()
    assert (model.predict(X, path="dense") == Y).all()


def test_one_token_in_the_company_of_neighbouring_numbers() -> None:
    X = np.full((2000, 2, 1), 0.5)
    X[:, 1, 0] = 1.0 + np.arange(2000) * np.spacing(1.0)
    Y = rng.integers(0, 2, (2000, 2))
    model = memorize(X, Y, certify=True)
    assert (model.predict(X) == Y).all()


@pytest.mark.parametrize(
    "values",
    [[1.0, np.nextafter(1.0, 0), np.nextafter(1.0, 2)], [-2.0, np.nextafter(-2.0, 0), np.nextafter(-2.0, -3)]],
)
def test_neighbours_of_a_power_of_two_are_told_apart(values) -> None:
    X = np.tile([[[1.0, 3.0], [-2.0, 0.5]]], (3, 1, 1))
    X[:, 0, 0] = values
    Y = [[1, 2], [3, 4], [5, 6]]
    assert (memorize(X, Y, certify=True).predict(X) == Y).all()


@pytest.mark.parametrize("sizes", [(1e306, 1e306), (1e250, 1.0), (1e-290, 1.0)])
@pytest.mark.parametrize("options", [{}, {"mapping": "lattice"}])
def test_magnitudes_near_the_ends_of_the_format(sizes, options) -> None:
    X = rng.uniform(-1, 1, (200, 4, 2)) * sizes
    Y = rng.integers(0, 9, (200, 4))
    model = memorize(X, Y, certify=True, **options)
    assert (model.predict(X) == Y).all()


def test_subnormal_tokens_and_answers_come_back_but_are_not_proved() -> None:
    """A machine may read them as 0."""
    X, Y = rng.integers(1, 1 << 40, (100, 3, 2)) * 5e-324, rng.integers(-9, 9, (100, 3)) * 5e-324
    for tokens, answers in ((X, rng.integers(0, 9, (100, 3))), (rng.standard_normal(X.shape), Y)):
        model = memorize(tokens, answers)
        assert (model.predict(tokens).reshape(answers.shape) == answers).all()
        assert not model.ledger["certified"]


def test_what_is_still_refused_names_the_two_places() -> None:
    X = rng.standard_normal((20, 2, 2))
    X[3, 1, 0], X[5, 0, 0] = 1e-300, 1e300
    with pytest.raises(PrecisionError, match=r"1e-300 in sequence 3, token 1, and 1e\+300 in sequence 5, token 0"):
        memorize(X, rng.integers(0, 9, (20, 2)))
    X = np.array([[[1.0]], [[np.nextafter(1.0, 2)]]])
    with pytest.raises(PrecisionError, match=r"sequence [01], token 0 and sequence [01], token 0"):
        memorize(X, [[1], [2]], mapping="temperature")


def test_a_mapping_that_was_asked_for_is_not_replaced() -> None:
    X, Y = DATA["1e-12 and 1e12 in one token"], rng.integers(0, 9, (200, 4))
    for options in ({"mapping": "temperature"}, {"rank": 1}, {"readout": "plateaus"}):
        with pytest.raises(HypothesisError, match="contexts that float64 can tell apart"):
            memorize(X, Y, **options)
