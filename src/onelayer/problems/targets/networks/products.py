"""Tensors of a network together: entry by entry, as matrices, and as weights and values of attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.targets.networks.values import (
    BATCH,
    OTHER,
    OWN,
    Axis,
    Tensor,
    Unsupported,
    each,
    pooled,
    renamed,
    settled,
    shown,
)
from onelayer.problems.targets.program import Node

Array = NDArray[Any]


def combined(a: Tensor, b: Tensor, f: Callable[[Node, Node], Node]) -> Tensor:
    """An operation entry by entry, with the rules of broadcasting."""
    a, b = settled(a), settled(b)
    axes, first, second = list[Axis](), list[Axis](), list[Axis]()
    depth = max(len(a.axes), len(b.axes))
    pairs = zip((1,) * (depth - len(a.axes)) + a.axes, (1,) * (depth - len(b.axes)) + b.axes, strict=True)
    own = {"a": False, "b": False}
    for p, q in pairs:
        wide = q if p == 1 else p
        if p != 1 and q != 1 and p != q:
            raise Unsupported(f"shapes {shown(a.axes)} and {shown(b.axes)} together")
        if wide == OWN and OWN in axes:  # a second axis of tokens
            own["a" if p == OWN else "b"] = True
            wide = OTHER
        axes.append(wide)
        first.append(p)
        second.append(q)
    x, y = (renamed(t.builder, t.lines) if own[name] else t.lines for name, t in (("a", a), ("b", b)))
    x, y = np.broadcast_arrays(_spread(x, first, axes), _spread(y, second, axes))
    return Tensor(a.builder, tuple(axes), each(f, x, y))


def _spread(lines: Array, own: Sequence[Axis], axes: Sequence[Axis]) -> Array:
    """Lines with an axis for every axis of numbers."""
    kept = [1 if not isinstance(p, int) else p for p, a in zip(own, axes, strict=True) if isinstance(a, int)]
    return lines.reshape(kept)


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b: over an axis of numbers, or over the tokens y."""
    if len(a.axes) < 1 or len(b.axes) < 2:
        raise Unsupported(f"a product of {shown(a.axes)} and {shown(b.axes)}")
    inner, other = a.axes[-1], b.axes[-2]
    if inner == OTHER and other == OWN:
        return _averaged(a, b)
    if not isinstance(inner, int) or inner != other:
        raise Unsupported(f"a product of {shown(a.axes)} and {shown(b.axes)}")
    a, b = settled(a), settled(b)
    left, right = a.unsqueezed(len(a.axes)), b.unsqueezed(len(b.axes) - 2)
    return _contracted(left, right)


def _contracted(left: Tensor, right: Tensor) -> Tensor:
    """left [..., i, k, 1], right [..., 1, k, j], summed over k; zeros of weights are left out."""
    b, steps = left.builder, left.axes[-2]
    assert isinstance(steps, int)
    both = combined(left, right, lambda u, v: (u, v))  # type: ignore[arg-type, return-value]
    at = sum(isinstance(a, int) for a in both.axes[:-2])
    rows = np.moveaxis(both.lines, at, -1)
    lines = np.empty(rows.shape[:-1], object)
    for i in np.ndindex(lines.shape):
        terms = [u * v for u, v in rows[i] if 0.0 not in (b.value(u), b.value(v))]
        lines[i] = b.fold("add", terms) if terms else b.const(0.0)
    return Tensor(b, (*both.axes[:-2], both.axes[-1]), lines)


def _averaged(a: Tensor, b: Tensor) -> Tensor:
    """Weights [..., x, y] times values [..., tokens, c]: the sum over y."""
    builder = a.builder
    values = settled(b)
    values = replace(values, axes=tuple(OTHER if x == OWN else x for x in b.axes), lines=renamed(builder, b.lines))
    weights = replace(a, mass=None).unsqueezed(len(a.axes))  # [..., x, y, 1]
    spread = values.unsqueezed(len(values.axes) - 2)  # [..., 1, y, c]
    both = combined(weights, spread, lambda u, v: u * v)
    made = pooled(both, "mean", other=True)
    axes = tuple(x for x in both.axes if x != OTHER)
    found = Tensor(builder, axes, made)
    if a.mass is None:
        builder.counts = True
        return found.each(lambda v: v * float(builder.n))
    mass = Tensor(builder, tuple(x for x in a.axes if x != OTHER), a.mass).unsqueezed(len(a.axes) - 1)
    return combined(found, mass, lambda u, m: u / m)


def softmax(t: Tensor, k: int) -> Tensor:
    """Over tokens y, with weights and their mean apart; or over an axis of numbers."""
    k, b = t.axis(k), t.builder
    e = t.each(lambda v: b.op("exp", v))
    if t.axes[k] == OTHER:
        return replace(e, mass=each(lambda v: b.pool("mean", v), e.lines))
    if t.axes[k] == BATCH or (t.axes[k] == OWN and OTHER in t.axes):
        raise Unsupported(f"softmax over the axis {t.axes[k]!r}")
    return combined(e, e.reduced(k, "sum", keep=True), lambda u, v: u / v)
