"""Theorem 1 as a pair of sequences: what no hardmax layer tells apart, and a softmax head does.

Statement  one layer of hardmax attention on all tokens is not a contextual mapping, whatever its heads and weights.
Gives      collinear sequences X, Y with different tokens that get equal ids at every token they share.
Rests on   hardmax sees only extreme points and means.
Why        it is why the library uses softmax: the same data, one softmax head of rank 1, and the ids differ.
Differs    the witness is ours; it survives query and key biases and causal masks, which the paper does not treat.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.contexts.agreement import Agreement, compare, compare_exactly, ids, shared_places
from onelayer.contexts.agreement import rounding_radius_upper as radius_upper
from onelayer.errors import HypothesisError
from onelayer.network import Attention
from onelayer.problems.separation import row_norms
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["theorem_1"]

#: Bits kept of a direction, and the longest witness: their product of whole multiples is exact in float64.
DIRECTION_BITS, LONGEST = 32, 1 << 20
#: beta max|y|^2 of the softmax heads that are tried.
TEMPERATURES = 2.0 ** np.arange(-3, 5)


@dataclass(frozen=True)
class Separated:
    """A rank-1 softmax head and the smallest distance of its ids at tokens that both sequences share."""

    attention: Attention
    gap: float
    radius: float  # what rounding alone could make of equal ids

    def __bool__(self) -> bool:
        return self.gap > self.radius


def witness(direction: ArrayLike, n: int = 4) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]:
    """X = u (-L, -2, 2, L, 3, .., n-2), Y = u (-L, -1, 1, L, 3, .., n-2) and the places of their shared tokens.

    Proof. All tokens are multiples of u, so for a query that both share the logit of the key a u is affine in a,
    biases or not. Its maximisers are the largest multiple, the smallest, or (slope 0) all n tokens. X and Y have
    the same largest and smallest multiple, +-L with L >= n, and the same sum, so each head returns the same
    average. The places 3, 4, .. see all four of the first tokens through a causal mask, and place 0 sees itself,
    so the same holds there. The sets differ: only X has 2u, only Y has u.
    u is the direction rounded to 32 bits: multiples of it are then exact, the tokens exactly collinear.
    n = 3 has no such pair on a line: largest, smallest and mean of three numbers determine them.
    """
    u = np.atleast_1d(np.asarray(direction, np.float64))
    if u.ndim != 1 or not u.any() or not np.isfinite(u).all():
        raise HypothesisError("theorem_1", "a nonzero finite direction", f"got {u}", "Give one nonzero vector.")
    if not 4 <= n <= LONGEST:
        raise HypothesisError(
            "theorem_1",
            f"a witness of 4 to {LONGEST} tokens",
            f"n = {n}",
            "Take n = 4: three collinear tokens are determined by their largest, smallest and mean.",
        )
    mantissa, exponent = np.frexp(u)
    u = np.ldexp(np.rint(np.ldexp(mantissa, DIRECTION_BITS)), exponent - DIRECTION_BITS)
    largest, pads = 1 << (n - 1).bit_length(), range(3, n - 1)
    X, Y = (np.outer([-largest, -a, a, largest, *pads], u) for a in (2, 1))
    return X, Y, (0, *range(3, n))


def refutes(attention: Attention, X: ArrayLike, Y: ArrayLike) -> Agreement:
    """Whether a hardmax layer gives equal ids to the shared tokens, so is no contextual mapping for {X, Y}.

    The layer is run in its own floating point first. If the ids differ by more than rounding, float64 has broken
    a tie (a slope that is zero, but not in floating point), and the same pass over rational numbers decides.
    """
    found = [
        name
        for name, there in (
            (f"{attention.kind} attention", attention.kind != "hardmax"),
            ("a window", attention.window is not None),
            ("a channel that says which tokens are keys", attention.context is not None),
        )
        if there
    ]
    if found:
        raise HypothesisError(
            "theorem_1",
            "a hardmax layer whose heads see all tokens, or all before them",
            f"the layer has {' and '.join(found)}",
            'Use Attention(..., kind="hardmax") without it, or softmax_separates.',
        )
    first, second = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    agreement = compare(attention, first, second)
    return agreement if agreement else compare_exactly(attention, first, second)


def softmax_separates(X: ArrayLike, Y: ArrayLike, seed: int = 0, tries: int = 32) -> Separated:
    """The best of the rank-1 softmax heads with ``tries`` random directions, each at eight temperatures."""
    first, second = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    pairs, best = shared_places(first, second), None
    if not pairs:
        raise HypothesisError("theorem_1", "sequences that share a token", "they share none", "Use witness.")
    mine, yours = (np.array(places) for places in zip(*pairs, strict=True))
    directions = np.random.default_rng(seed).standard_normal((tries, first.shape[1]))
    for v, temperature in itertools.product(directions / row_norms(directions)[:, None], TEMPERATURES):
        level = max(float(np.abs(Z @ v).max()) for Z in (first, second))
        read = v[None, :, None]
        head = Attention(temperature / level**2 * read, read, read, v[None, None, :])
        gap = float(row_norms(ids(head, first)[mine] - ids(head, second)[yours]).min())
        if best is None or gap > best.gap:
            best = Separated(head, gap, 0.0)
    assert best is not None
    width = np.sqrt(first.shape[1])  # the radius is per component, the gap a norm
    return replace(best, radius=float(width * sum(radius_upper(best.attention, Z) for Z in (first, second))))
