"""Figures of the papers that learners come from, computed again: settings, seeds and intervals are in every row."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

import onelayer
from benchmarks.learner_numbers import spread

Array = np.ndarray


def bayes(tasks: int = 100, loops: int = 400) -> list[dict[str, Any]]:
    """d = N = 20, w normal of variance 1/d: |w_L - w|^2 + noise^2, and the best penalties for noise 0.1, 0.5.

    The network is linear in y: with as many outputs as examples, and y = 1 at one example each, it gives the matrix
    M of its weights M y, and |M X - 1|^2 / d + noise^2 |M|^2 is the mean over all w and noises. Beside it that of
    the ridge estimate itself, over 200,000 tasks by their singular values, with its standard error.
    """
    values = singular_values(200_000)
    rows, units = [], np.repeat(np.eye(20)[None], tasks, axis=0)
    for best in (0.1, 0.5):
        model = onelayer.learner(
            "nesterov", d=20, outputs=20, steps=loops, penalty=best**2, low=-0.5, high=0.5, certify=False
        )
        drawn = [np.random.default_rng(seed).normal(size=(tasks, 20, 20)) for seed in range(4)]
        solved = [model.predict(X, units, units, outside="answer") for X in drawn]
        penalty = 20 * model.ledger.number("penalty")
        for noise in (0.1, 0.5):
            losses = [
                float(((M @ X - np.eye(20)) ** 2).sum() / 20 + noise**2 * (M**2).sum()) / tasks + noise**2
                for X, M in zip(drawn, solved, strict=True)
            ]
            risks = (penalty**2 / 20 + noise**2 * values) / (values + penalty) ** 2
            every = risks.sum(axis=1) + noise**2
            row: dict[str, Any] = {"noise": noise, "penalty for noise": best, "seeds": 4, "tasks": tasks}
            row |= {"loops": loops, "network": spread(losses), "ridge estimate": float(every.mean())}
            rows.append(row | {"standard error": float(every.std() / len(every) ** 0.5)})
    return rows


def singular_values(tasks: int) -> Array:
    """Squares of the singular values of normal matrices of 20 x 20."""
    rng, found = np.random.default_rng(123), []
    for _ in range(tasks // 10_000):
        X = rng.normal(size=(10_000, 20, 20))
        found.append(np.linalg.eigvalsh(X.swapaxes(1, 2) @ X))
    return np.concatenate(found)


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


def ranks(seeds: int = 8, terms: int = 8192) -> list[dict[str, Any]]:
    """Singular values k^-alpha, sines of queries, cosines of keys: how errors fall with the rank, from 4 to 256.

    Sequences of n tokens, 3,200 in all, each of which asks all; values are uniform on [0, 1]. Slopes depend on n:
    what is cut off is small but for a few pairs, and more keys find more of them.
    """
    cuts = np.array([0, 4, 8, 16, 32, 64, 128, 256])
    cases = [(n, alpha) for n in (16, 32) for alpha in (0.75, 1.0, 1.5)]
    slopes: dict[tuple[int, float, int], list[float]] = {(*case, power): [] for case in cases for power in (2, 1)}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x, f = rng.uniform(0, 1, 3200), rng.uniform(0, 1, 3200)
        logits = {case: [np.zeros((3200 // case[0], case[0], case[0]))] for case in cases}
        for low, high in itertools.pairwise([*cuts, *range(1024, terms + 1, 1024)]):
            k = np.arange(low + 1, high + 1)
            P, Q = (np.sqrt(2) * wave(2 * np.pi * k * x[:, None]) for wave in (np.sin, np.cos))
            for (n, alpha), found in logits.items():
                part = (P * k**-alpha).reshape(-1, n, len(k)) @ Q.reshape(-1, n, len(k)).swapaxes(1, 2)
                found.append(found[-1] + part)
        for (n, alpha), found in logits.items():
            *answers, full = (average(part, f.reshape(-1, 1, n)) for part in (*found[1 : len(cuts)], found[-1]))
            for power in (2, 1):
                errors = [float((np.abs(a - full) ** power).mean()) for a in answers]
                slopes[n, alpha, power].append(float(np.polyfit(np.log(cuts[1:]), np.log(errors), 1)[0]))
    return [
        {"n": n, "alpha": alpha, "terms": terms, "seeds": seeds}
        | {"slope of mean squares": spread(slopes[n, alpha, 2]), "1 - 2 alpha": 1 - 2 * alpha}
        | {"slope of mean errors": spread(slopes[n, alpha, 1])}
        for n, alpha in cases
    ]


def fitted(d: int, heads: int) -> dict[str, Any]:
    """A random layer of so many heads, learnt from 4,096 sequences of 10: what is left there, and at length 40."""
    train, off = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(2, heads, d, d))

        def answer(Z: Array, W: Array = W) -> Array:
            G = Z.swapaxes(1, 2) @ Z
            return np.asarray(
                sum(np.einsum("bi,ij,bjk,kl->bl", Z[:, -1], Q, G, V) for Q, V in zip(*W, strict=True))
            )

        Z, longer = rng.normal(size=(4096, 10, d)), rng.normal(size=(500, 40, d))
        model = onelayer.fit_attention(Z, answer(Z), certify=False)
        train.append(model.ledger.number("error") / float((answer(Z) ** 2).mean()))
        wanted = answer(longer)
        off.append(float(np.abs(model.predict(longer) - wanted).max() / np.abs(wanted).max()))
    row = {"d": d, "heads": heads, "seeds": 5, "heads_found": model.ledger.number("heads")}
    return row | {"largest relative mean square left": max(train), "largest relative error at length 40": max(off)}


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


TABLES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "kernels": lambda: [attended("4*exp(-3*abs(u - v))", 65), attended("3*exp(-8*(u - v)**2)", 65)],
    "minimised": lambda: [minimised(0.5, "245/1188"), minimised(1.0, "245/297")],
    "bayes": bayes,
    "settled": settled,
    "knots": lambda: [knots()],
    "depth": lambda: [depth(penalty) for penalty in (1.0, 0.3, 0.01)],
    "fitted": lambda: [fitted(d, heads) for d, heads in ((2, 1), (4, 1), (3, 2))],
    "ranks": ranks,
}
