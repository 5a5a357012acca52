"""Depth: one constructed layer against 1 to 8 trained ones with as many parameters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.approximation import approximate
from onelayer.approximation.measure import Box, largest_error
from onelayer.constructions.memorization import memorize
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Interval, grouped, interval
from onelayer.targets import resolve

QUESTION = "At equal numbers of parameters, is one constructed layer as good as several trained ones?"
HYPOTHESES = (
    "One layer is enough (Corollary 1): a constructed one memorises everything, trained ones of any depth may not.",
    "For a smooth function trained layers have the smaller error: a construction pays for its proof.",
)
EXTRAS = ("torch",)
n, VOCABULARY, CLASSES = 4, 32, 16
SAMPLES = 1 << 14


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps = 300 if quick else 5000
    targets = ("polynomial:3",) if quick else ("polynomial:3", "standardise", "interaction")
    tasks = [("memory", 96 if quick else 384, steps), *((name, 2, steps) for name in targets)]
    return [
        {"task": task, "model": model, "layers": layers, "size": size, "steps": steps if model == "trained" else 0}
        for task, size, steps in tasks
        for model, layers in (("constructed", 1), *(("trained", L) for L in (1, 2, 4, 8)))
    ]


def run(case: Case, seed: int) -> list[Row]:
    return _memory(case, seed) if case["task"] == "memory" else _function(case, seed)


def _memory(case: Case, seed: int) -> list[Row]:
    """Sets of 4 of 32 tokens, an answer of 16 at each; ``size`` is their number."""
    rng = np.random.default_rng([seed, case["size"], 8])
    sets = np.array(list(combinations(range(VOCABULARY), n)))
    X = sets[rng.permutation(len(sets))[: case["size"]]]
    Y = rng.integers(0, CLASSES, X.shape)
    model = memorize(X, Y, seed=seed)
    if case["model"] == "constructed":
        return [_row(model.n_parameters, None, float((model.predict(X, path="dense") == Y).mean()), None)]
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, tuned

    task = Task(X, Y)
    shape = fill(Shape(1, layers=case["layers"], norm=True), task, model.n_parameters)
    ended = tuned(shape, task, Budget(steps=case["steps"], short=0.1, check=20), seed)
    return [_row(count_parameters(shape, task), shape.width, ended.accuracy, None)]


def _function(case: Case, seed: int) -> list[Row]:
    """A named function of ``size`` tokens in [0, 1]; the error is the largest that search finds."""
    tokens = case["size"]
    model = approximate(case["task"], n=tokens, tolerance=0.1, seed=seed)
    if case["model"] == "constructed":
        return [_row(model.n_parameters, None, None, model.measured_error, model.error_bound)]
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, predict, tuned

    target = resolve(case["task"], n=tokens, d=1, low=0.0, high=1.0)
    rng = np.random.default_rng([seed, 9])
    X = rng.random((512, tokens, 1))
    Y = target.evaluate(X)
    scope: Any = "sequence" if Y.ndim == 2 else "token"
    task = Task(X.astype(np.float32), Y, "reals", scope)
    positions = target.kind == "ordered"
    shape = fill(Shape(1, layers=case["layers"], norm=True, positions=positions), task, model.n_parameters)
    ended = tuned(shape, task, Budget(steps=case["steps"], short=0.1, check=100), seed)

    def errors(Z: Any) -> Any:
        found, wanted = predict(ended.net, Z), target.evaluate(np.asarray(Z, np.float64))
        return np.abs(found - wanted).reshape(len(Z), -1).max(axis=1)

    box = Box(tokens, 1, 0.0, 1.0, np.dtype(np.float32), np.empty(0))
    return [_row(count_parameters(shape, task), shape.width, None, largest_error(errors, box, SAMPLES, seed)[0])]


def _row(
    parameters: int, width: int | None, accuracy: float | None, error: float | None, proved: float | None = None
) -> Row:
    return {"parameters": parameters, "width": width, "accuracy": accuracy, "error": error, "proved": proved}


def plot(rows: list[Row]) -> Any:
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    made, all_axes = figure(columns=len(tasks), width=5 * len(tasks))
    for axes, task in zip(all_axes, tasks, strict=True):
        value = "accuracy" if task == "memory" else "error"
        some = [row for row in rows if row["task"] == task]
        built = interval(row[value] for row in some if row["model"] == "constructed")
        line(axes, grouped([r for r in some if r["model"] == "trained"], "layers", value), "trained")
        axes.axhline(built.mean, color="grey", linestyle="--", label="constructed, one layer")
        name = "share of answers memorised" if task == "memory" else f"largest error found, {task}"
        axes.set(xscale="log", xlabel="trained layers", ylabel=name)
        axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"], minor=False)
        axes.minorticks_off()
        if task != "memory":
            axes.set_yscale("log")
        axes.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings: list[str] = []
    better: list[str] = []
    worse: list[str] = []
    for task in dict.fromkeys(row["task"] for row in rows):
        some, value = [row for row in rows if row["task"] == task], "accuracy" if task == "memory" else "error"
        built = interval(row[value] for row in some if row["model"] == "constructed")
        trained = grouped([r for r in some if r["model"] == "trained"], "layers", value)
        size = interval(row["parameters"] for row in some if row["model"] == "constructed")
        findings.append(_finding(task, value, size, built, trained))
        wins = [
            built.low > found.high if task == "memory" else built.high < found.low for found in trained.values()
        ]
        loses = [
            built.high < found.low if task == "memory" else built.low > found.high for found in trained.values()
        ]
        (better if all(wins) else worse if any(loses) else []).append("memorisation" if task == "memory" else task)
    answer: Any = "yes" if better and not worse else "no" if worse and not better else "partly"
    parts = [f"better than every trained depth at {', '.join(better)}"] if better else []
    parts += [f"worse than some trained depth at {', '.join(worse)}"] if worse else []
    return Verdict(
        answer, f"One constructed layer is {'; '.join(parts) or 'neither better nor worse'}.", tuple(findings)
    )


def _finding(task: str, value: str, size: Interval, built: Interval, trained: dict[Any, Interval]) -> str:
    told = ", ".join(f"{found} with {layers}" for layers, found in trained.items())
    what = "memorisation, accuracy" if value == "accuracy" else f"{task}, largest error found"
    return f"{what} at {size} parameters: constructed {built}; trained layers: {told}."
