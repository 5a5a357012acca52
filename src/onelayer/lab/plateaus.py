"""When a loss has stopped falling: what there is to learn, what has been learned, how long nothing came of it.

A loss lies between that of the best constant answer, c, and the least that the data allow (0, unless equal inputs
have different answers). Three things follow, which a fixed share of the loss and a fixed wait both miss:

- What a model knows is c minus its loss. Near c a hundredth of the loss may be most of what a model of its size can
  ever hold, so a fall counts if it is a hundredth of what is left or of what is learned, whichever is less.
- As long as nothing is learned there is no fall to wait for. A loss may stay at c for longer than any patience
  before it falls, so such a run is never at its end, and its rate is halved only if its loss is above the first.
  Something is learned if all answers together are likelier than the constant one by more than one direction without
  meaning makes them: twice the logarithm of the ratio is chi-squared with one degree (Wilks), below 3.84 in 95%.
- A curve that falls like a power of the steps falls by the same share whenever the steps grow by the same factor,
  and any fixed wait calls it ended at last. So the wait is at least a share of the steps taken; it is also at least
  a pass over the data, since answers that were not seen cannot have been learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.networks import Task

Array = NDArray[Any]
#: The share of what is left or learned that is a fall.
FALLS = 0.01
#: The share of the steps taken that is waited for it: steps^-0.1 falls by `FALLS` in so many.
SLOW = 0.1
#: Half of 3.84: by how many nats answers get likelier along one direction without meaning.
CHANCE = 1.959964**2 / 2


@dataclass(frozen=True)
class Scale:
    """The losses between which a run moves."""

    constant: float  # of the best constant answer
    least: float  # that the data allow
    answers: int
    squares: bool = False  # the loss is half a mean square, not a cross-entropy

    @classmethod
    def of(cls, task: Task) -> Scale:
        inputs, answers = _pairs(task)
        if task.kind == "classes":
            pairs = _number(np.stack([inputs, answers], 1))
            joint, alone = _entropy(pairs), _entropy(inputs)
            return cls(_entropy(_number(answers)), max(0.0, joint - alone), len(answers))
        if task.kind == "digits":  # of what each digit is by itself
            columns = [np.stack([inputs, column], 1) for column in answers.T]
            constant = sum(_entropy(_number(column[:, 1])) for column in columns)
            least = sum(_entropy(_number(column)) - _entropy(inputs) for column in columns)
            return cls(constant, max(0.0, least), len(answers))
        rows = answers.reshape(len(answers), -1).astype(np.float64)
        means = np.stack([np.bincount(inputs, column) for column in rows.T], 1) / np.bincount(inputs)[:, None]
        inside, around = rows - means[inputs], rows - rows.mean(axis=0)
        constant, least = (float((part**2).sum(1).mean() / 2) for part in (around, inside))
        return cls(constant, least, len(rows), squares=True)

    @property
    def chance(self) -> float:
        """How far a loss may be below the constant answer's, and nothing is learned.

        Squares are likelihoods of a normal distribution of unknown width: half the logarithm of their ratio counts.
        """
        return self.constant * 2 * CHANCE / self.answers if self.squares else CHANCE / self.answers

    @property
    def has_pattern(self) -> bool:
        """Whether there is anything to learn beside the constant answer."""
        return self.constant - self.least > self.chance

    def is_learned(self, loss: float) -> bool:
        return loss < self.constant - self.chance

    def smallest_fall(self, loss: float) -> float:
        return FALLS * (min(loss, self.constant - loss) if self.is_learned(loss) else loss)


class Patience:
    """What is to be done at each count of a run: nothing, halve the rate, or end it."""

    def __init__(self, scale: Scale, wait: int, halvings: int) -> None:
        self.scale, self.wait, self.halvings = scale, wait, halvings
        self.first, self.best, self.mark = math.inf, math.inf, math.inf
        self.since, self.halved = 0, 0

    @property
    def has_learned(self) -> bool:
        """Something, or there is nothing to learn."""
        return self.scale.is_learned(self.best) or not self.scale.has_pattern

    @property
    def flat(self) -> bool:
        """Whether so many halvings in a row brought nothing to a run that had learned something."""
        return self.has_learned and self.halved >= self.halvings

    def is_best(self, loss: float) -> bool:
        """Count a loss; whether it is the lowest so far."""
        self.first = loss if math.isinf(self.first) else self.first
        lowest = loss < self.best
        self.best = loss if lowest else self.best
        return lowest

    def halves(self, step: int, loss: float) -> bool:
        """Whether the run has waited long enough for a fall, and should go on at half the rate."""
        if self._falls(loss):
            self.mark, self.since, self.halved = loss, step, 0
            return False
        if step - self.since < max(self.wait, SLOW * self.since):
            return False
        if not self.has_learned and loss <= self.first:
            return False
        self.since, self.halved = step, self.halved + 1
        return True

    def _falls(self, loss: float) -> bool:
        if math.isinf(self.mark):
            return math.isfinite(loss)
        first_learned = self.scale.is_learned(loss) and not self.scale.is_learned(self.mark)
        return first_learned or loss <= self.mark - self.scale.smallest_fall(self.mark)


def noise(losses: list[float]) -> float:
    """Standard deviation of a loss about a curve that is nearly a line between three counts.

    Of white noise the second difference has six times its variance.
    """
    bends = np.diff([loss for loss in losses if math.isfinite(loss)], 2)
    return math.sqrt(float((bends**2).mean()) / 6) if len(bends) else 0.0


def _pairs(task: Task) -> tuple[Array, Array]:
    """Numbers of inputs [T] and answers [T, ...]: the same number for what a model must answer in the same way."""
    N, n = task.tokens.shape[:2]
    tokens = task.tokens.reshape(N, n, -1).astype(np.float64)
    lengths = np.full(N, n) if task.lengths is None else np.asarray(task.lengths)
    inside = np.arange(n) < lengths[:, None]
    seen = np.concatenate([np.where(inside[..., None], tokens, 0.0).reshape(N, -1), lengths[:, None]], 1)
    sequences = _number(seen)
    if task.scope != "token":
        return sequences, np.asarray(task.answers)
    places = sequences[:, None] * n + np.arange(n)
    return _number(places[inside]), np.asarray(task.answers)[inside]


def _number(rows: Array) -> Array:
    """0, 1, ... for different rows."""
    found: Array = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return found


def _entropy(numbers: Array) -> float:
    """In nats, of how often each occurs."""
    counts = np.bincount(numbers)
    shares = counts[counts > 0] / len(numbers)
    return float(-(shares * np.log(shares)).sum())
