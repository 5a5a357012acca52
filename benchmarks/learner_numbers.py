"""Learners on random tasks and series: mean errors with their spread over seeds, roundings, and what they cost.

Every row says how many seeds it is the mean of, and +- is the standard deviation over them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.cbook import get_sample_data

import onelayer
from onelayer.learners.cubic import features

SEEDS = range(8)


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.4g} +- {np.std(values):.2g}"


def dynamics(noise: float, ridge: float, sequences: int = 600) -> dict[str, Any]:
    """Orthogonal linear dynamics of 10 components, 50 steps: a gradient step of the best size, mesa, nothing."""
    mesa = onelayer.learner("recurrence", d=10, order=1, affine=False, ridge=ridge, certify=False)
    step = onelayer.learner("causal_step", d=10, eta=2.0**-8, certify=False)
    rows: dict[str, list[float]] = {"gd": [], "mesa": [], "zero": []}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        W = np.linalg.qr(rng.normal(size=(sequences, 10, 10)))[0]
        S = np.zeros((sequences, 51, 10))
        S[:, 0] = rng.normal(size=(sequences, 10))
        for t in range(50):
            S[:, t + 1] = np.einsum("bij,bj->bi", W, S[:, t]) + noise * rng.normal(size=(sequences, 10))
        known, wanted = S[:, :-1], S[:, 2:]
        moved = step.predict(known)
        scale = float((moved * wanted).sum() / (moved**2).sum())
        for name, found in (("gd", scale * moved), ("mesa", mesa.predict(known)), ("zero", 0 * wanted)):
            rows[name].append(0.5 * float(((found - wanted) ** 2).sum(-1).mean()))
    return {"task": f"dynamics, noise {noise:g}", "seeds": len(SEEDS)} | {k: spread(v) for k, v in rows.items()}


def growth() -> list[dict[str, Any]]:
    """CPU time of a series twice as long, again and again: exponents of least squares, of 10 components."""
    rows, lengths = [], (1000, 2000, 4000, 8000)
    for name, given in (("causal_step", {}), ("recurrence", {"affine": False, "ridge": 1e-3})):
        model, took = onelayer.learner(name, d=10, certify=False, **given), []  # type: ignore[arg-type]
        for n in lengths:
            S, times = np.random.default_rng(0).uniform(-1, 1, (n, 10)), []
            for _ in range(5):
                begun = time.process_time()
                model.predict(S)
                times.append(time.process_time() - begun)
            took.append(float(np.median(times)))
        exponent = float(np.polyfit(np.log(lengths), np.log(took), 1)[0])
        cpu = {f"T={n}": t for n, t in zip(lengths, took, strict=True)}
        rows.append({"learner": name, "exponent": exponent} | cpu)
    return rows


def recurrences(dtype: str, ridge: float | None, seeds: int = 100) -> dict[str, Any]:
    """s' = a s + b from its first five values; one gradient step from 0, of size 1/lambda_max, beside it.

    Without a ridge it is the usual one. In float64 what is left is what the ridge shrinks, and grows with it, down
    to 1e-15 or so: there roundings take over, and below 1e-16 some of these prompts have a singular matrix.
    """
    model = onelayer.learner("recurrence", dtype=dtype, ridge=ridge, certify=False)
    medians, steps, largest = [], [], []
    for seed in range(seeds):
        s = affine_series(np.random.default_rng(seed))
        errors = np.abs(model.predict(s[:, :5])[:, -1] - s[:, 5])
        K, v = np.stack([s[:, :4], np.ones((len(s), 4))], axis=2), s[:, 1:5]
        step = np.einsum("bni,bn->bi", K, v) / np.linalg.eigvalsh(K.swapaxes(1, 2) @ K)[:, -1:]
        medians.append(float(np.median(errors)))
        steps.append(float(np.median(np.abs(step[:, 0] * s[:, 4] + step[:, 1] - s[:, 5]))))
        largest.append(float(errors.max()))
    row: dict[str, Any] = {"dtype": dtype, "ridge": model.ledger.number("ridge")}
    row |= {"by default": ridge is None, "seeds": seeds, "recurrences": len(s), "median": spread(medians)}
    row |= {"largest, median over seeds": float(np.median(largest)), "largest of all": max(largest)}
    row |= {"seeds above 5e-11": sum(each > 5e-11 for each in largest)}
    return row | {"one gradient step, median": spread(steps)}


def affine_series(rng: np.random.Generator, count: int = 300) -> np.ndarray:
    """[count, 6]: values of s' = a s + b, a uniform on [-1, 1], b on [-2, 2], a normal start."""
    found = []
    for _ in range(count):
        a, b, s = rng.uniform(-1, 1), rng.uniform(-2, 2), [rng.normal()]
        for _ in range(5):
            s.append(a * s[-1] + b)
        found.append(s)
    return np.array(found)


def pendulum(n: int = 400) -> np.ndarray:
    """The angle of a damped, driven pendulum, by Runge and Kutta: th'' = -sin th - 0.3 th' + 0.9 cos(0.7 t)."""

    def slope(t: float, s: np.ndarray) -> np.ndarray:
        return np.array([s[1], -np.sin(s[0]) - 0.3 * s[1] + 0.9 * np.cos(0.7 * t)])

    s, h, found = np.array([0.3, 0.0]), 0.1, []
    for i in range(2 * n):
        k1 = slope(i * h, s)
        k2 = slope((i + 0.5) * h, s + h / 2 * k1)
        k3 = slope((i + 0.5) * h, s + h / 2 * k2)
        s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope((i + 1) * h, s + h * k3))
        found.append(s[0])
    return np.array(found[::2])


def brain() -> np.ndarray:
    """Recorded, not simulated: 800 values of an electroencephalogram that comes with matplotlib."""
    with get_sample_data("eeg.dat") as file:
        return np.frombuffer(file.read(), float).reshape(800, 4)[:, 0].copy()


def prices() -> np.ndarray:
    """Recorded: 1,047 closing prices of a share, 2004 to 2008, that come with matplotlib; their logarithms."""
    return np.asarray(np.log(get_sample_data("goog.npz")["price_data"]["adj_close"].astype(float)))


SERIES = {"driven pendulum, simulated": pendulum, "electroencephalogram": brain, "share, log prices": prices}


def forecasts(name: str, order: int) -> dict[str, Any]:
    """One step ahead of each of the last values but 200, beside least squares on the same past and lags.

    Values are shifted and scaled by the mean and spread of the first 200, before which nothing is forecast.
    """
    s = SERIES[name]()
    s = (s - s[:200].mean()) / s[:200].std()
    model = onelayer.learner("recurrence", order=order, ridge=1e-8, certify=False)
    found = model.predict(s, outside="answer")  # at s[order:], for the value after each
    rows = []
    for t in range(200, len(s) - 1):
        past = s[: t + 1]
        lags = [past[order - k - 1 : len(past) - k - 1] for k in range(order)]
        X = np.stack([*lags, np.ones(len(past) - order)], axis=1)
        w = np.linalg.lstsq(X, past[order:], rcond=None)[0]
        asked = np.append(past[-1 : -order - 1 : -1], 1.0)
        rows.append((found[t - order] - s[t + 1], asked @ w - s[t + 1], s[t] - s[t + 1]))
    network, least, last = np.sqrt((np.array(rows) ** 2).mean(axis=0))
    apart = float(np.abs(np.array(rows)[:, 0] - np.array(rows)[:, 1]).max())
    names = {"series": name, "order": order, "forecasts": len(rows)}
    errors = {"network": float(network), "least_squares": float(least), "last_value": float(last)}
    return names | errors | {"apart": apart}


def selected(noise: float) -> dict[str, Any]:
    """Two penalties, 30 examples and 10 that judge, d = 20: the mean squared error of either, and of the choice."""
    given: dict[str, Any] = {"d": 20, "steps": 2000, "low": -0.5, "high": 0.5, "largest": 8.0, "certify": False}
    both = [onelayer.learner("ridge", penalty=p, **given) for p in (0.02 / 3, 0.5 / 3)]
    chooser = onelayer.learner("selection", penalties=(0.02 / 3, 0.5 / 3), judges=0.25, delta=2.0**-12, **given)
    rows: list[list[float]] = [[], [], []]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(100, 40, 20)).clip(-3, 3), rng.normal(size=(100, 20)) / 20**0.5
        y = (np.einsum("bnd,bd->bn", X, w) + noise * rng.normal(size=(100, 40))).clip(-8, 8)
        queries = np.repeat(np.eye(20)[None], 100, axis=0)  # the answers there are the weights
        answers = [m.predict(X[:, :30], y[:, :30], queries) for m in both] + [chooser.predict(X, y, queries)]
        for row, found in zip(rows, answers, strict=True):
            row.append(float(((found - w) ** 2).sum(axis=1).mean()) + noise**2)
    names = ("small_penalty", "large_penalty", "selected")
    return {"noise": noise, "seeds": 2, "tasks": 100} | {n: spread(row) for n, row in zip(names, rows, strict=True)}


def compare_cost(do: Callable[[], Any], floor: Callable[[], Any], times: int = 15) -> dict[str, float]:
    """CPU time over that of a floor: the median of this many ratios of neighbours in time, and its quartiles."""
    ratios, took = [], []
    for _ in range(times):
        marks = [time.process_time()]
        for part in (floor, do):
            part()
            marks.append(time.process_time())
        took.append(marks[2] - marks[1])
        ratios.append((marks[2] - marks[1]) / (marks[1] - marks[0]))
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    return {"cpu": float(np.median(took)), "over_floor": float(middle), "from": float(low), "to": float(high)}


def costs() -> list[dict[str, Any]]:
    """1,000 tasks of 40 examples, d = 10, beside a batched solve; and a fit of 288 features, beside lstsq."""
    rng = np.random.default_rng(0)
    X, q = rng.uniform(-1, 1, (1000, 40, 10)), rng.uniform(-1, 1, (1000, 1, 10))
    y, turned = np.einsum("bnd,d->bn", X, rng.normal(size=10)), X.transpose(0, 2, 1)

    def solve() -> Any:
        return q @ np.linalg.solve(turned @ X + 4 * np.eye(10), turned @ y[..., None])

    rows = []
    for name, given in (("gd", {"steps": 50}), ("ridge", {"steps": 50, "penalty": 0.1}), ("mesa", {"ridge": 4.0})):
        model = onelayer.learner(name, d=10, certify=False, **given)  # type: ignore[arg-type]
        cost = compare_cost(lambda model=model: model.predict(X, y, q), solve)  # type: ignore[misc]
        rows.append({"what": f"{name}, {given}", "floor": "batched solve"} | cost)
    Z, Y = rng.normal(size=(4096, 5, 8)), rng.normal(size=(4096, 8))

    def fit() -> Any:
        return np.linalg.lstsq(features(Z), Y, rcond=None)

    cost = compare_cost(lambda: onelayer.fit_attention(Z, Y, certify=False), fit, 5)
    return [*rows, {"what": "fit_attention, d = 8", "floor": "lstsq"} | cost]


def roundings() -> list[dict[str, Any]]:
    """Proved for all prompts of the box, and the worst of 20 drawn ones, against float64."""
    rows = []
    for name, given in (
        ("ridge", {"form": "published", "penalty": 0.1}),
        ("lasso", {"penalty": 0.05, "form": "compact"}),
    ):
        for dtype in ("float32", "float64"):
            model = onelayer.learner(name, d=5, steps=20, dtype=dtype, examples=40, **given)  # type: ignore[arg-type]
            rng, worst = np.random.default_rng(0), 0.0
            for _ in range(20):
                X, y, q = (rng.uniform(-1, 1, s).astype(dtype) for s in ((40, 5), 40, (4, 5)))
                wanted = model.algorithm(X.astype(np.longdouble), y, q)
                worst = max(worst, float(np.abs(model.predict(X, y, q) - wanted).max()))
            rows.append(
                {"learner": name, "dtype": dtype, "loops": 20, "examples": 40}
                | {"proved": model.interface.rounding_bound, "seen": worst}
            )
    return rows


def identified(seeds: int = 5) -> list[dict[str, Any]]:
    """Associative tables of 4 keys and values, 2^14 in all: the least eigenvalue, proved, or a second layer; and
    the least eigenvalue of further draws, as it is computed."""
    rows = []
    for share in (0.0, 0.5, 0.95, 1.0):
        found = onelayer.identify(mixed_tables(share, 0))
        row = {"unitary": share, "sequences": 16384, "features": 288}
        row |= {"eigenvalue": found.eigenvalue, "proved": found.bound}
        witness = found.witness
        row |= {"eps": "", "delta": ""} if witness is None else {"eps": witness.eps, "delta": witness.delta}
        drawn = [least_eigenvalue(features(mixed_tables(share, seed))) for seed in range(seeds)]
        rows.append(row | {"seeds": seeds, "over seeds": spread(drawn)})
    return rows


def mixed_tables(share: float, seed: int) -> np.ndarray:
    """So large a share of them orthogonal."""
    rng = np.random.default_rng(seed)
    parts = [tables(round(16384 * part), unit, rng) for part, unit in ((1 - share, False), (share, True))]
    return np.concatenate(parts)


def least_eigenvalue(H: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(H.T @ H / len(H))[0])


def tables(B: int, unit: bool, rng: np.random.Generator) -> np.ndarray:
    M = rng.normal(size=(2, B, 4, 4))
    K, V = np.linalg.qr(M)[0] if unit and B else M
    Z = np.zeros((B, 5, 8))
    Z[:, :4, :4], Z[:, :4, 4:] = K, V
    Z[:, 4, :4] = K[np.arange(B), rng.integers(4, size=B)]
    Z[:, 4, 4:] = rng.normal(size=(B, 4))
    return Z


TABLES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "costs": costs,
    "roundings": roundings,
    "identified": identified,
    "dynamics": lambda: [dynamics(0.01, 1e-3), dynamics(0.1, 0.1)],
    "growth": growth,
    "recurrences": lambda: [
        recurrences(*case)
        for case in (
            ("float64", None),
            ("float64", 1e-12),
            ("float64", 1e-15),
            ("float32", None),
            ("float32", 1e-6),
        )
    ],
    "forecasts": lambda: [forecasts(name, order) for name in SERIES for order in (2, 6)],
    "selection": lambda: [selected(0.1), selected(0.5)],
}
