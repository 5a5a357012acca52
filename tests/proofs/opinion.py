"""A second evaluation of layers, in fractions: every step is a theorem, and none is shared with the checker.

Units have the interval of all values that an arithmetic allows; it is as narrow as the theorems allow, so that the
checker's balls must contain it. None stands for a value that may overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tests.proofs.theorems import (
    Format,
    Q,
    Sum,
    Term,
    exact_sum,
    growth,
    no_overflow,
    one_value,
    readings,
    unit_at_least_one,
    unit_nonpositive,
    value,
)

Interval = tuple[Fraction, Fraction]
Point = tuple[Fraction, Fraction]


def layer(f: Format, big: Fraction, inputs: Sequence[Interval | None], W, b) -> list[Interval | None]:
    """x W + b for all units; a block-diagonal W is [groups, inputs, outputs]."""
    W = W.reshape(-1, *W.shape[-2:])
    groups, n, outputs = W.shape
    found: list[Interval | None] = []
    for g in range(groups):
        own = inputs[g * n : (g + 1) * n]
        for j in range(outputs):
            weights = [Q(w) for w in W[g, :, j].tolist()]
            found.append(unit(f, big, own, weights, Q(float(b[g * outputs + j]))))
    return found


def unit(
    f: Format, big: Fraction, own: Sequence[Interval | None], weights: Sequence[Fraction], b: Fraction
) -> Interval | None:
    """All values of one sum, in any order."""
    if any(x is None for x in own):
        return None
    pairs = [(x, w) for x, w in zip(own, weights, strict=True) if x is not None and w != 0 and x != (0, 0)]
    balls = [(((x[0] + x[1]) / 2, (x[1] - x[0]) / 2), (w, Q(0))) for x, w in pairs]
    total = Sum(balls, (b, Q(0)))
    if no_overflow(f, total) >= big:
        return None
    points: list[Term] = [(x[0], w) for x, w in pairs if x[0] == x[1]] + [b] * (b != 0)
    moving = [(x, w) for x, w in pairs if x[0] != x[1]]
    if not moving and (f.prec is None or exact_sum(f, points)):
        return total.mid, total.mid
    off = error(f, total)
    low, high = total.mid - off, total.mid + off
    return narrowed(f, moving, points, low, high, weights, own, b)


def narrowed(f, moving, points, low, high, weights, own, b) -> Interval:
    """By monotone rounding: a unit that reads one number may be known to be at most 0, or at least 1, and a group
    of which a unit is at least 1 to be at most 0."""
    lone = moving or [((t[0], t[0]), t[1]) for t in points if not isinstance(t, Fraction)]
    rest = [t for t in points if isinstance(t, Fraction)] if not moving else points
    for (x, w), others in [((x, w), rest) for x, w in lone] if len(lone) == 1 else []:
        if len(others) > 1 or not all(one_value(f, t) for t in others):
            break
        constant = sum(map(value, others), Q(0))
        seen = (readings(f, *x), w, constant)
        if unit_nonpositive(f, seen):
            high = min(high, Q(0))
        if unit_at_least_one(f, seen):
            low = max(low, Q(1))
    if b == 1 and set(weights) <= {Q(-1)} and any(x[0] >= 1 for x in own):  # the last step of cell_off
        high = min(high, Q(0))
    return min(low, high), high


def error(f: Format, total: Sum) -> Fraction:
    """How far values are from the sum at the midpoints: spread, roundings, and what flushing may cost."""
    if total.is_kept(f):
        return total.spread
    model = growth(total.roundings, f.u)
    operations = 2 * (len(total.live) + any(total.bias))  # each may flush what it gives, or reads
    lost = f.tiny * operations
    for (m, r), (w, _) in total.live:
        lost += f.tiny * (abs(w) * (abs(m) - r < f.tiny) + (abs(m) + r) * (abs(w) < f.tiny))
    return total.size * model + total.spread * (1 + model) + lost * (1 + model)


def stack(f: Format, A, layers, t: Sequence[Interval]) -> list[Interval | None]:
    """Layers with ReLU between them."""
    x: list[Interval | None] = list(t)
    for i, one in enumerate(layers):
        if i:
            x = [None if v is None else (max(v[0], Q(0)), max(v[1], Q(0))) for v in x]
        x = layer(f, Q(A.big), x, one.weight, one.bias)
    return x


def contains(found: Interval | None, m: float, r: float) -> bool:
    """Whether a ball contains all values."""
    if not r < np.inf:
        return True
    return found is not None and Q(m) - Q(r) <= found[0] and found[1] <= Q(m) + Q(r)
