"""Figures of the papers that learners come from, computed again: settings, seeds and intervals are in every row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

import onelayer
from benchmarks.learner_numbers import spread

Array = np.ndarray


def bayes(noise: float) -> dict[str, Any]:
    """d = N = 20, w normal of variance 1/d: |w_L - w|^2 + noise^2, and the best penalties for noise 0.1, 0.5."""
    row: dict[str, Any] = {"noise": noise, "seeds": 4, "tasks": 500, "loops": 1500}
    for best in (0.1, 0.5):
        model = onelayer.learner(
            "ridge", d=20, steps=1500, penalty=best**2, low=-0.45, high=0.45, largest=9.0, certify=False
        )
        losses = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            X, w = rng.normal(size=(500, 20, 20)), rng.normal(size=(500, 20)) / 20**0.5
            y = np.einsum("bnd,bd->bn", X, w) + noise * rng.normal(size=(500, 20))
            found = model.predict(X, y, np.repeat(np.eye(20)[None], 500, axis=0), outside="answer")
            losses.append(float(((found - w) ** 2).sum(axis=1).mean()) + noise**2)
        row[f"penalty for noise {best}"] = spread(losses)
    return row


def settled() -> list[dict[str, Any]]:
    """300 loops on 40 random examples of 10 numbers, beside scikit-learn; the largest of 10 tasks."""
    rows = []
    cases: dict[str, dict[str, Any]] = {"ridge": {}, "lasso": {"form": "compact"}, "logistic": {"knots": 33}}
    for kind, given in cases.items():
        apart, zeros, bound = [], True, 0.0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X, q = rng.uniform(-1, 1, (40, 10)), rng.uniform(-1, 1, (50, 10))
            w = rng.normal(size=10) * (np.arange(10) < 4)
            y = np.clip(X @ w + 0.1 * rng.normal(size=40), -4, 4)
            y = (y > 0).astype(float) if kind == "logistic" else y
            high = float(np.sqrt(np.linalg.eigvalsh(X.T @ X / 40)[-1] / 10))  # the step is 1/lambda_max of the data
            model = onelayer.learner(
                kind, d=10, steps=300, penalty=0.1, low=-high, high=high, largest=4.0, certify=False, **given
            )
            exact, found = model.ledger.number("penalty"), model.predict(X, y, q, outside="answer")
            if kind == "ridge":
                wanted = Ridge(alpha=40 * exact, fit_intercept=False).fit(X, y).predict(q)
            elif kind == "lasso":
                fitted = Lasso(alpha=exact, fit_intercept=False, tol=1e-15, max_iter=10**6).fit(X, y)
                wanted = fitted.predict(q)
                weights = model.predict(X, y, np.eye(10), outside="answer")
                zeros &= bool(((weights == 0) == (fitted.coef_ == 0)).all())
            else:
                sk = LogisticRegression(C=1 / (40 * exact), fit_intercept=False, tol=1e-12, max_iter=10**5).fit(
                    X, y
                )
                wanted, bound = sk.predict_proba(q)[:, 1], model.ledger.number("weight_error")
            apart.append(float(np.abs(found - wanted).max()))
        row: dict[str, Any] = {"learner": kind, "tasks": 10, "loops": 300, "apart": max(apart)}
        rows.append(row | {"same_zeros": zeros if kind == "lasso" else "", "weights_bound": bound or ""})
    return rows


def knots() -> dict[str, Any]:
    """How far the sigmoid is from its pieces, at 17 to 129 knots on [-8, 8]: h^2/8 times 0.0963, a slope of -2."""
    places, off = np.linspace(-8, 8, 100_001), []
    for count in (17, 33, 65, 129):
        at = np.linspace(-8, 8, count)
        off.append(float(np.abs(np.interp(places, at, 1 / (1 + np.exp(-at))) - 1 / (1 + np.exp(-places))).max()))
    h = 16 / (np.array([17, 33, 65, 129]) - 1)
    slope = float(np.polyfit(np.log(h), np.log(off), 1)[0])
    return {
        "knots": "17 to 129",
        "slope": -slope,
        "over h^2/8 * 0.0963 at 129": off[-1] / (h[-1] ** 2 / 8 * 0.0963),
    }


def depth(penalty: float) -> dict[str, Any]:
    """Loops until answers are within eps = 1e-3 (d = 10, N = 40), beside 2 kappa log(B_x B_w / 2 eps) + 1."""
    rng, needed, bounds = np.random.default_rng(0), [], []
    X, w = rng.normal(size=(200, 40, 10)), rng.normal(size=(200, 10)) / 10**0.5
    y = np.einsum("bnd,bd->bn", X, w)
    for A, c in zip(X, y, strict=True):
        S, g = A.T @ A / 40, A.T @ c / 40
        values = np.linalg.eigvalsh(S) + penalty
        kappa, limit = values[-1] / values[0], np.linalg.solve(S + penalty * np.eye(10), g)
        size = float(np.linalg.norm(A, axis=1).max())
        bounds.append(int(np.ceil(2 * kappa * np.log(size * np.linalg.norm(limit) / 2e-3))) + 1)
        u, loops = np.zeros(10), 0
        while np.abs(A @ (u - limit)).max() > 1e-3:
            u, loops = u + (g - S @ u - penalty * u) / values[-1], loops + 1
        needed.append(loops)
    return {"penalty": penalty, "tasks": 200, "theorem": float(np.median(bounds)), "seen": float(np.median(needed))}


def ranks(alpha: float, seeds: int = 5) -> dict[str, Any]:
    """Singular values k^-alpha, sines of queries, cosines of keys: how errors of a head fall with its rank."""
    m, slopes = np.array([4, 8, 16, 32, 64, 128, 256]), tuple[list[float], list[float]](([], []))
    for seed in range(seeds):
        rng, k = np.random.default_rng(seed), np.arange(1, 2049)
        u, v, f = rng.uniform(0, 1, 256), rng.uniform(0, 1, (256, 32)), rng.uniform(-1, 1, (256, 32))
        P = k**-alpha * np.sqrt(2) * np.sin(2 * np.pi * k * u[:, None])
        Q = np.sqrt(2) * np.cos(2 * np.pi * k * v[..., None])
        logits = np.cumsum(P[:, None] * Q, axis=-1)
        answers = [average(logits[..., rank - 1], f) for rank in (*m, 2048)]
        for found, power in zip(slopes, (2, 1), strict=True):
            errors = [float((np.abs(a - answers[-1]) ** power).mean()) for a in answers[:-1]]
            found.append(float(np.polyfit(np.log(m), np.log(errors), 1)[0]))
    return {
        "alpha": alpha,
        "seeds": seeds,
        "slope of mean squares": spread(slopes[0]),
        "of mean errors": spread(slopes[1]),
    }


def average(logits: Array, f: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray((weights * f).sum(axis=-1) / weights.sum(axis=-1))


def attended(kernel: str, knots: int) -> dict[str, Any]:
    """A kernel at rank 16: the bound for every number of examples, and a million answers drawn and climbed for."""
    model, rng = onelayer.attend(kernel, rank=16, knots=knots), np.random.default_rng(0)
    count, worst = 0, 0.0
    for n, tasks, asked in (
        (2, 2000, 100),
        (5, 2000, 100),
        (16, 2000, 100),
        (64, 2000, 100),
        (512, 400, 400),
        (4096, 8, 5000),
    ):
        X, q = rng.uniform(0, 1, (tasks, n)), rng.uniform(0, 1, (tasks, asked))
        worst = max(worst, float(off(model, X, rng.choice([-1.0, 1.0], (tasks, n)), q).max()))
        count += tasks * asked
    X, q, y = rng.uniform(0, 1, (500, 2)), rng.uniform(0, 1, (500, 1)), np.tile([-1.0, 1.0], (500, 1))
    best = off(model, X, y, q)[:, 0]
    for step in range(80):
        near = [np.clip(a + rng.normal(0, 0.3 * 0.92**step, a.shape), 0, 1) for a in (X, q)]
        found = off(model, near[0], y, near[1])[:, 0]
        better = found > best
        X[better], q[better], best[better], count = near[0][better], near[1][better], found[better], count + 500
    row = {"kernel": kernel, "rank": 16, "knots": knots, "proved": model.error_bound, "answers": count}
    verdict = model.verify(require=["attends real"]).result
    return row | {"largest_drawn": worst, "largest_climbed": float(best.max()), "verdict": verdict}


def off(model: onelayer.Model, X: Array, y: Array, queries: Array) -> Array:
    rho = model.interface.algorithm.logit.run({"q": [queries[..., None]], "x": [X[:, None, :]]})[0]
    return np.abs(model.predict(X[..., None], y, queries[..., None]) - average(rho, y[:, None, :]))


def minimised(half: float, exact: str) -> dict[str, Any]:
    """The best of all linear attention layers, d = N = 10, x uniform on [-half, half]: its step and its risk."""
    model = onelayer.learner("gd", d=10, optimal=10, low=-half, high=half)
    verdict = model.verify(require=["minimises real"]).result
    row = {"half": half, "eta": model.ledger.number("eta"), "risk": model.ledger.number("risk")}
    return row | {"closed_form": exact, "apart": abs(row["risk"] - float(Fraction(exact))), "verdict": verdict}


def run() -> dict[str, list[dict[str, Any]]]:
    return {
        "kernels": [attended("4*exp(-3*abs(u - v))", 65), attended("3*exp(-8*(u - v)**2)", 65)],
        "minimised": [minimised(0.5, "245/1188"), minimised(1.0, "245/297")],
        "bayes": [bayes(0.1), bayes(0.5)],
        "settled": settled(),
        "knots": [knots()],
        "depth": [depth(penalty) for penalty in (1.0, 0.3, 0.01)],
        "ranks": [ranks(alpha) for alpha in (0.75, 1.0, 1.5)],
    }
