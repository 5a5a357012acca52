"""Statement  A Gaussian kernel smoother (Nadaraya and Watson) is one softmax head of rank d + 1.

Gives      Tokens [x, |x|^2, 1, y, o, flag]; queries (x/h^2, 1), keys (x, -|x|^2/(2 h^2)), values y written to o:
logits are -|x - x_i|^2/(2 h^2), but for what all keys share.
Rests on   nothing else.
Why        Softmax does not see what is added to all logits of a query.
Differs    The published way to kernels is an expansion of rank m with an error; the Gaussian one needs none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.learners.built import Built, Setting, layer, positive, unit
from onelayer.learners.mesa import refuse_steps
from onelayer.ledger import Constant
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["kernel"]


def build(setting: Setting, bandwidth: float = 0.5) -> Built:
    """The mean of y with weights exp(-|x - x_i|^2/(2 bandwidth^2))."""
    refuse_steps(setting, "kernel")
    d, q = setting.d, setting.outputs
    sharp = setting.round(1 / positive("kernel", "bandwidth", bandwidth) ** 2)
    x, square, one = list(range(d)), d, d + 1
    y, o = list(range(d + 2, d + 2 + q)), list(range(d + 2 + q, d + 2 + 2 * q))
    width = d + 3 + 2 * q
    Q, K = unit(width, *x, one), unit(width, *x, square)
    Q[:, :d] *= sharp
    K[square, d] = -sharp / 2
    net = layer(
        setting,
        [(Q, K, unit(width, *y), unit(width, *o).T)],
        "softmax",
        readout=[(unit(width, *o), np.zeros(q))],
        channels=(*(f"x{i}" for i in x), "square", "one", *(f"{c}{i}" for c in "yo" for i in range(q)), "flag"),
        context=width - 1,
    )
    algorithm = Algorithm(
        d,
        q,
        q,
        1,
        (0.0,) * q,
        "softmax",
        term=write(lambda y: y, y=q),
        step=write(lambda m: m, m=q),
        answer=write(lambda s: s, s=q),
        example=write(lambda s, x, y: [*x, dot(x, x), 1.0, *y, *s, 1.0], s=q, x=d, y=q),
        query=write(lambda s, x: [*x, dot(x, x), 1.0, *([0.0] * q), *s, 0.0], s=q, x=d),
        logit=write(lambda x, q: [_far(x, q) * (-sharp / 2)], x=d, q=d),
    )
    constants = (Constant("sharpness", sharp, "1/bandwidth^2, as the weights have it"),)
    return Built(net, algorithm, constants, f"a Gaussian kernel smoother of bandwidth {bandwidth:g}")


def _far(x: list[Any], q: list[Any]) -> Any:
    apart = [a - b for a, b in zip(q, x, strict=True)]
    return dot(apart, apart)
