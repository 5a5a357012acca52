"""Compiled networks read by one layer of linear attention: what it foretells of size, of float16 and of time.

    python -m benchmarks hints

Networks are drawn as in the experiment `networks-as-sequences`; those that the compiler refuses are drawn again and
counted. Five folds: what is said of a network comes from a fit to the others. The layer with a constant query is a
ridge on second moments of tokens; beside it a ridge and a forest on summed tokens, and a forest on those moments.
A ridge says nothing beyond the values that it was fitted to. Time is CPU time of the dense forward pass a token,
the least of three, on a machine that may be busy. The fit about float16 to all networks is written into the
library: `onelayer plan` uses it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from onelayer.lab.drawn import choose_ridge, draw_network, fit_ridge, standards, survives
from onelayer.measure.encoding import KINDS, encode
from onelayer.measure.hints import FILE, READ, Fit, second_moments
from onelayer.network.blocks import evaluate

Row = dict[str, Any]
NETWORKS, MOST, FOLDS = 320, 9.0, 5


def seconds_a_token(model: Any, X: Any) -> float:
    tokens, best = model.read(X).tokens, np.inf
    repeated = np.concatenate([tokens] * (1 + 256 // len(tokens)))
    for _ in range(3):
        start = time.process_time()
        evaluate(model.transformer, repeated)
        best = min(best, (time.process_time() - start) / repeated.size)
    return max(best, 1e-9)


def ridge(A: Any, y: Any, asked: Any) -> Any:
    mean, spread = standards(A)
    standard = (A - mean) / spread
    weights, offset = fit_ridge(standard, y, choose_ridge(standard, y))
    return np.clip((asked - mean) / spread @ weights + offset, y.min(), y.max())


def forest(A: Any, y: Any, asked: Any) -> Any:
    return RandomForestRegressor(100, random_state=0).fit(A, y).predict(asked)


def judge(target: str, said: Any, y: Any) -> str:
    if target == "log2 parameters":
        off = np.abs(2 ** (said - y) - 1)
        return f"{off.mean():.3f}, {np.mean(off <= 0.1):.2f}"
    if target == "survives in float16":
        return f"{np.mean((said > 0.5) == (y > 0.5)):.3f}"
    return f"{1 - ((said - y) ** 2).sum() / ((y - y.mean()) ** 2).sum():.3f}"


MEASURES = {
    "log2 parameters": "mean relative error of the number, share within 10%",
    "survives in float16": "share right",
    "log2 CPU seconds a token": "R^2",
}


def run() -> dict[str, list[Row]]:
    rng = np.random.default_rng(31)
    tokens, targets, refused = [], {name: [] for name in MEASURES}, 0
    while len(tokens) < NETWORKS:
        made = draw_network(rng, MOST)
        if made is None:
            refused += 1
            continue
        model, X, Y = made
        tokens.append(encode(model))
        values = np.log2(model.n_parameters), float(survives(model, X, Y)), np.log2(seconds_a_token(model, X))
        for name, value in zip(MEASURES, values, strict=True):
            targets[name].append(value)
    moments = np.stack([second_moments(t) for t in tokens])
    summed = np.stack([t[:, READ].sum(axis=0) for t in tokens])
    ways = {
        "one layer of linear attention": (ridge, moments),
        "ridge, summed tokens": (ridge, summed),
        "forest, summed tokens": (forest, summed),
        "forest, what the layer sees": (forest, moments),
    }
    fold = np.arange(NETWORKS) % FOLDS
    rows, right = [], 0.0
    for target, measure in MEASURES.items():
        y, row = np.array(targets[target]), {"target": target, "measure": measure}
        for name, (fit, features) in ways.items():
            said = np.zeros(NETWORKS)
            for k in range(FOLDS):
                said[fold == k] = fit(features[fold != k], y[fold != k], features[fold == k])
            row[name] = judge(target, said, y)
            if target == "survives in float16" and fit is ridge and features is moments:
                right = float(np.mean((said > 0.5) == (y > 0.5)))
        usual = max(y.mean(), 1 - y.mean()) if target == "survives in float16" else None
        rows.append(row | {"the usual answer": "" if usual is None else f"{usual:.3f}"})
        print(rows[-1], flush=True)
    write_fit(moments, np.array(targets["survives in float16"]), tokens, right, targets["log2 parameters"])
    sizes = [round(2**s) for s in targets["log2 parameters"]]
    about = {
        "networks": NETWORKS,
        "refused and drawn again": refused,
        "smallest": min(sizes),
        "largest": max(sizes),
    }
    return {f"Read off their tensors ({FOLDS} folds)": rows, "The networks": [about]}


def write_fit(moments: Any, alive: Any, tokens: list[Any], right: float, sizes: list[float]) -> None:
    """What `onelayer plan` asks: the layer fitted to all networks, and how often it was right about others."""
    mean, spread = standards(moments)
    standard = (moments - mean) / spread
    weights, offset = fit_ridge(standard, alive, choose_ridge(standard, alive))
    seen = np.any([t[:, : len(KINDS)].any(axis=0) for t in tokens], axis=0)
    kinds = [kind for kind, occurs in zip(KINDS, seen, strict=True) if occurs]
    numbers = mean.tolist(), spread.tolist(), weights.tolist(), offset
    Fit(*numbers, kinds, round(2 ** max(sizes)), right, len(tokens)).write(FILE)
