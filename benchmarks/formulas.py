"""Thirty formulas that nobody tuned for, compiled line by line: how many are proved, how large, how long.

    python -m benchmarks.formulas [--tokens 2 8 64 512] [--tolerances 0.05 0.01 0.001] [--only TEXT]

The formulas were written before the compiler was finished. Four more, which are beyond one aggregation or have a
pole, must be refused with a reason.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from onelayer.compile import formula
from onelayer.compile.asked import request_for
from onelayer.compile.making import repaired
from onelayer.errors import OnelayerError
from onelayer.network.forward import forward

RESULTS = Path(__file__).parent / "results" / "formulas.json"
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


def tried(text: str, d: int, low: float, high: float, n: int, tolerance: float) -> dict[str, Any]:
    """What came of one formula: in float32, or in float64 where rounding in float32 may cost too much."""
    row: dict[str, Any] = {"formula": text, "n": n, "d": d, "tolerance": tolerance}
    start = time.process_time()
    for dtype in ("float32", "float64"):
        try:
            asked = request_for(text, n=n, d=d, low=low, high=high, tolerance=tolerance, dtype=dtype)
            made = repaired(asked, formula.plan(asked))
        except OnelayerError as refusal:
            return row | {"refused": refusal.found}
        if made.kept:
            break
    found = {"dtype": dtype, "proved": made.kept, "bound": made.bound if made.kept else None}
    X = made.built.box.draw(np.random.default_rng(0), max(16, 20_000 // n**2))
    wanted = asked.target.evaluate(X.astype(np.float64))
    wanted = wanted if asked.target.per == "token" else wanted[:, None]
    error = np.abs(forward(made.built.transformer, X).astype(np.float64) - wanted).max()
    cpu = round(time.process_time() - start, 2)
    return row | found | {"found": float(error), "parameters": made.built.transformer.n_parameters, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2, 8, 64, 512])
    parser.add_argument("--tolerances", type=float, nargs="+", default=[0.05, 0.01, 0.001])
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    rows = []
    for written in (*FORMULAS, *REFUSED):
        for n in asked.tokens:
            for tolerance in asked.tolerances:
                if asked.only in written[0]:
                    rows.append(tried(*written, n, tolerance))
                    print(json.dumps(rows[-1]), flush=True)
    if not asked.only:
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
