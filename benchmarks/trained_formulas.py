"""Six formulas of 8 tokens, compiled line by line, and fitted by Adam: the largest and the mean error of each.

    ONELAYER_BENCH_ROWS=rows.jsonl python -m benchmarks trained_formulas

The formulas are six of the thirty of `formulas`, chosen before anything was trained: a spread, a standardisation,
attention, log-sum-exp, a product with a kernel of a mean, and a mean over pairs; compiled at tolerance 0.01. The
networks are those of `trained`, with at least as many parameters as the compiled model, and with at least 10 times
as many; five seeds are trained side by side. The rate is the best of three, by the largest error on held-out inputs
after a run of a quarter of the time. Errors are asked alike of all: samples and hill climbing for the largest,
uniform samples for the mean.

ONELAYER_BENCH_SECONDS sets the CPU seconds in which the five seeds are trained together, one core; by default 15.
That is less than the minutes which such networks can use: the table says how many steps were made.
Rows that are in the file that ONELAYER_BENCH_ROWS names are not measured again, so that a run may be continued;
with 0 seconds nothing more is trained, and what is there is reported.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any

import numpy as np

from benchmarks import continued, side_by_side
from benchmarks.throughput import one_core
from benchmarks.trained import HELD_OUT, NETWORKS, RATES, errors_of, mean_error, parameters_of, width_for
from onelayer import Model, approximate
from onelayer.measure.worst_error import largest_error

N, TOLERANCE, SEEDS, MULTIPLES = 8, 0.01, 5, (1, 10)
TUNING, SAMPLES = 0.25, 100_000
OURS = "onelayer"
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
    return float(os.environ.get("ONELAYER_BENCH_SECONDS", "15"))


@cache
def compiled(text: str) -> tuple[Model, float]:
    start = time.process_time()
    model = approximate(text, n=N, low=FORMULAS[text], high=1, tolerance=TOLERANCE, construction="formula")
    return model, time.process_time() - start


def ours(key: Row) -> list[Row]:
    model, seconds = compiled(key["formula"])
    row = {
        "parameters": model.n_parameters,
        "largest error": largest_error(model.errors, model.interface.box, SAMPLES)[0],
        "mean error": mean_error(model.errors, model.target, SAMPLES // 5, FORMULAS[key["formula"]]),
        "proved": model.error_bound,
        "CPU s": seconds,
        "steps": 0,
        "rate": "",
    }
    return [key | row]


def trained(key: Row) -> list[Row]:
    """A row for each seed."""
    text, low = key["formula"], FORMULAS[key["formula"]]
    model, _ = compiled(text)
    make, target = NETWORKS[key["model"]], model.target
    width = width_for(make, target, key["times our parameters"] * model.n_parameters)
    X = np.random.default_rng(2).uniform(low, 1, (HELD_OUT, N, target.d)).astype(np.float32)
    tried = [(0, rate) for rate in RATES]
    nets, _ = side_by_side.trained(make, width, target, tried, TUNING * seconds_allowed(), low)
    far = [float(np.nan_to_num(errors_of(net, target)(X).max(), nan=np.inf)) for net in nets]
    rate = RATES[int(np.argmin(far))]
    start, members = time.process_time(), [(seed, rate) for seed in range(SEEDS)]
    nets, steps = side_by_side.trained(make, width, target, members, seconds_allowed(), low)
    spent, rows = time.process_time() - start, []
    for seed, net in enumerate(nets):
        errors = errors_of(net, target)
        found = {
            "width": width,
            "parameters": parameters_of(net),
            "largest error": largest_error(errors, model.interface.box, SAMPLES)[0],
            "mean error": mean_error(errors, target, SAMPLES // 5, low),
            "proved": "no",
            "CPU s": spent / SEEDS,
            "steps": steps,
            "rate": rate,
        }
        rows.append(key | {"seed": seed} | found)
    return rows


def summary(rows: list[Row]) -> list[Row]:
    """A row for each formula, network and size: medians over seeds, and the best of them."""
    found, names = [], ("formula", "model", "times our parameters")
    for group in dict.fromkeys(tuple(row.get(name, "") for name in names) for row in rows):
        of = [row for row in rows if tuple(row.get(name, "") for name in names) == group]
        largest, mean = ([row[name] for row in of] for name in ("largest error", "mean error"))
        found.append(
            dict(zip(names, group, strict=True))
            | {
                "parameters": of[0]["parameters"],
                "seeds": len(of),
                "largest error, median": float(np.median(largest)),
                "of the best seed": min(largest),
                "mean error, median": float(np.median(mean)),
                "of the best seed, mean": min(mean),
                "proved": of[0]["proved"],
                **{name: of[0][name] for name in ("CPU s", "steps", "rate")},
            }
        )
    return found


def verdicts(rows: list[Row]) -> list[Row]:
    """For each size, of formulas on which all networks were trained: where ours is below every one of them."""
    found = []
    for times in MULTIPLES:
        of = {
            (text, name): [row for row in rows if _is_of(row, text, name, times)]
            for text in FORMULAS
            for name in NETWORKS
        }
        asked = [text for text in FORMULAS if all(of[text, name] for name in NETWORKS)]
        line: Row = {"times our parameters": times, "formulas": len(asked)}
        for error in ("largest error", "mean error"):
            mine = {row["formula"]: row[error] for row in rows if row["model"] == OURS}
            for which, chosen in (("median", np.median), ("best seed", np.min)):
                theirs = {
                    text: min(chosen([row[error] for row in of[text, name]]) for name in NETWORKS) for text in asked
                }
                line[f"{error}: ours below the {which} of all"] = sum(
                    bool(mine[text] < theirs[text]) for text in asked
                )
        found.append(line)
    return found


def _is_of(row: Row, text: str, name: str, times: int) -> bool:
    return (row["formula"], row["model"], row.get("times our parameters")) == (text, name, times)


def run() -> dict[str, list[Row]]:
    import torch  # noqa: F401  (before one_core, which sets its threads)

    kept, rows = continued.rows(), list[Row]()
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
    return {title: verdicts(rows), "Each; CPU s of one core are those of one seed": summary(rows)}
