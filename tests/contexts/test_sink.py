"""A sink token: softmax weights that are power sums, from which the tokens come back."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from onelayer.contexts.sink import (
    STATEMENT,
    construct,
    directions,
    directions_needed,
    features,
    heads_needed,
    with_sink,
)
from onelayer.errors import HypothesisError
from onelayer.impossible import proportional, zero_token
from onelayer.network.blocks import evaluate

SHAPES = [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (3, 3)]


def scratch(built, X: np.ndarray) -> np.ndarray:
    """Features at the first token after the sink."""
    return evaluate(built.transformer(), with_sink(X)[None])[0, 1, built.scratch]


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (40.0, 43.0)])
def test_the_stream_is_the_token_and_the_formula(n: int, d: int, low: float, high: float) -> None:
    built = construct(n, d, low=low, high=high)
    assert built.attention.heads == heads_needed(n, d) == n * (n * (d - 1) + 1)
    X = np.random.default_rng(n).uniform(low, high, (20, n, d))
    stream = evaluate(built.transformer(), with_sink(X))[:, 1:]
    assert (stream[:, :, :d] == X).all()
    assert (stream[:, :, d] == 0).all()
    keys, sink_keys = built.attention.W_K[:, :d, 0], built.attention.W_K[:, d, 0]
    expected = features(X, keys, sink_keys)
    np.testing.assert_allclose(features(np.full((n, d), (low + high) / 2), keys, sink_keys), 1 / (1 + n))
    np.testing.assert_allclose(
        stream[:, :, d + 1 :], np.broadcast_to(expected[:, None], (20, n, len(keys))), atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_tokens_come_back_by_newton_s_identities(n: int) -> None:
    """Power sums to elementary symmetric polynomials to roots, repeated tokens and shorter sequences included."""
    rng = np.random.default_rng(n)
    built = construct(n, 1)
    eta = float(built.attention.W_K[0, 0, 0])
    for trial in range(20):
        length = n - trial % 2 * (n > 1)
        X = rng.uniform(-1, 1, (length, 1))
        X[:2] = X[0] if trial % 5 == 0 else X[:2]
        p = 1 / scratch(built, X) - 1
        e = [1.0]
        for k in range(1, n + 1):
            e.append(sum((-1) ** (i - 1) * e[k - i] * p[i - 1] for i in range(1, k + 1)) / k)
        z = np.sort(np.roots([(-1) ** k * e[k] for k in range(n + 1)]).real)[n - length :]
        np.testing.assert_allclose(
            np.log(z) / eta, np.sort(X[:, 0]), atol=1e-4
        )  # double roots lose half the digits


@pytest.mark.parametrize(("n", "d"), [(2, 2), (5, 2), (3, 3), (2, 4)])
def test_any_d_directions_are_independent(n: int, d: int) -> None:
    rows = [[Fraction(x) for x in row] for row in directions(n, d).tolist()]
    assert len(rows) == directions_needed(n, d)
    for chosen in itertools.combinations(rows, d):
        assert determinant([list(row) for row in chosen]) != 0


def determinant(rows: list[list[Fraction]]) -> Fraction:
    if not rows:
        return Fraction(1)
    return sum(
        (-1) ** i * rows[i][0] * determinant([row[1:] for k, row in enumerate(rows) if k != i])
        for i in range(len(rows))
    )


@pytest.mark.parametrize("n", [2, 3, 5])
def test_heads_of_one_direction_have_exact_multiples(n: int) -> None:
    built = construct(n, 3, low=-3.0, high=5.0)
    keys = built.attention.W_K[:, :3, 0].reshape(-1, n, 3)
    for group in keys:
        for h in range(n):
            assert all(Fraction(a) == (h + 1) * Fraction(b) for a, b in zip(group[h], group[0], strict=True))


def test_what_layers_without_a_sink_confuse_is_told_apart() -> None:
    pair = zero_token.witness()
    built = construct(3, 1, low=-2.0, high=2.0)
    assert np.abs(scratch(built, pair.first) - scratch(built, pair.second)).max() > 1e-2
    once = proportional.witness([0.3], [-0.5])[0]
    built = construct(4, 1)
    assert np.abs(scratch(built, once.first) - scratch(built, once.second)).max() > 1e-2


def test_without_the_mark_there_is_no_sink() -> None:
    """If no position marks the zero token, the values are all 0 and nothing is seen."""
    built = construct(2, 1)
    assert built.embedding.positions is not None
    assert built.embedding.positions.any(axis=1).tolist() == [True, False, False]
    assert (evaluate(built.transformer(), np.zeros((1, 3, 1)))[0, :, built.scratch] == 1 / 3).all()
    unmarked = built._replace(embedding=replace(built.embedding, positions=None))
    assert not scratch(unmarked, np.array([[0.5], [-0.2]])).any()


def test_reordered_tokens_keep_their_features() -> None:
    rng = np.random.default_rng(0)
    built = construct(3, 2)
    X, order = rng.uniform(-1, 1, (3, 2)), rng.permutation(3)
    np.testing.assert_allclose(scratch(built, X), scratch(built, X[order]), atol=1e-14)


def test_hypotheses_are_named() -> None:
    with pytest.raises(HypothesisError, match=r"\[sink\].*exact in float32; .* need more than 24 bits"):
        construct(4, 9, dtype=np.float32)
    with pytest.raises(HypothesisError, match=r"\[sink\].*box with an inside"):
        construct(2, 1, low=2.0, high=1.0)


def test_statement() -> None:
    assert STATEMENT.standing == "ours"
