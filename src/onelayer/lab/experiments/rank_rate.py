"""A smoother by a softmax head of rank m: the first m singular functions of its logits, against trained ones.

Prompts are places and values; the wanted answer at a query is the mean of the values with weights exp(rho), where
rho(u, v) = sum_k k^-alpha 2 sin(2 pi k u) cos(2 pi k v) has singular values k^-alpha. Places lie on a grid, and a
head knows a row of numbers of each, so that its rank is all that limits it. Built: the first m terms, the nearest
of all logits of rank m (Eckart and Young). The published rate of its mean square is m^(1 - 2 alpha).

`learner("kernel")` is a smoother of another kind: its logits have rank d + 1, and a head of that rank gives it
exactly. No head is trained on it here; what stands for it are heads that are trained on smoothers of higher rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import doublings, factor_line, figure
from onelayer.lab.statistics import exponent, factors, interval, over

QUESTION = (
    "Does Adam find a softmax head of rank m that is as near to a smoother as the first m singular functions?"
)
HYPOTHESES = (
    "Yes, and it may be nearer: truncation is the nearest in logits, not in answers.",
    "The mean square of the built head falls as m^(1 - 2 alpha), the published exponent.",
)
EXTRAS = ("torch",)
Array = NDArray[Any]
#: Places of the grid, and terms of the logits, which are orthogonal there.
PLACES, TERMS = 128, 63
EXAMPLES, MEASURED = 16, 2**12
#: Relative: a mean square this near to the built one, or below it, is as good.
NEAR = 0.1


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    return [
        {"alpha": alpha, "rank": rank, "steps": 1500 if quick else 4000, "batch": 64}
        for alpha in (1.0, 1.5)
        for rank in ((2, 8) if quick else (2, 4, 8, 16))
    ]


def singular(alpha: float, rank: int) -> tuple[Array, Array]:
    """[PLACES, rank] Queries and keys of the first terms, each with the root of its singular value."""
    k, x = np.arange(1, rank + 1), np.arange(PLACES)[:, None] / PLACES
    root = np.sqrt(2 * k**-alpha)
    return root * np.sin(2 * np.pi * k * x), root * np.cos(2 * np.pi * k * x)


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts

    alpha, m = case["alpha"], case["rank"]
    U, V = singular(alpha, TERMS)
    spread = float(np.sqrt((U @ V.T).std() / np.sqrt(m)))  # logits begin as large as those that are wanted
    twin = prompts.start({"U": ((PLACES, m), spread / 2), "V": ((PLACES, m), spread / 2)}, seed)
    loss = _loss_of(U @ V.T)
    ended = prompts.search(twin, loss, _drawing(case["batch"]), case["steps"], seed)
    fresh = prompts.fresh(_drawing(MEASURED), seed)
    P, Q = singular(alpha, m)
    trained = prompts.numbers(twin["U"]) @ prompts.numbers(twin["V"]).T
    return [
        {
            "loss": prompts.measure(twin, loss, fresh),
            "built": prompts.measure(prompts.given({"U": P, "V": Q}), loss, fresh),
            "mean": prompts.measure(prompts.given({"U": 0 * P, "V": 0 * Q}), loss, fresh),
            "logits": _apart(trained, U @ V.T),
            "built_logits": _apart(P @ Q.T, U @ V.T),
            "cosine": prompts.cosine(_centred(trained), _centred(P @ Q.T)),
            **ended.row,
        }
    ]


def _centred(table: Array) -> Array:
    """What softmax sees of logits: a number that all keys of a query share changes nothing."""
    found: Array = table - table.mean(axis=1, keepdims=True)
    return found


def _apart(table: Array, wanted: Array) -> float:
    """Mean square of logits, relative to that of the wanted ones."""
    return float((_centred(table - wanted) ** 2).mean() / (_centred(wanted) ** 2).mean())


def _drawing(batch: int) -> Any:
    """Numbers of places of the query and of the examples, and values, uniform on [0, 1]."""
    from onelayer.lab.networks import framework

    torch = framework()

    def draw(generator: Any) -> Any:
        places = torch.randint(PLACES, (batch, EXAMPLES + 1), generator=generator)
        return places, torch.rand((batch, EXAMPLES), generator=generator)

    return draw


def _loss_of(wanted: Array) -> Any:
    """Mean square of the answer's distance to the smoother's."""
    from onelayer.lab.networks import framework

    torch = framework()
    table = torch.from_numpy(wanted.astype(np.float32))

    def loss(t: Any, tasks: Any) -> Any:
        places, values = tasks
        query, keys = places[:, :1], places[:, 1:]
        logits = (t["U"][query] * t["V"][keys]).sum(-1)
        weights, exact = (torch.softmax(part, -1) for part in (logits, table[query, keys]))
        return ((weights - exact) * values).sum(-1).square().mean()

    return loss


def _groups(rows: list[Row]) -> dict[float, list[Row]]:
    return {alpha: [row for row in rows if row["alpha"] == alpha] for alpha in sorted({r["alpha"] for r in rows})}


def plot(rows: list[Row]) -> Any:
    groups = _groups(rows)
    made, all_axes = figure(columns=len(groups), width=5 * len(groups))
    for axes, (alpha, some) in zip(all_axes, groups.items(), strict=True):
        factor_line(axes, factors(some, "rank", "built"), "first singular functions", linestyle="--")
        factor_line(axes, factors(some, "rank", "loss"), "trained")
        factor_line(axes, factors(some, "rank", "mean"), "the mean of all values", color="grey", linestyle=":")
        doublings(axes)
        axes.set(yscale="log", xlabel="rank", title=f"singular values k^-{alpha:g}")
    all_axes[0].set_ylabel("mean square of the distance to the smoother")
    all_axes[0].legend(fontsize="small")
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings = []
    for alpha, some in _groups(rows).items():
        slopes = [interval(_slopes(some, name)) for name in ("built", "loss")]
        findings.append(
            f"alpha {alpha:g}: mean squares go as the rank to the {slopes[0]} built and {slopes[1]} trained; "
            f"1 - 2 alpha is {1 - 2 * alpha:g}."
        )
        for rank in sorted({row["rank"] for row in some}):
            mine = [row for row in some if row["rank"] == rank]
            ratio = over(mine, "loss", "built")
            findings.append(
                f"alpha {alpha:g}, rank {rank}: trained over built {ratio}; logits off by "
                f"{interval(r['logits'] for r in mine)} of their mean square, built "
                f"{interval(r['built_logits'] for r in mine)}; cosine {interval(r['cosine'] for r in mine)}."
            )
    as_good, better = (sum(row["loss"] < factor * row["built"] for row in rows) for factor in (1 + NEAR, 1 - NEAR))
    says = (
        f"Trained heads are as near to the smoother as the singular functions of their rank (mean square within "
        f"{100 * NEAR:.0f}% or below) in {as_good} of {len(rows)} runs, and nearer by more than that in {better}."
    )
    answer, reason = endings.answer(rows, [row["loss"] < (1 + NEAR) * row["built"] for row in rows])
    findings.append(endings.said(rows))
    findings.append(
        'No head was trained on the smoother of learner("kernel"), which a head of rank d + 1 gives exactly; these '
        "heads, whose smoothers have a higher rank than they, stand for it."
    )
    return Verdict(answer, says + reason, tuple(findings))


def _slopes(rows: list[Row], name: str) -> list[float]:
    """The exponent of each seed, whose ranks share the tasks that measure."""
    by_seed = [[row for row in rows if row["seed"] == seed] for seed in sorted({row["seed"] for row in rows})]
    return [exponent([r["rank"] for r in some], [r[name] for r in some]).mean for some in by_seed]
