"""Millions of answers in float32: data sets built, asked through three runtimes, and proved for any order."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onelayer import Model, memorize, save
from onelayer.network.blocks import evaluate

SEQUENCES, PLACES, WIDTH, CLASSES, VOCABULARY = 100_000, 16, 16, 65_536, 50_000
#: Sequences whose answers are asked of the dense networks; ONELAYER_BENCH_DENSE overrides it.
DENSE = int(os.environ.get("ONELAYER_BENCH_DENSE", "100000"))
BLOCK = 500
REPEATS = 3


def data_sets(N: int = SEQUENCES) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, PLACES, WIDTH)).astype(np.float32)
    Y = rng.integers(0, CLASSES, (N, PLACES))
    p = 1.0 / np.arange(1, VOCABULARY + 1)
    ids = rng.choice(VOCABULARY, (N, PLACES), p=p / p.sum())
    company = np.sort(ids, axis=1) @ rng.integers(1, 2**40, PLACES)  # one answer per (token, multiset)
    hashed = (company[:, None] + ids.astype(np.int64) * 2654435761) * 0x9E3779B9 % 2**61
    return {
        "real tokens": (X, Y, {"readout": "retrieval"}),
        "real tokens, packed": (X, Y, {"readout": "packed"}),
        "real tokens, table": (X, Y, {"readout": "table"}),
        "Zipf ids, positions": (ids, rng.integers(0, CLASSES, (N, PLACES)), {"positions": True}),
        "Zipf ids": (ids, (hashed >> 20) % CLASSES, {}),
    }


def floor(tokens: Any) -> None:
    """One NumPy pass of softmax averages over these sequences, and one sort of as many numbers."""
    rng = np.random.default_rng(1)
    a = tokens @ rng.standard_normal(WIDTH).astype(np.float32)
    v = tokens @ rng.standard_normal((WIDTH, 2)).astype(np.float32)
    out = np.empty_like(v)
    for i in range(0, len(a), 20_000):
        k = a[i : i + 20_000]
        s = k[:, :, None] * k[:, None]
        s -= s.max(-1, keepdims=True)
        np.exp(s, out=s)
        s /= s.sum(-1, keepdims=True)
        out[i : i + 20_000] = s @ v[i : i + 20_000]
    np.sort(out[..., 0].ravel())


def runtimes(model: Model) -> dict[str, Callable[[Any], Any]]:
    import onnxruntime
    import torch

    from onelayer import to_torch
    from onelayer.export.onnx import build

    module = to_torch(model)
    session = onnxruntime.InferenceSession(build(model.transformer).SerializeToString())

    def in_torch(X: Any) -> Any:
        with torch.no_grad():
            return module(torch.tensor(X)).numpy()

    def in_onnx(X: Any) -> Any:
        full = np.full(len(X), X.shape[1], np.int64)
        return session.run(["outputs"], {"tokens": X, "lengths": full})[0]

    return {"NumPy": lambda X: evaluate(model.transformer, X), "PyTorch": in_torch, "ONNX Runtime": in_onnx}


def dense_row(name: str, model: Model, X: Any, Y: Any) -> dict[str, object]:
    """Every runtime asked for the same answers: how many are wrong, and how many differ in any bit."""
    count = min(DENSE if name == "real tokens" else DENSE // 50, len(X))
    wanted = np.searchsorted(np.asarray(model.form.classes), Y[:count]).astype(np.float32)
    X = model.read(X[:count]).tokens  # ids as the network numbers them
    first, row = None, {"data": name, "answers asked": count * PLACES}
    for runtime, run in runtimes(model).items():
        start = time.perf_counter()
        out = np.concatenate([run(X[i : min(i + BLOCK, count)])[..., 0] for i in range(0, count, BLOCK)])
        seconds = time.perf_counter() - start
        first = out if first is None else first
        row[f"{runtime}: wrong"] = int((out != wanted).sum())
        row[f"{runtime}: other bits"] = int((out.view(np.int32) != first.view(np.int32)).sum())
        row[f"{runtime}: answers/s"] = float(count * PLACES / seconds)
    return row


def check_row(name: str, model: Model, X: Any, Y: Any) -> dict[str, object]:
    """Certified, then decided again by the checker alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder) / "model", model, data=(X, Y))
        start = time.perf_counter()
        command = [sys.executable, "-I", "-m", "onelayer_checker", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout.splitlines()
    proved = sum(line.startswith("proved") for line in said)
    return {"data": name, "verdict": said[-1], "claims proved": proved, "seconds": time.perf_counter() - start}


def built_row(name: str, X: Any, Y: Any, options: dict[str, Any]) -> tuple[Model, dict[str, object]]:
    """Built several times, in turn with the floor: other work on the machine then slows both."""
    memorize(X[:1000], Y[:1000], certify=False, **options)
    rng, seconds, cpu = np.random.default_rng(2), [], []
    tokens = X if X.ndim == 3 else rng.standard_normal((*X.shape, WIDTH)).astype(np.float32)
    for _ in range(REPEATS):
        start, started = time.perf_counter(), time.process_time()
        floor(tokens)
        between, spent = time.perf_counter(), time.process_time()
        model = memorize(X, Y, dtype="float32", certify=False, **options)
        seconds.append((between - start, time.perf_counter() - between))
        cpu.append((spent - started, time.process_time() - spent))
    (lowest, built), (lowest_cpu, built_cpu) = np.min(seconds, axis=0), np.min(cpu, axis=0)
    start = time.perf_counter()
    wrong = int((model.predict(X, path="fast") != Y).sum())
    fast = time.perf_counter() - start
    return model, {
        "data": name,
        "answers": Y.size,
        "distinct": model.ledger["distinct"],
        "readout": model.ledger["readout"],
        "wrong by search": wrong,
        "search: answers/s": float(Y.size / fast),
        "floor s": float(lowest),
        "build s": float(built),
        "build / floor": float(built / lowest),
        "build / floor, CPU": float(built_cpu / lowest_cpu),
        "parameters": model.n_parameters,
        "parameters / answer": model.n_parameters / Y.size,
        "bits / parameter": model.bits_per_parameter,
    }


def run() -> dict[str, list[dict[str, object]]]:
    built, dense, checked = [], [], []
    for name, (X, Y, options) in data_sets().items():
        model, row = built_row(name, X, Y, options)
        built.append(row)
        dense.append(dense_row(name, model, X, Y))
        checked.append(check_row(name, model, X, Y))
        print(built[-1], dense[-1], checked[-1], sep="\n", flush=True)
    return {"float32 at 1.6 million answers": built, "the dense networks": dense, "the checker": checked}
