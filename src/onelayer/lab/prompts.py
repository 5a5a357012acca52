"""Layers that learn from their prompt, trained on tasks that are drawn anew at every step.

Every task is seen once, so that nothing can be learned by heart: what is left is the algorithm. Gradients are cut
to length 1: loops may blow single tasks up.

The budget of tuning is the same for every twin. All rates and optimisers start from the same weights and see the
same tasks; by the loss on tasks that no step sees, the worse half is given up four times, after equal shares of as
many steps as one run may take (successive halving). The run that is left goes on where it is until that loss stops
falling: then it goes back to its best weights at half the rate, and several halvings without a fall end it. As in
`plateaus` the wait is at least a share of the steps taken, and a run that never fell is not at its end. A budget of
steps ends the others, and a run says which of the two it was.

Many of these losses have a floor that nobody knows: the noise of answers, or what no layer of the shape can do. All
that is left to learn may be a hundredth of the loss, so a smaller share of it is a fall than in `plateaus`, where
the floor is known. The weights that are kept are the best of all counts, and few tasks would choose lucky ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.networks import framework, one_thread
from onelayer.lab.plateaus import FALLS, SLOW

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]
Weights = dict[str, Any]
#: Tasks of a batch as tensors.
Draw = Callable[[Any], Any]
Loss = Callable[[Weights, Any], Any]
WARM_UP, LONGEST = 20, 1.0
RATES, OPTIMISERS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2), ("adam", "adamw")
#: Draws that judge, and how often those do, of the steps that a run may take.
HELD, CHECKS = 16, 100
#: The least steps between two counts: each costs as much as several steps.
LEAST = 10
#: The share of the loss that is a fall: a fifth of the least distance that an experiment tells from none.
FALL = 0.002
#: The least steps without a fall after which the rate is halved, and as many halvings in a row that end a run.
WAIT, HALVINGS = 100, 3
#: Points of a curve that rows keep.
POINTS = 16


@dataclass(frozen=True)
class Run:
    """What was chosen, and how it ended."""

    rate: float  # the first, before it was halved
    optimiser: str
    steps: int  # taken by the run that was chosen
    ended_by: Literal["plateau", "budget"]
    loss: float  # on the tasks that judge, of the weights that are kept
    curve: tuple[tuple[int, float], ...]  # step and that loss
    all_steps: int  # with those of the runs that were given up

    @property
    def row(self) -> dict[str, Any]:
        """As columns of an experiment's row."""
        places = sorted({round(i) for i in np.linspace(0, len(self.curve) - 1, POINTS)})
        curve = [[step, float(f"{loss:.4g}")] for step, loss in (self.curve[i] for i in places)]
        found = {"taken": self.steps, "rate": self.rate, "optimiser": self.optimiser}
        return {**found, "ended_by": self.ended_by, "curve": json.dumps(curve)}


def start(sizes: dict[str, tuple[tuple[int, ...], float]], seed: int) -> Weights:
    """First weights: normal, of the given shapes and standard deviations."""
    torch = framework()
    generator = torch.Generator().manual_seed(seed)
    drawn = {name: spread * torch.randn(size, generator=generator) for name, (size, spread) in sizes.items()}
    return {name: tensor.requires_grad_() for name, tensor in drawn.items()}


class _Candidate:
    """A run under way."""

    def __init__(self, weights: Weights, rate: float, optimiser: str) -> None:
        torch = framework()
        self.weights = {name: part.detach().clone().requires_grad_() for name, part in weights.items()}
        self.tensors = list(self.weights.values())
        self.first, self.rate, self.name = rate, rate, optimiser
        kind = torch.optim.AdamW if optimiser == "adamw" else torch.optim.Adam
        self.optimiser = kind(self.tensors, rate, fused=True)
        self.steps, self.curve = 0, list[tuple[int, float]]()
        self.best, self.kept = math.inf, self.copied()

    def copied(self) -> list[Any]:
        return [part.detach().clone() for part in self.tensors]

    def step(self, loss: Loss, tasks: Any) -> None:
        self.optimiser.param_groups[0]["lr"] = self.rate * min(1.0, (self.steps + 1) / WARM_UP)
        self.optimiser.zero_grad()
        loss(self.weights, tasks).backward()
        framework().nn.utils.clip_grad_norm_(self.tensors, LONGEST)
        self.optimiser.step()
        self.steps += 1

    def judge(self, loss: Loss, held: list[Any]) -> float:
        """The loss on tasks of no step; the best weights are kept."""
        found = sum(measure(self.weights, loss, tasks) for tasks in held) / len(held)
        found = found if math.isfinite(found) else math.inf
        if found < self.best:
            self.best, self.kept = found, self.copied()
        if math.isfinite(found):
            self.curve.append((self.steps, found))
        return found

    def go_back(self) -> None:
        """To the best weights, with fresh moments: those of other weights would lead away from them."""
        with framework().no_grad():
            for part, kept in zip(self.tensors, self.kept, strict=True):
                part.copy_(kept)
        self.optimiser.state.clear()


def search(
    weights: Weights,
    loss: Loss,
    draw: Draw,
    steps: int,
    seed: int,
    rates: tuple[float, ...] = RATES,
    optimisers: tuple[str, ...] = OPTIMISERS,
) -> Run:
    """Choose how to train the weights, and train them in place; no run takes more than so many steps."""
    torch = framework()
    generator = torch.Generator().manual_seed(seed)
    held = [draw(generator) for _ in range(HELD)]
    held = held[:1] if held[0] is held[-1] else held  # data that are always the same
    running = [_Candidate(weights, rate, name) for rate in rates for name in optimisers]
    with one_thread(torch):
        for one in running:
            one.judge(loss, held)
        spent = _halve(running, loss, draw, steps, generator, held)
        chosen = running[0]
        before = chosen.steps
        ended = _go_on(chosen, loss, lambda: draw(generator), steps, held)
        chosen.go_back()
    with torch.no_grad():
        for name, part in weights.items():
            part.copy_(chosen.weights[name])
    taken = chosen.steps
    found: Literal["plateau", "budget"] = "plateau" if ended else "budget"
    return Run(chosen.first, chosen.name, taken, found, chosen.best, tuple(chosen.curve), spent + taken - before)


def _halve(running: list[_Candidate], loss: Loss, draw: Draw, steps: int, generator: Any, held: list[Any]) -> int:
    """Leave one run, the others given up by halves; the steps of all."""
    rounds, spent = max(1, math.ceil(math.log2(len(running)))), 0
    while len(running) > 1:
        most = steps - running[0].steps
        for _ in range(min(most, max(1, steps // (rounds * len(running))))):
            tasks = draw(generator)
            for one in running:
                one.step(loss, tasks)
            spent += len(running)
        judged = [one.judge(loss, held) for one in running]
        order = sorted(range(len(running)), key=lambda i: judged[i])[: math.ceil(len(running) / 2)]
        running[:] = [running[i] for i in order]
    return spent


def _go_on(one: _Candidate, loss: Loss, tasks: Callable[[], Any], steps: int, held: list[Any]) -> bool:
    """Train to the end; whether the loss had stopped falling before the steps were used up."""
    every = max(LEAST, steps // CHECKS)
    first = one.curve[0][1] if one.curve else math.inf
    mark, since, halved = one.best, one.steps, 0
    while one.steps < steps:
        for _ in range(min(every, steps - one.steps)):
            one.step(loss, tasks())
        found = one.judge(loss, held)
        if found <= (1 - FALL) * mark:
            mark, since, halved = found, one.steps, 0
        elif one.steps - since >= max(WAIT, SLOW * since) and (
            one.best <= (1 - FALLS) * first or not found <= first
        ):
            one.go_back()
            one.rate, since, halved = one.rate / 2, one.steps, halved + 1
            if halved > HALVINGS:
                return one.best <= (1 - FALLS) * first
    return False


def fresh(draw: Draw, seed: int) -> Any:
    """Tasks of another seed, the same for every layer that is measured."""
    return draw(framework().Generator().manual_seed(seed + 10**6))


def measure(weights: Weights, loss: Loss, tasks: Any) -> float:
    torch = framework()
    with torch.no_grad(), one_thread(torch):
        return float(loss(weights, tasks))


def given(arrays: dict[str, Array]) -> Weights:
    """Constructed weights, to be measured as trained ones are."""
    return {name: framework().from_numpy(np.asarray(array, np.float32)) for name, array in arrays.items()}


def numbers(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().double().numpy())


def cosine(p: Array, other: Array) -> float:
    """Between two layers as coefficient maps."""
    return float((p * other).sum() / math.sqrt((p * p).sum() * (other * other).sum()))
