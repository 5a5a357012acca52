"""Statement  The mesa layer solves least squares in its context (von Oswald et al. 2023): its output is the ridge
estimate of the keys and values that it sees, at the query.

Gives      Tokens [x, y, o, flag]; keys and queries x, values y written to o. One layer, no steps: the exact
minimiser of sum (y - <w, x>)^2 + ridge |w|^2.
Rests on   ridge.
Why        q (sum k^T k + ridge I)^-1 sum k^T v is <w, q> for that w.
Differs    The paper's 1/lambda is our ridge. It is not divided by the number of examples: scikit-learn's alpha.

The usual ridge. Let mu be the least eigenvalue of sum k^T k, T its trace, u the unit roundoff. The ridge moves
what is learnt by at most ridge |w| / (mu + ridge); rounding the sum moves it by about u T |w| / mu. Both grow alike
as mu shrinks, so a ridge far below u T gains nothing, and one far above it costs accuracy in proportion. A ridge
below u T is lost besides when it is added to the diagonal, and then prompts that determine no w (fewer examples
than components, a constant series) have a singular matrix. So it is 2 u T, for the trace of KEYS keys at a corner
of the box, or of as many as there are components, if these are more. Keys that are longer, or more of them that are
degenerate, want a larger ridge; where the rounded matrix is singular, `predict` says which.
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
#: Keys at a corner of the box for which the usual ridge outweighs a rounding of each of their sums.
KEYS = 32


def build(setting: Setting, ridge: float | None = None) -> Built:
    """Ridge regression by a linear solve."""
    d, q = setting.d, setting.outputs
    shrunk = ridge_of(setting, "mesa", ridge, d, setting.norm_squared)
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
    constants = (Constant("ridge", shrunk, f"added to the diagonal, scikit-learn's alpha; {RULE}"),)
    return Built(net, algorithm, constants, f"ridge regression with alpha {shrunk:g}, solved")


RULE = f"by default 2 u max({KEYS}, s) |k|^2 for s components and the longest key k of the box"


def ridge_of(setting: Setting, name: str, ridge: Any, size: int, longest: float) -> float:
    """The ridge that was asked for, as the dtype has it, or the usual one for keys of ``size`` components whose
    squares sum to at most ``longest``."""
    usual = setting.round(float(np.finfo(setting.dtype).eps) * max(KEYS, size) * longest)
    if ridge is None:
        return usual
    fine = isinstance(ridge, float | int) and not isinstance(ridge, bool) and setting.round(ridge) > 0
    if not fine or not np.isfinite(setting.round(ridge)):
        found, remedy = f"ridge={ridge!r:.40}", f"Leave it out, for {usual:.2g} in {setting.dtype}."
        raise HypothesisError(name, "a ridge above 0", found, remedy)
    return setting.round(float(ridge))


def refuse_steps(setting: Setting, name: str) -> None:
    """What is computed at once takes no steps."""
    if setting.steps not in (None, 1) or setting.tolerance is not None:
        found = f"steps={setting.steps}, tolerance={setting.tolerance}"
        raise HypothesisError(name, "neither steps nor a tolerance: it is exact", found, "Leave them out.")
