"""Sequences and answers, checked, with everything that decides which constructions apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.constructions.contexts.stream import Stream, open_stream
from onelayer.data.answers import Answers, Scope, read_answers
from onelayer.data.sequences import Sequences, read_sequences
from onelayer.errors import HypothesisError

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """Sequences and answers, checked, with everything that decides which constructions apply."""

    sequences: Sequences
    answers: Answers
    dtype: np.dtype[Any]
    positions: bool
    seed: int

    @property
    def stream(self) -> Stream:
        return open_stream(self.sequences, self.dtype, self.positions)

    def rows(self, per_sequence: bool) -> Array:
        """Answers [T, q], one per sample of the chosen mapping."""
        rows = self.answers.rows
        if self.answers.form.scope == "token" or per_sequence:
            return rows
        lengths = self.sequences.lengths
        return np.repeat(rows, self.sequences.n if lengths is None else lengths, axis=0)

    def show_answer(self, per_sequence: bool) -> Callable[[int], str]:
        rows, classes = self.rows(per_sequence), self.answers.form.classes

        def show(sample: int) -> str:
            if classes is not None:
                return repr(classes[int(rows[sample, 0])])
            return ", ".join(f"{x:.6g}" for x in rows[sample])

        return show


def read_problem(
    X: Any, Y: Any, lengths: Any, dtype: DTypeLike, positions: bool, seed: int, scope: Scope | None = None
) -> Problem:
    """Check everything that can be checked without building anything."""
    try:
        number = np.dtype(dtype)
    except TypeError:
        number = np.dtype(object)
    if number not in (np.float32, np.float64):
        raise HypothesisError("memorize", "dtype float32 or float64", f"dtype {number} was asked for", "Change it.")
    if type(seed) is not int or seed < 0:
        raise HypothesisError("memorize", "a whole seed of at least 0", f"seed={seed!r}", "Give 0, 1, 2, ...")
    if scope not in (None, "token", "sequence"):
        raise HypothesisError("memorize", 'scope "token" or "sequence"', f"scope={scope!r}", "Choose one of them.")
    sequences = read_sequences(X, lengths)
    answers = read_answers(Y, sequences, scope)
    limit, classes = 2 ** (np.finfo(number).nmant + 1), answers.form.classes
    if classes is not None and len(classes) > limit:
        raise HypothesisError(
            "memorize", f"at most {limit} classes in {number}", f"there are {len(classes)}", 'Use dtype="float64".'
        )
    size = np.abs(answers.rows)
    if not size.max() <= np.finfo(number).max or ((size > 0) & (size < np.finfo(number).tiny)).any():
        raise HypothesisError(
            "memorize",
            f"answers that {number} can hold",
            "an answer overflows or underflows it",
            "Rescale the answers.",
        )
    return Problem(sequences, answers, number, positions, seed)
