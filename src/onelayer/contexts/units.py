"""In which units tokens are read: powers of two, where a component comes near the ends of the format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import PrecisionError
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]


def units(low: Array, high: Array, sequences: Sequences, dtype: np.dtype[Any]) -> Array:
    """[d] powers of two that components are multiplied by: products of weights and tokens must neither overflow nor
    vanish. They are 1 unless a component comes near the ends of the format."""
    size = np.maximum(np.abs(low), np.abs(high))
    info = np.finfo(dtype)
    largest, smallest = 2.0 ** (info.maxexp * 0.75), 2.0 ** (info.minexp * 0.75)
    far = (size > largest) | ((size > 0) & (size < smallest))
    _, exponent = np.frexp(np.where(far, size, 1.0))
    unit = np.where(far, np.exp2(np.clip(-exponent.astype(float), info.minexp, info.maxexp - 1)), 1.0)
    for c in np.flatnonzero(far & (size > largest)).tolist():
        _refuse_lost(sequences, c, float(unit[c]), dtype)
    return unit


def _refuse_lost(sequences: Sequences, c: int, unit: float, dtype: np.dtype[Any]) -> None:
    """Raise where a component that reaches to the end of the format also has numbers that its unit makes vanish."""
    column, valid = np.abs(sequences.tokens[..., c]), sequences.valid()
    column = column if valid is None else np.where(valid, column, 0)
    least = np.where(column > 0, column, np.inf)
    if float(least.min()) * unit >= 2.0 ** (np.finfo(dtype).minexp * 0.75):
        return
    (i, k), (j, l) = (np.unravel_index(at, column.shape) for at in (int(least.argmin()), int(column.argmax())))
    span = 0.75 * (np.finfo(dtype).maxexp - 1)
    raise PrecisionError(
        "memorize",
        f"numbers of a component within a factor of 2^{span:.0f} where they reach the ends of {dtype}",
        f"component {c} is {column[i, k]:.3g} in sequence {i}, token {k}, and {column[j, l]:.3g} in sequence {j}, "
        f"token {l}",
        "Rescale that component, or set what is so small to 0.",
    )
