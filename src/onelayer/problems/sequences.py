"""Sequences as they are given, checked once and turned into arrays. Nothing is changed silently."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError
from onelayer.problems.blocks import blocks, every, mapped_like
from onelayer.problems.given import plain
from onelayer.problems.lists import pad
from onelayer.problems.names import codes_in, number_values
from onelayer.problems.scopes import at_answers, in_places, inside

Array = NDArray[Any]

#: Tokens that are not in a vocabulary and are named in a message.
SHOWN = 5


@dataclass(frozen=True)
class Sequences:
    """N sequences of at most n tokens: real vectors [N, n, d], or ids [N, n] into a vocabulary.

    Padding (rows at or after a length) repeats the first token. ``lengths`` is None when every sequence is full.
    """

    tokens: Array
    lengths: Array | None
    vocabulary: tuple[Hashable, ...] | None = None
    low: Array | None = None  # [d] smallest value of each component of real tokens, and
    high: Array | None = None  # [d] the largest
    unknown: Array | None = None  # [N] sequences with a token that the vocabulary does not have; None for none

    @property
    def N(self) -> int:
        return int(self.tokens.shape[0])

    @property
    def n(self) -> int:
        return int(self.tokens.shape[1])

    @property
    def d(self) -> int:
        return int(self.tokens.shape[2]) if self.tokens.ndim == 3 else 1

    @property
    def is_real(self) -> bool:
        return self.vocabulary is None

    def in_blocks(self, step: int) -> Iterator[Sequences]:
        """The same, ``step`` sequences at a time."""
        for start in range(0, self.N, step):
            rows = slice(start, start + step)
            lengths, unknown = (None if a is None else a[rows] for a in (self.lengths, self.unknown))
            yield replace(self, tokens=self.tokens[rows], lengths=lengths, unknown=unknown)

    def valid(self) -> Array | None:
        """Which places hold a token, [N, n], or None for all."""
        return None if self.lengths is None else inside(self.n, self.lengths)

    def token_count(self) -> int:
        return self.N * self.n if self.lengths is None else int(self.lengths.sum())

    def place(self, flat: int) -> tuple[int, int]:
        """(sequence, token) of the flat-th valid token."""
        if self.lengths is None:
            return divmod(int(flat), self.n)
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        i = int(np.searchsorted(starts, flat, side="right")) - 1
        return i, int(flat - starts[i])

    def show(self, i: int, k: int) -> str:
        """A token for a message."""
        if self.vocabulary is not None:
            return repr(self.vocabulary[int(self.tokens[i, k])])
        parts = [f"{float(x):.6g}" for x in self.tokens[i, k, :4]]
        return f"({', '.join(parts)}{', ...' if self.d > 4 else ''})"


def read_sequences(
    X: Any,
    lengths: Any = None,
    vocabulary: Mapping[Hashable, int] | None = None,
    real: bool | None = None,
    unseen: Literal["refuse", "mark"] = "refuse",
) -> Sequences:
    """Read arrays, lists of arrays or lists of tokens.

    A vocabulary, or real=False, asks for token ids; real=True asks for numbers; None lets the data decide:
    2-D integers, booleans or words are tokens, everything else is numbers, 2-D numbers being tokens of width 1.
    Tokens that the vocabulary does not have are refused, or their sequences are marked as unknown; in their place
    stands the first token of the vocabulary, which means nothing. Sequences that were read already are not read
    again.
    """
    if isinstance(X, Sequences):
        if X.vocabulary is None or vocabulary is None or X.vocabulary == tuple(vocabulary):
            return X
        X, lengths = np.array(X.vocabulary, object)[X.tokens], X.lengths
    X, lengths = plain(X), plain(lengths)
    if (isinstance(X, Sequence) and not isinstance(X, str | bytes)) or (
        isinstance(X, np.ndarray) and X.dtype == object
    ):
        X, lengths = pad(X, lengths)
    if isinstance(X, np.ma.MaskedArray):
        raise DataError("data", "arrays without a mask", "X is masked", "Give `lengths` for padding instead.")
    kind, X = type(X).__name__, np.asarray(X)
    if X.ndim == 0:
        remedy = "Give a list of sequences, each a list of tokens."
        raise DataError("data", "a list or an array of sequences", f"X is a {kind}", remedy)
    if X.ndim not in (2, 3):
        raise DataError(
            "data",
            "X of shape (N, n, d), or (N, n)",
            f"X has shape {X.shape}",
            "Reshape X; one sequence is X[None].",
        )
    if 0 in X.shape:
        raise DataError(
            "data", "at least one sequence of one token", f"X has shape {X.shape} and is empty", "Give some data."
        )
    wants_ids = vocabulary is not None or (X.ndim == 2 and X.dtype.kind not in "fc" if real is None else not real)
    checked = _check_lengths(lengths, *X.shape[:2])
    if wants_ids:
        return _token_ids(X, checked, vocabulary, unseen)
    return _real_tokens(X if X.ndim == 3 else X[:, :, None], checked)


def _check_lengths(lengths: Any, N: int, n: int) -> Array | None:
    if lengths is None:
        return None
    values = np.asarray(lengths)
    if values.shape != (N,) or values.dtype.kind not in "iu":
        raise DataError(
            "data",
            f"one whole number per sequence in `lengths`, shape ({N},)",
            f"lengths have shape {values.shape} and type {values.dtype}",
            "Give the number of tokens of each sequence.",
        )
    outside = np.flatnonzero((values < 1) | (values > n))
    if outside.size:
        i = int(outside[0])
        raise DataError(
            "data",
            f"lengths between 1 and {n}",
            f"sequence {i} has length {values[i]}",
            "Correct the length, or drop the sequence.",
        )
    return None if (values == n).all() else values.astype(np.int64)


def _token_ids(
    X: Array, lengths: Array | None, vocabulary: Mapping[Hashable, int] | None, unseen: str
) -> Sequences:
    if X.ndim != 2:
        raise DataError(
            "data", "token ids of shape (N, n)", f"X has shape {X.shape}", "Give one token id per place."
        )
    if X.dtype.kind not in "iubUSTO":
        raise DataError(
            "data",
            "whole numbers or words as tokens",
            f"the tokens have type {X.dtype}",
            "Convert the tokens, or fit a model of real tokens.",
        )
    flat = at_answers(X, "token", lengths)
    words = X.dtype.kind in "USTO"
    if words and vocabulary is not None:
        names, used, codes = tuple(vocabulary), flat, codes_in(vocabulary, flat.tolist())
    elif words:
        names, codes = number_values(flat.tolist())
        used = flat
    else:
        used, which = np.unique(flat, return_inverse=True)
        names = tuple(used.tolist()) if vocabulary is None else tuple(vocabulary)
        codes = which if vocabulary is None else codes_in(vocabulary, used.tolist())[which]
    ids = in_places(codes.reshape(-1), X.shape[0], X.shape[1], lengths)
    if (codes >= 0).all():
        return Sequences(ids, lengths, names)
    if unseen == "refuse" or not _same_kind(names, used):
        raise _unseen_token_error(X, ids < 0, names)
    return Sequences(np.maximum(ids, 0), lengths, names, unknown=np.asarray(np.any(ids < 0, axis=1)))


def _same_kind(names: tuple[Hashable, ...], used: Array) -> bool:
    """Whether both are words, or both numbers: words for a model of numbers are a mistake, not unknown tokens."""
    return isinstance(names[0], str | bytes) == (used.dtype.kind in "USTO")


def _unseen_token_error(X: Array, where: Array, names: tuple[Hashable, ...]) -> DataError:
    """Says which tokens are not in the vocabulary, in the order in which they are met, and where the first is."""
    tokens = list(dict.fromkeys(X[where].tolist()))
    i, k = (int(axis[0]) for axis in np.nonzero(where))
    listed = ", ".join(f"{token!r:.60}" for token in tokens[:SHOWN]) + (", ..." if len(tokens) > SHOWN else "")
    all_of_them = "" if len(tokens) == 1 else f"; {len(tokens):,} tokens are not: {listed}"
    return DataError(
        "data",
        f"tokens of the model's vocabulary of {len(names)}",
        f"sequence {i}, token {k} is {tokens[0]!r:.60}, which is not in it{all_of_them}",
        "Ask only about known tokens, or memorise again with these tokens, or with default= for unknown ones.",
    )


def _real_tokens(X: Array, lengths: Array | None) -> Sequences:
    if X.dtype.kind not in "fiub":
        raise DataError(
            "data", "real numbers as token components", f"X has type {X.dtype}", "Convert X to float64."
        )
    whole = X.dtype.kind in "iu"
    if X.dtype.itemsize > 8 or (whole and not every(lambda x: x.astype(np.float64).astype(x.dtype) == x, X)):
        raise DataError(
            "data",
            "token components that float64 holds exactly",
            f"X has type {X.dtype} and loses digits",
            "Round or rescale it.",
        )
    number = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if lengths is not None:
        # Padding repeats the first token, so that it changes no bound; attention never sees it.
        mask = inside(X.shape[1], lengths)[:, :, None]
        tokens = mapped_like(X, lambda rows: np.where(mask[rows], X[rows], X[rows, :1]), number)
    else:
        tokens = X if number == X.dtype else mapped_like(X, lambda rows: X[rows], number)
    # Reductions that any NaN or infinity survives, instead of a boolean array as large as the data.
    # Whole sequences first: reducing long rows is several times faster than reducing short ones.
    low, high = tokens.min(axis=0).min(axis=0), tokens.max(axis=0).max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        rows = next(rows for rows in blocks(tokens) if not np.isfinite(tokens[rows]).all())
        i, k, c = (int(a[0]) for a in np.nonzero(~np.isfinite(tokens[rows])))
        i += rows.start
        raise DataError(
            "data",
            "finite numbers",
            f"sequence {i}, token {k}, component {c} is {tokens[i, k, c]}",
            "Drop or impute it; mark trailing padding with `lengths`.",
        )
    return Sequences(tokens, lengths, None, low.astype(np.float64), high.astype(np.float64))
