"""Where Adam takes the temperature of one softmax head from a given start; answers are random classes of sets.

The answer is given at one token, the query, which is the same in all sequences: its context, one weighted mean of
the levels of the set and of its own, is all that differs there. Sets of equal means are told apart by attention or
not at all.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.experiment import Row
from onelayer.lab.temperatures import of_head, start_head
from onelayer.lab.trained import Budget, Net, Shape, Task, train, train_tuned

Array = NDArray[Any]
SHAPE, CLASSES = Shape(16, hidden=64), 4
#: Rates that are tried side by side, for so many steps at most; the best one runs from its start, and is watched.
#: None is given up in the first half: a rate that wins the first steps may carry a head far away.
RATES, CHOOSING, SHORT = (3e-3, 1e-2), 1600, 0.5
#: Steps between two counts, and the points of a path that a row keeps.
CHECK, POINTS = 20, 40


def train_from(start: float, levels: Array, sets: Array, steps: int, seed: int) -> Row:
    """One head that starts at an inverse temperature: where it ends, what ended it, and its path. The last token of
    the sets is the query."""
    task, query = task_of(levels, sets, seed), float(levels[sets[0, -1]])
    net = Net(SHAPE, task, seed)
    start_head(net, query, start)
    choosing = Budget(steps=min(steps, CHOOSING), rates=RATES, optimisers=("adam",), short=SHORT, check=CHECK)
    rate = train_tuned(SHAPE, task, choosing, seed, net=copy.deepcopy(net)).rate
    path: list[tuple[int, float]] = []

    def watch(found: Any) -> bool:
        path.append((found.steps, of_head(found.net, query)))
        return False

    ended = train(net, task, Budget(steps=steps, check=CHECK), rate, seed, watch)
    path[-1] = ended.steps, of_head(ended.net, query)  # it may have gone back to better weights
    kept = np.unique(np.linspace(0, len(path) - 1, POINTS).round().astype(int))
    points = json.dumps([[path[k][0], float(f"{path[k][1]:.4g}")] for k in kept])
    done = {"accuracy": ended.accuracy, "taken": ended.steps, "ended_by": ended.ended_by}
    return {"rate": rate, "beta": path[-1][1], **done, "path": points}


def task_of(levels: Array, sets: Array, seed: int) -> Task:
    """Random classes of sets, asked for at the last token."""
    answers = np.random.default_rng([seed, 5]).integers(0, CLASSES, len(sets))
    return Task(levels[sets][..., None], answers, scope="last")
