"""Grading in the trainer: does multiplying components by grades help more than standardising the input does?

Tokens have components of scales 1, 1/8 and 1/64 that matter equally: a sequence is right if the signs of the means
of all three are. Every way of grading gets its best rate of the same list; what is counted are steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.graded import Grading, Optimiser, train_graded
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import factors, geometric, paired, share

Array = NDArray[Any]

QUESTION = "Does grading the components of tokens train faster than standardising them?"
HYPOTHESES = (
    "Grading adds no function, only other rates for the rows of W_Q, W_K and W_V: with these rates a plain layer "
    "takes the same steps.",
    "Against plain training the right grades help a lot; against standardising the input they help nothing.",
)
EXTRAS = ("torch",)
SCALES = np.array([1.0, 0.125, 1 / 64])
#: Tokens of a sequence, and sequences to train on and to ask.
LENGTH, SEQUENCES = 6, 128
#: Rates that are tried; of every way the best one counts.
RATES: dict[Optimiser, tuple[float, ...]] = {"sgd": (0.3, 1.0, 3.0), "adam": (0.01, 0.03, 0.1)}
#: Steps after which graded weights and rows with rates of their own are compared, and their rates.
COMPARED: dict[Optimiser, float] = {"sgd": 1.0, "adam": 0.01}
STEPS_COMPARED = 50
WAYS = ("none", "linear", "exponential", "learned", "reversed", "rates", "standardised")
RIVAL = "standardised"


def cases(preset: Preset) -> list[Case]:
    steps = 200 if preset == "quick" else 5000
    return [{"optimiser": kind, "how": how, "steps": steps} for kind in RATES for how in WAYS]


def draw(rng: np.random.Generator) -> tuple[Array, Array]:
    """Tokens of the three scales, whose means are between 0.3 and 1 of their scale away from 0."""
    signs = rng.integers(0, 2, (SEQUENCES, 3))
    means = (2 * signs - 1) * rng.uniform(0.3, 1, (SEQUENCES, 3))
    around = rng.normal(size=(SEQUENCES, LENGTH, 3))
    tokens = around - around.mean(axis=1, keepdims=True) + means[:, None]
    return tokens * SCALES, signs.astype(np.float64)


def grading_of(how: str) -> Grading:
    ones = np.ones(3)
    return {
        "none": Grading(ones),
        "standardised": Grading(ones),
        "linear": Grading(np.array([1.0, 2.0, 3.0])),
        "exponential": Grading(1 / SCALES),
        "reversed": Grading(1 / SCALES[::-1]),
        "learned": Grading(ones, learned=True),
        "rates": Grading(1 / SCALES, absorbed=True),
    }[how]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, 49])
    data, test = draw(rng), draw(rng)
    kind: Optimiser = case["optimiser"]
    if case["how"] == "standardised":  # by what is trained on
        middle, spread = data[0].mean(axis=(0, 1)), data[0].std(axis=(0, 1))
        data, test = (((tokens - middle) / spread, signs) for tokens, signs in (data, test))
    grading = grading_of(case["how"])
    runs = [train_graded(grading, data, test, kind, rate, case["steps"], seed) for rate in RATES[kind]]
    best = min(runs, key=lambda run: (run.steps is None, run.steps, -run.accuracy))
    apart = None
    if case["how"] == "rates":
        ways = (grading_of("exponential"), grading)
        a, b = (train_graded(w, data, test, kind, COMPARED[kind], STEPS_COMPARED, seed, 2.0).weights for w in ways)
        apart = float(max(np.abs(a[name] - b[name]).max() for name in a))
    taken = case["steps"] if best.steps is None else best.steps
    return [{"taken": taken, "reached": int(best.steps is not None), "accuracy": best.accuracy, "apart": apart}]


def plot(rows: list[Row]) -> Any:
    made, (axes,) = figure(width=9)
    for i, (kind, marker) in enumerate((("sgd", "o"), ("adam", "s"))):
        some = [row for row in rows if row["optimiser"] == kind]
        at = [WAYS.index(row["how"]) + 0.3 * i - 0.15 + 0.02 * row["seed"] for row in some]
        filled = [f"C{i}" if row["reached"] else "none" for row in some]
        axes.scatter(at, [row["taken"] for row in some], marker=marker, edgecolors=f"C{i}", facecolors=filled)
        axes.scatter([], [], marker=marker, color=f"C{i}", label=f"{kind} (hollow: 99% not reached)")
    axes.set_xticks(range(len(WAYS)), WAYS)
    axes.set(yscale="log", ylabel="steps to 99% of the sequences, best of three rates")
    axes.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, faster, even = [], [], []
    for kind in RATES:
        some = [row for row in rows if row["optimiser"] == kind]
        by = {how: {r["seed"]: r["taken"] for r in some if r["how"] == how} for how in WAYS}
        counts = factors(some, "how", "taken")
        told = ", ".join(
            f"{how} {count} ({share(r['reached'] for r in some if r['how'] == how)} reached)"
            for how, count in counts.items()
        )
        if told:
            limit = some[0]["steps"]
            findings.append(f"{kind}, steps to 99%, {limit} where that was not reached: {told}.")
        for how in WAYS:
            against = paired(by[how], by[RIVAL], ratio=True)
            if how not in (RIVAL, "rates") and by[how] and by[RIVAL]:
                faster.append(against.below)
                findings.append(f"{kind}, {how} over standardised, seed by seed: {against} times the steps.")
        even += [row["apart"] for row in some if row["how"] == "rates"]
    if even:
        findings.append(
            f"Graded by powers of two, or the plain layer with row rates d^2 (SGD) and d (Adam): after "
            f"{STEPS_COMPARED} steps the weights differ by at most {max(even):.2g} in {len(even)} runs."
        )
    if not faster:
        return Verdict("open", "Nothing was compared with standardising.", tuple(findings))
    right = [row for row in rows if row["how"] == "exponential"]
    plain = {(r["optimiser"], r["seed"]): r["taken"] for r in rows if r["how"] == "none"}
    helped = geometric(plain.get((r["optimiser"], r["seed"]), np.nan) / r["taken"] for r in right)
    says = (
        f"{sum(faster)} of {len(faster)} comparisons have clearly fewer steps than standardising; the right grades "
        f"take fewer steps than none by a factor of {helped}."
    )
    return Verdict("yes" if all(faster) else "partly" if any(faster) else "no", says, tuple(findings))
