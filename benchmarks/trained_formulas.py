"""Six formulas of 8 tokens, compiled line by line, and fitted by Adam: the largest and the mean error of each.

    ONELAYER_BENCH_SECONDS=300 python -m benchmarks trained_formulas

The formulas are six of the thirty of `formulas`, chosen before anything was trained: a spread, a standardisation,
attention, log-sum-exp, a product with a kernel of a mean, and a mean over pairs. The networks are those of
`trained`, with at least the parameters that are listed below, or 10 times as many: those that models within 0.01
had when the first network was trained. For each network ours is compiled to the smallest tolerance whose model,
proved, has no more parameters than the network. Five seeds are trained side by side. What is tuned, in a run of a
quarter of the time: the rate, and whether inputs are uniform or, as where the largest error is looked for, half of
them at edges of the box. It is tuned twice, for the largest and for the mean error on held-out inputs; where that
asks for two settings both are trained, five seeds each. A setting that is worse after all of its time than after a
quarter of it, as high rates may be, is followed by the next best, up to three; of all that were trained, that with
the best median on held-out inputs counts. Errors are asked alike of all: samples and hill climbing for the largest,
uniform samples for the mean.

ONELAYER_BENCH_SECONDS sets the CPU seconds in which the five seeds of a setting are trained together, one core; by
default 300. So "5 CPU minutes each" is said of a setting, not of a seed: a step of five networks side by side costs
about what a step of one costs alone in plain PyTorch, so that each network makes about as many steps as it would
make alone in 5 minutes. The table has both figures: the share of a network in the CPU seconds that were spent, and
the CPU seconds that as many steps take with one network alone.

Rows are kept in `results/trained_formulas.jsonl`, or in the file that ONELAYER_BENCH_ROWS names, as soon as they
are measured, and are not measured again: a run may be ended and continued on another day, equal size first. With 0
seconds nothing is trained, and what is there is reported. To measure all of it again, delete the file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import continued, side_by_side
from benchmarks.side_by_side import Member, uniform, with_edges
from benchmarks.throughput import one_core
from benchmarks.trained import HELD_OUT, NETWORKS, Make, errors_of, mean_error, parameters_of, width_for
from onelayer import Model, approximate
from onelayer.errors import HypothesisError
from onelayer.measure.worst_error import Error, largest_error
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box

N, SEEDS, MULTIPLES = 8, 5, (1, 10)
RATES, TUNING, SETTINGS, SAMPLES = (1e-3, 3e-3, 1e-2, 3e-2), 0.25, 3, 30_000
OURS, LARGEST, MEAN = "onelayer", "largest error", "mean error"
ERRORS = (LARGEST, MEAN)
KEPT = Path(__file__).parent / "results" / "trained_formulas.jsonl"
Row = dict[str, Any]
#: Formula, the low end of the box, whose high end is 1, and the least parameters of a network.
FORMULAS = {
    "sqrt(0.01 + mean((y - mean(y))**2))": (0.0, 189),
    "(x - mean(y))/sqrt(0.1 + mean((y - mean(y))**2))": (0.0, 1110),
    "sum(exp(3*x*y)*y)/sum(exp(3*x*y))": (-1.0, 15),
    "log(mean(exp(2*y)))": (-1.0, 191),
    "x*exp(-mean((x - y)**2))": (0.0, 418),
    "mean(sin(2*(x - y)))": (-1.0, 435),
}
#: Tolerances that are tried, from the first on each so many times the one before; how many in a row may fail.
FIRST, FINER, FAILURES = 0.05, 0.8, 4


def seconds_allowed() -> float:
    return float(os.environ.get("ONELAYER_BENCH_SECONDS", "300"))


@cache
def compiled(text: str, tolerance: float) -> tuple[Model | None, float]:
    """A model that is proved, and the CPU seconds it took; None if there is none in float32."""
    start = time.process_time()
    box: dict[str, Any] = {"n": N, "low": FORMULAS[text][0], "high": 1}
    try:
        model = approximate(text, **box, tolerance=tolerance, construction="formula")
    except HypothesisError:
        model = None
    return model, time.process_time() - start


def within(text: str, parameters: int) -> tuple[Model, float, float]:
    """The model with the smallest tolerance that has no more parameters; its tolerance, and its CPU seconds."""
    found, tolerance, failures = None, FIRST, 0
    while failures < FAILURES:
        model, seconds = compiled(text, tolerance)
        if model is not None and model.n_parameters <= parameters:
            found, failures = (model, tolerance, seconds), 0
        else:
            failures += 1
        tolerance *= FINER
    assert found is not None, f"no model of {text!r} has at most {parameters} parameters"
    return found


def ours(key: Row, parameters: int) -> list[Row]:
    """A row for each error."""
    model, tolerance, seconds = within(key["formula"], parameters)
    told = {"tolerance": tolerance, "parameters": model.n_parameters, "proved": model.error_bound, "CPU s": seconds}
    found = {error: measured(error, model.errors, model.target, model.interface.box) for error in ERRORS}
    return [key | told | {"error": error, "found": value} for error, value in found.items()]


@dataclass(frozen=True)
class Trained:
    """Five networks of one setting, and what they took: CPU seconds of each, steps, and seconds of one alone."""

    nets: list[Any]
    spent: float
    steps: int
    alone: float

    def median(self, error: Callable[[Any], float]) -> float:
        return float(np.median([error(net) for net in self.nets]))


def trained(key: Row) -> list[Row]:
    """A row for each error and seed."""
    model, _ = compiled(key["formula"], FIRST)
    assert model is not None
    make, target, box = NETWORKS[key["model"]], model.target, model.interface.box
    width = width_for(make, target, key["times"] * FORMULAS[key["formula"]][1])
    errors = {error: held_out(error, target, box) for error in ERRORS}
    tried = [Member(0, rate, draw) for draw in side_by_side.DRAWS for rate in RATES]
    nets, _ = side_by_side.trained(make, width, target, box, tried, TUNING * seconds_allowed())
    early = {error: dict(zip(tried, map(of, nets), strict=True)) for error, of in errors.items()}
    best = {error: sorted(tried, key=found.__getitem__)[:SETTINGS] for error, found in early.items()}
    train = partial(to_the_end, make, width, target, box)
    full = train(list(dict.fromkeys(settings[0] for settings in best.values())))
    for error, settings in best.items():
        for setting in settings:
            full |= {} if setting in full else train([setting])
            if full[setting].median(errors[error]) <= early[error][setting]:
                break
    rows = []
    for error, of in errors.items():
        setting = min(full, key=lambda each: full[each].median(of))
        told = {"CPU s": full[setting].spent, "steps": full[setting].steps}
        told |= {"CPU s, trained alone": full[setting].alone, "rate": setting.rate, "inputs": setting.draw}
        told |= {"settings": len(full)}
        for seed, net in enumerate(full[setting].nets):
            found = measured(error, errors_of(net, target), target, box)
            row = {"error": error, "seed": seed, "width": width, "parameters": parameters_of(net), "found": found}
            rows.append(key | row | told)
    return rows


def to_the_end(make: Make, width: int, target: Target, box: Box, settings: list[Member]) -> dict[Member, Trained]:
    """Five seeds of each setting, all side by side, in the time that is allowed for as many settings."""
    members = [replace(setting, seed=seed) for setting in settings for seed in range(SEEDS)]
    start = time.process_time()
    nets, steps = side_by_side.trained(make, width, target, box, members, seconds_allowed() * len(settings))
    spent = (time.process_time() - start) / len(members)
    alone = steps * side_by_side.seconds_of_a_step_alone(make(width, target), target, box)
    return {
        setting: Trained(nets[k * SEEDS : (k + 1) * SEEDS], spent, steps, alone)
        for k, setting in enumerate(settings)
    }


def measured(error: str, errors: Error, target: Target, box: Box) -> float:
    if error == LARGEST:
        return largest_error(errors, box, SAMPLES)[0]
    return mean_error(errors, target, SAMPLES // 3, float(box.low))


def held_out(error: str, target: Target, box: Box) -> Callable[[Any], float]:
    """The error of a network on inputs that are the same for all; infinite where it is no number."""
    draw, over = (with_edges, np.max) if error == LARGEST else (uniform, np.mean)
    X = draw(np.random.default_rng(2), box, HELD_OUT)

    def value(net: Any) -> float:
        return float(np.nan_to_num(over(errors_of(net, target)(X)), nan=np.inf))

    return value


def summary(rows: list[Row]) -> list[Row]:
    """A row for each formula, network and size: medians over seeds, the best and the worst of them, and ours."""
    found = []
    for group in dict.fromkeys(_named(row) for row in rows if row["model"] != OURS):
        of = [row for row in rows if row["model"] != OURS and _named(row) == group]
        mine = {row["error"]: row for row in rows if row["model"] == OURS and _named(row) == group}
        line: Row = dict(zip(("formula", "network", "times"), group, strict=True))
        line |= {"parameters": of[0]["parameters"], "ours": mine[LARGEST]["parameters"]}
        for error in ERRORS:
            values = sorted(row["found"] for row in of if row["error"] == error)
            line[f"{error}, median"] = float(np.median(values))
            line[f"{error}, seeds"] = f"{values[0]:.3g} to {values[-1]:.3g}"
            line[f"{error}, ours"] = mine[error]["found"]
        line["ours, proved"] = mine[LARGEST]["proved"]
        line["CPU s, ours"] = mine[LARGEST]["CPU s"]
        for name in ("CPU s", "steps", "CPU s, trained alone"):
            line[name] = of[0][name]
        tuned = dict.fromkeys(f"{row['rate']:g}, {row['inputs']}" for row in of)
        found.append(line | {"rate, inputs": "; ".join(tuned)})
    return found


def verdicts(rows: list[Row]) -> list[Row]:
    """For each size, of formulas on which all networks were trained: where ours, as large as the network, is below
    every one of them; and how many networks that were trained are below ours."""
    found = []
    for times, error in product(MULTIPLES, ERRORS):
        kind = [row for row in rows if row["error"] == error and row["times"] == times]
        ratios: dict[str, dict[str, dict[str, float]]] = {text: {} for text in FORMULAS}
        for text, name in product(FORMULAS, NETWORKS):
            mine, theirs = (
                [row["found"] for row in kind if _named(row)[:2] == (text, name) and (row["model"] == OURS) == own]
                for own in (True, False)
            )
            if mine and theirs:
                ratios[text][name] = {"median": np.median(theirs) / mine[0], "best seed": min(theirs) / mine[0]}
        whole = [text for text in FORMULAS if len(ratios[text]) == len(NETWORKS)]
        line: Row = {"times": times, "error": error, "formulas": len(whole)}
        for which in ("median", "best seed"):
            least = [min(ratio[which] for ratio in ratios[text].values()) for text in whole]
            line[f"ours below the {which} of all networks"] = sum(bool(ratio > 1) for ratio in least)
        each = [ratio["median"] for of in ratios.values() for ratio in of.values()]
        line["networks"] = len(each)
        line["of which a median is below ours"] = sum(bool(ratio <= 1) for ratio in each)
        line["theirs / ours, smallest to largest"] = span(each)
        found.append(line)
    return found


def span(values: list[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}" if values else ""


def _named(row: Row) -> tuple[str, str, int]:
    """The formula, the network, or that which ours is as large as, and its size."""
    return row["formula"], row.get("as large as", row["model"]), row["times"]


def run() -> dict[str, list[Row]]:
    import torch  # noqa: F401  (before one_core, which sets its threads)

    kept, rows = continued.rows(KEPT), list[Row]()
    asked = [
        {"formula": text, "times": k, "model": name} for k in MULTIPLES for text in FORMULAS for name in NETWORKS
    ]
    with one_core():
        for key in asked:
            found = kept.all(key)
            if not found and seconds_allowed() > 0:
                found = [kept.add(row) for row in trained(key)]
            if found:
                mine = key | {"model": OURS, "as large as": key["model"]}
                found += kept.all(mine) or [kept.add(row) for row in ours(mine, found[0]["parameters"])]
            rows += found
            print(*found, sep="\n", flush=True)
    title = f"Formulas, compiled against trained, n = {N}, ours as large as the network; five seeds side by side"
    return {title: verdicts(rows), "Each; CPU s of one core are those of one network": summary(rows)}
