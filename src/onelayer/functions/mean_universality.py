"""Any number of tokens through attention first, on a stream as wide as they are: universal in the mean of errors.

Statement  for all n >= 2, d >= 1 and p < infinity, softmax heads with query biases on a stream of width d, nothing
           before them, and a ReLU readout come as near as wanted to every continuous permutation-equivariant map,
           in L^p on [-1, 1]^(n d).
Gives      for d = 1 and any n the heads that write the cell of a token, in closed form, and the code of the other
           tokens in rational arithmetic.
Rests on   attention_first, which is the case n = 2, d = 1; the proof is in ``heads`` and ``gap_code``.
Why        many heads with query biases can replace the feed-forward layer before the one head of Proposition 1, in
           its own norm on a box; in the sup norm they cannot (narrow_stream).
Differs    nothing of it is in the paper, whose heads have no biases: without them, and for the norm over all of
           R^(n d), nothing is claimed. The heads of ``gap_code`` exist because their span is dense; weights that
           would show it in floating point are not given, and the number of heads is open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from onelayer.errors import OptionError
from onelayer.functions import attention_first
from onelayer.functions.attention_first import Heads
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["mean_universality"]


def heads(n: int, cells: int, steepness: float) -> Heads:
    """Heads after which token x_k of n numbers in [-1, 1] is about code(x_k) + x_k - mean.

    Proof. Let m(u) be the average of the tokens under the weights e^(u x_j), the derivative of
    L(u) = log sum_j e^(u x_j), and z = x_k - c. A head of slope a and shift -a c gives m(a z). If one token is the
    largest, u max - L(u) goes from -log n to 0, so for z > 0 the integral of max - m(a z) over all slopes a > 0 is
    log(n)/z; for z < 0 the same holds with the smallest token. Slopes a and -a with opposite weights make what is
    left near z = 0 odd, for every n. From here on it is the proof of `attention_first.construct`, with 2 log(n) for
    log(2): steps of x_k are written, whatever the other tokens, but for a set of small measure. The uniform head of
    weight -1 leaves x_k - mean. QED
    """
    if n < 2:
        raise OptionError("mean_universality", "at least two tokens", f"n={n}", "Give n=2 or more.")
    one = attention_first.heads(cells, steepness)
    slope, shift = one.slope[:-1], one.shift[:-1]  # without the uniform head
    weight = one.weight[:-1] * (math.log(2) / (2 * math.log(n)))
    both = [np.concatenate([part, -part, [0.0]]) for part in (slope, shift)]
    return Heads(both[0], both[1], np.concatenate([weight, -weight, [-1.0]]))


def coefficient(k: tuple[int, ...]) -> Fraction:
    """Of e^(-b <k, g>) in log(1 + e^(-b g_1) + e^(-b g_2) + ...): (-1)^(|k|-1) (|k|-1)! / (k_1! k_2! ...)."""
    size = sum(k)
    found = Fraction(math.factorial(size - 1), math.prod(map(math.factorial, k)))
    return found if size % 2 else -found


def gap_code(gaps: tuple[Fraction, ...], width: Fraction) -> dict[int, Fraction]:
    """Which cells of [0, 2] the sums <k, gaps> lie in, with the coefficients of all k added up; zeros are left out.

    Proof of the statement. First d = 1. Let g_j be the distances of the other tokens to the largest, all of them at
    least delta, and h(b) = log(1 + sum e^(-b g_j)). A head with the constant query b has max - m(b) = -h'(b), the
    sum over k of coefficient(k) <k, g> e^(-b <k, g>), which converges absolutely for b >= b0 = log(2 n)/delta; the
    largest token itself is m(b) for large b. Sums of e^(-a s), a > 0, are dense in the continuous functions on
    [delta, oo) that vanish at infinity. So for every continuous phi of compact support some heads give, within any
    e > 0, H = sum over k of coefficient(k) phi(<k, g>): errors e s e^(-b0 s) of phi(s) add up to a multiple of e.
    Let phi be v_c on cell c of [0, 2], 0 beyond, values independent over the rationals, continuous ramps between
    them, the last one, down to 0, below 2: sums <k, g> of 2 or more give nothing, others have |k| <= 2/delta. But
    for a set of small measure none of these is on a ramp, and H = sum_c N_c v_c, where N is what this function
    returns: H has finitely many values, and tells N.
    N tells the gaps within the width w, but for a set whose measure tends to 0 with w, where some <k, g> other than
    g_i is within (|k| + 2) w of g_i. Let g and g' outside of it be sorted and have the same N, and the gaps before
    the i-th be within w. The cell of g_i has N = 1, of g_i alone, so some <k, g'> is in it. If k had only indices
    before i, <k, g> would be within (|k| + 1) w of g_i. So <k, g'> >= g'_i, and g'_i <= g_i + w; by symmetry
    |g_i - g'_i| <= w.
    Multiply the steps of ``heads`` so that they are more than 4 high, which x_k - mean is not, and H so that its
    values are further apart than all of code(x_k) + x_k - mean, and add them up.
    The stream then tells N, the cell of x_k, and x_k - mean; hence the mean, the largest token, and all tokens,
    within what tends to 0. A piecewise linear readout does the rest as in `attention_first.construct`.
    For d >= 2 take n (d - 1) + 1 directions v of which any d are independent, scaled so that |<v, x>| <= 1,
    and write for each of them the code of <v, x_k> and the H of all <v, x_j> into component 1, of such heights that
    their sum tells each of them; the uniform head leaves x_k - mean in every component. Cells in d directions tell
    x_k, so that the mean and then all projections are known.
    Two multisets with equal projections are equal: for a token of one some token of the other has d projections
    with it in common, so is the same; take both away, and go on. Multisets are a compact set, so projections within
    small errors give the multiset within small errors. QED
    """
    if not gaps or min(gaps) <= 0 or width <= 0:
        found = f"gaps {[str(gap) for gap in gaps]}, width {width}"
        raise OptionError("mean_universality", "gaps and a width above 0", found, "Leave out the largest token.")
    found_in: dict[int, Fraction] = {}
    for k in _multiples(gaps, Fraction(2)):
        cell = math.floor(sum((c * g for c, g in zip(k, gaps, strict=True)), Fraction(0)) / width)
        found_in[cell] = found_in.get(cell, Fraction(0)) + coefficient(k)
    return {cell: value for cell, value in sorted(found_in.items()) if value}


def _multiples(gaps: tuple[Fraction, ...], left: Fraction) -> Iterator[tuple[int, ...]]:
    """All k other than 0 with <k, gaps> at most ``left``."""

    def from_here(i: int, rest: Fraction) -> Iterator[tuple[int, ...]]:
        if i == len(gaps):
            yield ()
            return
        for count in range(math.floor(rest / gaps[i]) + 1):
            for more in from_here(i + 1, rest - count * gaps[i]):
                yield (count, *more)

    return (k for k in from_here(0, left) if any(k))
