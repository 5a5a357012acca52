"""Learners in NumPy, PyTorch and ONNX Runtime, with their examples in 50 orders: how far from their algorithms."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
import torch

import onelayer

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gd": ("gd", {}),
    "ridge, compact": ("ridge", {"penalty": 0.1}),
    "ridge, published": ("ridge", {"penalty": 0.1, "form": "published"}),
    "lasso": ("lasso", {"penalty": 0.05, "form": "compact"}),
    "logistic": ("logistic", {"penalty": 0.5, "knots": 9}),
}


def compare_orders(case: str, dtype: str) -> dict[str, Any]:
    """d = 5, 20 loops, 40 examples; the bound is proved for every prompt of the box and every order of sums."""
    name, given = CASES[case]
    model = onelayer.learner(name, d=5, steps=20, dtype=dtype, examples=40, **given)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    X, queries = (rng.uniform(-1, 1, (n, 5)).astype(dtype) for n in (40, 4))
    y = (rng.uniform(-1, 1, 40) > 0 if name == "logistic" else rng.uniform(-1, 1, 40)).astype(dtype)
    wanted = np.asarray(model.algorithm(X.astype(np.longdouble), y, queries), np.float64)
    orders = np.stack([rng.permutation(40) for _ in range(50)])
    tasks = model.interface.tasks(*(np.asarray(part, np.float64) for part in (X[orders], y[orders], queries)))
    tokens, lengths = model.interface.prompts(tasks, dtype)
    with TemporaryDirectory() as folder, torch.no_grad():
        session = onnxruntime.InferenceSession(onelayer.to_onnx(model, Path(folder) / "m.onnx").read_bytes())
        found = {
            "numpy": model.predict(X[orders], y[orders], queries),
            "torch": onelayer.to_torch(model)(torch.from_numpy(tokens)).numpy()[:, 40:, 0],
            "onnx": session.run(["outputs"], {"tokens": tokens, "lengths": lengths})[0][:, 40:, 0],
        }
    off = {who: float(np.abs(answers.astype(np.float64) - wanted).max()) for who, answers in found.items()}
    return {"learner": case, "dtype": dtype, "orders": 50, "proved": model.interface.rounding_bound} | off


def orders() -> list[dict[str, Any]]:
    return [compare_orders(case, dtype) for case in CASES for dtype in ("float32", "float64")]


TABLES = {"orders": orders}
