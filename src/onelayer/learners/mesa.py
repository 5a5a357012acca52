"""Statement  The mesa layer solves least squares in its context (von Oswald et al. 2023): its output is the ridge
estimate of the keys and values that it sees, at the query.

Gives      Tokens [x, y, o, flag]; keys and queries x, values y written to o. One layer, no steps: the exact
minimiser of sum (y - <w, x>)^2 + ridge |w|^2.
Rests on   ridge.
Why        q (sum k^T k + ridge I)^-1 sum k^T v is <w, q> for that w.
Differs    The paper's 1/lambda is our ridge. It is not divided by the number of examples: scikit-learn's alpha.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.learners.built import Built, Setting, layer, unit
from onelayer.ledger import Constant
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.scripts import dot, write
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["mesa"]
USUAL = {"float32": 1e-6, "float64": 1e-12}


def build(setting: Setting, ridge: float | None = None) -> Built:
    """Ridge regression by a linear solve."""
    shrunk, d, q = ridge_of(setting, "mesa", ridge), setting.d, setting.outputs
    refuse_steps(setting, "mesa")
    x, y, o = list(range(d)), list(range(d, d + q)), list(range(d + q, d + 2 * q))
    width = d + 2 * q + 1
    head = (unit(width, *x), unit(width, *x), unit(width, *y), unit(width, *o).T)
    net = layer(
        setting,
        [head],
        "mesa",
        ridge=shrunk,
        readout=[(unit(width, *o), np.zeros(q))],
        channels=tuple([f"x{i}" for i in range(d)] + [f"{c}{i}" for c in "yo" for i in range(q)] + ["flag"]),
        context=width - 1,
    )
    size = d * q

    def predict(s: list[Any], x: list[Any]) -> list[Any]:
        return [dot([s[i * q + c] for i in range(d)], x) for c in range(q)]

    algorithm = Algorithm(
        d,
        q,
        size,
        1,
        (0.0,) * size,
        "solve",
        term=write(lambda _, x, y: [*x, *y], s=size, x=d, y=q),
        step=write(lambda m: m, m=size),
        answer=write(predict, s=size, x=d),
        example=write(lambda s, x, y: [*x, *y, *predict(s, x), 1.0], s=size, x=d, y=q),
        query=write(lambda s, x: [*x, *([0.0] * q), *predict(s, x), 0.0], s=size, x=d),
        ridge=(shrunk,),
    )
    constants = (Constant("ridge", shrunk, "added to the diagonal; scikit-learn's alpha"),)
    return Built(net, algorithm, constants, f"ridge regression with alpha {shrunk:g}, solved")


def ridge_of(setting: Setting, name: str, ridge: Any) -> float:
    """The ridge that was asked for, as the dtype has it, or the usual one."""
    usual = USUAL[setting.dtype]
    if ridge is None:
        return setting.round(usual)
    fine = isinstance(ridge, float | int) and not isinstance(ridge, bool) and setting.round(ridge) > 0
    if not fine or not np.isfinite(setting.round(ridge)):
        found, remedy = f"ridge={ridge!r:.40}", f"Use {usual:g} in {setting.dtype}."
        raise HypothesisError(name, "a ridge above 0", found, remedy)
    return setting.round(float(ridge))


def refuse_steps(setting: Setting, name: str) -> None:
    """What is computed at once takes no steps."""
    if setting.steps not in (None, 1) or setting.tolerance is not None:
        found = f"steps={setting.steps}, tolerance={setting.tolerance}"
        raise HypothesisError(name, "neither steps nor a tolerance: it is exact", found, "Leave them out.")
