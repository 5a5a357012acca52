"""Which places of sequences an answer is for, every token or one of each sequence: from places to rows and back."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Scope = Literal["token", "sequence", "last"]


def answer_places(scope: Scope, at: Array, n: int, lengths: Array | None) -> tuple[Array, Array]:
    """Sequence and token of these answers, counted in order; one for a sequence is at its first token, or last."""
    if scope == "sequence":
        return at, np.zeros_like(at)
    if scope == "last":
        return at, np.full_like(at, n - 1) if lengths is None else lengths[at] - 1
    if lengths is None:
        return at // n, at % n
    ends = np.cumsum(lengths)
    i = np.searchsorted(ends, at, side="right")
    return i, at - (ends - lengths)[i]


def at_answers(values: Array, scope: Scope, lengths: Array | None) -> Array:
    """Rows [T, ...] out of places [N, n, ...]: those that have an answer, in order."""
    if scope != "token":
        N, n = values.shape[:2]
        picked: Array = values[answer_places(scope, np.arange(N), n, lengths)]
        return picked
    if lengths is None:
        return values.reshape(-1, *values.shape[2:])
    return np.asarray(values[inside(values.shape[1], lengths)])


def in_places(rows: Array, N: int, n: int, lengths: Array | None) -> Array:
    """Places [N, n, ...] from rows with one answer per token; padding is zero."""
    if lengths is None:
        return rows.reshape(N, n, *rows.shape[1:])
    places = np.zeros((N, n, *rows.shape[1:]), rows.dtype)
    places[inside(n, lengths)] = rows
    return places


def for_each_token(rows: Array, n: int, lengths: Array | None) -> Array:
    """Rows with one answer per sequence, repeated for each of its tokens."""
    return np.repeat(rows, n if lengths is None else lengths, axis=0)


def inside(n: int, lengths: Array) -> Array:
    """Which places hold a token, [N, n]."""
    return np.asarray(np.arange(n) < lengths[:, None])
