"""Every learner by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from onelayer.learners import (
    causal_step,
    gradient_step,
    kernel,
    lasso,
    logistic,
    mesa,
    nesterov,
    preconditioned,
    recurrence,
    ridge,
    selection,
    whitening,
)
from onelayer.learners.built import Built
from onelayer.statements import Statement


@dataclass(frozen=True)
class Entry:
    """How a learner is built, what it states, its kind of attention, and what can be proved of it."""

    build: Callable[..., Built]
    statement: Statement
    attention: str
    proves: str

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(name for name in inspect.signature(self.build).parameters if name != "setting")


def _entry(module: ModuleType, attention: str, proves: str = "equals") -> Entry:
    return Entry(module.build, module.STATEMENT, attention, proves)


LEARNERS = {
    "gd": _entry(gradient_step, "linear", "equals, minimises"),
    "preconditioned": _entry(preconditioned, "linear"),
    "whitening": _entry(whitening, "linear"),
    "nesterov": _entry(nesterov, "linear", "equals, within"),
    "ridge": _entry(ridge, "linear, relu", "equals, within"),
    "lasso": _entry(lasso, "relu, linear"),
    "logistic": _entry(logistic, "relu"),
    "selection": _entry(selection, "linear, twice", "equals, selects"),
    "mesa": _entry(mesa, "mesa"),
    "causal_step": _entry(causal_step, "linear, causal"),
    "recurrence": _entry(recurrence, "mesa, causal"),
    "kernel": _entry(kernel, "softmax"),
}
