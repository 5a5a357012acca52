"""Answers as they are given, turned into rows of numbers, and back again into the form they came in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.data.sequences import Sequences
from onelayer.errors import HypothesisError

Array = NDArray[Any]
Scope = Literal["token", "sequence"]


@dataclass(frozen=True)
class AnswerForm:
    """How answers were given, so that predictions can be given back the same way."""

    scope: Scope  # one answer per token, or one per sequence
    classes: tuple[Hashable, ...] | None  # None for real answers
    components: int | None  # None for plain numbers and classes, q for vectors of q reals
    ragged: bool  # lists of different lengths rather than an array

    @property
    def width(self) -> int:
        return 1 if self.components is None else self.components

    def decode(self, rows: Array, lengths: Array | None) -> Any:
        """Outputs [N, n, width] (or [N, 1, width] for one answer per sequence) into answers."""
        if self.classes is not None:
            values = self._class_array()[np.clip(np.rint(rows[..., 0]).astype(np.int64), 0, len(self.classes) - 1)]
        else:
            values = rows[..., 0] if self.components is None else rows
        if self.scope == "sequence":
            return values[:, 0]
        if self.ragged:
            full = np.full(len(values), values.shape[1]) if lengths is None else lengths
            return [values[i, :k].tolist() for i, k in enumerate(full)]
        return values

    def _class_array(self) -> Array:
        assert self.classes is not None
        if len({type(name) for name in self.classes}) == 1 and not isinstance(self.classes[0], tuple):
            array = np.asarray(self.classes)
            if array.dtype != object:
                return array
        array = np.empty(len(self.classes), dtype=object)  # mixed classes keep their own types
        array[:] = self.classes
        return array


@dataclass(frozen=True)
class Answers:
    """Rows of numbers, one per valid token in order (or one per sequence), and the form they came in."""

    rows: Array  # [T, width] float64; a class is its index
    form: AnswerForm


def read_answers(Y: Any, sequences: Sequences, scope: Scope | None = None) -> Answers:
    """Read classes, reals or vectors of reals, one per token or one per sequence.

    Without a scope, an answer per place (N, n) means one per token; (N,) one per sequence; real (N, q) with
    q != n, one vector per sequence.
    """
    ragged = isinstance(Y, list | tuple) and sequences.lengths is not None and _is_nested(Y)
    if ragged:
        values = _flatten(Y, sequences)
        _refuse_other_scope(scope, "token")
        return _encode(values, "token", values.ndim > 1, ragged=True)
    values = _as_array(Y)
    N, n = sequences.N, sequences.n
    if values.ndim == 0 or len(values) != N:
        raise HypothesisError(
            "data",
            f"answers for {N} sequences",
            f"Y has shape {values.shape}",
            "Give one row of answers, or one answer, per sequence.",
        )
    per_token = values.ndim >= 2 and values.shape[1] == n and scope != "sequence"
    real = values.dtype.kind == "f"
    fits = values.ndim <= (3 if real else 2) if per_token else values.ndim <= (2 if real else 1)
    if not fits or (scope == "token" and not per_token):
        raise HypothesisError(
            "data",
            f"answers of shape ({N}, {n}) or ({N},), with one more axis for vectors of reals",
            f"Y has shape {values.shape} and type {values.dtype}",
            "Give one answer per token, or one per sequence.",
        )
    if not per_token:
        return _encode(values, "sequence", values.ndim == 2, ragged=False)
    valid = sequences.valid()
    flat = values.reshape(N * n, *values.shape[2:]) if valid is None else values[valid]
    return _encode(flat, "token", values.ndim == 3, ragged=False)


def _is_nested(Y: Any) -> bool:
    return len(Y) > 0 and isinstance(Y[0], list | tuple | np.ndarray)


def _as_array(Y: Any) -> Array:
    """An array without NumPy's guesses: mixed or nested hashables (tuples) stay objects."""
    if isinstance(Y, np.ndarray):
        return Y
    if hasattr(Y, "__array__"):
        return np.asarray(Y)
    rows = list(Y)
    nested = bool(rows) and isinstance(rows[0], list | np.ndarray)
    flat = [x for row in rows for x in row] if nested else rows
    if nested and len({len(row) for row in rows}) > 1:
        raise HypothesisError(
            "data",
            "as many answers as tokens in each sequence",
            "rows of Y have different lengths although all sequences are equally long",
            "Give one answer per token.",
        )
    kinds = {np.asarray(x).dtype.kind if not isinstance(x, tuple) else "O" for x in flat}
    if kinds <= set("iub") or kinds <= set("iubf") or kinds <= {"U"}:
        return np.asarray(rows)
    array = np.empty(len(flat), dtype=object)
    array[:] = flat
    return array.reshape(len(rows), -1) if nested else array


def _flatten(Y: Any, sequences: Sequences) -> Array:
    if len(Y) != sequences.N:
        raise HypothesisError(
            "data", f"answers for {sequences.N} sequences", f"there are {len(Y)} rows of answers", "Match them up."
        )
    assert sequences.lengths is not None
    for i, (row, wanted) in enumerate(zip(Y, sequences.lengths, strict=True)):
        if len(row) != wanted:
            raise HypothesisError(
                "data",
                "as many answers as tokens in each sequence",
                f"sequence {i} has {wanted} tokens and {len(row)} answers",
                "Give one answer per token.",
            )
    return _as_array([x for row in Y for x in row])


def _refuse_other_scope(asked: Scope | None, found: Scope) -> None:
    if asked not in (None, found):
        raise HypothesisError("data", f"one answer per {asked}", f"Y holds one per {found}", "Change `scope` or Y.")


def _encode(values: Array, scope: Scope, vectors: bool, *, ragged: bool) -> Answers:
    if values.dtype.kind == "f":
        rows = values.astype(np.float64).reshape(len(values), -1)
        if not np.isfinite(rows).all():
            raise HypothesisError(
                "data",
                "finite answers",
                f"answer {int(np.nonzero(~np.isfinite(rows))[0][0])} (counted over all tokens) is not finite",
                "Drop or impute it.",
            )
        return Answers(rows, AnswerForm(scope, None, rows.shape[1] if vectors else None, ragged))
    if values.dtype.kind not in "iubUSO":
        raise HypothesisError(
            "data",
            "answers that are classes, reals or vectors of reals",
            f"Y has type {values.dtype}",
            "Convert Y; complex numbers can be given as vectors of two reals.",
        )
    classes, codes = _classes(values)
    return Answers(codes.astype(np.float64)[:, None], AnswerForm(scope, classes, None, ragged))


def _classes(values: Array) -> tuple[tuple[Hashable, ...], Array]:
    """Distinct classes in a fixed order (sorted where they can be) and the index of each answer."""
    if values.dtype != object:
        if values.dtype.kind == "i":
            values = values.astype(np.int64)  # differences of narrow integers would wrap around
        low, high = (int(values.min()), int(values.max())) if values.dtype.kind in "iu" else (0, 1 << 40)
        if high - low < 4 * values.size:  # a lookup table is ten times faster than sorting
            seen = np.zeros(high - low + 1, bool)
            seen[values - low] = True
            rank = np.cumsum(seen) - 1
            return tuple((np.flatnonzero(seen) + low).tolist()), rank[values - low]
        unique, codes = np.unique(values, return_inverse=True)
        return tuple(unique.tolist()), codes.reshape(-1)
    index: dict[Hashable, int] = {}
    try:
        codes = np.array([index.setdefault(value, len(index)) for value in values.tolist()])
    except TypeError as error:
        raise HypothesisError(
            "data", "hashable classes", f"an answer is not hashable ({error})", "Use strings, numbers or tuples."
        ) from None
    return tuple(index), codes
