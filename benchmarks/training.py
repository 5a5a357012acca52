"""Compiled against trained: the same answers in `memorize` and in a PyTorch Transformer of one layer under Adam.

The trained network is the ordinary block (torch.nn.TransformerEncoderLayer, pre-norm, four heads, no dropout)
between a linear embedding and a linear unembedding. It is given at least as many parameters as our smallest and
our largest model of the same data have, and 3 and 10 times those of the largest; at each width the best of three
learning rates is reported. The rate is warmed up over 20 steps and falls as a cosine over the time limit, so that a
fast run is one at a constant rate and a slow run is annealed. A run ends when every answer comes back, at the time
limit, or, as it can no longer be the best, when it has taken longer than another rate needed at the same width.
Everything runs on one core.

ONELAYER_BENCH_SECONDS sets the time limit of a run; by default 600.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.throughput import one_core
from onelayer import HypothesisError, memorize

SIZES = (200, 1_000)
n = d = 16
CLASSES = 1_000
MULTIPLES = (3, 10)
RATES = (3e-3, 1e-2, 1e-3)
HEADS, BATCH, WARM_UP = 4, 32, 20
#: Below this share of right answers while training, an epoch is not followed by a count of all answers.
NEARLY = 0.99


def seconds_allowed() -> float:
    return float(os.environ.get("ONELAYER_BENCH_SECONDS", "600"))


@dataclass(frozen=True)
class Trained:
    """One run of Adam."""

    width: int
    rate: float
    parameters: int
    epochs: int
    seconds: float
    right: int
    answers: int
    given_up: bool

    @property
    def done(self) -> bool:
        return self.right == self.answers

    @property
    def ending(self) -> str:
        return "every answer" if self.done else "slower than another rate" if self.given_up else "time limit"


def network(width: int) -> Any:
    from torch import nn

    block = nn.TransformerEncoderLayer(width, HEADS, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return nn.Sequential(nn.Linear(d, width), block, nn.LayerNorm(width), nn.Linear(width, CLASSES))


def parameters_of(net: Any) -> int:
    return sum(p.numel() for p in net.parameters())


def width_for(parameters: int) -> int:
    """The smallest width, a multiple of the heads, with at least this many parameters."""
    width = HEADS
    while parameters_of(network(width)) < parameters:
        width += HEADS
    return width


def rate_at(step: int, share_of_time: float, rate: float) -> float:
    return rate * min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * min(1.0, share_of_time))) / 2


def train(X: Any, Y: Any, width: int, rate: float, give_up_after: float) -> Trained:
    """Adam on cross-entropy until every answer comes back; counting the answers is part of the time."""
    import torch
    from torch.nn.functional import cross_entropy

    torch.manual_seed(0)
    tokens, answers = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    net, limit, step, epochs, right = network(width), seconds_allowed(), 0, 0, 0
    optimizer = torch.optim.Adam(net.parameters(), rate)

    def count() -> int:
        with torch.no_grad():
            parts = zip(tokens.split(1024), answers.split(1024), strict=True)
            return sum(int((net(x).argmax(-1) == y).sum()) for x, y in parts)

    start = time.perf_counter()
    while right < answers.numel() and time.perf_counter() - start < min(limit, give_up_after):
        met = 0
        for batch in torch.randperm(len(tokens)).split(BATCH):
            spent = time.perf_counter() - start
            if spent > limit:
                break
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, spent / limit, rate)
            logits, wanted = net(tokens[batch]).flatten(0, 1), answers[batch].flatten()
            loss = cross_entropy(logits, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            met += int((logits.argmax(-1) == wanted).sum())
            step += 1
        epochs += 1
        right = count() if met >= NEARLY * answers.numel() else 0
    seconds = time.perf_counter() - start
    right = right or count()
    parameters, given_up = parameters_of(net), seconds < limit
    return Trained(width, rate, parameters, epochs, seconds, right, answers.numel(), given_up)


def race(X: Any, Y: Any, width: int) -> list[Trained]:
    """All rates at one width, the best first: least time if every answer came back, else most answers."""
    runs: list[Trained] = []
    for rate in RATES:
        fastest = min((run.seconds for run in runs if run.done), default=math.inf)
        runs.append(train(X, Y, width, rate, fastest))
    return sorted(runs, key=lambda run: (not run.done, run.seconds if run.done else -run.right))


def bits(right: int, parameters: int) -> float:
    return right * math.log2(CLASSES) / parameters


def measure_compiled(X: Any, Y: Any, dtype: str, repeats: int = 5) -> dict[str, Any]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        model = memorize(X, Y, dtype=dtype, certify=False)
        times.append(time.perf_counter() - start)
    right = int((model.predict(X, path="dense") == Y).sum())
    return row(Y.size, f"onelayer, {dtype}", min(times), right, model.n_parameters, np.dtype(dtype).itemsize)


def row(answers: int, model: str, seconds: float, right: int, parameters: int, size: int) -> dict[str, Any]:
    return {
        "answers": answers,
        "model": model,
        "seconds": seconds,
        "wrong": answers - right,
        "accuracy": right / answers,
        "every answer": "yes" if right == answers else "no",
        "parameters": parameters,
        "bytes of weights": parameters * size,
        "bits per parameter": bits(right, parameters),
    }


def side_by_side(N: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, CLASSES, (N, n))
    rows, grid = [], []
    for dtype in ("float64", "float32"):
        try:
            rows.append(measure_compiled(X, Y, dtype))
        except HypothesisError as refusal:
            print(f"onelayer, {dtype}, {Y.size:,} answers: {refusal}")
    ours, sizes = rows[0]["seconds"], [r["parameters"] for r in rows]
    for width in sorted({width_for(size) for size in (*sizes, *(m * max(sizes) for m in MULTIPLES))}):
        runs = race(X, Y, width)
        best = runs[0]
        name = f"trained, width {best.width}, rate {best.rate:g}"
        rows.append(row(Y.size, name, best.seconds, best.right, best.parameters, 4))
        grid += [
            {
                "answers": run.answers,
                "width": run.width,
                "parameters": run.parameters,
                "rate": run.rate,
                "seconds": run.seconds,
                "epochs": run.epochs,
                "accuracy": run.right / run.answers,
                "ended by": run.ending,
            }
            for run in runs
        ]
    # Without every answer, the ratio is what was spent so far: a lower bound.
    return [r | {"times the seconds of onelayer, float64": r["seconds"] / ours} for r in rows], grid


def warm_up() -> None:
    """PyTorch loads parts of itself in the first step; no run should pay for that."""
    rng = np.random.default_rng(0)
    train(rng.standard_normal((BATCH, n, d)), rng.integers(0, CLASSES, (BATCH, n)), HEADS, 1e-3, give_up_after=0.1)


def run() -> dict[str, list[dict[str, Any]]]:
    warm_up()
    with one_core():
        pairs = [side_by_side(N) for N in SIZES]
    limit = f"(one core, time limit {seconds_allowed():g} s a run)"
    return {
        f"Compiled against trained {limit}": [row for rows, _ in pairs for row in rows],
        f"Every training run {limit}": [row for _, grid in pairs for row in grid],
    }
