"""Depth: one constructed layer against 1 to 8 trained ones with as many parameters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.approximate import approximate
from onelayer.compile.memorize import memorize
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Interval, interval, interval_by_group

QUESTION = "At equal numbers of parameters, is one constructed layer as good as several trained ones?"
HYPOTHESES = (
    "One layer is enough (Corollary 1): a constructed one memorises everything, trained ones of any depth may not.",
    "For a smooth function trained layers have the smaller error: a construction pays for its proof.",
)
EXTRAS = ("torch",)
n, VOCABULARY, CLASSES = 4, 32, 16
#: For functions: the bound that is proved of the constructed layer, which decides how many parameters all have.
TOLERANCE = 0.1


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    targets = ("polynomial:3",) if quick else ("polynomial:3", "standardise", "interaction")
    sizes = [("memory", 96 if quick else 384, 300 if quick else 5000)]
    tasks = [*sizes, *((name, 2, 600 if quick else 5000) for name in targets)]
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
    model = memorize(X, Y, seed=seed, certify=False)
    if case["model"] == "constructed":
        return [_row(model.n_parameters, None, float((model.predict(X, path="dense") == Y).mean()), None)]
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, train_tuned

    task = Task(X, Y)
    shape = fill(Shape(1, layers=case["layers"], norm=True), task, model.n_parameters)
    ended = train_tuned(shape, task, Budget(steps=case["steps"], check=20), seed)
    return [_row(count_parameters(shape, task), shape.width, ended.accuracy, None)]


def _function(case: Case, seed: int) -> list[Row]:
    """A named function of ``size`` tokens in [0, 1]; the error is the largest that search finds."""
    model = approximate(
        case["task"], n=case["size"], tolerance=TOLERANCE, construction="positional", dtype="float32", seed=seed
    )
    if case["model"] == "constructed":
        return [_row(model.n_parameters, None, None, model.measured_error, model.error_bound)]
    from onelayer.lab.functions import fit_transformer

    twin = fit_transformer(model.target, model.n_parameters, case["layers"], case["steps"], seed)
    return [_row(twin.parameters, twin.width, None, twin.error)]


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
    """Clearly better, or worse, than a depth: where the intervals do not meet."""
    findings, better, worse, depths, ahead_of = [], [], [], 0, 0
    for task in dict.fromkeys(row["task"] for row in rows):
        some, value = [row for row in rows if row["task"] == task], "accuracy" if task == "memory" else "error"
        built = interval(row[value] for row in some if row["model"] == "constructed")
        trained = interval_by_group([r for r in some if r["model"] == "trained"], "layers", value)
        size = interval(row["parameters"] for row in some if row["model"] == "constructed")
        findings.append(_describe_finding(task, value, size, built, trained))
        if not built.count:
            continue
        sign, name = (1, "memorisation") if task == "memory" else (-1, task)
        ahead = [sign * (built.mean - t.mean) > built.half + t.half for t in trained.values()]
        behind = [sign * (t.mean - built.mean) > built.half + t.half for t in trained.values()]
        better.append(f"{sum(ahead)} of {len(ahead)} at {name}")
        worse += [f"{sum(behind)} at {name}"] if any(behind) else []
        depths, ahead_of = depths + len(trained), ahead_of + sum(ahead)
    if not depths:
        return Verdict("open", "There are not both constructed and trained models to compare.", tuple(findings))
    says = f"One constructed layer is clearly better than some trained depths ({', '.join(better)})"
    if worse:
        return Verdict("partly", f"{says}, and clearly worse than others ({', '.join(worse)}).", tuple(findings))
    if ahead_of == depths:
        return Verdict("yes", f"It is clearly better than every one ({', '.join(better)}).", tuple(findings))
    # Intervals that meet do not show that two models are equally good.
    return Verdict("open", f"{says}; of the others these seeds do not tell.", tuple(findings))


def _describe_finding(task: str, value: str, size: Interval, built: Interval, trained: dict[Any, Interval]) -> str:
    listed = ", ".join(f"{found} with {layers}" for layers, found in trained.items())
    what = "memorisation, accuracy" if value == "accuracy" else f"{task}, largest error found"
    return f"{what} at {size} parameters: constructed {built}; trained layers: {listed}."
