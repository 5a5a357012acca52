"""Von Oswald's twin: one layer of linear attention, trained on linear regression in its prompt.

Tokens are (x, y), the query is (x, 0), and examples are the keys. The constructed layer is one gradient step with
the step size that `learner("gd", optimal=N)` proves to be the best of all linear attention layers, of any heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer.compile.learner import learner
from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import factor_line, figure
from onelayer.lab.statistics import factors, interval, over
from onelayer.learners.cubic import coefficients_of

QUESTION = "Does Adam find the gradient step that is proved to be the best linear attention layer?"
HYPOTHESES = (
    "Yes: the risk is a convex quadratic in the layer's coefficients, and one head is enough for its minimum "
    "(von Oswald et al. saw the same function after training).",
)
EXTRAS = ("torch",)
LOW, HIGH = -0.5, 0.5
MEASURED = 2**14
#: Two layers are called the same above this cosine of their coefficients, and within this share of the risk.
SAME, NEAR = 0.99, 0.01


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    sizes, steps, batch = ((10,), (300, 1500), 384) if quick else ((5, 10, 20), (300, 2500), 384)
    made: list[Case] = [{"d": d, "examples": 10, "model": "built", "steps": 0, "batch": 0} for d in sizes]
    twin = {"examples": 10, "model": "trained", "batch": batch}
    return made + [{"d": d, "steps": many, **twin} for d in sizes for many in steps]


def computes(case: Case) -> Callable[[Case, int], list[Row]]:
    return _build if case.get("model") == "built" else _train


def run(case: Case, seed: int) -> list[Row]:
    return computes(case)(case, seed)


def _build(case: Case, seed: int) -> list[Row]:
    """The step that is proved to be the best, on the prompts that measure twins of this seed."""
    from onelayer.lab import prompts

    d, N = case["d"], case["examples"]
    eta = -float(learner("gd", d=d, low=LOW, high=HIGH, steps=1, optimal=N).transformer.attention.W_V[0, d, 0])
    fresh = prompts.fresh(_drawing(d, N, MEASURED), seed)
    loss = prompts.measure(prompts.given(_step(d, eta)), _loss, fresh)
    return [{"loss": loss, "eta": eta, "cosine": None}]


def _step(d: int, eta: float) -> dict[str, Any]:
    x, y = np.diag([1.0] * d + [0.0]), np.eye(d + 1)[:, d:]
    return {"W_Q": x, "W_K": x, "W_V": eta * np.diag([0.0] * d + [1.0]), "W_O": y}


def _train(case: Case, seed: int) -> list[Row]:
    """A layer of the same shape; ``eta`` is that of the step that has coefficients of the same size."""
    from onelayer.lab import prompts

    d, N = case["d"], case["examples"]
    w = d + 1
    sizes = dict.fromkeys(("W_Q", "W_K", "W_V"), ((w, w), w**-0.5)) | {"W_O": ((w, 1), w**-0.5)}
    twin = prompts.start(sizes, seed)
    trained = prompts.search(twin, _loss, _drawing(d, N, case["batch"]), case["steps"], seed)
    fresh = prompts.fresh(_drawing(d, N, MEASURED), seed)
    p, q = _map(_arrays(twin)), _map(_step(d, 1.0))
    found = {"loss": prompts.measure(twin, _loss, fresh), "cosine": prompts.cosine(p, q)}
    size = float(np.sqrt((p * p).sum() / (q * q).sum()))
    return [{**found, "eta": size, **trained.row}]


def _drawing(d: int, N: int, batch: int) -> Any:
    from onelayer.lab.networks import framework

    torch = framework()

    def draw(generator: Any) -> Any:
        x = torch.rand((batch, N + 1, d), generator=generator) * (HIGH - LOW) + LOW
        w = torch.randn((batch, d, 1), generator=generator)
        return torch.cat([x, x @ w], 2)

    return draw


def _loss(t: Any, prompts: Any) -> Any:
    """Half the mean squared error of the query's answer, as the paper's code has it."""
    wanted, N = prompts[:, -1, -1:], prompts.shape[1] - 1
    query = prompts[:, -1:].clone()
    query[..., -1] = 0
    keys = prompts[:, :-1]
    scores = (query @ t["W_Q"]) @ (keys @ t["W_K"]).transpose(1, 2)  # [B, 1, N]
    found = (scores @ (keys @ (t["W_V"] @ t["W_O"])))[:, 0] / N
    return ((found - wanted) ** 2).mean() / 2


def _arrays(twin: Any) -> dict[str, Any]:
    from onelayer.lab.prompts import numbers

    return {name: numbers(tensor) for name, tensor in twin.items()}


def _map(t: dict[str, Any]) -> Any:
    """Coefficients of what the layer computes; those of the query's y, which is 0, say nothing."""
    return coefficients_of([(t["W_V"] @ t["W_O"], t["W_Q"] @ t["W_K"].T)])[:, :-1]


def _pairs(rows: list[Row]) -> list[Row]:
    """Every trained layer beside the built one of its prompts."""
    built = {(row["d"], row["seed"]): row for row in rows if row.get("model") == "built"}
    trained = [row for row in rows if row.get("model") == "trained" and (row["d"], row["seed"]) in built]
    beside = [(row, built[row["d"], row["seed"]]) for row in trained]
    return [{**row, "built": one["loss"], "size": row["eta"] / one["eta"]} for row, one in beside]


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    pairs = _pairs(rows)
    for at, d in enumerate(sorted({row["d"] for row in pairs})):
        # Each a little to the right of the one before: their bars would hide one another.
        mine = [{**row, "steps": row["steps"] * 1.06**at} for row in pairs if row["d"] == d]
        some = [{**row, "ratio": row["loss"] / row["built"], "off": 1 - row["cosine"]} for row in mine]
        factor_line(left, factors(some, "steps", "ratio"), f"{d} components", marker="osD^"[at % 4])
        factor_line(right, factors(some, "steps", "off"), f"{d} components", marker="osD^"[at % 4])
    left.set(xscale="log", xlabel="steps of Adam at most", ylabel="loss over that of the constructed layer")
    right.set(xscale="log", yscale="log", xlabel="steps of Adam at most", ylabel="1 - cosine of coefficients")
    left.axhline(1, color="grey", linestyle=":")
    steps = sorted({row["steps"] for row in pairs})
    for axes in (left, right):
        axes.set_xticks(steps, [f"{each:,}" for each in steps], minor=False)
        axes.tick_params(axis="x", which="minor", labelbottom=False)
    if pairs:
        left.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, longest, pairs = [], list[Row](), _pairs(rows)
    for d in sorted({row["d"] for row in pairs}):
        for steps in sorted({row["steps"] for row in pairs if row["d"] == d}):
            some = [row for row in pairs if (row["d"], row["steps"]) == (d, steps)]
            ratio = over(some, "loss", "built")
            findings.append(
                f"{d} components, {steps:,} steps: loss {interval(r['loss'] for r in some)}, constructed "
                f"{interval(r['built'] for r in some)} on the same prompts (ratio {ratio}); cosine of coefficients "
                f"{interval(r['cosine'] for r in some)}, size {interval(r['size'] for r in some)} of its."
            )
        longest += some
    findings.append(endings.said([row for row in rows if row.get("model") != "built"]))
    if not longest:
        return Verdict("open", "There are not both built and trained layers.", tuple(findings))
    found = [same(row) for row in longest]
    says = (
        f"After the longest training the twin is the constructed layer (cosine of coefficients above {SAME:g}, "
        f"loss below {1 + NEAR:g} times its) in {sum(found)} of {len(found)} runs."
    )
    answer, reason = endings.answer(longest, found)
    return Verdict(answer, says + reason, tuple(findings))


def same(row: Row) -> bool:
    return bool(row["cosine"] > SAME and row["loss"] < (1 + NEAR) * row["built"])
