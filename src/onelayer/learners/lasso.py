"""Statement  Attention with relu scores and a ReLU layer implement proximal gradient descent on the lasso (Bai et
al. 2023).

Gives      u <- p - eta mean_i (<p, x_i> - y_i) x_i with p = soft(u), soft(u) = max(u - th, 0) - max(-u - th, 0):
as many steps of iterative soft thresholding, and p, in which small weights are exactly 0, is what is answered
with.
Rests on   ridge.
Why        The feed-forward layer comes before attention, so that the gradient is taken at p; a last one makes p
again.
Differs    form="compact" has one linear head instead of two of relu. The last layer, which multiplies p with x,
is attention of each token to itself.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from onelayer.errors import OptionError
from onelayer.learners import carried
from onelayer.learners.built import Built, Setting, positive, step_size, steps_of
from onelayer.ledger import Constant
from onelayer.problems.scripts import Array, dot
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["lasso"]
Form = Literal["published", "compact"]


def build(setting: Setting, penalty: float = 0.1, eta: float | None = None, form: Form = "published") -> Built:
    """The minimiser of mean (y - <w, x>)^2 / 2 + penalty |w|_1, by this many steps."""
    carried.one_output(setting, "lasso")
    if form not in ("compact", "published"):
        raise OptionError("lasso", "a form, compact or published", f"form={form!r:.40}", "Choose one of them.")
    penalty, steps = positive("lasso", "penalty", penalty), steps_of(setting, "lasso")
    eta = step_size(setting, "lasso", eta, 2 / setting.norm_squared, "2/B^2")
    th = setting.round(eta * penalty)
    at = carried.Layout(setting.d)
    if form == "published":
        heads = [at.head(1.0, -eta, -1.0), at.head(-1.0, eta, -1.0)]
    else:
        heads = [at.head(1.0, -eta, -1.0)]

    def soft(s: list[Any]) -> list[Any]:
        return [(u - th).maximum(0.0) - (-u - th).maximum(0.0) for u in s]

    algorithm = carried.algorithm(
        setting.d,
        steps,
        term=lambda s, x, y: [(dot(soft(s), x) - y[0]) * u for u in x],
        step=lambda s, m: [p - g * eta for p, g in zip(soft(s), m, strict=True)],
        answer=lambda s, x: [dot(soft(s), x)],
    )
    kind: Literal["relu", "linear"] = "relu" if form == "published" else "linear"
    net = carried.network(setting, heads, kind, steps, feedforward=thresholds(at, th))
    constants = (
        Constant("eta", eta, "step size; by default 1/B^2, B^2 = d max(|low|, |high|)^2"),
        Constant("threshold", th, "eta times the penalty"),
        Constant("penalty", float(Fraction(th) / Fraction(eta)), f"as the weights have it; {penalty:g} was asked"),
        Constant("steps", steps, "loops of the block"),
    )
    return Built(net, algorithm, constants, f"{steps} steps of the lasso with penalty {penalty:g}")


def thresholds(at: carried.Layout, th: float) -> list[tuple[Array, Array]]:
    """w to soft(w); every other channel is copied as max(u, 0) - max(-u, 0)."""
    eye, bias = np.eye(at.width), np.zeros(2 * at.width)
    bias[at.w] = bias[[at.width + i for i in at.w]] = -th
    return [(np.concatenate([eye, -eye], axis=1), bias), (np.concatenate([eye, -eye]), np.zeros(at.width))]
