"""Six formulas of 8 tokens, compiled line by line, and fitted by Adam: the largest and the mean error of each.

    ONELAYER_BENCH_SECONDS=300 python -m benchmarks trained_formulas

The formulas are six of the thirty of `formulas`, chosen before anything was trained: a spread, a standardisation,
attention, log-sum-exp, a product with a kernel of a mean, and a mean over pairs; compiled at tolerance 0.01. The
networks are those of `trained`, with at least as many parameters as the compiled model, and with at least 10
times as many; five seeds are trained side by side. What is tuned, in a run of a quarter of the time: the rate,
and whether inputs are uniform or, as where the largest error is looked for, half of them at edges of the box. It
is tuned twice, for the largest and for the mean error on held-out inputs; where that asks for two settings both
are trained, five seeds each, and each error is that of the networks tuned for it. Errors are asked alike of all:
samples and hill climbing for the largest, uniform samples for the mean.

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
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import continued, side_by_side
from benchmarks.side_by_side import Member, uniform, with_edges
from benchmarks.throughput import one_core
from benchmarks.trained import HELD_OUT, NETWORKS, RATES, errors_of, mean_error, parameters_of, width_for
from onelayer import Model, approximate
from onelayer.measure.worst_error import Error, largest_error
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box

N, TOLERANCE, SEEDS, MULTIPLES = 8, 0.01, 5, (1, 10)
TUNING, SAMPLES = 0.25, 30_000
OURS, LARGEST, MEAN = "onelayer", "largest error", "mean error"
ERRORS = (LARGEST, MEAN)
KEPT = Path(__file__).parent / "results" / "trained_formulas.jsonl"
Row = dict[str, Any]
#: Formula, and the low end of the box; its high end is 1.
FORMULAS = {
    "sqrt(0.01 + mean((y - mean(y))**2))": 0.0,
    "(x - mean(y))/sqrt(0.1 + mean((y - mean(y))**2))": 0.0,
    "sum(exp(3*x*y)*y)/sum(exp(3*x*y))": -1.0,
    "log(mean(exp(2*y)))": -1.0,
    "x*exp(-mean((x - y)**2))": 0.0,
    "mean(sin(2*(x - y)))": -1.0,
}


def seconds_allowed() -> float:
    return float(os.environ.get("ONELAYER_BENCH_SECONDS", "300"))


@cache
def compiled(text: str) -> tuple[Model, float]:
    start = time.process_time()
    model = approximate(text, n=N, low=FORMULAS[text], high=1, tolerance=TOLERANCE, construction="formula")
    return model, time.process_time() - start


def ours(key: Row) -> list[Row]:
    """A row for each error."""
    model, seconds = compiled(key["formula"])
    told = {"parameters": model.n_parameters, "proved": model.error_bound, "CPU s": seconds}
    found = {error: measured(error, model.errors, model.target, model.interface.box) for error in ERRORS}
    return [key | told | {"error": error, "found": value} for error, value in found.items()]


def trained(key: Row) -> list[Row]:
    """A row for each error and seed."""
    model, _ = compiled(key["formula"])
    make, target, box = NETWORKS[key["model"]], model.target, model.interface.box
    width = width_for(make, target, key["times our parameters"] * model.n_parameters)
    tried = [Member(0, rate, draw) for draw in side_by_side.DRAWS for rate in RATES]
    nets, _ = side_by_side.trained(make, width, target, box, tried, TUNING * seconds_allowed())
    chosen = {error: min(zip(tried, nets, strict=True), key=held_out(error, target, box))[0] for error in ERRORS}
    settings = list(dict.fromkeys(chosen.values()))
    members = [replace(setting, seed=seed) for setting in settings for seed in range(SEEDS)]
    start, allowed = time.process_time(), seconds_allowed() * len(settings)
    nets, steps = side_by_side.trained(make, width, target, box, members, allowed)
    spent, rows = (time.process_time() - start) / len(members), []
    by_member = dict(zip(members, nets, strict=True))
    alone = steps * side_by_side.seconds_of_a_step_alone(make(width, target), target, box)
    for (error, setting), seed in product(chosen.items(), range(SEEDS)):
        net = by_member[replace(setting, seed=seed)]
        found = measured(error, errors_of(net, target), target, box)
        row = {"error": error, "seed": seed, "width": width, "parameters": parameters_of(net), "found": found}
        told = {"CPU s": spent, "steps": steps, "CPU s, trained alone": alone}
        rows.append(key | row | told | {"rate": setting.rate, "inputs": setting.draw})
    return rows


def measured(error: str, errors: Error, target: Target, box: Box) -> float:
    if error == LARGEST:
        return largest_error(errors, box, SAMPLES)[0]
    return mean_error(errors, target, SAMPLES // 3, float(box.low))


def held_out(error: str, target: Target, box: Box) -> Callable[[tuple[Member, Any]], float]:
    draw, over = (with_edges, np.max) if error == LARGEST else (uniform, np.mean)
    X = draw(np.random.default_rng(2), box, HELD_OUT)

    def value(tried: tuple[Member, Any]) -> float:
        return float(np.nan_to_num(over(errors_of(tried[1], target)(X)), nan=np.inf))

    return value


def summary(rows: list[Row]) -> list[Row]:
    """A row for each formula, network and size: medians over seeds, and from the best to the worst of them."""
    found, names = [], ("formula", "model", "times our parameters")
    for group in dict.fromkeys(tuple(row.get(name, "") for name in names) for row in rows):
        of = [row for row in rows if tuple(row.get(name, "") for name in names) == group]
        line: Row = dict(zip(names, group, strict=True)) | {"parameters": of[0]["parameters"]}
        for error in ERRORS:
            values = sorted(row["found"] for row in of if row["error"] == error)
            line[f"{error}, median"] = float(np.median(values))
            line[f"{error}, seeds"] = f"{values[0]:.3g} to {values[-1]:.3g}" if len(values) > 1 else ""
        line["proved"] = of[0].get("proved", "no")
        line["CPU s"] = of[0]["CPU s"]
        for name in ("steps", "CPU s, trained alone"):
            line[name] = of[0].get(name, "")
        tuned = dict.fromkeys(f"{row['rate']:g}, {row['inputs']}" for row in of if "rate" in row)
        found.append(line | {"rate, inputs": "; ".join(tuned)})
    return found


def verdicts(rows: list[Row]) -> list[Row]:
    """For each size, of formulas on which all networks were trained: where ours is below every one of them; and
    on how many formulas one was trained that is below ours, whatever the others will do."""
    found = []
    for times, error in product(MULTIPLES, ERRORS):
        kind = [row for row in rows if row["error"] == error]
        mine = {row["formula"]: row["found"] for row in kind if row["model"] == OURS}
        theirs = {
            (text, name): [row["found"] for row in kind if _is_of(row, text, name, times)]
            for text, name in product(FORMULAS, NETWORKS)
        }
        asked = [text for text in FORMULAS if all(theirs[text, name] for name in NETWORKS)]
        line: Row = {"times our parameters": times, "error": error, "formulas": len(asked)}
        for which, chosen in (("median", np.median), ("best seed", np.min)):
            line[f"ours below the {which} of all networks"] = sum(
                bool(mine[text] < min(chosen(theirs[text, name]) for name in NETWORKS)) for text in asked
            )
        line["formulas with a median below ours already"] = sum(
            any(found and np.median(found) < mine[text] for found in (theirs[text, name] for name in NETWORKS))
            for text in FORMULAS
        )
        line["theirs / ours, smallest to largest"] = span(
            [min(map(np.median, (theirs[text, name] for name in NETWORKS))) / mine[text] for text in asked]
        )
        found.append(line)
    return found


def span(values: list[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}" if values else ""


def _is_of(row: Row, text: str, name: str, times: int) -> bool:
    return (row["formula"], row["model"], row.get("times our parameters")) == (text, name, times)


def run() -> dict[str, list[Row]]:
    import torch  # noqa: F401  (before one_core, which sets its threads)

    kept, rows = continued.rows(KEPT), list[Row]()
    at = [{"formula": text, "times our parameters": k} for k in MULTIPLES for text in FORMULAS]
    asked = [{"formula": text, "model": OURS} for text in FORMULAS]
    asked += [key | {"model": name} for key in at for name in NETWORKS]
    with one_core():
        for key in asked:
            found = kept.all(key)
            if not found and seconds_allowed() > 0:
                found = [kept.add(row) for row in (ours(key) if key["model"] == OURS else trained(key))]
            rows += found
            print(*found, sep="\n", flush=True)
    title = f"Formulas, compiled against trained, n = {N}, tolerance {TOLERANCE}; five seeds side by side"
    return {title: verdicts(rows), "Each; CPU s of one core are those of one network": summary(rows)}
