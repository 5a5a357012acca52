"""Statement  A kernel smoother is a softmax head of any rank, up to what the head's logits are off.

Gives      Tokens [x, y, o, p, k, flag]; the feed-forward part writes p and k, functions of x that are linear
between knots: the first singular vectors of rho on the knots, each times the root of its singular
value. Queries are p, keys k, values y written to o. If logits are within eps of rho, answers are within
2 Y tanh(eps/2) for |y| <= Y.
Rests on   nothing else.
Why        The difference of two softmax averages is linear in y, so largest where every y is -Y or Y; then it is
a difference of two values of the logistic function, 2 eps apart. Softmax does not see what all keys share.
Differs    The published bound is one of the mean error, from the tail of the singular values; this one holds for
every prompt of a box, however long, and the checker proves it of the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onelayer.learners.averaged import average, width_of
from onelayer.learners.built import Built, Setting, unit
from onelayer.ledger import Constant
from onelayer.problems.scripts import Script
from onelayer.statements import CATALOGUE

Array = NDArray[np.float64]
STATEMENT = CATALOGUE["kernel_head"]


def build(setting: Setting, logit: Script, rank: int, knots: int, says: str) -> Built:
    """The mean of y with weights exp(rho(q, x)), rho the logit, by a head of this rank."""
    q = setting.outputs
    places = np.linspace(setting.low, setting.high, knots).astype(setting.dtype).astype(np.float64)
    p, k = singular_functions(logit, places, rank)
    blank = tuple(f"{c}{i}" for c in "pk" for i in range(rank))
    width, y = width_of(setting, 1, len(blank)), list(range(1, 1 + q))
    asks, holds = (list(range(1 + 2 * q + at * rank, 1 + 2 * q + (at + 1) * rank)) for at in (0, 1))
    pieces = _pieces(places, y, asks + holds, np.hstack([p, k]), width)
    heads = unit(width, *asks), unit(width, *holds)
    net, algorithm = average(setting, ("x",), lambda x: x, heads, logit, blank, pieces)
    constants = (
        Constant("rank", rank, "of the logits, as a function of query and key"),
        Constant("knots", knots, "between which queries and keys are linear in x"),
    )
    return Built(net, algorithm, constants, says)


def singular_functions(logit: Script, places: Array, rank: int) -> tuple[Array, Array]:
    """[places, rank] Queries and keys whose products are nearest to rho, but for what all keys of a query share."""
    (found,) = logit.run({"q": [places[:, None]], "x": [places[None, :]]})
    table = np.broadcast_to(np.asarray(found, np.float64), (len(places), len(places)))
    U, s, V = np.linalg.svd(table - table.mean(axis=1, keepdims=True))
    return U[:, :rank] * np.sqrt(s[:rank]), V[:rank].T * np.sqrt(s[:rank])


def _pieces(
    places: Array, y: list[int], written: list[int], values: Array, width: int
) -> list[tuple[Array, Array]]:
    """Two layers that keep y, and write functions of x with these values at places, linear between them."""
    slopes = np.diff(values, axis=0) / np.diff(places)[:, None]
    count, q = len(slopes), len(y)
    first, second = np.zeros((width, count + 2 * q)), np.zeros((count + 2 * q, width))
    first[0, :count] = 1
    first[y, count : count + q], first[y, count + q :] = np.eye(q), -np.eye(q)
    second[:count, written] = np.diff(slopes, axis=0, prepend=0.0 * slopes[:1])
    second[count : count + q, y], second[count + q :, y] = np.eye(q), -np.eye(q)
    bias = np.zeros(width)
    bias[written] = values[0]
    return [(first, np.concatenate([-places[:-1], np.zeros(2 * q)])), (second, bias)]
