"""Capacity: how many bits of answers a parameter holds, built and trained, by the number of classes.

A trained model need not know an answer to hold something of it: what it holds is the entropy of all answers minus
what is left of it given the model (its cross-entropy), as in Morris et al.; a constructed model gives every answer
and holds all of it. Twins are given two or four bits a parameter and trained until their loss stops falling.
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
from onelayer.lab.statistics import Interval, Paired, interval, interval_by_group, paired, share, tally

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
#: Sequences at one step of training, fewer where they would have more logits than this.
MOST_ROWS, MOST_LOGITS = 128, 2**17
#: Steps of all rates and optimisers together until one of them is left.
CHOOSING = 8000
#: Bits a parameter that a twin of this size and so many classes is given, where 2 are not enough to fill it: it holds
#: less of more (measured with seed 0).
LOADS = {(8000, 256): 4.0, (32000, 256): 3.0}
#: The most steps of a twin, by its size.
STEPS = {2000: 36000, 8000: 36000, 32000: 12000}


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
        {"model": "trained", "size": size, "classes": C, "load": LOADS.get((size, C), 2.0)}
        | {"steps": 1000 if quick else STEPS[size]}
        for C in classes
        for size in sizes
        if size > 4 * C  # below, the last layer of a twin alone is larger
    ]
    return made


@cache
def all_sets() -> Any:
    return np.array(list(combinations(range(VOCABULARY), n)))


def facts(N: int, classes: int, seed: int) -> tuple[Any, Any]:
    """Different sets of 4 of 48 tokens, an answer at each; those of a smaller N come first."""
    rng = np.random.default_rng([seed, 31])
    return all_sets()[rng.permutation(len(all_sets()))[:N]], rng.integers(0, classes, (N, n))


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
    Y[0], Y[-1] = case["classes"] - 1, 0  # the last layer has an output for every class
    X[0, -1] = VOCABULARY - 1 if VOCABULARY - 1 not in X[0] else X[0, -1]
    task = Task(X, Y)
    shape = fill(Shape(1), task, case["size"])
    batch = min(MOST_ROWS, max(MOST_ROWS // 4, MOST_LOGITS // case["classes"]))
    check, patience = (25, 8) if N < 1000 else (100, 8) if N < 16000 else (250, 4)  # a count reads all answers
    budget = Budget(steps=case["steps"], choosing=CHOOSING, short=0.02, check=check, patience=patience, batch=batch)
    ended = train_tuned(shape, task, budget, seed)
    bits = max(0.0, N * n * (entropy - ended.loss / math.log(2)))
    return [_row(count_parameters(shape, task), ended.right, bits, 2, shape.hidden) | ended.end]


def _row(parameters: int, answers: int, bits: float, layers: int, width: int) -> Row:
    per = bits / parameters if parameters else 0.0
    said: Row = {"parameters": parameters, "answers": answers, "bits": bits, "bits_per_parameter": per}
    return said | {"layers": layers, "width": width}


def plot(rows: list[Row]) -> Any:
    every = sorted({row["classes"] for row in rows})
    made, all_axes = figure(columns=len(every), width=4 * len(every))
    for axes, C in zip(all_axes, every, strict=True):
        sizes = sorted({row["size"] for row in rows if row["classes"] == C})
        for name in ("float32", "float64", "trained"):
            mine = [row for size in sizes for row in best_of(rows, name, size, C).values()]
            label, style = ("trained", "-") if name == "trained" else (f"constructed, {name}", "--")
            line(axes, interval_by_group(mine, "size", "bits_per_parameter"), label, linestyle=style)
            if name == "trained" and (cut := [row for row in mine if learning(row)]):
                values = [row["bits_per_parameter"] for row in cut]
                axes.plot([row["size"] for row in cut], values, "k^", fillstyle="none", label="  still learning")
        axes.set(xscale="log", xlabel="parameters allowed", title=f"{C:,} classes", ylim=(0, None))
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.minorticks_off()
    all_axes[0].set_ylabel("bits of answers a parameter")
    all_axes[0].legend(fontsize="small")
    return made


def best_of(rows: list[Row], model: str, size: int, classes: int) -> dict[int, Row]:
    """By seed, the row that held most: there may be several loads and lengths of training."""
    found: dict[int, Row] = {}
    for row in rows:
        if (row["model"], row["size"], row["classes"]) == (model, size, classes):
            found[row["seed"]] = max(found.get(row["seed"], row), row, key=lambda each: each["bits_per_parameter"])
    return found


def verdict(rows: list[Row]) -> Verdict:
    findings, compared = [], []
    best: list[Row] = []
    for C in sorted({row["classes"] for row in rows}):
        for size in sorted({row["size"] for row in rows if row["classes"] == C}):
            held = {name: best_of(rows, name, size, C) for name in ("float32", "float64", "trained")}
            bits = {
                name: {seed: row["bits_per_parameter"] for seed, row in of_seed.items()}
                for name, of_seed in held.items()
            }
            listed = ", ".join(f"{name} {interval(values.values())}" for name, values in bits.items() if values)
            if held["trained"] and held["float32"]:
                found, cut = (
                    paired(bits["float32"], bits["trained"], ratio=True),
                    map(learning, held["trained"].values()),
                )
                compared.append((found, any(learning(row) for row in held["trained"].values())))
                listed += f" (still learning in {share(cut)}); float32 over trained {found}"
            best += held["trained"].values()
            findings.append(f"{C:,} classes, {size:,} parameters, bits a parameter: {listed}.")
    trained = [row for row in rows if row["model"] == "trained"]
    if not compared:
        return Verdict("open", "There are not both constructed and trained models to compare.", tuple(findings))
    findings.append(
        f"Twins (one layer, float32) were at their end in {share(r['ended'] for r in trained)} runs; ended by: "
        f"{tally(r.get('ended_by') for r in trained)}. In {share(r.get('by_noise') for r in trained)} the steps "
        "for choosing a rate were spent before rates differed by more than noise."
    )
    return _answer(compared, findings, interval(row["bits_per_parameter"] for row in best))


def _answer(compared: list[tuple[Paired, bool]], findings: list[str], trained: Interval) -> Verdict:
    above, below = sum(one.above for one, _ in compared), sum(one.below for one, _ in compared)
    cut = sum(one.above and still for one, still in compared)
    answer: Any = "yes" if above == len(compared) and not cut else "no" if below == len(compared) else "partly"
    says = (
        f"In float32, like with like, the construction holds clearly more in {above} of {len(compared)} settings "
        f"and clearly less in {below}; twins hold {trained} bits a parameter."
    )
    if cut:
        says += f" In {cut} of the {above}, twins still learned when their steps were spent, and may hold more."
    return Verdict(answer if above or below else "open", says, tuple(findings))
