"""The same target at several tolerances: how fast a construction gets nearer as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable

from onelayer.approximation import Approximation, _build, _choose
from onelayer.approximation.plan import Request
from onelayer.errors import HypothesisError

#: The error falls like the width of a cell to this power; for hats, if the target is twice differentiable.
RATES = {"quantise": 1, "published": 1, "positional": 2}
#: Times the tolerance of the model at hand; each halving comes after those that are cheaper.
FACTORS = (4.0, 2.0, 0.5, 0.25)
#: A halving multiplies the work by a few; one that would not fit into the time left is not begun.
GROWTH = 6.0


def refinements(
    model: Approximation, seconds: float, on_step: Callable[[str], None], seed: int = 0
) -> list[Approximation]:
    """Models of the same target by the same construction, from coarse to fine, ``model`` among them."""
    begun = time.perf_counter()
    built, last = [model], 0.0
    for factor in FACTORS:
        tolerance = factor * float(str(model.ledger["tolerance"]))
        started = time.perf_counter()
        if factor < 1 and started - begun + GROWTH * last > seconds:
            break
        request = Request(
            model.target, model.low, model.high, tolerance, model.transformer.dtype, seed, lambda _: None
        )
        on_step(f"drawing: the same with a tolerance of {tolerance:g}")
        try:
            built.append(_build(request, _choose(request, model.construction)))
        except HypothesisError:  # out of reach
            break
        last = time.perf_counter() - started
    sizes = {size(found): found for found in sorted(built, key=lambda found: -found.error_bound)}  # the best stays
    return [sizes[key] for key in sorted(sizes)]


def size(model: Approximation) -> int:
    """Cells of the box; parameters, if a construction has no cells."""
    if "levels" not in model.ledger:
        return model.n_parameters
    return int(int(str(model.ledger["levels"])) ** (model.target.n * model.target.d))


def slope(model: Approximation) -> float | None:
    """The power of the number of cells with which the error is to fall, in theory; None if no rate is known."""
    rate = RATES.get(model.construction)
    return None if rate is None else -rate / (model.target.n * model.target.d)
