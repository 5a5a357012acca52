"""The graph `looped/1`: layers of feed-forward and attention, the first of them in a loop, on numbers of any kind.

Weights are rationals. What is computed here is what section 3 of the specification of `looped/1` says, in the words
of addition, multiplication and absolute values, so that it runs on numbers and on polynomials alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.budget import spend
from onelayer_checker.core.files import Malformed, fields, shown
from onelayer_checker.looped.polynomials import relu, times

Column = tuple[tuple[int, Fraction], ...]  # the weights of an output that are not 0
Numbers = list[Any]
KINDS = ("softmax", "linear", "relu", "mesa")
OPTIONS = {"attention", "causal", "context", "mean", "window", "repeat"}


@dataclass(frozen=True)
class Affine:
    """y = x W + b."""

    columns: tuple[Column, ...]
    bias: tuple[Fraction, ...]
    inputs: int

    def __call__(self, h: Sequence[Any]) -> Numbers:
        return [dot(column, h, b) for column, b in zip(self.columns, self.bias, strict=True)]


@dataclass(frozen=True)
class Head:
    query: Affine
    key: Affine
    value: Affine
    out: Affine
    ridge: Fraction | None

    def score(self, asking: Sequence[Any], key: Sequence[Any]) -> Any:
        return total(times(a, b) for a, b in zip(self.query(asking), self.key(key), strict=True))


@dataclass(frozen=True)
class Layer:
    """A layer of the graph; ``context`` is the channel that is not 0 on keys, None if every token is one."""

    kind: str
    causal: bool
    context: int | None
    mean: bool
    window: int | None
    repeat: int
    heads: tuple[Head, ...]
    feedforward: tuple[Affine, ...]
    width: int

    def before(self, h: Sequence[Any]) -> Numbers:
        """What attention reads: the feed-forward part of a token."""
        return stack(self.feedforward, h)

    def add_key(self, asking: Sequence[Any], key: Sequence[Any]) -> Numbers:
        """What one key adds to a token, of linear and relu attention; both after the feed-forward part."""
        update: Numbers = [0] * self.width
        for head in self.heads:
            score = head.score(asking, key)
            score = relu(score) if self.kind == "relu" else score
            written = head.out([times(score, v) for v in head.value(key)])
            update = [a + b for a, b in zip(update, written, strict=True)]
        return update

    def alone(self, h: Sequence[Any]) -> Numbers:
        """The layer on a token that sees itself only."""
        for _ in range(self.repeat):
            h = self.before(h)
            h = [a + b for a, b in zip(h, self.add_key(h, h), strict=True)]
        return list(h)


@dataclass(frozen=True)
class Network:
    dtype: np.dtype[Any]
    loop: Layer
    after: tuple[Layer, ...]  # layers in which every token sees itself only
    readout: tuple[Affine, ...]
    panel: Layer | None = None  # right after the loop: a layer in which tokens see judges

    def answer(self, h: Sequence[Any]) -> Numbers:
        """What is read off a token after the loop."""
        for layer in self.after:
            h = layer.alone(h)
        return stack(self.readout, h)

    @cached_property
    def outputs(self) -> int:
        return len(self.readout[-1].bias)


def total(numbers: Iterable[Any]) -> Any:
    found: Any = 0
    for number in numbers:
        found = found + number
    return found


def dot(column: Column, h: Sequence[Any], bias: Fraction) -> Any:
    return total((bias, *(times(h[i], weight) for i, weight in column)))


def stack(layers: Sequence[Affine], h: Sequence[Any]) -> Numbers:
    for i, layer in enumerate(layers):
        h = layer([relu(u) for u in h] if i else h)
    return list(h)


def build(tensors: dict[str, Array], graph: Any) -> Network:
    """Check names, dtypes and shapes of the weights against the graph."""
    fields(graph, {"template", "layers"}, "graph")
    entries = graph["layers"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= 8:
        raise Malformed("graph", "there must be 1 to 8 layers")
    dtypes = {a.dtype for a in tensors.values()}
    if len(dtypes) != 1 or not dtypes <= {np.dtype("<f4"), np.dtype("<f8")}:
        raise Malformed("graph", f"weights must be all F32 or all F64, found {sorted(map(str, dtypes))}")
    rest = dict(tensors)
    layers = [_layer(rest, f"{i}." if i else "", entry, f"graph.layers[{i}]") for i, entry in enumerate(entries)]
    width = layers[0].width
    readout = _stack(rest, f"{len(entries) - 1}.readout" if len(entries) > 1 else "readout", width)
    if rest or not readout or any(layer.width != width for layer in layers):
        raise Malformed("graph", f"there is no readout, or there are other tensors: {shown(sorted(rest))}")
    panel = layers[1] if len(layers) > 1 and layers[1].context is not None else None
    if panel is not None and (panel.repeat, panel.causal, panel.window) != (1, False, None):
        raise Malformed("graph", "a layer with judges is neither repeated nor causal, and has no window")
    for layer in layers[1:]:
        alone = layer.window == 1 and layer.context is None
        if layer.kind not in ("linear", "relu") or not (alone or layer is panel):
            raise Malformed("graph", "a further layer is linear or relu attention of each token to itself")
    if layers[0].window is not None:
        raise Malformed("graph", "the layer in a loop has no window")
    after = layers[1 if panel is None else 2 :]
    return Network(dtypes.pop(), layers[0], tuple(after), readout, panel)


def _layer(rest: dict[str, Array], prefix: str, entry: Any, where: str) -> Layer:
    fields(entry, OPTIONS, where)
    kind, causal, context, mean, window, repeat = (
        entry[name] for name in ("attention", "causal", "context", "mean", "window", "repeat")
    )
    known = isinstance(kind, str) and kind in KINDS and type(causal) is bool and type(mean) is bool
    whole = (
        type(repeat) is int and 1 <= repeat <= 1 << 20 and (window is None or (type(window) is int and window > 0))
    )
    if not known or not whole or (mean and kind not in ("linear", "relu")):
        raise Malformed("graph", f"{where} is no layer: {shown(entry, 200)}")
    weights = {x: rest.pop(f"{prefix}attention.W_{x}", None) for x in "QKVO"}
    if any(a is None or a.ndim != 3 for a in weights.values()):
        raise Malformed("graph", f"{where}: W_Q, W_K, W_V and W_O have three axes each")
    Q, K, V, O = (a for a in weights.values() if a is not None)
    (H, w, s), v = Q.shape, V.shape[2]
    biases = [rest.pop(f"{prefix}attention.b_{x}", np.zeros((H, s))) for x in "QK"]
    ridge = rest.pop(f"{prefix}attention.ridge", None)
    shapes = [(K, (H, w, s)), (V, (H, w, v)), (O, (H, v, w)), *((b, (H, s)) for b in biases)]
    if any(a.shape != shape for a, shape in shapes) or (ridge is not None) != (kind == "mesa"):
        raise Malformed("graph", f"{where}: its tensors do not fit together")
    if ridge is not None and (ridge.shape != (H,) or not (ridge > 0).all()):
        raise Malformed("graph", f"{where}: mesa attention has a positive ridge for each head")
    if context is not None and not (type(context) is int and 0 <= context < w):
        raise Malformed("graph", f"{where}: there is no channel {shown(context)}")
    heads = tuple(
        Head(
            affine(Q[i], biases[0][i]),
            affine(K[i], biases[1][i]),
            affine(V[i], np.zeros(v)),
            affine(O[i], np.zeros(w)),
            None if ridge is None else Fraction(float(ridge[i])),
        )
        for i in range(H)
    )
    feedforward = _stack(rest, f"{prefix}feedforward", w)
    if feedforward and len(feedforward[-1].bias) != w:
        raise Malformed("graph", f"{where}: the feed-forward part gives another width than {w}")
    return Layer(kind, causal, context, mean, window, repeat, heads, feedforward, w)


def _stack(rest: dict[str, Array], name: str, width: int) -> tuple[Affine, ...]:
    layers: list[Affine] = []
    while f"{name}.{len(layers)}.weight" in rest:
        own = f"{name}.{len(layers)}"
        weight, bias = rest.pop(f"{own}.weight"), rest.pop(f"{own}.bias", None)
        if weight.ndim != 2 or bias is None or weight.shape != (width, len(bias)) or bias.ndim != 1:
            raise Malformed("graph", f"{own} is no full layer after width {width}")
        layers.append(affine(weight, bias))
        width = len(bias)
    return tuple(layers)


def affine(weight: Array, bias: Array) -> Affine:
    count = float(np.count_nonzero(weight)) + weight.shape[1]
    spend("weights as fractions", 2e3 * count, kept=300 * count)
    columns = tuple(
        tuple((int(i), Fraction(float(column[i]))) for i in np.flatnonzero(column)) for column in weight.T
    )
    return Affine(columns, tuple(Fraction(float(b)) for b in bias), len(weight))
