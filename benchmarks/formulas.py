"""Thirty formulas that nobody tuned for, compiled line by line: how many are proved, how large, how long.

    python -m benchmarks formulas

The formulas were written before the compiler was finished. Four more, which are beyond one aggregation or have a
pole, must be refused with a reason. ONELAYER_BENCH_ROWS names a file of JSON lines: rows that are in it are not
measured again, and new ones are added, so that a run may be continued. ONELAYER_BENCH_TARGETS is a part of the text
of the formulas that are looked at, ONELAYER_BENCH_TOKENS lists numbers of tokens with commas between them, and no
row is begun after ONELAYER_BENCH_SECONDS of CPU time: what is left is counted as not measured.
"""

from __future__ import annotations

import os
import time
from itertools import product
from typing import Any

import numpy as np

from benchmarks import continued
from onelayer.compile import formula
from onelayer.compile.asked import request_for
from onelayer.compile.making import build_and_refine
from onelayer.errors import OnelayerError
from onelayer.network.forward import forward

TOKENS, TOLERANCES = (8, 2, 64, 512), (0.05, 0.01, 0.001)
Row = dict[str, Any]
#: (formula, width of a token, low, high)
FORMULAS: tuple[tuple[str, int, float, float], ...] = (
    ("x - mean(y)", 1, 0, 1),
    ("mean(y**2) - mean(y)**2", 1, -1, 1),
    ("mean((y - mean(y))**2)", 1, 0, 1),
    ("sqrt(0.01 + mean((y - mean(y))**2))", 1, 0, 1),
    ("(x - mean(y))/sqrt(0.1 + mean((y - mean(y))**2))", 1, 0, 1),
    ("mean((y[0] - mean(y[0]))*(y[1] - mean(y[1])))", 2, -1, 1),
    ("sum(exp(3*x*y)*y)/sum(exp(3*x*y))", 1, -1, 1),
    ("sum(exp(x[0]*y[0] + x[1]*y[1])*y[1])/sum(exp(x[0]*y[0] + x[1]*y[1]))", 2, -1, 1),
    ("sum(exp(-4*(x - y)**2)*y)/sum(exp(-4*(x - y)**2))", 1, 0, 1),
    ("log(mean(exp(2*y)))", 1, -1, 1),
    ("exp(x)/mean(exp(y))", 1, 0, 1),
    ("max(y) - min(y)", 1, 0, 1),
    ("relu(x - mean(y)) + relu(mean(y) - 0.5)", 1, 0, 1),
    ("x*exp(-mean((x - y)**2))", 1, 0, 1),
    ("mean((x[0] - y[0])**2 + (x[1] - y[1])**2)", 2, 0, 1),
    ("sqrt(0.1 + mean((x[0] - y[0])**2 + (x[1] - y[1])**2 + (x[2] - y[2])**2))", 3, 0, 1),
    ("tanh(2*x - 3*mean(sin(2*y)))", 1, -1, 1),
    ("sin(3*x)*mean(cos(2*y)) + cos(3*x)*mean(sin(2*y))", 1, 0, 1),
    ("mean((x - y)**3)", 1, 0, 1),
    ("mean((x - y)**4)/(0.5 + mean((x - y)**2))", 1, 0, 1),
    ("x[0]*mean(y[1]) - x[1]*mean(y[0])", 2, -1, 1),
    ("(x - mean(y))**3 + 0.2*x", 1, 0, 1),
    ("max(x, mean(y)) - min(x, mean(y))", 1, 0, 1),
    ("mean(relu(y - 0.3)) - relu(mean(y) - 0.3)", 1, 0, 1),
    ("exp(mean(log(0.1 + y)))", 1, 0, 1),
    ("1/(0.2 + mean(1/(0.2 + y)))", 1, 0, 1),
    ("hypot(mean(cos(3*y)), mean(sin(3*y)))", 1, 0, 1),
    ("mean(sin(2*(x - y)))", 1, -1, 1),
    ("mean(exp(-(x - y)**2))", 1, 0, 1),
    ("mean((y - x)/(0.1 + (y - x)**2))", 1, 0, 1),
)
#: What one aggregation cannot do, and what is not continuous.
REFUSED: tuple[tuple[str, int, float, float], ...] = (
    ("mean(abs(y - mean(y)))", 1, 0, 1),
    ("max(y - mean(y)**2*y)", 1, 0, 1),
    ("mean(relu(x - y))*max(x*y)", 1, 0, 1),
    ("1/(mean(y) - 0.5)", 1, 0, 1),
)


DTYPES = ("float32", "float64")


def try_formula(
    text: str,
    d: int,
    low: float,
    high: float,
    n: int,
    tolerance: float,
    dtypes: tuple[str, ...] = DTYPES,
    tries: int | None = 1,
) -> Row:
    """What came of one formula: in float32, tried so often, or in float64 where rounding in float32, of which the
    bound grows with the number of tokens, may cost more than blocks leave."""
    row: Row = {"formula": text, "n": n, "d": d, "tolerance": tolerance}
    start = time.process_time()
    for dtype in dtypes:
        try:
            asked = request_for(text, n=n, d=d, low=low, high=high, tolerance=tolerance, dtype=dtype)
            made = build_and_refine(asked, formula.plan(asked), tries if dtype == "float32" else None)
        except OnelayerError as refusal:
            return row | {"refused": refusal.found, "cpu": round(time.process_time() - start, 2)}
        if made.kept:
            break
    found = {"dtype": dtype, "proved": made.kept, "bound": made.bound if made.kept else None}
    X = made.built.box.draw(np.random.default_rng(0), max(16, 20_000 // n**2))
    wanted = asked.target.evaluate(X.astype(np.float64))
    wanted = wanted if asked.target.per == "token" else wanted[:, None]
    error = np.abs(forward(made.built.transformer, X).astype(np.float64) - wanted).max()
    cpu = round(time.process_time() - start, 2)
    size = {"parameters": made.built.transformer.n_parameters, "heads": made.built.transformer.attention.heads}
    return row | found | {"found": float(error)} | size | {"cpu": cpu}


def differing(proved: list[Row]) -> list[tuple[Row, bool]]:
    """Formulas and tolerances at which sizes differ with the number of tokens, which may only be since rounding in
    float32 leaves fewer ways to average; and whether they differ in float64, too."""
    found = []
    for text, tolerance in dict.fromkeys((row["formula"], row["tolerance"]) for row in proved):
        mine = [row for row in proved if (row["formula"], row["tolerance"]) == (text, tolerance)]
        if len({row["parameters"] for row in mine}) > 1:
            d, low, high = next(each[1:] for each in FORMULAS if each[0] == text)
            box: dict[str, Any] = {"d": d, "low": low, "high": high, "tolerance": tolerance, "dtype": "float64"}
            sizes = {formula.plan(request_for(text, n=n, **box)).parameters for n in (2, 8, 64, 512)}
            found.append((mine[0], len(sizes) > 1))
    return found


def tokens() -> list[int]:
    return [int(n) for n in os.environ.get("ONELAYER_BENCH_TOKENS", ",".join(map(str, TOKENS))).split(",")]


def sizes(rows: list[Row]) -> list[Row]:
    """A row for each formula: parameters and CPU seconds at 8 tokens, and how parameters grow with their number."""
    found = []
    for text in dict.fromkeys(row["formula"] for row in rows):
        mine = {(row["n"], row["tolerance"]): row for row in rows if row["formula"] == text}
        proved = {at: row for at, row in mine.items() if row.get("proved")}
        known = [str(row["refused"]) for row in mine.values() if "refused" in row]
        line: Row = {"formula": text, "proved": f"{len(proved)} of {len(mine)}"}
        for tolerance in TOLERANCES:
            line[f"parameters, {tolerance}"] = proved.get((8, tolerance), {}).get("parameters", "")
        line["CPU s, 0.01"] = proved.get((8, 0.01), {}).get("cpu", "")
        line["growth in n"] = power(proved, "parameters", [(n, 0.01) for n in tokens()], 0)
        found.append(line | {"refused": known[0] if known else ""})
    return found


def power(proved: dict[Any, Row], what: str, asked: list[tuple[int, float]], of: int) -> float | str:
    """The exponent with which a figure grows, in n or in 1/tolerance: a line through logarithms."""
    at = [key for key in asked if key in proved]
    if len(at) < 2:
        return ""
    x = [np.log(key[0]) if of == 0 else -np.log(key[1]) for key in at]
    return float(np.polyfit(x, [np.log(proved[key][what]) for key in at], 1)[0])


def run() -> dict[str, list[Row]]:
    part, kept, rows, left = os.environ.get("ONELAYER_BENCH_TARGETS", ""), continued.rows(), list[Row](), 0
    seconds = float(os.environ.get("ONELAYER_BENCH_SECONDS", "inf"))
    for tolerance, n in product(TOLERANCES, tokens()):
        for text, d, low, high in (each for each in (*FORMULAS, *REFUSED) if part in each[0]):
            known = kept.get({"formula": text, "n": n, "d": d, "tolerance": tolerance})
            if known is None and time.process_time() > seconds:
                left += 1
                continue
            rows.append(known or kept.add(try_formula(text, d, low, high, n, tolerance)))
            print(rows[-1], flush=True)
    asked = [row for row in rows if row["formula"] in {text for text, *_ in FORMULAS}]
    proved = [row for row in asked if row.get("proved")]
    small = [row for row in proved if row["tolerance"] == 0.01 and row["n"] == 8]
    ratios = [row["bound"] / row["found"] for row in proved if row["bound"] > 1e-4]
    differ = differing(proved)
    summary = {
        "formulas x tokens x tolerances": len(asked),
        "not measured, refusals included": left,
        "proved": len(proved),
        "at n = 8 and 0.01: proved": len(small),
        "parameters, median": float(np.median([row["parameters"] for row in small])),
        "over 5,000 parameters": sum(row["parameters"] > 5000 for row in small),
        "CPU s, median": float(np.median([row["cpu"] for row in small])),
        "CPU s, largest of all": max(row["cpu"] for row in asked),
        "parameters differ with the number of tokens": len(differ),
        "of these, in float64": sum(wide for _, wide in differ),
        "proved bound / error found, median": float(np.median(ratios)),
        "found above proved": sum(row["found"] > row["bound"] for row in proved),
    }
    lines = [{"figure": name, "value": value} for name, value in summary.items()]
    return {"Formulas": lines, "Sizes at 8 tokens": sizes(rows), "All": rows}
