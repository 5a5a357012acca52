"""Trying to break what was proved of compiled formulas: a million inputs each, then hill climbing, in float32.

Every model is asked at random inputs and corners of its box, by the dense path of this library and by PyTorch, and
the worst inputs are improved by hill climbing. An error above a proved bound ends the run with a status other than
0 and names the input. ONELAYER_BENCH_SAMPLES sets how many inputs are asked; ONELAYER_BENCH_ROWS names a file by
which a run may be continued, model by model.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import continued
from onelayer import Model, approximate
from onelayer.export.torch import to_torch
from onelayer.measure.worst_error import Error, largest_error

Array = NDArray[Any]
Row = dict[str, Any]
#: formula, n, d, low, high, tolerance
MODELS: tuple[tuple[str, int, int, float, float, float], ...] = (
    ("x - mean(y)", 8, 1, 0, 1, 0.01),
    ("mean(y**2) - mean(y)**2", 4, 1, -1, 1, 0.01),
    ("sqrt(0.01 + var(y))", 4, 1, 0, 1, 0.02),
    ("(x - mean(y))/sqrt(0.1 + var(y))", 3, 1, 0, 1, 0.05),
    ("mean((y[0] - mean(y[0]))*(y[1] - mean(y[1])))", 3, 2, -1, 1, 0.02),
    ("softmax(3*x*y, y)", 4, 1, -1, 1, 0.001),
    ("softmax(-4*(x - y)**2, y)", 4, 1, 0, 1, 0.01),
    ("log(mean(exp(2*y)))", 4, 1, -1, 1, 0.01),
    ("exp(x)/mean(exp(y))", 3, 1, 0, 1, 0.02),
    ("max(y) - min(y)", 4, 1, 0, 1, 0.01),
    ("relu(x - mean(y)) + relu(mean(y) - 0.5)", 4, 1, 0, 1, 0.01),
    ("x*exp(-mean((x - y)**2))", 3, 1, 0, 1, 0.02),
    ("mean((x[0] - y[0])**2 + (x[1] - y[1])**2)", 3, 2, 0, 1, 0.02),
    ("tanh(2*x - 3*mean(sin(2*y)))", 4, 1, -1, 1, 0.01),
    ("mean((x - y)**3)", 3, 1, 0, 1, 0.02),
    ("x[0]*mean(y[1]) - x[1]*mean(y[0])", 3, 2, -1, 1, 0.02),
    ("(x - mean(y))**3 + 0.2*x", 4, 1, 0, 1, 0.01),
    ("exp(mean(log(0.1 + y)))", 4, 1, 0, 1, 0.01),
    ("mean(sin(2*(x - y)))", 3, 1, -1, 1, 0.02),
    ("mean(exp(-(x - y)**2))", 3, 1, 0, 1, 0.02),
)


def samples() -> int:
    return int(os.environ.get("ONELAYER_BENCH_SAMPLES", "1000000"))


def dense(model: Model) -> Error:
    def error(X: Array) -> Array:
        found = model.predict(X, path="dense").astype(np.float64)
        return difference(model, X, found)

    return error


def by_torch(model: Model) -> Error:
    module = to_torch(model).eval()

    def error(X: Array) -> Array:
        with torch.no_grad():
            out = module(torch.from_numpy(np.ascontiguousarray(X))).numpy()
        return difference(model, X, model.form.decode(out, None).astype(np.float64))

    return error


def difference(model: Model, X: Array, found: Array) -> Array:
    wanted = model.target.evaluate(X.astype(np.float64))
    return np.asarray(np.abs(found.reshape(wanted.shape) - wanted).reshape(len(X), -1).max(axis=1))


def row(text: str, n: int, d: int, low: float, high: float, tolerance: float) -> Row:
    start = time.process_time()
    model = approximate(text, n=n, d=d, low=low, high=high, tolerance=tolerance, construction="formula")
    built = time.process_time() - start
    found: Row = {"formula": text, "n": n, "d": d, "tolerance": tolerance, "parameters": model.n_parameters}
    found |= {"proved bound": model.error_bound, "build and proof CPU s": built}
    start = time.process_time()
    for seed, (name, error) in enumerate((("dense", dense(model)), ("torch", by_torch(model)))):
        attained, where = largest_error(error, model.interface.box, samples(), seed)
        found |= {f"found, {name}": attained, f"where, {name}": where.tolist()}
    attained = max(found["found, dense"], found["found, torch"])
    found |= {"proved / attained": model.error_bound / attained, "asking CPU s": time.process_time() - start}
    return found | {"inputs": 2 * samples(), "kept": "yes" if attained <= model.error_bound else "broken"}


def run() -> dict[str, list[Row]]:
    kept, rows = continued.rows(), list[Row]()
    for asked in MODELS:
        key = {"formula": asked[0], "n": asked[1], "tolerance": asked[5], "inputs": 2 * samples()}
        rows.append(kept.get(key) or kept.add(row(*asked)))
        print(rows[-1], flush=True)
    broken = [r for r in rows if r["kept"] != "yes"]
    if broken:
        sys.exit("an error above a proved bound:\n" + "\n".join(map(str, broken)))
    ratios = [r["proved / attained"] for r in rows]
    total = {
        "models": len(rows),
        "inputs": sum(r["inputs"] for r in rows),
        "bounds broken": len(broken),
        "proved / attained, median": float(np.median(ratios)),
        "largest": max(ratios),
    }
    shown = [{name: value for name, value in r.items() if not name.startswith("where")} for r in rows]
    return {"Bounds of formulas under attack (float32)": [total], "Models": shown}
