"""Answers as they are given, turned into rows of numbers, and back again into the form they came in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.problems.given import is_missing, plain
from onelayer.problems.names import classes_of, codes_in
from onelayer.problems.scopes import Scope, at_answers
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Types that NumPy keeps as they are, by what they become; a float among whole numbers makes all of them reals.
PLAIN: dict[type, str] = {int: "number", float: "number", bool: "truth", str: "word"}
#: Longer class names are kept as objects: an array of words is as wide as its longest.
LONGEST_WORD = 256
#: Whole numbers below this may be classes, one to a component of a vector.
MOST_CLASSES = 1 << 22


@dataclass(frozen=True)
class AnswerForm:
    """How answers were given, so that predictions can be given back the same way."""

    scope: Scope  # one answer per token, or one per sequence: at all of its tokens, or at its last
    classes: tuple[Hashable, ...] | None  # None for real answers
    components: int | None  # None for plain numbers and classes, q for vectors of q reals
    ragged: bool  # lists of different lengths rather than an array

    @property
    def width(self) -> int:
        return 1 if self.components is None else self.components

    def decode(self, rows: Array, lengths: Array | None) -> Any:
        """Outputs [N, n, width] (or [N, 1, width] for one answer per sequence) into answers.

        An output that is not finite is no answer, and refused.
        """
        rows = _only_finite(rows, lengths)
        if self.classes is not None:
            nearest = np.clip(
                np.rint(rows[..., 0]), 0, len(self.classes) - 1
            )  # before the cast, which may overflow
            values = self._class_array[nearest.astype(np.int64)]
        else:
            values = rows[..., 0] if self.components is None else rows
        if self.scope != "token":
            return at_answers(values, self.scope, lengths)
        if self.ragged:
            full = np.full(len(values), values.shape[1]) if lengths is None else lengths
            return [values[i, :k].tolist() for i, k in enumerate(full)]
        return values

    @cached_property
    def _class_array(self) -> Array:
        """Classes as an array to index: typed where that changes nothing, else objects."""
        assert self.classes is not None
        types = {type(name) for name in self.classes}
        short = types != {str} or max(map(len, self.classes)) <= LONGEST_WORD  # type: ignore[arg-type]
        if len(types) == 1 and types <= {bool, int, float, str} and short:
            array = np.asarray(self.classes)
            if array.dtype != object and array.tolist() == list(self.classes):
                return array
        array = np.empty(len(self.classes), dtype=object)
        for i, name in enumerate(self.classes):
            array[i] = name
        return array


def _only_finite(rows: Array, lengths: Array | None) -> Array:
    """Outputs, with zeros at and after lengths where they mean nothing and may be anything; others are refused."""
    if np.isfinite(rows).all():
        return rows
    if lengths is not None and rows.shape[1] > 1:
        rows = np.where((np.arange(rows.shape[1]) < lengths[:, None])[..., None], rows, 0)
    lost = np.nonzero(np.any(~np.isfinite(rows), axis=2))
    if len(lost[0]):
        i, k = int(lost[0][0]), int(lost[1][0])
        raise DataError(
            "data",
            "finite outputs",
            f"that of sequence {i}, token {k} is {rows[i, k].tolist()}",
            "Rescale that sequence or leave it out: some value of the forward pass left the range of its dtype.",
        )
    return rows


@dataclass(frozen=True)
class Answers:
    """Rows of numbers, one per valid token in order (or one per sequence), and the form they came in."""

    rows: Array  # [T, width] float64; a class is its index
    form: AnswerForm

    @cached_property
    def are_class_vectors(self) -> bool:
        """Vectors of whole numbers from 0 on: several classes to an answer."""
        few = self.form.components is not None and self.rows.min() >= 0 and self.rows.max() < MOST_CLASSES
        return bool(few and not (self.rows % 1).any())


def read_answers(Y: Any, sequences: Sequences, scope: Scope | None = None) -> Answers:
    """Read classes, reals or vectors of numbers, one per token or one per sequence.

    Without a scope, an answer per place (N, n) means one per token; (N,) one per sequence; real (N, q) with
    q != n, one vector per sequence. A tuple of numbers is one answer, a vector; tuples of anything else, and those
    in an array of objects, are classes. Answers that were read already are not read again.
    """
    if isinstance(Y, Answers):
        return Y
    Y = plain(Y)
    if Y is None:
        raise DataError("data", "answers", "Y is None", "Give one answer per token, or one per sequence.")
    Y = [plain(row) for row in Y] if isinstance(Y, list | tuple) else Y
    scope = "sequence" if scope is None and isinstance(Y, list) and _is_vector(Y[:1]) else scope
    listed = isinstance(Y, list | tuple) and _is_nested(Y)
    ragged = listed and sequences.lengths is not None and scope not in ("sequence", "last")
    if ragged:
        values = _flatten(Y, sequences)
        _refuse_other_scope(scope, "token")
        return _encode(values, "token", values.ndim > 1, ragged=True, sequences=sequences)
    values = _as_array(Y)
    N, n = sequences.N, sequences.n
    if values.ndim == 0 or len(values) != N:
        raise DataError(
            "data",
            f"answers for {N} sequences",
            f"Y has shape {values.shape}",
            "Give one row of answers, or one answer, per sequence.",
        )
    per_token = values.ndim >= 2 and values.shape[1] == n and scope not in ("sequence", "last")
    real = values.dtype.kind == "f" or (values.dtype.kind in "iu" and values.ndim == 3)
    fits = values.ndim <= (3 if real else 2) if per_token else values.ndim <= (2 if real else 1)
    if not fits or (scope == "token" and not per_token):
        raise DataError(
            "data",
            f"answers of shape ({N}, {n}) or ({N},), with one more axis for vectors of numbers",
            f"Y has shape {values.shape} and type {values.dtype}",
            "Give one answer per token, or one per sequence.",
        )
    if not per_token:
        return _encode(values, scope or "sequence", values.ndim == 2, ragged=False, sequences=sequences)
    flat = at_answers(values.astype(np.float64) if values.ndim == 3 else values, "token", sequences.lengths)
    return _encode(flat, "token", values.ndim == 3, ragged=False, sequences=sequences)


def _is_nested(Y: Any) -> bool:
    """A list of lists; a tuple is one answer."""
    return len(Y) > 0 and all(isinstance(row, list | np.ndarray) for row in Y)


def _as_array(Y: Any) -> Array:
    """An array without NumPy's guesses: what NumPy would change (mixed types, tuples, NULs) stays as objects."""
    if isinstance(Y, np.ndarray):
        return Y
    if hasattr(Y, "__array__"):
        return np.asarray(Y)
    try:
        rows = list(Y)
    except TypeError:
        raise DataError("data", "answers in a list or an array", f"Y is {Y!r:.60}", "Give a list.") from None
    nested = bool(rows) and all(isinstance(row, list | np.ndarray) for row in rows)
    if nested and len({len(row) for row in rows}) > 1:
        raise DataError(
            "data",
            "as many answers as tokens in each sequence",
            "rows of Y have different lengths although all sequences are equally long",
            "Give one answer per token.",
        )
    flat = [x for row in rows for x in row] if nested else rows
    if _is_vector(flat):
        return _vectors(rows)
    if flat and set(map(type, flat)) == {str}:
        words = np.empty(len(flat), object)
        words[:] = flat
        return words.reshape(len(rows), -1) if nested else words
    if all(type(x) in PLAIN for x in flat) and len({PLAIN[type(x)] for x in flat}) == 1:
        array = np.asarray(rows)
        if array.dtype != object and array.tolist() == rows:
            return array
    elif any(isinstance(x, list | np.ndarray) for x in flat):
        return _vectors(rows)
    array = np.empty(len(flat), dtype=object)
    for i, x in enumerate(flat):
        array[i] = x
    if all(isinstance(x, np.generic) for x in flat):
        return np.asarray(rows)
    return array.reshape(len(rows), -1) if nested else array


def _is_vector(answers: Sequence[Any]) -> bool:
    """Whether each is a tuple of numbers."""
    return bool(answers) and all(isinstance(x, tuple) and x and set(map(type, x)) <= {int, float} for x in answers)


def _vectors(rows: list[Any]) -> Array:
    try:
        return np.asarray(rows, np.float64)
    except (ValueError, TypeError):
        raise DataError(
            "data", "vectors of one length", "rows of Y differ in shape", "Give every answer q components."
        ) from None


def _flatten(Y: Any, sequences: Sequences) -> Array:
    if len(Y) != sequences.N:
        raise DataError(
            "data", f"answers for {sequences.N} sequences", f"there are {len(Y)} rows of answers", "Match them up."
        )
    assert sequences.lengths is not None
    for i, (row, wanted) in enumerate(zip(Y, sequences.lengths, strict=True)):
        if len(row) != wanted:
            raise DataError(
                "data",
                "as many answers as tokens in each sequence",
                f"sequence {i} has {wanted} tokens and {len(row)} answers",
                "Give one answer per token.",
            )
    return _as_array([x for row in Y for x in row])


def _refuse_other_scope(asked: Scope | None, found: Scope) -> None:
    if asked not in (None, found):
        raise DataError("data", f"one answer per {asked}", f"Y holds one per {found}", "Change `scope` or Y.")


def _encode(values: Array, scope: Scope, vectors: bool, *, ragged: bool, sequences: Sequences) -> Answers:
    if values.dtype.kind == "f":
        rows = values.astype(np.float64).reshape(len(values), -1)
        if values.dtype.itemsize > 8:
            raise DataError("data", "answers of at most 64 bits", f"Y has type {values.dtype}", "Round them.")
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise _not_finite(int(np.argmin(finite)), rows[np.argmin(finite)].tolist(), scope, sequences)
        return Answers(rows, AnswerForm(scope, None, rows.shape[1] if vectors else None, ragged))
    if values.dtype.kind not in "iubUSO":
        raise DataError(
            "data",
            "answers that are classes, reals or vectors of reals",
            f"Y has type {values.dtype}",
            "Convert Y; complex numbers can be given as vectors of two reals.",
        )
    if values.dtype == object and (
        lost := [t for t, x in enumerate(values.tolist()) if x is not None and is_missing(x)]
    ):
        raise _not_finite(lost[0], values[lost[0]], scope, sequences)
    classes, codes = classes_of(values)
    return Answers(codes.astype(np.float64)[:, None], AnswerForm(scope, classes, None, ragged))


def _not_finite(t: int, value: Any, scope: Scope, sequences: Sequences) -> DataError:
    """A missing answer is no class, whatever the others are."""
    i, k = sequences.place(t) if scope == "token" else (t, None)
    place = f"sequence {i}" if k is None else f"sequence {i}, token {k} ({sequences.show(i, k)})"
    return DataError("data", "finite answers", f"that of {place} is {value!r:.60}", "Drop or impute it.")


def refuse_other_kind(known: AnswerForm, given: AnswerForm) -> None:
    """Classes are compared with classes, and vectors with vectors of as many components."""
    if (given.classes is None) != (known.classes is None) or given.width != known.width:
        raise DataError(
            "data",
            f"answers of the kind that was memorised ({_kind(known.classes, known.width)})",
            f"there are {_kind(given.classes, given.width)}",
            "Compare with the answers the model was made from.",
        )


def in_classes_of(known: AnswerForm, answers: Answers) -> Array:
    """Rows of answers by the numbers that another form gives its classes; -1 for a class that it does not have."""
    refuse_other_kind(known, answers.form)
    if answers.form.classes is None or answers.form.classes == known.classes:
        return answers.rows
    index = {name: i for i, name in enumerate(known.classes or ())}
    codes = codes_in(index, answers.form.classes).astype(np.float64)
    return codes[answers.rows[:, 0].astype(np.int64)][:, None]


def _kind(classes: Any, width: int) -> str:
    return "classes" if classes is not None else "real numbers" if width == 1 else f"vectors of {width}"
