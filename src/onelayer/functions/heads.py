"""Averages as heads of one attention layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.functions.rewriting import Pool
from onelayer.network.weights import Attention

Array = NDArray[Any]
Row = Callable[[int], tuple[Array, float]]


def heads_of(
    pools: list[Pool], channels: list[int], row: Row, sharp: dict[int, float], dtype: np.dtype[Any]
) -> Attention:
    """A head for all values with the same logits, or more of them if that is narrower; ``row`` gives a line of a
    token over the channels, and ``sharp`` how sharp each maximum is."""
    together: dict[Any, list[tuple[Pool, float, float]]] = {}  # with a tilt, and a factor of the average
    for pool in pools:
        for tilt, factor in pool.tilts:
            together.setdefault((pool.tilted, tilt), []).append((pool, float(tilt), float(factor)))
        if not pool.tilts:
            logits = pool.line if pool.kind == "largest" else pool.logits
            together.setdefault(logits, []).append((pool, sharp.get(pool.line, 0.0), 1.0))
    groups = list(together.values())
    least = max((len(group[0][0].logits) for group in groups), default=1) or 1
    most = max((len(group) for group in groups), default=1)
    sizes = range(least, max(least, most) + 1)
    size = min(sizes, key=lambda s: s * sum(-(-len(group) // s) for group in groups))
    heads = [group[i : i + size] for group in groups for i in range(0, len(group), size)] or [[]]
    w = len(channels)
    Q, K, V, O = (np.zeros((len(heads), *shape)) for shape in ((w, size),) * 3 + ((size, w),))
    b_Q = np.zeros((len(heads), size))
    for g, head in enumerate(heads):
        for pool, sharpness, _ in head[:1]:
            for s, (q, k) in enumerate(pool.logits):
                Q[g, :, s], b_Q[g, s] = row(q)
                K[g, :, s], _ = row(k)
            if sharpness:
                K[g, :, 0] = row(pool.value if pool.tilted is None else pool.tilted)[0] * sharpness
                b_Q[g, 0] = 1.0
        for s, (pool, _, weight) in enumerate(head):
            V[g, :, s], _ = row(pool.value)
            O[g, s, channels.index(pool.line)] = weight
    W_Q, W_K, W_V, W_O = (a.astype(dtype) for a in (Q, K, V, O))
    return Attention(W_Q, W_K, W_V, W_O, b_Q=b_Q.astype(dtype) if b_Q.any() else None)
