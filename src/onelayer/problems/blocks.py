"""Arrays larger than memory: passes over blocks of rows, and results that live where their source lives."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

BLOCK_BYTES = 1 << 24
#: Rows that are reduced as one: long rows reduce many times faster than short ones.
FOLDED = 64
#: Multiplications for which BLAS starts no thread (OpenBLAS: up to these), and rows too few for its kernels.
UNTHREADED, FEW_ROWS = 1 << 18, 64
#: Rows that are reduced twice at a time.
CACHED_BYTES = 1 << 18


def blocks(array: Array, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows of about this many bytes."""
    step = max(1, block_bytes // max(1, array.itemsize * array[:1].size))
    for start in range(0, len(array), step):
        yield slice(start, start + step)


def product(rows: Array, matrix: Array) -> Array:
    """rows [T, k] @ matrix [k, m], for a small matrix some rows at a time: BLAS starts threads for more, which
    compete with ours, and go on spinning for longer than such a product takes."""
    step = UNTHREADED // max(1, matrix.size)
    if step < FEW_ROWS or len(rows) <= step:
        return np.asarray(rows @ matrix)
    found = np.empty((len(rows), matrix.shape[1]), np.result_type(rows, matrix))
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], matrix, out=found[start : start + step])
    return found


def every(test: Callable[[Array], Any], array: Array) -> bool:
    """Whether a test holds for all elements, asked block by block."""
    return all(bool(np.all(test(array[rows]))) for rows in blocks(array))


def column_bounds(array: Array) -> tuple[Array, Array]:
    """The smallest and the largest number of each column of [T, c]; both of some rows while these are in cache."""
    T, c = array.shape
    whole = T - T % FOLDED
    folded = array[:whole].reshape(-1, FOLDED * c)
    low, high = [array[whole:]], [array[whole:]]
    for rows in blocks(folded, CACHED_BYTES):
        low.append(folded[rows].min(axis=0).reshape(FOLDED, c))
        high.append(folded[rows].max(axis=0).reshape(FOLDED, c))
    return np.concatenate(low).min(axis=0), np.concatenate(high).max(axis=0)


def is_mapped(array: Array) -> bool:
    """Whether an array, or what it is a view of, is a memory-mapped file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def on_disk(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Zeros in a file without a name in the temporary folder (TMPDIR): gone with the array, even after a crash."""
    with tempfile.TemporaryFile(prefix="onelayer-") as file:
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))


def mapped_like(source: Array, function: Callable[[slice], Array], dtype: DTypeLike) -> Array:
    """An array of the shape of ``source``, made block by block: in memory, or on disk if the source is."""
    out = on_disk(source.shape, dtype) if is_mapped(source) else np.empty(source.shape, dtype)
    for rows in blocks(source):
        out[rows] = function(rows)
    return out
