"""Capacity: how many bits of answers a parameter holds, built and trained, by the number of classes.

A trained model need not know an answer to hold something of it: what it holds is the entropy of all answers minus
what is left of it given the model (its cross-entropy), as in Morris et al.; a constructed model gives every answer
and holds all of it. Twins are given two or three bits a parameter, and trained until their loss stops falling or
their steps are spent. Of 256 classes and more they answer with digits of 16, each a choice of its own, as a built
model answers with one number: a last layer with an output for every class would be most of their weights, or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.errors import HypothesisError
from onelayer.lab.endings import learning
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Interval, Paired, interval, interval_by_group, interval_of, paired, tally

QUESTION = "Does a constructed layer hold more bits a parameter than a trained one of the same size?"
HYPOTHESES = (
    "Packed cells hold several answers to a weight, nearly all bits of its mantissa at large sizes; at small ones "
    "what tells contexts apart costs more than the answers.",
    "Trained models come to about 2 bits a parameter, whatever the number of classes.",
)
EARLIER = Earlier(
    "yes",
    "The best construction held 6.6 ± 6.3 times what training reached within 800 steps.",
    "twins are trained until their loss stops falling, partial recall counts as information, nothing is capped at "
    "2 bits, no failed size rules out larger ones, and precision, depth and width are stated. A first rule for "
    "when a loss has stopped falling ended twins of two classes that still learned; rows say what ended a twin.",
)
EXTRAS = ("torch",)
n, VOCABULARY = 4, 48
#: A model of the largest size that fits is found within this factor of its number of sequences.
FINE = 2**0.125
#: Sequences at one step of training.
ROWS = 128
#: The most classes that a twin has an output for, each; of more it answers with digits of this base.
BASE = 16
#: Steps of all rates and optimisers together until one of them is left.
CHOOSING = 6000
#: Bits a parameter that a twin is given, by its size. Of four it holds less than of fewer, nearly all of two if it
#: has the steps (measured with seed 0); of three it comes to the end of its learning sooner than of two.
LOADS = {2000: 3.0, 8000: 3.0, 32000: 2.0}
#: Models, and how they are drawn.
LOOKS = (("float32", "o", "--"), ("float64", "D", "--"), ("trained", "v", "-"))
#: Bits of a mantissa, the one that is not stored with them.
MANTISSAS = {"float32": 24, "float64": 53}
#: The most steps of a twin, by its size.
STEPS = {2000: 24000, 8000: 24000, 32000: 12000}


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    sizes, classes = ((2000, 8000), (2, 16)) if quick else ((2000, 8000, 32000), (2, 16, 256, 4096))
    made: list[Case] = [
        {"model": dtype, "size": size, "classes": C, "load": 0.0, "steps": 0}
        for C in classes
        for size in sizes
        for dtype in (("float32",) if quick else ("float32", "float64"))
    ]
    made += [
        {"model": "trained", "size": size, "classes": C, "load": LOADS[size]}
        | {"steps": 1000 if quick else STEPS[size]}
        for C in classes
        for size in sizes
    ]
    return made


@cache
def all_sets() -> Any:
    return np.array(list(combinations(range(VOCABULARY), n)))


def facts(N: int, classes: int, seed: int) -> tuple[Any, Any]:
    """Different sets of 4 of 48 tokens, an answer at each; those of a smaller N come first."""
    rng = np.random.default_rng([seed, 31])
    return all_sets()[rng.permutation(len(all_sets()))[:N]], rng.integers(0, classes, (N, n))


def digits(answers: Any, classes: int) -> Any:
    """Of each answer, from the last one on."""
    places = BASE ** np.arange(round(math.log(classes, BASE)))
    return answers[..., None] // places % BASE


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _train if case["model"] == "trained" else _construct


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _construct(case: Case, seed: int) -> list[Row]:
    """The most sequences that a model of this many parameters gives back exactly."""

    def build(N: int) -> Any:
        X, Y = facts(N, case["classes"], seed)
        try:
            model = memorize(X, Y, dtype=case["model"], seed=seed, certify=False)
        except HypothesisError:
            return None
        exact = model.n_parameters <= case["size"] and bool((model.predict(X) == Y).all())
        return model if exact else None

    good, N, best = 0, 16, None
    while len(all_sets()) >= N and (found := build(N)) is not None:
        good, best, N = N, found, 2 * N
    bad = N
    while good and bad > FINE * good and bad - good > 1:
        middle = round(math.sqrt(good * bad))
        if (found := build(middle)) is not None:
            good, best = middle, found
        else:
            bad = middle
    if best is None:
        return [_row(0, 0, 0.0, 0, 0)]
    layers = best.transformer.feedforward + best.transformer.last_readout
    bits = good * n * math.log2(case["classes"])
    width = max((layer.width for layer in layers), default=0)
    return [_row(best.n_parameters, good * n, bits, len(layers), width)]


def _train(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, train_tuned

    entropy = math.log2(case["classes"])
    N = max(1, round(case["load"] * case["size"] / (n * entropy)))
    X, Y = facts(N, case["classes"], seed)
    X[0, -1] = VOCABULARY - 1 if VOCABULARY - 1 not in X[0] else X[0, -1]
    Y[0], Y[-1] = case["classes"] - 1, 0  # the last layer has an output for every class, or every digit
    task = Task(X, Y) if case["classes"] <= BASE else Task(X, digits(Y, case["classes"]), "digits")
    shape = fill(Shape(1), task, case["size"])
    check, patience = (25, 8) if N < 1000 else (100, 8) if N < 16000 else (250, 4)  # a count reads all answers
    budget = Budget(steps=case["steps"], choosing=CHOOSING, short=0.02, check=check, patience=patience, batch=ROWS)
    ended = train_tuned(shape, task, budget, seed)
    bits = max(0.0, N * n * (entropy - ended.loss / math.log(2)))
    return [_row(count_parameters(shape, task), ended.right, bits, 2, shape.hidden) | ended.end]


def _row(parameters: int, answers: int, bits: float, layers: int, width: int) -> Row:
    per = bits / parameters if parameters else 0.0
    said: Row = {"parameters": parameters, "answers": answers, "bits": bits, "bits_per_parameter": per}
    return said | {"layers": layers, "width": width}


def plot(rows: list[Row]) -> Any:
    every = sorted({row["classes"] for row in rows})
    made, all_axes = figure(columns=min(2, len(every)), panels=len(every), width=5 * min(2, len(every)))
    for axes, C in zip(all_axes, every, strict=True):
        sizes = sorted({row["size"] for row in rows if row["classes"] == C})
        for (name, marker, style), aside in zip(LOOKS, (0.93, 1.0, 1.075), strict=True):
            mine = [row for size in sizes for row in best_of(rows, name, size, C).values()]
            points = interval_by_group(mine, "size", "bits_per_parameter")
            label = "trained" if name == "trained" else f"constructed, {name}"
            if points:
                line(
                    axes,
                    {aside * size: bits for size, bits in points.items()},
                    label,
                    linestyle=style,
                    marker=marker,
                )
        for said, marker in (("still learning", "^"), ("held all that it was given", "s")):
            some = [r for size in sizes for r, why in _unsure(rows, size, C).values() if why == said]
            if some:
                at = [1.15 * row["size"] for row in some]
                axes.plot(at, [r["bits_per_parameter"] for r in some], f"k{marker}", fillstyle="none", label=said)
        axes.set(xscale="log", xlabel="parameters allowed", title=f"{C:,} classes", ylim=(0, None))
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.minorticks_off()
        axes.set_ylabel("bits of answers a parameter")
        axes.legend(fontsize="small")
    return made


def best_of(rows: list[Row], model: str, size: int, classes: int) -> dict[int, Row]:
    """By seed, the row that held most: there may be several loads and lengths of training."""
    found: dict[int, Row] = {}
    for row in rows:
        if (row["model"], row["size"], row["classes"]) == (model, size, classes):
            found[row["seed"]] = max(found.get(row["seed"], row), row, key=lambda each: each["bits_per_parameter"])
    return found


def _unsure(rows: list[Row], size: int, classes: int) -> dict[int, tuple[Row, str]]:
    """By seed, the best twin, and why it may hold more than it did: "" if it cannot.

    It still learned when its steps were spent, or one with a larger load did; or it held all that it was given, and
    none was given more.
    """
    found = {}
    for seed, best in best_of(rows, "trained", size, classes).items():
        own = [row for row in rows if row["seed"] == seed and row["load"] >= best["load"]]
        loads = {row["load"] for row in own if row["model"] == "trained"}
        tried = [best_of([r for r in own if r["load"] == load], "trained", size, classes) for load in loads]
        most = [of_seed[seed] for of_seed in tried if seed in of_seed]
        full = best.get("ended_by") == "all right" and best["load"] == max(row["load"] for row in most)
        why = "still learning" if any(map(learning, most)) else "held all that it was given" if full else ""
        found[seed] = best, why
    return found


def verdict(rows: list[Row]) -> Verdict:
    findings: list[str] = []
    compared: list[tuple[Paired, list[str]]] = []
    best: list[Row] = []
    for C in sorted({row["classes"] for row in rows}):
        for size in sorted({row["size"] for row in rows if row["classes"] == C}):
            bits = {
                name: {seed: row["bits_per_parameter"] for seed, row in best_of(rows, name, size, C).items()}
                for name, _, _ in LOOKS
            }
            listed = ", ".join(f"{name} {interval(values.values())}" for name, values in bits.items() if values)
            twins = _unsure(rows, size, C)
            if twins:
                listed += f" ({_limits(twins)})"
            if twins and bits["float32"]:
                found = paired(bits["float32"], bits["trained"], ratio=True)
                compared.append((found, [why for _, why in twins.values() if why]))
                listed += f"; float32 over trained {found}"
            best += [row for row, _ in twins.values()]
            findings.append(f"{C:,} classes, {size:,} parameters, bits a parameter: {listed}.")
    trained = [row for row in rows if row["model"] == "trained"]
    if not compared:
        return Verdict("open", "There are not both constructed and trained models to compare.", tuple(findings))
    findings.append(
        f"Twins (one layer, float32) ended by: {tally(r.get('ended_by') for r in trained)}. In "
        f"{sum(bool(r.get('by_noise')) for r in trained)} of {len(trained)} runs the steps for choosing a rate "
        "were spent before rates differed by more than noise."
    )
    findings += _mantissas(rows)
    return _answer(compared, findings, interval_of(best, "bits_per_parameter"))


def _mantissas(rows: list[Row]) -> list[str]:
    """Whether a longer mantissa holds more: float64 against float32, pair by pair of setting and seed."""
    short, long = (
        {(r["size"], r["classes"], r["seed"]): r["bits_per_parameter"] for r in rows if r["model"] == model}
        for model in MANTISSAS
    )
    both = [key for key in short if key in long]
    if not both:
        return []
    more, less = sum(long[key] > short[key] for key in both), sum(long[key] < short[key] for key in both)
    few, many = MANTISSAS.values()
    said = (
        f"float64 holds more bits a parameter than float32 in {more} of {len(both)} pairs of setting and seed, as "
        f"many in {len(both) - more - less} and fewer in {less}; the most is {max(long[key] for key in both):.3g}, "
        f"with {many} bits of mantissa, and {max(short[key] for key in both):.3g} with {few}."
    )
    against = " A longer mantissa holds nothing more, against the hypothesis that nearly all its bits are used."
    return [said + ("" if more else against)]


def _limits(twins: dict[int, tuple[Row, str]]) -> str:
    """What the best twins of a setting were given, and how many of them that or their steps limited."""
    loads = " or ".join(f"{load:g}" for load in sorted({row["load"] for row, _ in twins.values()}))
    ends = (row.get("ended_by") for row, _ in twins.values())
    said = f"given {loads} bits a parameter"
    for what, count in (
        ("held all that it was given", sum(end == "all right" for end in ends)),
        ("still learning", sum(why == "still learning" for _, why in twins.values())),
    ):
        said += f", {what} in {count} of {len(twins)} runs" if count else ""
    return said


def _answer(compared: list[tuple[Paired, list[str]]], findings: list[str], trained: Interval) -> Verdict:
    """A twin that may hold more than it did says nothing where the construction held more."""
    above, below = [why for one, why in compared if one.above], sum(one.below for one, _ in compared)
    sure = sum(not why for why in above)
    answer: Any = "partly" if sure or below else "open"
    answer = "yes" if sure == len(compared) else "no" if below == len(compared) else answer
    says = (
        f"In float32, like with like, the construction holds clearly more in {len(above)} of {len(compared)} "
        f"settings and clearly less in {below}; twins hold {trained} bits a parameter."
    )
    for what, told in (
        ("still learning", "twins still learned when their steps were spent"),
        ("held all that it was given", "twins held all that they were given"),
    ):
        if count := sum(what in why for why in above):
            says += f" In {count} of the {len(above)}, {told}, and may hold more."
    return Verdict(answer, says, tuple(findings))
