"""Adam at a given rate: how often it merges contexts for good, and what the ordinary 1/sqrt(s) has to do with it.

"For good" means at the weights of the lowest loss, when every answer is right or the loss has stopped falling; runs
that the budget of steps ended are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.lab.endings import answer, said
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.merges import collapse
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import geometric_of, interval_by_group, interval_of, share, tally

QUESTION = "Does a trained attention layer lose contexts for good, where a constructed one cannot?"
HYPOTHESES = (
    "A softmax that saturates is a hardmax, and hardmax merges contexts (Theorem 1): what comes after sees one "
    "point, and no gradient comes back through weights of 0.",
    "A constructed layer keeps every two contexts apart by a gap that its ledger states.",
)
EARLIER = Earlier(
    "of three seeds, at high rates",
    "9 of 24 runs of Adam ended with contexts equal bit for bit; 132 of 139 wrong answers stood at such a context.",
    "the lowest rate was 1e-3, and few models are trained with more: lower ones are run, those that people use are "
    "counted apart, and three seeds give no answer any more. Runs had a fixed number of steps at one rate, whether "
    "or not they still learned; now the rate is halved until the loss has stopped falling.",
)
EXTRAS = ("torch",)
FACTS, TOKENS, LENGTH = 64, 8, 3
#: Rates up to this one are what models of this kind are trained with.
EVERYDAY = 1e-3


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    rates = (3e-4, 1e-3, 1e-2, 3e-2) if quick else (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    width, steps = (32, 1500) if quick else (64, 6000)
    made: list[Case] = [{"model": "constructed", "scaled": False, "rate": 0.0, "width": width, "steps": 0}]
    return made + [
        {"model": "trained", "scaled": scaled, "rate": rate, "width": width, "steps": steps}
        for scaled in (True, False)
        for rate in rates
    ]


def facts(seed: int) -> tuple[Any, Any]:
    """Different sequences of 3 of 8 tokens, the order counts, one answer each, all answers different."""
    rng = np.random.default_rng([seed, 64])
    codes = rng.permutation(TOKENS**LENGTH)[:FACTS]
    X = np.stack([codes // TOKENS**k % TOKENS for k in range(LENGTH)], axis=1)
    return X, rng.permutation(FACTS)


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _train if case["model"] == "trained" else _construct


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _construct(_: Case, seed: int) -> list[Row]:
    X, Y = facts(seed)
    model = memorize(X, Y, positions=True, certify=False)
    right = int((model.predict(X, path="dense") == Y).sum())
    return [_row(right, collapse(model, X, last=True, margin=np.inf, limit=1), 0, 0)]


def _train(case: Case, seed: int) -> list[Row]:
    from onelayer.lab.trained import Budget, Net, Shape, Task, predict, train

    X, Y = facts(seed)
    task = Task(X, Y, scope="last")
    shape = Shape(case["width"], hidden=4 * case["width"], positions=True, scaled=case["scaled"])
    ended = train(Net(shape, task, seed), task, Budget(steps=case["steps"], warm_up=1), case["rate"], seed)
    equal = collapse(ended.net, X, last=True)
    wrong = predict(ended.net, X).argmax(-1) != Y
    merged = {i for merge in equal for i in (merge.a.i, merge.b.i)}
    blamed = sum(int(i) in merged for i in np.flatnonzero(wrong))
    nearest = collapse(ended.net, X, last=True, margin=np.inf, limit=1)
    return [_row(ended.right, nearest, len(equal), blamed) | ended.end]


def _row(right: int, nearest: Any, equal: int, blamed: int) -> Row:
    return {
        "right": right,
        "facts": FACTS,
        "exact": int(right == FACTS),
        "equal_pairs": equal,  # bit-equal after attention
        "nearest": nearest[0].distance if nearest else None,
        "wrong_and_merged": blamed,
    }


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    for scaled, name in ((True, "with 1/sqrt(s)"), (False, "without 1/sqrt(s)")):
        some = [row for row in rows if row["model"] == "trained" and row["scaled"] == scaled]
        for axes, value in ((left, "right"), (right, "equal_pairs")):  # bars beside, not on, each other
            points = interval_by_group(some, "rate", value)
            line(axes, {rate * (1.0 if scaled else 1.05): point for rate, point in points.items()}, name)
    left.axhline(FACTS, color="grey", linestyle="--", label="constructed")
    scale = "log" if any(row["rate"] for row in rows) else "linear"
    left.set(xscale=scale, xlabel="learning rate", ylabel=f"right answers of {FACTS}", ylim=(0, FACTS + 3))
    right.set(xscale=scale, xlabel="learning rate", ylabel="pairs of facts equal bit for bit after attention")
    right.set_ylim(bottom=-0.5)
    left.legend(loc="lower left")
    right.legend(loc="upper left")
    return made


def verdict(rows: list[Row]) -> Verdict:
    trained = [row for row in rows if row["model"] == "trained"]
    findings = [_by_rate(trained, scaled) for scaled in (True, False)]
    usual = [row for row in trained if row["rate"] <= EVERYDAY]
    findings.append(
        f"Seeds with a run that merges contexts at rates up to {EVERYDAY:g}, as people use them: with 1/sqrt(s) "
        f"{_merging(usual, True)}; without it {_merging(usual, False)}."
    )
    wrong = sum(row["facts"] - row["right"] for row in trained)
    blamed = sum(row["wrong_and_merged"] for row in trained)
    if wrong:
        findings.append(f"{blamed} of {wrong} wrong answers are at a context that another is bit-equal to.")
    built = [row for row in rows if row["model"] == "constructed"]
    apart = [row for row in trained if not row["equal_pairs"]]
    right = sum(row["right"] for row in built)
    findings.append(
        f"Constructed: {right} of {FACTS * len(built)} facts, no context merged; the distance of the nearest two "
        f"is {_nearest(built)}. Trained, in the {len(apart)} of {len(trained)} runs where none are merged: "
        f"{_nearest(apart)}."
    )
    findings.append(said(trained))
    if not usual:
        return Verdict("open", "No run had a rate that people use.", tuple(findings))
    # Whether Adam loses contexts: "no" takes runs that were at their end.
    everyday, reason = answer(usual, [bool(row["equal_pairs"]) for row in usual])
    count = sum(row["equal_pairs"] > 0 for row in trained)
    where = ", all of them without 1/sqrt(s)" if count and not _merging_runs(trained, True) else ""
    says = (
        f"{count} of {len(trained)} runs of Adam ended with contexts equal bit for bit{where}; at rates up to "
        f"{EVERYDAY:g} {len(_merging_runs(usual))} of {len(usual)} did, and {_seeds(usual)} seeds had such a run."
    )
    # A rate that nobody trains with shows that it can happen, not that it does.
    if everyday in ("yes", "partly"):
        return Verdict("yes", says, tuple(findings))
    return Verdict("partly" if count else everyday, says + reason, tuple(findings))


def _merging_runs(rows: list[Row], scaled: bool | None = None) -> list[Row]:
    return [row for row in rows if row["equal_pairs"] and scaled in (None, row["scaled"])]


def _seeds(rows: list[Row]) -> str:
    """How many seeds merged contexts at one rate or another: runs of one seed are no trials of their own."""
    merging = {row["seed"] for row in _merging_runs(rows)}
    return str(share(seed in merging for seed in sorted({row["seed"] for row in rows})))


def _merging(rows: list[Row], scaled: bool) -> str:
    some = [row for row in rows if row["scaled"] == scaled]
    return f"{_seeds(some)}, in {len(_merging_runs(some))} of {len(some)} runs"


def _nearest(rows: list[Row]) -> str:
    """The mean over seeds of the distance of the nearest two contexts, and the least of all runs."""
    least = min((row["nearest"] for row in rows if row["nearest"] is not None), default=float("nan"))
    return f"{geometric_of(rows, 'nearest')} in the geometric mean over seeds and {least:.3g} at least"


def _by_rate(rows: list[Row], scaled: bool) -> str:
    """How often runs stall, and merge contexts, at each rate, with the interval over its seeds."""
    some = [row for row in rows if row["scaled"] == scaled]
    stalled = [row for row in some if not row["exact"]]
    by_rate = ", ".join(
        f"{share(row['equal_pairs'] for row in some if row['rate'] == rate)} at {rate:g}"
        for rate in sorted({row["rate"] for row in some})
    )
    return (
        f"{'With' if scaled else 'Without'} the usual 1/sqrt(s), {len(stalled)} of {len(some)} runs stall below "
        f"{FACTS} facts (right: {interval_of(some, 'right')}), {len(_merging_runs(stalled))} of them "
        f"with contexts at distance exactly 0. Runs with such contexts by rate: {by_rate}; ended by: "
        f"{tally(row.get('ended_by') for row in some)}."
    )
