"""The forward pass in one order of operations, slowly: the same bits on every machine, and in a page (`explore`).

`forward` gives the same up to the order of its sums, which a proof in floats holds for.
"""

from __future__ import annotations

import numpy as np

from onelayer.network.arithmetic import add_product, exp, multiply, solve
from onelayer.network.heads import visible_to
from onelayer.network.layers import LARGE_BLOCK
from onelayer.network.weights import Array, Attention, Grouped, Layer, Transformer

#: Tokens that are evaluated at a time.
TOKENS = 1 << 11


def evaluate_in_order(model: Transformer, X: Array, lengths: Array | None = None) -> Array:
    """Outputs [N, n, q] for tokens [N, n, d] or token ids [N, n], as `forward` gives them."""
    step = max(1, TOKENS // max(1, X.shape[1]))
    rows = [slice(start, start + step) for start in range(0, len(X), step)]
    found = [_evaluate(model, X[part], None if lengths is None else lengths[part]) for part in rows]
    return np.concatenate(found) if found else np.zeros((*X.shape[:2], model.output_width), model.dtype)


def _evaluate(model: Transformer, X: Array, lengths: Array | None) -> Array:
    h = _embed(model, X)
    for layer in model.layers:
        visible = visible_to(layer.attention, h, lengths)
        for _ in range(layer.repeat):
            h = _run_stack(layer.feedforward, h) if layer.feedforward else h
            h = h + _run_attention(layer.attention, h, visible)
    return _run_stack(model.last_readout, h) if model.last_readout else h


def _embed(model: Transformer, X: Array) -> Array:
    e = model.embedding
    h = (X if e is None or e.table is None else e.table[X]).astype(model.dtype, copy=False)
    h = h if e is None or e.lift is None else multiply(h, e.lift)
    h = h if e is None or e.bias is None else h + e.bias
    return h if e is None or e.positions is None else h + e.positions[: X.shape[1]]


def _run_stack(layers: tuple[Layer, ...], h: Array) -> Array:
    for i, layer in enumerate(layers):
        h = (_by_group(layer, h) if isinstance(layer, Grouped) else multiply(h, layer.weight)) + layer.bias
        h = np.maximum(h, 0) if i + 1 < len(layers) else h
    return h


def _by_group(layer: Grouped, h: Array) -> Array:
    """As `layers.apply_layer`: small blocks are multiplied and added one by one."""
    groups, inputs, _ = layer.weight.shape
    split = h.reshape(*h.shape[:-1], groups, inputs)
    if inputs > LARGE_BLOCK:
        y = multiply(split[..., None, :], layer.weight)[..., 0, :]
    else:
        y = split[..., 0, None] * layer.weight[:, 0]
        for i in range(1, inputs):
            y = y + split[..., i, None] * layer.weight[:, i]
    return np.asarray(y.reshape(*h.shape[:-1], layer.width))


def _run_attention(a: Attention, h: Array, visible: Array | None) -> Array:
    update, n = np.zeros_like(h), h.shape[1]
    seen = np.broadcast_to(True if visible is None else visible, (len(h), n, n))
    for i in range(a.heads):
        q, k, v = (multiply(h, W[i]) for W in (a.W_Q, a.W_K, a.W_V))
        q = q if a.b_Q is None else q + a.b_Q[i]
        k = k if a.b_K is None else k + a.b_K[i]
        if a.kind == "mesa":
            assert a.ridge is not None
            found = _solve_values(q, k, v, seen, a.ridge[i])
        else:
            found = _sum_values(a, multiply(q, k.swapaxes(-1, -2)), v, seen)
        update = update + multiply(found, a.W_O[i])
    return update


def _sum_values(a: Attention, logits: Array, v: Array, seen: Array) -> Array:
    """Averages by softmax or hardmax, or sums and means, of the values of keys that are seen."""
    count = np.maximum(seen.sum(-1, keepdims=True), 1).astype(v.dtype)
    if a.kind in ("linear", "relu"):
        weights = np.maximum(logits, 0) if a.kind == "relu" else logits
        found = multiply(np.where(seen, weights, 0), v)
        return np.asarray(found / count if a.mean else found)
    logits = np.where(seen, logits, -np.inf)
    top = logits.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)  # a query that sees no key
    weights = exp(logits - top) if a.kind == "softmax" else (logits == top).astype(v.dtype)
    weights, mass = np.where(seen, weights, 0), np.zeros_like(top)
    for j in range(weights.shape[-1]):
        mass = mass + weights[..., j, None]
    return np.asarray(multiply(weights, v) / np.where(mass > 0, mass, 1))


def _solve_values(q: Array, k: Array, v: Array, seen: Array, ridge: Array) -> Array:
    found = np.empty((*q.shape[:2], v.shape[-1]), v.dtype)
    shrunk = ridge * np.eye(k.shape[-1], dtype=k.dtype)
    for query in range(q.shape[1]):
        keys = np.where(seen[:, query, :, None], k, 0)
        gram, cross = (np.zeros((len(k), k.shape[-1], w.shape[-1]), k.dtype) for w in (k, v))
        for j in range(k.shape[1]):
            gram = add_product(gram, keys[:, j, :, None], keys[:, j, None, :])
            cross = add_product(cross, keys[:, j, :, None], v[:, j, None, :])
        solved = solve(gram + shrunk, cross)
        found[:, query] = multiply(q[:, query, None], solved)[:, 0]
    return found
