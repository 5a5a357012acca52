"""The graph `one-layer/1` over balls: from tokens to coordinates, and from coordinates to answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from onelayer_checker.core.averages import Totals, are_whole, mean_alike
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
from onelayer_checker.core.files import Malformed, shown
from onelayer_checker.core.layers import Layer, Stack

#: Numbers of scratch in one block of sequences: (sequence, query, key).
BLOCK = 1 << 18
#: Blocks that one block of queries and keys may take.
QUERIES = 8


@dataclass(frozen=True, eq=False)
class Network:
    tensors: dict[str, Array]  # float64 copies of the weights
    dtype: np.dtype
    feedforward: Stack
    bottleneck: Layer  # readout.0, whose output after ReLU are the coordinates
    readout: Stack  # the rest of it
    causal: bool = False

    def coordinates(
        self, tokens: Array, lengths: Array, radius: float, A: Arithmetic, last: bool, known: Stream | None = None
    ) -> Iterator[tuple[slice, Ball]]:
        """Balls of t for all tokens [N, n, c], or the last ones [N, 1, c]; tokens are known up to ``radius``."""
        n = tokens.shape[1]
        heads, width, size = self.tensors["attention.W_Q"].shape
        queries = 1 if last or self.unseeing(last) or self.asks_alike else n
        held = heads * size if known is not None else max(width, self.feedforward.widest)
        if known is not None and last and self.unseeing(last) and (lengths == n).all():
            step = max(1, BLOCK // (heads + max(held, width)))  # one sum for each sequence: places take turns
        else:
            step = max(1, BLOCK // (n * (heads * queries + held)))
        for start in range(0, len(tokens), step):
            rows = slice(start, min(start + step, len(tokens)))
            if known is None:
                stream = Stream(self, self.embed(tokens[rows], radius, A).reshape(-1, n, width), A)
            else:
                stream = known.at(rows)
            t = relu(self.bottleneck.apply(self.attend(stream, lengths[rows], last), A))
            yield rows, t.reshape(-1, 1 if last else n, t.m.shape[-1])

    def known(self, tokens: Array, radius: float, A: Arithmetic, share: float = 1.0) -> Stream | None:
        """The stream before attention for every different token at every place, if fewer than ``share`` of all."""
        table, n = self.tensors.get("embedding.table"), tokens.shape[1]
        if table is not None:
            different, ids = np.arange(len(table)), tokens
        else:  # the same token many times, as in a grid: worth looking for among numbers
            some = tokens[: len(tokens) if tokens.shape[2] == 1 else 0].ravel()
            values, at = np.unique(some, return_inverse=True)
            different, ids = values[:, None], at.reshape(-1, n)
        if not 0 < len(different) <= share * len(tokens):
            return None
        step = max(1, BLOCK // (n * self.feedforward.widest))
        blocks = (np.repeat(different[a : a + step, None], n, axis=1) for a in range(0, len(different), step))
        h = joined([self.embed(block, radius, A) for block in blocks], axis=0)
        return Stream(self, h.reshape(len(different), n, -1), A, ids)

    def embed(self, tokens: Array, radius: float, A: Arithmetic) -> Ball:
        """The residual stream before attention, [tokens, width]."""
        return self.feedforward.apply(self.lifted(tokens, radius, A), A)

    def lifted(self, tokens: Array, radius: float, A: Arithmetic) -> Ball:
        """What the layers before attention read, [tokens, width]."""
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
        return h

    def attend(self, stream: Stream, lengths: Array, last: bool) -> Ball:
        """h + (softmax of the logits, averaging the values) W_O, [tokens, width], or only at the last tokens.

        The stream and what all components of all heads add to it are the terms of one sum.
        Theorem: proofs/Linear.v residual_stream.
        """
        n, A = stream.n, stream.A
        visible = bool((lengths == n).all()) or (np.arange(n) < lengths[:, None])[:, None, None, :]
        if self.causal and not last:  # the last token sees the whole sequence, causal or not
            visible = visible & np.tri(n, dtype=bool)
        if self.unseeing(last) and stream.is_calm:
            averages = self.equal(stream, visible, last)
        else:
            averages = self.weighed(stream, lengths, visible, last)
        h = stream.at_ends(lengths) if last else stream.get("h").reshape(-1, stream.h.m.shape[-1])
        aside = Ball(*(a.swapaxes(1, 2).reshape(len(h.m), -1) for a in (averages.m, averages.r)))
        return linear(aside, self.tensors["attention.W_O"].reshape(-1, h.m.shape[1]), h, A)

    def unseeing(self, last: bool) -> bool:
        """Whether all logits are exactly 0 and every query sees the same keys: then one query stands for all."""
        T = self.tensors
        blind = [not any(T[x].any() for x in (f"attention.W_{s}", f"attention.b_{s}") if x in T) for s in "QK"]
        return any(blind) and (last or not self.causal)

    @property
    def asks_alike(self) -> bool:
        """Whether all queries are the same numbers, biases, and see the same keys: then one stands for all."""
        return not self.tensors["attention.W_Q"].any() and not self.causal

    def equal(self, stream: Stream, visible: Array | bool, last: bool) -> Ball:
        """Averages [N, head, query, s] of the values with equal weights, the same for every query."""
        A, n, (H, _, s) = stream.A, stream.n, self.tensors["attention.W_Q"].shape
        if isinstance(visible, np.ndarray):
            p = softmax(exact(np.zeros((len(visible), 1, 1, n))), visible, A)
            y = dot(p, stream.heads("V"), A, extra=4)
        else:  # nothing is padding: the weights of all sequences are the same
            y = mean_alike(stream.totals("V"), n, A).reshape(-1, H, 1, s)
        return y if last else Ball(*(np.broadcast_to(a, (len(a), H, n, s)) for a in (y.m, y.r)))

    def weighed(self, stream: Stream, lengths: Array, visible: Array | bool, last: bool) -> Ball:
        """Averages [N, head, query, s] of the values, some queries at a time."""
        A, q, keys, v = stream.A, stream.heads("Q"), stream.keys(), stream.heads("V")
        alike = not last and self.asks_alike and stream.is_calm
        if last or alike:
            q = q[np.arange(len(lengths)), :, lengths - 1][:, :, None]
        step = max(1, QUERIES * BLOCK // (v.m.shape[0] * v.m.shape[1] * v.m.shape[2]))
        found = []
        for a in range(0, q.m.shape[2], step):
            seen = np.asarray(visible)
            seen = seen[..., a : a + step, :] if seen.ndim and seen.shape[-2] > 1 else seen
            found.append(dot(softmax(dot(q[:, :, a : a + step], keys, A), seen, A), v, A, extra=4))
        y = found[0] if len(found) == 1 else joined(found, axis=2)
        return Ball(*(np.broadcast_to(a, v.m.shape) for a in (y.m, y.r))) if alike else y


@dataclass(frozen=True, eq=False)
class Stream:
    """The residual stream before attention, and what attention reads off it: of sequences, or of every different
    token at every place, of which sequences are made up by ``ids``."""

    network: Network
    h: Ball  # [N, n, width], or [different tokens, n, width]
    A: Arithmetic
    ids: Array | None = None  # [N, n]
    found: dict[str, Ball] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return int((self.h.m if self.ids is None else self.ids).shape[1])

    def at(self, rows: slice | Array, n: int | None = None) -> Stream:
        """Some of the sequences, up to so many places."""
        return replace(self, ids=self.ids[rows, :n])  # type: ignore[index]  # of what is known there are ids

    def get(self, name: str) -> Ball:
        """h, or queries Q, keys K or values V, for each token [N, n, ...]."""
        if name not in self.found:
            self.found.update({"h": self.h} if name == "h" else self.read("QKV"))
        ball = self.found[name]
        if self.ids is None:
            return ball
        m = ball.m[self.ids, np.arange(self.ids.shape[1])]
        exactly = not ball.r.any()
        return Ball(m, np.broadcast_to(0.0, m.shape) if exactly else ball.r[self.ids, np.arange(self.ids.shape[1])])

    def read(self, names: str) -> dict[str, Ball]:
        """Some of queries, keys and values, by name; together they cost little more than one of them."""
        T, (N, n, w) = self.network.tensors, self.h.m.shape
        columns = np.concatenate([T[f"attention.W_{x}"].swapaxes(0, 1).reshape(w, -1) for x in names], axis=1)
        size = columns.shape[1] // len(names)
        bias = np.concatenate([T.get(f"attention.b_{x}", np.zeros(size)).ravel() for x in names])
        found = linear(self.h.reshape(N * n, w), columns, bias, self.A).reshape(N, n, -1)
        return {x: found[..., i * size : (i + 1) * size] for i, x in enumerate(names)}

    @cached_property
    def is_calm(self) -> bool:
        """Whether no query or key can overflow: 0 times infinity would not be 0."""
        T = self.network.tensors
        names = (f"attention.{x}" for x in ("W_Q", "W_K", "b_Q", "b_K"))
        widest = max(float(np.abs(T[name]).max()) for name in names if name in T)
        largest = float((np.abs(self.h.m) + self.h.r).max()) + 1
        return bool(16 * self.h.m.shape[2] * largest * widest < self.A.big)

    def totals(self, name: str) -> Totals:
        """Sums over the tokens of each sequence, [N, ...]."""
        if name not in self.found:
            self.found.update(self.read(name))
        ball = self.found[name]
        if self.ids is None:
            return Totals.of(ball)
        different, n, w = ball.m.shape
        parts = [a.reshape(different * n, w) for a in (ball.m, np.abs(ball.m), ball.r)]
        sums = [np.zeros((len(self.ids), w)) for _ in parts]
        used = [True, True, bool(ball.r.any())]
        for k in range(self.n):  # place by place: nothing is held for every token
            at = self.ids[:, k] * n + k
            for total, part, uses in zip(sums, parts, used, strict=True):
                if uses:
                    total += part.take(at, axis=0)
        return Totals(sums[0], sums[1], sums[2], float((parts[1] + parts[2]).max()), are_whole(ball))

    def heads(self, name: str) -> Ball:
        """Queries, keys or values [N, head, token, s]."""
        ball, (H, _, s) = self.get(name), self.network.tensors["attention.W_Q"].shape
        return Ball(*(a.reshape(*a.shape[:2], H, s).swapaxes(1, 2) for a in (ball.m, ball.r)))

    def keys(self) -> Ball:
        """Keys [N, head, s, token]."""
        k = self.heads("K")
        return Ball(k.m.swapaxes(2, 3), k.r.swapaxes(2, 3))

    def at_ends(self, lengths: Array) -> Ball:
        """h at the last token of every sequence, [N, width]."""
        at = lengths - 1
        return self.h[np.arange(len(at)) if self.ids is None else self.ids[np.arange(len(at)), at], at]


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
        raise Malformed("graph", f"unknown tensors {shown(sorted(set(tensors) - known))}")
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
        if array is not None and (array.ndim != axes or array.shape[-1] != lifted):
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
