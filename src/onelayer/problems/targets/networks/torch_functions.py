"""Functions and methods of PyTorch, by name, as they appear in the graph of a module."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from onelayer.problems.targets.networks import operations as ops
from onelayer.problems.targets.networks.products import matrix_product, softmax
from onelayer.problems.targets.networks.values import Tensor, Unsupported


def _sizes(given: tuple[Any, ...]) -> list[Any]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else list(given)


def _item(t: Any, at: Any) -> Any:
    if not isinstance(t, Tensor):
        return t[at]
    picks = at if isinstance(at, tuple) else (at,)
    if Ellipsis in picks:
        i = picks.index(Ellipsis)
        whole = (slice(None),) * (len(t.axes) - len(picks) + 1)
        picks = picks[:i] + whole + picks[i + 1 :]
    for k in range(len(picks) - 1, -1, -1):
        t = t.unsqueezed(k) if picks[k] is None else t.taken(k, picks[k])
    return t


def _split(t: Tensor, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    k = t.axis(dim)
    width = t.axes[k]
    if not isinstance(width, int):
        raise Unsupported("tokens apart from each other")
    sizes = list(size) if isinstance(size, list | tuple) else [size] * -(-width // size)
    ends = np.cumsum([0, *sizes])
    return tuple(t.taken(k, slice(int(a), int(min(b, width)))) for a, b in pairwise(ends))


def _chunk(t: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    width = t.axes[t.axis(dim)]
    if not isinstance(width, int):
        raise Unsupported("tokens apart from each other")
    return _split(t, -(-width // chunks), dim)


def _flatten(t: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    a, b = t.axis(start_dim), t.axis(end_dim)
    return t.reshaped([*t.axes[:a], -1, *t.axes[b + 1 :]])


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    ops.refuse_causal(is_causal, attn_mask)
    if dropout_p:
        raise Unsupported("dropout")
    return ops.attention(query, key, value, scale)


def _over(name: str) -> Callable[..., Tensor]:
    def reduced(t: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Tensor:
        return ops.over_axes(t, options.get("axis", dim), name, keepdim)

    return reduced


def _unary(name: str) -> Callable[..., Tensor]:
    return lambda t, *_, **__: ops.unary(name, t)


def _binary(name: str) -> Callable[..., Tensor]:
    def made(a: Any, b: Any, *, alpha: float = 1) -> Tensor:
        return ops.binary(name, a, b if alpha == 1 else ops.binary("mul", b, alpha))

    return made


def _matmul(a: Any, b: Any) -> Tensor:
    like = a if isinstance(a, Tensor) else b
    return matrix_product(ops.as_tensor(like, a), ops.as_tensor(like, b))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _unary(name) for name in ops.UNARY},
    **{name: _binary(name) for name in ("add", "sub", "mul")},
    **{name: _binary("div") for name in ("div", "truediv", "true_divide")},
    "maximum": _binary("max"),
    "minimum": _binary("min"),
    "rsub": lambda a, b: ops.binary("sub", b, a),
    "pow": ops.power,
    "linear": lambda t, weight, bias=None: ops.affine(t, weight, bias),
    "softmax": lambda t, dim=-1, **_: softmax(t, dim),
    "leaky_relu": lambda t, negative_slope=0.01, **_: ops.leaky(negative_slope, t),
    "clamp": lambda t, min=None, max=None: ops.clipped(min, max, t),
    "scaled_dot_product_attention": _attend,
    **dict.fromkeys(("matmul", "bmm"), _matmul),
    "mean": _over("mean"),
    "sum": _over("sum"),
    "amax": _over("max"),
    "transpose": lambda t, a, b: t.swapped(a, b),
    "permute": lambda t, *order: t.permuted(_sizes(order)),
    "view": lambda t, *sizes: t.reshaped(_sizes(sizes)),
    "reshape": lambda t, *sizes: t.reshaped(_sizes(sizes)),
    "flatten": _flatten,
    "unsqueeze": lambda t, dim: t.unsqueezed(dim),
    "squeeze": lambda t, dim: t.squeezed(dim),
    "getitem": _item,
    "split": _split,
    "chunk": _chunk,
    "size": lambda t, dim=None: t.axes if dim is None else t.axes[t.axis(dim)],
    "contiguous": lambda t: t,
    "dropout": lambda t, p=0.5, training=True, **_: t if not training or not p else _training(),
}


def _training() -> Tensor:
    raise Unsupported("dropout in training; call eval() first")
