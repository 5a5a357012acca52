"""Constructed against trained: functions of three numbers, as `approximate` compiles them and as Adam fits them.

Trained are a Transformer of one layer (embedding, torch.nn.TransformerEncoderLayer with four heads, ReLU and
pre-norm, no dropout; linear output), the same with four layers, and Deep Sets (two layers per token, their mean,
two layers). Where the target has one answer per sequence, tokens are averaged before the output. Each is given at
least as many parameters as the smallest of the constructed models.

Every batch is fresh and uniform in the box; the loss is the mean square; the rate is warmed up and falls as a
cosine over the time. Of three rates the one is taken that has the smallest largest error on 2^14 held-out inputs
after a run of a tenth of the time. Errors are then measured alike for all: samples and hill climbing for the
largest, uniform samples of the whole box for the mean. Networks of millions of parameters are asked fewer samples
(see the table), which can only flatter them. Times are CPU seconds of one core.

ONELAYER_BENCH_SECONDS sets the time of a run; by default 300.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.throughput import one_core
from onelayer import Model, approximate
from onelayer.measure.worst_error import Box, largest_error
from onelayer.problems.targets import Target

TARGETS, N, TOLERANCE = ("standardise", "sort"), 3, 0.05
CONSTRUCTIONS = ("positional", "quantise")
RATES = (1e-3, 3e-3, 1e-2)
HEADS, BATCH, WARM_UP, TUNING, HELD_OUT = 4, 512, 20, 0.1, 1 << 14
#: Samples at which the largest error is looked for, and multiplications that may be spent on them.
SAMPLES, WORK, FEWEST = 1_000_000, 1e12, 20_000
Row = dict[str, Any]
Make = Callable[[int, Target], Any]


def seconds_allowed() -> float:
    return float(os.environ.get("ONELAYER_BENCH_SECONDS", "300"))


def transformer(layers: int) -> Make:
    def make(width: int, target: Target) -> Any:
        from torch import nn

        class Network(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                blocks = [
                    nn.TransformerEncoderLayer(
                        width, HEADS, 4 * width, dropout=0.0, batch_first=True, norm_first=True
                    )
                    for _ in range(layers)
                ]
                self.before = nn.Sequential(nn.Linear(target.d, width), *blocks, nn.LayerNorm(width))
                self.out = nn.Linear(width, target.components)

            def forward(self, x: Any) -> Any:
                h = self.before(x)
                return self.out(h if target.per == "token" else h.mean(1))

        return Network()

    return make


def deep_sets(width: int, target: Target) -> Any:
    import torch
    from torch import nn

    per_token = target.per == "token"

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each = nn.Sequential(nn.Linear(target.d, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
            self.all = nn.Sequential(
                nn.Linear(2 * width if per_token else width, width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.ReLU(),
                nn.Linear(width, target.components),
            )

        def forward(self, x: Any) -> Any:
            h = self.each(x)
            mean = h.mean(1)
            return self.all(torch.cat([h, mean[:, None].expand_as(h)], -1) if per_token else mean)

    return Network()


NETWORKS: dict[str, Make] = {
    "Transformer, 1 layer": transformer(1),
    "Transformer, 4 layers": transformer(4),
    "Deep Sets": deep_sets,
}


def parameters_of(net: Any) -> int:
    return sum(p.numel() for p in net.parameters())


def width_for(make: Make, target: Target, parameters: int) -> int:
    """The smallest width, a multiple of the heads, with at least this many parameters."""
    low, high = 0, HEADS
    while parameters_of(make(high, target)) < parameters:
        low, high = high, 2 * high
    while high - low > HEADS:
        middle = (low + high) // (2 * HEADS) * HEADS
        low, high = (low, middle) if parameters_of(make(middle, target)) >= parameters else (middle, high)
    return high


def train(make: Make, width: int, target: Target, rate: float, seconds: float) -> tuple[Any, int]:
    """Adam on the mean square of fresh batches, for this many CPU seconds; the network and the number of steps."""
    import torch

    torch.manual_seed(0)
    net, rng, step = make(width, target), np.random.default_rng(1), 0
    optimizer = torch.optim.Adam(net.parameters(), rate)
    start = time.process_time()
    while (share := (time.process_time() - start) / seconds) < 1:
        X = rng.uniform(0, 1, (BATCH, target.n, target.d)).astype(np.float32)
        wanted = torch.from_numpy(target.evaluate(X.astype(np.float64)).astype(np.float32))
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * share)) / 2
        loss = (net(torch.from_numpy(X)) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    return net.eval(), step


def errors_of(net: Any, target: Target) -> Callable[[Any], Any]:
    import torch

    def errors(X: Any) -> Any:
        with torch.no_grad():
            parts = [net(part).numpy() for part in torch.from_numpy(X.astype(np.float32)).split(4096)]
        away = np.concatenate(parts).astype(np.float64) - target.evaluate(np.asarray(X, np.float64))
        return np.abs(away).reshape(len(X), -1).max(axis=1)

    return errors


def tune_rate(make: Make, width: int, target: Target) -> float:
    X = np.random.default_rng(2).uniform(0, 1, (HELD_OUT, target.n, target.d)).astype(np.float32)

    def held_out(rate: float) -> float:
        net, _ = train(make, width, target, rate, TUNING * seconds_allowed())
        return float(np.nan_to_num(errors_of(net, target)(X).max(), nan=np.inf))

    return min(RATES, key=held_out)


def mean_error(errors: Callable[[Any], Any], target: Target, samples: int, low: float = 0.0) -> float:
    X = np.random.default_rng(3).uniform(low, 1, (samples, target.n, target.d)).astype(np.float32)
    return float(np.mean([errors(part).mean() for part in np.array_split(X, max(1, samples // 20_000))]))


def construct_row(name: str, construction: str) -> tuple[Model, Row]:
    start = time.process_time()
    model = approximate(name, n=N, tolerance=TOLERANCE, construction=construction)  # type: ignore[arg-type]
    seconds = time.process_time() - start
    return model, {
        "target": name,
        "model": f"onelayer, {construction}",
        "parameters": model.n_parameters,
        "CPU s": seconds,
        "steps": 0,
        "rate": "",
        "largest error": largest_error(model.errors, model.interface.box, SAMPLES)[0],
        "mean error": mean_error(model.errors, model.target, SAMPLES // 5),
        "proved": model.error_bound if model.proved else "no",
        "samples": SAMPLES,
        "left out": model.interface.left_out,
    }


def train_rows(name: str, model: Model) -> list[Row]:
    target, rows = model.target, []
    box = Box(target.n, target.d, 0.0, 1.0, np.dtype(np.float32), np.empty(0))
    for network, make in NETWORKS.items():
        width = width_for(make, target, model.n_parameters)
        rate = tune_rate(make, width, target)
        start = time.process_time()
        net, steps = train(make, width, target, rate, seconds_allowed())
        spent, parameters = time.process_time() - start, parameters_of(net)
        samples = int(min(SAMPLES, max(FEWEST, WORK / (parameters * target.n))))
        errors = errors_of(net, target)
        row = {
            "target": name,
            "model": f"{network}, width {width}",
            "parameters": parameters,
            "CPU s": spent,
            "steps": steps,
            "rate": rate,
            "largest error": largest_error(errors, box, samples)[0],
            "mean error": mean_error(errors, target, samples // 5),
            "proved": "no",
            "samples": samples,
            "left out": 0.0,
        }
        print(row, flush=True)
        rows.append(row)
    return rows


def run() -> dict[str, list[Row]]:
    import torch  # noqa: F401  (before one_core, which sets its threads)

    rows = []
    with one_core():
        for name in TARGETS:
            models, found = zip(*(construct_row(name, construction) for construction in CONSTRUCTIONS), strict=True)
            print(*found, sep="\n", flush=True)
            rows += [*found, *train_rows(name, min(models, key=lambda model: model.n_parameters))]
    return {f"Constructed against trained, n = {N}, {seconds_allowed():g} CPU seconds of one core a run": rows}
