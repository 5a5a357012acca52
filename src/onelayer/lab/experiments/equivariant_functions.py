"""Continuous functions of sets: how large a model must be for an error, and how their complexity makes it grow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from onelayer.compile.approximate import approximate
from onelayer.errors import HypothesisError
from onelayer.lab.endings import still_learning
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import exponent, factors, geometric, interval
from onelayer.problems.targets import resolve

QUESTION = (
    "Does the error of constructed models fall with their size as fast as theory says, and what do trained ones do?"
)
HYPOTHESES = (
    "Cells of side 1/D cost about D^(nd) answers and leave an error of order 1/D: error ~ cells^(-1/(nd)) for "
    "quantised tokens.",
    "Interpolation between the corners of cells leaves an error of order 1/D^2 for smooth functions: "
    "error ~ cells^(-2/(nd)).",
    "A Chebyshev polynomial of degree K has first derivatives of order K^2 and second ones of order K^4: both ask "
    "for levels in proportion to K^2.",
    "A trained layer has the smaller error at few parameters; it stops gaining where training, not size, is short.",
)
EARLIER = Earlier(
    "the same of constructed models",
    "Of trained ones, errors after a fixed number of steps, at the better of three rates.",
    "twins are trained until their loss stops falling, at the best of five rates and two optimisers; what was said "
    "of them before was about training cut short. Constructions and their powers have not changed.",
)
EXTRAS = ("torch",)
#: Parameters of trained models, whose error is not asked for but found.
SIZES = (500, 2000, 8000)
#: How far a measured exponent may be from the theory's to agree with it.
WITHIN = 0.1
#: The exponent of the error against cells, times n d.
THEORY = {"quantise": -1.0, "positional": -2.0}
#: Errors asked for, by family of targets: each is moved by up to a fourth root of 2 from seed to seed.
#: Where models grow slowly, smaller errors can be asked for.
SHARES = {"quantise": 1.0, "positional": 0.25}
TOLERANCES = {"polynomial": (0.4, 0.2, 0.1), "random": (0.08, 0.04, 0.02)}
FINER = {"polynomial": (0.4, 0.2, 0.1, 0.05, 0.025), "random": (0.08, 0.04, 0.02, 0.01, 0.005)}


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    terms = (
        {"polynomial": (2, 3, 4), "random": (2,)} if quick else {"polynomial": (2, 3, 4, 6), "random": (1, 2, 4, 8)}
    )
    found: list[Case] = []
    for n in (2, 3):
        for family, counts in terms.items():
            for K in counts if n == 2 or not quick else counts[:1]:
                fewer = n > 2 or (quick and K > 3)
                tolerances = (TOLERANCES if quick else FINER)[family][: -1 if fewer else None]
                one = {"target": f"{family}:{K}", "family": family, "K": K, "n": n}
                built = [(how, asked * share) for how, share in SHARES.items() for asked in tolerances]
                found += [{"how": how, **one, "asked": asked, "size": None, "steps": 0} for how, asked in built]
                steps = 600 if quick else 6000
                found += [{"how": "trained", **one, "asked": None, "size": size, "steps": steps} for size in SIZES]
    return found


def run(case: Case, seed: int) -> list[Row]:
    return [HOW[case["how"]](case, seed)]


def _construct_row(case: Case, seed: int) -> Row:
    """A model with a proved bound, or a refusal."""
    moved = float(2 ** np.random.default_rng([seed, case["K"], case["n"]]).uniform(-0.25, 0.25))
    tolerance = case["asked"] * moved
    row: Row = {"tolerance": tolerance, "refused": ""}
    try:
        model = approximate(case["target"], n=case["n"], tolerance=tolerance, construction=case["how"], seed=seed)
    except HypothesisError as error:
        return row | {
            "refused": error.statement,
            "parameters": None,
            "bound": None,
            "measured": None,
            "cells": None,
            "levels": None,
        }
    levels = int(model.ledger.number("levels"))
    return row | {
        "parameters": model.n_parameters,
        "bound": model.error_bound if model.proved else None,
        "measured": model.measured_error,
        "cells": levels ** case["n"],
        "levels": levels,
    }


def _train_row(case: Case, seed: int) -> Row:
    from onelayer.lab.functions import fit_transformer

    target = resolve(case["target"], n=case["n"], d=1, low=0.0, high=1.0)
    twin = fit_transformer(target, case["size"], 1, case["steps"], seed)
    row: Row = {"tolerance": None, "refused": "", "parameters": twin.parameters, "bound": None}
    return row | {"measured": twin.error, "cells": None, "levels": None} | twin.end


#: How a model comes about: (case, seed) -> a row with parameters, bound (None if not proved), measured.
HOW: dict[str, Callable[[Case, int], Row]] = {
    "quantise": _construct_row,
    "positional": _construct_row,
    "trained": _train_row,
}


def plot(rows: list[Row]) -> Any:
    made, panels = figure(columns=2, width=10, height=5)
    targets = sorted({row["target"] for row in rows})
    marks = dict(zip(HOW, "os^", strict=True))
    for axes, n in zip(panels, (2, 3), strict=True):
        for how, target in product(HOW, targets):
            some = _built_rows(rows, how=how, target=target, n=n)
            if not some:
                continue
            style: dict[str, Any] = {"color": f"C{targets.index(target)}", "linewidth": 1}
            if how == "trained":
                means = factors(some, "size", "measured")
                axes.plot(
                    list(means), [f.mean for f in means.values()], marker="^", markersize=5, linestyle="--", **style
                )
                continue
            some.sort(key=lambda row: int(row["parameters"]))
            x = [row["parameters"] for row in some]
            axes.plot(x, [row["measured"] for row in some], marker=marks[how], markersize=4, **style)
            bounds = [(row["parameters"], row["bound"]) for row in some if row["bound"] is not None]
            if bounds:
                axes.plot(*zip(*bounds, strict=True), linestyle=":", **style)
        title = f"n = {n}; dotted: proved; trained: mean over seeds"
        axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel="sup error", title=title)
    for i, target in enumerate(targets):
        panels[0].plot([], [], color=f"C{i}", label=target)
    for how, mark in marks.items():
        panels[0].plot([], [], color="grey", marker=mark, linestyle="--" if how == "trained" else "-", label=how)
    made.legend(loc="outside lower center", ncols=len(targets) + len(marks), fontsize="small")
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, agree = [], []
    for how, rate in THEORY.items():
        for n in sorted({row["n"] for row in _built_rows(rows, how=how)}):
            slopes, sizes = _slopes(rows, how, n, "cells"), _slopes(rows, how, n, "parameters")
            if not slopes:
                continue
            found, wanted = interval(slopes), rate / n
            agree.append(abs(found.mean - wanted) <= WITHIN * abs(wanted))
            findings.append(
                f"{how}, n = {n}: error ~ cells^({found}), theory {wanted:.3g} ({len(slopes)} targets); against "
                f"parameters the power is {interval(sizes)}."
            )
        some = [row for row in _built_rows(rows, how=how) if row["bound"] is not None]
        if some:
            broken = sum(row["measured"] > row["bound"] for row in some)
            findings.append(
                f"{how}: the proved bound is {geometric(row['bound'] / row['measured'] for row in some)} times the "
                f"error measured by trying to break it; broken {broken} times of {len(some)}."
            )
    findings += [_complexity(rows, how) for how in THEORY if _built_rows(rows, how=how, family="polynomial", n=2)]
    findings += [_twins(rows, n) for n in (2, 3) if _built_rows(rows, how="trained", n=n)]
    refused = [row for row in rows if row["refused"]]
    if refused:
        findings.append(f"{len(refused)} of {len(rows)} models were refused before any work.")
    answer = "yes" if agree and all(agree) else "partly"
    says = (
        f"In {sum(agree)} of {len(agree)} settings the power of the error against cells is within {WITHIN:.0%} of "
        "-1/(nd) for quantised tokens and of -2/(nd) for interpolation."
    )
    return Verdict(answer, says, tuple(findings))  # type: ignore[arg-type]


def _slopes(rows: list[Row], how: str, n: int, size: str) -> list[float]:
    """The power of the measured error against a size, for each target that has three sizes or more."""
    found = []
    for target in sorted({row["target"] for row in rows}):
        some = [row for row in _built_rows(rows, how=how, target=target, n=n) if row["measured"] > 0]
        if len({row[size] for row in some}) >= 3:
            found.append(exponent((row[size] for row in some), (row["measured"] for row in some)).mean)
    return found


def _complexity(rows: list[Row], how: str) -> str:
    """Levels against the degree at one tolerance."""
    some = _built_rows(rows, how=how, family="polynomial", n=2)
    # Levels that an error of 1 would take, by the law of the construction.
    levels = [row["levels"] * row["measured"] ** (-1 / THEORY[how]) for row in some]
    power = exponent((row["K"] for row in some), levels)
    theory = "first derivatives of order K^2" if how == "quantise" else "second derivatives of order K^4"
    return (
        f"{how}, polynomials of degree {min(r['K'] for r in some)} to {max(r['K'] for r in some)}: levels for the "
        f"same error grow with the power {power} of the degree; 2 by {theory}."
    )


def _twins(rows: list[Row], n: int) -> str:
    """Errors of trained layers by size, and of the constructed ones that are no larger than the largest."""
    twins = _built_rows(rows, how="trained", n=n)
    listed = ", ".join(f"{found} at {size:,}" for size, found in factors(twins, "size", "measured").items())
    most, best = max(row["size"] for row in twins), []
    for target in sorted({row["target"] for row in twins}):
        small = [
            r["measured"] for r in _built_rows(rows, target=target, n=n) if r["cells"] and r["parameters"] <= most
        ]
        best += [min(small)] if small else []
    built = f"; the best constructed of at most {most:,}: {geometric(best)}" if best else ""
    error = f"error {listed} parameters, mean over targets and seeds"
    return f"trained, n = {n}, {twins[0]['steps']:,} steps: {error}{built}.{still_learning(twins)}"


def _built_rows(rows: list[Row], **chosen: Any) -> list[Row]:
    """Rows with a model and these values."""
    return [row for row in rows if not row["refused"] and all(row[name] == value for name, value in chosen.items())]
