"""ReLU units relu(<a, z> + b) for a function known at samples: picked greedily, weighted by least squares.

No gradient descent: units are drawn in a way that depends on the data (across pairs of samples between which the
function is steep, and at random through samples), picked where they explain what is left, and combined by convex
problems only. Reweighting (Lawson) turns the last least squares towards the largest error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Directions in which the samples spread less than this share of the widest are not stretched any further.
FLOOR = 0.1
#: Candidates for each unit that is wanted, and at least.
POOL, LEAST_POOL = 6, 1000
#: Of the mean squared size of a unit: keeps weights small, and with them what a proof must enclose.
RIDGE = 1e-6
#: Reweighted least squares, and the share of its weight that a sample keeps at least.
ROUNDS, KEPT = 12, 0.05


@dataclass(frozen=True)
class Ridges:
    """out = constant + sum_i out_i relu(<weight_i, z> + bias_i), outputs [q]."""

    weight: Array  # [w, M]
    bias: Array  # [M]
    out: Array  # [M, q]
    constant: Array  # [q]

    def __call__(self, Z: Array) -> Array:
        values: Array = np.maximum(Z @ self.weight + self.bias, 0) @ self.out + self.constant
        return values


@dataclass(frozen=True)
class Spread:
    """Coordinates y = (z - centre) shape in which the samples are about equally wide in all directions."""

    centre: Array  # [w]
    shape: Array  # [w, w']

    @staticmethod
    def of(Z: Array) -> Spread:
        centre, unit = Z.mean(axis=0), Z.std(axis=0)
        unit = np.where(
            unit > 1e-12 * np.abs(Z).max(initial=1e-300), unit, np.inf
        )  # what does not vary is not read
        _, size, turn = np.linalg.svd((Z - centre) / unit / np.sqrt(len(Z)), full_matrices=False)
        return Spread(centre, turn.T / np.maximum(size, FLOOR * size[0]) / unit[:, None])

    def __call__(self, Z: Array) -> Array:
        coordinates: Array = (Z - self.centre) @ self.shape
        return coordinates


def fit(Z: Array, F: Array, tried: tuple[Array, Array], units: int, rng: np.random.Generator) -> Ridges:
    """Units for values F [S, q] at Z [S, w]; of the reweighted fits the best at the samples ``tried``."""
    spread = Spread.of(Z)
    Y, fresh = spread(Z), spread(tried[0])
    U, b = candidates(Y, F, max(POOL * units, LEAST_POOL), rng)
    affine = [np.hstack([np.ones((len(y), 1)), y]) for y in (Y, fresh)]
    active = np.maximum(Y @ U + b, 0)
    chosen = pursue(active, affine[0], F, units)
    U, b = U[:, chosen], b[chosen]
    A, B = np.hstack([affine[0], active[:, chosen]]), np.hstack([affine[1], np.maximum(fresh @ U + b, 0)])
    W = _reweight(A, F, B, tried[1])
    k = affine[0].shape[1]
    return _with_carriers(spread, U, b, W[0], W[1:k], W[k:], A[:, 1:k] @ W[1:k])


def candidates(Y: Array, F: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """[w', P] unit vectors and [P] offsets: half across steep pairs of samples, half of any direction."""
    i, j = rng.integers(len(Y), size=(2, 4 * count))
    step = Y[i] - Y[j]
    length = np.linalg.norm(step, axis=1)
    steep = np.abs(F[i] - F[j]).max(axis=1) / (length + 1e-9) * (length > 0) + 1e-12 * (length > 0)
    pairs = rng.choice(len(i), count // 2, p=steep / steep.sum())
    across = step[pairs] / length[pairs, None]
    free = rng.standard_normal((count - count // 2, Y.shape[1]))
    U = np.concatenate([across, free / np.linalg.norm(free, axis=1, keepdims=True)])
    through = Y[np.concatenate([j[pairs], rng.integers(len(Y), size=len(free))])]
    return U.T, -(U * through).sum(axis=1)


def pursue(active: Array, affine: Array, F: Array, units: int) -> Array:
    """Orthogonal matching pursuit, a few at a time: those most like what the chosen ones leave."""
    size = np.linalg.norm(active, axis=0)
    normal = active / np.where(size > 0, size, np.inf)
    chosen = np.empty(0, np.int64)
    while len(chosen) < units:
        A = np.hstack([affine, normal[:, chosen]])
        left = F - A @ _least_squares(A, F, np.ones(len(A)))
        like = np.abs(normal.T @ left).max(axis=1)
        like[chosen] = -1.0
        more = min(max(4, len(chosen) // 8), units - len(chosen))
        chosen = np.concatenate([chosen, np.argsort(-like, kind="stable")[:more]])
    return chosen


def _least_squares(A: Array, F: Array, weight: Array) -> Array:
    """Ridge regression by the normal equations, whose condition the ridge bounds."""
    gram = A.T @ (A * weight[:, None])
    ridge = RIDGE * max(float(np.trace(gram)) / len(gram), 1e-300)
    solved: Array = np.linalg.solve(gram + ridge * np.eye(len(gram)), A.T @ (F * weight[:, None]))
    return solved


def _reweight(A: Array, F: Array, B: Array, G: Array) -> Array:
    """Weights of units A at samples F; Lawson's rounds; the best at B, G is kept."""
    weight, least, best = np.ones(len(A)), np.inf, np.zeros((A.shape[1], F.shape[1]))
    for _ in range(ROUNDS):
        W = _least_squares(A, F, weight)
        worst = float(np.abs(B @ W - G).max())
        if worst < least:
            least, best = worst, W
        error = np.abs(A @ W - F).max(axis=1)
        weight = weight * (error / (error.max() + 1e-300) + KEPT)
        weight /= weight.mean()
    return best


def _with_carriers(spread: Spread, U: Array, b: Array, c: Array, linear: Array, out: Array, seen: Array) -> Ridges:
    """The affine part goes through one unit an output, which a large offset keeps on."""
    offset = 2.0 * np.abs(seen).max(axis=0) + np.finfo(np.float32).tiny
    weight = spread.shape @ np.hstack([U, linear])
    bias = np.concatenate([b, offset]) - spread.centre @ weight
    return Ridges(weight, bias, np.concatenate([out, np.eye(len(c))]), c - offset)
