"""Predictive coding with divergences of softmaxes or of Gaussians at the logits of attention, and backpropagation.

Two tasks: the value that stands beside the asked key (some of the keys are shown, each with a value), and the next
letter of a text, the library's own statements, from the eight before it. Same weights to begin with, same batches,
same Adam; what differs is what the weights go down by.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.experiment import Case, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.predictive import learn
from onelayer.lab.statistics import Paired, geometric, interval, paired, share
from onelayer.statements import CATALOGUE

Array = NDArray[Any]

QUESTION = "Does predictive coding reach what backpropagation reaches, with the softmax as a node or a Gaussian?"
HYPOTHESES = (
    "With few and small steps of relaxation local changes point as the gradient does, and training ends the same.",
    "The printed gap between divergences of softmaxes and Gaussians (perplexity 176 and 590, Pinchetti et al., "
    "2211.03481) is one of larger models: one attention layer does not show it.",
)
EXTRAS = ("torch",)
KEYS, SHOWN, CONTEXT, BATCH, ASKED = 20, 14, 8, 64, 500
LEARNING_RATE = 0.01
#: An accuracy that counts as solved.
SOLVED = 0.99
HOWS = ("backprop", "kl", "gaussian")


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps = 160 if quick else 1500
    settings = [(4, 0.1), (4, 0.3)] if quick else [(4, 0.1), (4, 0.3), (8, 0.5), (16, 0.1)]
    made = [("keys", "backprop", 0, 0.0), ("bytes", "backprop", 0, 0.0), ("keys", "kl", 1, 0.1)]
    made += [("keys", how, *setting) for how in HOWS[1:] for setting in settings]
    made += [("bytes", how, *setting) for how in HOWS[1:] for setting in (settings[:1] if quick else settings)]
    return [{"task": t, "how": how, "relaxation": T, "rate": rate, "steps": steps} for t, how, T, rate in made]


def draw_keys(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Tokens are a key and its value, both one-hot; the last token asks for one of the keys shown."""
    rows = np.arange(count)
    which = np.argsort(rng.random((count, KEYS)), axis=1)[:, :SHOWN]
    values, asked = rng.integers(0, KEYS, (count, SHOWN)), rng.integers(0, SHOWN, count)
    X = np.zeros((count, SHOWN + 1, 2 * KEYS + 1))
    X[rows[:, None], np.arange(SHOWN), which] = 1
    X[rows[:, None], np.arange(SHOWN), KEYS + values] = 1
    X[rows, SHOWN, which[rows, asked]] = X[:, SHOWN, -1] = 1
    return X, values[rows, asked]


@cache
def text() -> tuple[Array, int]:
    """The statements of the library as numbers of their letters, and how many letters there are."""
    letters = np.array(list(" ".join(statement.says for statement in CATALOGUE.values())))
    known, numbers = np.unique(letters, return_inverse=True)
    return numbers, len(known)


def draw_bytes(rng: np.random.Generator, count: int, held_out: bool) -> tuple[Array, Array]:
    """Windows of the text, each letter one-hot beside its place; the last tenth is held out."""
    numbers, letters = text()
    end = len(numbers) * 9 // 10
    first, last = (end, len(numbers) - CONTEXT - 1) if held_out else (0, end - CONTEXT)
    starts = rng.integers(first, last, count)
    windows = numbers[starts[:, None] + np.arange(CONTEXT)]
    X = np.zeros((count, CONTEXT, letters + CONTEXT))
    X[np.arange(count)[:, None], np.arange(CONTEXT), windows] = 1
    X[:, np.arange(CONTEXT), letters + np.arange(CONTEXT)] = 1
    return X, numbers[starts + CONTEXT]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, 312])
    if case["task"] == "keys":
        batches, test, classes = [draw_keys(rng, BATCH) for _ in range(case["steps"])], draw_keys(rng, ASKED), KEYS
    else:
        batches = [draw_bytes(rng, BATCH, held_out=False) for _ in range(case["steps"])]
        test, classes = draw_bytes(rng, ASKED, held_out=True), text()[1]
    found = learn(batches, test, classes, case["how"], case["relaxation"], case["rate"], LEARNING_RATE, seed)
    told = {f"cosine {name}": value for name, value in found.cosines.items()}
    return [{"accuracy": found.accuracy, "loss": found.loss, **told}]


def _name(row: Row) -> str:
    if row["how"] == "backprop":
        return "backpropagation"
    steps = "1 step" if row["relaxation"] == 1 else f"{row['relaxation']} steps"
    return f"{row['how']}, {steps} of {row['rate']:g}"


def _groups(rows: list[Row], task: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["task"] == task:
            found.setdefault(_name(row), []).append(row)
    return found


def plot(rows: list[Row]) -> Any:
    made, axes = figure(columns=2, width=11, height=4.5)
    for panel, task in zip(axes, ("keys", "bytes"), strict=True):
        groups = _groups(rows, task)
        for i, some in enumerate(groups.values()):
            panel.scatter([row["loss"] for row in some], [i] * len(some), color=f"C{HOWS.index(some[0]['how'])}")
        panel.set_yticks(range(len(groups)), list(groups))
        panel.set(title=f"{task}: held-out cross-entropy", ylim=(max(1, len(groups)) - 0.5, -0.5))
        if task == "keys" and groups:
            panel.set_xscale("log")
    return made


def _pairs(rows: list[Row], task: str, first: str, second: str) -> Paired:
    """Losses of one way over those of another, by seed; of relaxed ways, setting by setting."""

    def of(how: str) -> dict[Any, float]:
        some = [row for row in rows if row["task"] == task and row["how"] == how]
        if "backprop" in (first, second):  # which has no setting: the first of the others
            smallest = min(((r["relaxation"], r["rate"]) for r in some if r["relaxation"] != 1), default=None)
            return {r["seed"]: r["loss"] for r in some if (r["relaxation"], r["rate"]) == smallest}
        return {(r["relaxation"], r["rate"], r["seed"]): r["loss"] for r in some if r["relaxation"] != 1}

    return paired(of(first), of(second), ratio=True)


def verdict(rows: list[Row]) -> Verdict:
    findings, level = [], []
    for task in ("keys", "bytes"):
        for name, some in _groups(rows, task).items():
            cosines = ", ".join(
                f"{n} {interval(r[f'cosine {n}'] for r in some)}" for n in ("W_Q", "W_V", "W_1", "W_2")
            )
            toward = (
                "" if some[0]["how"] == "backprop" else f"; cosine with the gradient at the first step {cosines}"
            )
            findings.append(
                f"{task}, {name}: accuracy {interval(r['accuracy'] for r in some)}, loss "
                f"{geometric(r['loss'] for r in some)}, solved in {share(r['accuracy'] >= SOLVED for r in some)} "
                f"runs{toward}."
            )
        for how in HOWS[1:]:
            against = _pairs(rows, task, how, "backprop")
            if against.found.count:
                level.append(not against.above)
                findings.append(f"{task}, {how} over backpropagation, smallest steps, loss: {against}.")
        between = _pairs(rows, task, "gaussian", "kl")
        if between.found.count:
            findings.append(f"{task}, Gaussian over softmax, setting by setting and seed by seed, loss: {between}.")
    if not level:
        return Verdict("open", "Nothing was compared with backpropagation.", tuple(findings))
    gap = [_pairs(rows, task, "gaussian", "kl") for task in ("keys", "bytes")]
    told = "; ".join(f"{task} {one}" for task, one in zip(("keys", "bytes"), gap, strict=True) if one.found.count)
    says = (
        f"{sum(level)} of {len(level)} comparisons show no clearly higher loss than backpropagation; Gaussian over "
        f"softmax: {told}."
    )
    return Verdict("yes" if all(level) else "partly" if any(level) else "no", says, tuple(findings))
