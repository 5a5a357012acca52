"""Loops that learn from their prompt: does training find numbers as good as the best that can be compiled?

Accelerated and preconditioned steps, steps that whiten their inputs, and logistic regression are one block in a
loop, with a few numbers: step sizes, momentum, a preconditioner. Built: the network that `learner` compiles with
the numbers that are best on the tasks that measure, and that with its usual ones. Trained: the numbers alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer.compile.learner import learner
from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import geometric, interval, paired, tally

QUESTION = (
    "Does training find loops as good as the best that can be compiled, and the same step sizes and matrices?"
)
HYPOTHESES = (
    "Yes: so few numbers are found from anywhere, and they are those of the best compiled learner.",
    "The usual step sizes, which no prompt of a learner's box makes diverge, cost several times the best loss.",
)
EXTRAS = ("torch",)
KINDS = ("nesterov", "preconditioned", "whitening", "logistic")
MEASURED = 2**11
#: Turns of the block: in fewer the best momentum is the largest there is.
LOOPS = 5
#: Rates for few numbers; Adam's decay of weights would only pull them to 0.
RATES, OPTIMISERS = (1e-2, 3e-2, 1e-1), ("adam",)
#: Relative: a loss this near is as good; numbers may be twice as far, and are still the same.
NEAR = 0.05
#: Of the largest eta that a box allows, as much is asked for.
INSIDE = 0.9


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps, batch = (1500, 64) if quick else (4000, 128)
    return [
        {"learner": name, "model": model, "loops": LOOPS}
        | {"steps": steps * (model == "trained"), "batch": batch * (model == "trained")}
        for name in KINDS
        for model in ("built", "trained")
    ]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _train if case["model"] == "trained" else _build


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _train(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import loops, prompts

    name, L = case["learner"], case["loops"]
    twin, loss = loops.start(name, seed), loops.loss_of(name, L)
    ended = prompts.search(
        twin, loss, loops.tasks(name, case["batch"]), case["steps"], seed, rates=RATES, optimisers=OPTIMISERS
    )
    found = {"loss": prompts.measure(twin, loss, prompts.fresh(loops.tasks(name, MEASURED), seed))}
    numbers = {key: prompts.numbers(part) for key, part in loops.read(twin).items()}
    return [found | {"default": None, "numbers": _written(numbers)} | ended.row]


def _build(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import loops, prompts

    name, L = case["learner"], case["loops"]
    given = prompts.fresh(loops.tasks(name, MEASURED), seed)
    numbers = loops.settle(name, L, given)
    usual: dict[str, Any] = {"covariance": np.diag(loops.VARIANCES)} if name == "preconditioned" else {}
    models = compiled(name, L, numbers), learner(name, d=loops.d, steps=L, certify=False, **usual)
    loss, default = (_error(model, given) for model in models)
    return [{"loss": loss, "default": default, "numbers": _written(numbers)}]


def compiled(name: str, loops: int, numbers: dict[str, Any]) -> Any:
    """The learner of these numbers, compiled for a box that is small enough to allow its step sizes."""
    t: dict[str, Any] = {key: part if part.ndim > 1 else float(part) for key, part in numbers.items()}
    options: dict[str, Any] = {"eta": t.get("eta", 1.0)}
    size = options["eta"]
    if name == "nesterov":
        keep = t["a"] - t["b"]
        options |= {"penalty": (1 / keep - 1) / t["eta"], "momentum": t["b"] / keep}
    elif name == "preconditioned":
        options["A"] = (t["A"] + t["A"].T) / 2
        size = float(np.linalg.norm(t["A"], 2))
    elif name == "whitening":
        options["gamma"] = t["gamma"]
        size = max(size, t["gamma"])
    else:
        options["penalty"] = t["shrink"] / t["eta"]
    from onelayer.lab.loops import d

    high = min(1.0, (INSIDE / (d * size)) ** 0.5)
    return learner(name, d=d, low=-high, high=high, steps=loops, certify=False, **options)


def _error(model: Any, given: Any) -> float:
    """Of the network itself, at the queries."""
    x, y, w, queries = (part.double().numpy() for part in given)
    wanted = np.einsum("bqd,bd->bq", queries, w)
    wanted = 1 / (1 + np.exp(-wanted)) if model.interface.labels else wanted
    return float(((model.predict(x, y, queries, outside="answer") - wanted) ** 2).mean())


def _written(numbers: dict[str, Any]) -> str:
    """Of all runs in the same order."""
    return json.dumps([float(f"{value:.6g}") for key in sorted(numbers) for value in np.ravel(numbers[key])])


def _groups(rows: list[Row]) -> dict[tuple[str, int], tuple[dict[int, Row], dict[int, Row]]]:
    """By learner and loops: what was built and what was trained, by seed; only where there are both."""
    found: dict[tuple[str, int], tuple[dict[int, Row], dict[int, Row]]] = {}
    for row in rows:
        both = found.setdefault((row["learner"], row["loops"]), ({}, {}))
        both[row["model"] == "trained"][row["seed"]] = row
    return {key: both for key, both in found.items() if both[0].keys() & both[1].keys()}


def _pairs(rows: list[Row]) -> list[Row]:
    """Every trained loop beside the built one of its seed."""
    return [
        {**trained[seed], "built": built[seed]["loss"], "usual": built[seed]["default"]}
        | {
            "wanted": built[seed]["numbers"],
            "off": _distance(*(_numbers(some[seed]["numbers"]) for some in (trained, built))),
        }
        for built, trained in _groups(rows).values()
        for seed in sorted(built.keys() & trained.keys())
    ]


def _numbers(written: str) -> Any:
    return np.array(json.loads(written))


def _distance(trained: Any, built: Any) -> float:
    return float(np.linalg.norm(trained - built) / np.linalg.norm(built))


def _matrix(written: str) -> Any:
    values = _numbers(written)
    return values.reshape(round(len(values) ** 0.5), -1)


def skew(numbers: str) -> float:
    """The antisymmetric part of a matrix, relative to the matrix."""
    A = _matrix(numbers)
    return float(np.linalg.norm(A - A.T) / 2 / np.linalg.norm(A))


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=11)
    pairs = _pairs(rows)
    settings = sorted({(row["learner"], row["loops"]) for row in pairs})
    for at, (name, L) in enumerate(settings):
        some = [row for row in pairs if (row["learner"], row["loops"]) == (name, L)]
        for column, colour, shift in (("loss", "C0", 0.12), ("usual", "C3", -0.12)):
            ratios = [row[column] / row["built"] for row in some]
            left.plot(ratios, [at + shift] * len(some), "o", color=colour, alpha=0.6, markersize=5)
        right.plot([row["off"] for row in some], [at] * len(some), "o", color="C0", alpha=0.6, markersize=5)
    labels = [f"{name}, {L} loops" for name, L in settings]
    for axes in (left, right):
        axes.set_yticks(range(len(settings)), labels)
        axes.set(ylim=(-0.5, max(len(settings), 1) - 0.5), xscale="log")
    left.axvline(1, color="grey", linestyle=":")
    left.axvline(1 + NEAR, color="grey", linewidth=0.5)
    left.plot([], [], "o", color="C0", label="trained")
    left.plot([], [], "o", color="C3", label="compiled with usual step sizes")
    left.legend(fontsize="small")
    left.set(xlabel="loss over that of the best compiled loop")
    right.axvline(2 * NEAR, color="grey", linewidth=0.5)
    right.set(xlabel="distance of the numbers to its, relative")
    return made


def verdict(rows: list[Row]) -> Verdict:
    pairs = _pairs(rows)
    if not pairs:
        return Verdict("open", "There are not both built and trained loops.", (endings.said(rows),))
    findings = []
    for name, L in _groups(rows):
        some = [row for row in pairs if (row["learner"], row["loops"]) == (name, L)]
        best, usual = ({row["seed"]: row[column] for row in some} for column in ("built", "usual"))
        ratio = paired({row["seed"]: row["loss"] for row in some}, best, ratio=True)
        off = geometric(row["off"] for row in some)
        said = (
            f"{name}, {L} loops: trained over the best compiled loss {ratio}, its numbers off by {off}; the usual "
            f"step sizes cost {paired(usual, best, ratio=True)} times the best."
        )
        if name == "preconditioned":
            part = interval(skew(row["numbers"]) for row in some)
            said += f" Of the trained matrix {part} is antisymmetric; the compiled one must be symmetric."
        findings.append(said)
    good, near = [row["loss"] < (1 + NEAR) * row["built"] for row in pairs], [same(row) for row in pairs]
    by_learner: dict[tuple[str, int], list[bool]] = {}
    for row, fine in zip(pairs, good, strict=True):
        by_learner.setdefault((row["learner"], row["loops"]), []).append(fine)
    whole = sum(map(all, by_learner.values()))
    says = (
        f"Trained loops are as good as the best compiled ones (loss within {100 * NEAR:.0f}% or below) in "
        f"{sum(good)} of {len(good)} runs, in all runs of {whole} of {len(by_learner)} loops, and have their "
        f"numbers as well (within {200 * NEAR:.0f}%) in {sum(near)} runs."
    )
    answer, reason = endings.answer(pairs, near)
    # As good with other numbers is part of what was asked for, where all runs of a loop are.
    answer = "partly" if answer != "yes" and whole else answer
    findings.append(endings.said(pairs))
    return Verdict(answer, says + reason + _further(pairs), tuple(findings))


def _further(pairs: list[Row]) -> str:
    """Which loops have other numbers; a matrix may have some that no compiled one has."""
    missed = [row for row in pairs if row["off"] >= 2 * NEAR]
    if not missed:
        return ""
    matrices = [row for row in missed if row["learner"] == "preconditioned"]
    says = f" Numbers are further off in runs of: {tally(row['learner'] for row in missed)}."
    if not matrices:
        return says
    trained, wanted = ([_matrix(row[name]) for row in matrices] for name in ("numbers", "wanted"))
    symmetric = sum(_distance((A + A.T) / 2, B) < 2 * NEAR for A, B in zip(trained, wanted, strict=True))
    return says + (
        f" The trained matrix of preconditioned is partly antisymmetric "
        f"({interval(skew(row['numbers']) for row in matrices)} of it), where a compiled one must be symmetric: "
        f"its symmetric part is within {200 * NEAR:.0f}% in {symmetric} of these {len(matrices)}."
    )


def same(row: Row) -> bool:
    """Whether a run came to the compiled loop: its loss, and its numbers."""
    return bool(row["loss"] < (1 + NEAR) * row["built"] and row["off"] < 2 * NEAR)
