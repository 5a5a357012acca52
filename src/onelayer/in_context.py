"""The estimator face of learners: `InContextRegressor` keeps examples, and a network learns from them if asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.learner import learner
from onelayer.errors import MissingExtraError, OptionError

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError("InContextRegressor", "sklearn", "sklearn") from error

Array = NDArray[Any]
#: Learners that take no steps; and those that read a series, or labels.
SOLVED, OTHERS = {"mesa", "kernel"}, {"causal_step", "recurrence", "logistic"}


class InContextRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A looped attention layer that learns from its prompt: `fit` keeps the examples, `predict` runs the network.

    Parameters
    ----------
    learner : str, default "ridge"
        A name of `onelayer.learner` that reads examples and real answers: "gd", "ridge", "lasso", "mesa", "kernel".
    steps : int, default 1000
        Loops of the block; not used by learners that take none.
    options : dict or None
        What else this learner takes, {"penalty": 0.1} (of the mean loss).
    fit_intercept : bool, default True
        Whether the means of X and y are taken off before the network sees them, as scikit-learn's own do.
    scale : bool, default True
        Whether columns of X are divided by their largest magnitude first, so that one step size suits all of them;
        a penalty is then one of the scaled problem.

    Attributes
    ----------
    model_ : onelayer.Model
        The network; `model_.certify` is not asked here, `onelayer.learner` proves.
    """

    def __init__(
        self,
        learner: str = "ridge",
        *,
        steps: int | None = 1000,
        options: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        scale: bool = True,
    ) -> None:
        self.learner = learner
        self.steps = steps
        self.options = options
        self.fit_intercept = fit_intercept
        self.scale = scale

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> InContextRegressor:
        """Keep the examples, and build the network for their box."""
        if self.learner in OTHERS:
            needs = "a learner that reads examples with real answers"
            remedy = "Use ridge, lasso, gd, mesa or kernel; onelayer.learner has the others."
            raise OptionError("InContextRegressor", needs, f"learner={self.learner!r}", remedy)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        self.X_offset_ = X.mean(axis=0) if self.fit_intercept else np.zeros(X.shape[1])
        self.y_offset_ = y.mean(axis=0) if self.fit_intercept else np.zeros(y.shape[1:])
        centred = X - self.X_offset_
        largest = np.abs(centred).max(axis=0)
        self.X_scale_ = np.where(largest > 0, largest, 1.0) if self.scale else np.ones(X.shape[1])
        self.X_, self.y_ = centred / self.X_scale_, np.asarray(y - self.y_offset_, np.float64)
        reach = float(np.abs(self.X_).max()) or 1.0
        self.model_ = learner(
            self.learner,
            d=X.shape[1],
            outputs=1 if y.ndim == 1 else y.shape[1],
            low=-reach,
            high=reach,
            steps=None if self.learner in SOLVED else self.steps,
            certify=False,
            **(self.options or {}),
        )
        return self

    def predict(self, X: Any) -> Array:
        """What the network answers when it has read the examples, at each row of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        answers = self.model_.predict(self.X_, self.y_, (X - self.X_offset_) / self.X_scale_)
        return np.asarray(answers) + self.y_offset_
