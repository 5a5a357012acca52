"""Searched readouts of the library's own models, at stored coordinates, between them and beside them."""

from __future__ import annotations

import numpy as np
import pytest

import onelayer
from onelayer_checker.core.balls import REAL, Ball
from onelayer_checker.core.graph import build
from onelayer_checker.core.layers import run_stack
from onelayer_checker.search.stack import Searched, accelerate
from tests.checker.large import ARITHMETICS

#: What is asked for; whether answers are numbers.
ROUTES = {
    "plateaus": ({"mapping": "temperature", "readout": "plateaus", "dtype": "float64"}, False),
    "plateaus of numbers": ({"mapping": "temperature", "readout": "plateaus"}, True),
    "boxes": ({"mapping": "temperature", "readout": "boxes"}, False),
    "table": ({"mapping": "lattice", "readout": "table"}, False),
    "retrieval": ({"mapping": "lattice", "readout": "retrieval"}, False),
    "bits": ({"mapping": "temperature", "readout": "bits"}, False),
    "default": ({"default": -1}, False),
    "positions": ({"positions": True}, False),
}


@pytest.fixture(scope="module", params=ROUTES)
def case(request):
    """A network, its coordinates at the stored tokens, and the answers."""
    options, numbers = ROUTES[request.param]
    rng = np.random.default_rng(len(request.param))
    X = rng.standard_normal((24, 3, 2)).astype(np.float32)
    Y = rng.standard_normal((24, 3)).astype(np.float32) if numbers else rng.integers(0, 40, (24, 3))
    model = onelayer.memorize(X, Y, certify=False, **options)
    network = accelerate(build({name: np.asarray(a) for name, a in model.transformer.tensors()}))
    return network, X


def stored(network, X, A) -> Ball:
    known = network.known(X, 0.0, A)
    parts = [t for _, t in network.coordinates(X, np.full(len(X), X.shape[1]), 0.0, A, False, known)]
    return Ball(*(np.concatenate([getattr(t, p).reshape(-1, t.m.shape[-1]) for t in parts]) for p in ("m", "r")))


def contains(readout: Searched, t: Ball, A) -> np.ndarray:
    """The search's own balls, which must contain the dense ones' midpoints; which rows it left open."""
    with np.errstate(all="ignore"):  # of tokens that are left open, anything may be computed
        y, unknown = readout.plan(A).run(t, A)
    dense = run_stack(readout.layers, Ball(t.m, 0 * t.r), REAL)
    known = ~unknown
    assert (np.abs(y.m - dense.m) <= (y.r + dense.r) * (1 + 1e-12))[known].all()
    return unknown


def test_stored_answers_are_found_exactly(case) -> None:
    network, X = case
    for name, A in ARITHMETICS.items():
        if name == "float32" and network.dtype != np.float32:
            continue
        t = stored(network, X, A)
        assert network.readout.plan(A) is not None
        unknown = contains(network.readout, t, A)
        assert not unknown.any()
        found = network.readout.apply(t, A)
        assert (found.r < 1e-6).all()
        assert network.readout.disagrees(t, A).tolist() == []


def test_between_and_beside_them_nothing_is_made_up(case) -> None:
    network, X = case
    rng = np.random.default_rng(0)
    for name, A in ARITHMETICS.items():
        if name == "float32" and network.dtype != np.float32:
            continue
        t = stored(network, X, A)
        order = np.argsort(t.m[:, 0], kind="stable")
        middle = (t.m[order[1:]] + t.m[order[:-1]]) / 2
        mixed = np.stack([rng.permutation(column) for column in t.m.T], axis=1)
        moved = t.m + rng.uniform(-1, 1, t.m.shape) * 10.0 ** rng.uniform(-6, 1, (len(t.m), 1))
        for m in (middle, mixed, moved, np.abs(moved) * 1.5):
            for radius in (0.0, 2.0**-30, 0.01):
                contains(network.readout, Ball(np.maximum(m, 0), np.full_like(m, radius)), A)


def test_wide_balls_are_left_open(case) -> None:
    network, X = case
    t = stored(network, X, REAL)
    wide = Ball(t.m, np.full_like(t.r, float(np.ptp(t.m[:, 0])) + 1))
    assert contains(network.readout, wide, REAL).all()
