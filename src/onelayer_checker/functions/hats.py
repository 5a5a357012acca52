"""Networks that copy tokens by position and interpolate on a Kuhn triangulation, recognised exactly.

The readout has one group per vertex v of a grid of spacing H, the hat relu(H - max_i (t_i - v_i)_+ - max_i (v_i -
t_i)_+). In real arithmetic the hats of a grid add up to H, and on each simplex (a cell, an order of the t_i in it)
only the hats of its m + 1 corners are not 0, and they are affine: the network is the affine interpolant of its
values at the corners. How far that is from a target is bounded simplex by simplex: a box in it, the difference at
the centre, and the difference of the slopes times the radius.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Arithmetic, Array, dot, gamma
from onelayer_checker.core.graph import Network, Stream
from onelayer_checker.core.layers import Layer
from onelayer_checker.functions.simplices import sup_error
from onelayer_checker.functions.targets import Program

#: How far the logit of the token that a head copies must be above the others.
APART = 128.0


@dataclass(frozen=True)
class Hats:
    """Values at the vertices, with one axis per coordinate and a last one for the outputs."""

    H: float
    values: Array
    gates: int  # 0, or the number of places, one of which picks its share of the outputs
    size: float  # at least what the terms of an answer add up to, were they all positive

    @property
    def m(self) -> int:
        return self.values.ndim - 1

    @property
    def levels(self) -> int:
        return len(self.values) - 1


def recognise(layers: tuple[Layer, ...]) -> Hats | None:
    """The readout after its first layer, compared number by number with the only form that is known."""
    m = sum(layer.weight.ndim == 3 for layer in layers)
    first, blocks, tail = layers[0], layers[1 : m + 1], layers[m + 1 :]
    axes = [layer.weight.ndim for layer in layers]
    if m < 1 or axes not in ([2] + [3] * m + [2], [2] + [3] * m + [2, 2]) or first.inputs < m:
        return None
    gates, G = first.inputs - m, len(blocks[0].weight)
    V = G - gates
    if first.bias.size != G * 2 * m or 2**m > V or (len(tail) == 2) != (gates > 0):
        return None
    b = first.bias.reshape(G, m, 2)
    at, H = b[:V, :, 1], float(blocks[-1].bias[0])
    D = round(V ** (1 / m)) - 1
    shape = (D + 1,) * m
    grid = np.stack(np.unravel_index(np.arange(min(V, (D + 1) ** m)), shape), axis=1) * H
    whole = np.rint(H) == H and H >= 1 and H * D < 2.0**24
    if not whole or (D + 1) ** m != V or not np.array_equal(at, grid):
        return None
    expected = np.zeros((first.inputs, G, m, 2))
    for i in range(m):
        expected[i, :V, i] = 1.0, -1.0
    expected[m + np.arange(gates), V + np.arange(gates), 0, 0] = 1.0
    right = np.array_equal(first.weight.reshape(expected.shape), expected)
    right &= np.array_equal(b[:V, :, 0], -at) and not b[V:].any()
    for i, block in enumerate(blocks[:-1], start=1):
        wanted = np.zeros((G, 2 * m, 2 * m)) + np.eye(2 * m)
        for side in (0, 1):  # what component i exceeds the largest of those before it by
            wanted[:V, side : 2 * i : 2, 2 * i + side] = -1.0
        right &= np.array_equal(block.weight, wanted) and not block.bias.any()
    last = np.full((G, 2 * m, 1), -1.0)
    last[V:] = 0.0
    last[V:, 0] = 1.0
    top = np.concatenate([np.full(V, H), np.zeros(gates)])
    right &= np.array_equal(blocks[-1].weight, last) and np.array_equal(blocks[-1].bias, top)
    return _values(tail, shape, gates, H) if right else None


def _values(tail: tuple[Layer, ...], shape: tuple[int, ...], gates: int, H: float) -> Hats | None:
    """Vertex values; with gates relu(value + wall (place - 1)) is 0 for all places but one."""
    V, (W, b) = int(np.prod(shape)), (tail[0].weight, tail[0].bias)
    if not gates:
        size = (float(np.abs(W).max()) * H + float(np.abs(b).max())) * UP
        return Hats(H, (W * H + b).reshape(*shape, -1), 0, size)
    q = len(tail[1].bias)
    wall = -float(b[0])
    right = (b == -wall).all() and np.array_equal(W[V:], np.repeat(np.eye(gates), q, 1) * wall)
    right = right and np.array_equal(tail[1].weight, np.tile(np.eye(q), (gates, 1)))
    if not right or W[:V].min() < 0 or not W[:V].max() * H <= wall / 2:
        return None
    size = (float(W[:V].max()) * H + float(np.abs(tail[1].bias).max()) + 2 * wall) * UP
    return Hats(H, (W[:V] * H + np.tile(tail[1].bias, gates)).reshape(*shape, -1), gates, size)


@dataclass(frozen=True)
class Gather:
    """Coordinate c of token k is scale (x_(order[k, c]) - origin), up to ``error``, in some arithmetic."""

    order: Array  # [n, m] variables, token-major
    scale: float
    origin: float
    error: float


def gather(network: Network, n: int, d: int, hats: Hats, largest: float, A: Arithmetic) -> Gather | None:
    """Recognise heads that copy tokens by position, for tokens with components up to ``largest``.

    Tokens reach only their own d channels, which no query or key reads: the logits are the same for all of them.
    The largest becomes exactly 0 when the maximum is subtracted, and its weight exactly 1 before it is normalised;
    the others are far below it, and their weights almost 0. Values, projections and the first layer of the readout
    only copy, and the stream is 0 where a head writes, so that the error of a copy is that of an average.
    """
    b, m = network.bottleneck.bias, hats.m
    source = _copies(network, n, d, hats)
    if source is None:
        return None
    stream = Stream(network, network.embed(np.zeros((1, n, d)), 0.0, A).reshape(1, n, -1), A)
    logits = dot(stream.heads("Q"), stream.keys(), A)
    at = logits.m[0].argmax(axis=-1)  # [head, query]
    chosen = np.arange(n) == at[..., None]
    apart = np.where(chosen, logits.low[0], np.inf).min(-1) - np.where(chosen, -np.inf, logits.high[0]).max(-1)
    if not (apart >= APART).all() or network.causal:
        return None
    O, places = network.tensors["attention.W_O"], network.tensors["embedding.positions"]
    if not 4 * n * (np.abs(O).sum((0, 1)).max() * largest + np.abs(places).max()) < A.big:  # in any channel
        return None
    leak = n * (2.0**-180 + 4 * A.tiny)  # of n weights: each is below e^-127, or what underflow makes of that
    small = 64 * n * (A.tiny + TINY)
    copied = largest * (leak + float(gamma(2 * n + 12, A.u)) * (1 + leak)) * UP + small * (2 + largest)
    scale = float(network.bottleneck.weight.max())
    size = scale * (largest + copied) + abs(float(b[0]))
    error = (scale * copied + 4 * A.u * size) * UP + small * (2 + scale + largest)  # the scale may be flushed
    order = at.T[:, source // d] * d + source % d
    one_to_one = (np.sort(order, axis=1) == np.arange(m)).all()
    return Gather(order, scale, -float(b[0]) / scale, error) if one_to_one and error < np.inf else None


def _copies(network: Network, n: int, d: int, hats: Hats) -> Array | None:
    """Which head and component each coordinate copies; None unless copying is all that is done to tokens."""
    T, W, b, m = network.tensors, network.bottleneck.weight, network.bottleneck.bias, hats.m
    w, s = T["attention.W_Q"].shape[1:]
    lift, places, V, O = (
        T.get("embedding.lift"),
        T.get("embedding.positions"),
        T["attention.W_V"],
        T["attention.W_O"],
    )
    if lift is None or places is None or network.feedforward.layers or "embedding.bias" in T or n * d != m:
        return None
    if hats.gates not in (0, n):
        return None
    read_only = T["attention.W_Q"][:, :d].any() or T["attention.W_K"][:, :d].any() or places[:n, :d].any()
    value = np.zeros((w, s))
    value[:d, :d] = np.eye(d, min(d, s))
    if read_only or not np.array_equal(lift, np.eye(d, w)) or not (value == V).all():
        return None
    scale, source = float(W.max()), np.zeros(m, np.intp)
    for c in range(W.shape[1]):
        row, *more = np.flatnonzero(W[:, c]).tolist() or [0, 0]
        feeds = np.argwhere(O[:, :, row])
        if c >= m:  # a gate: the place itself
            right = W[row, c] == 1 and b[c] == 0 and not feeds.size
            right = right and np.array_equal(places[:n, row], np.eye(n)[c - m])
        else:
            right = W[row, c] == scale and b[c] == b[0] and not places[:n, row].any() and len(feeds) == 1
            right = right and feeds[0][1] < d and O[feeds[0][0], feeds[0][1], row] == 1
        if not right or more or row < d:
            return None
        if c < m:
            source[c] = feeds[0][0] * d + feeds[0][1]
    return source if np.frexp(scale)[0] == 0.5 else None  # a power of two


def rounding(hats: Hats, gathered: Gather, A: Arithmetic) -> float:
    """How far the answers computed in A may be from the interpolant at the exact coordinates.

    docs/derivations.md derives every constant. A running maximum is as good as its worst part, and parts of a hat
    that is not 0 are at most 1.01 H: each side of it is off by at most 2.1 (m + 3) u H, and its sum by at most 3.1
    (2 m + 3) u H more. At most 3^m hats are not exactly 0. The interpolant changes by at most the sum over axes of
    its largest differences, over H, when coordinates move. Its values W H + b are rounded by the checker.
    """
    m, F, size = hats.m, hats.values, hats.size
    steep = sum(float(np.abs(np.diff(F, axis=i)).max()) for i in range(m)) / hats.H
    near = 3.0**m
    one = (4.2 * (m + 3) + 3.1 * (2 * m + 3)) * 1.1 * A.u
    if not (near * one < 0.25 and 4 * size < A.big):  # all hats together might open a gate, or overflow
        return np.inf
    total = steep * gathered.error + near * one * 2 * size + float(gamma(near + 8, A.u)) * 4 * size
    flushed = 64 * m * m * near * (A.tiny + TINY) * (1 + gathered.scale) * (1 + size) * (1 + hats.H)
    return total * UP + 2.0**-40 * size + flushed


def judge(
    network: Network, target: Program, hats: Hats, low: float, high: float, limit: float, A: Arithmetic
) -> float | str:
    """A bound on the error on all of [low, high]^m, or why there is none."""
    n, d, m, q = target.n, target.d, hats.m, target.components
    found = gather(network, n, d, hats, max(-low, high), A)
    if found is None:
        return "the layers before the hats are not seen to copy tokens by position"
    # Vertices and the ends of boxes are whole numbers over FINEST * scale, below 2^52: no rounding moves them, and
    # with such a scale none of them overflows or underflows.
    whole = found.scale * found.origin
    if whole != np.rint(whole) or abs(whole) >= 2.0**40 or not 2.0**-900 <= found.scale <= 2.0**900:
        return "the grid does not begin at a whole number, or its spacing is out of range"
    last = Fraction(found.scale) * (Fraction(high) - Fraction(found.origin)) + Fraction(found.error)
    if not (found.origin <= low and last <= hats.levels * Fraction(hats.H)):
        return "the grid of hats does not cover the box"
    width = hats.H / found.scale  # a whole number over a power of two
    rounded = rounding(hats, found, A)
    if not rounded < limit:
        return f"rounding alone may cost {rounded:.6g}"
    worst = 0.0
    views: dict[tuple[int, ...], list[int]] = {}
    for k in range(n):
        views.setdefault(tuple(found.order[k].tolist()), []).append(k)
    for order, tokens in views.items():
        F = np.transpose(hats.values, (*np.argsort(order).tolist(), m))
        one_each = target.per == "token"
        lines = [target.outputs[k * q + c] for k in tokens for c in range(q)] if one_each else list(target.outputs)
        if hats.gates:
            lines = lines if one_each else lines * len(tokens)
            F = F.reshape(*F.shape[:-1], n, q)[..., tokens, :].reshape(*F.shape[:-1], -1)
        elif one_each:
            F = np.tile(F, len(tokens))
        part = Program(n, d, "sequence", len(lines), target.lines, tuple(lines))
        worst = max(worst, sup_error(part, F, found.origin, width, (low, high), (limit - rounded) / UP / UP))
    return (worst + rounded) * UP
