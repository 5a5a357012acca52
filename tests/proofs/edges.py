"""Numbers at which a proof might not hold: beside thresholds, at the ends of the range, around 2^24 and 2^53."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.checker.adversary_exact import BITS
from tests.proofs.theorems import Q


def stored(name: str, x: float) -> float:
    """x as a number of the format."""
    with np.errstate(over="ignore"):
        return float(np.float32(x)) if name == "float32" else float(x)


def beside(name: str, x: float) -> list[float]:
    """x and its neighbours, as numbers of the format."""
    kind = np.float32 if name == "float32" else np.float64
    with np.errstate(over="ignore", under="ignore"):
        near = kind(x)
        found = (np.nextafter(near, kind(-np.inf)), near, np.nextafter(near, kind(np.inf)))
    return [float(y) for y in found if np.isfinite(y)]


def numbers(name: str) -> list[float]:
    """Of both signs: zero, one and its neighbours, halves, whole numbers near the limit, near underflow, large."""
    bits, least, most = BITS[name]
    limit, tiny = 2.0**bits, 2.0**least
    found = [0.0, 3.0, 0.1, limit / 3, limit - 1, limit + 2, tiny * 2.0 ** (1 - bits), 1.5 * tiny]
    for x in (1.0, 0.5, 1.5, limit, limit / 2, 2.0**24, tiny, 2 * tiny, 4 * tiny, 8 * tiny, 8 * tiny + 2.0**-1019):
        found += beside(name, x)
    found += [2.0 ** (most - 2), 2.0 ** (most - 3) * 1.25, 2.0 ** (least // 2), tiny / 2, tiny / 4]
    found = [stored(name, x) for x in found]
    return sorted({s * x for x in found for s in (-1.0, 1.0) if np.isfinite(x)})


def fractions(a: np.ndarray) -> list[Fraction]:
    return [Q(x) for x in np.asarray(a).ravel().tolist()]
