"""Low-rank and sparse: how many directions training changes a layer in, and which of its units can go.

Orthogonal patterns, of which a few decide by majority, and rows of handwritten digits; beside the trained layers
a built one, whose head has one direction less than patterns decide, and a compiled table of answers, whose weights
`prune` removes with a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.compile.prune import prune
from onelayer.errors import MissingExtraError
from onelayer.lab.endings import of_settings
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.patterns import BATCH, COUNTED, LENGTH, NAMES, PATTERNS, WIDTH, Layer, draw, hinge, tune
from onelayer.lab.pictures import figure, line
from onelayer.lab.sparsity import directions, energy, prune_curve
from onelayer.lab.statistics import interval_by_group, interval_of, paired, tally
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.network.blocks import evaluate

Array = NDArray[Any]

QUESTION = "Does training change one layer in as few directions as patterns decide, and can its smallest units go?"
HYPOTHESES = (
    "Updates of W_Q, W_K, W_V and W_O have as many directions as patterns decide (Li et al., 2406.17167).",
    "Neurons with small weights can go and the loss stays; those with large ones cannot.",
    "A layer needs one direction less than patterns decide: differences of counts.",
    "In a compiled table small weights matter as much as large ones; what can go is known by its meaning.",
)
EARLIER = Earlier(
    "partly",
    "All layers were trained at one rate for a fixed number of steps.",
    "every layer has the best of five rates, by the same rule for every rank; where its loss no longer falls it "
    "goes on from its best weights at half the rate, and it ends when its loss is next to none or halving brings "
    "nothing; runs that the budget ended do not say no.",
)
EXTRAS = ("torch", "sklearn")
NEURONS, ASKED = 60, 1000
#: Shares of units that are taken away, and an accuracy that counts as solved.
SHARES, SOLVED = (0.2, 0.4, 0.6, 0.8), 0.99
DIGITS = 10


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps = 200 if quick else 800
    twins = [(2, 1), (3, 1), (3, 2), (5, 1), (5, 2), (5, 4)]
    twins += [] if quick else [(2, 2), (3, 3), (5, 3), (5, 5)]
    parts = [("trained", k, WIDTH) for k in (2, 3, 5)] + [("twin", k, rank) for k, rank in twins]
    parts += [("built", k, k - 1) for k in (2, 3, 5)] + [("digits", DIGITS, 8), ("compiled", 0, 0)]
    return [{"part": part, "deciding": k, "rank": rank, "steps": steps} for part, k, rank in parts]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return {"built": _build, "compiled": _compile, "digits": _train_on_digits}.get(case["part"], _train)


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _patterns(seed: int) -> tuple[np.random.Generator, Array]:
    rng = np.random.default_rng([seed, 20])
    return rng, np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0][:PATTERNS]


def _train(case: Case, seed: int) -> list[Row]:
    (rng, patterns), deciding = _patterns(seed), case["deciding"]
    (X, y), counted = (draw(rng, deciding, ASKED, patterns) for _ in range(2))
    batches = [draw(rng, deciding, BATCH, patterns) for _ in range(case["steps"])]
    layer = tune(batches.__getitem__, counted, deciding, NEURONS, case["rank"], case["steps"], seed)
    shown = np.abs(X @ patterns[:deciding].T).max(axis=2) > 0.5
    return [{**_judge(layer, deciding, X, y), "attended": float((layer.attends(X) * shown).sum(axis=1).mean())}]


def _train_on_digits(case: Case, seed: int) -> list[Row]:
    (rng, _), (X, y) = _patterns(seed), digits()
    test, counted, rest = np.split(rng.permutation(len(X)), [len(X) // 4, len(X) // 3])
    picked = [rng.choice(rest, BATCH) for _ in range(case["steps"])]

    def batch(step: int) -> tuple[Array, Array]:
        return X[picked[step]], y[picked[step]]

    layer = tune(batch, (X[counted], y[counted]), DIGITS, NEURONS, case["rank"], case["steps"], seed)
    return [_judge(layer, DIGITS, X[test], y[test])]


@cache
def digits() -> tuple[Array, Array]:
    """Rows of 8 x 8 pixels as tokens."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtraError("The digits", "scikit-learn", "sklearn") from None
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8) / 16, y.astype(np.int64)


def _judge(layer: Layer, deciding: int, X: Array, y: Array) -> Row:
    scores = layer.scores(X)
    updates = {name: layer.after[name] - layer.before[name] for name in NAMES}
    row: Row = {"accuracy": float((scores.argmax(axis=1) == y).mean()), "hinge": hinge(scores, y)}
    row |= {"learning_rate": layer.rate, "at_an_end": int(layer.at_an_end)}
    row |= {"taken": layer.steps, "ended_by": layer.ended_by, "curve": layer.milestones}
    # Where no step was better than none, the best weights are the first ones, which have no direction to count.
    row |= {f"energy {name}": energy(each, deciding) if each.any() else None for name, each in updates.items()}
    row |= {f"directions {name}": directions(each) if each.any() else None for name, each in updates.items()}
    sizes = np.linalg.norm(layer.after["W_O"], axis=0)
    curve = prune_curve(sizes, SHARES, lambda kept: hinge(layer.scores(X, kept), y))
    return row | {f"{which} {gone:g}": value for (which, gone), value in curve.items()}


def _build(case: Case, seed: int) -> list[Row]:
    """Uniform attention, whose values are differences to the last pattern: nothing is trained."""
    (rng, patterns), deciding = _patterns(seed), case["deciding"]
    X, y = draw(rng, deciding, ASKED, patterns)
    extra = deciding - 1
    lift = np.concatenate([np.eye(WIDTH), np.zeros((WIDTH, extra))], axis=1)
    nothing = np.zeros((1, WIDTH + extra, extra))
    values = np.concatenate([(patterns[:extra] - patterns[extra]).T, np.zeros((extra, extra))])[None]
    into = np.concatenate([np.zeros((extra, WIDTH)), np.eye(extra)], axis=1)[None]
    heads = Attention(nothing, nothing, values, into)
    read = Linear(np.concatenate([np.zeros((WIDTH, extra)), np.eye(extra)]), np.zeros(extra))
    network = Transformer(heads, Embedding(lift=lift), readout=(read,))
    scores = evaluate(network, X)[:, 0]
    scores = np.concatenate([scores, np.zeros((len(X), 1))], axis=1)
    counts = (np.abs(X @ patterns[:deciding].T) > 0.5).sum(axis=1)  # [N, deciding]
    two = np.sort(counts, axis=1)[:, -2:]
    lead = np.sort(scores, axis=1)[:, -2:]
    off = np.abs((lead[:, 1] - lead[:, 0]) - (two[:, 1] - two[:, 0]) / LENGTH).max()
    return [{"accuracy": float((scores.argmax(axis=1) == y).mean()), "margin_off": float(off), "head": extra}]


def _compile(_: Case, seed: int) -> list[Row]:
    """A table of answers, 7 in 10 of them the same: units by the size of what they add, and what `prune` takes."""
    rng = np.random.default_rng([seed, 21])
    X = np.unique(rng.integers(0, 30, (150, 3)), axis=0)
    Y = np.where(rng.random(X.shape) < 0.7, 1, rng.integers(0, 5, X.shape))
    model = memorize(X, Y, positions=True, readout="plateaus", dtype="float64", seed=seed, certify=True)
    network = model.transformer
    last = network.readout[-1]

    def wrong(kept: Array) -> float:
        readout = (*network.readout[:-1], Linear(last.weight * kept[:, None], last.bias))
        found = evaluate(Transformer(network.attention, network.embedding, network.feedforward, readout), X)[..., 0]
        return float((np.rint(found) != Y).mean())

    curve = prune_curve(np.abs(last.weight).max(axis=1), SHARES, wrong)
    made = prune(model)
    zeros = sum(int((a == 0).sum()) for _, a in network.tensors())
    row: Row = {"parameters": model.n_parameters, "removed": made.n_removed / model.n_parameters}
    row |= {"verified": int(made.verify() == "VERIFIED"), "zeros": zeros / model.n_parameters}
    return [row | {f"{which} {gone:g}": value for (which, gone), value in curve.items()}]


def _by(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def plot(rows: list[Row]) -> Any:
    made, (left, middle, right) = figure(columns=3, width=13)
    for name in NAMES:
        points = interval_by_group(_by(rows, "trained"), "deciding", f"directions {name}")
        line(left, {k + 0.06 * NAMES.index(name): v for k, v in points.items()}, name)
    left.plot([2, 5], [2, 5], color="grey", linestyle="--", label="as many as decide")
    left.set(xlabel="patterns that decide", ylabel="directions with 99% of an update", ylim=(0, None))
    for part, name in (("trained", "patterns"), ("digits", "digits"), ("compiled", "compiled: share wrong")):
        for which, style in (("smallest", "-"), ("largest", "--")):
            curve = {gone: interval_of(_by(rows, part), f"{which} {gone:g}") for gone in SHARES}
            if _by(rows, part):
                line(middle, curve, f"{name}, {which} gone", linestyle=style)
    middle.set(xlabel="share of units gone", ylabel="hinge loss (compiled: share of wrong answers)", ylim=(-0.1, 6))
    for k in (2, 3, 5):
        some = [row for row in _by(rows, "twin") if row["deciding"] == k]
        points = interval_by_group(some, "rank", "accuracy")
        line(right, {rank + 0.05 * (k - 3): v for rank, v in points.items()}, f"{k} patterns decide")
    left.set_xticks([2, 3, 5])
    right.set(xlabel="rank of W_Q, W_K and W_V", ylabel="accuracy of the twin", ylim=(0, 1.03))
    for axes in (left, middle, right):
        axes.legend(fontsize=7)
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings: list[str] = []
    low, sparse = [], []
    trained = _by(rows, "trained")
    asked = sorted({row["deciding"] for row in trained})
    for k in asked:
        some = [row for row in trained if row["deciding"] == k]
        counts = [row[f"directions {name}"] for row in some for name in NAMES]
        low.append((some, all(count is not None and count <= k for count in counts)))
        kept, lost = ({r["seed"]: r[f"{which} 0.4"] for r in some} for which in ("smallest", "largest"))
        sparse.append((some, paired(kept, lost).below))
        findings.append(_trained_finding(k, some))
    findings += _twin_findings(_by(rows, "twin"), trained)
    if built := _by(rows, "built"):
        findings.append(
            f"Built, a head with one direction less than patterns decide: right in "
            f"{sum(r['accuracy'] == 1 for r in built)} of {len(built)} runs, and the lead is the difference of "
            f"counts over n (off by at most {max(r['margin_off'] for r in built):.2g})."
        )
    findings += _real_findings(rows) + _rates_finding(rows)
    if not low:
        return Verdict("open", "No layer was trained on patterns.", tuple(findings))
    numbers = ", ".join(str(k) for k in asked)
    answer, reason = of_settings([*low, *sparse])
    says = (
        f"With {numbers} deciding patterns, 99% of every update is in as many directions in "
        f"{sum(good for _, good in low)} of {len(low)} cases; the smallest two fifths of the neurons cost less "
        f"than the largest in {sum(good for _, good in sparse)} of {len(sparse)}.{reason}"
    )
    return Verdict(answer, says, tuple(findings))


def _trained_finding(k: int, some: list[Row]) -> str:
    energies = ", ".join(f"{name} {interval_of(some, f'energy {name}')}" for name in NAMES)
    counts = ", ".join(f"{name} {interval_of(some, f'directions {name}')}" for name in NAMES)
    ends = "; ".join(
        f"{round(100 * gone)}%: "
        + " / ".join(str(interval_of(some, f"{which} {gone:g}")) for which in ("smallest", "largest"))
        for gone in SHARES
    )
    return (
        f"{k} patterns decide: accuracy {interval_of(some, 'accuracy')} (ended by: {_ended(some)}); share of the "
        f"updates in {k} directions: {energies}; directions with 99%: {counts}; hinge loss "
        f"{interval_of(some, 'hinge')}, without the smallest / largest neurons {ends}; attention on tokens that "
        f"count {interval_of(some, 'attended')} ({COUNTED / LENGTH:.2f} if uniform)."
    )


def _ended(some: list[Row]) -> str:
    return tally(row.get("ended_by") for row in some)


def _rates_finding(rows: list[Row]) -> list[str]:
    """Where a rate beyond those that were tried may do better."""
    some = [row for row in rows if row.get("at_an_end") is not None]
    at = [row for row in some if row["at_an_end"]]
    where = tally(f"{row['part']}, rank {row['rank']}, rate {row['learning_rate']:g}:" for row in at)
    said = f"The best rate was an end of those tried in {len(at)} of {len(some)} trained runs"
    return [f"{said}{f' ({where})' if at else ''}."] if some else []


def _twin_findings(twins: list[Row], trained: list[Row]) -> list[str]:
    """Accuracy of limited ranks, beside that of layers of full rank on the same sequences."""
    findings = []
    for k, rank in sorted({(r["deciding"], r["rank"]) for r in twins}):
        some = [row for row in twins if (row["deciding"], row["rank"]) == (k, rank)]
        full = {row["seed"]: row["accuracy"] for row in trained if row["deciding"] == k}
        less = paired({row["seed"]: row["accuracy"] for row in some}, full)
        beside = f"; less that of full rank, seed by seed: {less}" if less.found.count else ""
        findings.append(
            f"Rank {rank} where {k} patterns decide: accuracy {interval_of(some, 'accuracy')}, at least {SOLVED:g} "
            f"in {sum(r['accuracy'] >= SOLVED for r in some)} of {len(some)} runs (ended by: {_ended(some)})"
            f"{beside}."
        )
    return findings


def _real_findings(rows: list[Row]) -> list[str]:
    findings = []
    if some := _by(rows, "digits"):
        counts = ", ".join(f"{name} {interval_of(some, f'directions {name}')}" for name in NAMES)
        findings.append(
            f"Digits, rows of pixels as tokens: accuracy {interval_of(some, 'accuracy')} on digits not "
            f"trained on (ended by: {_ended(some)}); directions with 99% of the updates, of 8: {counts}; hinge "
            f"loss {interval_of(some, 'hinge')}, without the smallest / largest two fifths "
            f"{interval_of(some, 'smallest 0.4')} / {interval_of(some, 'largest 0.4')}."
        )
    if some := _by(rows, "compiled"):
        findings.append(
            f"Compiled answers: wrong without the smallest / largest fifth of the plateaus "
            f"{interval_of(some, 'smallest 0.2')} / {interval_of(some, 'largest 0.2')}; `prune` "
            f"removes {interval_of(some, 'removed')} of the weights, VERIFIED in "
            f"{sum(bool(r['verified']) for r in some)} of {len(some)} runs; {interval_of(some, 'zeros')} were "
            "zeros before."
        )
    return findings
