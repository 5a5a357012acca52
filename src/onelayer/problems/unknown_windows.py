"""Windows that a text does not have, drawn from it: they show whether a model of it knows where it is left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.windows import TextWindows, occurs

Array = NDArray[Any]

#: What kinds are drawn, as a person reads it.
CHANGED, MIXED = "of the text with one token changed", "put together of its tokens"


def draw(text: TextWindows, count: int, seed: int) -> dict[str, Array]:
    """At most ``count`` windows [S, n] of each kind, none of them in the text. A kind without any is left out."""
    rng, n = np.random.default_rng([seed, 17]), text.context
    stored = np.lib.stride_tricks.sliding_window_view(text.stream, n)
    changed = stored[rng.integers(0, text.count, count)].copy()
    changed[np.arange(count), rng.integers(0, n, count)] = rng.choice(text.occurring, count)
    mixed = text.stream[rng.integers(n, len(text.stream), (count, n))]
    both = np.concatenate([changed, mixed])
    new = ~occurs(text.stream, n, both)
    kinds = {CHANGED: both[:count][new[:count]], MIXED: both[count:][new[count:]]}
    return {kind: windows for kind, windows in kinds.items() if len(windows)}
