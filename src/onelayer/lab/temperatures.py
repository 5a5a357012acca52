"""The window of temperatures in which one softmax head tells sets apart: its edges, derived, and where heads are.

With levels y in [0, 1] a head gives phi(S) = sum y e^(beta y) / sum e^(beta y) over the set S.
Hot    phi = k1 + k2 beta + k3 beta^2/2 + ..., the cumulants of S. Sets whose first r - 1 agree differ by
       beta^(r-1)/(r-1)! times the difference of their r-th central moments, to first order: below the beta at which
       the last such pair differs by 2^-b of the spread, b bits are too few. Evenly spaced levels have such pairs.
       Means of random levels all differ. If they do by b bits, heads may be as hot as they like: the edge is 0. If
       two means are nearer than that, whether a temperature parts them depends on what else is near, and no edge is
       derived.
Cold   sets that share all but their smallest entry differ by about x e^(-beta x), x from the top to the lowest
       level but one: b bits are enough up to the beta with beta x - ln(x / spread) = b ln 2.

A token that all sets have, such as the query that sees them, is one more entry of each (`add_query`): it is in the
moments, and in the spread of the tops where it is above them.

Both edges say where b bits are too few, not that they are enough between: phi(S) - phi(T) may change its sign
there, of even levels as of random ones, as where the set of larger mean has the lower top. At such a beta the two
sets meet, and near it b bits are too few. `crossings` counts pairs that must meet.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.contexts.boltzmann import boltzmann
from onelayer.errors import OptionError

Array = NDArray[Any]
#: Distances of neighbouring levels, and values relative to their spread, that differ by no more are equal.
EQUAL = 1e-12


def edges(levels: Array, sets: Array, bits: float) -> tuple[float | None, float]:
    """The hottest and the coldest inverse temperature that b bits may allow; hot is 0 if none is too hot, and None
    where different means are nearer than b bits. ``sets`` are places of sorted levels, [M, n]; a query that all
    sets have is one of them, and no set's lowest level but one."""
    chosen, used = levels[sets], levels[np.unique(sets)]
    means = chosen.mean(axis=1)
    x = float(used[-1] - used[1])
    cold = (bits * math.log(2) + math.log(x / float(np.ptp(chosen.max(axis=1))))) / x
    needed = float(np.ptp(means)) * 2.0**-bits
    steps = np.diff(levels)
    if np.ptp(steps) <= EQUAL * float(steps.max()):
        return _hot_edge_of_even(sets, float(steps.mean()), needed), cold
    return (0.0 if float(np.diff(np.sort(means)).min()) >= needed else None), cold


def _hot_edge_of_even(places: Array, step: float, needed: float) -> float:
    """From moments in whole numbers: n times places, less their sum, added up in powers of up to n, which tell all
    sets apart. Next to a set is one that agrees in the most moments, and is nearest in the first that differs."""
    n = places.shape[1]
    total = places.astype(np.int64).sum(axis=1)
    off = n * places.astype(np.int64) - total[:, None]
    moments = np.stack([total, *((off**r).sum(axis=1) for r in range(2, n + 1))])
    apart = np.abs(np.diff(moments[:, np.lexsort(moments[::-1])]))
    hot = 0.0
    for r in range(2, n + 1):
        first = (apart[: r - 1] == 0).all(axis=0) & (apart[r - 1] > 0)
        if first.any():
            least = float(apart[r - 1][first].min()) / n * (step / n) ** r
            hot = max(hot, (math.factorial(r - 1) * needed / least) ** (1 / (r - 1)))
    return hot


def crossings(levels: Array, sets: Array, low: float, high: float) -> int:
    """Pairs of sets in another order at one of these inverse temperatures than at the other: each of them meets at
    some beta between. Pairs that change places twice are not among them."""
    before, after = (_signs(boltzmann(beta * levels[sets]) / beta) for beta in (low, high))
    return int((before * after < 0).sum()) // 2


def _signs(values: Array) -> Array:
    """Of all differences, 0 where rounding could have made them."""
    apart = np.subtract.outer(values, values)
    found: Array = np.where(np.abs(apart) > EQUAL * float(np.ptp(values)), np.sign(apart), 0).astype(np.int8)
    return found


def add_query(count: int, sets: Array) -> tuple[Array, Array]:
    """Even levels in [0, 1] by half steps, and sets of ``count`` of them with one more token, their query, in the
    middle: apart from all levels if their count is even, and as far from the top as from the bottom, so that a
    head of slope -beta sees what one of slope beta sees of the mirrored sets."""
    query = np.full((len(sets), 1), count - 1)
    return np.linspace(0, 1, 2 * count - 1), np.concatenate([2 * sets, query], axis=1)


def of_head(net: Any, query: float) -> float:
    """The inverse temperature of a trained head for the query of this level: the slope of its logits in a key's
    level. Tokens are their level times one vector plus another, and so are keys: logits are linear in the level."""
    t = {name: tensor.detach().double().numpy() for name, tensor in net.tensors.items()}
    slope, start = t["embedding"][0], t["embedding.bias"]
    W_Q, W_K = (net.factor(0, name).detach().double().numpy()[0] for name in ("W_Q", "W_K"))
    scale = net.shape.head_size**0.5 if net.shape.scaled else 1.0
    return float(abs((query * slope + start) @ W_Q @ (slope @ W_K)) / scale)


def start_head(net: Any, query: float, beta: float) -> None:
    """Scale queries and keys of a head alike, so that `of_head` is beta."""
    if not beta > 0:
        needs = "a positive inverse temperature to start from"
        raise OptionError("lab", needs, f"start={beta:g}", "Give one as small as you like.")
    factor = math.sqrt(beta / of_head(net, query))
    for name in ("0.W_Q", "0.W_K"):
        net.tensors[name].data.mul_(factor)
