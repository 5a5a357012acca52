"""The forward pass over threads, in blocks: of sequences, of queries of long sequences, of tokens in a stack."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from onelayer.network.forward import RunStack, forward, run_stack
from onelayer.network.heads import attend, carries_sums, queries_keys_values, run_head, sum_values
from onelayer.network.layers import by_token
from onelayer.network.weights import Array, Attention, Layer, Transformer

#: Scratch of one block of attention and of one block of a stack: small enough to stay in a core's cache.
ATTENTION_BYTES, STACK_BYTES = 1 << 21, 1 << 24
THREADS = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

Rows = slice | Array
#: How the feed-forward and readout stacks are evaluated, by name, where a gadget knows a faster way.
Stacks = Mapping[str, Callable[[Array], Array] | None]


def evaluate(
    model: Transformer, X: Array, lengths: Array | None = None, stacks: Stacks | None = None, first: int = 0
) -> Array:
    """Outputs [N, n, q] as `forward` gives them, for any number of sequences; from the ``first`` token on."""
    if first and (lengths is not None or not _at_once(model)):
        return evaluate(model, X, lengths, stacks)[:, first:]
    out = np.zeros((len(X), X.shape[1] - first, model.output_width), model.dtype)
    ways: dict[str, RunStack] = {"feedforward": apply_stack, "readout": apply_stack}
    if not model.further:  # a search is of one layer's stack
        ways |= {name: partial(_search, way) for name, way in (stacks or {}).items() if way is not None}
    feedforward, readout = ways["feedforward"], ways["readout"]
    whole = partial(forward, model, feedforward=feedforward, attention=attention_in_blocks, readout=readout)
    run_block = partial(whole, first=first)

    def run(rows: Rows) -> None:
        if lengths is None:
            out[rows] = run_block(X[rows])
        else:  # a block is as long as its longest sequence
            longest = int(lengths[rows].max())
            out[rows, :longest] = run_block(X[rows, :longest], lengths[rows])

    small = first and X.nbytes <= STACK_BYTES  # sums over keys, and no matrix of queries and keys
    over_threads(run, [slice(None)] if small else list(sequence_blocks(X, lengths, model.dtype.itemsize)))
    return out


def _at_once(model: Transformer) -> bool:
    """Whether the tokens that are asked need no other but as keys."""
    a = model.attention
    return a.kind == "mesa" and not (model.feedforward or model.further or a.causal or model.repeat > 1)


def _search(search: Callable[[Array], Array], _: tuple[Layer, ...], h: Array) -> Array:
    """In place of the layers."""
    return search(h)


def attention_in_blocks(a: Attention, h: Array, visible: Array | None) -> Array:
    """As `run_attention`, some queries at a time."""
    update, n = np.zeros_like(h), h.shape[1]
    step = max(1, ATTENTION_BYTES // (h.itemsize * len(h) * n))
    for i in range(a.heads):
        if (
            a.kind == "mesa" or carries_sums(a) or a.window == 1 or step >= n
        ):  # no matrix of queries and keys, or a small one
            update += by_token(run_head(a, i, h, visible), a.W_O[i])
            continue
        q, k, v = queries_keys_values(a, i, h)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            seen = visible if visible is None or visible.shape[1] == 1 else visible[:, rows]
            if a.kind in ("softmax", "hardmax"):
                found = attend(q[:, rows], k, v, seen, a.kind)
            else:
                found = sum_values(q[:, rows], k, v, seen, a.kind, a.mean)
            update[:, rows] += by_token(found, a.W_O[i])
    return update


def apply_stack(layers: tuple[Layer, ...], h: Array) -> Array:
    """As `run_stack`, some tokens at a time."""
    tokens = h.reshape(-1, h.shape[-1])
    step = max(1, STACK_BYTES // (max(layer.width for layer in layers) * h.itemsize))
    out = np.empty((len(tokens), layers[-1].width), h.dtype)
    for start in range(0, len(tokens), step):
        out[start : start + step] = run_stack(layers, tokens[start : start + step])
    return out.reshape(*h.shape[:-1], out.shape[-1])


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
