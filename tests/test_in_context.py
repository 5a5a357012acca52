"""The scikit-learn face of learners, on data that comes with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from onelayer import InContextRegressor
from onelayer.errors import OptionError

X, Y = load_diabetes(return_X_y=True)


def test_scikit_learns_own_checks_pass() -> None:
    check_estimator(InContextRegressor("mesa", steps=None, options={"ridge": 1e-8}), on_skip=None)


def test_a_solved_layer_is_least_squares_on_diabetes() -> None:
    model = InContextRegressor("mesa", steps=None, options={"ridge": 1e-9}).fit(X[:300], Y[:300])
    wanted = LinearRegression().fit(X[:300], Y[:300]).predict(X[300:])
    np.testing.assert_allclose(model.predict(X[300:]), wanted, rtol=1e-6)


def test_steps_of_ridge_are_ridge_on_diabetes() -> None:
    model = InContextRegressor("ridge", steps=4000, options={"penalty": 0.2}).fit(X[:300], Y[:300])
    exact = model.model_.ledger.number("penalty")
    sk = SklearnRidge(alpha=300 * exact).fit(model.X_, Y[:300])
    wanted = sk.predict((X[300:] - model.X_offset_) / model.X_scale_)
    np.testing.assert_allclose(model.predict(X[300:]), wanted, rtol=1e-9)


def test_it_travels_through_cross_validation_and_search() -> None:
    base = InContextRegressor("mesa", steps=None)
    assert clone(base).get_params() == base.get_params()
    assert cross_val_score(base, X, Y, cv=3).mean() > 0.4
    search = GridSearchCV(
        InContextRegressor("kernel", steps=None), {"options": [{"bandwidth": b} for b in (0.5, 1.0)]}
    )
    assert search.fit(X[:100], Y[:100]).best_params_["options"]["bandwidth"] in (0.5, 1.0)


def test_unknown_learners_are_refused() -> None:
    with pytest.raises(OptionError, match="a learner among"):
        InContextRegressor("nothing").fit(X, Y)


@pytest.mark.parametrize("learner", ["mesa", "kernel"])
def test_learners_that_take_no_steps_are_given_none(learner: str) -> None:
    X, y = np.random.default_rng(0).uniform(-1, 1, (20, 3)), np.arange(20.0)
    found = InContextRegressor(learner).fit(X, y).predict(X)
    assert np.isfinite(found).all()
    if learner == "mesa":
        np.testing.assert_allclose(found, LinearRegression().fit(X, y).predict(X), atol=1e-9)


@pytest.mark.parametrize("learner", ["recurrence", "causal_step", "logistic"])
def test_learners_of_series_or_labels_are_no_regressors(learner: str) -> None:
    with pytest.raises(OptionError, match=f"reads examples with real answers.*learner='{learner}'"):
        InContextRegressor(learner).fit(np.ones((4, 2)), np.arange(4.0))
