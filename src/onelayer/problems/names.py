"""Words and other names by number. They stay Python objects: an array of words is as wide as its longest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError

Array = NDArray[Any]


def number_values(values: Sequence[Any]) -> tuple[tuple[Any, ...], Array]:
    """The different values, sorted, and the number of each."""
    names = sorted(set(values))
    return tuple(names), codes_in({name: i for i, name in enumerate(names)}, values)


def codes_in(index: Mapping[Hashable, int], values: Iterable[Any]) -> Array:
    """The number of each value; -1 for one that is not there."""
    return np.fromiter((index.get(value, -1) for value in values), np.int64)


def classes_of(values: Array) -> tuple[tuple[Hashable, ...], Array]:
    """Distinct classes in a fixed order (sorted where they can be) and the index of each answer."""
    if values.dtype != object:
        if values.dtype.kind == "i":
            values = values.astype(np.int64)  # differences of narrow integers would wrap around
        low, high = (int(values.min()), int(values.max())) if values.dtype.kind in "iu" else (0, 1 << 40)
        if high - low < 4 * values.size and high < 2**62:  # a lookup table is ten times faster than sorting
            seen = np.zeros(high - low + 1, bool)
            seen[values - low] = True
            rank = np.cumsum(seen) - 1
            return tuple((np.flatnonzero(seen) + low).tolist()), rank[values - low]
        if values.dtype.kind != "U":
            unique, codes = np.unique(values, return_inverse=True)
            return tuple(unique.tolist()), codes.reshape(-1)
    listed = values.tolist()
    if set(map(type, listed)) == {str}:
        return number_values(listed)
    index: dict[Hashable, int] = {}
    names: list[Hashable] = []
    try:
        for value in listed:
            if index.setdefault(_typed_key(value), len(names)) == len(names):
                names.append(value)
        places = {name: i for i, name in enumerate(names)}
    except TypeError as error:
        raise DataError(
            "data", "hashable classes", f"an answer is not hashable ({error})", "Use strings, numbers or tuples."
        ) from None
    for i, name in enumerate(names):
        if places[name] != i:
            found = f"{name!r:.40} and {names[places[name]]!r:.40} are equal to it"
            remedy = "Write one of them as a word, or both alike."
            raise DataError("data", "classes that Python tells apart", found, remedy)
    return tuple(names), np.array([index[_typed_key(value)] for value in listed])


def _typed_key(value: Any) -> Hashable:
    """Equal for classes of one type only: True is not 1, and 1 is not 1.0."""
    value = value.item() if isinstance(value, np.generic) else value
    return (tuple, *map(_typed_key, value)) if isinstance(value, tuple) else (type(value), value)
