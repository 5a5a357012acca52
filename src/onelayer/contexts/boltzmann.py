"""The Boltzmann operator: softmax attention over one number per token.

Statement  boltz(a) = <a, softmax(a)>; its two separation bounds are Lemma 1 (recalled) and Lemma B (ours).
Gives      one number per set of levels, different for different sets once the levels are far enough apart.
Rests on   nothing but calculus.
Why        a rank-1 softmax head over tokens with projections y_j returns boltz(beta y_k y)/(beta y_k).
Differs    Lemma B needs a level gap of 2 instead of 2 log n + 3, has no n, and allows sets of different sizes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onelayer.errors import HypothesisError
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["boltzmann"]

#: Lemma B: smallest level gap, constant of the decaying case, constant when the largest levels differ.
LEMMA_B_GAP, LEMMA_B_SAME_TOP, LEMMA_B_OTHER_TOP = 2.0, 0.404, 0.818


def boltzmann(a: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """<a, softmax(a)> along an axis, in float64. Minus infinity marks an absent entry."""
    levels = np.asarray(a, dtype=np.float64)
    weights = softmax(levels, axis)
    return np.sum(weights * np.where(weights > 0, levels, 0.0), axis=axis)  # type: ignore[no-any-return]


def softmax(a: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """exp(a) normalised along an axis, with the maximum subtracted first."""
    levels = np.asarray(a, dtype=np.float64)
    if levels.ndim == 0 or levels.shape[axis] == 0:
        raise HypothesisError(
            "boltzmann", "at least one level", "the array is empty or a bare number", "Give a list."
        )
    weights = np.exp(levels - levels.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)  # type: ignore[no-any-return]


def lemma_1_level_gap(n: int) -> float:
    """The distance between levels that Lemma 1 asks for: more than 2 log n + 3."""
    return 2.0 * math.log(n) + 3.0


def lemma_1_log_separation_lower(n: int, r: float) -> float:
    """Natural logarithm of Lemma 1's bound (log n)^2 exp(-2r) for sets of n >= 2 levels in [-r, r]."""
    if n < 2:
        raise HypothesisError("lemma_1", "sets of at least two levels", f"n = {n}", "Use Lemma B, which has no n.")
    return 2.0 * math.log(math.log(n)) - 2.0 * r


def lemma_b_separation_lower(a: ArrayLike, b: ArrayLike) -> float:
    """Lemma B's lower bound on |boltz(a) - boltz(b)| for two different finite sets of levels.

    >>> round(lemma_b_separation_lower([4.0, 2.0], [4.0, 0.0]), 4)
    0.1093
    """
    first, second = (np.unique(np.asarray(s, dtype=np.float64))[::-1] for s in (a, b))
    if first.size != np.size(a) or second.size != np.size(b):
        raise HypothesisError(
            "lemma_b", "sets without repeated levels", "a level is repeated", "Use Lemma D for multisets."
        )
    levels = np.union1d(first, second)
    gap = float(np.diff(levels).min()) if levels.size > 1 else math.inf
    if gap < LEMMA_B_GAP:
        raise HypothesisError(
            "lemma_b",
            f"levels at least {LEMMA_B_GAP} apart",
            f"two levels are {gap:.3g} apart",
            f"Multiply the levels by {LEMMA_B_GAP / gap:.3g} (raise beta).",
        )
    common = min(first.size, second.size)
    differs = np.flatnonzero(first[:common] != second[:common])
    if not differs.size and first.size == second.size:
        raise HypothesisError("lemma_b", "two different sets", "the sets are equal", "Compare different sets.")
    k = int(differs[0]) if differs.size else common
    if k == 0:
        return LEMMA_B_OTHER_TOP * gap
    x = float(first[0] - max(s[k] for s in (first, second) if k < s.size))
    return LEMMA_B_SAME_TOP * x * math.exp(-x)
