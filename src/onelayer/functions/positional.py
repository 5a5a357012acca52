"""Gather by position, then interpolate: the attention-first statement of 2507.10581, repaired.

Statement  heads that read only positions copy the tokens of a sequence side by side into spare channels; a ReLU
           stack of one hat per vertex of a Kuhn triangulation interpolates f linearly on each simplex.
Gives      a continuous model with |model - f| = O(h^2) for smooth f and O(h) for Lipschitz f, on the whole box;
           maps that are not equivariant as well.
Rests on   softmax weights that are 0 but for one key (logits 1024 apart); the hat of a vertex v,
           relu(1 - max_i(z_i)_+ - max_i(-z_i)_+) with z = (x - v)/h, and max(a, b) = a + relu(b - a) for a, b >= 0.
Why        a staircase has error h/2 times the slope; interpolation has none to first order.
Differs    the source claims any continuous map without positions, which is false (order); here n heads, positions
           and n d spare channels are part of the architecture, and the error has a rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.hats import Hats
from onelayer.gadgets.stacks import Covered, compose
from onelayer.ledger import Constant
from onelayer.network import Attention, Embedding, Linear, Transformer
from onelayer.problems.answers import AnswerForm
from onelayer.problems.scopes import Scope
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["positional"]
Array = NDArray[Any]
Kind = Literal["equivariant", "invariant", "ordered"]

#: exp(-1024) is 0 in float32 and in float64.
LOGIT = 1024.0
#: Coordinates are whole-number multiples of a step at vertices: the box is about this many steps wide, and all of
#: them are below 2^24, numbers of float32. Cells stick out of the box by up to D steps.
STEPS = 1 << 22


@dataclass(frozen=True)
class Lattice:
    """D cells along each of m = n d components, with vertices at origin + i * spacing; all dyadic, so exact."""

    n: int
    d: int
    low: float
    high: float
    levels: int
    dtype: np.dtype[Any]

    @property
    def scale(self) -> float:
        """2^K: a coordinate is scale * (x - origin)."""
        return float(np.exp2(np.floor(np.log2(STEPS / (self.high - self.low)))))

    @property
    def origin(self) -> float:
        return float(np.floor(self.low * self.scale) / self.scale)

    @property
    def spacing(self) -> float:
        """H, in coordinates: a whole number, large enough that the cells cover the box and what coordinates may be
        off by: n sums and products of numbers as large as the box is far out."""
        size = self.scale * max(abs(self.low), abs(self.high))
        rounding = (n_roundings(self.n) * size) * float(np.finfo(self.dtype).eps) / 2
        return float(np.ceil(((self.high - self.origin) * self.scale + 1.0 + rounding) / self.levels))

    @property
    def width(self) -> float:
        return self.spacing / self.scale

    @property
    def m(self) -> int:
        return self.n * self.d

    @property
    def count(self) -> int:
        return int((self.levels + 1) ** self.m)

    def vertices(self) -> Array:
        """[count, m] whole numbers from 0 to D, the first component slowest."""
        return np.stack(np.unravel_index(np.arange(self.count), (self.levels + 1,) * self.m), axis=1)

    def points(self) -> Array:
        """[count, n, d] the vertices; the last of a component may stick out of the box."""
        return (self.origin + self.width * self.vertices()).reshape(-1, self.n, self.d)


def n_roundings(n: int) -> int:
    """Of a token that is copied by a head over n places and moved and scaled, with room."""
    return 2 * n + 32


def at_vertices(values: Callable[[Array], Array], lattice: Lattice) -> Array:
    """[count, ...] values at the vertices, where they stick out of the box extrapolated from it.

    2 f(p) - f(q), with p the nearest point of the box and q the mirror image of the vertex at p: exact for what is
    linear there, in whatever order the components are.
    """
    x = lattice.points()
    p = np.clip(x, lattice.low, lattice.high)
    F = np.array(values(p), np.float64)
    outside = np.flatnonzero((p != x).any(axis=(1, 2)))
    if outside.size:
        q = np.clip(2 * p[outside] - x[outside], lattice.low, lattice.high)
        F[outside] += F[outside] - values(q)
    return F


def interpolate(values: Array, lattice: Lattice, X: Array) -> Array:
    """Values [V, K] at the vertices, interpolated at sequences [B, n, d]: what the hats compute, by sorting."""
    z = (np.asarray(X, np.float64).reshape(len(X), -1) - lattice.origin) / lattice.width
    cell = np.clip(np.floor(z), 0, lattice.levels - 1).astype(np.int64)
    order = np.argsort(cell - z, axis=1, kind="stable")  # the largest remainder first
    strides = (lattice.levels + 1) ** np.arange(lattice.m - 1, -1, -1)
    at, share = cell @ strides, np.take_along_axis(z - cell, order, axis=1)
    share = np.concatenate([np.ones((len(X), 1)), share, np.zeros((len(X), 1))], axis=1)
    total = (share[:, 0] - share[:, 1])[:, None] * values[at]
    for i in range(lattice.m):
        at = at + strides[order[:, i]]
        total += (share[:, i + 1] - share[:, i + 2])[:, None] * values[at]
    return np.asarray(total)


@dataclass(frozen=True)
class Interpolation:
    transformer: Transformer
    gadgets: tuple[Covered, ...]
    form: AnswerForm
    lattice: Lattice
    constants: tuple[Constant, ...]


def construct(
    values: Callable[[Array], Array], lattice: Lattice, kind: Kind, scope: Scope, components: int
) -> Interpolation:
    """``values`` [B, n, q] or [B, q] at sequences [B, n, d]."""
    cyclic = kind == "equivariant"  # token k reads x_k, x_(k+1), ...: one function serves all tokens
    gated = kind == "ordered" and scope == "token"  # one function for each place
    embedding, attention, bottleneck, channels = gather(lattice, cyclic, gated)
    F = at_vertices(values, lattice)
    if cyclic:
        F = F[:, 0]
    F = F.reshape(lattice.count, -1)
    made = compose(attention, embedding, (), (Affine(bottleneck), *_answers(F, lattice, gated)), channels)
    constants = (
        Constant("levels", lattice.levels, "D, cells of a component"),
        Constant("cell", lattice.width, "h, the distance of neighbouring vertices"),
        Constant("vertices", lattice.count, "(D + 1)^(n d), hats"),
        Constant("heads", attention.heads, "each copies the token of one place"),
        Constant("logit", LOGIT, "of the place that a head reads; the others have 0"),
    )
    return Interpolation(*made, AnswerForm(scope, None, components, False), lattice, constants)


def gather(lattice: Lattice, cyclic: bool, gated: bool) -> tuple[Embedding, Attention, Linear, tuple[str, ...]]:
    """Heads that copy token r, or the r-th after their own, into channels of its own; and the coordinates."""
    n, d, m, dtype = lattice.n, lattice.d, lattice.m, lattice.dtype
    width, s = d + n + m, max(n, d)
    lift, places = np.eye(d, width), np.zeros((n, width))
    places[:, d : d + n] = np.eye(n)
    W_Q, W_K, W_V, W_O = (np.zeros(shape) for shape in ((n, width, s),) * 3 + ((n, s, width),))
    k = np.arange(n)
    for r in range(n):
        W_Q[r, d + k, (k + r) % n if cyclic else r] = LOGIT
        W_K[r, d + k, k] = 1.0
        W_V[r, :d, :d] = np.eye(d)
        W_O[r, :d, d + n + r * d : d + n + (r + 1) * d] = np.eye(d)
    weight, bias = np.zeros((width, m + n * gated)), np.zeros(m + n * gated)
    weight[d + n :, :m] = lattice.scale * np.eye(m)
    bias[:m] = -lattice.scale * lattice.origin
    if gated:
        weight[d : d + n, m:] = np.eye(n)
    names = [f"x{i}" for i in range(d)] + [f"place{j}" for j in range(n)]
    names += [f"token{'+' if cyclic else ''}{r}.{i}" for r in range(n) for i in range(d)]
    W_Q, W_K, W_V, W_O = (W.astype(dtype) for W in (W_Q, W_K, W_V, W_O))
    return (
        Embedding(lift=lift.astype(dtype), positions=places.astype(dtype)),
        Attention(W_Q, W_K, W_V, W_O),
        Linear(weight.astype(dtype), bias.astype(dtype)),
        tuple(names),
    )


def _answers(F: Array, lattice: Lattice, gated: bool) -> tuple[Gadget, ...]:
    """Hats with values [V, outputs] over H; where they are gated, the place lets one token's through."""
    dtype, weight, constant = lattice.dtype, F / lattice.spacing, np.zeros(F.shape[1])
    passed = np.zeros((0, F.shape[1]))
    add: tuple[Gadget, ...] = ()
    if gated:
        n, q, low = lattice.n, F.shape[1] // lattice.n, float(F.min())
        wall = float(np.exp2(np.ceil(np.log2(2.0 * (F.max() - low) + 2.0**-20))))
        passed, constant = np.repeat(np.eye(n), q, axis=1) * wall, np.full(n * q, -wall)
        weight = (F - low) / lattice.spacing
        add = (Affine(Linear(np.tile(np.eye(q), (n, 1)).astype(dtype), np.full(q, low, dtype))),)
    arrays = (a.astype(dtype) for a in (weight, passed, constant))
    return (Hats(lattice.m, lattice.levels, lattice.spacing, *arrays), *add)
