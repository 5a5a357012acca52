"""How compiled formulas grow as the tolerance shrinks, and, in float32 and nothing else, with the number of tokens.

    ONELAYER_BENCH_ROWS=rows.jsonl python -m benchmarks growth

The formulas are the thirty of `formulas`. Every size is that of a model whose tolerance was proved: at 8 tokens in
float64 for the tolerances, at 8 and 512 tokens in float32 for the other table. Some units and weights are there at
any tolerance (embedding, heads, first units): where models are small they hide the exponent, so sizes are described
as a + b/t^s, too, from 0.05 to 0.001 alone. A function of pairs of tokens is a sum of waves, of which a smaller
tolerance takes more, with two heads each: its size jumps with every wave. `python -m benchmarks growth:pairs` fits
sizes with as many heads, and keeps the other tables.

ONELAYER_BENCH_ROWS names a file by which a run may be continued, and no row of the large tables is begun after
ONELAYER_BENCH_SECONDS of CPU time.
"""

from __future__ import annotations

import os
import time
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks import continued
from benchmarks.formulas import FORMULAS, power, try_formula

Row = dict[str, Any]
SUMMARY, EACH = "Growth of parameters with 1/tolerance, 8 tokens, float64", "Each formula"
COARSE, FINE = (0.05, 0.001, 0.01, 0.02, 0.005, 0.002), (1e-4, 1e-5)
#: In float32: a tolerance, and numbers of tokens.
INSIST, TOKENS = 0.01, (8, 512)
SINGLE = f"In float32 and nothing else, within {INSIST}"
#: Exponents s that are tried for a size of a + b/t^s, and how near 1/2 they are to be.
EXPONENTS, NEAR = np.arange(0.2, 1.0, 0.005), 0.1
#: Functions of pairs of tokens, and tolerances between two numbers of heads.
PAIRS = {
    "mean(exp(-(x - y)**2))": (0.05, 0.03, 0.02, 0.015, 0.01, 0.005, 0.003, 0.002, 0.0015, 0.001),
    "mean((y - x)/(0.1 + (y - x)**2))": (0.02, 0.015, 0.01, 0.0075, 0.005),
}
EXPONENT = {"exponent, 0.05 to 0.001": COARSE, "exponent, 0.001 and less": (0.001, *FINE)}


def growth(rows: list[Row]) -> list[Row]:
    """Of formulas whose size depends on the tolerance."""
    found = []
    for text, *_ in FORMULAS:
        mine = {(8, row["tolerance"]): row for row in rows if row["formula"] == text and row.get("proved")}
        if len({row["parameters"] for row in mine.values()}) < 2:
            continue
        known = sorted((t for _, t in mine), reverse=True)
        line: Row = {"formula": text} | {f"parameters, {t:g}": "" for t in sorted((*COARSE, *FINE), reverse=True)}
        line |= {f"parameters, {t:g}": mine[8, t]["parameters"] for t in known}
        for name, tolerances in EXPONENT.items():
            line[name] = power(mine, "parameters", [(8, t) for t in tolerances], 1)
        coarse = [t for t in known if t in COARSE]
        found.append(line | less_a_constant(coarse, [mine[8, t]["parameters"] for t in coarse]))
    return found


def less_a_constant(tolerances: list[float], parameters: list[int]) -> Row:
    """Sizes as a + b/t^s: the s with the least squares of relative errors, and the largest of these."""
    t, size = np.array(tolerances), np.array(parameters, float)
    if len(t) < 4:  # three numbers always fit three sizes
        return {"a": "", "b": "", "s": "", "a + b/t^s off by": ""}
    best: tuple[float, Row] = np.inf, {}
    for s in EXPONENTS:
        columns = np.stack([np.ones(len(t)), t**-s], axis=1) / size[:, None]
        (a, b), *_ = np.linalg.lstsq(columns, np.ones(len(t)), rcond=None)
        off = np.abs(columns @ (a, b) - 1)
        if (squares := float(off @ off)) < best[0]:
            best = squares, {"a": float(a), "b": float(b), "s": float(s), "a + b/t^s off by": float(off.max())}
    return best[1]


def summary(lines: list[Row]) -> list[Row]:
    """How many exponents are near 1/2; those below it are of models that grow by heads, not by units."""
    found = []
    for name in (*EXPONENT, "s"):
        values = [line[name] for line in lines if line[name] != ""]
        near = sum(bool(abs(value - 0.5) <= NEAR) for value in values)
        row: Row = {"exponent": "s of a + b/t^s, 0.05 to 0.001" if name == "s" else name, "formulas": len(values)}
        row |= {f"within 1/2 +- {NEAR}": near, "below": sum(bool(value < 0.5 - NEAR) for value in values)}
        if values:
            row |= {"smallest": min(values), "median": float(np.median(values)), "largest": max(values)}
        found.append(row)
    return found


def pairs() -> list[Row]:
    """Of functions of pairs of tokens: sizes with as many heads as a + b/t^s."""
    found = []
    for text, tolerances in PAIRS.items():
        ((_, d, low, high),) = (formula for formula in FORMULAS if formula[0] == text)
        rows = [try_formula(text, d, low, high, 8, t, ("float64",), None) for t in tolerances]
        for heads in dict.fromkeys(row["heads"] for row in rows):
            mine = [row for row in rows if row["heads"] == heads and row["proved"]]
            sizes = {name: [row[name] for row in mine] for name in ("tolerance", "parameters")}
            line: Row = {"formula": text, "heads": heads, "tolerances": " ".join(map(str, sizes["tolerance"]))}
            line |= {"parameters": " ".join(map(str, sizes["parameters"]))}
            found.append(line | less_a_constant(sizes["tolerance"], sizes["parameters"]))
            print(found[-1], flush=True)
    return found


def in_float32(rows: list[Row]) -> list[Row]:
    """What whoever insists on float32 gets: sizes that grow with the number of tokens, or a refusal."""
    found = []
    for text, *_ in FORMULAS:
        of = {row["n"]: row for row in rows if row["formula"] == text}
        if set(of) == set(TOKENS):
            sizes = {f"parameters, n = {n}": row["parameters"] if row["proved"] else "" for n, row in of.items()}
            proved = all(row["proved"] for row in of.values())
            times = of[TOKENS[1]]["parameters"] / of[TOKENS[0]]["parameters"] if proved else "not proved"
            found.append({"formula": text} | sizes | {"larger, times": times})
    return found


def run() -> dict[str, list[Row]]:
    kept, seconds = continued.rows(), float(os.environ.get("ONELAYER_BENCH_SECONDS", "inf"))

    def measured(formula: tuple[str, int, float, float], n: int, tolerance: float, dtype: str) -> list[Row]:
        """As it is in the file, or anew, if there is time."""
        text, d, low, high = formula
        key = {"formula": text, "n": n, "tolerance": tolerance, "in": dtype}
        known = kept.get(key)
        if known is None and time.process_time() > seconds:
            return []
        row = known or kept.add(key | try_formula(text, d, low, high, n, tolerance, (dtype,), None))
        print(row, flush=True)
        return [row]

    double = [measured(each, 8, t, "float64") for t, each in product(COARSE, FORMULAS)]
    single = [measured(each, n, INSIST, "float32") for n, each in product(TOKENS, FORMULAS)]
    double += [measured(each, 8, t, "float64") for t, each in product(FINE, FORMULAS)]
    lines = growth([row for found in double for row in found])
    asked = {"rows asked for": len(double) + len(single), "measured": sum(map(len, (*double, *single)))}
    return {
        SUMMARY: [asked | line for line in summary(lines)],
        EACH: lines,
        SINGLE: in_float32([row for found in single for row in found]),
        "pairs": pairs(),
    }


def measured_with_all(title: str) -> list[Row]:
    return run()[title]


#: By which one of them is measured again.
TABLES = {title: partial(measured_with_all, title) for title in (SUMMARY, EACH, SINGLE)} | {"pairs": pairs}
