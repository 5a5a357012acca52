"""Linear attention on fixed data: Adam on a few heads against the convex fit, by how well data identify it.

A layer of two heads makes the answers, so that least squares over cubic features finds a layer that is right on all
data. One component of the tokens is made small, which lowers the least eigenvalue of the features' second moments:
the data then say little about what depends on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import factor_line, figure
from onelayer.lab.statistics import exponent, factors, geometric, interval
from onelayer.learners.cubic import coefficients_of, features

QUESTION = (
    "Does Adam reach the linear attention layer that least squares finds, however badly the data identify it?"
)
HYPOTHESES = (
    "Adam stays above the convex fit, by more where the least eigenvalue is small and with as few heads as the "
    "answers need (Yau et al. prove the convex way, and nothing about Adam).",
)
EXTRAS = ("torch",)
d, n, COUNT, TRUE = 3, 8, 512, 2
#: Share of the answers' variance below which a loss counts as reached, and below which it is only rounding.
REACHED, ROUNDING = 1e-4, 1e-20
#: Relative: coefficients this near to those that made the answers are the same.
NEAR = 0.05


def cases(preset: Preset) -> list[Case]:
    scales, steps = ((1.0, 0.1), 600) if preset == "quick" else ((1.0, 0.3, 0.1), 3000)
    return [{"heads": heads, "scale": scale, "steps": steps} for scale in scales for heads in (1, 2, 4)]


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts

    rng = np.random.default_rng([seed, 23])
    true = [(rng.normal(size=(d, 1)), rng.normal(size=(d, d))) for _ in range(TRUE)]
    p = coefficients_of(true)
    Z = rng.normal(size=(COUNT, n, d)) * np.array([1.0] * (d - 1) + [case["scale"]]) / np.sqrt(n)
    H = features(Z)
    Y = H @ p.reshape(-1)
    moments = np.linalg.eigvalsh(H.T @ H / COUNT)
    fitted = np.linalg.lstsq(H, Y, rcond=None)[0]
    twin = prompts.start({"V": ((case["heads"], d), d**-0.5), "Q": ((case["heads"], d, d), d**-0.5)}, seed)
    tasks = tuple(prompts.given({"Z": Z, "Y": Y}).values())
    trained = prompts.search(twin, _loss, lambda _: tasks, case["steps"], seed)
    V, Q = prompts.numbers(twin["V"]), prompts.numbers(twin["Q"])
    found = coefficients_of([(V[h][:, None], Q[h]) for h in range(case["heads"])]).reshape(-1)
    variance, size = float((Y**2).mean()), float(np.linalg.norm(p))
    return [
        {
            "least": float(moments[0] / moments[-1]),
            "loss": float(((H @ found - Y) ** 2).mean() / variance),
            "convex": float(((H @ fitted - Y) ** 2).mean() / variance),
            "apart": float(np.linalg.norm(found - p.reshape(-1)) / size),
            "convex_apart": float(np.linalg.norm(fitted - p.reshape(-1)) / size),
            **trained.row,
        }
    ]


def _loss(t: Any, tasks: Any) -> Any:
    """Mean squared error of sum_h (z_last Q_h z_i) (z_i V_h) over heads and tokens i."""
    Z, Y = tasks
    asked = (Z[:, -1] @ t["Q"]).permute(1, 2, 0)  # [N, d, H]
    return (((Z @ asked) * (Z @ t["V"].T)).sum((1, 2)) - Y).square().mean()


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    for at, heads in enumerate(sorted({row["heads"] for row in rows})):
        # Each a little to the right of the one before: their bars would hide one another.
        some = [{**row, "scale": row["scale"] * 1.05**at} for row in rows if row["heads"] == heads]
        label, marker = f"Adam, {heads} {'head' if heads == 1 else 'heads'}", "osD"[at % 3]
        factor_line(left, factors(some, "scale", "loss"), label, marker=marker)
        factor_line(right, factors(some, "scale", "apart"), label, marker=marker)
    factor_line(right, factors(_data(rows), "scale", "convex_apart"), "least squares", color="grey", linestyle=":")
    for axes, label in ((left, "loss, share of the variance"), (right, "distance of coefficients, relative")):
        axes.set(xscale="log", yscale="log", xlabel="size of one component of the tokens", ylabel=label)
    right.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings = []
    for scale in sorted({row["scale"] for row in rows}, reverse=True):
        some = [row for row in rows if row["scale"] == scale]
        data = _data(some)
        findings.append(
            f"A component of size {scale:g}: least eigenvalue {geometric(r['least'] for r in data)} of the "
            f"largest; least squares is off by {geometric(r['convex_apart'] for r in data)} in coefficients."
        )
        for heads in sorted({row["heads"] for row in some}):
            mine = [row for row in some if row["heads"] == heads]
            loss = factors(mine, "scale", "loss").get(scale)
            findings.append(
                f"Adam, {heads} {'head' if heads == 1 else 'heads'}: loss {loss} of the variance, coefficients off "
                f"by {interval(row['apart'] for row in mine)}."
            )
    enough = [row for row in rows if row["heads"] >= TRUE]
    if not enough:
        return Verdict("open", "There are no twins with as many heads as the answers need.", tuple(findings))
    findings.append(
        "With heads enough, the distance of coefficients grows as the least eigenvalue to the "
        f"{interval(_slopes(enough))}."
    )
    reached, data = [row["loss"] < REACHED for row in enough], _data(enough)
    exact = sum(row["convex"] < ROUNDING for row in data)
    there = [same(row) for row in enough]
    says = (
        f"The loss of least squares is below {ROUNDING:g} of the variance for {exact} of {len(data)} data. With as "
        f"many heads as the answers need or more, Adam's is below {REACHED:g} in {sum(reached)} of {len(reached)} "
        f"runs; {sum(there)} of these have the coefficients as well (within {100 * NEAR:.0f}%)."
    )
    answer, reason = endings.answer(enough, there)
    findings.append(endings.said(rows))
    return Verdict(answer, says + reason, tuple(findings))


def same(row: Row) -> bool:
    """Whether a run came to the layer that made the answers: its loss, and its coefficients."""
    return bool(row["loss"] < REACHED and row["apart"] < NEAR)


def _data(rows: list[Row]) -> list[Row]:
    """One row of each data: runs with other numbers of heads have the same."""
    return list({(row["scale"], row["seed"]): row for row in rows}.values())


def _slopes(rows: list[Row]) -> list[float]:
    """The exponent of each seed, whose runs share what makes the answers."""
    by_seed = [[row for row in rows if row["seed"] == seed] for seed in sorted({row["seed"] for row in rows})]
    return [exponent([r["least"] for r in some], [max(r["apart"], 1e-12) for r in some]).mean for some in by_seed]
