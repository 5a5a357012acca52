"""How many answers a model gives back, and the first that it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.interfaces import Function, NextToken
from onelayer.problems.answers import AnswerForm, in_classes_of, read_answers
from onelayer.problems.scopes import at_answers
from onelayer.problems.tokens import Text
from onelayer.problems.windows import read_windows

if TYPE_CHECKING:
    from onelayer.model import Model


@dataclass(frozen=True)
class Recall:
    """Classes must come back equal; reals equal to the answer as the model's dtype holds it.

    A readout that interpolates (`triangular`) is judged up to the error its ledger states.
    """

    right: int
    total: int
    largest_change: float  # largest |given - wanted| of real answers, 0 for classes
    first_wrong: str = ""

    @property
    def perfect(self) -> bool:
        return self.right == self.total

    def __str__(self) -> str:
        change = f", the largest change being {self.largest_change:.2g}" if self.largest_change else ""
        return f"{self.right:,} of {self.total:,} answers reproduced{change}"


def outside_box(model: Model, X: Any, lengths: Any = None) -> int:
    """Of a model of a function: how many sequences have a token beyond the box, where nothing is promised."""
    interface = model.interface
    if not isinstance(interface, Function):
        return 0
    low, high = interface.low, interface.high
    sequences = model.read(X, lengths)
    beyond = np.any((sequences.tokens < low) | (sequences.tokens > high), axis=2)
    valid = sequences.valid()
    return int(np.any(beyond if valid is None else beyond & valid, axis=1).sum())


def recall(model: Model, X: Any, Y: Any = None, lengths: Any = None) -> Recall | TextRecall:
    """Ask the model for every answer and compare; of a model of a text, X is the text."""
    if isinstance(model.interface, NextToken) and Y is None:
        return recall_text(model, X)
    return recall_answers(model, X, Y, lengths)


def recall_answers(model: Model, X: Any, Y: Any, lengths: Any = None) -> Recall:
    sequences = model.ask(X, lengths)
    wanted = read_answers(Y, sequences, model.form.scope)
    rows = in_classes_of(model.form, wanted)
    given = at_answers(model.rows(sequences), model.form.scope, sequences.lengths)
    if model.form.classes is not None:
        right = (np.rint(given) == rows).all(axis=1)
    else:
        allowed = model.interface.allowed_error
        right = (np.abs(given - rows.astype(model.transformer.dtype)) <= allowed).all(axis=1)
    change = 0.0 if wanted.form.classes is not None else float(np.abs(given - rows).max())
    first = ""
    if not right.all():
        at = int(np.argmin(right))
        i, k = (at, None) if model.form.scope != "token" else sequences.place(at)
        first = f"sequence {i}" if k is None else f"sequence {i}, token {k} ({sequences.show(i, k)})"
        first += _difference(given[at], wanted.rows[at], model.form, wanted.form)
    return Recall(int(right.sum()), len(right), change, first)


def _difference(given: Any, wanted: Any, of_model: AnswerForm, of_data: AnswerForm) -> str:
    """What is answered and what was wanted; of long vectors, in the component that differs most."""
    if of_model.classes is None and len(given) > 4:
        c = int(np.argmax(np.abs(given - wanted)))
        return f", component {c} is answered {float(given[c]):.9g}, not {float(wanted[c]):.9g}"
    return f" is answered {_format_row(given, of_model)}, not {_format_row(wanted, of_data)}"


def _format_row(row: Any, form: AnswerForm) -> str:
    if form.classes is None:
        return ", ".join(f"{float(x):.9g}" for x in row)
    number = int(np.clip(np.rint(row[0]), 0, len(form.classes) - 1))
    return f"{form.classes[number]!r:.60}"


@dataclass(frozen=True)
class TextRecall:
    """How many windows of a text are answered as the text goes on; a distribution must be equal to the bit."""

    certain: int  # different windows with one continuation
    certain_right: int
    ambiguous: int  # different windows with several
    ambiguous_right: int
    first_wrong: str = ""

    @property
    def perfect(self) -> bool:
        return self.certain == self.certain_right and self.ambiguous == self.ambiguous_right

    def __str__(self) -> str:
        return (
            f"{self.certain_right:,} of {self.certain:,} windows with one continuation reproduced, "
            f"{self.ambiguous_right:,} of {self.ambiguous:,} with several give its distribution"
        )


def recall_text(model: Model, text: Text) -> TextRecall:
    """Ask for what follows every window of this text, and compare with what does."""
    interface = model.interface_as(NextToken, "recall_text")
    wanted = read_windows(interface.encode(text), interface.context, interface.tokens.size)
    windows, K = model.windows, len(wanted.distributions)
    right = np.empty(wanted.count, bool)
    for rows, classes in windows.classes(wanted.stream):
        pairs, which = np.unique(classes * K + wanted.which[rows], return_inverse=True)
        same = (windows.distributions[pairs // K] == wanted.distributions[pairs % K]).all(axis=1)
        right[rows] = same[which.reshape(-1)]
    right = right[wanted.new]
    several = wanted.ambiguous
    first = "" if right.all() else f"the window before token {wanted.first[np.argmin(right)]}"
    return TextRecall(
        int((~several).sum()), int(right[~several].sum()), int(several.sum()), int(right[several].sum()), first
    )
