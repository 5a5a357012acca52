"""Rank: how many bits tell contexts of a head apart, by the rank of its values and of its queries and keys.

The bits are those of the nearest two of M contexts of one token of each sequence, log2(span / distance) in the
largest coordinate, beside the same for the values of these tokens, without attention (the control), and for points
drawn at random. A head and its control have the tokens and the W_V of one seed, size and rank: what they differ by
is due to attention. The control and random points differ by W_V, in which some directions are longer than others.
A million contexts are looked at up to rank 4; at rank 8, where their nearest pair takes minutes to find, 65,536.
The other half of the law: trained models whose weights are rounded to b bits, and the fewest that keep 95% of the
answers that the model has without rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.boltzmann import softmax
from onelayer.errors import MissingExtraError
from onelayer.lab.endings import still_learning
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import Interval, Paired, interval, interval_by_group, paired, tally

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
    "for; there was no control, and then one without W_V, so that what W_V costs counted as attention's; and twins "
    "had 600 steps.",
)
EXTRAS = ("torch", "sklearn")
d, n, CLASSES, WIDTH = 8, 4, 16, 16
#: Bits to which trained weights are rounded.
ROUNDED = tuple(range(2, 13))
#: Steps of all rates and optimisers together until one of them is left.
CHOOSING = 1200
#: The share of the answers before rounding that is to be kept.
KEPT = 0.95
#: The most contexts at a rank whose nearest pair is looked for; any number at other ranks.
MOST = {8: 65536}
#: What heads are compared with: they share tokens and W_V with the first, and nothing with the second.
CONTROL, POINTS = "values without attention", "points drawn at random"


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    sizes = (64, 1024, 16384) if quick else (64, 1024, 16384, 65536, 10**6)
    made: list[Case] = [
        {"model": model, "N": N, "rank": s, "queries": r, "steps": 0}
        for N in sizes
        for s in (1, 2, 4, 8)
        if MOST.get(s, N) >= N
        for model, r in (("head", 1), ("head", d), ("control", 0), ("points", 0))
    ]
    ranks, N, steps = ((1, 4, 16), 48, 1200) if quick else ((1, 2, 4, 8, 16), 48, 6000)
    return made + [{"model": "trained", "N": N, "rank": r, "queries": r, "steps": steps} for r in ranks]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _train if case["model"] == "trained" else _nearest


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _nearest(case: Case, seed: int) -> list[Row]:
    M, points = case["N"], place(case, seed)
    span, sigma = float(np.ptp(points, axis=0).max()), float(points.std(axis=0).mean())
    gap = nearest_pair(points)
    bits = float(np.log2(span / gap)) if gap > 0 else None
    law = 2 * float(np.log2(M)) / case["rank"]
    about = {"contexts": M, "gap": gap, "bits": bits, "law": law, "spread": float(np.log2(span / sigma))}
    return [about | dict.fromkeys(("b", "accuracy", "taken", "ended", "ended_by", "by_noise", "parameters"))]


def place(case: Case, seed: int) -> Array:
    """[N, s] What a softmax head with random weights of these ranks gives at the first token of each sequence, the
    values of that token without attention, or normal points. Tokens and W_V are those of a seed, size and rank."""
    drawn = [seed, case["N"], case["rank"]]
    rng = np.random.default_rng([*drawn, 1])
    if case["model"] == "points":
        return np.random.default_rng([*drawn, 2]).standard_normal((case["N"], case["rank"]))
    X = rng.standard_normal((case["N"], n, d))
    W_V = rng.standard_normal((d, case["rank"])) / d**0.5
    if case["model"] == "control":
        return np.asarray(X[:, 0] @ W_V)
    W_Q, W_K = rng.standard_normal((2, d, case["queries"])) / d**0.5
    logits = (X[:, :1] @ W_Q) @ (X @ W_K).swapaxes(1, 2) / case["queries"] ** 0.5
    return np.asarray((softmax(logits) @ (X @ W_V))[:, 0])


def nearest_pair(points: Array) -> float:
    """The smallest distance of two points in the largest coordinate."""
    if points.shape[1] == 1:
        return float(np.diff(np.sort(points[:, 0])).min())
    try:
        from scipy.spatial import KDTree
    except ImportError:
        raise MissingExtraError("The nearest pair", "scipy", "sklearn") from None
    return float(KDTree(points).query(points, k=2, p=np.inf)[0][:, 1].min())


def _train(case: Case, seed: int) -> list[Row]:
    """Recall of a twin as it is, and with every tensor rounded to this many bits."""
    from onelayer.lab.trained import Budget, Shape, Task, count_parameters, predict, train_tuned

    rng = np.random.default_rng([seed, case["N"], 6])
    sets = np.array(list(combinations(range(24), n)))
    task = Task(sets[rng.permutation(len(sets))[: case["N"]]], rng.integers(0, CLASSES, (case["N"], n)))
    shape = Shape(WIDTH, hidden=4 * WIDTH, rank=case["rank"])
    budget = Budget(steps=case["steps"], choosing=min(case["steps"], CHOOSING))
    ended = train_tuned(shape, task, budget, seed)
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
    # The kinds beside, not on, each other.
    kinds = ((POINTS, "+"), (CONTROL, "x"), ("head, queries of rank 1", "o"), (f"head, queries of rank {d}", "s"))
    for aside, (name, marker) in enumerate(kinds):
        some = [row for row in measured if _name(row) == name and row["bits"] is not None]
        x, y = [r["law"] + 0.25 * (aside - 1.5) for r in some], [r["bits"] - r["spread"] for r in some]
        if some:
            left.scatter(x, y, s=12, marker=marker, label=name)
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
    return {"control": CONTROL, "points": POINTS}.get(row["model"], f"head, queries of rank {row['queries']}")


def fit_law(rows: list[Row]) -> tuple[Interval, Interval]:
    """Slope and offset of bits - log2(span/sigma) against 2 log2(M)/s, one line for each seed.

    The intervals are over seeds: how far the few sizes and ranks lie from a line is not in them.
    """
    slopes, offsets = [], []
    for seed in sorted({row["seed"] for row in rows}):
        some = [row for row in rows if row["seed"] == seed and row["bits"] is not None]
        if len({row["law"] for row in some}) > 1:
            a, c = np.polyfit([r["law"] for r in some], [r["bits"] - r["spread"] for r in some], 1)
            slopes.append(float(a))
            offsets.append(float(c))
    return interval(slopes), interval(offsets)


def compare_bits(rows: list[Row], name: str, other: str, rank: int, spans: bool = False) -> Paired:
    """Bits of one kind minus those of another, pair by pair of seed and size, over seeds.

    Beyond log2(span/sigma), which the law has, or with it (``spans``). The sizes of one seed are one pair: their
    mean, of those sizes that both have.
    """
    some = [row for row in rows if row["model"] != "trained" and row["rank"] == rank]
    first, second = (
        {(row["seed"], row["N"]): _bits(row, spans) for row in some if _name(row) == kind} for kind in (name, other)
    )
    both = [key for key in first if second.get(key) is not None and first[key] is not None]
    seeds = sorted({seed for seed, _ in both})
    missing = len({seed for seed, _ in [*first, *second]}) - len(seeds)
    means = (np.mean([first[key] - second[key] for key in both if key[0] == seed]) for seed in seeds)  # type: ignore[operator]
    return Paired(interval(means), missing)


def _bits(row: Row, spans: bool) -> float | None:
    return None if row["bits"] is None else float(row["bits"] - (0.0 if spans else row["spread"]))


def _apart(rows: list[Row], heads: list[str], ranks: list[int], spans: bool) -> list[str]:
    """The comparisons of heads with their control that are clearly apart."""
    compared = {(name, s): compare_bits(rows, name, CONTROL, s, spans) for name in heads for s in ranks}
    return [f"{found} at rank {s} ({name})" for (name, s), found in compared.items() if found.above or found.below]


def fewest_bits(rows: list[Row]) -> dict[int, int | None]:
    """By seed, the fewest bits a weight from which on `KEPT` of the recall before rounding is kept."""
    found: dict[int, int | None] = {}
    for seed in sorted({row["seed"] for row in rows}):
        recall = {row["b"]: row["accuracy"] for row in rows if row["seed"] == seed}
        whole = recall.pop(32)
        lost = [b for b, share in recall.items() if share < KEPT * whole]
        found[seed] = min((b for b in recall if b > max(lost, default=0)), default=None)
    return found


def verdict(rows: list[Row]) -> Verdict:
    measured = [row for row in rows if row["model"] != "trained"]
    names = list(dict.fromkeys(_name(row) for row in measured))
    slopes = {name: fit_law([row for row in measured if _name(row) == name])[0] for name in names}
    findings = [_law(measured, name) for name in names]
    heads = [name for name in names if name not in (CONTROL, POINTS)]
    ranks = sorted({row["rank"] for row in measured})
    if CONTROL in names:
        findings += [_more(measured, name, CONTROL, ranks, "the same tokens and W_V") for name in heads]
    if {CONTROL, POINTS} <= set(names):
        findings.append(_more(measured, CONTROL, POINTS, ranks, "so much is due to W_V, not to attention"))
    if equal := [row for row in measured if row["gap"] == 0]:
        where = tally(f"{_name(row)} of rank {row['rank']}, {row['N']:,} contexts" for row in equal)
        findings.append(
            f"In {len(equal)} of {len(measured)} draws two points are equal, which no bits tell apart; bits and "
            f"slopes are of the others. Where: {where}."
        )
    said, kept = _trained([row for row in rows if row["model"] == "trained"])
    if not heads or CONTROL not in names or not all(slope.count for slope in slopes.values()):
        return Verdict("open", f"There are not both heads and {CONTROL}.", (*findings, *said))
    apart, with_spans = (_apart(measured, heads, ranks, spans) for spans in (False, True))
    drawn = f" and {slopes[POINTS]} for {POINTS}" if POINTS in names else ""
    says = (
        f"Bits a coordinate grow by {' and '.join(str(slopes[name]) for name in heads)} for each bit of "
        f"2 log2(M)/s (queries and keys of rank 1 and {d}), by {slopes[CONTROL]} for the same {CONTROL}{drawn}. "
        f"Of {len(heads) * len(ranks)} comparisons of both, pair by pair, {len(apart)} are clearly apart in bits "
        f"beyond log2(span/sigma){': ' + '; '.join(apart) + ';' if apart else ','} and {len(with_spans)} with that "
        f"term.{kept}"
    )
    lawful = all(0.8 < slope.mean < 1.2 for slope in slopes.values())
    answer: Any = "yes" if lawful and not apart else "partly" if lawful else "no"
    return Verdict(answer, says, (*findings, *said))


def _more(rows: list[Row], name: str, other: str, ranks: list[int], why: str) -> str:
    law, all_bits = (
        ", ".join(f"{compare_bits(rows, name, other, s, spans)} at rank {s}" for s in ranks)
        for spans in (False, True)
    )
    return (
        f"{name}, bits more than {other}, pair by pair of seed and size ({why}), beyond log2(span/sigma): {law}; "
        f"with it: {all_bits}."
    )


def _law(rows: list[Row], name: str) -> str:
    some = [row for row in rows if _name(row) == name]
    slope, offset = fit_law(some)
    bits = []
    for s in sorted({row["rank"] for row in some}):
        most = max(row["N"] for row in some if row["rank"] == s)
        found = interval(row["bits"] for row in some if (row["rank"], row["N"]) == (s, most))
        bits.append(f"{found} at rank {s} ({most:,} contexts)")
    return (
        f"{name}: slope {slope}, offset {offset} (lines through {len({row['law'] for row in some})} values of the "
        f"law, intervals over seeds only); bits a coordinate: {', '.join(bits)}."
    )


def _trained(rows: list[Row]) -> tuple[list[str], str]:
    """Recall by bits and the fewest that are enough, as findings; and the lowest rank against the highest."""
    findings, fewest = [], {}
    for r in sorted({row["rank"] for row in rows}):
        some = [row for row in rows if row["rank"] == r]
        whole, recall = [row for row in some if row["b"] == 32], interval_by_group(some, "b", "accuracy")
        listed = ", ".join(f"{recall[b]} at {b}" for b in (3, 4, 6, 8, 32) if b in recall)
        fewest[r] = fewest_bits(some)
        findings.append(
            f"Trained at rank {r}, recall by bits a weight: {listed}; fewest bits that keep {KEPT:.0%} of it: "
            f"{interval(fewest[r].values())}; ended by: {tally(row['ended_by'] for row in whole)}."
            f"{still_learning(whole)}"
        )
    if len(fewest) < 2:
        return findings, ""
    low, high = min(fewest), max(fewest)
    sizes = {row["rank"]: f"{row['parameters']:,} parameters" for row in rows}
    return findings, (
        f" To keep {KEPT:.0%} of recall, trained weights of rank {low} ({sizes[low]}) take "
        f"{interval(fewest[low].values())} bits each and those of rank {high} ({sizes[high]}) "
        f"{interval(fewest[high].values())}: pair by pair {paired(fewest[low], fewest[high])} more."
    )
