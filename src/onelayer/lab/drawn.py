"""Small data sets and their compiled networks, drawn at random: what networks are asked about networks on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.errors import OnelayerError
from onelayer.measure.survival import cast
from onelayer.model import Model

Array = NDArray[Any]
#: Relative to the mean square of the features.
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)


def draw_network(rng: np.random.Generator, most: float = 7.0) -> tuple[Model, Array, Array] | None:
    """At most 2^most sequences and their model, in one of several readouts; None if it is refused."""
    N, n, words = int(2 ** rng.uniform(2, most)), int(rng.integers(2, 6)), int(rng.integers(6, 40))
    X = np.unique(rng.integers(0, words, (N, n)), axis=0)
    Y = rng.integers(0, int(2 ** rng.uniform(1, 8)), X.shape)
    readout = str(rng.choice(["auto", "plateaus", "table", "retrieval"]))
    try:
        return memorize(X, Y, positions=True, readout=readout, certify=False), X, Y
    except OnelayerError:
        return None


def survives(model: Model, X: Array, Y: Array) -> bool:
    """Whether all answers that are asked come back in float16."""
    try:
        return cast(model, "float16", X, Y, answers=64).perfect
    except OnelayerError:
        return False  # a weight beyond the range: lost


def standards(features: Array) -> tuple[Array, Array]:
    """Mean and spread of features; one that is always the same has spread 1, and gets no weight from a fit."""
    spread = features.std(axis=0)
    return features.mean(axis=0), np.where(spread > 0, spread, 1.0)


def fit_ridge(A: Array, y: Array, ridge: float) -> tuple[Array, float]:
    """Weights of standardised features and an offset; the ridge is relative to the mean square of the features."""
    mean = float(y.mean())
    dual = np.linalg.solve(A @ A.T + ridge * np.trace(A @ A.T) / len(A) * np.eye(len(A)), y - mean)
    weights: Array = A.T @ dual
    return weights, mean


def choose_ridge(A: Array, y: Array) -> float:
    """The strength that is best on the second half, fitted to the first."""
    half = len(y) // 2
    errors = []
    for ridge in RIDGES:
        weights, offset = fit_ridge(A[:half], y[:half], ridge)
        errors.append(float(np.abs(A[half:] @ weights + offset - y[half:]).mean()))
    return RIDGES[int(np.argmin(errors))]
