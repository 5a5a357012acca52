"""Statement  One linear attention layer is a step of gradient descent on the squares of its examples (von Oswald
et al. 2023, Proposition 1); repeated, it is as many steps, for every number of examples.

Gives      Tokens [x, r, flag] with the residual r = y - <w, x>. Queries and keys are x, values -eta r written to r:
r_k <- r_k - eta mean_i <x_i, x_k> r_i, which is y_k - <w + eta mean_i r_i x_i, x_k>. A query begins with r = 0, and
its answer is -r.
Rests on   nothing else.
Why        The residuals of all tokens move with w at once; no token ever holds w itself.
Differs    The published weights hold eta/N, so that they serve one number of examples; here attention divides by
the number of examples that it sees, by a flag, and one set of weights serves all of them.
"""

from __future__ import annotations

import numpy as np

from onelayer.learners.built import Built, Setting, layer, step_size, steps_of, unit
from onelayer.ledger import Constant
from onelayer.network import Transformer
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import Array, Pen, dot
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["gradient_step"]


def build(setting: Setting, eta: float | None = None) -> Built:
    """w <- w + eta mean_i (y_i - <w, x_i>) x_i, from w = 0."""
    steps = steps_of(setting, "gradient_step")
    eta = step_size(setting, "gradient_step", eta, 2 / setting.norm_squared, "2/B^2")
    constants = (
        Constant("eta", eta, "step size; by default 1/B^2, B^2 = d max(|low|, |high|)^2"),
        Constant("steps", steps, "loops of the block"),
    )
    net = network(setting, np.eye(setting.d) * 1.0, eta, steps)
    return Built(net, algorithm(setting, None, eta, steps), constants, f"{steps} steps of gradient descent")


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

    def predictions(pen: Pen) -> tuple[list, list, list]:  # type: ignore[type-arg]
        s, x = pen.group("s", q * d), pen.group("x", d)
        return s, x, [dot(s[j * d : (j + 1) * d], x) for j in range(q)]

    pen = Pen()
    _, x, p = predictions(pen)
    y = pen.group("y", q)
    term = pen.script([(y[j] - p[j]) * u for j in range(q) for u in x])
    pen = Pen()
    s, m = pen.group("s", q * d), pen.group("m", q * d)
    moves = [m[j * d : (j + 1) * d] for j in range(q)]
    if A is not None:
        moves = [[dot(move, [float(a) for a in A[:, c]]) for c in range(d)] for move in moves]
    step = pen.script([u + v * eta for u, v in zip(s, [v for move in moves for v in move], strict=True)])
    pen = Pen()
    answer = pen.script(predictions(pen)[2])
    pen = Pen()
    _, x, p = predictions(pen)
    y = pen.group("y", q)
    example = pen.script([*x, *(y[j] - p[j] for j in range(q)), 1.0])
    pen = Pen()
    _, x, p = predictions(pen)
    query = pen.script([*x, *(-u for u in p), 0.0])
    return Algorithm(d, q, q * d, steps, (0.0,) * (q * d), "mean", term, step, answer, example, query)
