"""A trained twin for a function: fitted to samples, then searched for its largest error as constructed ones are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onelayer.lab.trained import Budget, Shape, Task, count_parameters, fill, predict, train_tuned
from onelayer.measure.worst_error import largest_error
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box

#: Inputs that training sees, how many at a step, and those among which the largest error is looked for.
SEEN, BATCH, SEARCHED = 4096, 256, 1 << 14
#: The most steps of all rates and optimisers together until one of them is left.
CHOOSING = 2000
#: How far from the widest width another is looked for, and by which share parameters may be off.
ASIDE, NEAR = 3, 0.02


@dataclass(frozen=True)
class Fitted:
    width: int
    parameters: int
    error: float  # the largest that was found
    mean_error: float  # over inputs drawn anew
    end: dict[str, Any]  # of its training


def fill_closely(kind: Shape, task: Task, parameters: int) -> Shape:
    """A shape of as many parameters, within two percent if there is one, about as wide as `fill` makes it.

    In deep small models one more unit of each layer may be a twentieth of all parameters: there one too many, or
    another width, comes nearer.
    """
    found = fill(kind, task, parameters)
    shapes = [found]
    for width in sorted(range(1, found.width + ASIDE + 1), key=lambda width: abs(width - found.width)):
        bare = replace(found, width=width, hidden=width)
        unit = count_parameters(replace(bare, hidden=width + 1), task) - count_parameters(bare, task)
        units = width + round((parameters - count_parameters(bare, task)) / unit)
        if found.width - ASIDE <= width and units >= width:
            shapes.append(replace(bare, hidden=units))
    off = [abs(count_parameters(shape, task) / parameters - 1) for shape in shapes]
    near = [shape for shape, share in zip(shapes, off, strict=True) if share <= NEAR]
    return near[0] if near else shapes[off.index(min(off))]


def fit_transformer(target: Target, parameters: int, layers: int, steps: int, seed: int) -> Fitted:
    """Transformers of this many layers and parameters, on tokens in [0, 1]."""
    X = np.random.default_rng([seed, 9]).random((SEEN, target.n, target.d))
    task = Task(X.astype(np.float32), target.evaluate(X), "reals", target.per)
    kind = Shape(1, layers=layers, norm=True, positions=target.kind == "ordered")
    shape = fill_closely(kind, task, parameters)
    budget = Budget(steps=steps, choosing=min(steps, CHOOSING), batch=BATCH, check=50, patience=8)
    ended = train_tuned(shape, task, budget, seed)

    def errors(Z: Any) -> Any:
        found, wanted = predict(ended.net, Z), target.evaluate(np.asarray(Z, np.float64))
        return np.abs(found - wanted).reshape(len(Z), -1).max(axis=1)

    box = Box(target.n, target.d, 0.0, 1.0, np.dtype(np.float32), np.empty(0))
    found = largest_error(errors, box, SEARCHED, seed)[0]
    drawn = np.random.default_rng([seed, 10]).random((SEEN, target.n, target.d))
    wanted = target.evaluate(drawn).reshape(SEEN, -1)
    mean = float(np.abs(predict(ended.net, drawn.astype(np.float32)).reshape(SEEN, -1) - wanted).mean())
    return Fitted(shape.width, count_parameters(shape, task), found, mean, ended.end)
