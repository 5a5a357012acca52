"""Real tokens through a residual stream no wider than they are: no number of heads helps, and no readout.

Statement  f(X)_k = x_k + 8 (x_k - mean X)^3, component by component, on [-1, 1]^(n x d): for every n >= 2 and
           d >= 1 every readout of every such layer has sup error >= 1/8.
Gives      for a concrete layer two inputs with equal outputs and the error they cost, in exact arithmetic.
Rests on   nothing; the proof is in ``witness``.
Why        the first feed-forward layer of Proposition 1 cannot just be left out; spare channels can replace it.
Differs    Proposition 1 is about means of errors (L^p), this is about the largest. Biases, hardmax and causal masks
           are covered, and heads that write into any component; positions, a feed-forward stack before attention
           and spare channels end it. Open: whether 1/8 is the best constant at any n and d (these pairs give no
           more, but they are not all pairs), means of errors for n >= 3, windows, flagged keys, loops and further
           layers.
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

from onelayer.errors import OptionError
from onelayer.impossible.collision import has_positions, has_token_ids, refuse
from onelayer.network import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["narrow_stream"]
Array = NDArray[Any]
Vector = tuple[Fraction, ...]

#: What every layer of this kind misses the target by.
ERROR_LOWER = Fraction(1, 8)
#: Digits of the exponentials, and an upper bound on the error of a mean place computed with them.
DIGITS, PLACE_RADIUS = 100, Fraction(1, 10**90)
#: Tokens whose exponent is below minus this together weigh less than that, for fewer than 10^30 of them.
NOTHING = 300
#: Tried distances t = k/GRID; 1/2 and 1, which the proof uses, are among them.
GRID = 16
#: How near to the edge of the diagonal the bisection goes, and the halvings it may take.
EDGE, HALVINGS = Fraction(1, 10**9), 1000


@dataclass(frozen=True)
class Witness:
    """Inputs (0, -t/(n-1), -2t/(n-1), ..., -t) in component 1, and (x, ..., x), with equal outputs at token 1.

    ``distance`` is t; x lies within ``radius`` of ``diagonal`` in each component, all as fractions. ``first`` and
    ``second`` are the inputs rounded to floats.
    """

    first: Array  # [n, d]
    second: Array  # [n, d]
    error_lower: float
    distance: Fraction
    diagonal: Vector
    radius: Fraction


@dataclass(frozen=True)
class Narrow:
    """The layer as rational numbers, seen from the family above.

    At token 1 = 0 head h gives place s of the family a logit -t m_h s, and moves the point of the diagonal that has
    the same output by -t M_h(t) u_h, M_h the mean place under its weights.
    """

    moves: tuple[Vector, ...]  # u_h
    slopes: Vector  # m_h
    n: int
    kind: str
    causal: bool

    def diagonal(self, t: Fraction) -> tuple[Vector, Fraction]:
        """x(t) whose sequence (x, ..., x) has the output of the family at t: centre and radius."""
        centre, radius = [Fraction(0)] * len(self.moves[0]), Fraction(0)
        for move, slope in zip(self.moves, self.slopes, strict=True):
            place, error = self._mean_place(slope * t)
            centre = [c - t * place * u for c, u in zip(centre, move, strict=True)]
            radius += abs(t) * error * max(map(abs, move))
        return tuple(centre), radius

    def _mean_place(self, z: Fraction) -> tuple[Fraction, Fraction]:
        """sum s e^(-z s) / sum e^(-z s) over the places s = 0, 1/(n-1), ..., 1 that token 1 sees."""
        if self.causal:
            return Fraction(0), Fraction(0)
        if z == 0:
            return Fraction(1, 2), Fraction(0)
        if self.kind == "hardmax":
            return Fraction(z < 0), Fraction(0)
        if z < 0:  # the family is symmetric about its middle
            place, error = self._mean_place(-z)
            return 1 - place, error
        with decimal.localcontext(prec=DIGITS):
            step, mass, moment = (
                -Decimal(z.numerator) / Decimal(z.denominator) / (self.n - 1),
                Decimal(1),
                Decimal(0),
            )
            for j in range(1, self.n):
                if -step * j > NOTHING:
                    break
                weight = (step * j).exp()
                mass, moment = mass + weight, moment + j * weight
            return Fraction(moment / mass) / (self.n - 1), PLACE_RADIUS


def target(X: Array) -> Array:
    """f(X)_k = x_k + 8 (x_k - mean X)^3, which commutes with permuting the tokens; n = 2: x_1 + (x_1 - x_2)^3."""
    cubed: Array = X + 8 * (X - X.mean(axis=-2, keepdims=True)) ** 3
    return cubed


def hypotheses(model: Transformer) -> None:
    """Refuse anything but attention first on a stream no wider than the tokens, without positions."""
    width, ids = model.attention.W_Q.shape[1], has_token_ids(model)
    parts = (
        ("a feed-forward stack before attention", bool(model.feedforward)),
        ("token ids", ids),
        (f"a residual stream of width {width}", not ids and width > model.token_width),
        ("positions", has_positions(model)),
    )
    needs = (
        "real tokens into one layer of softmax or hardmax attention, on a stream no wider than they are, no places"
    )
    remedy = "Leave it out to see the limit; a wider stream ends it, as temperature_heads shows."
    refuse("narrow_stream", needs, model, parts, remedy)


def witness(model: Transformer, n: int = 2) -> Witness:
    """The worst pair found: whatever the readout, its error is at least half of what f differs by on the pair.

    Proof that it is at least 1/8. Tokens are rows; the embedding is x L + b, head h multiplies averages by W_h, and
    A = sum W_h. A sequence (x, ..., x) has the output (x L + b)(I + A). If L (I + A) has not rank d, some nu of
    largest component 1 is lost by it, and (nu, ..., nu), (-nu, ..., -nu) cost 1. Else the output determines x.
    Take the tokens -t s e_1 at the places s = 0, 1/(n-1), ..., 1. The query of token 1 = 0 does not depend on t, so
    the logits are a constant minus t m_h s, and the average is b - t M_h(t) e_1 L, M_h the mean place. The places
    are symmetric about 1/2: exchanging s and 1 - s gives M_h(t) + M_h(-t) = 1, with hardmax too. So the family has
    the output of (x, ..., x) for
        x(t) = -t sum_h M_h(t) u_h,  u_h = e_1 L W_h (L (I + A))^-1,   x(t) - x(-t) = -t sum_h u_h,
    continuous, x(0) = 0. What heads write into other components is in it: it only moves x. On the family f is t^3
    in component 1, 0 in the others (the mean is -t/2); on the diagonal it is x. Where x(t) is in the box, the pair
    costs max(|x_1 - t^3|, |x_i|)/2. Let e be the largest such cost, and x_1(t) - x_1(-t) = k t.
    (1) All of t = +-1/2, +-1 in the box: |k - 2| <= 4e and |k/2 - 1/4| <= 4e, so 3/2 <= 4e + 8e and e >= 1/8.
    (2) Else a component has size 1 at some T or -T with x(+-s) in the box for s <= T. Another than the first costs
        1/2. The first: f is T^3 away from 0, so 2e >= 1 - T^3. T <= 1/2 costs 7/16. Otherwise +-1/2 are in the box,
        k <= 1/2 + 8e. Wrong signs cost 1/2. So x_1(T) = 1, or else x_1(-T) = -1, which is the same with t and x
        reversed. x_1(-T) <= -T^3 + 2e, so k T >= 1 + T^3 - 2e. If e < 1/8, then 3T/2 > 3/4 + T^3; but
        T^3 - 3T/2 + 3/4 > 0 for T > 0, with smallest value 0.043 at T = 1/sqrt(2). QED
    A causal layer shows token 1 only itself, x(t) = 0, and t = 1 costs 1/2.
    """
    hypotheses(model)
    if n < 2:
        raise OptionError("narrow_stream", "at least two tokens", f"n={n}", "Give n=2 or more.")
    layer, lost = _narrow(model, n)
    if layer is None:
        top = max(map(abs, lost))
        nu = tuple(c / top for c in lost)
        rows = np.tile(np.array([float(c) for c in nu]), (n, 1))
        return Witness(rows, -rows, 1.0, Fraction(0), nu, Fraction(0))
    t, x, radius, cost = max(_pairs(layer), key=lambda pair: pair[3])
    first = np.zeros((n, len(x)))
    first[:, 0] = [float(-t * j / (n - 1)) for j in range(n)]
    second = np.tile(np.array([float(c) for c in x]), (n, 1))
    return Witness(first, second, float(np.nextafter(float(cost), -np.inf)), t, x, radius)


def error_lower(model: Transformer, n: int = 2) -> float:
    """A lower bound on the sup error of any readout behind this attention layer, in real arithmetic."""
    return witness(model, n).error_lower


def _pairs(layer: Narrow) -> Iterator[tuple[Fraction, Vector, Fraction, Fraction]]:
    """(t, x, its radius, cost) on the grid until x leaves the box, then at the place where it does."""
    inside = Fraction(0)
    for k in range(1, GRID + 1):
        t = Fraction(k, GRID)
        if not _in_box(layer, t):
            yield from _costs(layer, _edge(layer, inside, t))
            return
        yield from _costs(layer, t)
        inside = t


def _costs(layer: Narrow, t: Fraction) -> Iterator[tuple[Fraction, Vector, Fraction, Fraction]]:
    for s in (t, -t):
        x, radius = layer.diagonal(s)
        apart = max(abs(x[0] - s**3), *map(abs, x[1:]), Fraction(0))
        yield s, x, radius, (apart - radius) / 2


def _in_box(layer: Narrow, t: Fraction) -> bool:
    """Whether the diagonal certainly has a point for both t and -t."""
    return all(max(map(abs, x)) + radius <= 1 for x, radius in map(layer.diagonal, (t, -t)))


def _edge(layer: Narrow, inside: Fraction, outside: Fraction) -> Fraction:
    """A distance still in range at which a component of x(t) or x(-t) is nearly 1."""
    for _ in range(HALVINGS):
        if max(abs(c) for s in (inside, -inside) for c in layer.diagonal(s)[0]) >= 1 - EDGE:
            break
        middle = (inside + outside) / 2
        if _in_box(layer, middle):
            inside = middle
        else:
            outside = middle
    return inside


def _narrow(model: Transformer, n: int) -> tuple[Narrow | None, Vector]:
    """The weights as the rational numbers they are; instead, if the output forgets a direction, that direction."""
    a, e = model.attention, model.embedding
    width = a.W_Q.shape[1]
    lift, shift = _rows(np.eye(width)), [Fraction(0)] * width
    if e is not None and e.lift is not None:
        lift = _rows(e.lift)
        for more in (e.bias, None if e.positions is None else e.positions[0]):
            shift = shift if more is None else [x + y for x, y in zip(shift, _rows(more[None])[0], strict=True)]
    heads = [_product(_rows(V), _rows(O)) for V, O in zip(a.W_V, a.W_O, strict=True)]
    whole = [[Fraction(i == j) + sum(W[i][j] for W in heads) for j in range(width)] for i in range(width)]
    inverse, lost = _invert(_product(lift, whole))
    if inverse is None:
        return None, lost
    moves = tuple(tuple(_product(_product(lift[:1], W), inverse)[0]) for W in heads)
    biases = np.zeros(a.W_Q.shape[::2]) if a.b_Q is None else a.b_Q
    slopes = []
    for W_Q, W_K, b_Q in zip(a.W_Q, a.W_K, biases, strict=True):
        query = [x + b for x, b in zip(_product([shift], _rows(W_Q))[0], _rows(b_Q[None])[0], strict=True)]
        key = _product(lift[:1], _rows(W_K))[0]
        slopes.append(sum((x * y for x, y in zip(query, key, strict=True)), Fraction(0)))
    return Narrow(moves, tuple(slopes), n, a.kind, a.causal), ()


def _invert(matrix: list[list[Fraction]]) -> tuple[list[list[Fraction]] | None, Vector]:
    """R with matrix R = I, [d, d]; or, if the rows depend on each other, None and nu with nu matrix = 0."""
    d, width = len(matrix), len(matrix[0])
    rows = [[*row, *(Fraction(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for i in range(d):
        at = next(((r, c) for c in range(width) for r in range(i, d) if rows[r][c]), None)
        if at is None:
            return None, tuple(rows[i][width:])
        rows[i], rows[at[0]] = rows[at[0]], rows[i]
        head = rows[i][at[1]]
        rows[i] = [x / head for x in rows[i]]
        for r in range(d):
            if r != i and (factor := rows[r][at[1]]):
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[width:] for row in rows], ()  # full rank and no wider than high: square, pivots in order


def _product(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in zip(*b, strict=True)]
        for row in a
    ]


def _rows(matrix: Array) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in np.asarray(matrix).tolist()]
