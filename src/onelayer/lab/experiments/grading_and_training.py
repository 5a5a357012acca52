"""Grading in the trainer: does multiplying components by grades help more than standardising the input does?

Tokens have components of scales 1, 1/8 and 1/64 that matter equally: a sequence is right if the signs of the means
of all three are. Every way of grading gets its best rate of the same list; what is counted are steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.experiment import FEWEST_SEEDS, Case, Preset, Row, Verdict
from onelayer.lab.graded import Grading, Optimiser, Taken, train_graded
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import Factor, Interval, Paired, factors, geometric_of, paired

Array = NDArray[Any]
#: Tokens and signs.
Data = tuple[Array, Array]

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
#: Rates that are tried, the likely ones first; of every way the best one counts.
RATES: dict[Optimiser, tuple[float, ...]] = {"sgd": (1.0, 3.0, 0.3, 10.0), "adam": (0.03, 0.1, 0.3, 0.01, 1.0)}
#: Clearly less than this share of the rival's steps is faster, clearly more is not: one margin for both.
LITTLE = 0.8
#: Steps after which graded weights and rows with rates of their own are compared, and their rates.
COMPARED: dict[Optimiser, float] = {"sgd": 1.0, "adam": 0.01}
STEPS_COMPARED = 50
WAYS = ("none", "linear", "exponential", "learned", "reversed", "rates", "standardised")
RIVAL = "standardised"


def cases(preset: Preset) -> list[Case]:
    steps = 200 if preset == "quick" else 800
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
    best, rate = _fastest(grading, data, test, kind, case["steps"], seed)
    apart = None
    if case["how"] == "rates":
        ways = (grading_of("exponential"), grading)
        a, b = (train_graded(w, data, test, kind, COMPARED[kind], STEPS_COMPARED, seed, 2.0).weights for w in ways)
        apart = float(max(np.abs(a[name] - b[name]).max() for name in a))
    taken = case["steps"] if best.steps is None else best.steps
    reached, ends = best.steps is not None, (min(RATES[kind]), max(RATES[kind]))
    said: Row = {"taken": taken, "reached": int(reached), "ended_by": "all right" if reached else "budget"}
    return [
        said | {"accuracy": best.accuracy, "learning_rate": rate, "at_an_end": int(rate in ends), "apart": apart}
    ]


def _fastest(
    grading: Grading, data: Data, test: Data, kind: Optimiser, steps: int, seed: int
) -> tuple[Taken, float]:
    """The run of the best rate; a later one goes no further than it could still be better."""
    best, chosen = None, 0.0
    for rate in RATES[kind]:
        limit = steps if best is None or best.steps is None else best.steps - 1
        run = train_graded(grading, data, test, kind, rate, limit, seed)
        if best is None or run.steps is not None or (best.steps is None and run.accuracy > best.accuracy):
            best, chosen = run, rate
    assert best is not None
    return best, chosen


def plot(rows: list[Row]) -> Any:
    made, (axes,) = figure(width=9)
    for i, (kind, marker) in enumerate((("sgd", "o"), ("adam", "s"))):
        some = [row for row in rows if row["optimiser"] == kind]
        at = [WAYS.index(row["how"]) + 0.3 * i - 0.15 + 0.02 * row["seed"] for row in some]
        filled = [f"C{i}" if row["reached"] else "none" for row in some]
        axes.scatter(at, [row["taken"] for row in some], marker=marker, edgecolors=f"C{i}", facecolors=filled)
        axes.scatter([], [], marker=marker, color=f"C{i}", label=f"{kind} (hollow: 99% not reached)")
    axes.set_xticks(range(len(WAYS)), WAYS)
    axes.set(yscale="log", ylabel="steps to 99% of the sequences, best of several rates")
    axes.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings: list[str] = []
    judged: list[str] = []
    even: list[float] = []
    for kind in RATES:
        some = [row for row in rows if row["optimiser"] == kind]
        if some:
            findings.append(_counted(kind, some))
        for how in WAYS:
            against = _against_rival(some, how)
            if how not in (RIVAL, "rates") and against.found.count:
                if how != "none":  # which is no way of grading
                    judged.append(_judge(some, how, against.found))
                findings.append(f"{kind}, {how} over standardised, seed by seed: {against} times the steps.")
        even += [row["apart"] for row in some if row["how"] == "rates"]
    if even:
        findings.append(
            f"Graded by powers of two, or the plain layer with row rates d^2 (SGD) and d (Adam): after "
            f"{STEPS_COMPARED} steps the weights differ by at most {max(even):.2g} in {len(even)} runs."
        )
    if not judged:
        return Verdict("open", "Nothing that arrived was compared with standardising.", tuple(findings))
    faster, not_faster = judged.count("faster"), judged.count("not faster")
    says = (
        f"{faster} of {len(judged)} comparisons of grades with standardising have clearly less than {LITTLE:g} "
        f"times its steps and {not_faster} clearly more than that, each judged by its own 95% interval. "
        f"{_gains(rows)}"
    )
    if faster:
        return Verdict("yes" if faster == len(judged) else "partly", says, tuple(findings))
    return Verdict("no" if not_faster == len(judged) else "open", says, tuple(findings))


def _judge(some: list[Row], how: str, ratio: Interval | Factor) -> str:
    """A way that never arrived may need many more steps, so is not called faster; of a rival it is the reverse."""
    if ratio.count < FEWEST_SEEDS:
        return "too few"
    arrived = {name: all(row["reached"] for row in some if row["how"] == name) for name in (how, RIVAL)}
    if ratio.high < LITTLE and arrived[how]:
        return "faster"
    return "not faster" if ratio.low > LITTLE and arrived[RIVAL] else "neither"


def _gains(rows: list[Row]) -> str:
    """Of each optimiser by itself: plain SGD is slow on such data, and plain Adam is not."""
    kinds = [kind for kind in RATES if any(row["optimiser"] == kind for row in rows)]
    told = [_gain(kind, [row for row in rows if row["optimiser"] == kind]) for kind in kinds]
    return "Steps without grades over steps with the right ones: " + "; ".join(told) + "."


def _gain(kind: str, rows: list[Row]) -> str:
    """Steps of no grades over those of the right ones; a pair of which neither arrived says nothing.

    Of a run that did not arrive only a limit is known: without grades the factor is at least, with them at most.
    """
    plain = {row["seed"]: row for row in rows if row["how"] == "none"}
    right = [row for row in rows if row["how"] == "exponential"]
    pairs = [(plain[row["seed"]], row) for row in right if row["seed"] in plain]
    pairs = [(none, row) for none, row in pairs if none["reached"] or row["reached"]]
    if not pairs:
        return f"{kind} cannot be compared"
    factor = geometric_of([{**row, "gain": none["taken"] / row["taken"]} for none, row in pairs], "gain")
    never, in_vain = (sum(not pair[side]["reached"] for pair in pairs) for side in (0, 1))
    least = "" if bool(never) == bool(in_vain) else "at least " if never else "at most "
    told = [f"without grades {never}"] * bool(never) + [f"with them {in_vain}"] * bool(in_vain)
    cut = f", where of {len(pairs)} runs each {' and '.join(told)} never arrived and count at their limit"
    return f"{kind} {least}{factor}{cut if told else ''}"


def _against_rival(some: list[Row], how: str) -> Paired:
    """Steps of a way over those of standardising, by seed.

    Where one has not arrived its steps are at least the limit, which still says who was faster; where neither has,
    the pair says nothing and is left out.
    """
    own, rival = ({row["seed"]: row for row in some if row["how"] == name} for name in (how, RIVAL))
    known = {s: bool(own[s]["reached"] or rival[s]["reached"]) for s in own if s in rival}
    steps = ({s: row["taken"] if known.get(s, True) else None for s, row in each.items()} for each in (own, rival))
    first, second = steps
    return paired(first, second, ratio=True)


def _counted(kind: str, some: list[Row]) -> str:
    told = []
    for how, count in factors(some, "how", "taken").items():
        mine = [row for row in some if row["how"] == how]
        ends = sum(bool(row.get("at_an_end")) for row in mine)
        at = f", best at an end of the rates tried in {ends}" if ends else ""
        told.append(f"{how} {count} ({sum(row['reached'] for row in mine)} of {len(mine)} reached it{at})")
    return f"{kind}, steps to 99%, {some[0]['steps']} where the budget ended the run: {', '.join(told)}."
