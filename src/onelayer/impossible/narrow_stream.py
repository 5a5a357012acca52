"""Two real tokens through a residual stream of width one: no number of heads helps, and no readout.

Statement  for f(X)_1 = x1 + (x1 - x2)^3 on [-1, 1]^2 every readout of every such layer has sup error >= 1/8.
Gives      for a concrete layer two inputs with equal outputs and the error they cost, in exact arithmetic.
Rests on   nothing; the proof is in ``witness``.
Why        the first feed-forward layer of Proposition 1 cannot just be left out; spare channels can replace it.
Differs    a sketch with the constant 1/10 is sharpened to 1/8. Biases, hardmax and causal masks are covered;
           positions, a feed-forward stack before attention, and spare channels end it.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.network import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["narrow_stream"]
Array = NDArray[Any]

#: What every layer of this kind misses the target by.
ERROR_LOWER = Fraction(1, 8)
#: Digits of the exponential, and an upper bound on the error of a softmax weight computed with them.
DIGITS, WEIGHT_RADIUS = 100, Fraction(1, 10**90)
#: Tried distances t = k/GRID; 1/2 and 1, which the proof uses, are among them.
GRID = 16
#: How near to the edge of the diagonal the bisection goes, and the halvings it may take.
EDGE, HALVINGS = Fraction(1, 10**9), 1000


@dataclass(frozen=True)
class Witness:
    """Inputs (0, -t) and (x, x) with equal outputs at token 1. ``second`` is x rounded to a float."""

    first: Array  # [2, 1]
    second: Array  # [2, 1]
    error_lower: float


@dataclass(frozen=True)
class Narrow:
    """The layer as rational numbers: head h has value v_h and, at x1 = 0, logit difference m_h (x1 - x2)."""

    values: tuple[Fraction, ...]  # v_h = W_V W_O
    slopes: tuple[Fraction, ...]  # m_h
    kind: str
    causal: bool

    @property
    def gain(self) -> Fraction:
        """1 + A: on the diagonal the layer multiplies the stream by it."""
        return 1 + sum(self.values, Fraction(0))

    def diagonal(self, t: Fraction) -> tuple[Fraction, Fraction]:
        """x(t) with SA(x, x)_1 = SA(0, -t)_1, as centre and radius: -t sum_h v_h w_h(t) / (1 + A)."""
        centre = radius = Fraction(0)
        for v, m in zip(self.values, self.slopes, strict=True):
            weight, error = self._weight(m * t)
            centre, radius = centre - t * v * weight, radius + abs(t * v) * error
        return centre / self.gain, radius / abs(self.gain)

    def _weight(self, z: Fraction) -> tuple[Fraction, Fraction]:
        """What token 1 gives to token 2 when its own logit is larger by z."""
        if self.causal:
            return Fraction(0), Fraction(0)
        if z == 0:
            return Fraction(1, 2), Fraction(0)
        if self.kind == "hardmax":
            return Fraction(z < 0), Fraction(0)
        if abs(z) > 300:  # then e^-|z| is below the radius
            return Fraction(z < 0), WEIGHT_RADIUS
        with decimal.localcontext(prec=DIGITS):
            small = (-Decimal(abs(z.numerator)) / Decimal(z.denominator)).exp()
            return Fraction((small if z > 0 else Decimal(1)) / (1 + small)), WEIGHT_RADIUS


def target(X: Array) -> Array:
    """f(X)_k = x_k + (x_k - the other)^3, which commutes with swapping the tokens."""
    cubed: Array = X + (X - X[::-1]) ** 3
    return cubed


def hypotheses(model: Transformer) -> None:
    """Refuse anything but attention first on a stream of width one, without positions."""
    e = model.embedding
    found = [
        name
        for name, there in (
            ("a feed-forward stack before attention", bool(model.feedforward)),
            ("token ids", e is not None and e.table is not None),
            (f"tokens of width {model.token_width}", model.token_width != 1),
            (f"a residual stream of width {model.attention.W_Q.shape[1]}", model.attention.W_Q.shape[1] != 1),
            ("positions", e is not None and e.positions is not None and bool(np.ptp(e.positions, axis=0).any())),
        )
        if there
    ]
    if found:
        raise HypothesisError(
            "narrow_stream",
            "real tokens of width 1 into attention first, a residual stream of width 1, and no positions",
            f"the model has {' and '.join(found)}",
            "Leave it out to see the limit; with it, temperature_heads shows what is possible.",
        )


def witness(model: Transformer) -> Witness:
    """The worst pair found: whatever the readout, its error is at least half of what f differs by on the pair.

    Proof that it is at least 1/8. Put t = x1 - x2 and A = sum v_h. If the embedding is a + b x with b = 0, or if
    1 + A = 0, all inputs (x, x) have the same output and (1, 1), (-1, -1) cost 1. Else SA(x, x)_1 is affine in x,
    and one-to-one. A head gives its own token the weight 1/2 + tanh(m t/2)/2 (hardmax: 1/2 + sign(m t)/2), m a
    function of x1 alone, so the part of SA(x1, x1 - t)_1 odd in t is linear in t. For x1 = 0, SA(0, -t)_1 is equal
    to SA(x, x)_1 for
        x(t) = (-A t/2 + E(t))/(1 + A),   E even and continuous, E(0) = 0,   x(t) - x(-t) = k t.
    Where x(t) is in [-1, 1] the pair (0, -t), (x, x) costs |x(t) - t^3|/2. Let e be the largest such cost.
    (1) All of t = +-1/2, +-1 in range: |k - 2| <= 4e and |k/2 - 1/4| <= 4e, so 3/2 <= 4e + 8e and e >= 1/8.
    (2) Else |x| = 1 at some T or -T with x(+-s) in range for s <= T (x is continuous): there f is T^3 away from 0
        and x is 1 away, so 2e >= 1 - T^3. T <= 1/2 costs 7/16. Otherwise +-1/2 are in range, k <= 1/2 + 8e. Wrong
        signs cost 1/2. So x(T) = 1, or else x(-T) = -1, which is the same with t and x reversed. In range,
        x(-T) <= -T^3 + 2e, so k T >= 1 + T^3 - 2e. If e < 1/8, then 3T/2 > 3/4 + T^3; but T^3 - 3T/2 + 3/4 > 0 for
        T > 0, with smallest value 0.043 at T = 1/sqrt(2). QED
    A causal layer shows token 1 only itself, x(t) = 0, and t = 1 costs 1/2.
    """
    hypotheses(model)
    layer = _narrow(model)
    if layer is None or layer.gain == 0:
        ones = np.ones((2, 1))
        return Witness(ones, -ones, 1.0)
    best = max(_pairs(layer), key=lambda pair: pair[2])
    t, x, cost = best
    half = float(np.nextafter(float(cost), -np.inf))
    return Witness(np.array([[0.0], [-float(t)]]), np.full((2, 1), float(x)), half)


def error_lower(model: Transformer) -> float:
    """A lower bound on the sup error of any readout behind this attention layer, in real arithmetic."""
    return witness(model).error_lower


def _pairs(layer: Narrow) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """(t, x, cost) on the grid until x leaves the diagonal, then at the place where it does."""
    inside = Fraction(0)
    for k in range(1, GRID + 1):
        t = Fraction(k, GRID)
        if not _in_range(layer, t):
            yield from _costs(layer, _edge(layer, inside, t))
            return
        yield from _costs(layer, t)
        inside = t


def _costs(layer: Narrow, t: Fraction) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    for s in (t, -t):
        x, radius = layer.diagonal(s)
        yield s, x, (abs(x - s**3) - radius) / 2


def _in_range(layer: Narrow, t: Fraction) -> bool:
    """Whether the diagonal certainly has a point for both t and -t."""
    return all(abs(x) + radius <= 1 for x, radius in map(layer.diagonal, (t, -t)))


def _edge(layer: Narrow, inside: Fraction, outside: Fraction) -> Fraction:
    """A distance still in range at which |x(t)| or |x(-t)| is nearly 1."""
    for _ in range(HALVINGS):
        if max(abs(layer.diagonal(s)[0]) for s in (inside, -inside)) >= 1 - EDGE:
            break
        middle = (inside + outside) / 2
        if _in_range(layer, middle):
            inside = middle
        else:
            outside = middle
    return inside


def _narrow(model: Transformer) -> Narrow | None:
    """The weights as the rational numbers they are; None if the embedding forgets the token."""
    a, e = model.attention, model.embedding
    slope, shift = Fraction(1), Fraction(0)
    if e is not None and e.lift is not None:
        slope = Fraction(float(e.lift[0, 0]))
        shift += Fraction(float(e.bias[0])) if e.bias is not None else 0
        shift += Fraction(float(e.positions[0, 0])) if e.positions is not None else 0
    if slope == 0:
        return None
    W_Q, W_K, W_V = (_rows(W[:, 0]) for W in (a.W_Q, a.W_K, a.W_V))
    W_O = _rows(a.W_O[:, :, 0])
    b_Q = _rows(np.zeros_like(a.W_Q[:, 0]) if a.b_Q is None else a.b_Q)
    queries = [[shift * w + b for w, b in zip(*head, strict=True)] for head in zip(W_Q, b_Q, strict=True)]
    slopes = tuple(slope * _dot(q, k) for q, k in zip(queries, W_K, strict=True))
    return Narrow(tuple(_dot(v, o) for v, o in zip(W_V, W_O, strict=True)), slopes, a.kind, a.causal)


def _rows(matrix: Array) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in matrix.tolist()]


def _dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
