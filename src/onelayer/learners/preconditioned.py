"""Statement  Looped linear attention with queries x A is gradient descent preconditioned by A (Gatmiry et al.
2024).

Gives      w <- w + eta A mean_i (y_i - <w, x_i>) x_i, the block of `gradient_step` with W_Q = A on the inputs.
Rests on   gradient_step.
Why        A token sees <A x_k, x_i>, a residual moves by <A x_i, x_k>: the same if and only if A is symmetric.
Differs    Symmetry is demanded here; the proof fails without it. With ``covariance`` A is its inverse, rounded
and made symmetric again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import HypothesisError, OptionError
from onelayer.learners import gradient_step
from onelayer.learners.built import Built, Setting, step_size, steps_of
from onelayer.ledger import Constant
from onelayer.problems.scripts import Array
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["preconditioned"]


def build(setting: Setting, A: Any = None, covariance: Any = None, eta: float | None = None) -> Built:
    """Steps along A, or along the inverse of the inputs' covariance."""
    if (A is None) == (covariance is None):
        needs, found = "a preconditioner A, or the covariance of the inputs", "both" if A is not None else "neither"
        raise OptionError("preconditioned", needs, f"{found} given", "Give one of them.")
    matrix = _matrix(setting, A if covariance is None else covariance, "A" if covariance is None else "covariance")
    if covariance is not None:
        inverse = np.linalg.inv(matrix)
        matrix = (inverse + inverse.T) / 2
    matrix = matrix.astype(setting.dtype).astype(np.float64)
    steps = steps_of(setting, "preconditioned")
    largest = float(np.linalg.eigvalsh(matrix)[-1])
    eta = step_size(setting, "preconditioned", eta, 2 / (setting.norm_squared * largest), "2/(B^2 |A|)")
    constants = (
        Constant("eta", eta, "step size; by default 1/(B^2 |A|), B^2 = d max(|low|, |high|)^2"),
        Constant("norm", largest, "largest eigenvalue of A"),
        Constant("steps", steps, "loops of the block"),
    )
    net = gradient_step.network(setting, matrix, eta, steps)
    words = f"{steps} steps of preconditioned gradient descent"
    return Built(net, gradient_step.algorithm(setting, matrix, eta, steps), constants, words)


def _matrix(setting: Setting, given: Any, name: str) -> Array:
    """A symmetric, positive definite matrix, or an error that says where it is not."""
    d = setting.d
    try:
        A = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        A = np.empty(0)
    if A.shape != (d, d) or not np.isfinite(A).all():
        raise OptionError("preconditioned", f"a matrix [{d}, {d}]", f"{name} has shape {A.shape}", "Give one.")
    if not (A == A.T).all():
        i, j = (int(k[0]) for k in np.nonzero(A != A.T))
        found = f"{name}[{i}, {j}] = {A[i, j]:g} and {name}[{j}, {i}] = {A[j, i]:g}"
        raise HypothesisError("preconditioned", f"a symmetric {name}", found, f"Use ({name} + {name}^T)/2.")
    lowest = float(np.linalg.eigvalsh(A)[0])
    if lowest <= 0:
        needs, found = f"a positive definite {name}, or some errors grow", f"an eigenvalue is {lowest:g}"
        raise HypothesisError("preconditioned", needs, found, "Add a multiple of the identity.")
    return A
