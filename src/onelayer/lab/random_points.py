"""How many bits tell the nearest two of M normal points apart, for comparison with contexts of a head.

Points of density f in s dimensions have M^2/2 (2r)^s int f^2 pairs within r in the sup norm, on average; for large
M, and r small against sigma, their number is Poisson, so that the nearest pair has r^s M^2/2 2^s int f^2 = E, an
exponential variable. For normal points int f^2 is (4 pi sigma^2)^(-s/2), so r = sqrt(pi) sigma (2 E/M^2)^(1/s) and
    log2(sigma/r) = 2 log2(M)/s - log2(pi)/2 - 1/s - log2(E)/s.
log2(E) is -gamma/ln 2 = -0.833 on average, and its median is log2(ln 2) = -0.529. A span of more than sigma adds
log2(span/sigma).
"""

from __future__ import annotations

import math

#: Euler's constant.
GAMMA = 0.5772156649015329


def bits_of_nearest(M: float, s: int, median: bool = False) -> float:
    """log2 of sigma over the distance, in the largest coordinate: the mean, or the median, over draws."""
    log_of_exponential = math.log2(math.log(2)) if median else -GAMMA / math.log(2)
    return (2 * math.log2(M) - 1 - log_of_exponential) / s - math.log2(math.pi) / 2
