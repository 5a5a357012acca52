"""Depth: one constructed layer against 1 to 8 trained ones with as many parameters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.approximate import approximate
from onelayer.compile.memorize import memorize
from onelayer.lab.endings import still_learning
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Paired, geometric, interval, interval_by_group, paired

QUESTION = "At equal numbers of parameters, is one constructed layer as good as several trained ones?"
HYPOTHESES = (
    "One layer is enough (Corollary 1): a constructed one memorises everything, trained ones of any depth may not.",
    "For a smooth function trained layers have the smaller error: a construction pays for its proof.",
)
EARLIER = Earlier(
    "yes, from a single seed",
    "Clearly better, 4 of 4.",
    "the constructed function is the best that the compiler has (it was eight times larger), twins are trained "
    "until their loss stops falling or their steps are spent, which is said, and have as many parameters; errors "
    "are compared pair by pair, the mean one as well as the largest.",
)
EXTRAS = ("torch",)
n, VOCABULARY, CLASSES = 4, 32, 16
#: For functions: the bound that is proved of the constructed layer, which decides how many parameters all have.
TOLERANCE = 0.1


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    tasks = [("memory", 96, 1, 600), ("polynomial:3", 2, 1, 600)]
    if not quick:
        functions = [(name, n, 1) for name in ("polynomial:3", "standardise", "interaction") for n in (2, 4)]
        tasks = [("memory", 384, 1, 20000), *((*one, 20000) for one in (*functions, ("mean", 2, 2), ("max", 2, 2)))]
    return [
        {"task": task, "model": model, "layers": layers, "size": size, "d": d}
        | {"steps": steps if model == "trained" else 0}
        for task, size, d, steps in tasks
        for model, layers in (("constructed", 1), *(("trained", L) for L in ((1, 4) if quick else (1, 2, 4, 8))))
    ]


def run(case: Case, seed: int) -> list[Row]:
    return _memory(case, seed) if case["task"] == "memory" else _function(case, seed)


def _memory(case: Case, seed: int) -> list[Row]:
    """Sets of 4 of 32 tokens, an answer of 16 at each; ``size`` is their number."""
    rng = np.random.default_rng([seed, case["size"], 8])
    sets = np.array(list(combinations(range(VOCABULARY), n)))
    X = sets[rng.permutation(len(sets))[: case["size"]]]
    Y = rng.integers(0, CLASSES, X.shape)
    model = memorize(X, Y, seed=seed, certify=False)
    if case["model"] == "constructed":
        return [_row(model.n_parameters, None, float((model.predict(X, path="dense") == Y).mean()), None)]
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, train_tuned

    task = Task(X, Y)
    shape = fill(Shape(1, layers=case["layers"], norm=True), task, model.n_parameters)
    ended = train_tuned(shape, task, Budget(steps=case["steps"], check=20), seed)
    return [_row(count_parameters(shape, task), shape.width, ended.accuracy, None) | ended.end]


def _function(case: Case, seed: int) -> list[Row]:
    """A named function of ``size`` tokens in [0, 1]^d; the error is the largest that search finds."""
    size = {"n": case["size"], "d": case["d"]}
    model = approximate(case["task"], **size, tolerance=TOLERANCE, dtype="float32", seed=seed)
    if case["model"] == "constructed":
        X = np.random.default_rng([seed, 10]).random((4096, case["size"], case["d"]))
        found = np.asarray(model.predict(X), np.float64).reshape(len(X), -1)
        mean = float(np.abs(found - model.target.evaluate(X).reshape(len(X), -1)).mean())
        return [_row(model.n_parameters, None, None, model.measured_error, model.error_bound, mean)]
    from onelayer.lab.functions import fit_transformer

    twin = fit_transformer(model.target, model.n_parameters, case["layers"], case["steps"], seed)
    return [_row(twin.parameters, twin.width, None, twin.error, None, twin.mean_error) | twin.end]


def _row(
    parameters: int,
    width: int | None,
    accuracy: float | None,
    error: float | None,
    proved: float | None = None,
    mean_error: float | None = None,
) -> Row:
    said = {"parameters": parameters, "width": width, "accuracy": accuracy, "error": error, "proved": proved}
    return {**said, "mean_error": mean_error}


def plot(rows: list[Row]) -> Any:
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    made, all_axes = figure(columns=len(tasks), width=5 * len(tasks))
    for axes, task in zip(all_axes, tasks, strict=True):
        value = "accuracy" if task == "memory" else "error"
        some = [row for row in rows if row["task"] == task]
        built = interval(row[value] for row in some if row["model"] == "constructed")
        line(axes, interval_by_group([r for r in some if r["model"] == "trained"], "layers", value), "trained")
        axes.axhline(built.mean, color="grey", linestyle="--", label="constructed, one layer")
        name = "share of answers memorised" if task == "memory" else f"largest error found, {task}"
        axes.set(xscale="log", xlabel="trained layers", ylabel=name)
        axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"], minor=False)
        axes.minorticks_off()
        if any(row["error"] for row in some):
            axes.set_yscale("log")
        axes.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    """Seed by seed: differences of accuracy, ratios of errors."""
    findings, largest = [], []
    for task in dict.fromkeys((row["task"], row["size"], row["d"]) for row in rows):
        some = [row for row in rows if (row["task"], row["size"], row["d"]) == task]
        for value in ("accuracy",) if task[0] == "memory" else ("error", "mean_error"):
            listed, compared = _compare(some, value)
            largest += compared if value != "mean_error" else []
            name = f"{task[0]}, n = {task[1]}, d = {task[2]}" if task[0] != "memory" else f"{task[1]} sequences"
            findings.append(f"{name}, {value.replace('_', ' ')}: {listed}.")
    if not largest:
        return Verdict("open", "There are not both constructed and trained models to compare.", tuple(findings))
    better, worse = sum(one for one, _ in largest), sum(other for _, other in largest)
    says = (
        f"Against trained depths, pair by pair, one constructed layer is clearly better in {better} of "
        f"{len(largest)} comparisons (accuracy, or largest error) and clearly worse in {worse}."
    )
    cut = still_learning(row for row in rows if row["model"] == "trained")
    answer: Any = "yes" if better == len(largest) and not cut else "no" if worse == len(largest) else "partly"
    return Verdict(answer if better or worse else "open", says + cut, tuple(findings))


def _compare(some: list[Row], value: str) -> tuple[str, list[tuple[bool, bool]]]:
    """In words, and for each depth whether the constructed layer is clearly better, and clearly worse."""
    sign, mean = (1, interval) if value == "accuracy" else (-1, geometric)
    built = {row["seed"]: row[value] for row in some if row["model"] == "constructed"}
    size = interval(row["parameters"] for row in some if row["model"] == "constructed")
    listed, compared = [f"constructed {mean(built.values())} ({size} parameters)"] if built else [], []
    for layers in sorted({row["layers"] for row in some if row["model"] == "trained"}):
        trained = {r["seed"]: r[value] for r in some if r["model"] == "trained" and r["layers"] == layers}
        found: Paired = paired(built, trained, ratio=value != "accuracy")
        listed.append(f"{layers} trained {mean(trained.values())}")
        if built:
            compared.append((found.above, found.below) if sign > 0 else (found.below, found.above))
    return ", ".join(listed), compared
