"""The same data compiled and trained: one layer and one head each, how many answers come back and when."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.memorize import memorize
from onelayer.lab.merges import Merge, collapse
from onelayer.measure.recall import recall_answers
from onelayer.model import Model
from onelayer.problems.answers import Answers, read_answers
from onelayer.problems.scopes import in_places
from onelayer.problems.sequences import Sequences, read_sequences

Array = NDArray[Any]
#: A twin has at least this width, even where the compiled model is smaller.
LEAST_WIDTH = 32
#: Real answers of the twin are right within this share of their standard deviation.
TOLERANCE = 0.01
#: Contexts closer than this share of the spread of all contexts are called merged.
NEAR = 1e-4
#: Steps of each run that tries a learning rate; more steps than any race lasts.
TRIAL, ENDLESS = 100, 10**9


@dataclass(frozen=True)
class Runner:
    """One side of a race, so far."""

    name: str
    seconds: float
    right: int
    answers: int
    parameters: int
    note: str = ""

    @property
    def done(self) -> bool:
        return self.right == self.answers


@dataclass(frozen=True)
class Outcome:
    """How a race ended, and which contexts with different answers the twin's attention has merged."""

    compiled: Runner
    trained: Runner
    rate: float
    steps: int
    merged: tuple[Merge, ...]
    wrong: tuple[tuple[int, int | None], ...]  # places at which the twin is wrong
    contexts: Array  # [N, n] where the twin's attention puts each token, along the widest direction


Show = Callable[[Runner, Runner], None]


def race(
    X: Any,
    Y: Any,
    lengths: Any = None,
    *,
    positions: bool = False,
    scope: Any = None,
    seed: int = 0,
    seconds: float = 10.0,
    width: int | None = None,
    scaled: bool = True,
    show: Show = lambda *_: None,
) -> Outcome:
    """Compile, then train the twin for at most this many seconds, trials of learning rates included.

    The twin is as wide as gives it the parameters of the compiled model, at least 32, or ``width``; without
    ``scaled`` its logits lack the ordinary 1/sqrt(s), as the model of the papers does.
    """
    from onelayer.lab.trained import Budget, Net, Shape, contexts, count_parameters, fill, framework, train

    framework()  # importing it is nobody's time
    compiled, model = _compile(X, Y, lengths, positions, scope, seed)
    sequences = read_sequences(X, lengths)
    task = as_task(sequences, read_answers(Y, sequences, scope))
    shape = Shape(1, positions=positions, scaled=scaled)
    width = width or max(LEAST_WIDTH, fill(shape, task, model.n_parameters).width)
    shape = replace(shape, width=width, hidden=4 * width)
    size, start = count_parameters(shape, task), time.perf_counter()
    twin = Runner("trained", 0.0, 0, compiled.answers, size)

    def watch(run: Any) -> bool:
        nonlocal twin
        spent = time.perf_counter() - start
        twin = Runner("trained", spent, run.right, run.answers, size, f"rate {run.rate:g}, step {run.steps:,}")
        show(compiled, twin)
        return spent >= seconds

    budget, tried = Budget(steps=TRIAL, decay="none"), []
    show(compiled, twin)
    for rate in budget.rates:
        run = train(Net(shape, task, seed), task, budget, rate, seed, watch)
        tried.append((not run.exact, run.loss, run))
        if run.exact or time.perf_counter() - start >= seconds:
            break
    best = min(tried, key=lambda entry: entry[:2])[2]
    if not best.exact and time.perf_counter() - start < seconds:
        endless = Budget(steps=ENDLESS, patience=100, halvings=ENDLESS)
        best = train(Net(shape, task, seed), task, endless, best.rate, seed, watch)
    twin = Runner("trained", time.perf_counter() - start, best.right, best.answers, size)
    wrong, merged = diagnose(best.net, task, sequences, positions)
    line = along_widest(contexts(best.net, sequences.tokens, sequences.lengths), sequences.valid())
    return Outcome(compiled, twin, best.rate, best.steps, merged, wrong, line)


def _compile(X: Any, Y: Any, lengths: Any, positions: bool, scope: Any, seed: int) -> tuple[Runner, Model]:
    start = time.perf_counter()
    model = memorize(X, Y, lengths=lengths, positions=positions, scope=scope, seed=seed, certify=False)
    spent = time.perf_counter() - start
    measured = recall_answers(model, X, Y, lengths)
    return Runner("compiled", spent, measured.right, measured.total, model.n_parameters), model


def along_widest(seen: Array, valid: Array | None) -> Array:
    """[N, n] Contexts [N, n, w] along the direction in which they differ most; 0 at padding."""
    rows = seen.reshape(-1, seen.shape[-1]).astype(np.float64)
    inside = np.ones(len(rows), bool) if valid is None else valid.ravel()
    middle = rows[inside] - rows[inside].mean(axis=0)
    direction = np.linalg.eigh(middle.T @ middle)[1][:, -1]
    found = np.zeros(len(rows))
    found[inside] = middle @ direction
    return found.reshape(seen.shape[:2])


def as_task(sequences: Sequences, answers: Answers) -> Any:
    """The data as the twin sees it: classes by number, reals with mean 0 and deviation 1."""
    from onelayer.lab.trained import Task

    form, rows = answers.form, answers.rows
    spread = rows.std(axis=0)
    values: Array = rows[:, 0].astype(np.int64)
    if form.classes is None:
        values = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if form.scope == "token":
        values = in_places(values, sequences.N, sequences.n, sequences.lengths)
    kind: Any = "reals" if form.classes is None else "classes"
    return Task(sequences.tokens, values, kind, form.scope, sequences.lengths, tolerance=TOLERANCE)


def diagnose(
    net: Any, task: Any, sequences: Sequences, positions: bool
) -> tuple[tuple[tuple[int, int | None], ...], tuple[Merge, ...]]:
    """Where the twin is wrong, and merged contexts with different answers, one of them wrong."""
    from onelayer.lab.trained import contexts, predict

    out = predict(net, sequences.tokens, sequences.lengths)
    if task.kind == "classes":
        bad = out.argmax(-1) != task.answers
    else:
        bad = np.abs(out - task.answers).max(axis=-1) > task.tolerance
    valid = sequences.valid()
    if task.scope == "token" and valid is not None:
        bad &= valid
    wrong = tuple((int(p[0]), int(p[1]) if len(p) > 1 else None) for p in np.argwhere(bad))
    if not wrong:
        return wrong, ()
    seen = contexts(net, sequences.tokens, sequences.lengths)
    margin = NEAR * float(np.ptp(seen.reshape(-1, seen.shape[-1]), axis=0).max())
    found = collapse(seen, sequences.tokens, sequences.lengths, margin=margin, positions=positions)

    def answer(i: int, k: int | None) -> Any:
        return task.answers[i, k] if task.scope == "token" else task.answers[i]

    def matters(merge: Merge) -> bool:
        ends = ((merge.a.i, merge.a.k), (merge.b.i, merge.b.k))
        blamed = any((i, k if task.scope == "token" else None) in places for i, k in ends)
        return blamed and bool(np.any(answer(*ends[0]) != answer(*ends[1])))

    places = set(wrong)
    return wrong, tuple(merge for merge in found if matters(merge))
