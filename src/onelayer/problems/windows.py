"""The windows of a text and what follows them: one answer for each different window, a distribution of tokens.

A text may be long, so nothing here takes more than some bytes for each of its tokens: windows are told apart by a
rolling hash, bucket by bucket, and only those that occur again are compared and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError

Array = NDArray[Any]

#: Numbers that all distributions together may hold: a gigabyte in float32.
MOST_NUMBERS = 1 << 28
#: Windows that are compared token by token, or hashed, at a time.
BLOCK = 1 << 14
#: Hashes that are sorted at a time.
BUCKET = 1 << 22


@dataclass(frozen=True)
class TextWindows:
    """N windows of n tokens that another token follows, M of them different; and the last, which none follows."""

    context: int  # n
    size: int  # V; the token V stands before the text
    stream: Array  # [n + N] ids: n times V, then the text; window i is stream[i : i + n], followed by stream[i + n]
    new: Array  # [N] which windows do not occur before
    which: Array  # [N] the number of the distribution that follows each
    distributions: Array  # [K + 1, V] float32: every token for certain, the mixed ones that occur, and nothing
    ends: bool  # whether the last window occurs nowhere before: only then does it say that the text ends

    @property
    def count(self) -> int:
        """N."""
        return len(self.which)

    @cached_property
    def distinct(self) -> int:
        """M."""
        return int(np.count_nonzero(self.new))

    @property
    def nothing(self) -> int:
        """K, the number of the last distribution: no token has a share in it."""
        return len(self.distributions) - 1

    @cached_property
    def first(self) -> Array:
        """[M] where each different window first occurs."""
        return np.flatnonzero(self.new)

    @property
    def answers(self) -> Array:
        """[M] the number of the distribution that follows each different window."""
        return self.which[self.new].astype(np.int64)

    @property
    def ambiguous(self) -> Array:
        """[M] which windows occur with several continuations."""
        return np.asarray(self.which[self.new] >= self.size)

    @cached_property
    def occurring(self) -> Array:
        """The ids of the tokens of the text, in order."""
        known = np.zeros(self.size + 1, bool)
        known[self.stream] = True
        known[self.size] = False
        return np.flatnonzero(known)

    @property
    def last(self) -> Array:
        """[n] the window that nothing follows."""
        return self.stream[self.count :]


def pad_start(ids: Array, context: int, size: int) -> Array:
    """The text behind n start tokens, two bytes each where these suffice."""
    dtype = np.uint16 if size < 1 << 16 else np.int64
    stream = np.full(context + len(ids), size, dtype)
    stream[context:] = ids
    return stream


def read_windows(ids: Array, context: int, size: int) -> TextWindows:
    """Count what follows each different window of the token ids of a text."""
    stream, N = pad_start(ids, context, size), len(ids)
    place, first = repeated_windows(stream, context)
    new = np.ones(N, bool)
    followed = place < N
    ends = bool(followed.all())
    place, first = place[followed], first[followed]
    new[place[place != first]] = False
    which, mixed = continuations(place, first, stream[context:], size)
    numbers = (size + len(mixed)) * size
    if numbers > MOST_NUMBERS:
        raise HypothesisError(
            "text",
            f"at most {MOST_NUMBERS:,} numbers in the next-token distributions",
            f"{len(mixed):,} mixed distributions and {size:,} tokens take {numbers:,}",
            "Use a longer context, so that fewer windows are ambiguous, or a smaller vocabulary.",
        )
    distributions = np.eye(size + len(mixed) + 1, size, dtype=np.float32)
    for row, counts in zip(distributions[size:], mixed, strict=False):  # the last row stays zero
        tokens, times = np.array(counts).T
        row[tokens] = times / times.sum()
    return TextWindows(context, size, stream, new, which, distributions, ends)


def repeated_windows(stream: Array, context: int) -> tuple[Array, Array]:
    """The places of all windows that occur more than once, in order, and where each occurs first.

    Windows are hashed and those of equal hashes compared token by token, so the result is exact.
    """
    windows = np.lib.stride_tricks.sliding_window_view(stream, context)
    for attempt in range(64):
        place, first = _find_repeats(_hash_windows(stream, context, attempt))
        blocks = (slice(start, start + BLOCK) for start in range(0, len(place), BLOCK))
        if all((windows[place[some]] == windows[first[some]]).all() for some in blocks):
            order = np.argsort(place)
            return place[order], first[order]
    raise AssertionError("64 random hashes of the windows collide")


def occurs(stream: Array, context: int, windows: Array) -> Array:
    """[S] which of some windows [S, n] are windows of the stream, or have the hash of one: almost never another."""
    own = _hash_windows(windows.ravel(), context, 0, int(stream.max()) + 1)[::context]
    return np.isin(own, _hash_windows(stream, context, 0), assume_unique=False)


def _hash_windows(stream: Array, context: int, attempt: int, tokens: int | None = None) -> Array:
    """64 bits for each window: the sum of random codes of its tokens times powers of an odd number, modulo 2^64.

    A window is the difference of two prefix sums of the stream, so a window costs as much as a
    token; multiplied by a power of the inverse, they do not depend on where the block begins.
    """
    rng = np.random.default_rng(attempt)
    token = rng.integers(0, 2**64, tokens or int(stream.max()) + 1, dtype=np.uint64)
    odd = int(rng.integers(0, 2**63, 1, dtype=np.uint64)[0]) * 2 + 1
    count = len(stream) - context + 1
    step = max(BLOCK, 4 * context)
    powers, inverses = _powers(odd, step + context), _powers(pow(odd, -1, 2**64), step)
    found = np.empty(count, np.uint64)
    for start in range(0, count, step):
        stop = min(start + step, count)
        part = token[stream[start : stop + context - 1]]
        sums = np.zeros(len(part) + 1, np.uint64)
        np.cumsum(part * powers[: len(part)], out=sums[1:])  # wraps around
        h = (sums[context:] - sums[:-context]) * inverses[: stop - start]
        found[start:stop] = h ^ (h >> np.uint64(29))
    return found


def _powers(base: int, count: int) -> Array:
    powers = np.full(count, base % 2**64, np.uint64)
    powers[0] = 1
    return np.cumprod(powers)


def _find_repeats(hashed: Array) -> tuple[Array, Array]:
    """Places whose hash is not the only one of its kind, and the first place that has it."""
    places, firsts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for bucket in _iterate_buckets(hashed):
        own = hashed[bucket]
        order = np.argsort(own)
        own = own[order]
        same = np.concatenate([[False], own[1:] == own[:-1], [False]])
        again = same[1:] | same[:-1]
        starts = np.flatnonzero(~same[:-1][again])
        if len(starts):
            place = bucket[order[again]]
            lengths = np.diff(np.append(starts, len(place)))
            places.append(place)
            firsts.append(np.repeat(np.minimum.reduceat(place, starts), lengths))
    return np.concatenate(places), np.concatenate(firsts)


def _iterate_buckets(hashed: Array) -> Iterator[Array]:
    """Places, those of equal hashes together, not many more than are sorted at a time."""
    bits = max(0, (len(hashed) // BUCKET).bit_length())
    if not bits:
        yield np.arange(len(hashed))
        return
    for k in range(1 << bits):
        low, high = k << (64 - bits), ((k + 1) << (64 - bits)) - 1
        yield np.flatnonzero((hashed >= np.uint64(low)) & (hashed <= np.uint64(high)))


def continuations(place: Array, first: Array, following: Array, size: int) -> tuple[Array, list[tuple[Any, ...]]]:
    """The number of the distribution after each place, and the mixed ones as tuples of (token, times).

    What follows a window that occurs once is certain; the others are given by their places and first places.
    """
    pairs, times = np.unique(first * size + following[place], return_counts=True)
    windows, tokens = pairs // size, pairs % size
    starts = np.flatnonzero(np.concatenate([[True], np.diff(windows) > 0])) if len(pairs) else np.zeros(0, np.intp)
    several = np.flatnonzero(np.diff(np.append(starts, len(pairs))) > 1)
    numbers: dict[tuple[Any, ...], int] = {}
    ends, found = np.append(starts[1:], len(pairs)), []
    for a, b in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        counts = times[a:b].tolist()
        shared = gcd(*counts)  # 2 of 4 is 1 of 2
        mixed = tuple(zip(tokens[a:b].tolist(), (count // shared for count in counts), strict=True))
        found.append(numbers.setdefault(mixed, size + len(numbers)))
    which = following.astype(np.uint16 if size + len(numbers) < 1 << 16 else np.int64)
    if found:
        ambiguous = windows[starts[several]]
        at = np.searchsorted(ambiguous, first)
        here = ambiguous.take(at, mode="clip") == first
        which[place[here]] = np.array(found)[at[here]]
    return which, list(numbers)
