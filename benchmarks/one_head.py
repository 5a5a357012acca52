"""What one head computes, compiled as a formula, beside what it costs as a box of values.

    python -m benchmarks one_head

Seven targets within 0.05, by `approximate` as it is called by default: parameters, the proved bound, and what
samples and hill climbing found. Beside them what the plans of the constructions that store values by cells say of
the same target: how many parameters they would take, and whether this machine could hold them.
Then x - mean(y) and attention of 512 tokens within 1e-4 in float32: the bound in float32 for sums in any order, and
the one in real numbers.
"""

from __future__ import annotations

import time
from typing import Any

from onelayer import approximate
from onelayer.certificates.functions import bound_of
from onelayer.compile.asked import request_for
from onelayer.compile.construction import CONSTRUCTIONS
from onelayer.errors import OnelayerError
from onelayer.measure.worst_error import largest_error

Row = dict[str, Any]
ATTENTION = "sum(exp(3*x*y)*y)/sum(exp(3*x*y))"
#: Formula, n, d.
TARGETS = (
    ("mean(y)", 8, 1),
    ("x - mean(y)", 8, 1),
    (ATTENTION, 6, 1),
    ("sum((y - x)/(0.1 + (y - x)**2))", 3, 1),
    ("sum((y[0] - x[0])/(0.1 + (y[0] - x[0])**2)) + sum((y[1] - x[1])/(0.1 + (y[1] - x[1])**2))", 3, 2),
    ("mean(y**2) - mean(y)**2", 4, 1),
    ("sqrt(mean(y))", 2, 1),
)
TOLERANCE, CELLS, SAMPLES = 0.05, ("quantise", "positional"), 100_000
LONG, NEAR, FEWER = 512, 1e-4, 2_000


def compiled(text: str, n: int, d: int, tolerance: float, samples: int) -> Row:
    start = time.process_time()
    model = approximate(text, n=n, d=d, tolerance=tolerance)
    seconds = time.process_time() - start
    certificate = model.certificate
    assert certificate is not None
    row = {"target": text, "n": n, "d": d, "tolerance": tolerance, "construction": model.interface.construction}
    row |= {"parameters": model.n_parameters, "proved, float32": model.error_bound}
    row |= {"proved, real numbers": bound_of(certificate, "real")}
    return row | {"found": largest_error(model.errors, model.interface.box, samples)[0], "CPU s": seconds}


def by_cells(text: str, n: int, d: int) -> Row:
    """What plans say, without building."""
    found = {}
    for name in CELLS:
        try:
            plan = CONSTRUCTIONS[name].plan(request_for(text, n=n, d=d, tolerance=TOLERANCE))
            found[f"parameters by {name}"] = f"{plan.parameters:,.0f}{'' if plan.reachable else ', out of reach'}"
        except OnelayerError as refusal:
            found[f"parameters by {name}"] = f"refused: {refusal.found}"
    return found


def run() -> dict[str, list[Row]]:
    rows = []
    for target in TARGETS:
        rows.append(compiled(*target, TOLERANCE, SAMPLES) | by_cells(*target))
        print(rows[-1], flush=True)
    long = [compiled(text, LONG, 1, NEAR, FEWER) for text in ("x - mean(y)", ATTENTION)]
    return {
        f"Formulas, and the same as boxes of values ({SAMPLES:,} samples, then hill climbing)": rows,
        f"One head, {LONG} tokens ({FEWER:,} samples, then hill climbing)": long,
    }
