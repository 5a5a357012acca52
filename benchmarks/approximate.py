"""Functions compiled to a tolerance: what was proved of each model, and what an attempt to break it found.

Every model is built and proved, then asked at random inputs and cell corners of the box where its bound holds (for
"quantise" that is all but the stated share on ramps), and the worst are improved by hill climbing. An error above a
proved bound ends the run with a status other than 0 and names the input.

ONELAYER_BENCH_SAMPLES sets how many inputs are asked; by default 1,000,000. ONELAYER_BENCH_TARGETS restricts the
zoo to some names, with commas between them.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from onelayer import HypothesisError, Model, approximate
from onelayer.compile.construction import CONSTRUCTIONS
from onelayer.measure.worst_error import largest_error

TARGETS = (
    "sort",
    "max",
    "median",
    "gap",
    "standardise",
    "softmax",
    "nearest",
    "interaction",
    "polynomial",
    "random",
    "moving_average",
    "reversal",
)
#: n, d, tolerance
SIZES = ((2, 1, 0.1), (3, 1, 0.1), (2, 2, 0.25))
#: target, n, d, tolerance
CONTRACT = (
    ("sort", 3, 1, 0.05),
    ("standardise", 3, 1, 0.05),
    ("softmax", 2, 1, 0.01),
    ("interaction", 2, 1, 0.01),
)
Row = dict[str, Any]


def samples() -> int:
    return int(os.environ.get("ONELAYER_BENCH_SAMPLES", "1000000"))


def targets() -> tuple[str, ...]:
    return tuple(os.environ.get("ONELAYER_BENCH_TARGETS", ",".join(TARGETS)).split(","))


def row(target: str, n: int, d: int, tolerance: float, construction: str) -> Row:
    """One model: what was promised, proved and found; what it took. A refusal is a row of its own."""
    found: Row = {"target": target, "n": n, "d": d, "tolerance": tolerance, "construction": construction}
    start, spent = time.perf_counter(), time.process_time()
    try:
        model = approximate(target, n=n, d=d, tolerance=tolerance, construction=construction)  # type: ignore[arg-type]
    except HypothesisError as refusal:
        return found | {"kept": f"refused: {refusal}"}
    built, cpu = time.perf_counter() - start, time.process_time() - spent
    start = time.perf_counter()
    measured, where = largest_error(model.errors, model.interface.box, samples())
    return found | {
        "proved bound": model.error_bound,
        "measured": measured,
        "measured / bound": measured / model.error_bound,
        "left out": model.interface.left_out,
        "parameters": model.n_parameters,
        "cells": cells(model),
        "build and proof s": built,
        "CPU s": cpu,
        "measuring s": time.perf_counter() - start,
        "kept": describe_standing(model, tolerance, measured, where.tolist()),
    }


def cells(model: Model) -> int:
    """Of the whole box; 0 for a construction without cells."""
    return int(model.ledger.get("levels", 0)) ** (model.target.n * model.target.d)


def describe_standing(model: Model, tolerance: float, measured: float, where: Any) -> str:
    if not model.proved:
        return "not proved"
    if measured > model.error_bound:
        return f"broken at {where}"
    return "yes" if model.error_bound <= tolerance else "bound above the tolerance"


def is_skipped(construction: str, components: int) -> bool:
    """What "published" stores is a part of what "quantise" does; proofs of "continuous" take minutes beyond two
    components."""
    return construction == "published" or (construction == "continuous" and components > 2)


def table(asked: list[tuple[str, int, int, float]]) -> list[Row]:
    rows = []
    for target, n, d, tolerance in asked:
        for construction in CONSTRUCTIONS:
            if is_skipped(construction, n * d):
                continue
            rows.append(row(target, n, d, tolerance, construction))
            print(rows[-1], flush=True)
    return rows


def run() -> dict[str, list[Row]]:
    zoo = [(target, n, d, tolerance) for n, d, tolerance in SIZES for target in targets()]
    title = f"({samples():,} samples, then hill climbing)"
    tables = {f"Tolerances of the contract {title}": table(list(CONTRACT)), f"The zoo {title}": table(zoo)}
    broken = [r for rows in tables.values() for r in rows if r["kept"].startswith("broken")]
    if broken:
        sys.exit("an error above a proved bound:\n" + "\n".join(map(str, broken)))
    return tables
