"""Capacity: the largest number of sequences that a model of this many parameters reproduces exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.errors import HypothesisError
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Interval, interval, interval_by_group

QUESTION = "Does a constructed layer store more answers than a trained one with as many parameters?"
HYPOTHESES = (
    "A plateau takes 8 parameters an answer, tables 2 to 3, hashed cells 1.4; contexts come on top.",
    "Trained models may come near 2 bits a parameter given time, and to less within the steps allowed here.",
)
EXTRAS = ("torch",)
READOUTS = ("plateaus", "table", "retrieval", "bits")
n, VOCABULARY, CLASSES = 4, 32, 16
#: Numbers of sequences that are tried: a quarter of a doubling apart.
LADDER = tuple(round(8 * 2 ** (k / 4)) for k in range(41))


def cases(preset: Preset) -> list[Case]:
    sizes, steps = ((1000, 2000, 4000), 800) if preset == "quick" else ((1000, 2000, 4000, 8000, 16000), 5000)
    made: list[Case] = [
        {"model": readout, "size": size, "steps": 0}
        for readout in READOUTS
        for size in sizes
        if readout != "bits" or size >= 4000  # below, bits take long to pack and save little
    ]
    return made + [{"model": "trained", "size": size, "steps": steps} for size in sizes]


@cache
def all_sets() -> Any:
    return np.array(list(combinations(range(VOCABULARY), n)))


def facts(N: int, seed: int) -> tuple[Any, Any]:
    """Different sets of 4 of 32 tokens, an answer of 16 at each; those of a smaller N come first."""
    rng = np.random.default_rng([seed, 31])
    order = rng.permutation(len(all_sets()))[: LADDER[-1]]
    return all_sets()[order[:N]], rng.integers(0, CLASSES, (LADDER[-1], n))[:N]


def run(case: Case, seed: int) -> list[Row]:
    knows = _count_by_training(case, seed) if case["model"] == "trained" else _count_by_construction(case, seed)
    low, high, best = -1, len(LADDER), 0
    while high - low > 1:  # halving: what fails at some N is taken to fail beyond it
        middle = (low + high) // 2
        parameters = knows(LADDER[middle])
        low, high, best = (middle, high, parameters) if parameters else (low, middle, best)
    answers = LADDER[low] * n if low >= 0 else 0
    bits = answers * math.log2(CLASSES) / best if best else 0.0
    return [{"answers": answers, "parameters": best, "bits_per_parameter": bits}]


def _count_by_construction(case: Case, seed: int) -> Callable[[int], int]:
    def knows(N: int) -> int:
        if N * n > case["size"]:  # less than a parameter an answer is out of reach of all of them
            return 0
        X, Y = facts(N, seed)
        try:
            model = memorize(X, Y, readout=case["model"], seed=seed, certify=False)
        except HypothesisError:
            return 0
        exact = model.n_parameters <= case["size"] and bool((model.predict(X, path="dense") == Y).all())
        return model.n_parameters if exact else 0

    return knows


def _count_by_training(case: Case, seed: int) -> Callable[[int], int]:
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, train_tuned

    def knows(N: int) -> int:
        if N * n * math.log2(CLASSES) > 2 * case["size"]:  # 2 bits a parameter: the most that training is known for
            return 0
        task = Task(*facts(N, seed))
        shape = fill(Shape(1), Task(*facts(LADDER[-1], seed)), case["size"])
        budget = Budget(steps=case["steps"], check=20)
        return count_parameters(shape, task) if train_tuned(shape, task, budget, seed).exact else 0

    return knows


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    for name in (*READOUTS, "trained"):
        some = [row for row in rows if row["model"] == name]
        style: dict[str, Any] = {"color": "black", "linewidth": 2} if name == "trained" else {}
        line(left, interval_by_group(some, "size", "answers"), name, **style)
        line(right, interval_by_group(some, "size", "bits_per_parameter"), name, **style)
    for axes in (left, right):
        sizes = sorted({row["size"] for row in rows})
        axes.set(xscale="log", xlabel="parameters allowed")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.minorticks_off()
    left.set(ylabel="answers reproduced exactly")
    if any(row["answers"] for row in rows):
        left.set_yscale("log", nonpositive="mask")
    right.set(ylabel="bits of answers per parameter", ylim=(0, None))
    left.legend()
    return made


def ratios(rows: list[Row], size: int) -> Interval:
    """The best construction over the trained model, seed by seed."""
    some = [row for row in rows if row["size"] == size]
    trained = {row["seed"]: row["answers"] for row in some if row["model"] == "trained"}
    best: dict[int, int] = {}
    for row in some:
        if row["model"] != "trained":
            best[row["seed"]] = max(best.get(row["seed"], 0), row["answers"])
    return interval(best[seed] / trained[seed] for seed in trained if seed in best and trained[seed])


def verdict(rows: list[Row]) -> Verdict:
    sizes, findings = sorted({row["size"] for row in rows}), []
    for size in sizes:
        answers = {
            name: interval_by_group([r for r in rows if r["model"] == name], "size", "answers").get(size)
            for name in (*READOUTS, "trained")
        }
        listed = ", ".join(f"{name} {found}" for name, found in answers.items() if found is not None)
        findings.append(
            f"{size:,} parameters: {listed} answers; best constructed over trained: {ratios(rows, size)}."
        )
    bits = {
        name: interval_by_group([r for r in rows if r["model"] == name], "size", "bits_per_parameter").get(
            sizes[-1]
        )
        for name in (*READOUTS, "trained")
    }
    listed = ", ".join(f"{name} {found}" for name, found in bits.items() if found is not None)
    findings.append(f"Bits per parameter at {sizes[-1]:,}: {listed}.")
    found = [ratios(rows, size) for size in sizes]
    above, below = [one.low > 1 for one in found], [one.high < 1 for one in found]
    answer: Any = "yes" if all(above) else "no" if all(below) else "partly"
    if not any(one.count for one in found):
        return Verdict("open", "There are not both constructed and trained models to compare.", tuple(findings))
    says = f"At {sizes[-1]:,} parameters the best construction holds {found[-1]} times what training reached"
    return Verdict(answer, f"{says}, at {sizes[0]:,} {found[0]} times.", tuple(findings))
