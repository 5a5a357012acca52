"""Drawing codes that know their place.

Averaging forgets the order, and adding a code of the place to that of the token does not bring it back; a code of
both jointly does. Everything here is whole numbers below 2^24, so all of it is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.place_gates import PlaceGates

Array = NDArray[Any]


def draw_places(n: int, largest: Array, own: float, dtype: np.dtype[Any], rng: np.random.Generator) -> PlaceGates:
    """Random matrices and shifts, ``own`` times, for raw codes between 0 and ``largest`` [s]."""
    s, top = len(largest), float(largest.max())
    mixing = rng.integers(-1, 2, (n, s, s)).astype(np.float64)
    mixing[:, np.arange(s), np.arange(s)] = rng.choice([-1.0, 1.0], (n, s))  # no channel is lost
    shift = rng.integers(-int(top // 2) - 1, int(top // 2) + 2, (n, s)) - np.rint(largest / 2) @ mixing
    spacing = float(np.exp2(np.ceil(np.log2(top + 3))))
    return PlaceGates(spacing, (own * mixing).astype(dtype), (own * shift).astype(dtype))
