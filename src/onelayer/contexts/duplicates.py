"""The Boltzmann operator on multisets: repeated tokens.

Statement  multisets of at most n elements on levels 2 log n + 2 apart, not proportional, have different values.
Gives      0.96 gap if the tops differ; else 0.72/(m m') x e^-x, m and m' the multiplicities of the common top, x
           the distance from it to the highest level whose multiplicity relative to the top differs.
Rests on   boltzmann; the proof is in ``separation_lower``.
Why        real sequences repeat tokens; impossible/proportional.py is the exact limit of what can be separated.
Differs    the published theorem excludes repetitions; here they cost the factor m m' and the 2 log n of the gap.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.errors import HypothesisError
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["lemma_d"]

#: Lemma D: constant when the largest levels differ, constant of the decaying case.
LEMMA_D_OTHER_TOP, LEMMA_D_SAME_TOP = 0.96, 0.72


def level_gap(n: int) -> float:
    """The distance between levels that Lemma D asks for, for multisets of at most n elements: 2 log n + 2."""
    return 2.0 * math.log(n) + 2.0


def separation_lower(counts_a: ArrayLike, counts_b: ArrayLike, levels: ArrayLike) -> float:
    """Lemma D's lower bound on |boltz(a) - boltz(b)| for multiplicities over common levels.

    Proof. Put q = e^-g <= e^-2/n^2, w = (n-1) q, the top level at 0, and divide multiplicities by the top's. These
    weights total at most n - 1 below the top, and y e^-y decreases for y >= 1: all that lies below the top has
    mass at most w and moment at most w g. If the tops differ, the higher multiset has boltz >= -w g and the other
    <= -g: at least (1-w) g, and w <= 0.034.
    Same top: above level k, at -x, the weights agree; let Z and B >= -w g be their mass and boltz value, and
    G = B + x >= (1-w) x. Let a have the larger weight at k, by c >= 1/(m m'). With S, S' the masses of a and b at
    and below k, and R, R' = sum (B - t) e^t over a and b strictly below k, dropping what is not negative (below),
        boltz(b) - boltz(a) >= c G e^-x Z/((Z+S)(Z+S')) - R'/(Z+S'),      R' <= (n-m')/m' (G+g) q e^-x.
    What is dropped, over (Z+S)(Z+S'), is R (Z+S') + G e^-x (v r' - v' r), v and v' the weights at k, r and r' the
    masses strictly below: its last term may be negative, but R >= G r, as levels there lie below k, and S' holds
    v' e^-x, so that together they are at least G r Z. Level k occurs in a, so m <= n - 1 and
    R' <= c (n-1)^2 q (G+g) e^-x; Z >= 1 and Z+S, Z+S' <= 1+w. Hence at least
        c x e^-x (1-w) [(1+w)^-2 - (n-1)^2 q (1 + 1/(1-w))],
    whose constant falls with n to 1 - 2 e^-2 = 0.729. It is nearly attained, by {0 (n-1 times), -g} against
    {0, -2g (n-1 times)}; at a gap near 2 log n + log 2 these two collide, so the 2 log n is needed. QED

    >>> round(separation_lower([1, 1, 0], [1, 0, 1], [8.0, 4.0, 0.0]), 4)
    0.0527
    """
    first, second, where = _check_counts(counts_a, counts_b, levels)
    if not first[0] or not second[0]:
        return LEMMA_D_OTHER_TOP * float(-np.diff(where).max())
    differs = first * second[0] != second * first[0]  # m_k/m differ, in whole numbers
    if not differs.any():
        raise HypothesisError(
            "empirical_measure",
            "multiplicities that are not proportional",
            f"one is {second[0]}/{first[0]} times the other at every level",
            "No softmax head tells them apart; add positions.",
        )
    x = float(where[0] - where[int(differs.argmax())])
    return LEMMA_D_SAME_TOP / (int(first[0]) * int(second[0])) * x * math.exp(-x)


def _check_counts(
    counts_a: ArrayLike, counts_b: ArrayLike, levels: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Both multiplicities as whole numbers over the occurring levels, largest level first."""
    first, second, where = np.asarray(counts_a), np.asarray(counts_b), np.asarray(levels, np.float64)
    if where.ndim != 1 or not first.shape == second.shape == where.shape:
        raise HypothesisError(
            "lemma_d",
            "two multiplicities per level",
            f"the shapes are {first.shape}, {second.shape} and {where.shape}",
            "Count both multisets over the same levels.",
        )
    if not all(c.dtype.kind in "iu" and (c >= 0).all() and c.sum() > 0 for c in (first, second)):
        raise HypothesisError(
            "lemma_d",
            "whole multiplicities, not negative and not all zero",
            f"got {first.tolist()} and {second.tolist()}",
            "Count the elements of two nonempty multisets.",
        )
    order = np.argsort(-where)
    order = order[(first + second)[order] > 0]
    first, second, where = first[order].astype(np.int64), second[order].astype(np.int64), where[order]
    n = int(max(first.sum(), second.sum()))
    gap = float(-np.diff(where).max()) if len(where) > 1 else math.inf
    if gap < level_gap(n):
        raise HypothesisError(
            "lemma_d",
            f"levels at least 2 log n + 2 = {level_gap(n):.4g} apart for multisets of up to n = {n}",
            f"two levels are {gap:.3g} apart",
            f"Multiply the levels by {level_gap(n) / gap:.4g} (raise beta)." if gap else "Merge equal levels.",
        )
    return first, second, where
