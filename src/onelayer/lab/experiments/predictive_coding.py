"""Predictive coding with divergences of softmaxes or of Gaussians at the logits of attention, and backpropagation.

Two tasks: the value that stands beside the asked key (some of the keys are shown, each with a value), and the next
letter of a text from the eight before it. Same weights to begin with, same batches, same Adam at the best of the
same rates; what differs is what the weights go down by. Where a gap between both divergences opens is asked of four
models: one layer with hidden units, the same without them, with sharper attention to begin with, and two layers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.endings import learning
from onelayer.lab.experiment import FEWEST_SEEDS, Case, Earlier, Preset, Row, Verdict
from onelayer.lab.letters import TEXT
from onelayer.lab.pictures import figure
from onelayer.lab.predictive import Shape, Way, learn
from onelayer.lab.statistics import Paired, geometric_of, interval_of, paired, tally

Array = NDArray[Any]

QUESTION = "Does predictive coding reach what backpropagation reaches, with the softmax as a node or a Gaussian?"
HYPOTHESES = (
    "With few and small steps of relaxation local changes point as the gradient does, and training ends the same.",
    "The printed gap between divergences of softmaxes and Gaussians (perplexity 176 and 590, Pinchetti et al., "
    "2211.03481) is one of larger models: one attention layer does not show it.",
    "If the gap opens in small models, it does with sharper attention, hidden units, two layers or text.",
)
EARLIER = Earlier(
    "partly",
    "All ways had the same learning rate, and every difference that was not clear counted as none.",
    "every way has the best of the same learning rates, halved from the best weights on, level is what is not "
    "clearly above and clearly within a quarter, and runs that still learned when their steps were spent are not "
    "called worse.",
)
EXTRAS = ("torch",)
KEYS, SHOWN, CONTEXT, BATCH, ASKED = 20, 14, 8, 64, 500
#: An accuracy that counts as solved.
SOLVED = 0.99
HOWS = ("backprop", "kl", "gaussian")
#: A loss that is not clearly above another, and clearly less than this many times it, is level with it.
LEVEL = 1.25
#: The first is the usual one; logits of sharper attention begin with a standard deviation of about 3.
MODELS = {
    "one layer": Shape(),
    "sharper": Shape(sharper=64.0),
    "no hidden units": Shape(hidden=False),
    "two layers": Shape(layers=2),
}
USUAL = "one layer"
OTHERS = (("sharper", "keys"), ("two layers", "keys"), ("no hidden units", "keys"), ("two layers", "bytes"))
#: Two layers have five nodes below the answer: their steps of relaxation, and the most steps of training.
RELAXED, FEWER = 6, 400


def cases(preset: Preset) -> list[Case]:
    quick = preset == "quick"
    steps = 160 if quick else 700
    settings = [(4, 0.1), (4, 0.3)]  # longer relaxation costs as many times more
    made = [
        (USUAL, *way)
        for way in (("keys", "backprop", 0, 0.0), ("bytes", "backprop", 0, 0.0), ("keys", "kl", 1, 0.1))
    ]
    made += [(USUAL, "keys", how, *setting) for how in HOWS[1:] for setting in settings]
    made += [
        (USUAL, "bytes", how, *setting) for how in HOWS[1:] for setting in (settings[:1] if quick else settings)
    ]
    for model, task in OTHERS[:2] if quick else OTHERS:
        relaxation = RELAXED if model == "two layers" else 4
        made += [(model, task, "backprop", 0, 0.0), *((model, task, how, relaxation, 0.1) for how in HOWS[1:])]
    return [
        {
            "task": task,
            "model": model,
            "how": how,
            "relaxation": T,
            "rate": rate,
            "steps": min(steps, FEWER) if model == "two layers" else steps,
        }
        for model, task, how, T, rate in made
    ]


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
    """The text as numbers of its letters, and how many letters there are."""
    known, numbers = np.unique(np.array(list(TEXT)), return_inverse=True)
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
    found = learn(batches, counted, test, classes, way, seed, MODELS[case["model"]])
    row: Row = {"accuracy": found.accuracy, "loss": found.loss, "learning_rate": found.learning_rate}
    row |= {"at_an_end": int(found.at_an_end), "taken": found.taken, "ended_by": found.ended_by}
    row |= {"curve": found.curve}
    return [row | {f"cosine {name}": value for name, value in found.cosines.items()}]


def _name(row: Row) -> str:
    if row["how"] == "backprop":
        return "backpropagation"
    steps = "1 step" if row["relaxation"] == 1 else f"{row['relaxation']} steps"
    return f"{row['how']}, {steps} of {row['rate']:g}"


def _model(row: Row) -> str:
    return str(row.get("model", USUAL))


def _settings(rows: list[Row]) -> list[tuple[str, str]]:
    """Tasks and models, in the order of the cases."""
    there = {(row["task"], _model(row)) for row in rows}
    return [(task, model) for task in ("keys", "bytes") for model in MODELS if (task, model) in there]


def _at(rows: list[Row], task: str, model: str) -> list[Row]:
    return [row for row in rows if (row["task"], _model(row)) == (task, model)]


def _groups(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_name(row), []).append(row)
    return found


def plot(rows: list[Row]) -> Any:
    made, axes = figure(columns=2, width=13, height=6)
    for panel, task in zip(axes, ("keys", "bytes"), strict=True):
        groups = {
            name if model == USUAL else f"{model}: {name}": some
            for of, model in _settings(rows)
            if of == task
            for name, some in _groups(_at(rows, task, model)).items()
        }
        for i, some in enumerate(groups.values()):
            panel.scatter([row["loss"] for row in some], [i] * len(some), color=f"C{HOWS.index(some[0]['how'])}")
        panel.set_yticks(range(len(groups)), list(groups))
        panel.set(title=f"{task}: held-out cross-entropy", ylim=(max(1, len(groups)) - 0.5, -0.5))
        if task == "keys" and groups:
            panel.set_xscale("log")
    return made


def _of(rows: list[Row], how: str) -> list[Row]:
    """The rows of a way; of relaxation in a single step there is nothing to compare."""
    return [r for r in rows if r["how"] == how and r["relaxation"] != 1]


def _against_backprop(rows: list[Row], how: str) -> tuple[Paired, list[Row]]:
    """Losses over those of backpropagation, by seed, with the smallest steps of relaxation; and their rows."""
    own = _of(rows, how)
    smallest = min(((r["relaxation"], r["rate"]) for r in own), default=None)
    own = [r for r in own if (r["relaxation"], r["rate"]) == smallest]
    first, second = ({r["seed"]: r["loss"] for r in some} for some in (own, _of(rows, "backprop")))
    return paired(first, second, ratio=True), own


def _gaussian_over_kl(rows: list[Row]) -> Paired:
    """Losses setting by setting; those of a seed are one value."""
    first, second = (
        {(r["relaxation"], r["rate"], r["seed"]): r["loss"] for r in _of(rows, how)} for how in ("gaussian", "kl")
    )
    ratios = [{"seed": key[-1], "ratio": first[key] / second[key]} for key in first if second.get(key)]
    return Paired(geometric_of(ratios, "ratio"), len(first) + len(second) - 2 * len(ratios))


def _stands(own: list[Row], others: list[Row], against: Paired) -> str:
    """Level with the others, worse, or open: runs that still learned are not worse."""
    if against.found.count < FEWEST_SEEDS:
        return "open"
    if own and others and all(r["accuracy"] >= SOLVED for r in [*own, *others]):
        return "level"
    if against.above:
        return "open" if any(map(learning, own)) else "worse"
    return "level" if against.found.high < LEVEL else "open"


def _gap(rows: list[Row]) -> str:
    """Whether one of both ends clearly higher, in one task and model; runs that still learned do not tell."""
    own, others = _of(rows, "gaussian"), _of(rows, "kl")
    between = _gaussian_over_kl(rows)
    stands = _stands(own, others, between)
    if between.below and not all(r["accuracy"] >= SOLVED for r in [*own, *others]):
        return "open" if any(map(learning, others)) else "a gap the other way"
    return {"worse": "a gap", "level": "no gap", "open": "open"}[stands]


def _finding(task: str, model: str, name: str, some: list[Row]) -> str:
    cosines = ", ".join(
        f"{n} {interval_of(some, f'cosine {n}')}" for n in ("W_Q", "W_V", "W_1", "W_2") if f"cosine {n}" in some[0]
    )
    toward = "" if some[0]["how"] == "backprop" else f"; cosine with the gradient at the first step {cosines}"
    at = [row for row in some if row.get("at_an_end")]
    rates = tally(f"{row['learning_rate']:g}:" for row in at)
    end = f"; the best learning rate was an end of those tried in {len(at)} ({rates})" if at else ""
    return (
        f"{task}, {model}, {name}: accuracy {interval_of(some, 'accuracy')}, loss {geometric_of(some, 'loss')}, "
        f"solved in {sum(r['accuracy'] >= SOLVED for r in some)} of {len(some)} runs, ended by: "
        f"{tally(r.get('ended_by') for r in some)}{end}{toward}."
    )


def verdict(rows: list[Row]) -> Verdict:
    findings: list[str] = []
    stand: list[str] = []
    gaps: list[str] = []
    for task, model in _settings(rows):
        here = _at(rows, task, model)
        findings += [_finding(task, model, name, some) for name, some in _groups(here).items()]
        for how in HOWS[1:]:
            against, own = _against_backprop(here, how)
            if against.found.count:
                stand.append(_stands(own, _of(here, "backprop"), against))
                findings.append(
                    f"{task}, {model}, {how} over backpropagation, smallest steps, loss: {against} ({stand[-1]})."
                )
        between = _gaussian_over_kl(here)
        if between.found.count:
            gaps.append(f"{task}, {model} {between} ({_gap(here)})")
    if gaps:
        findings.append(f"Gaussian over softmax, setting by setting, loss: {'; '.join(gaps)}.")
    if not stand:
        return Verdict("open", "Nothing was compared with backpropagation.", tuple(findings))
    level, worse = stand.count("level"), stand.count("worse")
    says = (
        f"After the same steps {level} of {len(stand)} comparisons are level with backpropagation, {worse} clearly "
        f"worse, the others not known; loss of Gaussian over softmax: {'; '.join(gaps)}."
    )
    answer: Any = "yes" if level == len(stand) else "no" if worse == len(stand) else "open"
    return Verdict("partly" if level and worse else answer, says, tuple(findings))
