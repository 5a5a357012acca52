"""Statement  A layer of linear attention with any number of heads is linear in cubic features of its tokens, so
that the best one is found by least squares, and written with at most d^2 heads (Yau et al. 2024).

Gives      f(Z)_a = sum_{j <= k, l} p_{jk,l,a} G_jk z_l with G = sum_i z_i z_i^T over all tokens and z the last:
coefficients p of a layer, exactly or in floats, and a layer of given coefficients, by singular values.
Rests on   nothing else.
Why        Scores are bilinear in the last token and the keys, values linear in the keys; a matrix over (j, a) and
(k, l) is a sum of products, one for each head.
Differs    The printed features count j = k twice, which is harmless for equality and wrong for predictions; a least
eigenvalue of 0 does not mean that a fit is wrong, only that others fit as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.learners.built import unit
from onelayer.network import Attention, Linear, Transformer
from onelayer.problems.scripts import Array
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["cubic"]
#: Singular values below so much of the largest are left out.
RANK = 1e-13
#: Tries and turns of the search for fewest heads, and the residual that is as good as none.
TRIES, TURNS, SOLVED = 12, 200, 1e-10


def features(Z: Array) -> Array:
    """G_jk z_l for j <= k, [N, pairs * d]."""
    G, (j, k) = Z.swapaxes(1, 2) @ Z, np.triu_indices(Z.shape[2])
    return (G[:, j, k][:, :, None] * Z[:, -1][:, None, :]).reshape(len(Z), -1)


def heads_of(p: Array) -> list[tuple[Array, Array]]:
    """(V [d, q], Q [d, d]) of each head of a layer with coefficients p [pairs, d, q]."""
    d, q = p.shape[1:]
    W, (j, k) = np.zeros((d, d, d, q)), np.triu_indices(d)
    W[j, k] += p / 2
    W[k, j] += p / 2
    U, s, Vt = np.linalg.svd(W.transpose(0, 3, 1, 2).reshape(d * q, d * d), full_matrices=False)
    kept = max(1, int((s > RANK * s[0]).sum()))
    size = np.sqrt(s[:kept])
    return [((U[:, h] * size[h]).reshape(d, q), (Vt[h] * size[h]).reshape(d, d).T) for h in range(kept)]


def coefficients_of(heads: Sequence[tuple[Array, Array]]) -> Array:
    """p [pairs, d, q] of heads (V, Q), in whatever numbers they are."""
    S = np.sum([np.multiply.outer(V, Q).transpose(0, 3, 2, 1) for V, Q in heads], axis=0)  # [j, k, l, a]
    both = S + S.swapaxes(0, 1)
    j, k = np.triu_indices(S.shape[0])
    listed = both[j, k]
    listed[j == k] = S[j, k][j == k]
    return np.asarray(listed)


def fewest_heads(p: Array, most: int, seed: int = 0) -> list[tuple[Array, Array]] | None:
    """Heads found by alternating least squares, as few as solve it; None if this many do not."""
    rng, (_, d, q) = np.random.default_rng(seed), p.shape
    size = np.linalg.norm(p)
    for H in range(1, most + 1):
        for _ in range(TRIES):
            Q = rng.normal(size=(H, d, d))
            for turn in range(TURNS):
                V, _ = _solved(p, lambda E, h, Q=Q: (E, Q[h]), (H, d, q))
                Q, rest = _solved(p, lambda E, h, V=V: (V[h], E), (H, d, d))
                if rest <= SOLVED * size:
                    return list(zip(V, Q, strict=True))
                if turn > 30 and rest > 0.3 * size:
                    break
    return None


def _solved(p: Array, head: Any, shape: tuple[int, int, int]) -> tuple[Array, float]:
    """One half of every head by least squares, the other being given; and what is left."""
    units = np.eye(shape[1] * shape[2]).reshape(-1, *shape[1:])
    base = np.stack([coefficients_of([head(E, h)]).ravel() for h in range(shape[0]) for E in units], axis=1)
    found = np.linalg.lstsq(base, p.ravel(), rcond=None)[0]
    return found.reshape(shape), float(np.linalg.norm(base @ found - p.ravel()))


def network(heads: Sequence[tuple[Array, Array]]) -> Transformer:
    """Tokens [z, 0]; each head has queries z Q, keys z, values z V written to the last channels, which are read."""
    d, q = heads[0][0].shape
    width, out = d + q, list(range(d, d + q))

    def padded(W: Array) -> Array:
        return np.pad(W, ((0, q), (0, 0)))

    V, Q = (np.stack([padded(head[at]) for head in heads]) for at in (0, 1))
    keys, written = (
        np.repeat(part[None], len(heads), axis=0) for part in (unit(width, *range(d)), unit(width, *out).T)
    )
    readout = (Linear(unit(width, *out), np.zeros(q)),)
    names = tuple([f"z{i}" for i in range(d)] + [f"out{i}" for i in range(q)])
    return Transformer(Attention(Q, keys, V, written, kind="linear"), None, (), readout, names)


def exact_coefficients(layer: Transformer) -> tuple[Array, Array, Array]:
    """Of one layer of linear attention over all tokens, in fractions: p, and the linear map and bias beside it."""
    a = layer.attention
    plain = a.kind == "linear" and not (a.causal or a.mean) and a.context is None and a.window is None
    alone = not (layer.further or layer.feedforward or layer.embedding) and layer.repeat == 1
    flat = len(layer.readout) == 1 and isinstance(layer.readout[0], Linear) and a.b_Q is None and a.b_K is None
    if not (plain and alone and flat):
        needs = "one layer of linear attention over all tokens, with one linear readout"
        raise HypothesisError("cubic", needs, f"{a.kind} attention in another layer", "Compare such layers.")
    R = _exact(layer.readout[0].weight)
    heads = [
        (_exact(a.W_V[i]) @ (_exact(a.W_O[i]) @ R), _exact(a.W_Q[i]) @ _exact(a.W_K[i]).T) for i in range(a.heads)
    ]
    return coefficients_of(heads), R, _exact(layer.readout[0].bias)


def _exact(W: Array) -> Array:
    found = np.empty(W.shape, object)
    for index, value in np.ndenumerate(W):
        found[index] = Fraction(float(value))
    return found
