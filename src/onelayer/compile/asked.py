"""What is asked of `approximate`, checked as far as that goes without building anything."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.compile.construction import Request
from onelayer.errors import HypothesisError, OptionError
from onelayer.problems.targets import Kind, Target, resolve

Array = NDArray[Any]
#: Numbers in the sequences on which the range of a target is looked at.
LOOKED_AT = 1 << 14


def request_for(
    target: Any,
    *,
    n: Any,
    d: Any = 1,
    low: Any = 0.0,
    high: Any = 1.0,
    tolerance: Any,
    relative: bool = False,
    lipschitz: float | None = None,
    kind: Kind | None = None,
    components: int | None = None,
    dtype: DTypeLike = "float32",
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Request:
    """The request, with its target resolved and its tolerance in the unit of the target's values."""
    if not isinstance(tolerance, Real) or not all(isinstance(x, Integral) for x in (n, d)):
        given = f"n={n!r}, d={d!r}, tolerance={tolerance!r}"
        raise OptionError("approximate", "whole n and d, and a number as tolerance", given, "Give them so.")
    if not 0 < float(tolerance) < np.inf:
        raise OptionError("approximate", "a tolerance above 0", f"tolerance={tolerance}", "Give, say, 0.05.")
    if type(seed) is not int or seed < 0:
        raise OptionError("approximate", "a whole seed of at least 0", f"seed={seed!r}", "Give 0, 1, 2, ...")
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise OptionError("approximate", "dtype float32 or float64", f"dtype {number}", "Change it.")
    below, above = (_end(end, name, d, number) for end, name in ((low, "low"), (high, "high")))
    if not (np.isfinite([below, above]).all() and (below < above).all()):
        given, remedy = f"low={low}, high={high}", "Give finite ends, the smaller as low."
        raise OptionError("approximate", "a box with low < high", given, remedy)
    options: dict[str, Any] = {"lipschitz": lipschitz, "kind": kind, "components": components}
    found = resolve(target, n=n, d=d, low=below, high=above, **options, tolerance=float(tolerance))
    if relative:
        tolerance = float(tolerance) * smallest_range(found, below, above)
        if written_as_python(found):  # jumps are measured against the tolerance
            found = resolve(target, n=n, d=d, low=below, high=above, **options, tolerance=tolerance)
    sides = tuple((float(a), float(b)) for a, b in zip(below, above, strict=True))
    return Request(found, sides, float(tolerance), number, seed, say)


def written_as_python(target: Target) -> bool:
    return target.program is None and target.pooled is None


def _end(given: Any, name: str, d: int, dtype: np.dtype[Any]) -> Array:
    """An end of the box for each component: what a model of this dtype can be asked about."""
    try:
        ends = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        ends = np.empty((0, 0))
    if isinstance(given, str | bool) or ends.shape not in ((), (d,)):
        needs = f"a number as {name}, or one for each of the {d} components"
        raise OptionError("approximate", needs, f"{name}={given!r}", "Give it so.")
    return np.broadcast_to(ends, d).astype(dtype).astype(np.float64)


def smallest_range(target: Target, low: Array, high: Array) -> float:
    """The least, over outputs, of largest less smallest value that samples show: the true range is no smaller."""
    count = max(64, LOOKED_AT // (target.n * target.n * target.d))
    rng = np.random.default_rng([5])
    X = rng.uniform(low, high, (count, target.n, target.d))
    X[: count // 2] = X[: count // 2, :1]  # equal tokens reach far
    ends = np.stack([np.broadcast_to(end, X.shape[1:]) for end in (low, high)])
    values = target.evaluate(np.concatenate([X, ends])).reshape(-1, target.components)
    found = float(np.ptp(values, axis=0).min())
    if not found > 0:
        needs, what = "a target that varies, for a relative tolerance", f"{target.name!r} is constant on samples"
        raise HypothesisError("target", needs, what, "Leave out relative=True.")
    return found
