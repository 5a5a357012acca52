"""A loop of linear attention whose scores never change: only the channels that it writes are followed.

Where queries and keys read channels that no loop writes, they are computed once, and every loop is a product with
them. The result is that of `forward`, but for the order of its sums. Sequences are the last axis, along which all
products go, so that many short prompts cost as much as one long one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onelayer.network.heads import queries_keys_values
from onelayer.network.layers import by_token
from onelayer.network.weights import Array, Linear, Transformer

#: Bytes of queries and keys that are held at a time: small enough to stay in a core's cache for all loops.
CACHE = 1 << 20


@dataclass(frozen=True, eq=False)
class Moving:
    """Channels that a loop writes, and what the others add to them in the feed-forward part."""

    channels: Array
    others: Array


def moving(layer: Transformer) -> Moving | None:
    """What moves in a loop of a layer that is repeated; None if its scores do too, or if it is no linear map."""
    a, ff = layer.attention, layer.feedforward
    if a.kind != "linear" or a.causal or a.window is not None or len(ff) > 1:
        return None
    moves = (a.W_O != 0).any(axis=(0, 1))
    if ff:
        if not isinstance(ff[0], Linear):
            return None
        moves |= (ff[0].weight != np.eye(len(moves))).any(axis=0) | (ff[0].bias != 0)
    if any((W[:, moves] != 0).any() for W in (a.W_Q, a.W_K)):
        return None
    return Moving(np.flatnonzero(moves), np.flatnonzero(~moves))


def run(layer: Transformer, which: Moving, h: Array, visible: Array | None) -> Array:
    """h [N, n, width] after all loops; ``visible`` [N, 1, n] or None, the same for all queries."""
    a, (N, n, _) = layer.attention, h.shape
    step = max(1, CACHE // (2 * h.itemsize * n * a.W_Q.shape[2] * a.heads))
    rows = [slice(start, start + step) for start in range(0, N, step)]
    parts = [
        _run(layer, which, h[r], visible if visible is None or len(visible) == 1 else visible[r]) for r in rows
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _run(layer: Transformer, which: Moving, h: Array, visible: Array | None) -> Array:
    a, c, (_, n, _) = layer.attention, which.channels, h.shape
    seen = None if visible is None else visible[:, 0].T[:, None]  # [n, 1, N]
    count = n if seen is None else np.maximum(seen.sum(axis=(0, 1)), 1).astype(h.dtype)
    heads = []
    for i in range(a.heads):
        q, k, _ = (np.ascontiguousarray(part.transpose(1, 2, 0)) for part in queries_keys_values(a, i, h))
        still = by_token(h[..., which.others], a.W_V[i][which.others]).transpose(2, 1, 0)
        k = k if seen is None else np.where(seen, k, 0)
        heads.append((q, k, a.W_V[i][c].T, still if still.any() else None, a.W_O[i][:, c].T))
    m = np.ascontiguousarray(h[..., c].transpose(2, 1, 0))  # [channels, n, N]
    W, added = None, np.zeros((), h.dtype)
    if layer.feedforward:
        whole, bias = layer.feedforward[0].weight, layer.feedforward[0].bias[c][:, None, None]
        W, added = whole[c][:, c].T, by_token(h[..., which.others], whole[which.others][:, c]).transpose(2, 1, 0)
        added = np.ascontiguousarray(added + bias)
    for _ in range(layer.repeat):
        m = m if W is None else _mix(W, m) + added
        before = m
        for q, k, W_V, fixed, W_O in heads:
            v = _mix(W_V, before)
            sums = np.einsum("nsb,vnb->vsb", k, v if fixed is None else v + fixed)
            read = np.einsum("nsb,vsb->vnb", q, sums)
            read = np.divide(read, count, out=read) if a.mean else read
            m = m + _mix(W_O, read)
    found = h.copy()
    found[..., c] = m.transpose(2, 1, 0)
    return found


def _mix(W: Array, m: Array) -> Array:
    """W @ m over the first axis; of one channel it is a multiple, or m itself."""
    if W.shape == (1, 1):
        return m if W[0, 0] == 1 else np.asarray(W[0, 0] * m)
    return np.asarray((W @ m.reshape(len(m), -1)).reshape(len(W), *m.shape[1:]))
