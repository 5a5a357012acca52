"""Low-rank and sparse: how many directions training changes a layer in, and which of its units can go.

Orthogonal patterns, of which a few decide by majority, and rows of handwritten digits; beside the trained layers
a built one, whose head has one direction less than patterns decide, and a compiled table of answers, whose weights
`prune` removes with a proof.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.compile.prune import prune
from onelayer.errors import MissingExtraError
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.patterns import BATCH, LENGTH, NAMES, PATTERNS, WIDTH, draw, hinge, train
from onelayer.lab.pictures import figure, line
from onelayer.lab.sparsity import directions, energy, prune_curve
from onelayer.lab.statistics import interval, interval_by_group, paired, share
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
EXTRAS = ("torch", "sklearn")
NEURONS, ASKED, RATE = 60, 1000, 1.0
#: Shares of units that are taken away, and an accuracy that counts as solved.
SHARES, SOLVED = (0.2, 0.4, 0.6, 0.8), 0.99
DIGITS = 10


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps = 200 if quick else 2000
    twins = [(2, 1), (3, 1), (3, 2), (5, 1), (5, 2), (5, 4)]
    twins += [] if quick else [(2, 2), (3, 3), (5, 3), (5, 5)]
    parts = [("trained", k, WIDTH) for k in (2, 3, 5)] + [("twin", k, rank) for k, rank in twins]
    parts += [("built", k, k - 1) for k in (2, 3, 5)] + [("digits", DIGITS, 8), ("compiled", 0, 0)]
    return [{"part": part, "deciding": k, "rank": rank, "steps": steps} for part, k, rank in parts]


def run(case: Case, seed: int) -> list[Row]:
    part, deciding = case["part"], case["deciding"]
    if part == "compiled":
        return [_compiled(seed)]
    rng = np.random.default_rng([seed, 20])
    patterns = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0][:PATTERNS]
    if part == "built":
        return [_built(patterns, deciding, *draw(rng, deciding, ASKED, patterns))]
    if part == "digits":
        X, y = digits()
        order = rng.permutation(len(X))
        test, rest = order[: len(X) // 4], order[len(X) // 4 :]
        picked = [rng.choice(rest, BATCH) for _ in range(case["steps"])]
        layer = train(lambda s: (X[picked[s]], y[picked[s]]), deciding, NEURONS, 8, case["steps"], RATE, seed)
        return [_trained(layer, deciding, X[test], y[test])]
    batches = [draw(rng, deciding, BATCH, patterns) for _ in range(case["steps"])]
    layer = train(batches.__getitem__, deciding, NEURONS, case["rank"], case["steps"], RATE, seed)
    X, y = draw(rng, deciding, ASKED, patterns)
    found = _trained(layer, deciding, X, y)
    counted = np.abs(X @ patterns[:deciding].T).max(axis=2) > 0.5
    return [{**found, "attended": float((layer.attends(X) * counted).sum(axis=1).mean())}]


@cache
def digits() -> tuple[Array, Array]:
    """Rows of 8 x 8 pixels as tokens."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtraError("The digits", "scikit-learn", "sklearn") from None
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8) / 16, y.astype(np.int64)


def _trained(layer: Any, deciding: int, X: Array, y: Array) -> Row:
    scores = layer.scores(X)
    updates = {name: layer.after[name] - layer.before[name] for name in NAMES}
    row: Row = {"accuracy": float((scores.argmax(axis=1) == y).mean()), "hinge": hinge(scores, y)}
    row |= {f"energy {name}": energy(update, deciding) for name, update in updates.items()}
    row |= {f"directions {name}": directions(update) for name, update in updates.items()}
    sizes = np.linalg.norm(layer.after["W_O"], axis=0)
    curve = prune_curve(sizes, SHARES, lambda kept: hinge(layer.scores(X, kept), y))
    return row | {f"{which} {gone:g}": value for (which, gone), value in curve.items()}


def _built(patterns: Array, deciding: int, X: Array, y: Array) -> Row:
    """Uniform attention, whose values are differences to the last pattern: nothing is trained."""
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
    return {"accuracy": float((scores.argmax(axis=1) == y).mean()), "margin_off": float(off), "head": extra}


def _compiled(seed: int) -> Row:
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
    return {
        "parameters": model.n_parameters,
        "removed": made.n_removed / model.n_parameters,
        "verified": int(made.verify() == "VERIFIED"),
        "zeros": zeros / model.n_parameters,
        **{f"{which} {gone:g}": value for (which, gone), value in curve.items()},
    }


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
            curve = {gone: interval(r[f"{which} {gone:g}"] for r in _by(rows, part)) for gone in SHARES}
            if _by(rows, part):
                line(middle, curve, f"{name}, {which} gone", linestyle=style)
    middle.set(
        xlabel="share of units gone", ylabel="hinge loss (compiled: share of wrong answers)", ylim=(-0.1, 4.2)
    )
    for k in (2, 3, 5):
        some = [row for row in _by(rows, "twin") if row["deciding"] == k]
        line(right, interval_by_group(some, "rank", "accuracy"), f"{k} patterns decide")
    left.set_xticks([2, 3, 5])
    right.set(xlabel="rank of W_Q, W_K and W_V", ylabel="accuracy of the twin", ylim=(0, 1.03))
    for axes in (left, middle, right):
        axes.legend(fontsize=7)
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, low, sparse = [], [], []
    asked = sorted({row["deciding"] for row in _by(rows, "trained")})
    for k in asked:
        some = [row for row in _by(rows, "trained") if row["deciding"] == k]
        low.append(all(row[f"directions {name}"] <= k for row in some for name in NAMES))
        energies = ", ".join(f"{name} {interval(row[f'energy {name}'] for row in some)}" for name in NAMES)
        kept, lost = ({r["seed"]: r[f"{which} 0.4"] for r in some} for which in ("smallest", "largest"))
        sparse.append(paired(kept, lost).below)
        ends = "; ".join(
            f"{round(100 * gone)}%: {interval(r[f'smallest {gone:g}'] for r in some)} / "
            f"{interval(r[f'largest {gone:g}'] for r in some)}"
            for gone in SHARES
        )
        findings.append(
            f"{k} patterns decide: accuracy {interval(r['accuracy'] for r in some)}; share of the updates in {k} "
            f"directions: {energies}; hinge loss {interval(r['hinge'] for r in some)}, without the smallest / "
            f"largest neurons {ends}; attention on tokens that count {interval(r['attended'] for r in some)} "
            f"({7 / LENGTH:.2f} if uniform)."
        )
    for row_group in sorted({(r["deciding"], r["rank"]) for r in _by(rows, "twin")}):
        some = [row for row in _by(rows, "twin") if (row["deciding"], row["rank"]) == row_group]
        findings.append(
            f"Rank {row_group[1]} where {row_group[0]} patterns decide: accuracy "
            f"{interval(r['accuracy'] for r in some)}, at least {SOLVED:g} in "
            f"{share(r['accuracy'] >= SOLVED for r in some)} runs."
        )
    if built := _by(rows, "built"):
        findings.append(
            f"Built, a head with one direction less than patterns decide: right in "
            f"{share(r['accuracy'] == 1 for r in built)} runs, and the lead is the difference of counts over n "
            f"(off by at most {max(r['margin_off'] for r in built):.2g})."
        )
    findings += _real_findings(rows)
    if not low:
        return Verdict("open", "No layer was trained on patterns.", tuple(findings))
    numbers = ", ".join(str(k) for k in asked)
    says = (
        f"With {numbers} deciding patterns, 99% of every update is in as many directions in {sum(low)} of "
        f"{len(low)} cases; the smallest two fifths of the neurons cost less than the largest in {sum(sparse)} of "
        f"{len(sparse)}."
    )
    good = [*low, *sparse]
    return Verdict("yes" if all(good) else "partly" if any(good) else "no", says, tuple(findings))


def _real_findings(rows: list[Row]) -> list[str]:
    findings = []
    if some := _by(rows, "digits"):
        counts = ", ".join(f"{name} {interval(row[f'directions {name}'] for row in some)}" for name in NAMES)
        findings.append(
            f"Digits, rows of pixels as tokens: accuracy {interval(r['accuracy'] for r in some)} on digits not "
            f"trained on; directions with 99% of the updates, of 8: {counts}; hinge loss "
            f"{interval(r['hinge'] for r in some)}, without the smallest / largest two fifths "
            f"{interval(r['smallest 0.4'] for r in some)} / {interval(r['largest 0.4'] for r in some)}."
        )
    if some := _by(rows, "compiled"):
        findings.append(
            f"Compiled answers: wrong without the smallest / largest fifth of the plateaus "
            f"{interval(r['smallest 0.2'] for r in some)} / {interval(r['largest 0.2'] for r in some)}; `prune` "
            f"removes {interval(r['removed'] for r in some)} of the weights, VERIFIED in "
            f"{share(r['verified'] for r in some)} runs; {interval(r['zeros'] for r in some)} were zeros before."
        )
    return findings
