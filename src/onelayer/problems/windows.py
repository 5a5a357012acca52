"""The windows of a text and what follows them: one answer for each different window, a distribution of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError

Array = NDArray[Any]

#: Numbers that all distributions together may hold: a gigabyte in float32.
MOST_NUMBERS = 1 << 28
#: Windows that are compared token by token at a time.
BLOCK = 1 << 14


@dataclass(frozen=True)
class TextWindows:
    """N windows of n tokens, of which M are different, in the order of their first places."""

    context: int  # n
    size: int  # V; the token V stands before the text
    stream: Array  # [n + N] ids: n times V, then the text; window i is stream[i : i + n], followed by stream[i + n]
    first: Array  # [M] where each different window first occurs
    group: Array  # [N] the number of each window among the different ones
    answers: Array  # [M] the number of the distribution that follows
    distributions: Array  # [K, V] float32: every single token for certain, then the mixed ones that occur

    @property
    def count(self) -> int:
        return len(self.group)

    @property
    def ambiguous(self) -> Array:
        """[M] which windows occur with several continuations."""
        return np.asarray(self.answers >= self.size)

    def rows(self, at: Array) -> Array:
        """Windows [len(at), n]."""
        return np.lib.stride_tricks.sliding_window_view(self.stream, self.context)[at]


def pad_start(ids: Array, context: int, size: int) -> Array:
    """The text behind n start tokens."""
    return np.concatenate([np.full(context, size, np.int64), ids])


def read_windows(ids: Array, context: int, size: int) -> TextWindows:
    """Count what follows each different window of the token ids of a text."""
    stream = pad_start(ids, context, size)
    first, group = same_windows(stream, context)
    answers, mixed = continuations(group, ids, len(first), size)
    numbers = (size + len(mixed)) * size
    if numbers > MOST_NUMBERS:
        raise HypothesisError(
            "text",
            f"at most {MOST_NUMBERS:,} numbers in the next-token distributions",
            f"{len(mixed):,} mixed distributions and {size:,} tokens take {numbers:,}",
            "Use a longer context, so that fewer windows are ambiguous, or a smaller vocabulary.",
        )
    distributions = np.eye(size + len(mixed), size, dtype=np.float32)
    for row, counts in zip(distributions[size:], mixed, strict=True):
        tokens, times = np.array(counts).T
        row[tokens] = times / times.sum()
    return TextWindows(context, size, stream, first, group, answers, distributions)


def same_windows(stream: Array, context: int) -> tuple[Array, Array]:
    """The first place of each different window, in order, and the number of every window among them.

    Windows are hashed and those of equal hashes compared token by token, so the result is exact.
    """
    N = len(stream) - context
    windows = np.lib.stride_tricks.sliding_window_view(stream, context)
    for attempt in range(64):
        rng = np.random.default_rng(attempt)
        token = rng.integers(0, 2**64, int(stream.max()) + 1, dtype=np.uint64)
        place = rng.integers(0, 2**63, context, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        code, hashed = token[stream], np.zeros(N, np.uint64)
        for k in range(context):
            hashed += code[k : k + N] * place[k]  # wraps around
        _, first, group = np.unique(hashed ^ (hashed >> np.uint64(29)), return_index=True, return_inverse=True)
        group = group.reshape(-1)
        again = np.flatnonzero(first[group] != np.arange(N))
        blocks = (again[start : start + BLOCK] for start in range(0, len(again), BLOCK))
        if all((windows[some] == windows[first[group[some]]]).all() for some in blocks):
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return first[order], rank[group]
    raise AssertionError("64 random hashes of the windows collide")


def continuations(group: Array, following: Array, M: int, size: int) -> tuple[Array, list[tuple[Any, ...]]]:
    """The number of the distribution after each window, and the mixed ones as tuples of (token, times)."""
    pairs, times = np.unique(group * size + following, return_counts=True)
    windows, tokens = pairs // size, pairs % size
    answers = np.zeros(M, np.int64)
    answers[windows] = tokens  # where several follow, a number is put in its place below
    starts = np.flatnonzero(np.concatenate([[True], np.diff(windows) > 0]))
    several = np.flatnonzero(np.diff(np.append(starts, len(pairs))) > 1)
    numbers: dict[tuple[Any, ...], int] = {}
    ends = np.append(starts[1:], len(pairs))
    for a, b in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        counts = times[a:b].tolist()
        shared = gcd(*counts)  # 2 of 4 is 1 of 2
        mixed = tuple(zip(tokens[a:b].tolist(), (count // shared for count in counts), strict=True))
        answers[windows[a]] = numbers.setdefault(mixed, size + len(numbers))
    return answers, list(numbers)
