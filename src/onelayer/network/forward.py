"""The forward pass, on one screen. Memory is bounded: blocks of sequences, of queries, and of tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from onelayer.network.weights import Array, Attention, Grouped, Kind, Layer, Transformer

#: Scratch of one block of attention and of one block of a stack: small enough to stay in a core's cache.
ATTENTION_BYTES, STACK_BYTES = 1 << 21, 1 << 24
#: Blocks of grouped layers with more inputs are multiplied as matrices.
LARGE_BLOCK = 16
THREADS = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

Keep = dict[str, Array]
Rows = slice | Array
Stacks = Mapping[str, Callable[[Array], Array] | None]


def forward(model: Transformer, X: Array, lengths: Array | None = None, stacks: Stacks | None = None) -> Array:
    """Outputs [N, n, q] for tokens [N, n, d] or token ids [N, n]; rows at or after a length are meaningless.

    ``stacks`` may replace how the feed-forward and readout stacks are evaluated (see gadgets/fast.py).
    """
    last = model.readout[-1].width if model.readout else model.attention.W_Q.shape[1]
    out = np.zeros((*X.shape[:2], last), model.dtype)

    def run(rows: Rows) -> None:
        if lengths is None:
            out[rows] = forward_block(model, X[rows], None, stacks=stacks)
        else:  # a block is as long as its longest sequence
            longest = int(lengths[rows].max())
            out[rows, :longest] = forward_block(model, X[rows, :longest], lengths[rows], stacks=stacks)

    over_threads(run, list(sequence_blocks(X, lengths, model.dtype.itemsize)))
    return out


def forward_block(
    model: Transformer,
    X: Array,
    lengths: Array | None = None,
    keep: Keep | None = None,
    stacks: Stacks | None = None,
) -> Array:
    """One block of sequences. ``keep`` collects every named intermediate value."""

    def run_stack(name: str, layers: tuple[Layer, ...], h: Array) -> Array:
        replaced = stacks.get(name) if stacks else None
        return apply_stack(layers, h, keep, name) if replaced is None else replaced(h)

    h = embed(model, X)
    keep_as(keep, "embedded", h)
    if model.feedforward:
        h = run_stack("feedforward", model.feedforward, h)
    h = h + attention_update(model.attention, h, visible_keys(X.shape[1], lengths, model.attention.causal), keep)
    keep_as(keep, "context", h)
    return run_stack("readout", model.readout, h) if model.readout else h


def embed(model: Transformer, X: Array) -> Array:
    e = model.embedding
    if e is None:
        return X.astype(model.dtype, copy=False)
    if e.table is not None:
        h = e.table[X]
    else:
        assert e.lift is not None
        h = by_token(X.astype(model.dtype, copy=False), e.lift)
    if e.bias is not None:
        h = h + e.bias
    return h if e.positions is None else h + e.positions[: X.shape[1]]


def visible_keys(n: int, lengths: Array | None, causal: bool) -> Array | None:
    """Which keys a query may see: None for all of them, else a mask that broadcasts to [N, query, key]."""
    mask = np.tril(np.ones((1, n, n), bool)) if causal else None
    if lengths is None:
        return mask
    inside = (np.arange(n) < np.asarray(lengths)[:, None])[:, None, :]
    return inside if mask is None else inside & mask


def attention_update(a: Attention, h: Array, visible: Array | None, keep: Keep | None = None) -> Array:
    """What the heads add to the residual stream."""
    update = np.zeros_like(h)
    n = h.shape[1]
    step = n if keep is not None else max(1, ATTENTION_BYTES // (h.itemsize * len(h) * n))  # queries at a time
    for i in range(a.heads):
        q, k, v = (by_token(h, W[i]) for W in (a.W_Q, a.W_K, a.W_V))
        if a.b_Q is not None:
            q = q + a.b_Q[i]
        if a.b_K is not None:
            k = k + a.b_K[i]
        for start in range(0, n, step):
            rows = slice(start, start + step)
            seen = visible if visible is None or visible.shape[1] == 1 else visible[:, rows]
            update[:, rows] += by_token(attend(q[:, rows], k, v, seen, a.kind, keep, f"head{i}"), a.W_O[i])
    return update


def by_token(h: Array, weight: Array) -> Array:
    """h @ weight for h [N, n, width], as one product: NumPy would make N small ones of it."""
    product: Array = h.reshape(-1, h.shape[-1]) @ weight
    return product.reshape(*h.shape[:-1], weight.shape[-1])


def attend(
    q: Array, k: Array, v: Array, visible: Array | None, kind: Kind, keep: Keep | None = None, name: str = "head"
) -> Array:
    """Averages [N, queries, s] of the values, weighted by softmax or hardmax of q k^T over the visible keys."""
    logits = q * k[..., 0][:, None, :] if q.shape[-1] == 1 else q @ k.swapaxes(-1, -2)  # [N, query, key]
    if visible is not None:
        logits = np.where(visible, logits, -np.inf)
    keep_as(keep, f"{name}.logits", logits)
    top = logits.max(-1, keepdims=True)
    if kind == "softmax":
        logits -= top  # in place: `keep` has its own copy
        weights = np.exp(logits, out=logits)
    else:
        weights = (logits == top).astype(v.dtype)  # ties share the mass equally
    mass = weights.sum(-1, keepdims=True)
    keep_as(keep, f"{name}.attention", weights / mass)
    averages: Array = (weights @ v) / mass
    keep_as(keep, f"{name}.averages", averages)
    return averages


def apply_stack(layers: tuple[Layer, ...], h: Array, keep: Keep | None = None, name: str = "stack") -> Array:
    """Linear maps with ReLU between them, on blocks of tokens."""
    tokens = h.reshape(-1, h.shape[-1])
    widest = max(layer.width for layer in layers)
    step = max(1, STACK_BYTES // (widest * h.itemsize)) if keep is None else max(1, len(tokens))
    out = np.empty((len(tokens), layers[-1].width), h.dtype)
    for start in range(0, len(tokens), step):
        z = tokens[start : start + step]
        for i, layer in enumerate(layers):
            z = apply_layer(layer, z)
            if i + 1 < len(layers):
                np.maximum(z, 0, out=z)
            if keep is not None:  # then all tokens are in one block
                keep_as(keep, f"{name}.{i}", z.reshape(*h.shape[:-1], z.shape[-1]))
        out[start : start + step] = z
    return out.reshape(*h.shape[:-1], out.shape[-1])


def apply_layer(layer: Layer, z: Array) -> Array:
    if isinstance(layer, Grouped):
        groups, inputs, outputs = layer.weight.shape
        split = z.reshape(-1, groups, inputs)
        if inputs > LARGE_BLOCK:
            y = (split.swapaxes(0, 1) @ layer.weight).swapaxes(0, 1).reshape(-1, groups * outputs)
            y += layer.bias
            return y
        y = split[:, :, 0, None] * layer.weight[:, 0]
        for i in range(1, inputs):
            y += split[:, :, i, None] * layer.weight[:, i]
        y = y.reshape(-1, groups * outputs)
    else:
        y = z @ layer.weight
    y += layer.bias
    return y


def sequence_blocks(X: Array, lengths: Array | None, itemsize: int) -> Iterator[Rows]:
    """Sequences whose (query, key) scratch stays within ATTENTION_BYTES, those of like length together."""

    def step(n: int) -> int:
        return max(1, ATTENTION_BYTES // (itemsize * n * int(max(n, *X.shape[2:], 1))))

    if lengths is None:
        size = step(X.shape[1])
        yield from (slice(start, start + size) for start in range(0, len(X), size))
        return
    order, start = np.argsort(lengths, kind="stable"), 0
    while start < len(order):
        size = step(int(lengths[order[start]]))
        size = min(size, max(1, step(int(lengths[order[min(start + size, len(order)) - 1]]))))
        yield order[start : start + size]
        start += size


def over_threads(run: Callable[[Rows], None], blocks: list[Rows]) -> None:
    """NumPy releases the interpreter lock, so threads use every core."""
    if THREADS == 1 or len(blocks) < 2:
        for rows in blocks:
            run(rows)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(run, blocks):
            pass


def keep_as(keep: Keep | None, name: str, value: Array) -> None:
    if keep is not None:
        keep[name] = value.copy()
