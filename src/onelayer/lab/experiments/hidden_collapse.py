"""Plain Adam: how often it merges contexts for good, and what the ordinary 1/sqrt(s) has to do with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.compile.memorize import memorize
from onelayer.lab.experiment import Case, Earlier, Preset, Row, Verdict
from onelayer.lab.merges import collapse
from onelayer.lab.pictures import figure, line
from onelayer.lab.statistics import interval, interval_by_group, share

QUESTION = "Does a trained attention layer lose contexts for good, where a constructed one cannot?"
HYPOTHESES = (
    "A softmax that saturates is a hardmax, and hardmax merges contexts (Theorem 1): what comes after sees one "
    "point, and no gradient comes back through weights of 0.",
    "A constructed layer keeps every two contexts apart by a gap that its ledger states.",
)
EARLIER = Earlier(
    "of three seeds, at high rates",
    "9 of 24 runs of Adam ended with contexts equal bit for bit; 132 of 139 wrong answers stood at such a context.",
    "the lowest rate was 1e-3, and few models are trained with more: rates from 3e-4 on are run, those that people "
    "use are counted apart, and three seeds give no answer any more.",
)
EXTRAS = ("torch",)
FACTS, TOKENS, LENGTH = 64, 8, 3
#: Rates up to this one are what models of this kind are trained with.
EVERYDAY = 1e-3


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    rates = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2) if quick else (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    common = {"width": 32 if quick else 64, "steps": 1000 if quick else 20000}
    made: list[Case] = [{"model": "constructed", "scaled": False, "rate": 0.0, **common}]
    made += [{"model": "trained", "scaled": s, "rate": rate, **common} for s in (True, False) for rate in rates]
    return made


def facts(seed: int) -> tuple[Any, Any]:
    """Different sequences of 3 of 8 tokens, the order counts, one answer each, all answers different."""
    rng = np.random.default_rng([seed, 64])
    codes = rng.permutation(TOKENS**LENGTH)[:FACTS]
    X = np.stack([codes // TOKENS**k % TOKENS for k in range(LENGTH)], axis=1)
    return X, rng.permutation(FACTS)


def run(case: Case, seed: int) -> list[Row]:
    X, Y = facts(seed)
    if case["model"] == "constructed":
        model = memorize(X, Y, positions=True, certify=False)
        right = int((model.predict(X, path="dense") == Y).sum())
        return [_row(right, 0, collapse(model, X, last=True, margin=np.inf, limit=1), 0, 0)]
    from onelayer.lab.trained import Budget, Net, Shape, Task, predict, train

    task = Task(X, Y, scope="last")
    shape = Shape(case["width"], hidden=4 * case["width"], positions=True, scaled=case["scaled"])
    budget = Budget(steps=case["steps"], decay="none", warm_up=1)
    ended = train(Net(shape, task, seed), task, budget, case["rate"], seed)
    equal = collapse(ended.net, X, last=True)
    wrong = predict(ended.net, X).argmax(-1) != Y
    merged = {i for merge in equal for i in (merge.a.i, merge.b.i)}
    blamed = sum(int(i) in merged for i in np.flatnonzero(wrong))
    return [
        _row(
            ended.right, ended.steps, collapse(ended.net, X, last=True, margin=np.inf, limit=1), len(equal), blamed
        )
        | ended.end
    ]


def _row(right: int, steps: int, nearest: Any, equal: int, blamed: int) -> Row:
    return {
        "right": right,
        "facts": FACTS,
        "taken": steps,
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


def _at(merged: list[Row]) -> str:
    rates = sorted({row["rate"] for row in merged})
    return f", at rates {', '.join(f'{rate:g}' for rate in rates)}" if rates else ""


def verdict(rows: list[Row]) -> Verdict:
    trained = [row for row in rows if row["model"] == "trained"]
    findings, spoiled = [], {}
    for scaled, name in ((True, "With"), (False, "Without")):
        some = [row for row in trained if row["scaled"] == scaled]
        stalled = [row for row in some if not row["exact"]]
        merged = [row for row in stalled if row["equal_pairs"]]
        spoiled[scaled] = len(merged)
        findings.append(
            f"{name} the usual 1/sqrt(s), {share(not row['exact'] for row in some)} runs stall below {FACTS} facts "
            f"(right: {interval(row['right'] for row in some)}), {len(merged)} of them with contexts at distance "
            f"exactly 0 ({interval(row['equal_pairs'] for row in some)} pairs a run){_at(merged)}."
        )
    usual = [row for row in trained if row["rate"] <= EVERYDAY]
    findings.append(
        f"At rates up to {EVERYDAY:g}, as people use them, {share(row['equal_pairs'] for row in usual)} runs merge "
        "contexts."
    )
    wrong = sum(row["facts"] - row["right"] for row in trained)
    blamed = sum(row["wrong_and_merged"] for row in trained)
    if wrong:
        findings.append(f"{blamed} of {wrong} wrong answers are at a context that another is bit-equal to.")
    built = [row for row in rows if row["model"] == "constructed"]
    nearest = min((row["nearest"] for row in built if row["nearest"] is not None), default=float("nan"))
    right = sum(row["right"] for row in built)
    findings.append(
        f"Constructed: {right} of {FACTS * len(built)} facts, no context merged; the nearest two are {nearest:.3g} "
        "apart."
    )
    by_rate = ", ".join(
        f"{sum(row['equal_pairs'] > 0 for row in some)} of {len(some)} at {rate:g}"
        for rate in sorted({row["rate"] for row in trained})
        if (some := [row for row in trained if row["rate"] == rate])
    )
    findings.append(f"Runs with merged contexts by rate, with and without 1/sqrt(s): {by_rate}.")
    where = "" if spoiled[True] else ", all of them without 1/sqrt(s)"
    count = spoiled[True] + spoiled[False]
    everyday = share(row["equal_pairs"] for row in usual)
    says = (
        f"{count} of {len(trained)} runs of Adam ended with contexts equal bit for bit{where if count else ''}; at "
        f"rates up to {EVERYDAY:g} {everyday}."
    )
    # A rate that nobody trains with shows that it can happen, not that it does.
    return Verdict("yes" if everyday.successes else "partly" if count else "no", says, tuple(findings))
