"""Learners on data that comes with scikit-learn, beside scikit-learn's own: how far apart, and how long it takes.

Inputs are standardised and divided by their largest magnitude, split before anything is looked at; no intercept.
The step size is that of the data, 1/lambda_max, not that of a box: no bound for all examples is asked for. That of
logistic regression holds with sqrt(lambda_max) instead of B, since |mean a x| <= sqrt(lambda_max) sup|a|.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import train_test_split

import onelayer
from benchmarks import learner_numbers
from onelayer.learners.registry import LEARNERS
from onelayer.network.blocks import evaluate
from onelayer.network.forward import run_stack

#: As a share of the largest penalty at which some weight is not 0; and loops, enough for all of them to settle.
PENALTY, STEPS = 0.2, {"ridge": 6_000, "lasso": 6_000, "logistic": 150}
FORMS: dict[str, dict[str, Any]] = {"ridge": {}, "lasso": {"form": "compact"}, "logistic": {"knots": 17}}


def data(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Examples with answers of one class against the others, or centred reals; and queries with theirs."""
    load = {"diabetes": load_diabetes, "breast_cancer": load_breast_cancer, "wine": load_wine}[name]
    X, y = load(return_X_y=True)
    y = y if name == "diabetes" else (y == 0).astype(float)
    X, queries, y, answers = train_test_split(X, y, test_size=0.25, random_state=0)
    if name == "diabetes":  # everything below is known from the training part alone
        middle, size = y.mean(), np.abs(y - y.mean()).max()
        y, answers = (y - middle) / size, (answers - middle) / size
    mean, spread = X.mean(axis=0), X.std(axis=0)
    largest = np.abs((X - mean) / spread).max()
    return (X - mean) / spread / largest, (queries - mean) / spread / largest, y, answers


def compare_learner(name: str, kind: str) -> dict[str, Any]:
    X, queries, y, _ = data(name)
    high = float(np.sqrt(np.linalg.eigvalsh(X.T @ X / len(X))[-1] / X.shape[1]))
    given: dict[str, Any] = {"d": X.shape[1], "low": -high, "high": high, "steps": STEPS[kind]}
    given |= {"penalty": PENALTY * float(np.abs(X.T @ y / len(X)).max())}
    given |= FORMS[kind]
    begun = time.process_time()
    model = onelayer.learner(kind, certify=False, **given)
    built = time.process_time() - begun
    begun = time.process_time()
    result = onelayer.learner(kind, **given).verify().result
    verified = (time.process_time() - begun) / 2
    exact = model.ledger.number("penalty")
    begun = time.process_time()
    answers, w = answer_queries(model, X, y, queries)
    asked = time.process_time() - begun
    row: dict[str, Any] = {"data": name, "learner": kind, "examples": len(X), "d": X.shape[1], "penalty": exact}
    if kind == "ridge":
        wanted = Ridge(alpha=len(X) * exact, fit_intercept=False, solver="cholesky").fit(X, y).predict(queries)
    elif kind == "lasso":
        sk = Lasso(alpha=exact, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(X, y)
        wanted = sk.predict(queries)
        row |= {"zeros": int((w == 0).sum()), "zeros_sklearn": int((sk.coef_ == 0).sum())}
        row |= {"same_zeros": bool(((w == 0) == (sk.coef_ == 0)).all())}
    else:
        C = 1 / (len(X) * exact)
        sk = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10**5).fit(X, y)
        wanted = sk.predict_proba(queries)[:, 1]
        row |= {"weights_apart": float(np.linalg.norm(w - sk.coef_[0]))}
        row |= {"weights_bound": model.ledger.number("weight_error")}
    row |= {"loops": STEPS[kind], "apart": float(np.abs(answers - wanted).max()), "verdict": result}
    return row | {"build_cpu": built, "verify_cpu": verified, "predict_cpu": asked}


def answer_queries(
    model: onelayer.Model, X: np.ndarray, y: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Answers, and w after the last loop, where a token carries it."""
    if not model.transformer.further:
        return model.predict(X, y, queries), np.empty(0)
    interface, d = model.interface, X.shape[1]
    tokens, _ = interface.prompts(interface.tasks(X, y, queries), model.transformer.dtype)
    last = replace(model.transformer.further[-1], readout=())
    stream = evaluate(replace(model.transformer, further=(last,)), tokens)[0, len(X) :]
    return run_stack(model.transformer.last_readout, stream.copy())[:, 0], stream[-1, d + 1 : 2 * d + 1]


def run() -> dict[str, list[dict[str, Any]]]:
    cases = [("diabetes", "ridge"), ("diabetes", "lasso"), ("breast_cancer", "ridge"), ("breast_cancer", "lasso")]
    cases += [("breast_cancer", "logistic"), ("wine", "ridge"), ("wine", "lasso"), ("wine", "logistic")]
    rows = [compare_learner(*case) for case in cases]
    kinds = dict.fromkeys(row["learner"] for row in rows)
    tables = {kind: [row for row in rows if row["learner"] == kind] for kind in kinds}
    return tables | {"proofs": proofs()} | learner_numbers.run()


def proofs() -> list[dict[str, Any]]:
    """CPU seconds in which the checker decides `equals` again, by d."""
    rows = []
    for name in LEARNERS:
        row: dict[str, Any] = {"learner": name}
        for d in (5, 10, 20, 40):
            options = {"covariance": np.eye(d) + 0.5 * np.ones((d, d))} if name == "preconditioned" else {}
            try:
                model = onelayer.learner(name, d=d, **options)
            except onelayer.HypothesisError:
                row[f"d={d}"] = "refused"
                continue
            begun = time.process_time()
            assert model.verify().result == "VERIFIED"
            row[f"d={d}"] = time.process_time() - begun
        rows.append(row)
    return rows
