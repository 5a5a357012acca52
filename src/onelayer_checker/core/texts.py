"""A person's own text against the certified windows: the same bytes, and the distribution of what follows in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.claims import Verdict
from onelayer_checker.core.samples import Data


def compare_text(content: bytes, pieces: tuple[bytes, ...], data: Data, dtype: np.dtype[Any]) -> Verdict:
    """Whether the certified windows are those of this text, each with the share of every token that follows it."""
    n, start = data.tokens.shape[1], len(pieces) - 1
    stream = np.concatenate([data.tokens[0], data.tokens[1:, -1]])
    windows = np.lib.stride_tricks.sliding_window_view(stream, n)
    before = np.array_equal(stream == start, np.arange(len(stream)) < n)  # n times before the text, never in it
    shape = len(data.which) == len(windows) and data.answers.shape[1] == start and (data.lengths == n).all()
    if not (before and shape and np.array_equal(windows, data.tokens)):
        return Verdict("undecided", "the certified sequences are not the windows of one text", np.inf)
    size = np.array([len(piece) for piece in pieces], np.float64)[stream[n:]].sum()
    spend(f"a text of {size:.2g} bytes", 10.0 * size, 2.0 * size)
    text = b"".join(pieces[token] for token in stream[n:].tolist())  # all but its last token
    last = content[len(text) :]
    if not content.startswith(text) or last not in pieces[:-1]:
        shared = min(len(content), len(text))
        differs = np.frombuffer(content, np.uint8, shared) != np.frombuffer(text, np.uint8, shared)
        for at in np.flatnonzero(differs)[:1]:
            why = f"byte {at} is {content[at]}; in the certified text it is {text[at]}"
            return Verdict("refuted", why, np.inf)
        why = f"the certified text is another one: one of the two ends or goes on after byte {shared}"
        return Verdict("undecided", why, np.inf)
    wrong = _wrong_windows(stream, n, np.append(stream[n:], pieces.index(last)), data, dtype)
    if wrong.size:
        return Verdict("refuted", f"the certified answer before token {wrong[0]} is not what follows there", np.inf)
    return Verdict("proved", f"all {len(windows):,} windows are certified with what follows them", np.inf)


def _wrong_windows(stream: Array, n: int, following: Array, data: Data, dtype: np.dtype[Any]) -> Array:
    """Windows whose row of answers is not the share of each token among those that follow it in the text: the
    quotient of two counts in float64, rounded to the format of the weights. Equal windows must have one row."""
    V = data.answers.shape[1]
    _, first, group = np.unique(numbered(stream, n), return_index=True, return_inverse=True)
    row = data.which[first]
    pairs, times = np.unique(group * V + following, return_counts=True)
    of, token = pairs // V, pairs % V
    share = (times / np.bincount(group)[of]).astype(dtype).astype(np.float64)
    wrong = np.count_nonzero(data.answers, axis=1)[row] != np.bincount(of)
    wrong[of[data.answers[row[of], token] != share]] = True
    return np.flatnonzero(wrong[group] | (data.which != row[group]))


def numbered(stream: Array, n: int) -> Array:
    """A number for each window of n tokens, equal for equal windows only: a window is two shorter ones, which may
    overlap, and so a pair of their numbers."""
    number, size = stream, 1
    while size < n:
        step = min(size, n - size)
        number = np.unique(number[:-step] * (number.max() + 1) + number[step:], return_inverse=True)[1]
        size += step
    return number
