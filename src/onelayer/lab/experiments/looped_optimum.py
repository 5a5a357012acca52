"""Looped linear attention: does Adam come to the preconditioner that theory names, from wherever it starts?

One block, repeated L times, is w <- w + A mean (y - <w, x> + <u, x>) x. The best multiple a of the identity is
compared with what is trained; x and the true weights are normal, so that the query's error is |w - w*|^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import factor_line, figure
from onelayer.lab.statistics import factors, interval, over, share

QUESTION = "Does Adam find the best looped linear attention, a multiple of the identity, from every start?"
HYPOTHESES = (
    "Yes: the population's minimum has A near the inverse covariance and u = 0, and gradient flow finds it "
    "(Gatmiry et al.); with one loop a = n/(n + d + 1) exactly.",
)
EXTRAS = ("torch",)
MEASURED = 2**13
STARTS = {"small": (0.0, 0.02), "random": (0.0, 0.15), "identity": (1.0, 0.02)}
#: Relative: a loss this near is as good; A may be twice as far, and u as long, and the layer is still the same.
NEAR = 0.05


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    return [
        {
            "d": 10,
            "examples": n,
            "loops": L,
            "start": start,
            "steps": 600 if quick else 1500,
            "batch": 128,
        }
        for n in ((20,) if quick else (20, 100))
        for L in (1, 3)
        for start in STARTS
    ]


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts
    from onelayer.lab.networks import framework

    d, n, L = case["d"], case["examples"], case["loops"]
    middle, spread = STARTS[case["start"]]
    twin = prompts.start({"A": ((d, d), spread), "u": ((d,), spread)}, seed)
    twin["A"].data += middle * framework().eye(d)
    trained = prompts.search(twin, _looped(L), _drawing(d, n, case["batch"]), case["steps"], seed)
    fresh = prompts.fresh(_drawing(d, n, MEASURED), seed)

    def loss_of(a: float) -> float:
        return prompts.measure(prompts.given({"A": a * np.eye(d), "u": np.zeros(d)}), _looped(L), fresh)

    a = _smallest(loss_of, 0.2, 1.2)
    A, u = prompts.numbers(twin["A"]), prompts.numbers(twin["u"])
    return [
        {
            "loss": prompts.measure(twin, _looped(L), fresh),
            "symmetric": prompts.measure(prompts.given({"A": (A + A.T) / 2, "u": u}), _looped(L), fresh),
            "more_loops": prompts.measure(twin, _looped(2 * L), fresh),
            "built": loss_of(a),
            "a": a,
            "trained_a": float(np.trace(A) / d),
            "off": float(np.linalg.norm(A - a * np.eye(d)) / np.linalg.norm(a * np.eye(d))),
            "skew": float(np.linalg.norm(A - A.T) / 2 / np.linalg.norm(a * np.eye(d))),
            "u": float(np.linalg.norm(u)),
            **trained.row,
        }
    ]


def _drawing(d: int, n: int, batch: int) -> Any:
    """Second moments of n normal examples, and true weights."""
    from onelayer.lab.networks import framework

    torch = framework()

    def draw(generator: Any) -> Any:
        x = torch.randn((batch, n, d), generator=generator)
        return x.transpose(1, 2) @ x / n, torch.randn((batch, d), generator=generator)

    return draw


def _looped(loops: int) -> Any:
    def loss(t: Any, tasks: Any) -> Any:
        moments, true = tasks
        w = 0 * true
        for _ in range(loops):
            w = w + (moments @ (true - w + t["u"])[..., None])[..., 0] @ t["A"].T
        return ((w - true) ** 2).sum(1).mean()

    return loss


def _smallest(function: Any, low: float, high: float, turns: int = 24) -> float:
    """Where a function with one valley is smallest, by golden sections."""
    golden = (5**0.5 - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(turns):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return (low + high) / 2


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    most = max(row["examples"] for row in rows)
    for at, start in enumerate(sorted({row["start"] for row in rows})):
        some = [row for row in rows if row["start"] == start and row["examples"] == most]
        # Each a little to the right of the one before: their bars would hide one another.
        some = [{**row, "ratio": row["loss"] / row["built"], "loops": row["loops"] + 0.05 * at} for row in some]
        factor_line(left, factors(some, "loops", "ratio"), f"from {start}", marker="osD"[at % 3])
        factor_line(right, factors(some, "loops", "off"), f"from {start}", marker="osD"[at % 3])
    left.set(xlabel="loops", ylabel="loss over that of the best multiple of the identity")
    right.set(xlabel="loops", ylabel="distance of A to it, relative", yscale="log")
    for axes in (left, right):
        axes.set_title(f"{most} examples", fontsize="small")
        axes.set_xticks(sorted({row["loops"] for row in rows}))
    left.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings = []
    for n in sorted({row["examples"] for row in rows}):
        for L in sorted({row["loops"] for row in rows if row["examples"] == n}):
            some = [row for row in rows if (row["examples"], row["loops"]) == (n, L)]
            # Runs of a seed share their tasks, whichever start they have: these are not drawn again.
            drawn = list({row["seed"]: row for row in some}.values())
            findings.append(
                f"{n} examples, {L} {'loop' if L == 1 else 'loops'}: the best a is "
                f"{interval(r['a'] for r in drawn)} with loss {interval(r['built'] for r in drawn)}."
            )
            starts = sorted({row["start"] for row in some})
            findings += [_said(start, [row for row in some if row["start"] == start]) for start in starts]
    as_good, there = ([row["loss"] < (1 + NEAR) * row["built"] for row in rows], [found(row) for row in rows])
    by_setting: dict[tuple[Any, ...], list[bool]] = {}
    for row, good in zip(rows, as_good, strict=True):
        by_setting.setdefault((row["examples"], row["loops"], row["start"]), []).append(good)
    whole = sum(map(all, by_setting.values()))
    says = (
        f"Trained layers are as good as the best multiple of the identity (loss within {100 * NEAR:.0f}% or "
        f"below) in {sum(as_good)} of {len(rows)} runs, in all runs of {whole} of {len(by_setting)} settings, and "
        f"are it (A within {200 * NEAR:.0f}%, |u| below {NEAR:g}) in {sum(there)} runs."
    )
    answer, reason = endings.answer(rows, there)
    # Layers that are as good and other ones are part of what was asked for, where all runs of a setting are.
    answer = "partly" if answer != "yes" and whole else answer
    findings.append(endings.said(rows))
    return Verdict(answer, f"{says}{reason} {_said_of_symmetry(rows)}", tuple(findings))


def _said(start: str, rows: list[Row]) -> str:
    some: list[Row] = [{"symmetric": None, **row} for row in rows]  # which rows of an earlier version have not
    return (
        f"From {start}: trained a {interval(r['trained_a'] for r in some)}, loss over that of the best a "
        f"{over(some, 'loss', 'built')}, A off by {interval(r['off'] for r in some)} (its antisymmetric part "
        f"{interval(r['skew'] for r in some)}), |u| {interval(r['u'] for r in some)}; made symmetric, A has "
        f"{over(some, 'symmetric', 'loss')} times its loss; twice the loops at test time lower the loss in "
        f"{share(r['more_loops'] < r['loss'] for r in some)} runs."
    )


def _said_of_symmetry(rows: list[Row]) -> str:
    """A learner that is compiled needs a symmetric A; training may do better without."""
    skewed = [row for row in rows if row["skew"] > NEAR]
    worse = sum(row.get("symmetric", 0.0) > (1 + NEAR) * row["loss"] for row in skewed)
    beaten = sum(row["loss"] < (1 - NEAR) * row["built"] for row in skewed)
    return (
        f"A is not symmetric in {len(skewed)} (antisymmetric part above {NEAR:g} of it): made symmetric, as a "
        f"compiled one must be, it is worse by more than {100 * NEAR:.0f}% in {worse}; {beaten} of them are better "
        "than the best multiple of the identity by more than that."
    )


def found(row: Row) -> bool:
    """Whether a run is there: its loss, A and u."""
    return bool(row["loss"] < (1 + NEAR) * row["built"] and row["off"] < 2 * NEAR and row["u"] < NEAR)
