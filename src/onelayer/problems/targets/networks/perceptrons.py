"""A fitted MLPRegressor of scikit-learn as a formula: it answers for each token."""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import OptionError
from onelayer.problems.targets.networks import operations as ops
from onelayer.problems.targets.networks.values import Tensor

ACTIVATIONS = {"identity": "identity", "relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}


def read_perceptron(model: Any, given: Tensor) -> Tensor:
    if not hasattr(model, "coefs_"):
        needs, found = "an MLPRegressor that was fitted", f"{type(model).__name__} has no weights"
        raise OptionError("network", needs, found, "Call fit first.")
    made = given
    for i, (W, b) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        made = ops.affine(made, np.asarray(W, np.float64).T, b)
        last = i + 1 == len(model.coefs_)
        made = ops.unary(ACTIVATIONS[model.out_activation_ if last else model.activation], made)
    return made
