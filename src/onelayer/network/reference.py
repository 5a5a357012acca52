"""The forward pass in one order of operations: the same bits everywhere, for any number of sequences.

Everywhere is on every machine, and in a page (`explore`). `forward` gives the same up to the order of its sums,
which a proof in floats holds for. Here numbers are [channels, tokens, sequences]: what is done to one of them is
done to many sequences at a time, and small networks are as fast as by matrix products. Keys come first in tables of
queries and keys, [key, query, sequence].
"""

from __future__ import annotations

import numpy as np

from onelayer.network.arithmetic import FEW_NUMBERS, add_up, exp, multiply, multiply_groups, solve
from onelayer.network.blocks import Rows, over_threads
from onelayer.network.heads import visible_to
from onelayer.network.weights import Array, Attention, Grouped, Layer, Transformer

#: Numbers of the widest layer, or of a table of queries and keys, that are held at a time: they stay in cache.
HELD = 1 << 17
#: Weights of a network that is evaluated in order at little cost.
SMALL = 1 << 13


def evaluate_in_order(model: Transformer, X: Array, lengths: Array | None = None) -> Array:
    """Outputs [N, n, q] for tokens [N, n, d] or token ids [N, n], as `forward` gives them."""
    out = np.zeros((*X.shape[:2], model.output_width), model.dtype)
    step = max(1, HELD // max(1, X.shape[1] * _widest(model, X.shape[1])))

    def run(rows: Rows) -> None:
        found = _evaluate(model, X[rows], None if lengths is None else lengths[rows])
        out[rows] = found.transpose(2, 1, 0)

    over_threads(run, [slice(start, start + step) for start in range(0, len(X), step)])
    return out


def _widest(model: Transformer, n: int) -> int:
    """The most numbers of a token that are held at a time."""
    layers = [layer for part in model.layers for layer in (*part.feedforward, *part.readout)]
    heads = [part.attention for part in model.layers]
    tables = any(a.W_Q.any() and not (a.kind == "linear" and not a.causal and a.window is None) for a in heads)
    return max(n if tables else 1, *(int(a.W_Q.shape[1]) for a in heads), *(layer.width for layer in layers), 1)


def is_small(model: Transformer) -> bool:
    """Whether a model in float32 has so few weights that evaluating it in order costs little."""
    return model.dtype == np.float32 and model.n_parameters <= SMALL


def _evaluate(model: Transformer, X: Array, lengths: Array | None) -> Array:
    h = _embed(model, X)
    for layer in model.layers:
        visible = visible_to(layer.attention, h.transpose(2, 1, 0), lengths)
        seen = None if visible is None else np.ascontiguousarray(visible.transpose(2, 1, 0))
        for _ in range(layer.repeat):
            h = _run_stack(layer.feedforward, h) if layer.feedforward else h
            h = _attend(layer.attention, h, seen)
    return _run_stack(model.last_readout, h) if model.last_readout else h


def _embed(model: Transformer, X: Array) -> Array:
    e = model.embedding
    rows = (X if e is None or e.table is None else e.table[X]).astype(model.dtype, copy=False)
    h = np.ascontiguousarray(rows.transpose(2, 1, 0))
    h = h if e is None or e.lift is None else multiply(h, e.lift)
    h = h if e is None or e.bias is None else h + e.bias[:, None, None]
    return h if e is None or e.positions is None else h + e.positions[: X.shape[1]].T[..., None]


def _run_stack(layers: tuple[Layer, ...], h: Array) -> Array:
    for i, layer in enumerate(layers):
        times = multiply_groups if isinstance(layer, Grouped) else multiply
        h = times(h, layer.weight) + layer.bias[:, None, None]
        h = np.maximum(h, 0) if i + 1 < len(layers) else h
    return h


def _attend(a: Attention, h: Array, seen: Array | None) -> Array:
    """The stream with what its heads add."""
    written = np.flatnonzero((a.W_O != 0).any(axis=(0, 1)))
    update = np.zeros((len(written), *h.shape[1:]), h.dtype)
    for i in range(a.heads):
        q, k, v = (multiply(h if W[i].any() else h[:, :1, :1], W[i]) for W in (a.W_Q, a.W_K, a.W_V))
        q = q if a.b_Q is None else q + a.b_Q[i][:, None, None]
        k = k if a.b_K is None else k + a.b_K[i][:, None, None]
        k, v = (np.broadcast_to(part, (len(part), *h.shape[1:])) for part in (k, v))
        if a.kind == "mesa":
            assert a.ridge is not None
            found = _solve_values(q, k, v, seen, a.ridge[i])
        elif a.kind == "linear" and (seen is None or seen.shape[1] == 1):
            found = _read_sums(q, _sums(k, v, seen)) / (_count(seen, h) if a.mean else 1)
        elif a.kind in ("linear", "relu"):
            found = _weigh(_scores(q, k, seen, a.kind), v) / (_count(seen, h) if a.mean else 1)
        else:
            found = _average(_scores(q, k, seen, a.kind), v)
        update += multiply(np.asarray(found, h.dtype), a.W_O[i][:, written])
    out = h.copy()
    out[written] += update
    return out


def _count(seen: Array | None, h: Array) -> Array:
    """How many keys a query sees, and at least 1."""
    count = np.array(h.shape[1]) if seen is None else seen.sum(axis=0)
    return np.asarray(np.maximum(count, 1), h.dtype)


def _scores(q: Array, k: Array, seen: Array | None, kind: str) -> Array:
    """[key, query, N]; 0 where a key is not seen. Of softmax and hardmax, before they are divided by their sum."""
    logits = np.zeros((k.shape[1], *np.broadcast_shapes(q.shape[1:], k[0, 0].shape)), k.dtype)
    for i in range(len(q)):
        logits += q[i] * k[i][:, None]
    if kind in ("softmax", "hardmax"):
        logits = logits + logits.dtype.type(0) if seen is None else np.where(seen, logits, -np.inf)
        top = logits.max(axis=0)
        top = np.where(np.isfinite(top), top, 0)  # a query that sees no key
        logits = exp(logits - top) if kind == "softmax" else (logits == top).astype(k.dtype)
    elif kind == "relu":
        logits = np.maximum(logits, 0)
    return logits if seen is None else np.where(seen, logits, 0)


def _weigh(weights: Array, v: Array) -> Array:
    """[values, query, N] sums of the values of keys, in their order."""
    if weights[0].size * len(v) < FEW_NUMBERS:
        return np.asarray(add_up(weights[:, None] * v.swapaxes(0, 1)[:, :, None]) + v.dtype.type(0))
    found = np.zeros((len(v), *weights.shape[1:]), v.dtype)
    for weight, value in zip(weights, v.swapaxes(0, 1), strict=True):
        found += weight * value[:, None]
    return np.asarray(found + v.dtype.type(0))


def _average(weights: Array, v: Array) -> Array:
    mass = add_up(weights)
    return np.asarray(_weigh(weights, v) / np.where(mass > 0, mass, 1))


def _sums(k: Array, v: Array, seen: Array | None) -> Array:
    """[size, values, N] sums over keys of what a key times a value is, in their order."""
    k = k if seen is None else np.where(seen[:, 0], k, 0)
    keys, values = k.swapaxes(0, 1)[:, :, None], v.swapaxes(0, 1)[:, None]
    if len(k) * v[:, 0].size < FEW_NUMBERS:
        return add_up(keys * values)
    found = np.zeros((len(k), *v[:, 0].shape), v.dtype)
    for key, value in zip(keys, values, strict=True):
        found += key * value
    return found


def _read_sums(q: Array, sums: Array) -> Array:
    """[values, query, N] what a query reads off such sums."""
    found = np.zeros((sums.shape[1], *np.broadcast_shapes(q.shape[1:], (1, sums.shape[2]))), q.dtype)
    for i in range(len(q)):
        found += q[i] * sums[i][:, None]
    return np.asarray(found + q.dtype.type(0))


def _solve_values(q: Array, k: Array, v: Array, seen: Array | None, ridge: Array) -> Array:
    """[values, query, N] what a query reads off the ridge estimate of the keys that it sees."""
    shrunk = (ridge * np.eye(len(k), dtype=k.dtype))[..., None]
    alike = seen is None or seen.shape[1] == 1
    n, found = k.shape[1], np.zeros((len(v), *k.shape[1:]), v.dtype)
    for query in range(1 if alike else n):
        keys = k if seen is None else np.where(seen[:, query], k, 0)
        solved = solve(_sums(keys, k, None) + shrunk, _sums(keys, v, None))
        at = slice(None) if alike else slice(query, query + 1)
        found[:, at] = _read_sums(q if q.shape[1] == 1 else q[:, at], solved)
    return found
