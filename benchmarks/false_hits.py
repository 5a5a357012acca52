"""With a default: the bound in the ledger, what was measured while it was built, and a million unknown inputs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer import HypothesisError, memorize
from onelayer.compile.memorize import assemble
from onelayer.compile.unknown_inputs import unknown_inputs
from onelayer.readouts.false_hits import upper_limit
from onelayer.search.problem import read_problem
from onelayer.search.routes import search

ASKED, BATCH = 1_000_000, 50_000
SIZES = (10, 50, 2_000)
n, d, CLASSES = 3, 4, 50
NOBODY = "nobody"
ROUTES: dict[str, dict[str, Any]] = {
    "rank 1, float32": {"mapping": "temperature", "rank": 1, "dtype": "float32"},
    "rank 1, float64": {"mapping": "temperature", "rank": 1, "dtype": "float64"},
    "lattice, float32": {"mapping": "lattice", "dtype": "float32"},
}


def together(X: Any, rng: np.random.Generator) -> Any:
    """Stored tokens in new company: not all of them from one sequence."""
    i = rng.integers(0, len(X), (BATCH, n))
    return X[i, rng.integers(0, n, (BATCH, n))][(i != i[:, :1]).any(axis=1)]


def new(X: Any, rng: np.random.Generator) -> Any:
    """Tokens like the stored ones, never seen."""
    return rng.standard_normal((BATCH, n, d)).astype(X.dtype)


def hits(model: Any, X: Any, draw: Callable[..., Any], rng: np.random.Generator) -> tuple[int, int]:
    """Of unknown inputs, one token of each: how many did not get the default, and how many there were."""
    found = asked = 0
    while asked < ASKED:
        answers = model.predict(draw(X, rng)[: ASKED - asked])[:, 0]
        found, asked = found + int((answers != NOBODY).sum()), asked + len(answers)
    return found, asked


def measure(route: str, N: int, rng: np.random.Generator) -> dict[str, Any]:
    X = rng.standard_normal((N, n, d)).astype(np.float32)
    Y = rng.integers(0, CLASSES, (N, n))
    start = time.perf_counter()
    try:
        model = memorize(X, Y, default=NOBODY, certify=False, **ROUTES[route])
    except HypothesisError as error:
        return {"contexts": route, "N": N, "bound": f"not built: needs {error.needs}"}
    seconds = time.perf_counter() - start
    counts = {draw: hits(model, X, draw, rng) for draw in (together, new)}
    bound = float(model.ledger["false_hits"])
    return {
        "contexts": route,
        "N": N,
        "bound": bound,
        "upper limit at build": model.ledger["false_hits_measured"],
        "stored tokens in new company: share": counts[together][0] / counts[together][1],
        "new tokens: share": counts[new][0] / counts[new][1],
        "unknown inputs of each": ASKED,
        "largest share, at 95%": max(upper_limit(k, m) for k, m in counts.values()),
        "holds": "yes" if all(k / m <= bound for k, m in counts.values()) else "NO",
        "margin": model.ledger["margin"],
        "build s": seconds,
    }


def cost(rng: np.random.Generator) -> list[dict[str, Any]]:
    """What measuring takes of a build of 320,000 answers; the best of five."""
    X = rng.standard_normal((40_000, 8, 4)).astype(np.float32)
    Y = rng.integers(0, CLASSES, (40_000, 8))
    whole, part = [], []
    for _ in range(5):
        start = time.perf_counter()
        problem = read_problem(X, Y, {"default": NOBODY, "dtype": "float32"})
        found = search(problem)
        model = assemble(problem, found)
        whole.append(time.perf_counter() - start)
        start = time.perf_counter()
        unknown_inputs(problem, found, model)
        part.append(time.perf_counter() - start)
    row = {"answers": Y.size, "build s": min(whole), "unknown inputs, s of it": min(part)}
    return [{**row, "share": min(part) / min(whole)}]


def run() -> dict[str, list[dict[str, Any]]]:
    rng = np.random.default_rng(0)
    rows = [measure(route, N, rng) for route in ROUTES for N in SIZES]
    rows.sort(key=lambda row: isinstance(row["bound"], str))  # the columns of the table are those of its first row
    return {"Unknown inputs that do not get the default": rows, "What it costs to measure": cost(rng)}
