"""The forward pass, on one screen. Memory is bounded by working on blocks of sequences and blocks of tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from onelayer.model.weights import Array, Attention, Grouped, Kind, Layer, Transformer

#: Scratch of one block of attention and of one block of a stack: small enough to stay in a core's cache.
ATTENTION_BYTES, STACK_BYTES = 1 << 21, 1 << 24
THREADS = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

Keep = dict[str, Array]
Stacks = Mapping[str, Callable[[Array], Array] | None]


def forward(model: Transformer, X: Array, lengths: Array | None = None, stacks: Stacks | None = None) -> Array:
    """Outputs [N, n, q] for tokens [N, n, d] or token ids [N, n]; rows at or after a length are meaningless.

    ``stacks`` may replace how the feed-forward and readout stacks are evaluated (see model/fast.py).
    """
    out: Array | None = None

    def run(rows: slice) -> None:
        nonlocal out
        block = forward_block(model, X[rows], None if lengths is None else lengths[rows], stacks=stacks)
        if out is None:
            out = np.empty((len(X), *block.shape[1:]), block.dtype)
        out[rows] = block

    blocks = list(sequence_blocks(X, model.dtype.itemsize))
    for rows in blocks[:1]:  # the first block alone fixes the output's shape
        run(rows)
    over_threads(run, blocks[1:])
    assert out is not None
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
        h = X.astype(model.dtype, copy=False) @ e.lift
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
    for i in range(a.heads):
        q, k, v = h @ a.W_Q[i], h @ a.W_K[i], h @ a.W_V[i]
        if a.b_Q is not None:
            q = q + a.b_Q[i]
        if a.b_K is not None:
            k = k + a.b_K[i]
        update += attend(q, k, v, visible, a.kind, keep, f"head{i}") @ a.W_O[i]
    return update


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
        y = split[:, :, 0, None] * layer.weight[:, 0]
        for i in range(1, inputs):
            y += split[:, :, i, None] * layer.weight[:, i]
        y = y.reshape(-1, groups * outputs)
    else:
        y = z @ layer.weight
    y += layer.bias
    return y


def sequence_blocks(X: Array, itemsize: int) -> Iterator[slice]:
    """Slices of sequences whose (sequence, query, key) scratch stays within ATTENTION_BYTES."""
    n = X.shape[1]
    step = max(1, ATTENTION_BYTES // (itemsize * n * max(n, *X.shape[2:], 1)))
    for start in range(0, len(X), step):
        yield slice(start, start + step)


def over_threads(run: Callable[[slice], None], blocks: list[slice]) -> None:
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
