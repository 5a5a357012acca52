"""Rank: how many bits tell contexts of a head apart, by the rank of its values and of its queries and keys.

The bits are those of the nearest two of M contexts of one token of each sequence, log2(span / distance) in the
largest coordinate, beside the same for points drawn at random, without attention. Contexts of two tokens of one
sequence are apart as their queries are, so that for them the rank of the queries counts; their own tokens tell them
apart as well. The other half of the law: trained models whose weights are rounded to b bits.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.boltzmann import softmax
from onelayer.errors import MissingExtraError
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group, tally

Array = NDArray[Any]

QUESTION = "What does a higher rank of the attention weights buy?"
HYPOTHESES = (
    "The nearest two of M contexts with s coordinates need 2 log2(M)/s + log2(span/sigma) + c bits a coordinate, "
    "as points drawn at random do: the rank of the values buys bits, that of queries and keys does not.",
    "A trained model of higher rank keeps its answers at fewer bits a weight.",
)
EARLIER = Earlier(
    "partly",
    "Boxes around the contexts needed fewer bits a coordinate at higher rank; no answer was lost in float64.",
    "boxes were found by halving, and are not the nearest pair; queries and keys had rank 1 whatever was asked "
    "for; there was no control; and twins had 600 steps.",
)
EXTRAS = ("torch", "sklearn")
d, n, CLASSES, WIDTH = 8, 4, 16, 16
#: Bits to which trained weights are rounded.
ROUNDED = (2, 3, 4, 5, 6, 8, 10, 12)


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    sizes = (64, 1024, 16384) if quick else (64, 256, 1024, 4096, 16384, 65536, 2**18, 10**6)
    made: list[Case] = [
        {"model": model, "N": N, "rank": s, "queries": r, "steps": 0}
        for N in sizes
        for s in (1, 2, 4, 8)
        for model, r in (("head", 1), ("head", d), ("control", 0))
    ]
    ranks, N, steps = ((1, 4, 16), 48, 1200) if quick else ((1, 2, 4, 8, 16), 96, 20000)
    return made + [{"model": "trained", "N": N, "rank": r, "queries": r, "steps": steps} for r in ranks]


def run(case: Case, seed: int) -> list[Row]:
    return _train_rows(case, seed) if case["model"] == "trained" else [_nearest(case, seed)]


def _nearest(case: Case, seed: int) -> Row:
    rng = np.random.default_rng([seed, case["N"], case["rank"], case["queries"]])
    M, s = case["N"], case["rank"]
    points = rng.standard_normal((M, s)) if case["model"] == "control" else contexts(case, rng)
    span, sigma = float(np.ptp(points, axis=0).max()), float(points.std(axis=0).mean())
    gap = nearest_pair(points)
    bits = float(np.log2(span / gap)) if gap > 0 else None
    law = 2 * float(np.log2(M)) / s
    about = {"contexts": M, "gap": gap, "bits": bits, "law": law, "spread": float(np.log2(span / sigma))}
    return about | dict.fromkeys(("b", "accuracy", "taken", "ended", "ended_by", "by_noise", "parameters"))


def contexts(case: Case, rng: np.random.Generator) -> Array:
    """[N, s] What a softmax head with random weights of these ranks gives at the first token of each sequence."""
    X = rng.standard_normal((case["N"], n, d))
    queries, keys = rng.standard_normal((2, d, case["queries"])) / d**0.5
    values = rng.standard_normal((d, case["rank"])) / d**0.5
    weights = softmax((X[:, :1] @ queries) @ (X @ keys).swapaxes(1, 2) / case["queries"] ** 0.5)
    found: Array = (weights @ (X @ values))[:, 0]
    return found


def nearest_pair(points: Array) -> float:
    """The smallest distance of two points in the largest coordinate."""
    if points.shape[1] == 1:
        return float(np.diff(np.sort(points[:, 0])).min())
    try:
        from scipy.spatial import KDTree
    except ImportError:
        raise MissingExtraError("The nearest pair", "scipy", "sklearn") from None
    return float(KDTree(points).query(points, k=2, p=np.inf)[0][:, 1].min())


def _train_rows(case: Case, seed: int) -> list[Row]:
    """Recall of a twin as it is, and with every tensor rounded to this many bits."""
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, predict, train_tuned

    rng = np.random.default_rng([seed, case["N"], 6])
    sets = np.array(list(combinations(range(24), n)))
    task = Task(sets[rng.permutation(len(sets))[: case["N"]]], rng.integers(0, CLASSES, (case["N"], n)))
    shape = Shape(WIDTH, hidden=4 * WIDTH, rank=case["rank"])
    ended = train_tuned(shape, task, Budget(steps=case["steps"]), seed)
    said = {**ended.end, "parameters": count_parameters(shape, task)}
    nothing = dict.fromkeys(("contexts", "gap", "bits", "law", "spread"))
    rows, whole = [{**nothing, "b": 32, "accuracy": ended.accuracy, **said}], ended.net
    kept = {name: tensor.detach().clone() for name, tensor in whole.tensors.items()}
    for b in ROUNDED:
        for name, tensor in kept.items():
            step = tensor.abs().max() / (2 ** (b - 1) - 1)
            whole.tensors[name] = tensor if step == 0 else (tensor / step).round() * step
        right = predict(whole, task.tokens).argmax(-1) == task.answers
        rows.append({**nothing, "b": b, "accuracy": float(right.mean()), **said})
    return rows


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=11)
    measured = [row for row in rows if row["model"] != "trained"]
    for name, marker in (("head, queries of rank 1", "o"), (f"head, queries of rank {d}", "s"), ("control", "x")):
        some = [row for row in measured if _name(row) == name and row["bits"] is not None]
        left.scatter(
            [r["law"] for r in some], [r["bits"] - r["spread"] for r in some], s=12, marker=marker, label=name
        )
    if measured:
        ends = [min(row["law"] for row in measured), max(row["law"] for row in measured)]
        left.plot(ends, [end - 1 for end in ends], color="grey", linestyle=":", label="2 log2(M)/s - 1")
    left.set(xlabel="2 log2(M) / s", ylabel="bits of the nearest two, minus log2(span/sigma)")
    trained = [row for row in rows if row["model"] == "trained" and row["b"] < 32]
    for r in sorted({row["rank"] for row in trained}):
        line(right, interval_by_group([row for row in trained if row["rank"] == r], "b", "accuracy"), f"rank {r}")
    right.set(xlabel="bits of a trained weight", ylabel="share of right answers", ylim=(0, 1.03))
    for axes, drawn in ((left, measured), (right, trained)):
        if drawn:
            axes.legend(fontsize="small")
    return made


def _name(row: Row) -> str:
    return "control" if row["model"] == "control" else f"head, queries of rank {row['queries']}"


def fit_law(rows: list[Row]) -> tuple[Any, Any]:
    """Slope and offset of bits - log2(span/sigma) against 2 log2(M)/s, over seeds."""
    slopes, offsets = [], []
    for seed in sorted({row["seed"] for row in rows}):
        some = [row for row in rows if row["seed"] == seed and row["bits"] is not None]
        if len({row["law"] for row in some}) > 1:
            a, c = np.polyfit([r["law"] for r in some], [r["bits"] - r["spread"] for r in some], 1)
            slopes.append(float(a))
            offsets.append(float(c))
    return interval(slopes), interval(offsets)


def verdict(rows: list[Row]) -> Verdict:
    findings, slopes = [], {}
    measured = [row for row in rows if row["model"] != "trained"]
    for name in dict.fromkeys(_name(row) for row in measured):
        some = [row for row in measured if _name(row) == name]
        slopes[name], offset = fit_law(some)
        most = max(row["contexts"] for row in some)
        bits = interval_by_group([row for row in some if row["contexts"] == most], "rank", "bits")
        listed = ", ".join(f"{found} at rank {s}" for s, found in bits.items())
        findings.append(
            f"{name}: slope {slopes[name]}, offset {offset}; {most:,} contexts: bits a coordinate {listed}."
        )
    trained = [row for row in rows if row["model"] == "trained"]
    for r in sorted({row["rank"] for row in trained}):
        some = [row for row in trained if row["rank"] == r]
        recall = interval_by_group(some, "b", "accuracy")
        listed = ", ".join(f"{recall[b]} at {b}" for b in (3, 4, 6, 8, 32) if b in recall)
        ended = tally(row["ended_by"] for row in some if row["b"] == 32)
        findings.append(f"Trained at rank {r}, recall by bits a weight: {listed}; ended by: {ended}.")
    heads = [slope for name, slope in slopes.items() if name != "control"]
    if not heads or "control" not in slopes or not all(slope.count for slope in slopes.values()):
        return Verdict("open", "There are not both heads and points drawn at random.", tuple(findings))
    says = (
        f"Bits a coordinate grow by {' and '.join(map(str, heads))} for each bit of 2 log2(M)/s (queries and keys "
        f"of rank 1 and {d}), {slopes['control']} without attention: the rank of the values decides."
    )
    lawful = all(0.8 < slope.mean < 1.2 for slope in slopes.values())
    return Verdict("yes" if lawful else "partly", says, tuple(findings))
