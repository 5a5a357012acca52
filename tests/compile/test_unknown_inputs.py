"""What a model with a default says about unknown inputs is no less than what happens to them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import certify
from onelayer.measure.recall import recall

memorize = partial(onelayer.memorize, certify=False)

RANK_ONE = {"mapping": "temperature", "rank": 1}
LATTICE = {"mapping": "lattice"}


def draw_unknown(X, rng, count):
    """Stored tokens in new company, and tokens like them."""
    N, n, d = X.shape
    known = {tuple(sorted(map(bytes, row))) for row in X}
    together = X[rng.integers(0, N, (count, n)), rng.integers(0, n, (count, n))]
    yield together[[tuple(sorted(map(bytes, row))) not in known for row in together]]
    yield rng.standard_normal((count, n, d)).astype(X.dtype)


@pytest.mark.parametrize(
    ("N", "n", "d", "options", "dtype"),
    [
        (10, 8, 4, RANK_ONE, "float32"),
        (10, 3, 2, RANK_ONE, "float32"),
        (50, 3, 2, RANK_ONE, "float32"),
        (50, 3, 2, RANK_ONE, "float64"),
        (10, 3, 2, LATTICE, "float32"),
        (10, 2, 2, LATTICE, "float32"),
        (50, 1, 1, LATTICE, "float32"),
        (500, 4, 4, LATTICE, "float32"),
    ],
)
def test_the_bound_holds(N, n, d, options, dtype) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, n, d)).astype(np.float32)
    Y = rng.integers(0, 50, (N, n))
    model = memorize(X, Y, default="nobody", dtype=dtype, **options)
    assert recall(model, X, Y).perfect
    assert model.ledger["margin"] > 1
    limit, measured = model.ledger["false_hits"], model.ledger["false_hits_measured"]
    for unknown in draw_unknown(X, rng, 10_000):
        if not len(unknown):  # a single token has no company
            assert n == 1
            continue
        share = (model.predict(unknown)[:, 0] != "nobody").mean()
        noise = 3 * np.sqrt(limit / len(unknown))
        assert share <= limit + noise
        assert share <= measured + noise
    if dtype == "float64":
        assert limit < 1e-6


@pytest.mark.parametrize(("N", "n", "d", "seed"), [(10, 8, 4, 0), (50, 3, 2, 1), (50, 8, 4, 0)])
def test_narrow_plateaus_are_wide_enough_for_the_checker(N, n, d, seed) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, n, d)).astype(np.float32)
    Y = rng.integers(0, 50, (N, n))
    model = memorize(X, Y, default="nobody", dtype="float32", **RANK_ONE)
    claims = {(claim["type"], claim["arith"]) for claim in certify(model, X, Y).claims}
    assert claims >= {("memorizes", "real"), ("memorizes", "float32"), ("rejects", "float32")}


def test_the_ledger_says_what_was_assumed_and_what_was_counted() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4, 2)).astype(np.float32)
    model = memorize(X, rng.integers(0, 9, (40, 4)), default=-1)
    said = {line.name: line.meaning for line in model.ledger.lines}
    assert "nowhere denser around stored contexts than sequences drawn at random" in said["false_hits"]
    assert "put together of stored tokens" in said["false_hits"]
    assert "of 4,096 of new tokens" in said["false_hits_measured"]
    assert "false_hits" not in memorize(X, rng.integers(0, 9, (40, 4))).ledger


def test_where_every_sequence_is_stored_nothing_is_claimed() -> None:
    model = memorize([["a", "a"], ["a", "b"], ["b", "b"]], [["x", "x"], ["y", "z"], ["x", "x"]], default="?")
    assert model.ledger["false_hits"] == model.ledger["false_hits_measured"] == 1.0


@pytest.mark.parametrize("kind", ["ids", "sequences", "lengths", "positions"])
def test_the_bound_holds_for_words(kind) -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 40, (60, 4))
    lengths = rng.integers(2, 5, 60) if kind == "lengths" else None
    Y = np.ones(60 if kind == "sequences" else (60, 4), int)
    options = {"positions": True} if kind == "positions" else {}
    model = memorize(X, Y, default=0, lengths=lengths, **options)
    assert recall(model, X, Y, lengths).perfect
    asked = rng.choice(np.unique(X[:, :2]), (20_000, 4))
    known = {tuple(row if kind == "positions" else sorted(row)) for row in X.tolist()}
    new = [tuple(row if kind == "positions" else sorted(row)) not in known for row in asked.tolist()]
    share = (model.predict(asked[new]).reshape(sum(new), -1)[:, 0] != 0).mean()
    assert share <= model.ledger["false_hits"] + 3 * np.sqrt(model.ledger["false_hits"] / sum(new))
    assert model.ledger["mapping"] == "lattice"


def test_contexts_too_close_to_tell_apart_share_a_plateau_that_holds_both() -> None:
    """Equal answers may stand within rounding of each other; a plateau around one must not leave the other out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2, 1)).astype(np.float32)
    X = np.concatenate([X + np.float32(6e-6 * step) for step in range(5)])  # each within rounding of the next
    Y = np.tile(rng.integers(0, 5, (20, 2)), (5, 1))
    model = memorize(X, Y, default=9, dtype="float32", **RANK_ONE)
    assert recall(model, X, Y).perfect
    assert model.ledger["plateaus"] < X.size
