"""`within`: how far the answers of a looped network are from those of ridge regression, for all examples of a box.

The algorithm must be w <- u + eta mean_i (y_i - <p, x_i>) x_i with u = a w - b w_before, from 0, with p = u and the
answer (a - b) <w, x>; or, ``late``, with b = 0, p = w and the answer <w, x>. Its limit is the answer <v, x> of the
minimiser v of mean (y - <v, x>)^2 / 2 + penalty |v|^2 / 2.

Decides: for all examples and queries with |x_c| <= x and |y| <= y. Let S = mean x x^T, whose eigenvalues lie in
[0, B^2], B^2 = d x^2. If eta B^2 <= 1 (late: <= a), the error in an eigendirection of S goes from e, e_before to
t (a e - b e_before) with t in [0, 1] (late: to t e with t in [0, a]). With b = 0 it is at most a^L after L steps.
With a^2 <= 4 b both roots of z^2 - t a z + t b have the modulus sqrt(t b) <= r, and e_L = r^L U_L - r^(L+1) U_(L-1)
with Chebyshev's |U_L| <= L + 1, so it is at most r^L (L + 1 + r L). The first error is the limit itself, at most
y / (2 sqrt(penalty)) long, since s / (s^2 + penalty) <= 1 / (2 sqrt(penalty)); and |x| <= B.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from onelayer_checker.core.claims import KINDS, Claim, Kind, Verdict
from onelayer_checker.looped.algorithms import Algorithm, read_algorithm
from onelayer_checker.looped.judge import OWN, equals
from onelayer_checker.looped.network import total
from onelayer_checker.looped.polynomials import Ring, is_zero, nearest

NUMBERS = frozenset({"bound", "x", "y", "eta", "a", "b", "late"})
#: Numbers are rounded up to multiples of 2^-BITS.
BITS = 512


def within(found: object, claim: Claim) -> Verdict:
    verdict = equals(found, claim)
    if verdict.outcome != "proved":
        return verdict
    n = {name: Fraction(value) for name, value in claim.numbers.items()}
    why = unlike(claim.target, n["eta"], n["a"], n["b"], n["late"] != 0) or unfit(claim.target, n)
    if why:
        return Verdict("undecided", why, np.inf)
    a: Algorithm = claim.target
    keep = n["a"] - n["b"]
    penalty = (1 - keep) / (n["eta"] if n["late"] else keep * n["eta"])
    error = factor(n["a"], n["b"], a.steps)
    squared = error**2 * n["y"] ** 2 * a.x * n["x"] ** 2 / (4 * penalty)
    words = f"{a.steps} steps leave {nearest(error):.3g} of the first error, penalty {nearest(penalty):.6g}"
    if squared <= n["bound"] ** 2:
        return Verdict("proved", words, claim.numbers["bound"])
    return Verdict("undecided", f"{words}: within {nearest(root(squared)):.6g}", np.inf)


def unlike(a: Algorithm, eta: Fraction, first: Fraction, second: Fraction, late: bool) -> str:
    """Why the algorithm is not the one above; empty if it is, by normal forms."""
    one, memory = a.x * a.y, second != 0
    sizes_fit = (a.m, len(a.start), len(a.answer.outputs)) == (one, one * (2 if memory else 1), a.y)
    if a.gather != "mean" or not sizes_fit or any(a.start) or (late and memory) or a.panel is not None:
        return "the algorithm has judges, or another state, start or mean than ridge regression"
    ring = Ring()
    sizes = {"s": len(a.start), "x": a.x, "y": a.y, "m": one, "n": one}
    s, x, y, m, n = (list[Any](ring.variables(group, count)) for group, count in sizes.items())
    w, before = s[:one], s[one:] if memory else [0] * one
    u: list[Any] = [first * p - second * q for p, q in zip(w, before, strict=True)]

    def step(m: Sequence[Any]) -> list[Any]:
        return a.step.run({"s": s, "m": m})

    both = step([p + q for p, q in zip(m, n, strict=True)])
    parts = zip(both, step(m), step(n), step([0] * one), strict=True)
    point = w if late else u
    wanted, answers = [], []
    for j in range(a.y):
        row = slice(j * a.x, (j + 1) * a.x)
        residual = y[j] - total(p * v for p, v in zip(point[row], x, strict=True))
        wanted += [p + eta * residual * v for p, v in zip(u[row], x, strict=True)]
        answers.append((1 if late else first - second) * total(p * v for p, v in zip(w[row], x, strict=True)))
    wanted += w if memory else []
    found = step(a.terms(s, x, y))
    apart = [p - q for p, q in zip(found, wanted, strict=True)] + [p - q - r + t for p, q, r, t in parts]
    apart += [p - q for p, q in zip(a.answer.run({"s": s, "x": x}), answers, strict=True)] if a.query else [1]
    return "" if all(map(is_zero, apart)) else "the algorithm is not a step of ridge regression"


def unfit(a: Algorithm, n: dict[str, Fraction]) -> str:
    """Why the numbers do not make the errors shrink as above; empty if they do."""
    keep, reach = n["a"] - n["b"], n["eta"] * a.x * n["x"] ** 2
    if not (0 < keep < 1 and n["eta"] > 0 and n["b"] <= 1):
        return "there is no penalty, or nothing is left of the state"
    if reach > (n["a"] if n["late"] else 1):
        return f"eta B^2 = {nearest(reach):.6g} is too large"
    return "" if n["b"] == 0 or n["a"] ** 2 <= 4 * n["b"] else "the momentum is too small: a^2 > 4 b"


def factor(first: Fraction, second: Fraction, steps: int) -> Fraction:
    """At least what is left of an error after so many steps."""
    if second == 0:
        return power(first, steps)
    r = root(second)
    return power(r, steps) * (steps + 1 + r * steps)


def root(value: Fraction) -> Fraction:
    """At least the square root."""
    return Fraction(isqrt(up(value).numerator * (1 << 2 * BITS) // up(value).denominator) + 1, 1 << BITS)


def power(base: Fraction, exponent: int) -> Fraction:
    """At least the power of a number that is not negative, by squaring, rounded up on the way."""
    result = Fraction(1)
    for bit in bin(exponent)[2:]:
        result = up(result * result * (base if bit == "1" else 1))
    return result


def up(value: Fraction) -> Fraction:
    return Fraction(-(-(value.numerator << BITS) // value.denominator), 1 << BITS)


OWN["within"] = within
KINDS |= {"within": Kind(NUMBERS, within, read_algorithm)}
