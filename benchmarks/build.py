"""What building costs against its floor: one NumPy pass of the same softmax averages, and one sort of them."""

from __future__ import annotations

import time
import tracemalloc
from functools import partial
from typing import Any

import numpy as np

from benchmarks.float32 import floor as floor32
from onelayer import memorize

#: What a proof costs is measured in benchmarks/verdicts.py.
build = partial(memorize, certify=False)
n = d = 16
BLOCK = 2048


def floor(X: Any) -> None:
    """The least that any build has to do: project, softmax averages for every token, one sort."""
    rng = np.random.default_rng(0)
    v, w = rng.standard_normal((2, d))
    y = X @ (v / np.linalg.norm(v))
    c = np.empty_like(y)
    for i in range(0, len(X), BLOCK):
        a = y[i : i + BLOCK]
        S = a[:, :, None] * a[:, None]
        S -= S.max(-1, keepdims=True)
        np.exp(S, out=S)
        c[i : i + BLOCK] = (S * a[:, None]).sum(-1) / S.sum(-1)
    np.sort((X @ w + c).ravel())


def data(N: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((N, n, d)), rng.integers(0, 1000, (N, n))


def cpu(function: Any, *arguments: Any) -> float:
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def against_the_floor(N: int, repeats: int = 7) -> dict[str, Any]:
    X, Y = data(N, 0)
    pairs = [(cpu(floor, X), cpu(build, X, Y)) for _ in range(repeats)]
    best_floor, best_build = (min(times) for times in zip(*pairs, strict=True))
    return {
        "N": N,
        "floor CPU s (best)": best_floor,
        "build CPU s (best)": best_build,
        "ratio of best": best_build / best_floor,
        "median ratio": float(np.median([b / f for f, b in pairs])),
    }


def growth(sizes: tuple[int, ...] = (2_000, 6_000, 20_000, 60_000, 200_000)) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for N in sizes:
        X, Y = data(N, 1)
        rows.append({"N": N, "answers": N * n, "build CPU s": min(cpu(build, X, Y) for _ in range(3))})
    slope = np.polyfit(np.log([r["N"] for r in rows]), np.log([r["build CPU s"] for r in rows]), 1)[0]
    rows.append({"N": "exponent", "answers": "", "build CPU s": float(slope)})
    return rows


def in_float32(sizes: tuple[int, ...] = (6_250, 20_000, 62_500, 100_000, 625_000)) -> list[dict[str, Any]]:
    """CPU seconds of packed cells and of the floor in float32, in turn; and how the build grows with answers."""
    rows: list[dict[str, Any]] = []
    for N in sizes:
        rng = np.random.default_rng(N)
        X, Y = rng.standard_normal((N, n, d), dtype=np.float32), rng.integers(0, 1000, (N, n))
        pairs = [(cpu(floor32, X), cpu(build, X, Y)) for _ in range(7 if N <= 100_000 else 2)]
        lowest, built = (min(times) for times in zip(*pairs, strict=True))
        rows.append(
            {
                "N": N,
                "answers": N * n,
                "floor CPU s": lowest,
                "build CPU s": built,
                "build / floor": built / lowest,
                "build us / answer": built / N / n * 1e6,
            }
        )
        print(rows[-1], flush=True)
    slope = np.polyfit(np.log([r["N"] for r in rows]), np.log([r["build CPU s"] for r in rows]), 1)[0]
    return [*rows, {"N": "exponent", "build CPU s": float(slope)}]


def memory(N: int) -> dict[str, Any]:
    X, Y = data(N, 2)
    tracemalloc.start()
    build(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = X.nbytes + Y.nbytes
    return {"N": N, "input MB": size / 1e6, "peak MB beyond the input": peak / 1e6, "ratio": peak / size}


def run() -> dict[str, list[dict[str, Any]]]:
    return {
        "Build against the floor": [against_the_floor(20_000)],
        "Growth of the build": growth(),
        "In float32, against the same floor in float32": in_float32(),
        "Peak memory of the build": [memory(N) for N in (20_000, 100_000)],
    }
