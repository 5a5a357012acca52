"""Tensors of a network as formulas: axes of numbers hold lines, the axes of sequences and tokens hold none.

A tensor [B, n, c] is c functions of a token x. Where a second axis of tokens appears, as in the scores of
attention, it is that of the token y, which averages run over. A softmax over y keeps its weights e^s and their mean
apart, so that an average by them is mean(e^s v) / mean(e^s), whatever the number of tokens is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.problems.targets.pooled import LEAVES, PooledBuilder
from onelayer.problems.targets.program import Node

Array = NDArray[Any]
#: Axes without lines: of sequences, of the token x, and of the token y.
BATCH, OWN, OTHER = "sequences", "x", "y"
Axis = int | str
MOST_NUMBERS = 1 << 14


class Unsupported(Exception):
    """Of an operation: what it cannot be asked for here."""


@dataclass(frozen=True)
class Tensor:
    """``lines`` is an array of nodes over those axes that are numbers."""

    builder: PooledBuilder
    axes: tuple[Axis, ...]
    lines: Array
    mass: Array | None = None  # of weights over y: their mean, while the lines are not yet divided by n times that

    def axis(self, k: int) -> int:
        if not -len(self.axes) <= k < len(self.axes):
            raise Unsupported(f"axis {k} of a tensor with {len(self.axes)} axes")
        return k % len(self.axes)

    def each(self, f: Callable[..., Node]) -> Tensor:
        whole = settled(self)
        return replace(whole, lines=each(f, whole.lines))

    # Axes -------------------------------------------------------------------------------------------------------

    def permuted(self, order: Sequence[int]) -> Tensor:
        order = [self.axis(k) for k in order]
        numbers = [k for k, a in enumerate(self.axes) if isinstance(a, int)]
        turned = [numbers.index(k) for k in order if k in numbers]
        axes = tuple(self.axes[k] for k in order)
        mass = None if self.mass is None else self.mass.transpose(turned)
        return replace(self, axes=axes, lines=self.lines.transpose(turned), mass=mass)

    def swapped(self, i: int, j: int) -> Tensor:
        order = list(range(len(self.axes)))
        i, j = self.axis(i), self.axis(j)
        order[i], order[j] = order[j], order[i]
        return self.permuted(order)

    def reshaped(self, sizes: Sequence[Any]) -> Tensor:
        """Axes of tokens and sequences stay as they are; numbers between two of them are rearranged."""
        old, new, axes = list(self.axes), list(sizes), list[Axis]()
        while old or new:
            if old and isinstance(old[0], str):
                if not new or not (new[0] == old[0] or self._is_size_of(new[0], old[0])):
                    raise Unsupported(f"a shape {shown(sizes)} for {shown(self.axes)}")
                axes.append(old.pop(0))
                new.pop(0)
                continue
            wide = _leading(old)
            total = int(np.prod(wide, dtype=np.int64)) if wide else 1
            narrow = _matching(new, total, sizes, self.axes)
            axes += narrow
            old, new = old[len(wide) :], new[len(narrow) :]
        shape = [a for a in axes if isinstance(a, int)]
        mass = None if self.mass is None else self.mass.reshape(shape)
        return replace(self, axes=tuple(axes), lines=self.lines.reshape(shape), mass=mass)

    def _is_size_of(self, size: Any, axis: Axis) -> bool:
        return isinstance(size, int) and (size == -1 or axis == BATCH or size == self.builder.n)

    def unsqueezed(self, k: int) -> Tensor:
        k = k % (len(self.axes) + 1)
        axes = (*self.axes[:k], 1, *self.axes[k:])
        at = sum(isinstance(a, int) for a in self.axes[:k])
        mass = None if self.mass is None else np.expand_dims(self.mass, at)
        return replace(self, axes=axes, lines=np.expand_dims(self.lines, at), mass=mass)

    def squeezed(self, k: int) -> Tensor:
        k = self.axis(k)
        if self.axes[k] != 1:
            return self
        return self.reshaped([a for i, a in enumerate(self.axes) if i != k])

    def taken(self, k: int, which: Any) -> Tensor:
        """Numbers of an axis, by a slice or an index; the axis of tokens is taken whole or not at all."""
        k = self.axis(k)
        if isinstance(self.axes[k], str):
            if which == slice(None):
                return self
            raise Unsupported("a token by its place" if self.axes[k] != BATCH else "a sequence by its place")
        at, whole = sum(isinstance(a, int) for a in self.axes[:k]), settled(self)
        lines = whole.lines[(slice(None),) * at + (which,)]
        middle = () if isinstance(which, int) else (lines.shape[at],)
        return replace(whole, axes=(*self.axes[:k], *middle, *self.axes[k + 1 :]), lines=lines)

    # Sums -------------------------------------------------------------------------------------------------------

    def reduced(self, k: int, name: str, keep: bool = False) -> Tensor:
        """mean, sum or max over an axis."""
        k, whole = self.axis(k), settled(self)
        kind = self.axes[k]
        if kind == BATCH:
            raise Unsupported(f"{name} over sequences")
        if isinstance(kind, str):
            made = pooled(whole, name, other=kind == OTHER)
            rest = tuple(a for i, a in enumerate(self.axes) if i != k)
            found = replace(whole, axes=rest, lines=made)
        else:
            at = sum(isinstance(a, int) for a in self.axes[:k])
            rows = np.moveaxis(whole.lines, at, -1)
            fold = "max" if name == "max" else "add"
            lines = np.empty(rows.shape[:-1], object)
            for i in np.ndindex(lines.shape):
                total = self.builder.fold(fold, list(rows[i]))
                lines[i] = total / kind if name == "mean" else total
            found = replace(whole, axes=(*self.axes[:k], *self.axes[k + 1 :]), lines=lines)
        return found.unsqueezed(k) if keep else found


def _leading(axes: list[Axis]) -> list[int]:
    found = []
    for a in axes:
        if not isinstance(a, int):
            break
        found.append(a)
    return found


def _matching(new: list[Any], total: int, sizes: Sequence[Any], axes: Sequence[Axis]) -> list[Axis]:
    """The first of the new sizes whose product is ``total``; one size may be -1."""
    found = list[int]()
    for size in new:
        if not isinstance(size, int):
            break
        if np.prod([s for s in found if s != -1], dtype=np.int64) == total and -1 not in found and size != 1:
            break
        found.append(size)
    known = int(np.prod([s for s in found if s != -1], dtype=np.int64))
    if found.count(-1) == 1 and known and total % known == 0:
        found[found.index(-1)] = total // known
    if int(np.prod(found, dtype=np.int64)) != total:
        raise Unsupported(f"a shape {shown(sizes)} for {shown(axes)}")
    return list[Axis](found)


def shown(axes: Sequence[Any]) -> str:
    return "[" + ", ".join(map(str, axes)) + "]"


def each(f: Callable[..., Any], *arrays: Array) -> Array:
    found = np.empty(arrays[0].shape, object)
    if found.size > MOST_NUMBERS:
        raise Unsupported(f"a tensor of {found.size:,} numbers for each token; at most {MOST_NUMBERS:,}")
    for i in np.ndindex(found.shape):
        found[i] = f(*(a[i] for a in arrays))
    return found


def tokens(builder: PooledBuilder) -> Tensor:
    """The input: sequences of tokens with d components."""
    lines = np.empty(builder.d, object)
    for c in range(builder.d):
        lines[c] = builder.own(c)
    return Tensor(builder, (BATCH, OWN, builder.d), lines)


def placed_tokens(builder: PooledBuilder) -> Tensor:
    """The same with an axis of numbers for tokens, each by its place: nothing is averaged."""
    lines = np.empty((builder.n, builder.d), object)
    for j, c in np.ndindex(lines.shape):
        lines[j, c] = builder.x(j, c)
    return Tensor(builder, (BATCH, builder.n, builder.d), lines)


def constant(builder: PooledBuilder, values: Any) -> Tensor:
    values = np.asarray(values, np.float64)
    if not np.isfinite(values).all():
        raise Unsupported("a weight that is no number")
    if values.size > MOST_NUMBERS:
        raise Unsupported(f"{values.size:,} weights as numbers of one token; at most {MOST_NUMBERS:,}")
    return Tensor(builder, values.shape, each(lambda v: builder.const(float(v)), values))


def renamed(builder: PooledBuilder, lines: Array) -> Array:
    """The same functions of the token y instead of x."""
    known: dict[int, Node] = {}

    def of(node: Node) -> Node:
        if node.line not in known:
            op, *args = builder.line(node)
            if op in ("mean", "largest") or op == "y":
                raise Unsupported("attention to what attention gave: that takes a second layer")
            if op == "x":
                known[node.line] = builder.other(args[0])
            elif op in LEAVES:
                known[node.line] = node
            else:
                known[node.line] = builder.op(op, *(of(Node(builder, i)) for i in args))
        return known[node.line]

    return each(of, lines)


def pooled(whole: Tensor, name: str, other: bool) -> Array:
    """mean, sum or max over all tokens of lines, functions of y or, if there is no other axis, of x."""
    b = whole.builder
    if not other and OTHER in whole.axes:
        raise Unsupported(f"{name} over the token that asks")
    lines = whole.lines if other else renamed(b, whole.lines)
    if name == "max":
        return each(lambda v: b.pool("largest", v), lines)
    found = each(lambda v: b.pool("mean", v), lines)
    if name == "sum":
        b.counts = True
        return each(lambda v: v * float(b.n), found)
    return found


def settled(t: Tensor) -> Tensor:
    """With weights over y divided by their sum."""
    if t.mass is None:
        return t
    t.builder.counts = True
    lines = each(lambda e, m: e / (m * float(t.builder.n)), t.lines, t.mass)
    return replace(t, lines=lines, mass=None)
