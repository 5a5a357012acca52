"""Learners in NumPy, PyTorch and ONNX Runtime, with their examples in 50 orders: how far from their algorithms.

Beside them the bound: for all prompts of a box, where the checker proves one (`rounds`). Of the other learners with
linear attention it is that of these prompts, for every order of sums, computed here by following magnitudes; no
certificate claims it. Of learners that solve it rests on Higham's bound for elimination with a growth of at most d.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
import torch

import onelayer
from onelayer.network import Transformer
from onelayer.network.heads import queries_keys_values, visible_to

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gd": ("gd", {}),
    "preconditioned": ("preconditioned", {"covariance": np.eye(5) + 0.5 * np.ones((5, 5))}),
    "whitening": ("whitening", {}),
    "nesterov": ("nesterov", {"penalty": 0.1}),
    "ridge, compact": ("ridge", {"penalty": 0.1}),
    "ridge, published": ("ridge", {"penalty": 0.1, "form": "published"}),
    "lasso": ("lasso", {"penalty": 0.05, "form": "compact"}),
    "logistic": ("logistic", {"penalty": 0.5, "knots": 9}),
    "causal_step": ("causal_step", {}),
    "mesa": ("mesa", {"ridge": 1.0}),
    "recurrence": ("recurrence", {"ridge": 1.0}),
}
#: Learners for which the checker bounds what rounding does.
PROVED = ("gd", "ridge, compact", "ridge, published", "lasso", "logistic")


def compare_orders(case: str, dtype: str) -> dict[str, Any]:
    """d = 5, 20 loops where there are any, 40 examples; series of 40 values have one order, and are 50."""
    name, given = CASES[case]
    solves = case in ("mesa", "recurrence", "causal_step")
    given = given | ({} if solves else {"steps": 20}) | ({"examples": 40} if case in PROVED else {})
    model = onelayer.learner(name, d=5, dtype=dtype, **given)  # type: ignore[arg-type]
    asked = draw(model, name, dtype)
    tasks = model.interface.tasks(*(*(np.asarray(part, np.float64) for part in asked), None, None)[:3])
    tokens, lengths = model.interface.prompts(tasks, dtype)
    first = 0 if model.interface.reads == "series" else 40
    one = model.algorithm(*(part.astype(np.longdouble) for part in asked))
    wanted = np.asarray(one, np.float64).reshape(50, tokens.shape[1] - first, -1)
    with TemporaryDirectory() as folder, torch.no_grad():
        session = onnxruntime.InferenceSession(onelayer.to_onnx(model, Path(folder) / "m.onnx").read_bytes())
        found = {
            "numpy": model.predict(*asked).reshape(wanted.shape),
            "torch": onelayer.to_torch(model)(torch.from_numpy(tokens)).numpy()[:, first:],
            "onnx": session.run(["outputs"], {"tokens": tokens, "lengths": lengths})[0][:, first:],
        }
    off = {who: np.abs(answers.astype(np.float64) - wanted) for who, answers in found.items()}
    bound, kind = model.interface.rounding_bound, "the box, proved"
    if case not in PROVED:
        follow = bound_solves if model.transformer.attention.kind == "mesa" else follow_magnitudes
        bound, kind = follow(model.transformer, tokens)[:, first:], "these prompts"
    above = sum(int((v > bound).sum()) for v in off.values())
    row: dict[str, Any] = {"learner": case, "dtype": dtype, "orders": 50, "bound": float(np.max(bound))}
    return row | {"of": kind} | {who: float(v.max()) for who, v in off.items()} | {"above": above}


def draw(model: onelayer.Model, name: str, dtype: str) -> tuple[np.ndarray, ...]:
    """Examples in 50 orders, with four queries; or 50 series."""
    rng = np.random.default_rng(0)
    if model.interface.reads == "series":
        return (rng.uniform(-1, 1, (50, 41, 5)).astype(dtype),)
    X, queries = (rng.uniform(-1, 1, (n, 5)).astype(dtype) for n in (40, 4))
    y = (rng.uniform(-1, 1, 40) > 0 if name == "logistic" else rng.uniform(-1, 1, 40)).astype(dtype)
    orders = np.stack([rng.permutation(40) for _ in range(50)])
    return X[orders], y[orders], np.repeat(queries[None], 50, axis=0)


def follow_magnitudes(model: Transformer, tokens: np.ndarray) -> np.ndarray:
    """How far outputs may be from those of real arithmetic, in any order of sums, of one linear layer in a loop.

    A sum of products goes through at most ``count`` roundings a product, so it is off by at most the difference of
    the sums of magnitudes with and without errors, times (1 + u)^count.
    """
    a, h = model.attention, tokens.astype(np.longdouble)
    count = 4 * tokens.shape[1] + 4 * sum(a.W_Q.shape) + 8
    grow = (1 + np.longdouble(np.finfo(tokens.dtype).eps) / 2) ** count
    seen, off = visible_to(a, tokens, None), np.zeros_like(h)
    share = 1 if not a.mean else 1 / np.sum(seen, axis=-1, keepdims=True).astype(np.longdouble)
    for _ in range(model.repeat):
        for layer in model.feedforward:
            W, b = (part.astype(np.longdouble) for part in (layer.weight, layer.bias))
            sizes, h = np.abs(h), h @ W + b
            off = grow * ((sizes + off) @ np.abs(W) + np.abs(b)) - (sizes @ np.abs(W) + np.abs(b))
        sizes, moved, spread, plain = np.abs(h), h.copy(), np.abs(h) + off, np.abs(h)
        for W in zip(a.W_Q, a.W_K, a.W_V, a.W_O, strict=True):
            moved = moved + add(h, seen, share, *W)
            spread = spread + add(sizes + off, seen, share, *map(np.abs, W))
            plain = plain + add(sizes, seen, share, *map(np.abs, W))
        h, off = moved, grow * spread - plain
    W, b = model.last_readout[0].weight.astype(np.longdouble), model.last_readout[0].bias
    sizes = np.abs(h)
    return np.asarray(grow * ((sizes + off) @ np.abs(W) + np.abs(b)) - (sizes @ np.abs(W) + np.abs(b)), np.float64)


def bound_solves(model: Transformer, tokens: np.ndarray) -> np.ndarray:
    """As above, of one mesa head: M w = c with M = K^T K + ridge and c = K^T V, of every query's keys."""
    a = model.attention
    assert a.ridge is not None
    q, k, v = queries_keys_values(a, 0, tokens.astype(np.float64))
    seen = np.broadcast_to(visible_to(a, tokens, None), (len(q), q.shape[1], k.shape[1])).astype(float)
    d, (n, u) = k.shape[-1], (k.shape[1], float(np.finfo(tokens.dtype).eps) / 2)

    def gather(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.einsum("bqj,bji,bjo->bqio", seen, left, right, optimize=True)

    ridge = float(a.ridge[0]) * np.eye(d)
    M, c = gather(k, k) + ridge, gather(k, v)
    w, least = np.linalg.solve(M, c), np.linalg.eigvalsh(M)[..., 0]
    moved = 1.1 * (n + 2) * u * np.linalg.norm(gather(np.abs(k), np.abs(k)) + ridge, axis=(-2, -1))
    moved += 1.1 * 4 * d * d * 3 * d * u * np.linalg.norm(M, axis=(-2, -1))
    right = 1.1 * (n + 2) * u * np.linalg.norm(gather(np.abs(k), np.abs(v)), axis=-2)
    reach, size = np.linalg.norm(q, axis=-1), np.linalg.norm(w, axis=-2)
    read = 1.1 * (d + 4) * u * np.einsum("bqi,bqio->bqo", np.abs(q), np.abs(w))
    return np.asarray((reach / (least - moved))[..., None] * (moved[..., None] * size + right) + read)


def add(h: np.ndarray, seen: Any, share: Any, *weights: np.ndarray) -> np.ndarray:
    """What a head adds to tokens."""
    Q, K, V, O = (W.astype(np.longdouble) for W in weights)
    scores = np.where(seen, (h @ Q) @ (h @ K).swapaxes(-1, -2), 0)
    return np.asarray((scores @ (h @ V)) * share @ O)


def orders() -> list[dict[str, Any]]:
    return [compare_orders(case, dtype) for case in CASES for dtype in ("float32", "float64")]


TABLES = {"orders": orders}
