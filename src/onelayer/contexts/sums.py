"""Coordinates of tokens whose code stays and is added up: whole numbers, or means of them where lengths differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.blocks import blocks
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Sums are added to the codes of this many bytes at a time, which stay in cache.
ADDED_BYTES = 1 << 17
#: A wide own weight is at most c n (n + 12) over this: rounding it adds about half to the error of the average.
OWN_SHARE = 18.0


def joint_coordinates(
    sequences: Sequences, codes: Array, own: float, total: float, per_sequence: bool
) -> tuple[Array, float]:
    """[T, s], exact whole numbers when all sequences are equally long, and the largest code; codes times their own
    weight come in, and are overwritten."""
    valid, rank = sequences.valid(), codes.shape[-1]
    if valid is None:
        N, n, _ = codes.shape
        largest = max(float(codes.max()), -float(codes.min())) / own
        wide = codes.reshape(N, n * rank)  # below 2^24, so sums are exact in any dtype and any order
        ones = np.tile(np.eye(rank, dtype=codes.dtype), (n, 1))
        sums = np.empty((N if per_sequence else 0, rank), codes.dtype)
        for part in blocks(wide, ADDED_BYTES):
            added = (total / n) * (wide[part] @ ones / own)
            if per_sequence:
                sums[part] = added
            else:
                wide[part] += np.tile(added, n)
        return (sums if per_sequence else codes.reshape(-1, rank)), largest
    assert sequences.lengths is not None
    codes[~valid] = 0.0
    largest = max(float(codes.max()), -float(codes.min())) / own
    sums = (
        codes.sum(axis=1, dtype=np.float64) / own * total / sequences.lengths[:, None]
    )  # equal shares, equal bits
    if per_sequence:
        return sums, largest
    starts = np.concatenate([[0], np.cumsum(sequences.lengths)])
    out = np.empty((starts[-1], rank))
    for rows in blocks(codes):
        stop = min(rows.stop, len(codes))
        out[starts[rows.start] : starts[stop]] = (codes[rows] + sums[rows, None, :])[valid[rows]]
    return out, largest


def weights(n: int, ragged: bool, apart: bool, wide: bool) -> tuple[float, float]:
    """a, and c n: what multiplies a token's own code, and the mean of all. ``apart``: no two tokens of a sequence
    have one code, or own codes do not show.

    Of equal lengths, c = 3 makes up for a power of two: if all codes are unrelated, y_k = y_k' of two tokens needs
    a = c n (p' - p), where p and p' are the shares of one of them in the two sequences, and n (p' - p) is a whole
    number (with c = 1 and a = 2, x among x y y y is y among y x x x). Of different lengths, shares are any
    fractions, but 0 < p and p' < 1, as both tokens are there: a >= c n has no solution. One power of two for both
    keeps y on the lattice of means.
    """
    if ragged:
        total = float(np.exp2(np.ceil(np.log2(n))))
        return total, total
    c = 1.0 if apart else 3.0
    return own_weight(n, c if wide else 0.0), c * n


def raised_mean(n: int) -> float:
    """Where lengths differ and bits abound, how much more the mean may weigh at first: means of n codes are then as
    widely spread as codes, so that those of one token in many sequences lie apart. Two contexts may meet, which is
    seen; then the mean weighs no more than what no two can meet with."""
    return float(np.exp2(max(0.0, np.round(np.log2(n) / 2) - 1)))


def own_weight(n: int, wide: float = 0.0) -> float:
    """a, a power of two near 2 sqrt(n): a token's own code is then about as widely spread as c sums of n codes.

    Or, with c given as ``wide``, as large as leaves most of the rounding error of a coordinate to its average.
    """
    even = np.exp2(np.round(np.log2(n) / 2) + 1)
    return float(max(even, np.exp2(np.floor(np.log2(wide * n * (n + 12) / OWN_SHARE))) if wide else 0.0))
