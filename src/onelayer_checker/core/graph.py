"""The graph `one-layer/1` over balls: from tokens to coordinates, and from coordinates to answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onelayer_checker.core.balls import (
    Arithmetic,
    Array,
    Ball,
    around,
    dot,
    exact,
    joined,
    linear,
    relu,
    softmax,
)
from onelayer_checker.core.exactness import add_numbers
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.layers import Layer, Stack

#: Numbers of scratch in one block of sequences: (sequence, query, key).
BLOCK = 1 << 17


@dataclass(frozen=True)
class Network:
    tensors: dict[str, Array]  # float64 copies of the weights
    dtype: np.dtype
    feedforward: Stack
    bottleneck: Layer  # readout.0, whose output after ReLU are the coordinates
    readout: Stack  # the rest of it
    causal: bool = False

    def coordinates(
        self, tokens: Array, lengths: Array, radius: float, A: Arithmetic, last: bool
    ) -> Iterator[tuple[slice, Ball]]:
        """Balls of t for all tokens [N, n, c], or the last ones [N, 1, c]; tokens are known up to ``radius``."""
        n = tokens.shape[1]
        heads, width, _ = self.tensors["attention.W_Q"].shape
        step = max(1, BLOCK // (n * (heads * (1 if last else n) + max(width, self.feedforward.widest))))
        known, ids = self.known(tokens, radius, A)
        for start in range(0, len(tokens), step):
            rows = slice(start, min(start + step, len(tokens)))
            if known is None:
                h = self.embed(tokens[rows], radius, A)
            else:
                h = known[ids[rows], np.arange(n)].reshape(-1, known.m.shape[-1])
            t = relu(self.bottleneck.apply(self.attend(h, n, lengths[rows], A, last), A))
            yield rows, t.reshape(-1, 1 if last else n, t.m.shape[-1])

    def known(self, tokens: Array, radius: float, A: Arithmetic) -> tuple[Ball | None, Array]:
        """The residual stream before attention for every token at every place, where that is less work, and which
        of them each token is."""
        table, n = self.tensors.get("embedding.table"), tokens.shape[1]
        if table is not None:
            different, ids = np.arange(len(table)), tokens
        else:  # the same token many times, as in a grid: worth looking for among numbers
            some = tokens[: len(tokens) if tokens.shape[2] == 1 else 0].ravel()
            values, at = np.unique(some, return_inverse=True)
            different, ids = values[:, None], at.reshape(-1, n)
        if not 0 < len(different) <= len(tokens):
            return None, ids
        step = max(1, BLOCK // (n * self.feedforward.widest))
        blocks = (np.repeat(different[a : a + step, None], n, axis=1) for a in range(0, len(different), step))
        return joined([self.embed(block, radius, A) for block in blocks], axis=0).reshape(
            len(different), n, -1
        ), ids

    def embed(self, tokens: Array, radius: float, A: Arithmetic) -> Ball:
        """The residual stream before attention, [tokens, width]."""
        T, n = self.tensors, tokens.shape[1]
        if "embedding.table" in T:
            h = exact(T["embedding.table"][tokens].reshape(tokens.size, -1))
        else:
            x = tokens.reshape(-1, tokens.shape[2]).astype(np.float64)
            h = around(x, radius, A)
            if "embedding.lift" in T:
                h = linear(h, T["embedding.lift"], T.get("embedding.bias", 0.0), A)  # perhaps inside the sum
        if "embedding.bias" in T and "embedding.table" in T:
            h = add_numbers(h, T["embedding.bias"], A)
        if "embedding.positions" in T:
            h = add_numbers(h, np.tile(T["embedding.positions"][:n], (len(tokens), 1)), A)
        return self.feedforward.apply(h, A) if self.feedforward.layers else h

    def attend(self, h: Ball, n: int, lengths: Array, A: Arithmetic, last: bool) -> Ball:
        """h + (softmax of the logits, averaging the values) W_O, [tokens, width], or only at the last tokens.

        The stream and what all components of all heads add to it are the terms of one sum.
        """
        logits, visible, v, h = self.scores(h, n, lengths, A, last)
        averages = dot(softmax(logits, visible, A), v, A, extra=4)
        aside = Ball(*(a.swapaxes(1, 2).reshape(len(h.m), -1) for a in (averages.m, averages.r)))
        return linear(aside, self.tensors["attention.W_O"].reshape(-1, h.m.shape[1]), h, A)

    def scores(
        self, h: Ball, n: int, lengths: Array, A: Arithmetic, last: bool
    ) -> tuple[Ball, Array | bool, Ball, Ball]:
        """Logits [N, head, query, key] and which are visible, values [N, head, token, s], and h at the queries."""
        T, (H, w, s) = self.tensors, self.tensors["attention.W_Q"].shape
        columns = np.concatenate([T[f"attention.W_{name}"].swapaxes(0, 1).reshape(w, -1) for name in "QKV"], axis=1)
        biases = np.concatenate([T.get(f"attention.b_{name}", np.zeros((H, s))).ravel() for name in "QKV"])
        read = linear(h, columns, biases, A)
        q, k, v = (read[:, a : a + H * s].reshape(-1, n, H, s) for a in (0, H * s, 2 * H * s))
        visible = (lengths == n).all() or (np.arange(n) < lengths[:, None])[:, None, None, :]
        if last:  # it sees the whole sequence, causal or not
            at = (np.arange(len(lengths)), lengths - 1)
            q, h = q[at].reshape(-1, 1, H, s), h.reshape(-1, n, h.m.shape[-1])[at]
        elif self.causal:
            visible = visible & np.tri(n, dtype=bool)
        q, v = (Ball(x.m.swapaxes(1, 2), x.r.swapaxes(1, 2)) for x in (q, v))  # [N, head, token, s]
        logits = dot(q, Ball(k.m.transpose(0, 2, 3, 1), k.r.transpose(0, 2, 3, 1)), A)
        return logits, visible, v, h


def build(tensors: dict[str, Array], causal: bool = False) -> Network:
    """Check names, dtypes and shapes of the weights against the template."""
    known = {"embedding.lift", "embedding.table", "embedding.bias", "embedding.positions"}
    known |= {f"attention.{name}" for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K")}
    wide = {name: a.astype(np.float64, copy=False) for name, a in tensors.items()}
    layers: dict[str, list[Layer]] = {"feedforward": [], "readout": []}
    for stack, found in layers.items():
        while f"{stack}.{len(found)}.weight" in tensors:
            names = [f"{stack}.{len(found)}.{part}" for part in ("weight", "bias")]
            known |= set(names)
            if names[1] not in tensors:
                raise Malformed("graph", f"{names[1]} is missing")
            found.append(Layer(*(wide[name] for name in names)))
    dtypes = {a.dtype for a in tensors.values()}
    if len(dtypes) != 1 or not dtypes <= {np.dtype("<f4"), np.dtype("<f8")}:
        raise Malformed("graph", f"weights must be all F32 or all F64, found {sorted(map(str, dtypes))}")
    if set(tensors) - known:
        raise Malformed("graph", f"unknown tensors {sorted(set(tensors) - known)[:5]}")
    _check_shapes(wide, layers)
    first, *rest = layers["readout"]
    return Network(wide, dtypes.pop(), Stack(tuple(layers["feedforward"])), first, Stack(tuple(rest)), causal)


def _check_shapes(T: dict[str, Array], layers: dict[str, list[Layer]]) -> None:
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        if f"attention.{name}" not in T:
            raise Malformed("graph", f"attention.{name} is missing")
    shape = T["attention.W_Q"].shape
    if len(shape) != 3 or 0 in shape:
        raise Malformed("graph", f"attention.W_Q has shape {shape}, expected [heads, width, s]")
    H, w, s = shape
    expected = {"W_K": (H, w, s), "W_V": (H, w, s), "W_O": (H, s, w), "b_Q": (H, s), "b_K": (H, s)}
    for name, wanted in expected.items():
        found = T[f"attention.{name}"].shape if f"attention.{name}" in T else wanted
        if found != wanted:
            raise Malformed("graph", f"attention.{name} has shape {found}, expected {wanted}")
    if "embedding.lift" in T and "embedding.table" in T:
        raise Malformed("graph", "there is both a lift and a table")
    source = T.get("embedding.lift", T.get("embedding.table"))
    if source is not None and source.ndim != 2:
        raise Malformed("graph", "the embedding must have two axes")
    lifted = None if source is None else source.shape[1]
    for name, axes in (("bias", 1), ("positions", 2)):
        array = T.get(f"embedding.{name}")
        if array is not None and (lifted is None or array.ndim != axes or array.shape[-1] != lifted):
            raise Malformed("graph", f"embedding.{name} does not fit the embedding")
    before = _check_stack("feedforward", layers["feedforward"], lifted)
    if before not in (None, w):
        raise Malformed("graph", f"attention takes width {w}, the layers before it give {before}")
    if len(layers["readout"]) < 2 or layers["readout"][0].weight.ndim != 2:
        raise Malformed("graph", "the readout needs a full first layer and at least one more")
    _check_stack("readout", layers["readout"], w)


def _check_stack(name: str, layers: list[Layer], width: int | None) -> int | None:
    for i, layer in enumerate(layers):
        if layer.weight.ndim not in (2, 3) or 0 in layer.weight.shape or width not in (None, layer.inputs):
            raise Malformed("graph", f"{name}.{i}.weight has shape {layer.weight.shape} after width {width}")
        width = layer.weight.shape[-1] * (layer.weight.shape[0] if layer.weight.ndim == 3 else 1)
        if layer.bias.shape != (width,):
            raise Malformed("graph", f"{name}.{i}.bias has shape {layer.bias.shape}, expected ({width},)")
    return width
