"""The forward pass, on one screen. `blocks.evaluate` gives the same with bounded memory, on every core.

``see`` is shown every named value of the pass, in order. Each of the three parts may be computed in another way
that gives the same: in blocks, or by a search.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from onelayer.network.layers import apply_layer, by_token
from onelayer.network.weights import Array, Attention, Kind, Layer, Transformer

See = Callable[[str, Array], None]
RunStack = Callable[[tuple[Layer, ...], Array], Array]
RunAttention = Callable[[Attention, Array, Array | None], Array]


def unseen(name: str, value: Array) -> None:
    """Looks at nothing."""


def forward(
    model: Transformer,
    X: Array,
    lengths: Array | None = None,
    see: See = unseen,
    *,
    feedforward: RunStack | None = None,
    attention: RunAttention | None = None,
    readout: RunStack | None = None,
) -> Array:
    """Outputs [N, n, q] for tokens [N, n, d] or token ids [N, n]; rows at or after a length are meaningless."""
    feedforward = feedforward or partial(run_stack, see=see, name="feedforward")
    attention = attention or partial(run_attention, see=see)
    readout = readout or partial(run_stack, see=see, name="readout")
    h = embed(model, X)
    see("embedded", h)
    h = feedforward(model.feedforward, h) if model.feedforward else h
    h = h + attention(model.attention, h, visible_keys(X.shape[1], lengths, model.attention.causal))
    see("context", h)
    return readout(model.readout, h) if model.readout else h


def embed(model: Transformer, X: Array) -> Array:
    e = model.embedding
    h = X if e is None or e.table is None else e.table[X]
    h = h.astype(model.dtype, copy=False)
    h = h if e is None or e.lift is None else by_token(h, e.lift)
    h = h if e is None or e.bias is None else h + e.bias
    return h if e is None or e.positions is None else h + e.positions[: X.shape[1]]


def run_attention(a: Attention, h: Array, visible: Array | None, see: See = unseen) -> Array:
    """What the heads add to the residual stream."""
    update = np.zeros_like(h)
    for i in range(a.heads):
        update += by_token(attend(*queries_keys_values(a, i, h), visible, a.kind, see, f"head{i}"), a.W_O[i])
    return update


def queries_keys_values(a: Attention, i: int, h: Array) -> tuple[Array, Array, Array]:
    q, k, v = (by_token(h, W[i]) for W in (a.W_Q, a.W_K, a.W_V))
    return q if a.b_Q is None else q + a.b_Q[i], k if a.b_K is None else k + a.b_K[i], v


def attend(
    q: Array, k: Array, v: Array, visible: Array | None, kind: Kind, see: See = unseen, name: str = "head"
) -> Array:
    """Averages [N, queries, s] of the values, weighted by softmax or hardmax of q k^T over the visible keys."""
    logits = q * k[..., 0][:, None, :] if q.shape[-1] == 1 else q @ k.swapaxes(-1, -2)  # [N, query, key]
    logits = logits if visible is None else np.where(visible, logits, -np.inf)
    see(f"{name}.logits", logits)
    top = logits.max(-1, keepdims=True)
    if kind == "softmax":
        weights = np.exp(np.subtract(logits, top, out=logits), out=logits)  # no second array of this size
    else:
        weights = (logits == top).astype(v.dtype)  # ties share the mass equally
    mass = weights.sum(-1, keepdims=True)
    if see is not unseen:
        see(f"{name}.attention", weights / mass)
    averages: Array = (weights @ v) / mass
    see(f"{name}.averages", averages)
    return averages


def run_stack(layers: tuple[Layer, ...], h: Array, see: See = unseen, name: str = "stack") -> Array:
    """Linear maps, and ReLU after each but the last."""
    for i, layer in enumerate(layers):
        h = apply_layer(layer, h)
        h = np.maximum(h, 0, out=h) if i + 1 < len(layers) else h
        see(f"{name}.{i}", h)
    return h


def visible_keys(n: int, lengths: Array | None, causal: bool) -> Array | None:
    """Which keys a query may see: None for all of them, else a mask that broadcasts to [N, query, key]."""
    mask = np.tril(np.ones((1, n, n), bool)) if causal else None
    if lengths is None:
        return mask
    inside = (np.arange(n) < np.asarray(lengths)[:, None])[:, None, :]
    return inside if mask is None else inside & mask
