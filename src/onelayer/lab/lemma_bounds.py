"""The smallest gap of the Boltzmann operator on all sets of n levels, beside what Lemma 1 and Lemma B promise."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.boltzmann import lemma_1_level_gap, lemma_1_log_separation_lower, lemma_b_separation_lower

Array = NDArray[Any]


def compare_lemmas(levels: Array, n: int, gap: float) -> dict[str, float | None]:
    """Levels scaled to a smallest distance; natural logarithms of the smallest gap and of its lower bounds."""
    scaled = (levels - levels[0]) * (gap / np.diff(levels).min() * (1 + 2.0**-40))
    reach = float(scaled[-1])
    # The worst pair for Lemma B shares all but its last entry, which is the lowest level or the next.
    prefix = scaled[::-1][: n - 1]
    bound = lemma_b_separation_lower([*prefix, scaled[1]], [*prefix, scaled[0]])
    applies = gap > lemma_1_level_gap(n)
    return {
        "level_gap": gap,
        "reach": reach,
        "log_gap": log_smallest_gap(scaled, n),
        "log_lemma_b": math.log(bound),
        # Moving all levels moves the operator with them: [-r, r] is as small as it can be.
        "log_lemma_1": lemma_1_log_separation_lower(n, reach / 2) if applies else None,
    }


def log_smallest_gap(levels: Array, n: int) -> float:
    """Of the operator on all sets of n, in as many digits as it takes."""
    zero = Decimal(0)
    with localcontext(prec=40 + int(levels[-1] / 2)):
        exact = [Decimal(float(x)) for x in levels]
        weights = [(x - exact[-1]).exp() for x in exact]
        sets = combinations(zip(exact, weights, strict=True), n)
        values = sorted(sum((x * w for x, w in some), zero) / sum((w for _, w in some), zero) for some in sets)
        return float(min(b - a for a, b in pairwise(values)).ln())
