"""Two numbers through attention first, on a stream of width 1: small mean error, without a quantiser.

Statement  for every continuous f on [-1, 1]^2, p < infinity and error there are softmax heads with query biases on
           a stream of width 1, nothing before them and one ReLU layer behind, that come as near to f in L^p.
Gives      the heads in closed form, and a readout fitted to the stream by least squares. Of a target that is a
           formula the checker proves the mean error on the whole square (`compile.in_mean`); others are measured.
Rests on   nothing; the proof is in ``construct``.
Why        the paper asks whether the first feed-forward layer of Proposition 1 can be left out: for n = 2 and d = 1
           many heads with biases replace it, in the norm of the question, but not in the sup norm (narrow_stream).
Differs    nothing of it is in the paper, whose heads have no biases. For other n and d see mean_universality. Open:
           heads without query biases; how many heads an error needs; and proofs for more tokens or components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import OptionError
from onelayer.gadgets.ridges import Ridges
from onelayer.network import Attention, Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["attention_first"]
Array = NDArray[Any]
Target = Callable[[Array, Array], Array]

#: From one cell's code to the next: (x1 - x2)/2 takes 2 of it, what is left tells neighbours apart.
SPACING = 2.25
#: From one slope to the next, about the smallest, and of how many of the steepest the shares are corrected.
RATIO, SMALLEST, CORRECTED = 2.0, 1 / 64, 3
#: Heads of one slope, for each unit of it: 1.5 lose more of the pairs that are far apart, 3 gain nothing.
DENSITY = 2.0
#: Between knots of the readout; points per side of the square that it is fitted to; the weight of its guess there.
KNOT, GRID, GUESS = 1 / 16, 160, 1e-3
#: Numbers in one block of points and heads.
BLOCK = 1 << 21


@dataclass(frozen=True)
class Heads:
    """Head h of token k gives token j the logit (slope_h x_k + shift_h) x_j; weight_h times its mean is added."""

    slope: Array
    shift: Array
    weight: Array

    @property
    def count(self) -> int:
        return len(self.slope)

    def attention(self) -> Attention:
        one = np.ones((self.count, 1, 1))
        slope, weight = (values[:, None, None] for values in (self.slope, self.weight))
        return Attention(slope, one, one, weight, b_Q=self.shift[:, None])

    def stream(self, x: Array, other: Array) -> Array:
        """What token x of the pair (x, other) becomes: (t + t sum_h weight_h tanh((slope_h x + shift_h) t/2))/2."""
        t, found = x - other, np.empty(len(x))
        for start in range(0, len(x), step := max(1, BLOCK // self.count)):
            rows = slice(start, start + step)
            logits = (x[rows, None] * self.slope + self.shift) * (t[rows, None] / 2)
            found[rows] = (1 + np.tanh(logits, out=logits) @ self.weight) * t[rows] / 2
        return found


class Coded(NamedTuple):
    """The model, and what it is made of."""

    transformer: Transformer
    heads: Heads
    knots: Array  # of the readout
    values: Array  # its values there

    def __call__(self, x: Array, other: Array) -> Array:
        """Its answers at token x of the pairs (x, other), as `evaluate` gives them but for rounding."""
        return np.asarray(np.interp(self.heads.stream(x, other), self.knots, self.values))


def code(x: Array, cells: int) -> Array:
    """The code of the cell of [-1, 1] that x lies in: multiples of SPACING, symmetric about 0."""
    at = np.clip(np.floor((x + 1) * cells / 2), 0, cells - 1)
    found: Array = SPACING * (at - (cells - 1) / 2)
    return found


def heads(cells: int, steepness: float) -> Heads:
    """Heads after which token x1 is about code(x1) + (x1 - x2)/2; about 4 for each unit of steepness."""
    count = max(2, math.ceil(math.log(steepness / SMALLEST, RATIO)) + 1)
    slopes = steepness * RATIO ** -np.arange(count)
    shares = math.log(RATIO) / math.log(2) * steepness * _shares(count)
    parts = []
    for slope, part in zip(slopes, shares, strict=True):
        M = math.ceil(DENSITY * slope) + 6
        places, weights = _spread(cells, M)
        parts.append((np.full(M, slope), -slope * places, part * weights))
    # All slopes below the smallest are one uniform head, by which the weights add up to -1.
    flat = (np.zeros(1), np.zeros(1), np.array([-1 - sum(weights.sum() for _, _, weights in parts)]))
    slope, shift, weight = (np.concatenate(columns) for columns in zip(*parts, flat, strict=True))
    return Heads(slope, shift, weight)


def _shares(count: int) -> Array:
    """Of the slopes RATIO^-i: -RATIO^-i is the integral over slopes, the steepest correct its end.

    The sum over all i without end is 0, and so are the first odd moments of what the sum of share_i tanh(z/RATIO^i)
    has beside a multiple of 1/z: the more vanish, the narrower is the step that comes of a step. A moment of order
    q is a sum of share_i RATIO^(i (q + 1)), where geometric series without end have the value of their formula.
    """
    first = np.arange(min(CORRECTED, count))
    order = 2.0 * first - 1
    moments = RATIO ** (first * (order[:, None] + 1))
    rest = RATIO ** (len(first) * order) / (1 - RATIO**order)
    return np.array([*np.linalg.solve(moments, rest), *-(RATIO ** -np.arange(float(len(first)), count))])


def _spread(cells: int, M: int) -> tuple[Array, Array]:
    """M places in [-1, 1] and weights, that integrate against C of ``construct``, exact for degrees below M.

    code(cos b) = sum_m s_m cos(m b) with s_m = 2 SPACING/(pi m) sum over edges cos(b_i) of sin(m b_i), C dx =
    sum_m s_m sin(m b) sin(b) db/pi, whose integrals against cos(m b) are (s_(m+1) - s_(m-1))/4; the weights
    interpolate at the places cos((j + 1/2) pi/M).
    """
    edges = np.arccos(np.linspace(-1, 1, cells + 1)[1:-1])
    m = np.arange(1, M + 1)
    s = np.zeros(M + 2)
    s[2:] = 2 * SPACING / math.pi * sum((np.sin(m * edge) for edge in edges), np.zeros(M)) / m
    s[0] = -s[2]  # s_(-1) and s_0 come before s_1
    integrals = (s[2:] - s[:-2]) / 4
    integrals[0] /= 2
    turned = integrals * np.exp(-0.5j * math.pi * np.arange(M) / M)
    weights = 2 / M * np.fft.fft(turned, 2 * M).real[:M]
    return np.cos((np.arange(M) + 0.5) * math.pi / M), weights


def construct(f: Target, cells: int, steepness: float | None = None) -> Coded:
    """A model of f(x, other), the answer at token x of the pair, on [-1, 1]^2.

    Proof of the statement, for heads and knots as dense as it takes. Those built here have RATIO, SMALLEST, DENSITY
    and KNOT fixed, so that the stream stays about 1e-5 away, and f must be smooth between knots.
    Let t = x1 - x2. A head with the logits (a x1 + b) x_j gives token 2 the weight
    (1 - tanh((a x1 + b) t/2))/2, so heads of weights w_h with sum -1 make of token 1
        y = t/2 + (t/2) sum_h w_h tanh((a_h x1 + b_h) t/2).
    With z = (x1 - c) t a head of slope a and shift -a c has tanh(a z/2), and for z != 0
        integral over a from 0 to B of tanh(B z/2) - tanh(a z/2)  ->  2 log(2)/z  as B grows,
    up to terms that are exponentially small in B |z|. Let C be a density on [-1, 1]. Heads of all slopes, with the
    places c of density C, then give as their sum over log(2), times t/2, the principal value of the integral of
    C(c)/(x1 - c) dc: t drops out, except where |x1 - c| < 1/(B |t|), and there the kernel is odd, so that the limit
    stands wherever C is smooth. For C = sum s_m sin(m b)/pi at c = cos b this integral is sum s_m cos(m b) at
    x1 = cos b: any function without a constant term, here the steps code(x1), whose C is integrable, and
    smooth except at edges. For t != 0 and x1 off the edges therefore y -> t/2 + code(x1). What C is integrated
    against is analytic, so finitely many slopes and places do, uniformly. So y is within e of t/2 +
    code(x1) but for a set of measure e. There y determines the cell of x1, and t within 2 e; a continuous
    piecewise linear readout, bounded as f is, is within the variation of f on a cell and on 2 e, and elsewhere
    wrong by at most 2 max |f|. Cells, then e, to 0. QED
    """
    if cells < 1:
        raise OptionError("attention_first", "at least one cell", f"cells={cells}", "Give 1 or more.")
    steepness = 80.0 * cells if steepness is None else steepness
    if not 1 <= steepness < math.inf:
        raise OptionError("attention_first", "a steepness of 1 or more", f"{steepness}", "Leave it out: 80 a cell.")
    made = heads(cells, steepness)
    axis = (np.arange(GRID) + 0.5) / GRID * 2 - 1
    x, other = (points.ravel() for points in np.meshgrid(axis, axis))
    knots, values = fit_readout(made.stream(x, other), f(x, other), f, cells)
    slopes = np.diff(values) / KNOT
    out = np.diff(slopes, prepend=0.0, append=0.0)[:, None]
    readout = Ridges(np.ones((1, len(knots))), -knots, out, values[:1]).layers()
    return Coded(Transformer(made.attention(), None, (), readout, ("y",)), made, knots, values)


def fit_readout(y: Array, wanted: Array, f: Target, cells: int) -> tuple[Array, Array]:
    """Knots and values of the piecewise linear function of the stream that is nearest in the mean square.

    Where the points say little, what the code means is believed: f at the middle of the cell.
    """
    reach = SPACING * (cells - 1) / 2 + 1.25
    knots = np.linspace(-reach, reach, 1 + round(2 * reach / KNOT))
    cell = np.clip(np.round(knots / SPACING + (cells - 1) / 2), 0, cells - 1)
    middle = (2 * cell + 1) / cells - 1
    t = 2 * (knots - SPACING * (cell - (cells - 1) / 2))
    guess = f(middle, np.clip(middle - t, -1, 1))
    at = np.clip((y + reach) / KNOT, 0, len(knots) - 1)
    left = np.minimum(at.astype(int), len(knots) - 2)
    share = at - left
    square = np.diag(np.full(len(knots), GUESS * len(y) / len(knots)))
    right = square.diagonal() * guess
    for i, j, product in (
        (left, left, (1 - share) ** 2),
        (left, left + 1, share * (1 - share)),
        (left + 1, left, share * (1 - share)),
        (left + 1, left + 1, share**2),
    ):
        np.add.at(square, (i, j), product)
    np.add.at(right, left, (1 - share) * wanted)
    np.add.at(right, left + 1, share * wanted)
    return knots, np.linalg.solve(square, right)
