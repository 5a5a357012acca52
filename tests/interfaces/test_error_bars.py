"""Answers with their error bars: the exact ridge estimate, in fractions, is never further away than they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import onelayer
from onelayer.interfaces.error_bars import least


def ridge_estimate(K: np.ndarray, v: np.ndarray, q: np.ndarray, ridge: float) -> Fraction:
    """q (K^T K + ridge I)^-1 K^T v by elimination in fractions."""
    rows, s = [[Fraction(float(u)) for u in k] for k in K], len(q)
    M = [[sum(k[i] * k[j] for k in rows) + (Fraction(ridge) if i == j else 0) for j in range(s)] for i in range(s)]
    c = [sum(k[i] * Fraction(float(t)) for k, t in zip(rows, v, strict=True)) for i in range(s)]
    for i in range(s):
        for j in range(i + 1, s):
            share = M[j][i] / M[i][i]
            M[j] = [a - share * b for a, b in zip(M[j], M[i], strict=True)]
            c[j] -= share * c[i]
    w = [Fraction(0)] * s
    for i in reversed(range(s)):
        w[i] = (c[i] - sum(M[i][j] * w[j] for j in range(i + 1, s))) / M[i][i]
    return sum((Fraction(float(a)) * b for a, b in zip(q, w, strict=True)), Fraction(0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mesa_is_as_near_as_it_says(dtype: str) -> None:
    model, rng, tight = onelayer.learner("mesa", d=3, dtype=dtype, certify=False), np.random.default_rng(0), 0
    ridge = float(model.transformer.attention.ridge[0])
    for turn in range(40):
        X, y, q = (rng.standard_normal(s).astype(dtype) for s in ((6, 3), 6, (2, 3)))
        if turn % 4 == 0:
            X[:, 2] = X[:, 1] * (1 + (1e-3 if dtype == "float32" else 1e-9) * X[:, 0])  # nearly degenerate
        answers, bounds = model.predict(X, y, q, bounds=True)
        assert answers.shape == bounds.shape == (2,)
        for a, bound, asked in zip(answers, bounds, q, strict=True):
            off = abs(Fraction(float(a)) - ridge_estimate(X, y, asked, ridge))
            assert off <= Fraction(float(bound))
            tight += bound < (1e-3 if dtype == "float32" else 1e-10)
    assert tight > 40


def test_recurrences_and_batches_have_bars_too() -> None:
    model, rng = onelayer.learner("recurrence", certify=False), np.random.default_rng(0)
    s = [0.3]
    for _ in range(7):
        s.append(0.5 * s[-1] + 1)
    answers, bounds = model.predict(np.array(s), bounds=True)
    wanted = [
        ridge_estimate(np.c_[s[:k], np.ones(k)], np.array(s[1 : k + 1]), np.array([s[k], 1.0]), 1e-12)
        for k in range(1, 8)
    ]
    assert all(
        abs(Fraction(float(a)) - e) <= Fraction(float(b)) for a, b, e in zip(answers, bounds, wanted, strict=True)
    )
    solver = onelayer.learner("mesa", d=2, certify=False)
    X, y, q = rng.normal(size=(3, 9, 2)), rng.normal(size=(3, 9)), rng.normal(size=(3, 2, 2))
    found, bars = solver.predict(X, y, q, bounds=True)
    assert found.shape == bars.shape == (3, 2)
    assert (bars < 1e-8).all()


def test_learners_that_take_steps_have_none() -> None:
    with pytest.raises(onelayer.OptionError, match="this one is gd"):
        onelayer.learner("gd", d=1, certify=False).predict([[1.0]], [1.0], [[1.0]], bounds=True)


def test_eigenvalues_that_are_vouched_for_are_below_the_true_ones() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        B = rng.normal(size=(4, 5)) * 10.0 ** rng.integers(-8, 3, (4, 1))
        M = B @ B.T + 1e-12 * np.eye(4)
        assert 1e-12 <= least(M, 1e-12) <= max(np.linalg.eigvalsh(M)[0], 1e-12) * (1 + 1e-6)
