"""Other coordinates for the residual stream: the same function, whose channels are no longer axes.

A stream h becomes h G, and every matrix that reads it takes G^-1 first. Signed permutations with powers of two are
exact in any dtype; a random rotation, or any other invertible matrix, is rounded, so that what it does is proved
again (float64) or only measured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from onelayer.errors import OptionError
from onelayer.network.weights import Array, Attention, Embedding, Linear, Transformer

Gauge = Literal["none", "signed", "orthogonal", "invertible"]
GAUGES: tuple[Gauge, ...] = get_args(Gauge)
#: Those after which every product is exact.
EXACT = ("none", "signed")


def draw(kind: str, width: int, rng: np.random.Generator) -> Array:
    """A matrix G [width, width]; row c is where channel c points."""
    if kind not in GAUGES:
        raise OptionError("data", f"a gauge among {', '.join(GAUGES)}", f"gauge={kind!r}", "Choose one of them.")
    if kind == "none":
        return np.eye(width)
    if kind == "signed":
        scales = rng.choice([-1.0, 1.0], width) * 2.0 ** rng.integers(-2, 3, width)
        return np.asarray(np.eye(width)[rng.permutation(width)] * scales[:, None])
    rotation = np.linalg.qr(rng.standard_normal((width, width)))[0]
    if kind == "orthogonal":
        return np.asarray(rotation)
    other = np.linalg.qr(rng.standard_normal((width, width)))[0]
    return np.asarray(rotation * rng.uniform(0.5, 2.0, width) @ other)


def mix(model: Transformer, G: Array) -> Transformer:
    """The same network with the stream h G for h."""
    a, e, back = model.attention, model.embedding, np.linalg.inv(G)
    if set(np.unique(np.count_nonzero(G, axis=1)).tolist()) == {1}:
        back = np.where(G.T != 0, 1 / np.where(G.T == 0, 1, G.T), 0)  # of powers of two, exactly

    def write(rows: Array | None) -> Array | None:
        return None if rows is None else (rows.astype(np.float64) @ G).astype(model.dtype)

    def read(columns: Array) -> Array:
        return np.asarray((back @ columns.astype(np.float64)).astype(model.dtype))

    W_O = _known(write(a.W_O))
    attention = replace(a, W_Q=read(a.W_Q), W_K=read(a.W_K), W_V=read(a.W_V), W_O=W_O)
    first = model.readout[0]
    if not isinstance(first, Linear):
        raise OptionError(
            "data", "a readout that begins with a full matrix", "its blocks are apart", "Mix another."
        )
    readout = (Linear(read(first.weight), first.bias), *model.readout[1:])
    feedforward = model.feedforward
    if feedforward:
        last = feedforward[-1]
        assert isinstance(last, Linear)
        feedforward = (*feedforward[:-1], Linear(_known(write(last.weight)), _known(write(last.bias))))
    else:
        e = Embedding(**{name: write(getattr(e, name)) for name in ("lift", "table", "bias", "positions")})
    return replace(model, attention=attention, embedding=e, feedforward=feedforward, readout=readout, channels=())


def split_heads(model: Transformer, heads: int) -> Transformer:
    """One head split into several with the same queries and keys; each carries some of its values."""
    a = model.attention
    if heads == 1:
        return model
    values = a.W_V.shape[2]
    if a.heads != 1 or values < heads:
        needs, found = f"one head with {heads} values or more, to be split", f"{a.heads} heads of {values} values"
        raise OptionError("data", needs, found, "Ask for fewer heads.")
    W_V = np.zeros((heads, *a.W_V.shape[1:]), model.dtype)  # with spare values, which are 0
    W_O = np.zeros((heads, *a.W_O.shape[1:]), model.dtype)
    for head in range(heads):
        own = np.arange(head, values, heads)
        W_V[head, :, : len(own)], W_O[head, : len(own)] = a.W_V[0][:, own], a.W_O[0][own]

    def repeated(array: Array | None) -> Array | None:
        return None if array is None else np.repeat(array, heads, axis=0)

    parts = {name: repeated(getattr(a, name)) for name in ("W_Q", "W_K", "b_Q", "b_K")}
    attention = Attention(**parts, W_V=W_V, W_O=W_O, kind=a.kind, causal=a.causal)  # type: ignore[arg-type]
    return replace(model, attention=attention)


def _known(array: Array | None) -> Array:
    assert array is not None
    return array
