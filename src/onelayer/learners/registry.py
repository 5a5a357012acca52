"""Every learner by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onelayer.learners import gradient_step
from onelayer.learners.built import Built
from onelayer.statements import Statement


@dataclass(frozen=True)
class Entry:
    """How a learner is built, what it states, its kind of attention, and what can be proved of it."""

    build: Callable[..., Built]
    statement: Statement
    attention: str
    proves: str
    options: tuple[str, ...]


LEARNERS = {
    "gd": Entry(gradient_step.build, gradient_step.STATEMENT, "linear", "equals", ("eta",)),
}
