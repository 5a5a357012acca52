"""The forward pass in float16 or bfloat16, as a plain runtime would run it; numbers are kept in float32 arrays.

Weights and real tokens are rounded to the nearest number of the dtype, ties to even, by way of float32 as PyTorch
does it. Then every operation takes numbers of the dtype and its result is rounded to the dtype once: a product of
matrices with its sums accumulated in float32 (the bias of a full layer within, that of a grouped layer, of queries,
keys and the embedding as an operation of its own), softmax in float32 inside, the sum over heads, each residual
addition. What is beyond the range becomes infinite. This is what PyTorch does on a CPU, up to the order of sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from onelayer.network.blocks import ATTENTION_BYTES, Rows, over_threads, sequence_blocks
from onelayer.network.formats import Half, nearest
from onelayer.network.heads import visible_keys
from onelayer.network.layers import apply_layer
from onelayer.network.weights import Array, Attention, Grouped, Kind, Layer, Transformer

#: Scratch of one block of a stack; rounding keeps several copies of it.
BLOCK_BYTES = 1 << 20

Rounding = Callable[[Array], Array]
Runner = Callable[[Callable[[Rows], None], list[Rows]], None]


def half_outputs(model: Transformer, dtype: Half, X: Array, lengths: Array | None, i: Array, k: Array) -> Array:
    """What a model of rounded weights gives at token k[a] of sequence i[a], [answers, q]; X and lengths as in
    `forward`. Sequences that are not in i are not run."""
    to_dtype: Rounding = partial(nearest, dtype=dtype)
    used, row = np.unique(i, return_inverse=True)
    if len(used) < len(X):
        X, lengths = X[used], None if lengths is None else lengths[used]
    slot = np.full(X.shape[:2], -1)  # where the answer at a token goes; -1 where none is asked for
    slot[row, k] = np.arange(len(i))
    cut = _narrowest(model.readout)
    head, tail = model.readout[:cut], model.readout[cut:]
    width = head[-1].width if head else model.attention.W_Q.shape[1]
    narrow = np.empty((len(i), width), np.float32)

    def run(rows: Rows) -> None:
        seen = None if lengths is None else lengths[rows]
        longest = X.shape[1] if seen is None else int(seen.max())
        with np.errstate(all="ignore"):  # infinities and what comes of them are part of the answer
            h = _contexts(model, X[rows, :longest], seen, to_dtype)
            asked = slot[rows, :longest]
            narrow[asked[asked >= 0]] = _layers(head, h[asked >= 0], to_dtype, _in_turn, last=False)

    over_threads(run, list(sequence_blocks(X, lengths, np.dtype(np.float32).itemsize)))
    return _tail(tail, narrow, to_dtype, over_threads) if tail else narrow


def _contexts(model: Transformer, X: Array, lengths: Array | None, to_dtype: Rounding) -> Array:
    """The residual stream after attention, [N, n, width]; compare network/forward.py."""
    h = _embed(model, X, to_dtype)
    if model.feedforward:
        rows = h.reshape(-1, h.shape[-1])
        cut = _narrowest(model.feedforward)
        rows = _layers(model.feedforward[:cut], rows, to_dtype, _in_turn, last=False)
        rows = _tail(model.feedforward[cut:], rows, to_dtype, _in_turn)
        h = rows.reshape(*h.shape[:-1], rows.shape[-1])
    visible = visible_keys(X.shape[1], lengths, model.attention.causal)
    return to_dtype(h + _attention(model.attention, h, visible, to_dtype))


def _embed(model: Transformer, X: Array, to_dtype: Rounding) -> Array:
    e = model.embedding
    if e is not None and e.table is not None:
        h = e.table[X]
    else:
        h = to_dtype(X)
        if e is not None and e.lift is not None:
            h = to_dtype(h @ e.lift)
    if e is not None and e.bias is not None:
        h = to_dtype(h + e.bias)
    return h if e is None or e.positions is None else to_dtype(h + e.positions[: X.shape[1]])


def _attention(a: Attention, h: Array, visible: Array | None, to_dtype: Rounding) -> Array:
    total, n = np.zeros_like(h), h.shape[1]
    step = max(1, ATTENTION_BYTES // (h.itemsize * len(h) * n))  # queries at a time
    for i in range(a.heads):
        q, k, v = (to_dtype(h @ W[i]) for W in (a.W_Q, a.W_K, a.W_V))
        q = q if a.b_Q is None else to_dtype(q + a.b_Q[i])
        k = k if a.b_K is None else to_dtype(k + a.b_K[i])
        for start in range(0, n, step):
            rows = slice(start, start + step)
            seen = visible if visible is None or visible.shape[1] == 1 else visible[:, rows]
            averages = _averages(q[:, rows], k, v, seen, a.kind, to_dtype)
            total[:, rows] += to_dtype(averages @ a.W_O[i])
    return to_dtype(total)


def _averages(q: Array, k: Array, v: Array, visible: Array | None, kind: Kind, to_dtype: Rounding) -> Array:
    logits = to_dtype(q @ k.swapaxes(-1, -2))
    if visible is not None:
        logits = np.where(visible, logits, np.float32(-np.inf))
    top = logits.max(-1, keepdims=True)
    if kind == "hardmax":
        weights = (logits == top).astype(v.dtype)
        return to_dtype(to_dtype(weights @ v) / to_dtype(weights.sum(-1, keepdims=True)))
    weights = np.exp(logits - top)
    return to_dtype(to_dtype(weights / weights.sum(-1, keepdims=True)) @ v)


def _narrowest(layers: tuple[Layer, ...]) -> int:
    """The layer that takes the fewest numbers. If it takes one, few are different in 16 bits: see `_tail`."""
    return int(np.argmin([np.prod(layer.weight.shape[:-1]) for layer in layers])) if layers else 0


def _tail(layers: tuple[Layer, ...], rows: Array, to_dtype: Rounding, run: Runner) -> Array:
    """The rest of a stack; rows of one number are run once for each different number."""
    if rows.shape[1] > 1:
        return _layers(layers, rows, to_dtype, run, last=True)
    numbers, back = np.unique(rows[:, 0], return_inverse=True)
    return np.asarray(_layers(layers, numbers[:, None], to_dtype, run, last=True)[back])


def _layers(layers: tuple[Layer, ...], rows: Array, to_dtype: Rounding, run: Runner, *, last: bool) -> Array:
    """Layers on blocks of rows, with ReLU after each, the last of a stack excepted."""
    if not layers:
        return rows
    out = np.empty((len(rows), layers[-1].width), np.float32)

    def block(at: Rows) -> None:
        z = rows[at]
        with np.errstate(all="ignore"):
            for i, layer in enumerate(layers):
                z = _layer(layer, z, to_dtype)
                if i + 1 < len(layers) or not last:
                    np.maximum(z, 0, out=z)
        out[at] = z

    step = max(1, BLOCK_BYTES // (out.itemsize * max(layer.width for layer in layers)))
    run(block, [slice(start, start + step) for start in range(0, len(rows), step)])
    return out


def _in_turn(block: Callable[[Rows], None], blocks: list[Rows]) -> None:
    """Like `over_threads`, for a caller that already uses every core."""
    for rows in blocks:
        block(rows)


def _layer(layer: Layer, z: Array, to_dtype: Rounding) -> Array:
    if not isinstance(layer, Grouped):
        return to_dtype(apply_layer(layer, z))
    products = to_dtype(apply_layer(replace(layer, bias=np.zeros(1, z.dtype)), z))
    return to_dtype(products + layer.bias)
