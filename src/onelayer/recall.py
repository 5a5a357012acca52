"""How many answers a model gives back, and the first that it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.data.answers import AnswerForm, read_answers
from onelayer.errors import HypothesisError
from onelayer.memory import Memory


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


def outside_box(model: Memory, X: Any, lengths: Any = None) -> int:
    """Of a model of a function: how many sequences have a token beyond the box, where nothing is promised."""
    if not {"target", "low", "high"} <= set(model.ledger):
        return 0
    low, high = (float(str(model.ledger[name])) for name in ("low", "high"))
    sequences = model.read(X, lengths)
    beyond = np.any((sequences.tokens < low) | (sequences.tokens > high), axis=2)
    valid = sequences.valid()
    return int(np.any(beyond if valid is None else beyond & valid, axis=1).sum())


def recall(model: Memory, X: Any, Y: Any, lengths: Any = None) -> Recall:
    """Ask the model for every answer and compare."""
    sequences = model.ask(X, lengths)
    wanted = read_answers(Y, sequences, model.form.scope)
    refuse_other_kind(model.form, wanted.form)
    outputs = model.outputs(sequences)
    valid = sequences.valid()
    if model.form.scope == "sequence":
        given = outputs[:, 0]
    elif model.form.scope == "last":
        given = (
            outputs[:, -1] if sequences.lengths is None else outputs[np.arange(len(outputs)), sequences.lengths - 1]
        )
    else:
        given = outputs.reshape(-1, outputs.shape[-1]) if valid is None else outputs[valid]
    rows = wanted.rows
    if wanted.form.classes is not None and model.form.classes is not None:
        index = {name: i for i, name in enumerate(model.form.classes)}
        rows = np.array([index.get(name, -1) for name in wanted.form.classes])[rows[:, 0].astype(int)][:, None]
        right = (np.rint(given) == rows).all(axis=1)
    else:
        told = [float(str(model.ledger[name])) for name in ("readout_error", "tolerance") if name in model.ledger]
        allowed = max(told, default=0.0)
        right = (np.abs(given - rows.astype(model.transformer.dtype)) <= allowed).all(axis=1)
    change = 0.0 if wanted.form.classes is not None else float(np.abs(given - rows).max())
    first = ""
    if not right.all():
        at = int(np.argmin(right))
        i, k = (at, None) if model.form.scope != "token" else sequences.place(at)
        first = f"sequence {i}" if k is None else f"sequence {i}, token {k} ({sequences.show(i, k)})"
        first += _difference(given[at], wanted.rows[at], model.form, wanted.form)
    return Recall(int(right.sum()), len(right), change, first)


def refuse_other_kind(known: AnswerForm, given: AnswerForm) -> None:
    """Classes are compared with classes, and vectors with vectors of as many components."""
    if (given.classes is None) != (known.classes is None) or given.width != known.width:
        raise HypothesisError(
            "data",
            f"answers of the kind that was memorised ({_kind(known.classes, known.width)})",
            f"there are {_kind(given.classes, given.width)}",
            "Compare with the answers the model was made from.",
        )


def _difference(given: Any, wanted: Any, of_model: AnswerForm, of_data: AnswerForm) -> str:
    """What is answered and what was wanted; of long vectors, in the component that differs most."""
    if of_model.classes is None and len(given) > 4:
        c = int(np.argmax(np.abs(given - wanted)))
        return f", component {c} is answered {float(given[c]):.9g}, not {float(wanted[c]):.9g}"
    return f" is answered {_shown(given, of_model)}, not {_shown(wanted, of_data)}"


def _shown(row: Any, form: AnswerForm) -> str:
    if form.classes is None:
        return ", ".join(f"{float(x):.9g}" for x in row)
    number = int(np.clip(np.rint(row[0]), 0, len(form.classes) - 1))
    return f"{form.classes[number]!r:.60}"


def _kind(classes: Any, width: int) -> str:
    return "classes" if classes is not None else "real numbers" if width == 1 else f"vectors of {width}"
