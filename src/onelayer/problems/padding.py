"""Padded arrays, as estimators get them: lengths, answers per token one after another, padding that is NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.files.table import refuse
from onelayer.problems.scopes import Scope
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]


@dataclass(frozen=True)
class Given:
    """X as it was given: the sequences in it, and what their form says about y and about predictions."""

    sequences: Sequences
    tokens: Any  # as the model takes them: numbers, or the sequences of names
    is_table: bool  # 2-D: a row of numbers is a sequence of tokens of width 1
    is_list: bool  # answers per token come back as a list too


def full_lengths(sequences: Sequences) -> Array:
    return np.full(sequences.N, sequences.n) if sequences.lengths is None else sequences.lengths


def flat_answers(y: Any, sequences: Sequences) -> Array:
    """Answers per token, padded or as lists, into one row per token."""
    rows = [np.asarray(row) for row in (y if isinstance(y, list | tuple) else np.asarray(y))]
    for i, (row, k) in enumerate(zip(rows, full_lengths(sequences), strict=True)):
        if row.ndim == 0 or len(row) not in (k, sequences.n):
            raise refuse(
                "as many answers as tokens in each sequence",
                f"sequence {i} has {k} tokens and y[{i}] has shape {row.shape}",
                'Give one answer per token, or use scope="sequence".',
            )
    return np.concatenate([row[:k] for row, k in zip(rows, full_lengths(sequences), strict=True)])


def lengths_from_nan(tokens: Array) -> Array:
    """Lengths, where tokens that are NaN throughout end a sequence; NaN anywhere else is refused by name."""
    nan: Array = np.isnan(tokens)
    whole: Array = np.asarray(nan.all(axis=2))
    n = tokens.shape[1]
    lengths: Array = n - np.argmin(whole[:, ::-1], axis=1)
    lengths[whole.all(axis=1)] = 0
    if not lengths.all():
        found = f"sequence {int(np.argmin(lengths))} is NaN throughout"
    elif (stray := nan & (np.arange(n) < lengths[:, None])[:, :, None]).any():
        i, k, c = (int(axis[0]) for axis in np.nonzero(stray))
        found = f"sequence {i}, token {k}, component {c} is NaN, but " + (
            "a later token is not" if whole[i, k] else "other components of that token are not"
        )
    else:
        return lengths
    raise refuse("NaN only as whole tokens at the end of a sequence", found, "Drop or impute it.")


def scope_of(y: Any, given: Given) -> Scope:
    """Answers per token only for 3-D X or lists, when the rows of y have length n or different lengths."""
    rows = y if isinstance(y, list | tuple) else np.asarray(y)
    if given.is_table or not np.ndim(rows[0]):
        return "sequence"
    sizes = {len(row) for row in rows}
    return "token" if sizes == {given.sequences.n} or len(sizes) > 1 else "sequence"
