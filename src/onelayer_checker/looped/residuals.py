"""`rounds`, of networks whose tokens hold residuals: gradient descent and ridge regression in their small form.

Tokens hold x, y, constants and one number r, which is y on examples and 0 on queries at the start. In a loop the
feed-forward part, if there is one, makes p = keep r + (1 - keep) y of r and copies the rest, and attention takes
eta mean_i <x, x_i> p_i off r. Nothing else is written, and scores do not read r.

Encloses: let 0 < keep <= 1 and eta B^2 <= 2, B^2 = d x^2. The matrix of all <x_i, x_j> / N has eigenvalues in [0,
B^2], so a loop makes no root mean square over the examples larger, neither that of r, which is at most y, nor, but
for the factor keep, that of an error. With G = min(L, 1 / (1 - keep)) an error of the examples is at most G
delta, delta being the root mean square of the roundings of one loop. At a query |r| grows by at most eta B^2 y in a
loop, and its error by eta B^2 times that of the examples and by delta', the rounding there: at most G (eta B^2 G
delta + delta').

Roundings are followed by `floats.py`, whose bounds are sums of magnitudes times constants: so they hold of root
mean squares if the magnitudes are root mean squares, of r, or are the same for all tokens, as those of x are. What
is summed over keys is at most the mean of magnitudes, which is at most their root mean square.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from onelayer_checker.looped.algorithms import Algorithm
from onelayer_checker.looped.floats import Floats, Known, Unlike, sizes_of
from onelayer_checker.looped.limits import up
from onelayer_checker.looped.network import Network, total
from onelayer_checker.looped.polynomials import Poly, Ring, is_zero, nearest


@dataclass(frozen=True)
class Residual:
    """Where r is, what is kept of it, and the step size."""

    at: int
    keep: Fraction
    eta: Fraction


def residual_of(network: Network, a: Algorithm) -> Residual:
    """The form above, read off the weights with free letters for r and p; Unlike if they have another."""
    loop, ring, d = network.loop, Ring(), a.x
    kind = (loop.kind, loop.mean, loop.causal, network.panel, network.after) == ("linear", True, False, None, ())
    written = [c for c in range(loop.width) if any(head.out.columns[c] for head in loop.heads)]
    if not kind or a.y != 1 or a.query is None or len(written) != 1:
        raise Unlike("only a mean of linear attention that writes one number is followed")
    at = written[0]
    sizes = {"X": d, "Y": 1, "x": d, "y": 1, "R": 1, "p": 1}
    X, (Y,), x, (y,), (R,), (p,) = (list[Any](ring.variables(g, n)) for g, n in sizes.items())
    example, query = (a.token(name, list(a.start), X, [Y]) for name in ("example", "query"))
    if not is_zero(example[at] - Y) or not is_zero(query[at]):
        raise Unlike("what is written does not begin as y on examples and 0 on queries")
    for u in (u for token in (example, query) for u in token if isinstance(u, Poly)):
        if not set(u.terms) <= {()} and not any(is_zero(u - letter) for letter in (*X, Y)):
            raise Unlike("a token holds something else than x, y, r and constants")
    key = put(a.token("example", list(a.start), x, [y]), at, p)
    keep = slope(loop.before(put(example, at, R))[at], R)
    eta = -slope(loop.add_key(query, key)[at], X[0] * x[0] * p)
    step = eta * p * total(u * v for u, v in zip(X, x, strict=True))
    for token, own in ((example, Y), (query, 0)):
        wanted, found = put(token, at, keep * R + (1 - keep) * own), loop.before(put(token, at, R))
        scores = (head.score(put(token, at, R), key) for head in loop.heads)
        if any(isinstance(score, Poly) and score.letters() & (R.letters() | p.letters()) for score in scores):
            raise Unlike("scores read what is written")
        moved = loop.add_key(put(token, at, R), key)[at] + step
        if not is_zero(moved) or any(not is_zero(u - v) for u, v in zip(found, wanted, strict=True)):
            raise Unlike("a loop is no step of ridge regression on residuals")
    return Residual(at, keep, eta)


def put(token: list[Any], at: int, value: Any) -> list[Any]:
    return [value if c == at else u for c, u in enumerate(token)]


def slope(u: Any, letter: Poly) -> Fraction:
    """The coefficient of a monomial."""
    (monomial,) = letter.terms
    return Fraction(u.terms.get(monomial, 0), 1 << u.e) if isinstance(u, Poly) else Fraction(0)


def followed(network: Network, a: Algorithm, n: dict[str, Fraction], floats: Floats) -> tuple[Fraction, str]:
    """At least how far off an answer is, and words."""
    form, N, L = residual_of(network, a), int(n["examples"]), a.steps
    moves = form.eta * a.x * n["x"] ** 2
    if not 0 < form.keep <= 1 or not 0 < moves <= 2:
        raise Unlike(f"the steps are too large: eta B^2 = {nearest(moves):.6g}")
    G = Fraction(L) if form.keep == 1 else min(Fraction(L), 1 / (1 - form.keep))
    Y, Q = n["y"], moves * n["y"] * G
    token = [Known(size) for size in sizes_of(a, n["x"], Y)]

    def rounding(size: Fraction) -> Fraction:
        """Of one loop at a token with r up to ``size``, where numbers are up to 9/8 of what they are in reals."""
        both = (put(token, form.at, Known(most * Fraction(9, 8))) for most in (size, Y))
        asking, held = (floats.before(network.loop, h) for h in both)
        after = floats.added(network.loop, asking, N, held)
        if any(value.off for c, value in enumerate(after) if c != form.at):
            raise Unlike("another channel than r is rounded")
        return after[form.at].off

    delta = rounding(Y)
    off = up(G * delta)
    error = up(G * (moves * off + rounding(Q)))
    if 8 * error > Q:  # so 8 off <= y, too
        raise Unlike(f"roundings of {nearest(error):.3g} are beyond the size of what is rounded")
    h = put(token, form.at, Known(Q, error))
    for affine in network.readout:
        h = floats.affine(affine, h)
    words = f"{L} loops of at most {nearest(delta):.3g} each, |r| <= {nearest(Q):.3g} on queries, {N:,} examples"
    return max(value.off for value in h), words
