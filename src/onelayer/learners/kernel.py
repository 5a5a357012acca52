"""Statement  A Gaussian kernel smoother (Nadaraya and Watson) is one softmax head of rank d + 1.

Gives      Tokens [x, |x|^2, 1, y, o, flag]; queries (x/h^2, 1), keys (x, -|x|^2/(2 h^2)), values y written to o:
logits are -|x - x_i|^2/(2 h^2), but for what all keys share.
Rests on   nothing else.
Why        Softmax does not see what is added to all logits of a query.
Differs    The published way to kernels is an expansion of rank m with an error; the Gaussian one needs none.
"""

from __future__ import annotations

from typing import Any

from onelayer.learners.averaged import average, width_of
from onelayer.learners.built import Built, Setting, positive, unit
from onelayer.learners.mesa import refuse_steps
from onelayer.ledger import Constant
from onelayer.problems.scripts import dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["kernel"]


def build(setting: Setting, bandwidth: float = 0.5) -> Built:
    """The mean of y with weights exp(-|x - x_i|^2/(2 bandwidth^2))."""
    refuse_steps(setting, "kernel")
    d = setting.d
    sharp = setting.round(1 / positive("kernel", "bandwidth", bandwidth) ** 2)
    names = (*(f"x{i}" for i in range(d)), "square", "one")
    width, x, square, one = width_of(setting, len(names)), list(range(d)), d, d + 1
    Q, K = unit(width, *x, one), unit(width, *x, square)
    Q[:, :d] *= sharp
    K[square, d] = -sharp / 2
    logit = write(lambda x, q: [_far(x, q) * (-sharp / 2)], x=d, q=d)
    net, algorithm = average(setting, names, lambda x: [*x, dot(x, x), 1.0], (Q, K), logit)
    constants = (Constant("sharpness", sharp, "1/bandwidth^2, as the weights have it"),)
    return Built(net, algorithm, constants, f"a Gaussian kernel smoother of bandwidth {bandwidth:g}")


def _far(x: list[Any], q: list[Any]) -> Any:
    apart = [a - b for a, b in zip(q, x, strict=True)]
    return dot(apart, apart)
