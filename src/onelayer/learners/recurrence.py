"""Statement  One causal mesa head finds an affine recurrence from its first values and continues it.

Gives      Tokens [o, s_t, s_(t-1), ..., s_(t-p), 1]: keys (s_(t-1), ..., s_(t-p), 1), values s_t, queries (s_t,
..., s_(t-p+1), 1). At every value, the ridge estimate of the recurrence so far, applied to the last p values.
Rests on   mesa.
Why        The query at t is the key at t + 1: the estimate is asked for what comes next.
Differs    Ours; the task s' = a s + b is from a study of trained networks. Values of several components and
several lags are allowed: an autoregressive forecaster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import OptionError
from onelayer.learners.built import Built, Setting, layer, unit
from onelayer.learners.mesa import RULE, refuse_steps, ridge_of
from onelayer.ledger import Constant
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["recurrence"]


def build(setting: Setting, order: int = 1, affine: bool = True, ridge: float | None = None) -> Built:
    """d is the number of components of a value."""
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= 256:
        raise OptionError("recurrence", "an order from 1 to 256", f"order={order!r:.40}", "Give such a number.")
    refuse_steps(setting, "recurrence")
    k = setting.d
    lagged, extra = order * k, 1 if affine else 0
    shrunk = ridge_of(setting, "recurrence", ridge, lagged + extra, order * setting.norm_squared + extra)
    o, now, before = list(range(k)), list(range(k, 2 * k)), list(range(2 * k, 2 * k + lagged))
    width = 2 * k + lagged + 1
    one = [width - 1] if affine else []
    head = (
        unit(width, *now, *before[: lagged - k], *one),
        unit(width, *before, *one),
        unit(width, *now),
        unit(width, *o).T,
    )
    names = [f"{c}{i}" for c in ("next", "s") for i in range(k)]
    net = layer(
        setting,
        [head],
        "mesa",
        ridge=shrunk,
        readout=[(unit(width, *o), np.zeros(k))],
        channels=(*names, *(f"lag{j + 1}.{i}" for j in range(order) for i in range(k)), "one"),
        causal=True,
    )
    features = lagged + extra
    size = features * k

    def next_value(s: list[Any], x: list[Any], y: list[Any]) -> list[Any]:
        known = [*y, *x[: lagged - k], *([1.0] if affine else [])]
        return [dot([s[i * k + c] for i in range(features)], known) for c in range(k)]

    algorithm = Algorithm(
        lagged,
        k,
        size,
        1,
        (0.0,) * size,
        "solve",
        term=write(lambda x, y: [*x, *([1.0] if affine else []), *y], x=lagged, y=k),
        step=write(lambda m: m, m=size),
        answer=write(next_value, s=size, x=lagged, y=k),
        example=write(lambda s, x, y: [*next_value(s, x, y), *y, *x, 1.0], s=size, x=lagged, y=k),
        ridge=(shrunk,),
    )
    constants = (
        Constant("ridge", shrunk, f"added to the diagonal; {RULE}"),
        Constant("order", order, "values before the one that is asked for"),
    )
    kind = "affine" if affine else "linear"
    return Built(net, algorithm, constants, f"{kind} recurrences of order {order}", "series", lags=order)
