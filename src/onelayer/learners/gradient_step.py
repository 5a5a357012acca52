"""Statement  One linear attention layer is a step of gradient descent on the squares of its examples (von Oswald
et al. 2023, Proposition 1); repeated, it is as many steps, for every number of examples.

Gives      Tokens [x, r, flag] with the residual r = y - <w, x>. Queries and keys are x, values -eta r written to
r: r_k <- r_k - eta mean_i <x_i, x_k> r_i, which is y_k - <w + eta mean_i r_i x_i, x_k>. A query begins with r =
0, and its answer is -r.
Rests on   nothing else.
Why        The residuals of all tokens move with w at once; no token ever holds w itself.
Differs    The published weights hold eta/N, so that they serve one number of examples; here attention divides by
the number of examples that it sees, by a flag, and one set of weights serves all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.learners.built import Built, Risk, Setting, layer, step_size, steps_of, unit
from onelayer.ledger import Constant
from onelayer.network import Transformer
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import Array, dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["gradient_step"]


def build(setting: Setting, eta: float | None = None, optimal: int | None = None, noise: float = 0.0) -> Built:
    """w <- w + eta mean_i (y_i - <w, x_i>) x_i, from w = 0; with ``optimal`` one step, of the size that is best for
    this many examples, uniform in the box, of normal w, with noise of this variance."""
    if optimal is not None:
        return _optimal(setting, eta, optimal, noise)
    steps = steps_of(setting, "gradient_step")
    eta = step_size(setting, "gradient_step", eta, 2 / setting.norm_squared, "2/B^2")
    constants = (
        Constant("eta", eta, "step size; by default 1/B^2, B^2 = d max(|low|, |high|)^2"),
        Constant("steps", steps, "loops of the block"),
    )
    net = network(setting, np.eye(setting.d), eta, steps)
    words = f"{steps} step{'s' if steps > 1 else ''} of gradient descent"
    return Built(net, algorithm(setting, None, eta, steps), constants, words)


def _optimal(setting: Setting, eta: float | None, N: int, noise: float) -> Built:
    """The global minimum over all linear attention layers, but for the rounding of eta."""
    d, r = setting.d, setting.high
    alone = eta is None and setting.steps in (None, 1) and setting.tolerance is None and setting.outputs == 1
    if not alone or setting.low != -r or isinstance(N, bool) or not isinstance(N, int) or N < 1 or not noise >= 0:
        needs = "one step of one output in a box [-r, r], a whole number of examples, and noise of at least 0"
        found = (
            f"eta={eta}, steps={setting.steps}, outputs={setting.outputs}, optimal={N!r:.20}, noise={noise!r:.20}"
        )
        raise HypothesisError("gradient_step", needs, found, "Leave eta and steps out, and give low=-high.")
    second, fourth = r * r / 3, r**4 / 5
    mean_square = fourth + (d - 1) * second**2 + noise * second + (N - 1) * second**2
    best = setting.round(N * second / mean_square)
    value = d * second / 2 * (1 - N * second**2 / mean_square)
    slack = 4 * np.finfo(setting.dtype).eps
    constants = (
        Constant("eta", best, "the step size that is best for these tasks"),
        Constant("risk", value, "half the mean squared error, the least of all linear attention layers"),
        Constant("steps", 1, "loops of the block"),
    )
    risk = Risk(N, r, 1.0, float(noise), value * (1 + 1e-9), float(value * slack**2 * 1e3))
    net, words = network(setting, np.eye(d), best, 1), f"the best step of gradient descent for {N} examples"
    return Built(net, algorithm(setting, None, best, 1), constants, words, risk=risk)


def network(setting: Setting, A: Array, eta: float, steps: int) -> Transformer:
    """The block with queries x A."""
    d, q = setting.d, setting.outputs
    width, x, r = d + q + 1, list(range(d)), list(range(d, d + q))
    head = (unit(width, *x) @ A, unit(width, *x), unit(width, *r, scale=-eta), unit(width, *r).T)
    return layer(
        setting,
        [head],
        "linear",
        readout=[(unit(width, *r, scale=-1.0), np.zeros(q))],
        repeat=steps,
        channels=tuple([f"x{i}" for i in x] + [f"r{i}" for i in range(q)] + ["flag"]),
        context=width - 1,
        mean=True,
    )


def algorithm(setting: Setting, A: Array | None, eta: float, steps: int) -> Algorithm:
    """Steps along A times the gradient; None stands for the identity."""
    d, q = setting.d, setting.outputs
    size = q * d

    def rows(s: list[Any]) -> list[list[Any]]:
        return [s[j * d : (j + 1) * d] for j in range(q)]

    def predict(s: list[Any], x: list[Any]) -> list[Any]:
        return [dot(w, x) for w in rows(s)]

    def residuals(s: list[Any], x: list[Any], y: list[Any]) -> list[Any]:
        return [v - p for v, p in zip(y, predict(s, x), strict=True)]

    def move(s: list[Any], m: list[Any]) -> list[Any]:
        along = m if A is None else [dot(g, map(float, A[:, c])) for g in rows(m) for c in range(d)]
        return [u + v * eta for u, v in zip(s, along, strict=True)]

    return Algorithm(
        d,
        q,
        size,
        steps,
        (0.0,) * size,
        "mean",
        term=write(lambda s, x, y: [r * u for r in residuals(s, x, y) for u in x], s=size, x=d, y=q),
        step=write(move, s=size, m=size),
        answer=write(predict, s=size, x=d),
        example=write(lambda s, x, y: [*x, *residuals(s, x, y), 1.0], s=size, x=d, y=q),
        query=write(lambda s, x: [*x, *(-p for p in predict(s, x)), 0.0], s=size, x=d),
    )
