"""The window of temperatures in which one softmax head tells sets apart: both edges derived, and where Adam is.

With levels y in [0, 1] a head gives phi(S) = sum y e^(beta y) / sum e^(beta y) over the set S.
Hot    phi = k1 + k2 beta + k3 beta^2/2 + ..., the cumulants of S. Sets of equal means differ by beta times the
       difference of their variances, of equal variances too by beta^2/2 times that of k3: b bits of the spread are
       enough from the beta on at which the last pair differs by 2^-b of it. Other means need no beta at all.
Cold   sets that share all but their smallest entry differ by about x e^(-beta x), x from the top to the lowest
       level but one: b bits are enough up to the beta with beta x - ln(x / spread) = b ln 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: Relative to the spread: cumulants that are nearer are equal.
EQUAL = 1e-9


def edges(levels: Array, sets: Array, bits: float) -> tuple[float, float]:
    """The hottest and the coldest inverse temperature that b bits allow; hot is 0 if all means differ."""
    chosen = levels[sets]
    spread = float(np.ptp(chosen.mean(axis=1)))
    x = float(np.sort(levels)[-1] - np.sort(levels)[1])
    cold = (bits * math.log(2) + math.log(x / float(np.ptp(chosen.max(axis=1))))) / x
    return _hot_edge(chosen, spread * 2.0**-bits, EQUAL * spread), cold


def _hot_edge(chosen: Array, needed: float, equal: float) -> float:
    means = chosen.mean(axis=1)
    off = chosen - means[:, None]
    cumulants = np.round(np.stack([means, (off**2).mean(axis=1), (off**3).mean(axis=1)]) / equal)
    apart = np.abs(np.diff(cumulants[:, np.lexsort(cumulants[::-1])])) * equal
    same_mean = apart[0] == 0
    by_variance = needed / apart[1][same_mean & (apart[1] > 0)]
    last = apart[2][same_mean & (apart[1] == 0)]
    if (last == 0).any():
        return math.inf  # no term up to the second tells them apart
    return float(max(*by_variance, *np.sqrt(2 * needed / last), 0.0, 0.0))


def of_head(net: Any, levels: Array) -> float:
    """The inverse temperature of a trained head, mean over its queries: the slope of logits in a key's level."""
    t = {name: tensor.detach().double().numpy() for name, tensor in net.tensors.items()}
    slope, start = t["embedding"][0], t["embedding.bias"]
    W_Q, W_K = (net.factor(0, name).detach().double().numpy()[0] for name in ("W_Q", "W_K"))
    queries = (levels[:, None] * slope + start) @ W_Q
    scale = net.shape.head_size**0.5 if net.shape.scaled else 1.0
    return float(np.abs(queries @ (slope @ W_K)).mean() / scale)
