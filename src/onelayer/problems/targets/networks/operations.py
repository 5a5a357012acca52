"""Operations of networks by name, as modules, functions and ONNX nodes have them in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onelayer.problems.targets.networks.products import combined, matrix_product, softmax
from onelayer.problems.targets.networks.values import Tensor, Unsupported, constant
from onelayer.problems.targets.program import Node

Unary = Callable[[Node], Node]


def _op(name: str) -> Unary:
    return lambda v: v.builder.op(name, v)


def _relu(v: Node) -> Node:
    return v.builder.op("max", v, 0.0)


def _sigmoid(v: Node) -> Node:
    return 0.5 + 0.5 * v.builder.op("tanh", 0.5 * v)


UNARY: dict[str, Unary] = {
    **{name: _op(name) for name in ("abs", "exp", "log", "neg", "sqrt", "tanh", "sin", "cos")},
    "relu": _relu,
    "sigmoid": _sigmoid,
    "silu": lambda v: v * _sigmoid(v),
    "softplus": lambda v: v.builder.op("log", 1.0 + v.builder.op("exp", v)),
    "identity": lambda v: v,
    "reciprocal": lambda v: 1.0 / v,
    "square": lambda v: v * v,
}
BINARY: dict[str, Callable[[Node, Node], Node]] = {
    "add": lambda u, v: u + v,
    "sub": lambda u, v: u - v,
    "mul": lambda u, v: u * v,
    "div": lambda u, v: u / v,
    "max": lambda u, v: u.builder.op("max", u, v),
    "min": lambda u, v: u.builder.op("min", u, v),
}


def as_tensor(like: Tensor, value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else constant(like.builder, np.asarray(value, np.float64))


def unary(name: str, t: Tensor) -> Tensor:
    return t.each(UNARY[name])


def binary(name: str, a: Any, b: Any) -> Tensor:
    like = a if isinstance(a, Tensor) else b
    return combined(as_tensor(like, a), as_tensor(like, b), BINARY[name])


def leaky(slope: float, t: Tensor) -> Tensor:
    if not 0 <= slope <= 1:
        raise Unsupported(f"a leaky ReLU with slope {slope:g}")
    return t.each(lambda v: v.builder.op("max", v, slope * v))


def clipped(low: float | None, high: float | None, t: Tensor) -> Tensor:
    def clip(v: Node) -> Node:
        v = v if low is None else v.builder.op("max", v, float(low))
        return v if high is None else v.builder.op("min", v, float(high))

    return t.each(clip)


def power(t: Tensor, exponent: Any) -> Tensor:
    exponent = float(np.asarray(exponent))
    if exponent == 0.5:
        return unary("sqrt", t)
    if exponent != int(exponent) or not 0 < exponent <= 16:
        raise Unsupported(f"the power {exponent:g}; it has 0.5 and 1 to 16")
    return t.each(lambda v: v ** int(exponent))


def affine(t: Tensor, weight: Any, bias: Any) -> Tensor:
    """t @ weight^T + bias, as a linear layer has them."""
    made = matrix_product(t, as_tensor(t, np.asarray(weight, np.float64).T))
    return made if bias is None else binary("add", made, bias)


def normalised(t: Tensor, weight: Any, bias: Any, eps: float) -> Tensor:
    """Over the components of a token."""
    apart = binary("sub", t, t.reduced(-1, "mean", keep=True))
    spread = unary("square", apart).reduced(-1, "mean", keep=True)
    made = binary("div", apart, unary("sqrt", binary("add", spread, eps)))
    made = made if weight is None else binary("mul", made, weight)
    return made if bias is None else binary("add", made, bias)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """softmax(q k^T / sqrt(s)) v for [..., tokens, s]."""
    size = q.axes[-1]
    assert isinstance(size, int)
    logits = matrix_product(q, k.swapped(-1, -2))
    scaled = binary("mul", logits, 1 / math.sqrt(size) if scale is None else scale)
    return matrix_product(softmax(scaled, -1), v)


def many_heads(t: Tensor, heads: int) -> Tensor:
    """[B, n, h s] as [B, h, n, s]."""
    size = t.axes[-1]
    assert isinstance(size, int)
    return t.reshaped([*t.axes[:2], heads, size // heads]).permuted([0, 2, 1, 3])


def one_vector(t: Tensor) -> Tensor:
    """Back."""
    h, s = t.axes[1], t.axes[3]
    assert isinstance(h, int)
    assert isinstance(s, int)
    return t.permuted([0, 2, 1, 3]).reshaped([t.axes[0], t.axes[2], h * s])


def over_axes(t: Tensor, axes: Any, name: str, keep: bool) -> Tensor:
    """mean, sum or max over one or several axes."""
    listed = [axes] if isinstance(axes, int) else list(axes) if axes is not None else list(range(len(t.axes)))
    for k in sorted((t.axis(int(a)) for a in listed), reverse=True):
        t = t.reduced(k, name, keep)
    return t


def refuse_causal(is_causal: Any, mask: Any) -> None:
    if is_causal or mask is not None:
        raise Unsupported("a mask: a formula knows no places of tokens")
