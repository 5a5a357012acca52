"""Statement  Causal linear attention over tokens (s_t, s_(t-1)) is one gradient step at every token at once, on
all that came before (von Oswald et al. 2023, Proposition 1 of the study of mesa-optimisation).

Gives      Tokens [o, s_t, s_(t-1)]: keys s_(t-1), values eta s_t, queries s_t, written to o: o_t = eta sum_(j <=
t) s_j <s_(j-1), s_t>, which is F s_t after one step from F = 0 on sum |s_j - F s_(j-1)|^2 / 2.
Rests on   gradient_step.
Why        Each token sees a prefix; the proof holds for every set of keys, since it is linear in what they add.
Differs    It begins at F = 0. It is not repeated: after one loop the keys of a token are in other states than it
is.
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

STATEMENT = CATALOGUE["causal_step"]
#: Values for which the usual step size does not overshoot.
USUAL = 32


def build(setting: Setting, eta: float | None = None) -> Built:
    """d is the number of components of a value."""
    refuse_steps(setting, "causal_step")
    k = setting.d
    eta = 1 / (USUAL * setting.norm_squared) if eta is None else positive("causal_step", "eta", eta)
    eta = setting.round(eta)
    o, now, before = list(range(k)), list(range(k, 2 * k)), list(range(2 * k, 3 * k))
    head = (unit(3 * k, *now), unit(3 * k, *before), unit(3 * k, *now, scale=eta), unit(3 * k, *o).T)
    net = layer(
        setting,
        [head],
        "linear",
        readout=[(unit(3 * k, *o), np.zeros(k))],
        channels=tuple(f"{c}{i}" for c in ("next", "s", "before") for i in range(k)),
        causal=True,
    )

    def move(s: list[Any], y: list[Any]) -> list[Any]:
        return [dot(s[c * k : (c + 1) * k], y) for c in range(k)]

    algorithm = Algorithm(
        k,
        k,
        k * k,
        1,
        (0.0,) * (k * k),
        "sum",
        term=write(lambda x, y: [v * u for v in y for u in x], x=k, y=k),
        step=write(lambda s, m: [a + g * eta for a, g in zip(s, m, strict=True)], s=k * k, m=k * k),
        answer=write(move, s=k * k, y=k),
        example=write(lambda s, x, y: [*move(s, y), *y, *x], s=k * k, x=k, y=k),
    )
    constants = (Constant("eta", eta, f"step size; by default 1/({USUAL} B^2), B^2 = d max(|low|, |high|)^2"),)
    return Built(net, algorithm, constants, "one gradient step on all earlier values", "series")
