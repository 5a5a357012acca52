"""Do two sequences get the same ids at the tokens they share? The question every negative result asks.

A layer is run twice with the library's own forward pass, and the outputs at equal tokens are compared: in its own
floating point within a stated rounding radius, or, for hardmax, exactly, the same pass over rational numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.network import Attention
from onelayer.network.forward import run_attention
from onelayer.network.heads import visible_to

Array = NDArray[Any]


@dataclass(frozen=True)
class Agreement:
    """Whether ids coincide at all shared tokens; true in a condition exactly if they do."""

    coincide: bool
    difference: float  # the largest componentwise difference of two ids that should be equal, as computed
    radius: float  # what rounding alone can make of equal ids; 0 in exact arithmetic
    pairs: tuple[tuple[int, int], ...]  # places (in X, in Y) of equal tokens

    def __bool__(self) -> bool:
        return self.coincide


def ids(attention: Attention, X: Array) -> Array:
    """Ids [n, width] of one sequence [n, width]: the residual stream after the layer."""
    h = X[None]
    updated: Array = (h + run_attention(attention, h, visible_to(attention, h, None)))[0]
    return updated


def shared_places(X: Array, Y: Array) -> tuple[tuple[int, int], ...]:
    """Places (i, j) with X[i] = Y[j]."""
    return tuple(zip(*(a.tolist() for a in np.nonzero((X[:, None] == Y[None]).all(-1))), strict=True))


def compare(attention: Attention, X: Array, Y: Array) -> Agreement:
    """Ids at the shared tokens, in the layer's own floating point, within twice the rounding radius."""
    pairs = shared_places(X, Y)
    dtype = attention.W_Q.dtype
    a, b = (ids(attention, Z.astype(dtype)) for Z in (X, Y))
    difference = max((float(np.abs(a[i] - b[j]).max()) for i, j in pairs), default=0.0)
    radius = rounding_radius_upper(attention, X) + rounding_radius_upper(attention, Y)
    return Agreement(difference <= radius, difference, radius, pairs)


def compare_exactly(attention: Attention, X: Array, Y: Array) -> Agreement:
    """The same for a hardmax layer, over the rational numbers that its float weights are."""
    pairs = shared_places(X, Y)
    weights: dict[str, Any] = {k: _rational(w) for k, w in vars(attention).items() if isinstance(w, np.ndarray)}
    exact = replace(attention, **weights)
    a, b = (ids(exact, _rational(Z)) for Z in (X, Y))
    difference = max((max(abs(x - y) for x, y in zip(a[i], b[j], strict=True)) for i, j in pairs), default=0)
    return Agreement(difference == 0, float(difference), 0.0, pairs)


def rounding_radius_upper(attention: Attention, X: Array) -> float:
    """How far a computed id component may be from the exact one, given that hardmax has picked the right keys.

    k = n + d + s + H + 16 roundings of relative size u each, in any order of summation, act on sums of absolute
    values: on logits (where they become relative errors of the softmax weights), on averages and on the output.
    """
    n, d = X.shape
    unit = (n + d + attention.head_size + attention.heads + 16) * float(np.finfo(attention.W_Q.dtype).eps)
    h = np.abs(X).astype(np.float64)
    total = float(h.max())
    blurred = 0.0
    for i in range(attention.heads):
        q, k, v = (h @ np.abs(W[i]) for W in (attention.W_Q, attention.W_K, attention.W_V))
        q = q if attention.b_Q is None else q + np.abs(attention.b_Q[i])
        k = k if attention.b_K is None else k + np.abs(attention.b_K[i])
        logit = 4 * unit * float((q @ k.T).max())  # the error of a logit and of subtracting the largest
        if attention.kind == "softmax" and 2 * logit > 700:
            return math.inf
        output = float((v.max(0) @ np.abs(attention.W_O[i])).max())
        total += output
        blurred += output * (math.expm1(2 * logit) if attention.kind == "softmax" else 0.0)
    return float(4 * unit * total + 2 * blurred)


def _rational(array: Array) -> Array:
    return np.array([Fraction(x) for x in array.ravel().tolist()], dtype=object).reshape(array.shape)
