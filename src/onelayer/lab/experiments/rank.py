"""Rank: what a head of size s buys, in bits that tell contexts apart, and in training."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group

QUESTION = "What does a higher rank of the attention weights buy?"
HYPOTHESES = (
    "Among M contexts with s coordinates the nearest two are about M^(-2/s) of the span apart: 2 log2(M)/s bits "
    "per coordinate tell all contexts apart, so that rank 1 needs the most and is enough in float64.",
    "A trained model under a rank constraint fits as well, if not as fast.",
)
EXTRAS = ("torch",)
d, n, CLASSES = 8, 4, 16


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    sizes = (16, 64, 256) if quick else (16, 64, 256, 1024, 4096)
    made: list[Case] = [
        {"model": "constructed", "N": N, "rank": s, "steps": 0} for N in sizes for s in (1, 2, 3, 4, 6, d)
    ]
    ranks, N, steps = ((1, 2, 4, 16), 48, 600) if quick else ((1, 2, 3, 4, 8, 16), 96, 6000)
    return made + [{"model": "trained", "N": N, "rank": r, "steps": steps} for r in ranks]


def run(case: Case, seed: int) -> list[Row]:
    return _train_rows(case, seed) if case["model"] == "trained" else _construct_rows(case, seed)


def _construct_rows(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, case["N"], 5])
    X, Y = rng.standard_normal((case["N"], n, d)), rng.integers(0, CLASSES, (case["N"], n))
    model = memorize(X, Y, rank=case["rank"], mapping="temperature", dtype="float64", seed=seed, certify=False)
    ledger = {name: model.ledger.number(name) for name in ("gap", "bits_needed", "distinct", "margin")}
    return [
        {
            "contexts": int(ledger["distinct"]),
            "gap": ledger["gap"],
            "bits": ledger["bits_needed"] - 2,  # log2(span / gap): the ledger's are of a quarter of the gap
            "predicted": 2 * float(np.log2(ledger["distinct"])) / case["rank"],
            "margin": ledger["margin"],
            "parameters": model.n_parameters,
            "accuracy": float((model.predict(X, path="dense") == Y).mean()),
            "taken": None,
        }
    ]


def _train_rows(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, train_tuned

    rng = np.random.default_rng([seed, case["N"], 6])
    sets = np.array(list(combinations(range(24), n)))
    task = Task(sets[rng.permutation(len(sets))[: case["N"]]], rng.integers(0, CLASSES, (case["N"], n)))
    shape = Shape(16, hidden=64, rank=case["rank"])
    ended = train_tuned(shape, task, Budget(steps=case["steps"]), seed)
    nothing = dict.fromkeys(("contexts", "gap", "bits", "predicted", "margin"))
    said = {"parameters": count_parameters(shape, task), "accuracy": ended.accuracy, "taken": ended.steps}
    return [{**nothing, **said}]


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right) = figure(columns=3, width=13)
    built = [row for row in rows if row["model"] == "constructed"]
    for i, N in enumerate(sorted({row["N"] for row in built})):
        some = [row for row in built if row["N"] == N]
        line(left, interval_by_group(some, "rank", "bits"), f"{some[0]['contexts']:,} contexts", color=f"C{i}")
        predicted = interval_by_group(some, "rank", "predicted")
        left.plot(list(predicted), [p.mean for p in predicted.values()], color=f"C{i}", linestyle=":")
    left.plot([], [], color="grey", linestyle=":", label="2 log2(M) / s")
    left.set(xlabel="rank s", ylabel="bits that tell the nearest two apart", ylim=(0, None), title="constructed")
    left.legend()
    trained = [row for row in rows if row["model"] == "trained"]
    middle.set_ylim(min([0.9, *(row["accuracy"] for row in trained)]) - 0.03, 1.01)
    right.set_ylim(0, 1.1 * max([1, *(row["steps"] for row in trained)]))
    line(middle, interval_by_group(trained, "rank", "accuracy"), "trained", color="black")
    line(right, interval_by_group(trained, "rank", "taken"), "trained", color="black")
    ranks = sorted({row["rank"] for row in trained})
    for axes, name in ((middle, "share of right answers"), (right, "steps until all are right, or allowed")):
        axes.set(xscale="log", xlabel="rank of W_Q, W_K, W_V", ylabel=name, title="trained")
        axes.set_xticks(ranks, [str(r) for r in ranks], minor=False)
        axes.minorticks_off()
    return made


def verdict(rows: list[Row]) -> Verdict:
    built = [row for row in rows if row["model"] == "constructed"]
    slopes, findings = [], []
    for N in sorted({row["N"] for row in built}):
        some = [row for row in built if row["N"] == N]
        bits, first = interval_by_group(some, "rank", "bits"), some[0]["contexts"]
        listed = ", ".join(
            f"{bits[s]} at rank {s} ({2 * np.log2(first) / s:.3g} predicted)" for s in (1, 2, 4, d) if s in bits
        )
        findings.append(f"{first:,} contexts: bits per coordinate {listed}.")
    for seed in sorted({row["seed"] for row in built}):
        some = [row for row in built if row["seed"] == seed]
        if len(some) < 2:
            continue
        slopes.append(float(np.polyfit([r["predicted"] for r in some], [r["bits"] for r in some], 1)[0]))
    slope = interval(slopes)
    extra = interval(row["bits"] - row["predicted"] for row in built if row["rank"] == d)
    findings.append(
        f"Measured bits grow by {slope} for each bit predicted; at rank {d} they are {extra} above it, "
        "as the formula knows only the number of ids, not how they lie."
    )
    trained = [row for row in rows if row["model"] == "trained"]
    accuracy, taken = interval_by_group(trained, "rank", "accuracy"), interval_by_group(trained, "rank", "taken")
    listed = "; ".join(f"rank {s}: accuracy {accuracy[s]} after {taken[s]} steps" for s in accuracy)
    if trained:
        findings.append(f"Trained: {listed} (at most {trained[0]['steps']:,}).")
    spent = [bits.mean for s, bits in interval_by_group(built, "rank", "bits").items() if s in (1, d)]
    if len(spent) < 2:
        return Verdict("open", f"There are no constructed models of ranks 1 and {d}.", tuple(findings))
    exact = min(row["accuracy"] for row in built) == 1.0
    says = (
        f"Room: {spent[0]:.3g} bits a coordinate at rank 1, {spent[1]:.3g} at rank {d}; "
        f"{'no answer is lost at any rank' if exact else 'some answers are lost'} in float64."
    )
    return Verdict("partly" if exact else "open", says, tuple(findings))
