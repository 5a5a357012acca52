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
from onelayer.lab.statistics import Interval, Paired, exponent, factors, geometric, interval, tally
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
    "yes",
    "Powers of constructed models in 4 of 4 settings; of trained ones, errors after a fixed number of steps, at "
    "the better of three rates.",
    "a power agrees where its whole interval does, which one of few targets is too wide for; twins are trained "
    "until their loss stops falling, at the best of five rates and two optimisers.",
)
EXTRAS = ("torch",)
#: Parameters of trained models, whose error is not asked for but found.
SIZES = (500, 2000, 8000)
#: How far a measured exponent may be from the theory's to agree with it.
WITHIN = 0.1
#: The exponent of the error against cells, times n d.
THEORY = {"quantise": -1.0, "positional": -2.0}
#: How a model comes about, and its mark in the picture.
MARKS = {"quantise": "o", "positional": "s", "trained": "^"}
#: Errors asked for, by family of targets: each is moved by up to a fourth root of 2 from seed to seed.
#: Where models grow slowly, smaller errors can be asked for.
SHARES = {"quantise": 1.0, "positional": 0.25}
TOLERANCES = {"polynomial": (0.4, 0.2, 0.1, 0.05), "random": (0.08, 0.04, 0.02, 0.01)}
#: The target that twins are trained on, by tokens: training costs far more than constructing.
TRAINED = {2: "polynomial:3", 3: "polynomial:2"}


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    terms: dict[int, dict[str, tuple[int, ...]]] = {
        2: {"polynomial": (2, 3, 4), "random": (2,)},
        3: {"polynomial": (2,), "random": (2,)},
    }
    sizes, steps = (SIZES[::2], 600) if quick else (SIZES, 3000)
    found: list[Case] = []
    for n, family, K in (
        (n, family, K) for n, every in terms.items() for family, some in every.items() for K in some
    ):
        one = {"target": f"{family}:{K}", "family": family, "K": K, "n": n}
        if quick and (n, family) == (3, "random"):
            continue
        fewer = (n > 2 or K > 3) + (1 if quick else 0)
        tolerances = TOLERANCES[family][: -fewer or None]
        built = [(how, asked * share) for how, share in SHARES.items() for asked in tolerances]
        found += [{"how": how, **one, "asked": asked, "size": None, "steps": 0} for how, asked in built]
        if one["target"] == TRAINED[n]:
            found += [{"how": "trained", **one, "asked": None, "size": size, "steps": steps} for size in sizes]
    return found


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _train if case["how"] == "trained" else _construct


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _construct(case: Case, seed: int) -> list[Row]:
    """A model with a proved bound, or a refusal."""
    moved = float(2 ** np.random.default_rng([seed, case["K"], case["n"]]).uniform(-0.25, 0.25))
    tolerance = case["asked"] * moved
    row: Row = {"tolerance": tolerance, "refused": ""}
    try:
        model = approximate(case["target"], n=case["n"], tolerance=tolerance, construction=case["how"], seed=seed)
    except HypothesisError as error:
        nothing = dict.fromkeys(("parameters", "bound", "measured", "cells", "levels"))
        return [row | {"refused": error.statement} | nothing]
    levels = int(model.ledger.number("levels"))
    about = {"parameters": model.n_parameters, "bound": model.error_bound if model.proved else None}
    return [row | about | {"measured": model.measured_error, "cells": levels ** case["n"], "levels": levels}]


def _train(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.functions import fit_transformer

    target = resolve(case["target"], n=case["n"], d=1, low=0.0, high=1.0)
    twin = fit_transformer(target, case["size"], 1, case["steps"], seed)
    row: Row = {"tolerance": None, "refused": "", "parameters": twin.parameters, "bound": None}
    return [row | {"measured": twin.error, "cells": None, "levels": None} | twin.end]


def plot(rows: list[Row]) -> Any:
    made, panels = figure(columns=2, width=10, height=5)
    targets = sorted({row["target"] for row in rows})
    for axes, n in zip(panels, (2, 3), strict=True):
        for how, target in product(MARKS, targets):
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
            axes.plot(x, [row["measured"] for row in some], marker=MARKS[how], markersize=4, **style)
            bounds = [(row["parameters"], row["bound"]) for row in some if row["bound"] is not None]
            if bounds:
                axes.plot(*zip(*bounds, strict=True), linestyle=":", **style)
        title = f"n = {n}; dotted: proved; trained: mean over seeds"
        axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel="sup error", title=title)
    for i, target in enumerate(targets):
        panels[0].plot([], [], color=f"C{i}", label=target)
    for how, mark in MARKS.items():
        panels[0].plot([], [], color="grey", marker=mark, linestyle="--" if how == "trained" else "-", label=how)
    made.legend(loc="outside lower center", ncols=len(targets) + len(MARKS), fontsize="small")
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, agree = [], dict[str, bool | None]()
    for how, rate in THEORY.items():
        for n in sorted({row["n"] for row in _built_rows(rows, how=how)}):
            slopes, few = _slopes(rows, how, n, "cells")
            sizes, _ = _slopes(rows, how, n, "parameters")
            if few:
                findings.append(
                    f"{how}, n = {n}: no power of {', '.join(few)}, of which there are fewer than 3 sizes."
                )
            if not slopes:
                continue
            found, wanted = interval(slopes), rate / n
            agree[f"{how}, n = {n}"] = _agrees(found, wanted)
            findings.append(
                f"{how}, n = {n}: error ~ cells^({found}), theory {wanted:.3g} (over {len(slopes)} targets, all "
                f"seeds in one fit); against parameters the power is {interval(sizes)}."
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
    if exact := [row for row in rows if row["measured"] == 0]:
        findings.append(f"{len(exact)} of {len(rows)} models have no error that search finds, and are in no power.")
    if not agree:
        return Verdict("open", "There are too few sizes of any target for a power.", tuple(findings))
    return _answer(agree, findings)


def _agrees(found: Interval, wanted: float) -> bool | None:
    """Whether a power is within the band of the theory's; unknown where its interval is partly inside."""
    low, high = (wanted + sign * WITHIN * abs(wanted) for sign in (-1, 1))
    if low <= found.low and found.high <= high:
        return True
    return False if found.high < low or found.low > high else None


def _answer(agree: dict[str, bool | None], findings: list[str]) -> Verdict:
    known, words = list(agree.values()), []
    for told, wanted in (
        ("It is clearly not", False),
        ("That is not known, as the interval reaches out of it,", None),
    ):
        if some := [setting for setting, found in agree.items() if found is wanted]:
            words.append(f" {told} for {' and for '.join(some)}.")
    answer: Any = "yes" if all(known) else "partly" if any(known) else "open" if None in known else "no"
    says = (
        f"In {known.count(True)} of {len(known)} settings the power of the error against cells is, with its whole "
        f"interval, within {WITHIN:.0%} of -1/(nd) for quantised tokens and of -2/(nd) for interpolation."
    )
    return Verdict(answer, says + "".join(words), tuple(findings))


def _slopes(rows: list[Row], how: str, n: int, size: str) -> tuple[list[float], list[str]]:
    """The power of the measured error against a size for each target, and the targets of fewer than three sizes."""
    found, few = [], []
    for target in sorted({row["target"] for row in _built_rows(rows, how=how, n=n)}):
        some = [row for row in _built_rows(rows, how=how, target=target, n=n) if row["measured"] > 0]
        if len({row[size] for row in some}) >= 3:
            found.append(exponent((row[size] for row in some), (row["measured"] for row in some)).mean)
        else:
            few.append(target)
    return found, few


def _complexity(rows: list[Row], how: str) -> str:
    """Levels against the degree at one tolerance."""
    some = [row for row in _built_rows(rows, how=how, family="polynomial", n=2) if row["measured"] > 0]
    # Levels that an error of 1 would take, by the law of the construction.
    levels = [row["levels"] * row["measured"] ** (-1 / THEORY[how]) for row in some]
    power = exponent((row["K"] for row in some), levels)
    theory = "first derivatives of order K^2" if how == "quantise" else "second derivatives of order K^4"
    return (
        f"{how}, polynomials of degree {min(r['K'] for r in some)} to {max(r['K'] for r in some)}: levels for the "
        f"same error grow with the power {power} of the degree; 2 by {theory}."
    )


def _twins(rows: list[Row], n: int) -> str:
    """Errors of trained layers by size, and over those of constructed ones that are no larger, pair by pair."""
    twins, said = _built_rows(rows, how="trained", n=n), []
    for size, error in factors(twins, "size", "measured").items():
        found, without = compare(rows, n, size)
        seeds = f"{found.found.count} seed{'s' if found.found.count > 1 else ''}"
        lacks = f"; {without} of {sum(row['size'] == size for row in twins)} have no partner" if without else ""
        told = f"{found.found} times that of the partner, {seeds}{lacks}"
        said.append(
            f"{error} at {size:,} parameters ({told if found.found.count else 'no constructed model is so small'})"
        )
    listed, targets = ", ".join(said), ", ".join(sorted({row["target"] for row in twins}))
    ended = tally(row.get("ended_by") for row in twins)
    return (
        f"trained, n = {n} ({targets}), at most {twins[0]['steps']:,} steps: error {listed}. A partner is the best "
        f"constructed model of the same target and seed that has no more parameters. Ended by: {ended}."
        f"{still_learning(twins)}"
    )


def compare(rows: list[Row], n: int, size: int) -> tuple[Paired, int]:
    """Errors of twins over those of the best constructed models that are no larger, and how many have no such.

    Targets of one seed are one value, their geometric mean: the interval is over seeds.
    """
    twins = {
        (row["target"], row["seed"]): row["measured"] for row in _built_rows(rows, how="trained", n=n, size=size)
    }
    best: dict[Any, float] = {}
    for row in _built_rows(rows, n=n):
        key = row["target"], row["seed"]
        if row["cells"] and row["parameters"] <= size:
            best[key] = min(best.get(key, row["measured"]), row["measured"])
    both = [key for key in twins if key in best]
    seeds = sorted({seed for _, seed in both})
    means = (
        geometric(twins[key] / best[key] if best[key] else None for key in both if key[1] == seed).mean
        for seed in seeds
    )
    return Paired(geometric(means), len({seed for _, seed in twins}) - len(seeds)), len(twins) - len(both)


def _built_rows(rows: list[Row], **chosen: Any) -> list[Row]:
    """Rows with a model and these values."""
    return [row for row in rows if not row["refused"] and all(row[name] == value for name, value in chosen.items())]
