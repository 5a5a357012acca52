"""Statement  Several learners run side by side, and validation inside the prompt picks the better one (Bai et al.
2023).

Gives      Two ridge learners in separate channels of one block, tokens [x, y, r1, r2, V1, V2, 1, flag, judge].
Examples with the flag `judge` are asked as queries are, so they end with their validation residuals; a second
layer, whose keys are the judges, writes V_k = mean r_k^2 to every query. The readout has g = clip((V_1 - V_2) / (2
delta) + 1/2, 0, 1) and gives p_1 + relu(p_2 - p_1 - R (1 - g)) - relu(p_1 - p_2 - R (1 - g)).
Rests on   ridge.
Why        Where |V_1 - V_2| >= delta, g is 0 or 1, and the answer is p_1 or p_2 exactly, if |p_1 - p_2| <= R.
Differs    The published choice is by a softmax over all learners, which mixes them; this one is exact but for a gap
of width 2 delta, inside which it is between the two or one of them.
"""

from __future__ import annotations

from itertools import chain
from math import sqrt
from typing import Any

import numpy as np

from onelayer.errors import HypothesisError, OptionError
from onelayer.learners.bounds import safe_step
from onelayer.learners.built import Built, Setting, layer, positive, steps_of, unit
from onelayer.learners.carried import one_output
from onelayer.learners.shrunken import Shrinking
from onelayer.ledger import Constant
from onelayer.network import Transformer
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import Array, dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["selection"]


def build(
    setting: Setting,
    penalties: tuple[float, float] = (0.01, 1.0),
    judges: float = 0.25,
    delta: float = 2.0**-20,
) -> Built:
    """The better of two ridge estimates, by the mean squares of the last share ``judges`` of the examples."""
    one_output(setting, "selection")
    small, large = _two(penalties)
    if not isinstance(judges, float) or not 0 < judges < 1:
        needs, found = "a share of examples that judge, between 0 and 1", f"judges={judges!r:.40}"
        raise HypothesisError("selection", needs, found, "Give judges=0.25.")
    steps, eta = steps_of(setting, "selection"), safe_step(setting)
    delta = 2.0 ** float(np.floor(np.log2(positive("selection", "delta", delta))))
    both = [Shrinking.of(setting, eta, penalty, accelerated=False) for penalty in (small, large)]
    sizes = [setting.largest * sqrt(setting.norm_squared) / (2 * sqrt(float(b.penalty))) for b in both]
    reach = setting.round(sum(sizes) * (1 + 2.0**-10))
    keep = [b.a for b in both]
    net = network(setting, eta, keep, steps, delta, reach)
    constants = (
        Constant("eta", eta, "step size, 1/B^2, B^2 = d max(|low|, |high|)^2"),
        *(
            Constant(f"penalty_{k}", float(b.penalty), "of the mean loss, as the weights have it")
            for k, b in zip((1, 2), both, strict=True)
        ),
        Constant("delta", delta, "mean squares so far apart decide; a power of two"),
        Constant("reach", reach, "what the two answers may differ by: y B / (2 sqrt(penalty)), of both"),
        Constant("steps", steps, "loops of the block"),
    )
    words = (
        f"{steps} steps of ridge regression, penalty {small:g} or {large:g} as {judges:.0%} of the examples judge"
    )
    made = algorithm(setting.d, eta, keep, steps, delta, reach)
    return Built(net, made, constants, words, judges=judges, selects=(delta, reach))


def _two(penalties: Any) -> tuple[float, float]:
    if not isinstance(penalties, tuple | list) or len(penalties) != 2 or penalties[0] == penalties[1]:
        found = f"penalties={penalties!r:.40}"
        raise OptionError("selection", "two penalties to choose between", found, "Give penalties=(0.01, 1.0).")
    first, second = (positive("selection", "penalties", penalty) for penalty in penalties)
    return first, second


def network(setting: Setting, eta: float, keep: list[float], steps: int, delta: float, reach: float) -> Transformer:
    d, width = setting.d, setting.d + 8
    x, y, r, V, one, flag, judge = list(range(d)), d, [d + 1, d + 2], [d + 3, d + 4], d + 5, d + 6, d + 7
    W = np.eye(width)
    W[r, r], W[y, r] = keep, [1 - k for k in keep]
    shrink, last = [(W, np.zeros(width))], np.zeros((width, width))  # only what judges and answers need is kept
    last[:, r], last[one, one] = W[:, r], 1.0
    head = (unit(width, *x), unit(width, *x), unit(width, *r, scale=-eta), unit(width, *r).T)
    squares = [(unit(width, one), unit(width, r[k]), unit(width, r[k]), unit(width, V[k]).T) for k in (0, 1)]
    panel = layer(
        setting,
        squares,
        "linear",
        feedforward=[(last, np.zeros(width))],
        readout=gate(width, r, V, delta, reach),
        context=judge,
        mean=True,
    )
    return layer(
        setting,
        [head],
        "linear",
        feedforward=shrink,
        repeat=steps,
        channels=(*(f"x{i}" for i in x), "y", "r1", "r2", "V1", "V2", "one", "flag", "judge"),
        further=(panel,),
        context=flag,
        mean=True,
    )


def gate(width: int, r: list[int], V: list[int], delta: float, reach: float) -> list[tuple[Array, Array]]:
    """Units: the two ends of g, and answers -r_k, both signs; then the two differences; then their sum."""
    first, second, last = np.zeros((width, 6)), np.zeros((6, 4)), np.array([[1.0], [-1.0], [1.0], [-1.0]])
    first[V[0], :2], first[V[1], :2] = 1 / (2 * delta), -1 / (2 * delta)
    first[r[0], 2:4], first[r[1], 4:6] = (-1, 1), (-1, 1)
    second[:, 0] = (reach, -reach, -1, 1, 1, -1)  # p2 - p1 - R (1 - g)
    second[:, 1] = (reach, -reach, 1, -1, -1, 1)
    second[2:4, 2], second[2:4, 3] = (1, -1), (-1, 1)
    return [
        (first, np.array([0.5, -0.5, 0, 0, 0, 0])),
        (second, np.array([-reach, -reach, 0, 0])),
        (last, np.zeros(1)),
    ]


def algorithm(d: int, eta: float, keep: list[float], steps: int, delta: float, reach: float) -> Algorithm:
    """The state is both w; its last step and answers are those of ridge regression, and v decides."""

    def shrunk(s: list[Any]) -> list[list[Any]]:
        return [[w * k for w in s[i * d : (i + 1) * d]] for i, k in enumerate(keep)]

    def residuals(s: list[Any], x: list[Any], y: list[Any]) -> list[Any]:
        return [y[0] - dot(s[i * d : (i + 1) * d], x) for i in (0, 1)]

    def after(s: list[Any], x: list[Any], y: list[Any]) -> list[Any]:
        return [y[0] - dot(u, x) for u in shrunk(s)]

    def either(s: list[Any], x: list[Any]) -> list[Any]:
        return [dot(u, x) for u in shrunk(s)]

    def answer(s: list[Any], x: list[Any], v: list[Any]) -> list[Any]:
        (p, q), z = either(s, x), (v[0] - v[1]) * (1 / (2 * delta))
        g = (z + 0.5).maximum(0.0) - (z - 0.5).maximum(0.0)
        off = (1.0 - g) * reach
        return [p + (q - p - off).maximum(0.0) - (p - q - off).maximum(0.0)]

    size, zeros = 2 * d, [0.0] * (d + 1)
    return Algorithm(
        d,
        1,
        size,
        steps,
        (0.0,) * size,
        "mean",
        term=write(lambda s, x, y: [r * u for r in after(s, x, y) for u in x], s=size, x=d, y=1),
        step=write(lambda s, m: [w + g * eta for w, g in zip(chain(*shrunk(s)), m, strict=True)], s=size, m=size),
        answer=write(answer, s=size, x=d, v=2),
        example=write(lambda s, x, y: [*x, *y, *residuals(s, x, y), 0.0, 0.0, 1.0, 1.0, 0.0], s=size, x=d, y=1),
        query=write(lambda s, x: [*x, 0.0, *residuals(s, x, [0.0]), 0.0, 0.0, 1.0, 0.0, 0.0], s=size, x=d),
        judge=write(lambda s, x, y: [*x, *y, *residuals(s, x, y), 0.0, 0.0, 1.0, 0.0, 1.0], s=size, x=d, y=1),
        weigh=write(lambda s, x, y: [r * r for r in after(s, x, y)], s=size, x=d, y=1),
        judged=write(lambda s, x, v: [*zeros, *after(s, x, [0.0]), *v, 1.0, 0.0, 0.0], s=size, x=d, v=2),
        either=write(either, s=size, x=d),
    )
