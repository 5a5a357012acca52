"""Frames, series and tensors of other libraries as arrays and lists; they are known by what they can do."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Arrays and lists as they are; a tensor as an array; a series, or a frame with a row per sequence, as an array
    of numbers, or as lists. In a frame of words, cells that are missing at the end of a row are no tokens."""
    if value is None or isinstance(value, np.ndarray | list | tuple | str | bytes):
        return value
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return _of_tensor(value)
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        array = np.asarray(value.to_numpy())
        return [_without_end(row) for row in array.tolist()] if array.dtype.kind in "OUT" else array
    if hasattr(value, "to_list") and hasattr(value, "to_numpy"):
        listed = value.to_list()
        numbers = {type(x) for x in listed} <= {int, float, bool}
        if numbers and _is_plain(value):
            return np.asarray(value.to_numpy())
        return [np.nan if x is None else plain(x) for x in listed]  # in a series None is a value that is missing
    return value


def is_missing(cell: Any) -> bool:
    """Null or not a number: None, NaN, and what pandas calls NA and NaT."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating) and bool(cell != cell)


def _of_tensor(value: Any) -> Any:
    held = value.detach().cpu()
    try:
        return held.numpy()
    except TypeError:  # a type that NumPy does not have, such as bfloat16, whose numbers float32 holds
        return held.float().numpy()


def _is_plain(series: Any) -> bool:
    return np.asarray(series.to_numpy()).dtype.kind in "iufb"


def _without_end(row: list[Any]) -> list[Any]:
    kept = len(row)
    while kept and is_missing(row[kept - 1]):
        kept -= 1
    return row[:kept]
