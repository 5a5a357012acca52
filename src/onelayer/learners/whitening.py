"""Statement  GD++ (von Oswald et al. 2023): a second head takes gamma mean_i(x_i x_i^T) x off every input, beside
the step of gradient descent on the residuals.

Gives      Tokens [u, r, flag] with u = M x and a matrix M that all tokens share: M <- M - gamma S M with S =
mean u u^T, and w <- w + eta M^T mean_i r_i u_i.
Rests on   gradient_step.
Why        Large directions of the inputs shrink faster than small ones, so that later steps see a rounder
problem.
Differs    Stated for every number of examples and loops, with M as part of the state; what an example adds, u v^T
with v = M^T u, is said in terms of its token, so that the proof need not multiply M by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.learners.built import Built, Setting, layer, step_size, steps_of, unit
from onelayer.ledger import Constant
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["whitening"]
#: A step writes d x d numbers; the checker reads no larger certificates.
LARGEST = 50


def build(setting: Setting, eta: float | None = None, gamma: float | None = None) -> Built:
    """Both heads, of one output."""
    d = setting.d
    if setting.outputs != 1 or d > LARGEST:
        needs, found = f"one output, and d of at most {LARGEST}", f"outputs={setting.outputs}, d={d}"
        raise HypothesisError("whitening", needs, found, 'Use learner("gd") or learner("preconditioned").')
    steps = steps_of(setting, "whitening")
    eta = step_size(setting, "whitening", eta, 2 / setting.norm_squared, "2/B^2")
    gamma = step_size(setting, "whitening", gamma, 1 / setting.norm_squared, "1/B^2 (gamma)")
    width, x, r = d + 2, list(range(d)), d
    heads = [
        (unit(width, *x), unit(width, *x), unit(width, r, scale=-eta), unit(width, r).T),
        (unit(width, *x), unit(width, *x), unit(width, *x, scale=-gamma), unit(width, *x).T),
    ]
    net = layer(
        setting,
        heads,
        "linear",
        readout=[(unit(width, r, scale=-1.0), np.zeros(1))],
        repeat=steps,
        channels=(*(f"x{i}" for i in x), "r", "flag"),
        context=width - 1,
        mean=True,
    )
    constants = (
        Constant("eta", eta, "step size; by default 1/B^2, B^2 = d max(|low|, |high|)^2"),
        Constant("gamma", gamma, "how much of its second moments is taken off an input; by default 1/(2 B^2)"),
        Constant("steps", steps, "loops of the block"),
    )
    return Built(net, algorithm(d, eta, gamma, steps), constants, f"{steps} steps of GD++")


def algorithm(d: int, eta: float, gamma: float, steps: int) -> Algorithm:
    """The state is M, row by row, and w."""
    size = d * d + d

    def matrix(s: list[Any]) -> list[list[Any]]:
        return [s[i * d : (i + 1) * d] for i in range(d)]

    def inputs(s: list[Any], x: list[Any]) -> list[Any]:
        return [dot(row, x) for row in matrix(s)]

    def term(s: list[Any], e: list[Any]) -> list[Any]:
        back = [dot(row, e[:d]) for row in zip(*matrix(s), strict=True)]  # M^T u
        return [*(e[d] * v for v in back), *(u * v for u in e[:d] for v in back)]

    def step(s: list[Any], m: list[Any]) -> list[Any]:
        moved = [a - b * gamma for a, b in zip(s[: d * d], m[d:], strict=True)]
        return [*moved, *(w + g * eta for w, g in zip(s[d * d :], m[:d], strict=True))]

    start = tuple(np.eye(d).ravel().tolist()) + (0.0,) * d
    return Algorithm(
        d,
        1,
        size,
        steps,
        start,
        "mean",
        term=write(term, s=size, e=d + 2),
        step=write(step, s=size, m=size),
        answer=write(lambda s, x: [dot(s[d * d :], x)], s=size, x=d),
        example=write(lambda s, x, y: [*inputs(s, x), y[0] - dot(s[d * d :], x), 1.0], s=size, x=d, y=1),
        query=write(lambda s, x: [*inputs(s, x), -dot(s[d * d :], x), 0.0], s=size, x=d),
    )
