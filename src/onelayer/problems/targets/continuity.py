"""Looking for jumps, poles and steep places of a function that can only be evaluated.

Along many segments of the box the differences of neighbouring values are looked at, and where they are large or
change suddenly the piece is halved again and again, towards the half with the larger difference. Of a continuous
function these differences fall to 0, of a jump they stay, of a pole they grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError

Array = NDArray[Any]
Function = Callable[[Array], Array]
#: Segments, pieces of each, those of each that are halved, in all at most, and how often.
SEGMENTS, PIECES, CHOSEN, MOST, HALVINGS = 256, 64, 3, 256, 42
#: Pairs of tokens in all sequences that are looked at, about.
NUMBERS = 1 << 22
#: Relative to the values: what rounding in float32 may cost them.
ROUNDING = 1e-5
#: A jump this small, beside the tolerance, does it no harm.
HARMLESS = 1 / 8
#: By how much the differences grow towards a pole.
GROWTH = 1e3


@dataclass(frozen=True)
class Pairs:
    """Neighbours [K, n, d] from which the largest differences were found, at the start and after each halving."""

    a: Array  # [stages, K, n, d]
    b: Array
    change: Array  # [stages, K], in the largest output
    scale: float  # of all values

    @property
    def step(self) -> Array:
        return np.asarray(np.abs(self.b - self.a).max(axis=(2, 3)))


@np.errstate(all="ignore")
def looked_at(f: Function, n: int, d: int, low: Any, high: Any, special: Array, seed: int = 0) -> Pairs:
    """The pieces of segments on which f changes most, halved."""
    rng, count = np.random.default_rng([seed, 17]), max(12, min(SEGMENTS, NUMBERS // (PIECES * n * n)))
    start, end = rng.uniform(low, high, (2, count, n, d))
    third = count // 3
    end[:third] = special[rng.integers(len(special), size=third)]
    moved = rng.integers(n * d, size=third)  # one component alone
    along = np.zeros((third, n * d), bool)
    along[np.arange(third), moved] = True
    end[third : 2 * third] = np.where(along.reshape(-1, n, d), end[third : 2 * third], start[third : 2 * third])
    t = np.linspace(0, 1, PIECES + 1)[:, None, None, None]
    points = start + t * (end - start)
    points[-1] = end
    values = f(points.reshape(-1, n, d)).reshape(PIECES + 1, count, -1)
    change = np.nan_to_num(np.diff(values, axis=0), nan=np.inf)
    size = np.abs(change).max(axis=2)
    turn = np.zeros_like(size)
    bend = np.abs(np.diff(change, axis=0)).max(axis=2)
    turn[:-1], turn[1:] = bend, np.maximum(turn[1:], bend)
    ranked = [np.argsort(-measure, axis=0)[:CHOSEN] for measure in (size, turn)]
    rows = np.unique(np.concatenate(ranked) * count + np.arange(count))
    rows = rows[np.argsort(-(size + turn).ravel()[rows], kind="stable")[:MOST]]
    at, which = rows // count, rows % count
    a, b, fa, fb = points[at, which], points[at + 1, which], values[at, which], values[at + 1, which]
    kept = [(a, b, np.abs(fb - fa).max(axis=1))]
    for _ in range(HALVINGS):
        c = a / 2 + b / 2
        fc = f(c).reshape(len(c), -1)
        first = np.abs(fc - fa).max(axis=1) >= np.abs(fb - fc).max(axis=1)
        left, row = first[:, None, None], first[:, None]
        a, b, fa, fb = np.where(left, a, c), np.where(left, c, b), np.where(row, fa, fc), np.where(row, fc, fb)
        kept.append((a, b, np.abs(fb - fa).max(axis=1)))
    a, b, change = (np.stack(part) for part in zip(*kept, strict=True))
    return Pairs(a, b, change, float(np.median(np.abs(values))) + float(np.ptp(values)))


def check_continuous(name: str, pairs: Pairs, tolerance: float) -> None:
    """Refuse a function that has no bound, or jumps by more than does no harm; with the place."""
    change = pairs.change
    least = max(HARMLESS * tolerance, ROUNDING * (1 + pairs.scale if np.isfinite(pairs.scale) else 1.0))
    grown = ~np.isfinite(change).all(axis=0) | ((change[-1] > GROWTH * change[0]) & (change[-1] > least))
    if grown.any():
        k = int(np.argmax(grown))
        where = (np.round(pairs.a[-1, k], 6) + 0.0).tolist()
        found = f"{name!r} has no bound near {where}: it changes by {np.nanmax(change[:, k]):.3g} there"
        raise HypothesisError("target", "finite values on the box", found, "Shrink or move the box.")
    k = int(np.argmax(change[-1]))
    if change[-1, k] > least:
        found = f"{name!r} jumps by {change[-1, k]:.6g} at {pairs.a[-1, k].tolist()} to {pairs.b[-1, k].tolist()}"
        raise HypothesisError(
            "target",
            "a continuous function, since every Transformer is one",
            f"{found}, and a continuous model is off by half of that beside it",
            "Leave the place out of the box, or replace the jump by a ramp.",
        )


def check_constant(pairs: Pairs, constant: float) -> None:
    """Refuse a Lipschitz constant that a pair contradicts; one that none does is believed, not proved."""
    step = pairs.step
    excess = pairs.change - constant * step * (1 + 1e-9) - 0.1 * ROUNDING * (1 + pairs.scale)
    stage, k = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if not excess[stage, k] <= 0:
        slope = steepest(pairs)
        a, b, change = pairs.a[stage, k], pairs.b[stage, k], pairs.change[stage, k]
        found = f"from {a.tolist()} to {b.tolist()} it changes by {change:.6g} over {step[stage, k]:.6g}"
        needs = f"a Lipschitz constant of at most {constant:.6g} in the sup norm"
        raise HypothesisError("target", needs, found, f"Pass at least {slope:.6g}.")


def steepest(pairs: Pairs) -> float:
    """The largest slope that was seen, where a change is far above rounding."""
    seen = pairs.change > ROUNDING * (1 + pairs.scale)
    slopes = np.divide(pairs.change, pairs.step, out=np.zeros_like(pairs.change), where=seen)
    return float(slopes.max())
