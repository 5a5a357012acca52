"""Learners on data that comes with scikit-learn, beside scikit-learn's own: how far apart, and how long it takes.

Data is split before anything is looked at, by a seed that no setting was ever tried with; every setting comes from
the training part alone: means and spreads, the penalty by scikit-learn's cross-validation there, loops by how fast
errors shrink there. Of the test part only differences and scores are written down. No intercept. The step size is
that of the training part, 1/lambda_max, not that of a box: no bound for all examples is asked for, but in the table
`single`. That of logistic regression holds with sqrt(lambda_max) instead of B, since |mean a x| <= sqrt(lambda_max)
sup|a|.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score, train_test_split

import onelayer
from benchmarks import (
    learner_expected,
    learner_numbers,
    learner_optima,
    learner_orders,
    learner_papers,
    learner_ulps,
)
from onelayer.learners.registry import LEARNERS
from onelayer.network.blocks import evaluate
from onelayer.network.forward import run_stack

#: Penalties to choose from, as shares of the largest at which some weight is not 0; most loops.
SHARES, MOST = (0.02, 0.05, 0.1, 0.2, 0.5), {"ridge": 20_000, "lasso": 20_000, "logistic": 200}
#: The largest second derivative of a loss.
CURVED = {"ridge": 1.0, "logistic": 0.25}
SPLIT = 20261117
FORMS: dict[str, dict[str, Any]] = {"ridge": {}, "lasso": {"form": "compact"}, "logistic": {"knots": 17}}


def data(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Examples with answers of one class against the others, or centred reals; and queries with theirs."""
    load = {"diabetes": load_diabetes, "breast_cancer": load_breast_cancer, "wine": load_wine}[name]
    X, y = load(return_X_y=True)
    y = y if name == "diabetes" else (y == 0).astype(float)
    X, queries, y, answers = train_test_split(X, y, test_size=0.25, random_state=SPLIT)
    if name == "diabetes":  # everything below is known from the training part alone
        middle, size = y.mean(), np.abs(y - y.mean()).max()
        y, answers = (y - middle) / size, (answers - middle) / size
    mean, spread = X.mean(axis=0), X.std(axis=0)
    largest = np.abs((X - mean) / spread).max()
    return (X - mean) / spread / largest, (queries - mean) / spread / largest, y, answers


def choose(kind: str, X: np.ndarray, y: np.ndarray) -> float:
    """The penalty with the best score of a five-fold cross-validation on the training part."""
    largest = float(np.abs(X.T @ y / len(X)).max())

    def fitted(penalty: float) -> Any:
        if kind == "ridge":
            return Ridge(alpha=len(X) * 0.8 * penalty, fit_intercept=False)
        if kind == "lasso":
            return Lasso(alpha=penalty, fit_intercept=False, max_iter=10**5)
        return LogisticRegression(C=1 / (len(X) * 0.8 * penalty), fit_intercept=False, max_iter=10**4)

    scores = [cross_val_score(fitted(share * largest), X, y).mean() for share in SHARES]
    return SHARES[int(np.argmax(scores))] * largest


def settle(kind: str, X: np.ndarray, y: np.ndarray, penalty: float) -> int:
    """Loops after which less than 1e-15 of the first error is left, by the least curvature of the training part; of
    the lasso, after which its steps there are smaller than a rounding of the weights."""
    S, g = X.T @ X / len(X), X.T @ y / len(X)
    largest = float(np.linalg.eigvalsh(S)[-1])
    if kind != "lasso":
        return int(min(MOST[kind], np.ceil(35 * (CURVED[kind] * largest + penalty) / penalty)))
    w, loops = np.zeros(X.shape[1]), 0
    while loops < MOST[kind]:
        u = w + (g - S @ w) / largest
        u, before, loops = np.sign(u) * np.maximum(np.abs(u) - penalty / largest, 0.0), w, loops + 1
        if np.abs(u - before).max() <= 2.0**-53 * np.abs(u).max():
            break
        w = u
    return loops


def compare_learner(name: str, kind: str) -> dict[str, Any]:
    X, queries, y, test = data(name)
    high = float(np.sqrt(np.linalg.eigvalsh(X.T @ X / len(X))[-1] / X.shape[1]))
    penalty = choose(kind, X, y)
    steps = settle(kind, X, y, penalty)
    given: dict[str, Any] = {"d": X.shape[1], "low": -high, "high": high, "steps": steps, "penalty": penalty}
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
    row |= {"loops": steps, "apart": float(np.abs(answers - wanted).max()), "verdict": result}
    row |= {f"test_{who}": score(kind, found, test) for who, found in (("network", answers), ("sklearn", wanted))}
    return row | {"build_cpu": built, "verify_cpu": verified, "predict_cpu": asked}


def score(kind: str, found: np.ndarray, test: np.ndarray) -> float:
    """Of the test part: the share of right classes, or one less the share of the variance that is left."""
    if kind == "logistic":
        return float(((found > 0.5) == (test > 0.5)).mean())
    return 1 - float(((found - test) ** 2).mean() / test.var())


def compare_single(name: str, kind: str) -> dict[str, Any]:
    """float32 for 20 loops beside the algorithm in wider numbers, and the bound that is proved for every prompt of
    the box with as many examples, in any order of summation. Labels of diabetes: whether y is above its median.
    """
    X, queries, y, _ = data(name)
    y = y > np.median(y) if kind == "logistic" and name == "diabetes" else y
    X, queries, y = (part.astype(np.float32) for part in (X, queries, y))
    largest = float(max(np.abs(X).max(), np.abs(queries).max()))
    given: dict[str, Any] = {"d": X.shape[1], "low": -largest, "high": largest, "steps": 20, "certify": True}
    given |= {} if kind == "gd" else {"penalty": choose(kind, X, y), **FORMS[kind]}
    model = onelayer.learner(kind, dtype="float32", examples=len(X), **given)
    wanted = model.algorithm(*(part.astype(np.longdouble) for part in (X, y, queries)))
    off = float(np.abs(model.predict(X, y, queries) - wanted).max())
    verdict = model.verify(require=["rounds"]).result
    row = {"data": name, "learner": kind, "examples": len(X), "d": X.shape[1], "loops": 20}
    row |= {"largest answer": float(np.abs(wanted).max()), "proved": model.interface.rounding_bound}
    return row | {"seen": off, "within": off <= model.interface.rounding_bound, "verdict": verdict}


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


def compare_all(kind: str) -> list[dict[str, Any]]:
    names = ("diabetes", "wine", "breast_cancer") if kind != "logistic" else ("wine", "breast_cancer")
    return [compare_learner(name, kind) for name in names]


def single() -> list[dict[str, Any]]:
    names, kinds = ("diabetes", "breast_cancer", "wine"), ("gd", "ridge", "lasso", "logistic")
    return [compare_single(name, kind) for name in names for kind in kinds]


def proofs() -> list[dict[str, Any]]:
    """CPU seconds in which the checker decides `equals` again, by d."""
    rows = []
    for name, form in [*((name, "") for name in LEARNERS), ("ridge", "published"), ("lasso", "compact")]:
        row: dict[str, Any] = {"learner": f"{name}, {form}" if form else name}
        for d in (5, 10, 20, 40):
            options: dict[str, Any] = {"form": form} if form else {}
            options |= {"covariance": np.eye(d) + 0.5 * np.ones((d, d))} if name == "preconditioned" else {}
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


TABLES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    **{kind: partial(compare_all, kind) for kind in FORMS},
    "single": single,
    "proofs": proofs,
    **learner_ulps.TABLES,
    **learner_numbers.TABLES,
    **learner_optima.TABLES,
    **learner_papers.TABLES,
    **learner_orders.TABLES,
    **learner_expected.TABLES,
}


def run() -> dict[str, list[dict[str, Any]]]:
    return {name: table() for name, table in TABLES.items()}
