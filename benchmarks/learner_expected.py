"""What was expected of the learners, beside what the other tables hold: each figure with its tolerance.

Expected are figures of the papers, or of an earlier computation by other code of ours; nothing is measured here.
The exact optimum of ten loops of descent is not the expected one, which is that of drawn tasks: the error has a
heavy tail, so that the best step for some hundred tasks is longer than the best one for all, and its error smaller,
by more the more loops there are. The exact values are those of Wishart moments (`learner_optima.py`); 400 tasks
drawn again give the expected figures within their spread, and more tasks come nearer to the exact ones (`tails`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "results" / "learners.json"
Rows = list[dict[str, Any]]
Read = Callable[[str], Rows]
Figure = tuple[str, str, float, Any, Any]  # paper, what, expected, ours as it is recorded, seeds


def middle(value: Any) -> float:
    """Of a mean with its spread the mean."""
    return float(value.split(" +- ")[0]) if isinstance(value, str) else float(value)


def row(figure: Figure, allowed: str, met: bool) -> dict[str, Any]:
    paper, what, expected, ours, seeds = figure
    return {"paper": paper, "what": what, "expected": expected, "allowed": allowed} | {
        "ours": ours,
        "seeds": seeds,
        "met": "yes" if met else "no",
    }


def near(figure: Figure, off: float) -> dict[str, Any]:
    return row(figure, f"+- {off:g}", abs(middle(figure[3]) - figure[2]) <= off)


def share(figure: Figure, printed: str) -> dict[str, Any]:
    """Within 2 %, and half a unit of the last digit that was printed."""
    off = 0.02 * figure[2] + 0.5 * 10.0 ** int(Decimal(printed).as_tuple().exponent)
    return row(figure, "within 2 % of its digits", abs(middle(figure[3]) - figure[2]) <= off)


def most(figure: Figure) -> dict[str, Any]:
    return row(figure, "at most", middle(figure[3]) <= figure[2])


def mesa(read: Read) -> Iterator[dict[str, Any]]:
    expected = {0.01: (2.92, 0.421, 5.02), 0.1: (3.72, 0.540, 6.35)}
    spreads = {0.01: (0.11, 0.008, 0.09), 0.1: (0.10, 0.008, 0.09)}
    for found, noise in zip(read("dynamics"), expected, strict=True):
        for name, value, off in zip(("gd", "mesa", "zero"), expected[noise], spreads[noise], strict=True):
            yield near(
                ("2309.05858", f"dynamics, noise {noise:g}, {name}", value, found[name], found["seeds"]), off
            )
    for found in read("growth"):
        yield most(("2309.05858", f"growth with the length, {found['learner']}", 1.1, found["exponent"], ""))


LOOPED = {
    20: {1: (".645", "3.55"), 2: (".628", "2.10"), 5: (".581", ".856"), 10: (".539", ".347")},
    100: {1: (".901", ".99"), 2: (".894", ".196"), 5: (".877", "4.3e-3"), 10: (".854", "2.7e-5")},
}


def looped(read: Read) -> Iterator[dict[str, Any]]:
    for found in read("looped"):
        n, loops = found["n"], found["loops"]
        for name, what, printed in zip(("best a", "error"), ("best step", "loss"), LOOPED[n][loops], strict=True):
            where, value = f"n = {n}, loops {loops}, {what}", float(printed)
            yield share(("2410.08292", f"{where}, exact", value, found[f"{name}, exact"], ""), printed)
            drawn = found[f"{name}, drawn"]
            off = 2 * float(drawn.split(" +- ")[1]) + 0.02 * value
            figure = "2410.08292", f"{where}, drawn", value, drawn, found["seeds"]
            yield row(figure, "within 2 spreads and 2 %", abs(middle(drawn) - value) <= off)


def polynomial(read: Read) -> Iterator[dict[str, Any]]:
    for found in read("fitted"):
        where = f"d = {found['d']}, {found['heads']} heads"
        left, off = found["largest relative mean square left"], found["largest relative error at length 40"]
        yield most(("2410.10101", f"{where}, training error", 1e-26, left, found["seeds"]))
        yield most(("2410.10101", f"{where}, relative error at length 40", 2e-14, off, found["seeds"]))
    expected = {0.0: (2.5, 0.1), 0.5: (1.2, 0.05), 0.95: (0.055, 0.01), 1.0: (0.0, 1e-9)}
    for found in read("identified"):
        value, off = expected[found["unitary"]]
        what = f"least eigenvalue, {100 * found['unitary']:g} % unitary"
        yield near(("2410.10101", what, value, found["over seeds"], found["seeds"]), off)


def rates(read: Read) -> Iterator[dict[str, Any]]:
    expected = {0.75: (-0.42, -0.39), 1.0: (-0.88, -0.64), 1.5: (-2.01, -1.14)}
    for found in (each for each in read("ranks") if each["n"] == 16):
        for name, value in zip(("mean squares", "mean errors"), expected[found["alpha"]], strict=True):
            what = f"slope of {name}, alpha {found['alpha']:g}"
            yield near(("2305.18475", what, value, found[f"slope of {name}"], found["seeds"]), 0.05)
    for found in read("kernels"):
        seen = max(found["largest_drawn"], found["largest_climbed"])
        what = f"{found['kernel']} at rank 16, of {found['answers']:,} answers, against the proved bound"
        yield most(("2305.18475", what, found["proved"], seen, ""))


def recurrences(read: Read) -> Iterator[dict[str, Any]]:
    default, page, _, _, single = read("recurrences")
    for what, expected, name, found in (
        ("largest error in float64, usual ridge", 5e-11, "largest of all", default),
        ("median error in float64, ridge 1e-12", 3e-13, "median", page),
        ("median error in float32, ridge 1e-6", 3e-7, "median", single),
        ("largest error in float32, ridge 1e-6, median over seeds", 2e-4, "largest, median over seeds", single),
    ):
        yield most(("2410.17438", what, expected, found[name], found["seeds"]))
    step = default["one gradient step, median"]
    yield near(("2410.17438", "one gradient step, median error", 0.105, step, default["seeds"]), 0.005)


def expected() -> Rows:
    tables = json.loads(RECORD.read_text())["tables"]
    parts = (mesa, looped, polynomial, rates, recurrences)
    return [found for part in parts for found in part(tables.__getitem__)]


TABLES = {"expected": expected}
