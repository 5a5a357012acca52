"""The same target at several tolerances: how fast a construction gets nearer as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable

from onelayer.compile.approximate import build, choose
from onelayer.compile.construction import Request
from onelayer.errors import HypothesisError
from onelayer.interfaces import Function
from onelayer.measure.function_pictures import size
from onelayer.model import Model

#: Times the tolerance of the model at hand; each halving comes after those that are cheaper.
FACTORS = (4.0, 2.0, 0.5, 0.25)
#: A halving multiplies the work by a few; one that would not fit into the time left is not begun.
GROWTH = 6.0


def refinements(model: Model, seconds: float, on_step: Callable[[str], None], seed: int = 0) -> list[Model]:
    """Models of the same target by the same construction, from coarse to fine, ``model`` among them."""
    function, begun = model.interface_as(Function, "refinements"), time.perf_counter()
    built, last = [model], 0.0
    for factor in FACTORS:
        tolerance = factor * function.tolerance
        started = time.perf_counter()
        if factor < 1 and started - begun + GROWTH * last > seconds:
            break
        request = Request(
            function.target, function.box.sides, tolerance, model.transformer.dtype, seed, lambda _: None
        )
        on_step(f"drawing: the same with a tolerance of {tolerance:g}")
        try:
            built.append(build(request, choose(request, function.construction)))
        except HypothesisError:  # out of reach
            break
        last = time.perf_counter() - started
    sizes = {size(found): found for found in sorted(built, key=lambda found: -found.error_bound)}  # the best stays
    return [sizes[key] for key in sorted(sizes)]
