"""Coordinates of tokens whose code stays and is added up: whole numbers, or means of them where lengths differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.blocks import blocks
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]

#: Sums are added to the codes of so many bytes at a time, which stay in cache.
ADDED_BYTES = 1 << 18


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
        sums = (total / n) * (wide @ np.tile(np.eye(rank, dtype=codes.dtype), (n, 1)) / own)
        if per_sequence:
            return sums, largest
        for part in blocks(wide, ADDED_BYTES):
            wide[part] += np.tile(sums[part], n)
        return codes.reshape(-1, rank), largest
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
