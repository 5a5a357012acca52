"""Linear dynamics in the prompt: what do linear, softmax and mesa attention learn when each is trained?

States follow s' = W s + noise with a random rotation W for every sequence. Token t is (s_t, s_{t-1}), and the layer
predicts s_{t+1} at every t. Constructed: one gradient step (keys s_{t-1}, values eta s_t, queries s_t) with the
best eta, and the mesa layer, which solves the least squares of the past. The loss is half the squared distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.lab import endings
from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.statistics import interval, paired, share
from onelayer.learners.cubic import coefficients_of

QUESTION = "Does training find the gradient step in linear attention, and is a trained mesa layer better?"
HYPOTHESES = (
    "Linear attention learns one gradient step on the past of its sequence (von Oswald et al. 2023), softmax "
    "attention something like it.",
    "A layer that solves the least squares exactly is better than both, trained or built.",
)
EXTRAS = ("torch",)
KINDS = ("linear", "softmax", "mesa")
MEASURED = 256
#: Step sizes among which the constructed step has its own, and the ridge of the constructed mesa layer.
STEPS, RIDGE = np.geomspace(1e-3, 0.3, 40), 1e-4
SAME = 0.95


def cases(preset: Preset) -> list[Case]:
    n, T, steps = (5, 20, 600 if preset == "quick" else 6000)
    return [
        {"model": kind, "n": n, "T": T, "noise": noise, "steps": steps, "batch": 32}
        for noise in ((0.01,) if preset == "quick" else (0.01, 0.1))
        for kind in KINDS
    ]


def run(case: Case, seed: int) -> list[Row]:
    from onelayer.lab import prompts

    n, kind = case["n"], case["model"]
    sizes = dict.fromkeys(("W_Q", "W_K"), ((2 * n, n), (2 * n) ** -0.5))
    twin = prompts.start(sizes | {"W_V": ((2 * n, n), 0.1), "ridge": ((1,), 0.1)}, seed)
    trained = prompts.search(twin, _loss_of(kind), _drawing(case, case["batch"]), case["steps"], seed)
    tasks = prompts.fresh(_drawing(case, MEASURED), seed)
    now, before = np.eye(2 * n)[:, :n], np.eye(2 * n)[:, n:]

    def built(eta: float, ridge: float = 0.0) -> Any:
        return prompts.given({"W_Q": now, "W_K": before, "W_V": eta * now, "ridge": np.log([max(ridge, 1e-12)])})

    losses = [prompts.measure(built(eta), _loss_of("linear"), tasks) for eta in STEPS]
    eta = float(STEPS[int(np.argmin(losses))])
    maps = [_map({k: prompts.numbers(v) for k, v in each.items()}) for each in (twin, built(eta))]
    zero = prompts.measure(built(0.0), _loss_of("linear"), tasks)
    return [
        {
            "loss": prompts.measure(twin, _loss_of(kind), tasks),
            "step": min(losses),
            "mesa": prompts.measure(built(1.0, RIDGE), _loss_of("mesa"), tasks),
            "zero": zero,
            "eta": eta,
            "cosine": prompts.cosine(*maps) if kind == "linear" else None,
            **trained.row,
        }
    ]


def _map(t: dict[str, Any]) -> Any:
    return coefficients_of([(t["W_V"], t["W_Q"] @ t["W_K"].T)])


def _drawing(case: Case, batch: int) -> Any:
    """States [batch, T + 1, n], each sequence with its own rotation."""
    from onelayer.lab.networks import framework

    torch, n = framework(), case["n"]

    def draw(generator: Any) -> Any:
        W = torch.linalg.qr(torch.randn((batch, n, n), generator=generator))[0]
        noise = case["noise"] * torch.randn((batch, case["T"] + 1, n), generator=generator)
        states = [torch.randn((batch, n), generator=generator)]
        for t in range(case["T"]):
            states.append((W @ states[-1][..., None])[..., 0] + noise[:, t])
        return torch.stack(states, 1)

    return draw


def _loss_of(kind: str) -> Any:
    from onelayer.lab.networks import framework

    torch = framework()

    def loss(t: Any, states: Any) -> Any:
        past = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-2]], 1)
        tokens = torch.cat([states[:, :-1], past], 2)
        q, k, v = (tokens @ t[name] for name in ("W_Q", "W_K", "W_V"))
        if kind == "mesa":
            found = _solve(torch, q, k, v, t["ridge"])
        else:
            hidden = torch.ones(q.shape[1], q.shape[1]).triu(1).bool()
            scores = q @ k.transpose(1, 2)
            weights = scores.masked_fill(hidden, 0.0)
            if kind == "softmax":
                weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
            found = weights @ v
        return ((found - states[:, 1:]) ** 2).sum(-1).mean() / 2

    return loss


def _solve(torch: Any, q: Any, k: Any, v: Any, log_ridge: Any) -> Any:
    """q (sum k k^T + ridge)^-1 sum k v^T over the past, at every t at once."""
    moments = (k[..., None] * k[..., None, :]).cumsum(1) + log_ridge.exp() * torch.eye(k.shape[-1])
    crossed = (k[..., None] * v[..., None, :]).cumsum(1)
    return (torch.linalg.solve(moments, q)[..., None, :] @ crossed)[..., 0, :]


def plot(rows: list[Row]) -> Any:
    levels = sorted({row["noise"] for row in rows})
    made, all_axes = figure(columns=len(levels), width=5.5 * len(levels))
    for axes, noise in zip(all_axes, levels, strict=True):
        some = [row for row in rows if row["noise"] == noise]
        shown = {f"{kind}, trained": [r["loss"] for r in some if r["model"] == kind] for kind in KINDS}
        drawn = list({row["seed"]: row for row in some}.values())
        shown |= {"gradient step, built": [r["step"] for r in drawn], "mesa, built": [r["mesa"] for r in drawn]}
        shown = {name: values for name, values in shown.items() if values}
        found = [interval(values) for values in shown.values()]
        colours = ["C1" if "built" in name else "C0" for name in shown]
        axes.barh(list(shown), [one.mean for one in found], xerr=[one.half for one in found], color=colours)
        axes.axvline(some[0]["zero"], color="grey", linestyle=":")
        axes.set(xlabel="loss (dotted: always 0)", title=f"noise {noise:g}")
    return made


def verdict(rows: list[Row]) -> Verdict:
    findings, better = [], dict[float, bool]()
    for noise in sorted({row["noise"] for row in rows}):
        some = [row for row in rows if row["noise"] == noise]
        # Kinds of a seed share their tasks, and what is built is the same for all of them.
        drawn = list({row["seed"]: row for row in some}.values())
        said = ", ".join(f"{name} {interval(r[name] for r in drawn)}" for name in ("step", "mesa", "zero"))
        findings.append(
            f"Noise {noise:g}, loss of the constructed gradient step, mesa layer and of always 0: {said}."
        )
        losses = {kind: {r["seed"]: r["loss"] for r in some if r["model"] == kind} for kind in KINDS}
        built = {kind: {r["seed"]: r["step" if kind != "mesa" else "mesa"] for r in some} for kind in KINDS}
        for kind in KINDS:
            ratio = paired(losses[kind], {seed: built[kind][seed] for seed in losses[kind]}, ratio=True)
            findings.append(f"{kind}, trained: {interval(losses[kind].values())}; over what is built {ratio}.")
        cosines = [row["cosine"] for row in some if row["model"] == "linear"]
        findings.append(f"Linear attention against the gradient step, cosine of coefficients: {interval(cosines)}.")
        better[noise] = paired(losses["linear"], losses["mesa"], ratio=True).above
    linear = [row for row in rows if row["model"] == "linear"]
    alike = [row["cosine"] > SAME for row in linear]
    if not alike or not all(any(r["model"] == kind for r in rows) for kind in KINDS):
        return Verdict("open", "There are not all three kinds of attention.", tuple(findings))
    says = (
        f"Trained linear attention has the gradient step's coefficients (cosine above {SAME}) in "
        f"{share(alike)} runs{_reason(linear, alike)}; a trained mesa layer is clearly better than it at "
        f"{sum(better.values())} of {len(better)} levels of noise."
    )
    # A mesa layer that is better only gets better with more steps; one that is not may still become it.
    level = [row for row in rows if row["model"] == "mesa" and not better[row["noise"]]]
    if level and (cut := sum(map(endings.learning, level))):
        says += f" Where it is not, {cut} of {len(level)} mesa layers were still learning when their steps ended."
    failed = [row for row, same in zip(linear, alike, strict=True) if not same] + level
    findings.append(endings.said(rows))
    return Verdict(_answer(failed, any(alike) or any(better.values())), says, tuple(findings))


def _reason(linear: list[Row], alike: list[bool]) -> str:
    """How the training of those ended that were asked for the step's coefficients and do not have them."""
    failed = [row for row, same in zip(linear, alike, strict=True) if not same]
    cut = sum(map(endings.learning, failed))
    if not failed:
        return ""
    if not cut:
        return f", and all {len(failed)} without had stopped learning"
    return f", and {cut} of the {len(failed)} without were still learning when their steps ended"


def _answer(failed: list[Row], some: bool) -> endings.Answer:
    """From the runs that speak against it, and whether anything speaks for it."""
    if not failed:
        return "yes"
    cut = [endings.learning(row) for row in failed]
    if some:
        return "open" if all(cut) else "partly"
    return "open" if any(cut) else "no"
