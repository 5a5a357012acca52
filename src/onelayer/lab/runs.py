"""How a run of training ended, and what a row keeps of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Optimiser = Literal["adam", "adamw"]
EndedBy = Literal["all right", "plateau", "budget"]
#: Counts of a run that its row keeps.
MILESTONES = 16


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    net: Any
    rate: float
    steps: int  # taken; fewer than allowed if every answer came back or the loss stopped falling
    right: int
    answers: int
    loss: float
    optimiser: Optimiser = "adam"
    plateau: bool = False  # whether the loss had stopped falling
    curve: tuple[tuple[int, float, float], ...] = ()  # step, accuracy and loss at every count
    seconds: float = 0.0  # of CPU, with the runs that were given up
    by_noise: bool = False  # whether others were given up whose losses were as good, for lack of steps

    @property
    def exact(self) -> bool:
        return self.right == self.answers

    @property
    def accuracy(self) -> float:
        return self.right / self.answers

    @property
    def ended(self) -> bool:
        """Whether more steps would have changed nothing: all answers are right, or the loss stopped falling."""
        return self.ended_by != "budget"

    @property
    def ended_by(self) -> EndedBy:
        return "all right" if self.exact else "plateau" if self.plateau else "budget"

    @property
    def end(self) -> dict[str, Any]:
        """For a row: how far it went, what was cut by the budget, and accuracy and loss on the way."""
        chosen = {"taken": self.steps, "by_noise": int(self.by_noise)}
        curve = json.dumps([[step, round(right, 4), float(f"{loss:.4g}")] for step, right, loss in self.milestones])
        return {**chosen, "ended": int(self.ended), "ended_by": self.ended_by, "curve": curve}

    @property
    def milestones(self) -> list[tuple[int, float, float]]:
        """A few counts of the curve, the first and the last among them, in equal steps."""
        picked = np.linspace(0, len(self.curve) - 1, min(len(self.curve), MILESTONES)).round().astype(int)
        return [self.curve[index] for index in picked]
