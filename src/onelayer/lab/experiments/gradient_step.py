"""Von Oswald's twin: one layer of linear attention, trained on linear regression in its prompt.

Tokens are (x, y), the query is (x, 0), and examples are the keys. The constructed layer is one gradient step with
the step size that `learner("gd", optimal=N)` proves to be the best of all linear attention layers, of any heads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.compile.learner import learner
from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import factor_line, figure
from onelayer.lab.statistics import factors, interval, over, share
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
    if preset == "quick":
        return [{"d": 10, "examples": 10, "steps": steps, "batch": 384} for steps in (100, 300, 1500)]
    steps = (100, 300, 1000, 3000, 10000)
    return [{"d": d, "examples": 10, "steps": many, "batch": 2048} for d in (5, 10, 20) for many in steps]


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts

    d, N = case["d"], case["examples"]
    eta = -float(learner("gd", d=d, low=LOW, high=HIGH, steps=1, optimal=N).transformer.attention.W_V[0, d, 0])
    w = d + 1
    sizes = dict.fromkeys(("W_Q", "W_K", "W_V"), ((w, w), w**-0.5)) | {"W_O": ((w, 1), w**-0.5)}
    twin = prompts.start(sizes, seed)
    trained = prompts.search(twin, _loss, _drawing(d, N, case["batch"]), case["steps"], seed)
    x, y = np.diag([1.0] * d + [0.0]), np.eye(w)[:, d:]
    built = {"W_Q": x, "W_K": x, "W_V": eta * np.diag([0.0] * d + [1.0]), "W_O": y}
    fresh = prompts.fresh(_drawing(d, N, MEASURED), seed)
    p, q = (_map({name: np.asarray(m, float) for name, m in each.items()}) for each in (_arrays(twin), built))
    found = {"loss": prompts.measure(twin, _loss, fresh), "cosine": prompts.cosine(p, q)}
    built_loss = prompts.measure(prompts.given(built), _loss, fresh)
    size = float(np.sqrt((p * p).sum() / (q * q).sum()))
    return [{**found, "built": built_loss, "eta": eta, "size": size, **trained.row}]


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


def plot(rows: list[Row]) -> Any:
    made, (left, right) = figure(columns=2, width=10)
    for d in sorted({row["d"] for row in rows}):
        mine = [row for row in rows if row["d"] == d]
        some = [{**row, "ratio": row["loss"] / row["built"], "off": 1 - row["cosine"]} for row in mine]
        factor_line(left, factors(some, "steps", "ratio"), f"{d} components")
        factor_line(right, factors(some, "steps", "off"), f"{d} components")
    left.set(xscale="log", xlabel="steps of Adam", ylabel="loss over that of the constructed layer")
    right.set(xscale="log", yscale="log", xlabel="steps of Adam", ylabel="1 - cosine of coefficients")
    left.axhline(1, color="grey", linestyle=":")
    left.legend()
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, longest = [], []
    for d in sorted({row["d"] for row in rows}):
        for steps in sorted({row["steps"] for row in rows if row["d"] == d}):
            some = [row for row in rows if (row["d"], row["steps"]) == (d, steps)]
            ratio = over(some, "loss", "built")
            findings.append(
                f"{d} components, {steps:,} steps: loss {interval(r['loss'] for r in some)}, constructed "
                f"{interval(r['built'] for r in some)} on the same prompts (ratio {ratio}); cosine of coefficients "
                f"{interval(r['cosine'] for r in some)}, size {interval(r['size'] for r in some)} of its."
            )
        longest += some
    found = [same(row) for row in longest]
    reached = share(found)
    says = f"After the longest training the twin is the constructed layer in {reached} runs."
    answer, reason = endings.answer(longest, found)
    findings.append(endings.said(rows))
    return Verdict(answer, says + reason, tuple(findings))


def same(row: Row) -> bool:
    return bool(row["cosine"] > SAME and row["loss"] < (1 + NEAR) * row["built"])
