"""Where a formula is undefined: a divisor that is 0, a logarithm or a root of what is not positive.

Values of every line are known at points of the box. A divisor with both signs is 0 in between, since lines before
the first undefined one are continuous; one that only comes near to 0 is followed downhill.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.problems.targets.pooled import Pooled
from onelayer.problems.targets.program import Program

Array = NDArray[Any]
#: How often a segment is halved, how often the lowest points try a step, and how many of them there are.
HALVINGS, ROUNDS, CLIMBERS = 60, 80, 8
#: Sequences of equal tokens, others of each kind, and tokens of those.
EQUAL, DRAWN, FEW = 41, 64, 8
#: Relative to the largest value of a line: what counts as 0.
ZERO = 1e-9
#: By how much the smallest value falls on the way downhill to a zero.
SHRUNK = 1e-6


def check_defined(name: str, written: Pooled | Program, low: Any, high: Any) -> None:
    """Refuse a formula that is undefined at some point that can be found; with the point."""
    if not any(op in ("div", "sqrt", "log") for op, *_ in written.lines):
        return
    with np.errstate(all="ignore"):
        for X in _points(written, low, high):
            for k, (op, *of) in enumerate(written.lines):
                found = _zero(written, of[-1], op, X, low, high) if op in ("div", "sqrt", "log") else None
                if found is not None:
                    raise _undefined_error(name, written, k, found)


def _points(written: Pooled | Program, low: Any, high: Any) -> tuple[Array, Array]:
    """Sequences of equal tokens first, since such a point is easily read; then any. A formula of averages has the
    same values if a sequence is repeated, so that few tokens stand for many."""
    n, d, rng = written.n, written.d, np.random.default_rng(3)
    few = max(k for k in range(1, FEW + 1) if n % k == 0) if isinstance(written, Pooled) else n
    equal = low + (np.asarray(high) - low) * np.linspace(0, 1, EQUAL)[:, None, None]
    equal = np.broadcast_to(equal, (EQUAL, 1 if isinstance(written, Pooled) else n, d))
    anywhere, ends = rng.uniform(low, high, (2, DRAWN, few, d))
    ends = np.where(ends > (np.asarray(low) + high) / 2, high, low)
    mixed = np.where(rng.random((DRAWN, few, 1)) < 0.5, ends, anywhere)
    return equal, np.concatenate([anywhere, ends, mixed])


def _undefined_error(name: str, written: Pooled | Program, k: int, point: Array) -> HypothesisError:
    op, *of = written.lines[k]
    values = np.ravel(written.values(point[None])[of[-1]])
    worst = float(values[np.argmin(np.abs(values) if op == "div" else values)])
    what = "a divisor is 0 there" if op == "div" else f"the argument of {op} is {worst + 0.0:.3g} there"
    shown = np.tile(np.round(point, 6) + 0.0, (written.n // len(point), 1)).tolist()
    tokens = f"{shown[:4]} and {len(shown) - 4} more tokens" if len(shown) > 4 else f"{shown}"
    found = f"{name!r} is undefined at {tokens}: {what}"
    return HypothesisError("target", "finite values on the box", found, "Shrink or move the box.")


def _zero(written: Pooled | Program, line: int, op: str, X: Array, low: Any, high: Any) -> Array | None:
    """A sequence at which the line is not as its operation needs it; None if none is found."""

    def at(Y: Array) -> Array:
        values = np.asarray(written.values(Y)[line], np.float64)
        full = np.broadcast_to(values, (len(Y), *values.shape[1:])) if values.ndim else np.full(len(Y), values)
        return full.reshape(len(Y), -1)

    v = at(X)
    if not np.isfinite(v).all():
        return None  # an earlier line is undefined, and was looked at before
    small = ZERO * float(np.abs(v).max(initial=1e-300))
    if op == "div":
        signs = (v > small).any(axis=0) & (v < -small).any(axis=0)
        if signs.any():
            c = int(np.argmax(signs))
            return _find_crossing(lambda Y: at(Y)[:, c], X[int(np.argmax(v[:, c]))], X[int(np.argmin(v[:, c]))])
        v, lowest = np.abs(v), lambda Y: np.abs(at(Y)).min(axis=1)
    else:
        lowest = lambda Y: at(Y).min(axis=1)  # noqa: E731
    point, value = _downhill(lowest, X[np.argsort(v.min(axis=1), kind="stable")[:CLIMBERS]], low, high)
    if op == "sqrt":
        return point if value < -small else None
    # It is 0, or falls to it: a divisor that is merely small somewhere does not fall on the way there.
    falls = value <= SHRUNK * float(v.min()) and value <= ZERO * float(np.median(v))
    return point if value <= 0 or falls else None


def _find_crossing(f: Callable[[Array], Array], above: Array, below: Array) -> Array:
    """Where a continuous function is 0 between two points."""
    for _ in range(HALVINGS):
        middle = above / 2 + below / 2
        if f(middle[None])[0] > 0:
            above = middle
        else:
            below = middle
    return above


def _downhill(f: Callable[[Array], Array], X: Array, low: Any, high: Any) -> tuple[Array, float]:
    """Small steps from the lowest points, shorter where they fail."""
    rng, best = np.random.default_rng(4), f(X)
    reach = np.full((len(X), 1, 1), float(np.max(np.asarray(high) - np.asarray(low))) / 4)
    for k in range(ROUNDS):
        one = rng.standard_normal((len(X), 1 if k % 2 else X.shape[1], X.shape[2]))  # all tokens alike, or each
        tried = np.clip(X + reach * one, low, high)
        values = f(tried)
        better = (values < best)[:, None, None]
        X, best = np.where(better, tried, X), np.minimum(values, best)
        reach = np.where(better, reach, reach * 0.7)
    at = int(np.argmin(best))
    return X[at], float(best[at])
