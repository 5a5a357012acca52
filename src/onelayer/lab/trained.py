"""Trained twins: Transformers of one or more layers under Adam or AdamW, for comparison with constructed ones.

A twin is trained until every answer comes back or its loss stops falling (`plateaus` says when): then the run goes
back to its best weights at half the rate, and it ends when several halvings in a row bring nothing. Rows of
experiments must not depend on the machine's speed, so a run is also limited in steps, and says what ended it; a
person who watches may end it by the clock.

The budget of tuning is the same for every model: all optimisers and rates start side by side from the same initial
weights, the worse half is given up after a while, those that are left go on where they were (successive halving).
Nothing is given up whose loss is above the best one by no more than noise, until all runs together have taken as
many steps as one may take to its end, or as they are given for choosing; what is then chosen is chosen by noise,
and says so.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.batches import Batches, Rows, pieces, take
from onelayer.lab.networks import (
    Net,
    Shape,
    Task,
    contexts,
    count_parameters,
    framework,
    has_positions,
    inside,
    one_thread,
    pool_tokens,
    predict,
)
from onelayer.lab.plateaus import Patience, Scale, noise
from onelayer.lab.runs import Optimiser, Run
from onelayer.lab.sizes import fill

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Budget",
    "Net",
    "Run",
    "Shape",
    "Task",
    "Training",
    "contexts",
    "count_parameters",
    "fill",
    "framework",
    "has_positions",
    "predict",
    "train",
    "train_tuned",
]

Array = NDArray[Any]
#: Called at each count; ends the run by returning True.
Watch = Callable[[Run], bool]
#: The last so many counts say how noisy a loss is; it is above another if it is by so many deviations.
RECENT, CLEARLY = 8, 2.0


@dataclass(frozen=True)
class Budget:
    """How a model is trained, on all the data at once unless ``batch`` is given."""

    steps: int = 1000  # the most that one run takes
    rates: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    optimisers: tuple[Optimiser, ...] = ("adam", "adamw")
    choosing: int | None = None  # steps of all runs together until one is left; as many as ``steps`` if None
    short: float = 0.05  # share of those after which the worse half is given up for the first time
    decay: Literal["cosine", "plateau", "none"] = "plateau"
    batch: int | None = None
    check: int = 10  # steps between two counts of right answers
    warm_up: int = 20
    patience: int = 20  # the least counts without a fall after which "plateau" halves the rate
    halvings: int = 5  # in a row, without a lower loss, after which it has stopped falling
    dtype: Literal["float32", "float64"] = "float32"


class Training:
    """A run that can be left and taken up again."""

    def __init__(
        self, net: Any, task: Task, budget: Budget, rate: float, seed: int = 0, optimiser: Optimiser = "adam"
    ) -> None:
        self.torch = torch = framework()
        self.net, self.task, self.budget, self.rate, self.kind = net, task, budget, rate, optimiser
        parameters = list(net.parameters())
        self.data = _on_torch(torch, task, parameters[0].dtype)
        chosen = torch.optim.AdamW if optimiser == "adamw" else torch.optim.Adam
        self.optimiser = chosen(parameters, rate, fused=True)
        self.batches = Batches(len(self.data[0]), budget.batch, self.data[2], seed)
        self.factor, self.step = 1.0, 0
        wait = max(budget.patience * budget.check, -(-len(self.data[0]) // (budget.batch or len(self.data[0]))))
        self.patience = Patience(Scale.of(task), wait, budget.halvings)
        self.kept = [tensor.detach().clone() for tensor in parameters]  # the best weights so far
        self.curve: list[tuple[int, float, float]] = []
        self.seconds = 0.0
        self.found: Run | None = None

    def go(self, until: int, watch: Watch | None = None) -> Run:
        """On to that step, or to the end."""
        start = time.process_time()
        with one_thread(self.torch):
            while True:
                if self.step % self.budget.check == 0 or self.step >= until:
                    found = self.found = replace(self._count(), seconds=self.seconds + time.process_time() - start)
                    done = found.plateau or self._is_whole(found)
                    if (watch is not None and watch(found)) or done or self.step >= until:
                        self.seconds = found.seconds
                        return found
                self._advance()

    def finish(self, watch: Watch | None = None) -> Run:
        """To the end, and back to the best weights: the last ones have the noise of their last batches."""
        found = self.go(self.budget.steps, watch)
        if self.budget.decay != "plateau" or self._is_whole(found) or self.patience.best >= found.loss:
            return found
        self._copy(self.kept, self.net.parameters())
        best = _judge_run(self.torch, self.net, self.task, self.data)
        return replace(found, right=best.right, loss=best.loss)

    def _is_whole(self, found: Run) -> bool:
        """Whether nothing is left to learn; numbers within their tolerance may still come nearer."""
        return found.exact and self.task.kind != "reals"

    def _count(self) -> Run:
        """How it stands, and whether the rate is to be halved."""
        found = _judge_run(self.torch, self.net, self.task, self.data)
        if not self.curve or self.curve[-1][0] < self.step:
            self.curve.append((self.step, found.accuracy, found.loss))
            if self.patience.is_best(found.loss):
                self._copy(self.net.parameters(), self.kept)
            decays = self.budget.decay == "plateau" and not self._is_whole(found)
            if decays and self.patience.halves(self.step, found.loss):
                self.factor /= 2
                self._copy(self.kept, self.net.parameters())
                self.optimiser.state.clear()  # its means belong to the weights that were left
                found = _judge_run(self.torch, self.net, self.task, self.data) if self.patience.flat else found
        said = {"rate": self.rate, "steps": self.step, "optimiser": self.kind, "plateau": self.patience.flat}
        return replace(found, **said, curve=tuple(self.curve))  # type: ignore[arg-type]

    def _copy(self, source: Iterable[Any], into: Iterable[Any]) -> None:
        with self.torch.no_grad():
            for tensor, place in zip(source, into, strict=True):
                place.copy_(tensor)

    def _advance(self) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * self.factor * _schedule(self.budget, self.step)
        rows = take(self.data, self.batches.draw(), self.task.scope)
        loss = _loss(self.torch, self.net, self.task, *rows)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.step += 1


def train(net: Any, task: Task, budget: Budget, rate: float, seed: int = 0, watch: Watch | None = None) -> Run:
    """Adam from the weights that the net has, until every answer comes back or the steps are spent.

    ``net`` is a `Net`, or `to_torch(model)` of a constructed model, whose classes are numbers.
    """
    return Training(net, task, budget, rate, seed).finish(watch)


def train_tuned(
    shape: Shape, task: Task, budget: Budget, seed: int = 0, watch: Watch | None = None, net: Any = None
) -> Run:
    """The best of all optimisers and rates by successive halving, to its end; from ``net`` if given."""

    def fresh() -> Any:
        return Net(shape, task, seed, budget.dtype) if net is None else copy.deepcopy(net)

    runs = [
        Training(fresh(), task, budget, rate, seed, kind) for kind in budget.optimisers for rate in budget.rates
    ]
    choosing = min(budget.choosing or budget.steps, budget.steps)
    until, spent, by_noise = max(1, round(budget.short * choosing)), 0.0, False
    while len(runs) > 1:
        runs.sort(key=lambda run: _standing(run.go(until)))
        known = _standing(runs[0].found)[0] == 0
        half = 1 if known else len(runs) // 2
        worse = [run for run in runs[half:] if known or _is_worse(run, runs[0])]
        longer = min(2 * until, budget.steps)
        if longer <= until or len(runs) * longer > choosing:
            by_noise, worse = by_noise or len(worse) < len(runs[half:]), runs[half:]
        spent += sum(run.seconds for run in worse)
        runs, until = [run for run in runs if run not in worse], longer
    ended = runs[0].finish(watch)
    return replace(ended, seconds=ended.seconds + spent, by_noise=by_noise)


def _is_worse(run: Training, best: Training) -> bool:
    """Clearly: by more than the noise of both, and the best one has learned something."""
    found, least = run.curve[-1][2], best.curve[-1][2]
    if not (math.isfinite(found) and math.isfinite(least)):
        return not math.isfinite(found)
    spread = math.hypot(*(noise([loss for _, _, loss in each.curve[-RECENT:]]) for each in (run, best)))
    return best.patience.has_learned and found - least > CLEARLY * spread


def _standing(run: Run | None) -> tuple[int, float]:
    """To sort by: runs that know all, the quickest first, then by their loss; a loss that is no number is last."""
    assert run is not None
    if run.exact:
        return 0, run.steps
    return (1, run.loss) if math.isfinite(run.loss) else (2, 0.0)


def _schedule(budget: Budget, step: int) -> float:
    warm = min(1.0, (step + 1) / budget.warm_up)
    return warm * (1 + math.cos(math.pi * step / budget.steps)) / 2 if budget.decay == "cosine" else warm


def _loss(torch: Any, net: Any, task: Task, tokens: Tensor, answers: Tensor, lengths: Tensor | None) -> Any:
    out, wanted = _answered_places(net, task, tokens, answers, lengths)
    return _mean_loss(torch, task, out, wanted)


def _mean_loss(torch: Any, task: Task, out: Tensor, wanted: Tensor) -> Any:
    if task.kind == "classes":
        return torch.nn.functional.cross_entropy(out, wanted)
    if task.kind == "digits":  # each by itself: the sum is the cross-entropy of all of them
        digits = wanted.shape[-1]
        return digits * torch.nn.functional.cross_entropy(_by_digit(out, digits).flatten(0, 1), wanted.flatten())
    return ((out - wanted) ** 2).sum(-1).mean() / 2


def _by_digit(out: Tensor, digits: int) -> Tensor:
    """Outputs [T, digits, base]."""
    return out.view(len(out), digits, -1)


def _answered_places(
    net: Any, task: Task, tokens: Tensor, answers: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Outputs [T, q] and wanted answers at the places that have one."""
    out = net(tokens) if lengths is None else net(tokens, lengths)
    if not isinstance(net, Net):  # a constructed model answers at every token
        out = {"token": out, "sequence": out[:, 0], "last": pool_tokens(out, "last", lengths, None)}[task.scope]
    seen = inside(tokens, lengths)
    if task.scope == "token" and seen is not None:
        return out[seen], answers[seen]
    return out.reshape(-1, out.shape[-1]), answers.flatten(0, 1) if task.scope == "token" else answers


def _judge_run(torch: Any, net: Any, task: Task, data: Rows) -> Run:
    right, total, loss = 0, 0, 0.0
    with torch.no_grad():
        for rows in pieces(data, task.outputs, task.scope):
            out, wanted = _answered_places(net, task, *rows)
            loss += float(_mean_loss(torch, task, out, wanted)) * len(out)
            if task.kind == "classes":
                right += int((out.argmax(-1) == wanted).sum())
            elif task.kind == "digits":
                right += int((_by_digit(out, wanted.shape[-1]).argmax(-1) == wanted).all(-1).sum())
            else:
                allowed = task.tolerance if task.kind == "reals" else 0.5
                right += int(((out - wanted).abs().amax(-1) <= allowed).sum())
            total += len(out)
    return Run(net, 0.0, 0, right, total, loss / total)


def _on_torch(torch: Any, task: Task, dtype: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """The data as the net computes: real numbers in the precision of its weights."""
    answers = torch.from_numpy(np.array(task.answers))
    if task.kind == "numbers":
        answers = answers[..., None]
    answers = answers.to(torch.int64 if task.kind in ("classes", "digits") else dtype)
    tokens = torch.from_numpy(np.array(task.tokens))
    lengths = None if task.lengths is None else torch.from_numpy(np.asarray(task.lengths, np.int64))
    return tokens if tokens.ndim == 2 else tokens.to(dtype), answers, lengths
