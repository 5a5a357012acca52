"""Trained twins: Transformers of one or more layers under Adam, for comparison with constructed ones.

Rows of experiments must not depend on the machine's speed, so a run is limited in steps; a person who watches may
end it by the clock.

The budget of tuning is the same for every model: each learning rate is tried in a short run from the same initial
weights, the one with the lowest loss (at the same step) is used for the run that counts.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import OptionError
from onelayer.lab.networks import Net, Shape, Task, count_parameters, fill, framework, inside, pool_tokens

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Budget",
    "Net",
    "Run",
    "Shape",
    "Task",
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


@dataclass(frozen=True)
class Budget:
    """How a model is trained: Adam, warmed up over 20 steps, on all the data at once unless ``batch`` is given."""

    steps: int = 1000
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)
    short: float = 0.1  # share of the steps in the run that tries a rate
    decay: Literal["cosine", "plateau", "none"] = "cosine"
    batch: int | None = None
    check: int = 10  # steps between two counts of right answers
    warm_up: int = 20
    patience: int = 20  # counts without a lower loss after which "plateau" halves the rate


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    net: Any
    rate: float
    steps: int  # taken; fewer than allowed if every answer came back
    right: int
    answers: int
    loss: float

    @property
    def exact(self) -> bool:
        return self.right == self.answers

    @property
    def accuracy(self) -> float:
        return self.right / self.answers


#: Called at each count; ends the run by returning True.
Watch = Callable[[Run], bool]


def train(net: Any, task: Task, budget: Budget, rate: float, seed: int = 0, watch: Watch | None = None) -> Run:
    """Adam from the weights that the net has, until every answer comes back or the steps are spent.

    ``net`` is a `Net`, or `to_torch(model)` of a constructed model, whose classes are numbers.
    """
    torch = framework()
    with _one_thread(torch):
        tokens, answers, lengths = _on_torch(torch, task)
        parameters = list(net.parameters())
        optimizer = torch.optim.Adam(parameters, rate, fused=True)
        generator = torch.Generator().manual_seed(seed)
        factor, best, waited, step = 1.0, math.inf, 0, 0
        while True:
            if step % budget.check == 0 or step >= budget.steps:
                found = replace(_judge_run(torch, net, task, tokens, answers, lengths), rate=rate, steps=step)
                waited, best = (0, found.loss) if found.loss < best else (waited + 1, best)
                if budget.decay == "plateau" and waited >= budget.patience:
                    factor, waited = factor / 2, 0
                done = found.exact and task.kind != "reals"
                if (watch is not None and watch(found)) or done or step >= budget.steps:
                    return found
            for group in optimizer.param_groups:
                group["lr"] = rate * factor * _schedule(budget, step)
            rows = slice(None)
            if budget.batch is not None and budget.batch < len(tokens):
                rows = torch.randperm(len(tokens), generator=generator)[: budget.batch]
            part = None if lengths is None else lengths[rows]
            loss = _loss(torch, net, task, tokens[rows], answers[rows], part)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1


def train_tuned(
    shape: Shape, task: Task, budget: Budget, seed: int = 0, watch: Watch | None = None, net: Any = None
) -> Run:
    """The best rate of short runs, then the run that counts, from the same initial weights; of ``net`` if given."""

    def fresh() -> Any:
        return Net(shape, task, seed) if net is None else copy.deepcopy(net)

    short = replace(budget, steps=max(1, round(budget.short * budget.steps)), decay="none")
    rates, losses = budget.rates, []
    for rate in rates if len(rates) > 1 else ():
        tried = train(fresh(), task, short, rate, seed)
        losses.append((not tried.exact, tried.steps if tried.exact else tried.loss, rate))
    chosen = min(losses)[2] if losses else rates[0]
    return train(fresh(), task, budget, chosen, seed, watch)


def _schedule(budget: Budget, step: int) -> float:
    warm = min(1.0, (step + 1) / budget.warm_up)
    return warm * (1 + math.cos(math.pi * step / budget.steps)) / 2 if budget.decay == "cosine" else warm


def _loss(torch: Any, net: Any, task: Task, tokens: Tensor, answers: Tensor, lengths: Tensor | None) -> Any:
    out, wanted = _answered_places(net, task, tokens, answers, lengths)
    return _mean_loss(torch, task, out, wanted)


def _mean_loss(torch: Any, task: Task, out: Tensor, wanted: Tensor) -> Any:
    if task.kind == "classes":
        return torch.nn.functional.cross_entropy(out, wanted)
    return ((out - wanted) ** 2).sum(-1).mean() / 2


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


def _judge_run(
    torch: Any, net: Any, task: Task, tokens: Tensor, answers: Tensor, lengths: Tensor | None, block: int = 4096
) -> Run:
    right, total, loss = 0, 0, 0.0
    with torch.no_grad():
        for start in range(0, len(tokens), block):
            rows = slice(start, start + block)
            out, wanted = _answered_places(
                net, task, tokens[rows], answers[rows], None if lengths is None else lengths[rows]
            )
            loss += float(_mean_loss(torch, task, out, wanted)) * len(out)
            if task.kind == "classes":
                right += int((out.argmax(-1) == wanted).sum())
            else:
                allowed = task.tolerance if task.kind == "reals" else 0.5
                right += int(((out - wanted).abs().amax(-1) <= allowed).sum())
            total += len(out)
    return Run(net, 0.0, 0, right, total, loss / total)


def predict(net: Any, tokens: Array, lengths: Array | None = None) -> Array:
    """Outputs as an array."""
    return _run(net, tokens, lengths)


def contexts(net: Any, tokens: Array, lengths: Array | None = None) -> Array:
    """What the attention of a torch model gives, with its residual, [N, n, width]: what feed-forward parts see."""
    if isinstance(net, Net):
        return _run(net.contexts, tokens, lengths)
    needed = [hasattr(net, name) for name in ("embedding", "feedforward", "attention")]
    if not all(needed):
        raise OptionError("lab", "a trained model, or one of to_torch", f"{type(net)}", "Give outputs instead.")

    def after_attention(ids: Tensor, counts: Tensor | None = None) -> Tensor:
        places = framework().arange(ids.shape[1])
        h = ids.to(net.attention.W_Q.dtype) if net.embedding is None else net.embedding(ids, places)
        h = net.feedforward(h)
        found: Tensor = h + net.attention(h, inside(ids, counts))
        return found

    return _run(after_attention, tokens, lengths)


def has_positions(net: Any) -> bool:
    """Whether the order of the tokens reaches the attention."""
    if isinstance(net, Net):
        return net.shape.positions
    return getattr(getattr(net, "embedding", None), "positions", None) is not None


def _run(function: Callable[..., Tensor], tokens: Array, lengths: Array | None) -> Array:
    torch = framework()
    with torch.no_grad(), _one_thread(torch):
        given = torch.from_numpy(np.ascontiguousarray(tokens))
        if lengths is None:
            return np.asarray(function(given).numpy())
        return np.asarray(function(given, torch.from_numpy(lengths)).numpy())


def _on_torch(torch: Any, task: Task) -> tuple[Tensor, Tensor, Tensor | None]:
    answers = np.asarray(task.answers)
    if task.kind == "numbers":
        answers = answers[..., None]
    answers = answers.astype(np.int64 if task.kind == "classes" else np.float32)
    tokens = task.tokens if task.tokens.ndim == 2 else task.tokens.astype(np.float32)
    lengths = None if task.lengths is None else torch.from_numpy(np.asarray(task.lengths, np.int64))
    return torch.from_numpy(np.ascontiguousarray(tokens)), torch.from_numpy(answers), lengths


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Sums in one order, so that a seed gives the same weights whatever else the machine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
