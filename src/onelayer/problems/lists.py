"""Lists of sequences into one padded array: words, numbers or vectors, of different lengths."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.problems.given import plain
from onelayer.problems.scopes import inside

Array = NDArray[Any]


def pad(X: Any, lengths: Any) -> tuple[Array, Any]:
    """A list of sequences into one padded array; their own lengths are used unless lengths are given.

    Words stay objects: an array of words would be as wide as its longest.
    """
    if (words := _words(X)) is not None:
        return _pad_words(*words, lengths)
    rows = [_row(row, i) for i, row in enumerate(X)]
    if not rows:
        raise DataError("data", "at least one sequence", "the list of sequences is empty", "Give some data.")
    if len({"word" if row.dtype.kind in "US" else row.dtype.kind == "b" for row in rows}) > 1:
        found = "some sequences hold words or truth values and others numbers"
        raise DataError("data", "tokens of one type", found, "Write all of them alike.")
    for i, row in enumerate(rows):
        if row.ndim != rows[0].ndim or row.shape[1:] != rows[0].shape[1:]:
            raise DataError(
                "data",
                "sequences of tokens of one width",
                f"sequence {i} has shape {row.shape} and sequence 0 has {rows[0].shape}",
                "Give every token the same number of components.",
            )
        if not len(row):
            raise DataError("data", "at least one token in each sequence", f"sequence {i} is empty", "Drop it.")
    own = np.array([len(row) for row in rows])
    if (own == own[0]).all():
        return np.stack(rows), lengths
    _refuse_both(lengths)
    padded = np.zeros((len(rows), own.max(), *rows[0].shape[1:]), np.result_type(*{row.dtype for row in rows}))
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded, own


def _words(X: Any) -> tuple[list[str], Array] | None:
    """All words of a list of lists of words, and how many each has; None for anything else."""
    rows = X.tolist() if isinstance(X, np.ndarray) else X
    if not len(rows) or not all(isinstance(row, list | tuple) and row for row in rows):
        return None
    flat = list(chain.from_iterable(rows))
    return (flat, np.array([len(row) for row in rows])) if set(map(type, flat)) == {str} else None


def _pad_words(flat: list[str], own: Array, lengths: Any) -> tuple[Array, Any]:
    words = np.empty(len(flat), object)
    words[:] = flat
    if (own == own[0]).all():
        return words.reshape(len(own), own[0]), lengths
    _refuse_both(lengths)
    padded = np.full((len(own), own.max()), "", object)
    padded[inside(padded.shape[1], own)] = words
    return padded, own


def _refuse_both(lengths: Any) -> None:
    if lengths is not None:
        raise DataError(
            "data",
            "either a list of sequences of different lengths, or an array with lengths",
            "both were given",
            "Drop `lengths`: a list says them itself.",
        )


def _row(row: Any, i: int) -> Array:
    """One sequence as an array; words keep every character, numbers every digit."""
    row = plain(row)
    given = row.tolist() if isinstance(row, np.ndarray) and row.dtype == object else row
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype == object or array.ndim == 0:
        raise DataError(
            "data",
            "sequences that are lists of words, of whole numbers, of reals, or of vectors of one width",
            f"sequence {i} is {given!r:.60}",
            "A sequence of one token is written [token].",
        )
    if array.dtype.kind in "USi" and not isinstance(given, np.ndarray) and array.tolist() != list(given):
        kept = "mixes words and numbers" if array.dtype.kind == "U" else "holds what NumPy cannot keep as it is"
        raise DataError("data", "tokens of one type", f"sequence {i} {kept}", "Write all of them alike.")
    if array.ndim == 1 and array.dtype.kind != "b" and isinstance(given, list | tuple) and bool in map(type, given):
        found = f"sequence {i} mixes truth values and numbers"  # NumPy would make them 0 and 1
        raise DataError("data", "tokens of one type", found, "Write all of them alike.")
    return array
