"""What a head gives: the kinds of attention, and which keys a query sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onelayer.network.layers import by_token
from onelayer.network.weights import Array, Attention, Kind

See = Callable[[str, Array], None]
#: Tokens of a causal sequence whose sums over keys are held at a time.
CAUSAL_BLOCK = 64


def see_nothing(name: str, value: Array) -> None:
    """Looks at nothing."""


def queries_keys_values(a: Attention, i: int, h: Array, asking: Array | None = None) -> tuple[Array, Array, Array]:
    """Of all tokens; queries of those that ask only, if they are given."""
    asked = h if asking is None else asking
    read = by_token if a.kind in ("softmax", "hardmax") else chosen
    q, k, v = (read(x, W[i]) for x, W in ((asked, a.W_Q), (h, a.W_K), (h, a.W_V)))
    return q if a.b_Q is None else q + a.b_Q[i], k if a.b_K is None else k + a.b_K[i], v


def chosen(h: Array, weight: Array) -> Array:
    """h @ weight; where it copies channels that lie side by side, they are looked at where they are."""
    first, size = int(weight[:, 0].argmax()), weight.shape[1]
    plain = np.count_nonzero(weight) == size and (np.diagonal(weight, -first)[:size] == 1).all()
    return h[..., first : first + size] if plain and first + size <= len(weight) else by_token(h, weight)


def run_head(
    a: Attention,
    i: int,
    h: Array,
    visible: Array | None,
    see: See = see_nothing,
    name: str = "head",
    asking: Array | None = None,
) -> Array:
    """What head i reads off the keys, [N, n, values], before W_O; ``visible`` is what `seen_by` gives."""
    q, k, v = queries_keys_values(a, i, h, asking)
    if a.kind in ("softmax", "hardmax"):
        return attend(q, k, v, visible, a.kind, see, name)
    if a.kind == "mesa":
        assert a.ridge is not None
        return solve_values(q, k, v, visible, a.ridge[i], a.causal)
    if a.window == 1:
        return _itself(a, q, k, v, visible)
    if carries_sums(a):
        if see is see_nothing:
            return sum_past(q, k, v, visible, a.mean)
        past = np.tri(k.shape[1], dtype=bool)[None]
        visible = past if visible is None else past & visible
    return sum_values(q, k, v, visible, a.kind, a.mean, see, name)


def attend(
    q: Array, k: Array, v: Array, visible: Array | None, kind: Kind, see: See = see_nothing, name: str = "head"
) -> Array:
    """Averages [N, queries, s] of the values, weighted by softmax or hardmax of q k^T over the visible keys."""
    logits = q * k[..., 0][:, None, :] if q.shape[-1] == 1 else q @ k.swapaxes(-1, -2)  # [N, query, key]
    logits = logits if visible is None else np.where(visible, logits, -np.inf)
    see(f"{name}.logits", logits)
    top = logits.max(-1, keepdims=True)
    blind = False if visible is None else ~visible.any(-1, keepdims=True)  # a query that sees no key
    if np.any(blind):
        top = np.where(blind, 0, top)
    if kind == "softmax":
        weights = np.exp(np.subtract(logits, top, out=logits), out=logits)  # no second array of this size
    else:
        weights = (logits == top).astype(v.dtype)  # ties share the mass equally
    mass = weights.sum(-1, keepdims=True)
    if np.any(blind):
        mass = np.where(blind, 1, mass)
    if see is not see_nothing:
        see(f"{name}.attention", weights / mass)
    averages: Array = (weights @ v) / mass
    see(f"{name}.averages", averages)
    return averages


def sum_values(
    q: Array,
    k: Array,
    v: Array,
    visible: Array | None,
    kind: Kind,
    mean: bool,
    see: See = see_nothing,
    name: str = "h",
) -> Array:
    """sum_j l_kj v_j over the visible keys, of max(l_kj, 0) for relu; divided by their number if ``mean``."""
    n, dtype = k.shape[1], v.dtype
    count = np.full((1, 1, 1), n) if visible is None else visible.sum(-1, keepdims=True)
    count = np.maximum(count, 1).astype(dtype)  # an integer would make float64 of float32
    alike = visible is None or visible.shape[1] == 1  # every query sees the same keys
    if kind == "linear" and alike and see is see_nothing and n > q.shape[-1]:
        seen = v if visible is None else np.where(visible.swapaxes(1, 2), v, 0)
        found: Array = q @ (k.swapaxes(-1, -2) @ seen)
    else:
        logits = q @ k.swapaxes(-1, -2)
        see(f"{name}.logits", logits)
        weights = np.maximum(logits, 0) if kind == "relu" else logits
        found = (weights if visible is None else np.where(visible, weights, 0)) @ v
    found = found / count if mean else found
    see(f"{name}.sums", found)
    return found


def sum_past(q: Array, k: Array, v: Array, keys: Array | None, mean: bool) -> Array:
    """As `sum_values` of causal linear attention, in time linear in the tokens: what earlier blocks of keys add is
    one matrix."""
    n = k.shape[1]
    k = k if keys is None else np.where(keys.swapaxes(1, 2), k, 0)
    found, past = np.empty((*q.shape[:2], v.shape[-1]), v.dtype), np.zeros((), v.dtype)
    for start in range(0, n, CAUSAL_BLOCK):
        rows = slice(start, start + CAUSAL_BLOCK)
        turned = k[:, rows].swapaxes(-1, -2)
        found[:, rows] = np.tril(q[:, rows] @ turned) @ v[:, rows]
        if start:
            found[:, rows] += q[:, rows] @ past
        past = past + turned @ v[:, rows]
    if mean:
        count = np.arange(1, n + 1)[None] if keys is None else np.maximum(np.cumsum(keys[:, 0], axis=1), 1)
        found /= count[..., None].astype(v.dtype)
    return found


def _itself(a: Attention, q: Array, k: Array, v: Array, visible: Array | None) -> Array:
    """As `sum_values`, of tokens that see no other: no matrix of queries and keys is needed."""
    logits = (q * k).sum(-1, keepdims=True)
    weights = np.maximum(logits, 0) if a.kind == "relu" else logits
    if visible is not None:
        weights = np.where(np.diagonal(visible, axis1=1, axis2=2)[..., None], weights, 0)
    return np.asarray(weights * v)


def solve_values(q: Array, k: Array, v: Array, keys: Array | None, ridge: Array, causal: bool) -> Array:
    """q_k (sum_j k_j^T k_j + ridge I)^-1 sum_j k_j^T v_j over the keys, of a causal query up to itself."""
    n, s = k.shape[1:]
    shrunk = ridge * np.eye(s, dtype=k.dtype)
    k = k if keys is None else np.where(keys.swapaxes(1, 2), k, 0)
    if not causal:
        turned = k.swapaxes(-1, -2)
        return np.asarray(q @ np.linalg.solve(turned @ k + shrunk, turned @ v))
    found, gram, cross = np.empty((*q.shape[:2], v.shape[-1]), v.dtype), shrunk[None], np.zeros((), v.dtype)
    for a in range(0, n, CAUSAL_BLOCK):
        rows = slice(a, a + CAUSAL_BLOCK)
        grams = gram[:, None] + np.cumsum(k[:, rows, :, None] * k[:, rows, None, :], axis=1)
        crosses = cross + np.cumsum(k[:, rows, :, None] * v[:, rows, None, :], axis=1)
        z = np.linalg.solve(grams, q[:, rows, :, None])
        found[:, rows] = (z.swapaxes(-1, -2) @ crosses)[..., 0, :]
        gram, cross = grams[:, -1], crosses[:, -1:]
    return found


def carries_sums(a: Attention) -> bool:
    """Whether a token sees all before it, and sums over that are carried along: no matrix of tokens is needed."""
    return a.causal and a.window is None and a.kind in ("linear", "mesa")


def seen_by(a: Attention, h: Array, lengths: Array | None) -> Array | None:
    """As `visible_to`; of heads that carry sums only which tokens are keys, [N, 1, key], or None for all."""
    return visible_to(replace(a, causal=False) if carries_sums(a) else a, h, lengths)


def visible_to(a: Attention, h: Array, lengths: Array | None) -> Array | None:
    """Which keys a query may see, by causality, window, length and flag: as `visible_keys` gives it."""
    n = h.shape[1]
    mask = visible_keys(n, lengths, a.causal)
    if a.window is not None:
        near = np.tri(n, dtype=bool) & ~np.tri(n, k=-a.window, dtype=bool)
        mask = near[None] if mask is None else mask & near
    if a.context is not None:
        keys = (h[..., a.context] != 0)[:, None, :]
        mask = keys if mask is None else mask & keys
    return mask


def visible_keys(n: int, lengths: Array | None, causal: bool) -> Array | None:
    """Which keys a query may see: None for all of them, else a mask that broadcasts to [N, query, key]."""
    mask = np.tril(np.ones((1, n, n), bool)) if causal else None
    if lengths is None:
        return mask
    inside = (np.arange(n) < np.asarray(lengths)[:, None])[:, None, :]
    return inside if mask is None else inside & mask
