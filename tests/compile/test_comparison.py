"""`auto` is at most twice as large as the smallest route that a person could have asked for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import HypothesisError, plan

memorize = partial(onelayer.memorize, certify=False)
rng = np.random.default_rng(0)
NUMBERS, VECTORS = (rng.standard_normal((300, 12, d)).astype(np.float32) for d in (1, 6))
DATA = {
    "one component, drawn answers": (NUMBERS, rng.integers(0, 2, (300, 12))),
    "one component, answers by its sign": (NUMBERS, (NUMBERS[..., 0] > 0).astype(int)),
    "one component, bands": (NUMBERS, np.digitize(NUMBERS[..., 0], [-1.0, -0.3, 0.3, 1.0])),
    "six components": (VECTORS, rng.integers(0, 100, (300, 12))),
    "reals": (VECTORS, rng.standard_normal((300, 12)).astype(np.float32)),
    "an answer per sequence": (rng.standard_normal((900, 4, 6)).astype(np.float32), rng.integers(0, 3, 900)),
}
ROUTES = (
    {"mapping": "temperature"},
    {"mapping": "shared_query"},
    {"mapping": "temperature", "readout": "table"},
    {"mapping": "lattice", "readout": "table"},
    {"readout": "retrieval"},
    {"readout": "packed"},
)
#: It takes a second to build, and nobody gets it who does not ask for it.
IN_BITS = {"readout": "bits"}


def sizes(X, Y, dtypes, routes=ROUTES):
    for dtype in dtypes:
        for route in routes:
            try:
                yield memorize(X, Y, dtype=dtype, **route).n_parameters
            except HypothesisError:
                continue


@pytest.mark.parametrize("name", DATA)
def test_auto_is_at_most_twice_as_large_as_any_route(name) -> None:
    X, Y = DATA[name]
    for dtype in (None, "float32", "float64"):
        model = memorize(X, Y, dtype=dtype)
        assert np.all(model.predict(X) == Y)
        assert model.n_parameters <= 2 * min(sizes(X, Y, ("float32", "float64") if dtype is None else (dtype,)))
        assert plan(X, Y, dtype=dtype).parameters == model.n_parameters


@pytest.mark.parametrize("kind", ["normal", "walk", "near each other"])
def test_numbers_in_many_sequences_are_stored_in_fewer_parameters_than_there_are_answers(kind) -> None:
    Z = np.random.default_rng(1).standard_normal((1096, 24, 1))
    X = {"normal": Z, "walk": np.cumsum(Z, axis=1), "near each other": Z[:1] + 1e-3 * Z}[kind]
    Y = np.random.default_rng(2).integers(0, 2, (1096, 24))
    model = memorize(X, Y)
    assert np.all(model.predict(X) == Y)
    assert model.n_parameters <= 1.1 * min(sizes(X, Y, ("float64",), (*ROUTES, IN_BITS)))
    assert model.n_parameters < 0.5 * Y.size


def test_the_ledger_shows_what_was_compared() -> None:
    X, Y = DATA["one component, answers by its sign"]
    model = memorize(X, Y)
    assert model.n_parameters < 100
    assert model.ledger["routes"] == 3
    compared = model.ledger.meaning("routes")
    assert compared.startswith("compared: lattice and packed in float32: ")
    assert f"temperature and plateaus in float32: {model.n_parameters:,} parameters, proof about" in compared
    assert "the smallest of the routes" in model.ledger.meaning("mapping")
    assert "the smallest of the routes" in model.ledger.meaning("readout")


def test_what_was_asked_for_is_not_compared() -> None:
    X, Y = DATA["one component, answers by its sign"]
    for options in ({"mapping": "lattice"}, {"readout": "table"}, {"rank": 1}, {"default": -1}):
        assert "routes" not in memorize(X, Y, **options).ledger
    assert "routes" not in memorize(X[:20], Y[:20]).ledger
