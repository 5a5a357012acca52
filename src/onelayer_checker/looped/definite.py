"""Lower bounds of the least eigenvalue of a symmetric matrix known up to a radius.

Encloses: for every lower triangular C, A = mu I + C C^T + E has no eigenvalue below mu - |E|_inf, since C C^T has
none below 0 and the row sums of |E| bound its spectral radius. C is found by a floating-point factorisation, which
nobody has to trust; E is bounded with all roundings.
"""

from __future__ import annotations

import numpy as np

from onelayer_checker.core.balls import Array

U = 2.0**-53
#: By how much less than an eigenvalue that was computed is tried.
SHARES = (1e-9, 1e-6, 1e-3, 0.1)


def gamma(k: int) -> float:
    """At least k u / (1 - k u), the relative error of k roundings."""
    return float("inf") if k > 1 << 40 else 1.01 * (k + 2) * U


def least_eigenvalue(A: Array, radius: Array) -> float:
    """At most the least eigenvalue of every symmetric matrix within ``radius`` of A; -inf if none is found."""
    if not (np.isfinite(A).all() and np.isfinite(radius).all()):
        return -np.inf
    A = (A + A.T) / 2  # the matrix is symmetric: the mean of its two halves is as near to it, but for a rounding
    radius = (radius + radius.T) / 2 + 2 * U * np.abs(A)
    guess = float(np.linalg.eigvalsh(A)[0])
    return max(_checked(A, radius, guess - share * abs(guess)) for share in SHARES)


def _checked(A: Array, radius: Array, mu: float) -> float:
    p = len(A)
    try:
        C = np.linalg.cholesky(A - mu * np.eye(p))
    except np.linalg.LinAlgError:
        return -np.inf
    product, size = C @ C.T, np.abs(C) @ np.abs(C).T
    E = np.abs(A - mu * np.eye(p) - product) + radius
    E += gamma(p + 4) * size + 8 * U * (np.abs(A) + abs(mu) * np.eye(p))
    rows = float(E.sum(axis=1).max()) * (1 + gamma(p + 8)) + 2.0**-1000
    bound = (mu - rows) - 4 * U * (abs(mu) + rows)
    return bound if np.isfinite(bound) else -np.inf
