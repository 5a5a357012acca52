"""How far each answer of a mesa layer is from the exact ridge estimate: computed beside it, for the very examples.

With M = sum k k^T + ridge I, c = sum k v and any z, |q M^-1 c - z c| <= |q - M z| |c| / mu if mu > 0 is at most
the least eigenvalue of M. z is computed in float64, the sums with all their roundings; mu is the ridge, which is
at most every eigenvalue, or what a Cholesky factorisation that did not break down vouches for. What is bounded is
the distance of the network's own answer, in whatever dtype it was computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import PrecisionError
from onelayer.network import Transformer

Array = NDArray[Any]
U = 2.0**-53


def can_bound(transformer: Transformer) -> bool:
    """Whether it is one mesa head whose answer is read off as it is written."""
    a, readout = transformer.attention, transformer.readout
    alone = not (transformer.further or transformer.feedforward) and transformer.repeat == 1
    return a.kind == "mesa" and a.heads == 1 and alone and len(readout) == 1


@contextmanager
def refusing_singular(transformer: Transformer, tokens: Array, name: str) -> Iterator[None]:
    """Say which ridge a prompt needs whose rounded matrix is singular."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        needed, dtype = needed_ridge(transformer, tokens), transformer.dtype
        needs = f"prompts whose matrix of keys and ridge can be solved in {dtype}"
        found = f"ridge={transformer.attention.ridge[0]:.2g} is lost in rounding: a prompt may need {needed:.2g}"  # type: ignore[index]
        remedy = f"Build it with ridge={needed:.2g}, or with low= and high= of the values, or rescale them."
        raise PrecisionError(name, needs, found, remedy) from error


def needed_ridge(transformer: Transformer, tokens: Array) -> float:
    """What rounding takes at most off any eigenvalue of the matrix of a prompt [B, n, width], so that with such a
    ridge it can be solved: (n + s (s + 1) + 4) u sum |k|^2, to first order in u. It is advice, not a claim.

    Sums of n products, in any order, are off by (n + 1) u of the sums of sizes, elimination of s unknowns by
    s (s + 1) u of the trace (as Cholesky's: Higham, Accuracy and Stability, Theorem 10.7), the rest is the ridge's.
    """
    keys = tokens.astype(np.float64) @ transformer.attention.W_K[0].astype(np.float64)
    n, s = keys.shape[1:]
    roundings: int = n + s * (s + 1) + 4
    return roundings * float(np.finfo(transformer.dtype).eps) / 2 * float((keys**2).sum(axis=(1, 2)).max())


def bound_answers(transformer: Transformer, tokens: Array, outputs: Array, first: int) -> Array:
    """[n, q] for one prompt [n, width] and its outputs [n, q]: how far they may be off, from the first token on."""
    a = transformer.attention
    h, W = tokens.astype(np.float64), {name: getattr(a, f"W_{name}")[0].astype(np.float64) for name in "QKVO"}
    queries, keys, values = (h @ W[name] for name in "QKV")
    seen = np.ones(len(h), bool) if a.context is None else h[:, a.context] != 0
    assert a.ridge is not None
    ridge, read = float(a.ridge[0]), W["O"] @ transformer.readout[0].weight.astype(np.float64)
    rest = h @ transformer.readout[0].weight.astype(np.float64) + transformer.readout[0].bias
    found = np.empty((len(h), outputs.shape[1]))
    for t in range(first, len(h)):
        rows = seen & (np.arange(len(h)) <= t) if a.causal else seen
        values_read, off = _solve_with_bound(keys[rows], values[rows], queries[t], ridge)
        apart = np.abs(outputs[t].astype(np.float64) - (values_read @ read + rest[t]))
        slack = 64 * U * (np.abs(outputs[t]) + np.abs(values_read) @ np.abs(read) + np.abs(rest[t]))
        found[t] = (apart + off @ np.abs(read) + slack) * (1 + 1e-9)
    return found[first:]


def _solve_with_bound(K: Array, V: Array, q: Array, ridge: float) -> tuple[Array, Array]:
    """z c for a computed z, and how far that is from q M^-1 c, for each component of the values."""
    s, g = len(q), (len(K) + 2 * len(q) + 8) * U * 1.01
    M, c = K.T @ K + ridge * np.eye(s), K.T @ V
    size_M, size_c = np.abs(K).T @ np.abs(K) + ridge * np.eye(s), np.abs(K).T @ np.abs(V)
    try:
        z = np.linalg.solve(M, q)
        z = z + np.linalg.solve(M, q - M @ z)
    except np.linalg.LinAlgError:  # to a machine, not in truth: the ridge is above 0
        z = q / max(np.trace(M), ridge)
    left = np.linalg.norm(np.abs(q - M @ z) + 2 * g * (size_M @ np.abs(z) + np.abs(q))) * (1 + 1e-9)
    whole = np.linalg.norm(np.abs(c) + g * size_c, axis=0) * (1 + 1e-9)
    return z @ c, left * whole / least(M, ridge) + 2 * g * (np.abs(z) @ size_c)


def least(M: Array, ridge: float) -> float:
    """A lower bound on the least eigenvalue of the matrix that was rounded to M."""
    low, lost = float(np.linalg.eigvalsh(M)[0]) / 2, 8.0 * (len(M) + 8) * U * float(np.trace(M))
    if low - lost <= ridge:
        return ridge
    try:
        np.linalg.cholesky(M - low * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return ridge
    return low - lost
