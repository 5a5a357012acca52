"""`rounds`: how far a looped network in floats is from its algorithm in reals, for all prompts of a box.

Tokens must hold x, y, a state w of as many numbers as x, and constants, and nothing else. In a loop the feed-
forward part, if there is one, makes p = soft(w) of each w, relu(w - th) - relu(-w - th), and copies the rest. A
head has the score k(a <p, x_i> + b y_i + c), k the identity or relu, and adds nu x_i to w; or it has the score 1
and takes shrink p_i off it, p_i being that of the key. Nothing else is written. So one loop is w_k <- p_k +
mean_i phi(<p_k, x_i>, y_i) x_i - shrink mean_i p_i, with a function phi that is piecewise linear in its first
argument.

Encloses: let all slopes of phi lie in [-b, g] and b B^2 + 2 shrink <= 2, B^2 = d x^2. Of two states the
difference becomes (I - mean b_i x_i x_i^T) times it, b_i in [-g, b], so it grows by at most 1 + g B^2 in the
2-norm. The exact state stays within |phi(0, y)| B times min(L, 1/(shrink - g B^2)), or L (1 + g B^2)^L. If phi =
b (y - u), a loop makes b (u - y)^2 / 2 + shrink |w|^2 / 2, or with th |p|_1, on average no larger, and it begins
at b y^2 / 2: so |w| <= y sqrt(b / shrink), and |p| <= b y^2 / (2 th). Every token's error grows by at most shrink
times the largest, by g B^2 and by the rounding of one loop: with k = shrink + g B^2, L loops leave ((1 + k)^L -
1) / k of those. The rounding of one loop is followed value by value: a sum of k terms, in any order, is off by
gamma(k) times the sum of magnitudes, and by k times the least positive number. For linear attention q (sum k v)
and sum (q k) v are both allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.looped import residuals
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.floats import FLOATS, Floats, Known, Unlike, sizes_of
from onelayer_checker.looped.judge import IN_FLOATS, LoopJudge, equals
from onelayer_checker.looped.limits import power, root, up
from onelayer_checker.looped.network import Network, total
from onelayer_checker.looped.polynomials import Poly, Ring, is_zero, nearest, relu
from onelayer_checker.looped.residuals import slope

NUMBERS = frozenset({"bound", "x", "y", "examples"})
MOST_EXAMPLES = 1 << 22


@dataclass(frozen=True)
class Shape:
    """The parts of a loop: pieces (a, b, c, nu) of phi, what is shrunk, the threshold, and where w is."""

    pieces: list[tuple[Fraction, Fraction, Fraction, Fraction]]
    shrink: Fraction
    threshold: Fraction
    w: list[int]

    def largest(self, d: int, B: Fraction, y: Fraction, L: int, linear: bool) -> Fraction:
        """At least |w|, of every exact state."""
        slopes = slopes_of(self, linear)
        b, g, s, th = -min(slopes), max(*slopes, Fraction(0)), self.shrink, self.threshold
        first, grows = start(self, y, linear) * B, g * B * B
        sizes = [first * L * power(1 + grows, L)] + ([first / (s - grows)] if s > grows else [])
        square = len(set(slopes)) == 1 and self.is_square(b, linear)
        if square and s > 0 and th == 0:
            sizes.append(y * root(b / s))
        if square and th > 0:
            sizes.append(b * y * y / (2 * th) + th * d)
        return up(min(sizes))

    def is_square(self, b: Fraction, linear: bool) -> bool:
        """Whether phi(u, y) = b (y - u), all its slopes being -b: a function of u - y that is 0 at 0."""
        parts = [(p, q, c, nu) for p, q, c, nu in self.pieces if nu]
        at = sum((nu * (c if linear else max(c, Fraction(0))) for _, _, c, nu in parts), Fraction(0))
        return b > 0 and at == 0 and all(p != 0 and q == -p for p, q, _, _ in parts)


def shape_of(network: Network, a: Algorithm) -> Shape:
    """The form above, read off the weights; Unlike if they have another."""
    loop, d, ring = network.loop, a.x, Ring()
    if (
        a.y != 1
        or len(a.start) != d
        or any(a.start)
        or not loop.mean
        or loop.causal
        or network.panel
        or a.query is None
    ):
        raise Unlike("the state is not one weight for each number of x, from 0")
    sizes = {"s": d, "t": d, "x": d, "y": 1, "X": d, "Y": 1}
    s, t, x, y, X, Y = (list[Any](ring.variables(g, n)) for g, n in sizes.items())
    askers, key = [a.token(name, s, X, Y) for name in ("example", "query")], a.token("example", t, x, y)
    w = [c for p in s for c, u in enumerate(askers[0]) if is_zero(u - p)]
    held = [u.terms for token in askers for c, u in enumerate(token) if isinstance(u, Poly) and c not in w]
    allowed = [p.terms for p in (*X, *Y)]  # or a share of them
    if (
        len(w) != d
        or any(terms not in allowed for terms in held)
        or any(not is_zero(token[c] - p) for token in askers for c, p in zip(w, s, strict=True))
    ):
        raise Unlike("a token holds something else than x, y, w and constants")
    biases = loop.feedforward[0].bias if loop.feedforward else ()
    threshold = -biases[w[0]] if len(biases) > w[0] else Fraction(0)
    for token in askers:
        for c, u in enumerate(loop.before(token)):
            cut = threshold if c in w else Fraction(0)
            if cut < 0 or not is_zero(u - relu(token[c] - cut) + relu(-token[c] - cut)):
                raise Unlike("the feed-forward part is not soft thresholding")
    pieces, shrink = [], Fraction(0)
    for head in loop.heads:
        score, other = (head.score(token, key) for token in askers)
        written = head.out(head.value(key))
        if any(not is_zero(u) for c, u in enumerate(written) if c not in w) or not is_zero(score - other):
            raise Unlike("something else than w is written, or queries have other scores")
        parts = [written[c] for c in w]
        nu, own = _multiple(parts, x), _multiple(parts, t)
        if nu is not None:
            pieces.append((*_score(score, s, x, y[0]), nu))
        elif own is not None and is_zero(score - 1):
            shrink -= own
        else:
            raise Unlike("a head writes neither x nor w")
    if loop.kind == "linear":
        a_, b_, c_ = (sum((p[at] * p[3] for p in pieces), Fraction(0)) for at in range(3))
        pieces = [(Fraction(1), b_ / a_, c_ / a_, a_)] if a_ else [(Fraction(0), b_, c_, Fraction(1))]
    elif loop.kind != "relu":
        raise Unlike("only linear and relu attention are followed")
    return Shape(pieces, shrink, threshold, w)


def _multiple(u: list[Any], letters: list[Any]) -> Fraction | None:
    """c if u = c letters."""
    c = slope(u[0], letters[0])
    return c if all(is_zero(p - q * c) for p, q in zip(u, letters, strict=True)) else None


def _score(u: Any, s: list[Any], x: list[Any], y: Any) -> tuple[Fraction, Fraction, Fraction]:
    """a, b, c if u = a <s, x> + b y + c."""
    u = y * 0 + u
    a, b, c = slope(u, s[0] * x[0]), slope(u, y), Fraction(u.terms.get((), 0), 1 << u.e)
    if not is_zero(u - total(p * q for p, q in zip(s, x, strict=True)) * a - y * b - c):
        raise Unlike("a score is no function of <w, x> and y")
    return a, b, c


def slopes_of(shape: Shape, linear: bool) -> list[Fraction]:
    """The slopes of phi in its first argument."""
    moving = [(a, b, c, nu) for a, b, c, nu in shape.pieces if a != 0 and nu != 0]
    if len({b / a for a, b, _, _ in moving}) > 1:
        raise Unlike("pieces of phi bend at different mixtures of <w, x> and y")
    ends = sorted({-c / a for a, _, c, _ in moving})
    if not ends:
        return [Fraction(0)]
    points = [ends[0] - 1, *((p + q) / 2 for p, q in pairwise(ends)), ends[-1] + 1]
    return [sum((nu * a for a, _, c, nu in moving if linear or a * p + c > 0), Fraction(0)) for p in points]


def start(shape: Shape, y: Fraction, linear: bool) -> Fraction:
    """At least |phi(0, y)|, which is piecewise linear in y: at its ends and bends."""
    bends = {-c / b for _, b, c, _ in shape.pieces if b != 0}
    points = {-y, y, *(p for p in bends if abs(p) <= y)}

    def value(at: Fraction) -> Fraction:
        scores = ((b * at + c, nu) for _, b, c, nu in shape.pieces)
        return abs(sum((nu * (u if linear else max(u, Fraction(0))) for u, nu in scores), Fraction(0)))

    return max(value(p) for p in points)


def rounds(found: object, claim: Claim) -> Verdict:
    verdict = equals(found, claim)
    if verdict.outcome != "proved" or not isinstance(found, LoopJudge):
        return verdict
    try:
        bound, words = _bounded(found.network, claim)
    except Unlike as unlike:
        return Verdict("undecided", str(unlike), np.inf)
    value = float(np.nextafter(nearest(bound), np.inf))
    if bound <= Fraction(claim.numbers["bound"]):
        return Verdict("proved", words, value)
    return Verdict("undecided", f"{words}: within {value:.6g}", np.inf)


def _bounded(network: Network, claim: Claim) -> tuple[Fraction, str]:
    a, n = claim.target, {name: Fraction(value) for name, value in claim.numbers.items()}
    if (
        np.dtype(claim.arith) != network.dtype
        or n["examples"].denominator != 1
        or not 1 <= n["examples"] <= MOST_EXAMPLES
    ):
        raise Unlike("the arithmetic is another than that of the weights, or there are no or too many examples")
    floats = Floats(*FLOATS[claim.arith])
    try:
        shape = shape_of(network, a)
    except Unlike as unlike:
        try:
            return residuals.followed(network, a, n, floats)
        except Unlike as other:
            raise Unlike(f"{unlike}; {other}") from None
    return _followed(network, a, n, floats, shape)


def _followed(
    network: Network, a: Algorithm, n: dict[str, Fraction], floats: Floats, shape: Shape
) -> tuple[Fraction, str]:
    linear = network.loop.kind == "linear"
    B2, L, s = a.x * n["x"] ** 2, a.steps, shape.shrink
    slopes = slopes_of(shape, linear)
    b, grows = -min(slopes), max(*slopes, Fraction(0)) * B2
    if not 0 <= s < 1 or b * B2 + 2 * s > 2 or grows > 1:
        raise Unlike(f"the steps are too large: b B^2 + 2 shrink = {nearest(b * B2 + 2 * s):.6g}")
    W, k = shape.largest(a.x, root(B2), n["y"], L, linear), s + grows
    loops = Fraction(L) if k == 0 else (power(1 + k, L) - 1) / k

    def token(w: Known) -> list[Known]:
        sizes = sizes_of(a, n["x"], n["y"])
        return [w if c in shape.w else Known(sizes[c]) for c in range(network.loop.width)]

    after = floats.added(
        network.loop, floats.before(network.loop, token(Known(W * Fraction(9, 8)))), int(n["examples"])
    )
    if any(value.off for c, value in enumerate(after) if c not in shape.w):
        raise Unlike("another channel than w is rounded")
    one = root(a.x * max(after[c].off for c in shape.w) ** 2)
    off = up(one * loops)
    if 8 * off > W:
        raise Unlike(f"roundings of {nearest(off):.3g} are beyond the size {nearest(W):.3g} of what is rounded")
    h = token(Known(W, off))
    for layer in network.after:
        for _ in range(layer.repeat):
            h = floats.added(layer, floats.before(layer, h), 1)
    for affine in network.readout:
        h = floats.affine(affine, h)
    words = (
        f"{L} loops of at most {nearest(one):.3g} each, |w| <= {nearest(W):.3g}, {int(n['examples']):,} examples"
    )
    return max(value.off for value in h), words


IN_FLOATS["rounds"] = rounds
KINDS |= {"rounds": Kind(NUMBERS, rounds, read_algorithm)}
