"""The weights of a model as a program: what it computes in real arithmetic for a number of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import OptionError
from onelayer.model import Model
from onelayer.network.weights import Grouped, Layer, Linear
from onelayer.problems.targets.networks import operations as ops
from onelayer.problems.targets.networks.products import matrix_product, softmax
from onelayer.problems.targets.networks.values import Tensor, constant, placed_tokens
from onelayer.problems.targets.pooled import PooledBuilder
from onelayer.problems.targets.program import Program


def program_of_model(model: Model, n: int, d: int) -> Program:
    T, form = model.transformer, model.form
    plain = T.attention.kind == "softmax" and T.repeat == 1 and not T.further and not T.attention.causal
    if not plain or T.vocabulary_size is not None or T.token_width != d:
        needs = f"one layer of softmax attention over all tokens of {d} real components"
        found = f"a model of {T.attention.kind} attention, {T.token_width} components"
        raise OptionError("bound_error", needs, found, "Give a model of a function of such tokens.")
    builder = PooledBuilder(n, d)
    h = placed_tokens(builder)
    if T.embedding is not None:
        assert T.embedding.lift is not None
        h = matrix_product(h, constant(builder, T.embedding.lift))
        for part in (T.embedding.bias, T.embedding.positions):
            h = h if part is None else ops.binary("add", h, part[:n] if part.ndim == 2 else part)
    h = _stack(T.feedforward, h)
    A, total = T.attention, h
    for g in range(A.heads):
        q, k = (_row(h, W[g], b, g) for W, b in ((A.W_Q, A.b_Q), (A.W_K, A.b_K)))
        v = matrix_product(h, constant(builder, A.W_V[g]))
        seen = matrix_product(softmax(matrix_product(q, k.swapped(-1, -2)), -1), v)
        total = ops.binary("add", total, matrix_product(seen, constant(builder, A.W_O[g])))
    made = _stack(T.readout, total)
    lines = list(made.lines.ravel()) if form.scope == "token" else list(made.lines[0].ravel())
    return builder.program(lines, "token" if form.scope == "token" else "sequence")


def _row(h: Tensor, W: Any, b: Any, g: int) -> Tensor:
    made = matrix_product(h, constant(h.builder, W))
    return made if b is None else ops.binary("add", made, b[g])


def _stack(layers: tuple[Layer, ...], h: Tensor) -> Tensor:
    for i, layer in enumerate(layers):
        h = ops.affine(h, _matrix(layer).T, layer.bias)
        h = ops.unary("relu", h) if i + 1 < len(layers) else h
    return h


def _matrix(layer: Layer) -> Any:
    if isinstance(layer, Linear):
        return layer.weight
    assert isinstance(layer, Grouped)
    g, a, b = layer.weight.shape
    W = np.zeros((g, a, g, b))
    W[np.arange(g), :, np.arange(g)] = layer.weight
    return W.reshape(g * a, g * b)
