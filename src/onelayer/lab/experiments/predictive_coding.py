"""Predictive coding with divergences of softmaxes or of Gaussians at the logits of attention, and backpropagation.

Two tasks: the value that stands beside the asked key (some of the keys are shown, each with a value), and the next
letter of a text, the library's own statements, from the eight before it. Same weights to begin with, same batches,
same Adam at the best of the same rates; what differs is what the weights go down by.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.endings import learning
from onelayer.lab.experiment import FEWEST_SEEDS, Case, Earlier, Preset, Row, Verdict
from onelayer.lab.pictures import figure
from onelayer.lab.predictive import Way, learn
from onelayer.lab.statistics import Paired, geometric_of, interval_of, paired, tally
from onelayer.statements import CATALOGUE

Array = NDArray[Any]

QUESTION = "Does predictive coding reach what backpropagation reaches, with the softmax as a node or a Gaussian?"
HYPOTHESES = (
    "With few and small steps of relaxation local changes point as the gradient does, and training ends the same.",
    "The printed gap between divergences of softmaxes and Gaussians (perplexity 176 and 590, Pinchetti et al., "
    "2211.03481) is one of larger models: one attention layer does not show it.",
)
EARLIER = Earlier(
    "partly",
    "All ways had the same learning rate, and every difference that was not clear counted as none.",
    "every way has the best of the same learning rates, level is what is not clearly above and clearly within a "
    "quarter, and runs that still learned when their steps were spent are not called worse.",
)
EXTRAS = ("torch",)
KEYS, SHOWN, CONTEXT, BATCH, ASKED = 20, 14, 8, 64, 500
#: An accuracy that counts as solved.
SOLVED = 0.99
HOWS = ("backprop", "kl", "gaussian")
#: A loss that is not clearly above another, and clearly less than this many times it, is level with it.
LEVEL = 1.25


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps = 160 if quick else 700
    settings = [(4, 0.1), (4, 0.3)]  # longer relaxation costs as many times more
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


def draw_bytes(rng: np.random.Generator, count: int, part: int) -> tuple[Array, Array]:
    """Windows of the text, each letter one-hot beside its place.

    They are of the first eight tenths (part 0), which are trained on, of the ninth (1), which is counted, or of the
    last (2).
    """
    numbers, letters = text()
    ends = [len(numbers) * tenths // 10 for tenths in (0, 8, 9, 10)]
    first, last = ends[part], ends[part + 1] - CONTEXT
    starts = rng.integers(first, last, count)
    windows = numbers[starts[:, None] + np.arange(CONTEXT)]
    X = np.zeros((count, CONTEXT, letters + CONTEXT))
    X[np.arange(count)[:, None], np.arange(CONTEXT), windows] = 1
    X[:, np.arange(CONTEXT), letters + np.arange(CONTEXT)] = 1
    return X, numbers[starts + CONTEXT]


def run(case: Case, seed: int) -> list[Row]:
    rng = np.random.default_rng([seed, 312])
    if case["task"] == "keys":
        batches, classes = [draw_keys(rng, BATCH) for _ in range(case["steps"])], KEYS
        counted, test = (draw_keys(rng, ASKED) for _ in range(2))
    else:
        batches, classes = [draw_bytes(rng, BATCH, 0) for _ in range(case["steps"])], text()[1]
        counted, test = (draw_bytes(rng, ASKED, part) for part in (1, 2))
    way = Way(case["how"], case["relaxation"], case["rate"])
    found = learn(batches, counted, test, classes, way, seed)
    row: Row = {"accuracy": found.accuracy, "loss": found.loss, "learning_rate": found.learning_rate}
    row |= {"taken": found.taken, "ended_by": found.ended_by}
    return [row | {f"cosine {name}": value for name, value in found.cosines.items()}]


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


def _of(rows: list[Row], task: str, how: str) -> list[Row]:
    """The rows of a way; of relaxation in a single step there is nothing to compare."""
    return [r for r in rows if (r["task"], r["how"]) == (task, how) and r["relaxation"] != 1]


def _against_backprop(rows: list[Row], task: str, how: str) -> tuple[Paired, list[Row]]:
    """Losses over those of backpropagation, by seed, with the smallest steps of relaxation; and their rows."""
    own = _of(rows, task, how)
    smallest = min(((r["relaxation"], r["rate"]) for r in own), default=None)
    own = [r for r in own if (r["relaxation"], r["rate"]) == smallest]
    first, second = ({r["seed"]: r["loss"] for r in some} for some in (own, _of(rows, task, "backprop")))
    return paired(first, second, ratio=True), own


def _gaussian_over_kl(rows: list[Row], task: str) -> Paired:
    """Losses setting by setting; those of a seed are one value."""
    first, second = (
        {(r["relaxation"], r["rate"], r["seed"]): r["loss"] for r in _of(rows, task, how)}
        for how in ("gaussian", "kl")
    )
    ratios = [{"seed": key[-1], "ratio": first[key] / second[key]} for key in first if second.get(key)]
    return Paired(geometric_of(ratios, "ratio"), len(first) + len(second) - 2 * len(ratios))


def _stands(rows: list[Row], task: str, against: Paired, own: list[Row]) -> str:
    """Level with backpropagation, worse, or open: runs that still learned are not worse."""
    both = [*own, *_of(rows, task, "backprop")]
    if against.found.count < FEWEST_SEEDS:
        return "open"
    if all(r["accuracy"] >= SOLVED for r in both):
        return "level"
    if against.above:
        return "open" if any(map(learning, own)) else "worse"
    return "level" if against.found.high < LEVEL else "open"


def _finding(task: str, name: str, some: list[Row]) -> str:
    cosines = ", ".join(f"{n} {interval_of(some, f'cosine {n}')}" for n in ("W_Q", "W_V", "W_1", "W_2"))
    toward = "" if some[0]["how"] == "backprop" else f"; cosine with the gradient at the first step {cosines}"
    return (
        f"{task}, {name}: accuracy {interval_of(some, 'accuracy')}, loss {geometric_of(some, 'loss')}, solved in "
        f"{sum(r['accuracy'] >= SOLVED for r in some)} of {len(some)} runs, ended by: "
        f"{tally(r.get('ended_by') for r in some)}{toward}."
    )


def verdict(rows: list[Row]) -> Verdict:
    findings: list[str] = []
    stand: list[str] = []
    for task in ("keys", "bytes"):
        findings += [_finding(task, name, some) for name, some in _groups(rows, task).items()]
        for how in HOWS[1:]:
            against, own = _against_backprop(rows, task, how)
            if against.found.count:
                stand.append(_stands(rows, task, against, own))
                findings.append(
                    f"{task}, {how} over backpropagation, smallest steps, loss: {against} ({stand[-1]})."
                )
        between = _gaussian_over_kl(rows, task)
        if between.found.count:
            findings.append(f"{task}, Gaussian over softmax, setting by setting, loss: {between}.")
    if not stand:
        return Verdict("open", "Nothing was compared with backpropagation.", tuple(findings))
    gap = {task: _gaussian_over_kl(rows, task) for task in ("keys", "bytes")}
    told = "; ".join(f"{task} {one}" for task, one in gap.items() if one.found.count)
    level, worse = stand.count("level"), stand.count("worse")
    says = (
        f"After the same steps {level} of {len(stand)} comparisons are level with backpropagation, {worse} clearly "
        f"worse, the others not known; loss of Gaussian over softmax: {told}."
    )
    answer: Any = "yes" if level == len(stand) else "no" if worse == len(stand) else "open"
    return Verdict("partly" if level and worse else answer, says, tuple(findings))
