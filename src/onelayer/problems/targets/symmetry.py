"""Whether a target is as symmetric as its kind says: tried on samples, not proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.problems.targets.program import Array

if TYPE_CHECKING:
    from onelayer.problems.targets.target import Target

#: What float32 may cost the values of a function.
ROUNDING = 1e-5


def asymmetry(target: Target, X: Array) -> str:
    """A witness that reordering tokens does not do to the values what the kind says; "" if none is found."""
    before, order = target.evaluate(X), np.random.default_rng(1).permutation(target.n)
    for swap in (order, np.roll(np.arange(target.n), 1)):
        after = target.evaluate(X[:, swap])
        wanted = before[:, swap] if target.per == "token" else before
        error = np.abs(after - wanted) - ROUNDING * (1 + np.abs(wanted))
        worst = int(np.argmax(np.nan_to_num(error).reshape(len(X), -1).max(axis=1)))
        if not (error[worst] <= 0).all():
            values = f"the values {wanted[worst].tolist()} would follow, they are {after[worst].tolist()}"
            return f"with the tokens of {X[worst].tolist()} in the order {swap.tolist()} {values}"
    return ""


def try_symmetry(target: Target, X: Array) -> None:
    witness = "" if target.kind == "ordered" or target.n == 1 else asymmetry(target, X)
    if witness:
        needs = f"{target.name!r} to be {target.kind}"
        raise HypothesisError("target", needs, witness, 'Use kind="ordered".')
