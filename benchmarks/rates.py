"""How the error of each construction falls with the number of cells, against the rates of theory.

For smooth targets of n d components a staircase of K cells has error of order K^(-1 / (n d)), piecewise linear
interpolation K^(-2 / (n d)). Models of given fineness are built in float64, so that rounding hides nothing; lines
are fitted to the logarithms of the largest error found and of the bound that the checker proves. Where that is a
matter of patience (simplex by simplex), it is asked for one half as large again as the error found.

ONELAYER_BENCH_SAMPLES sets how many inputs are asked of each model; by default 200,000.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.certificates.functions import bound_of, prove
from onelayer.compile.construction import CONSTRUCTIONS, Built, Request
from onelayer.interfaces import Answers
from onelayer.ledger import Ledger
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model
from onelayer.problems.targets import Target, resolve

#: The error is of order levels^-rate.
THEORY = {"quantise": 1, "positional": 2}
#: (target, numbers of tokens); every formula is smooth, so that both rates are the right ones.
SMOOTH = (
    ("x * mean(y)", (1, 2, 3)),
    ("exp(x) * mean(sin(2 * y))", (1, 2, 3)),
    ("softmax", (2, 3)),
    ("interaction", (2, 3)),
)
#: Cells along a component, by the number of tokens.
LEVELS = {1: (8, 16, 32, 64, 128), 2: (6, 9, 13, 19, 28), 3: (4, 5, 7, 9, 12)}
ALLOWED = 0.15
#: Share of the error found by which a bound may exceed it, and the rounding of stored values.
SLACK, STEP = 1.5, 2.0**-16
DOUBLE = np.dtype(np.float64)
Row = dict[str, Any]


def samples() -> int:
    return int(os.environ.get("ONELAYER_BENCH_SAMPLES", "200000"))


@dataclass(frozen=True)
class Point:
    """A model of given fineness."""

    levels: int
    cells: int
    measured: float
    proved: float
    seconds: float  # to build and prove


def point(target: str, n: int, construction: str, levels: int, asked: int) -> Point:
    found = resolve(target, n=n, d=1)
    start = time.perf_counter()
    built = CONSTRUCTIONS[construction].build(request(found, STEP), levels)
    seconds = time.perf_counter() - start
    measured = largest_error(errors_of(built, found), built.box, asked)[0]
    start = time.perf_counter()
    proved = smallest_bound(built, SLACK * measured)
    return Point(levels, levels**n, measured, proved, seconds + time.perf_counter() - start)


def request(target: Target, tolerance: float) -> Request:
    return Request(target, ((0.0, 1.0),) * target.d, tolerance, DOUBLE, 0, lambda _: None)


def errors_of(built: Built, target: Target) -> Any:
    model = Model(built.transformer, Answers(form=built.form), Ledger(built.constants))

    def errors(X: Any) -> Any:
        away = model.predict(X).astype(np.float64) - target.evaluate(np.asarray(X, np.float64))
        return np.abs(away).reshape(len(X), -1).max(axis=1)

    return errors


def smallest_bound(built: Built, wanted: float) -> float:
    """What the checker proves, asked for ``wanted`` first and for twice as much until it agrees."""
    for _ in range(20):
        certificate = prove(built.transformer, built.tensors, built.entries, wanted, lambda *_: None)
        if certificate is not None:
            return bound_of(certificate, "float64")
        wanted *= 2
    return float("nan")


def slope(points: list[Point], which: str) -> float:
    """Of log error against log cells, by least squares."""
    x, y = (np.log([getattr(p, name) for p in points]) for name in ("cells", which))
    return float(np.polyfit(x, y, 1)[0])


def fit_rate(target: str, n: int, construction: str, points: list[Point]) -> Row:
    theory = -THEORY[construction] / n
    slopes = {which: slope(points, which) for which in ("measured", "proved")}
    away = {which: value / theory - 1 for which, value in slopes.items()}
    return {
        "target": target,
        "n": n,
        "construction": construction,
        "slope in theory": theory,
        "slope measured": slopes["measured"],
        "deviation %": 100 * away["measured"],
        "slope proved": slopes["proved"],
        "deviation of the proved %": 100 * away["proved"],
        f"within {ALLOWED:.0%}": "yes" if max(map(abs, away.values())) <= ALLOWED else "no",
    }


def run() -> dict[str, list[Row]]:
    fits, every = [], []
    for target, lengths in SMOOTH:
        for n in lengths:
            for construction in THEORY:
                points = [point(target, n, construction, levels, samples()) for levels in LEVELS[n]]
                fits.append(fit_rate(target, n, construction, points))
                print(fits[-1], flush=True)
                named = {"target": target, "n": n, "construction": construction}
                every += [named | vars(p) for p in points]
    return {"Rates: log error against log cells (d = 1, float64)": fits, "Every model of the rates": every}
