"""How far a piecewise linear function G of one variable is from another function H, between the corners of G.

Between two corners G is linear, so that G - H leaves the chord between its ends by at most w^2/8 times the second
derivative of H, upwards if that is positive and downwards if it is negative. Pieces are halved until none of them
may lie far outside of what G - H reaches somewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Array
from onelayer_checker.functions.formulas import Undefined
from onelayer_checker.functions.intervals import Interval, out
from onelayer_checker.functions.jets import Jet

#: How often intervals are halved, how many there may be, and how close to what is reached is close enough.
ROUNDS, MOST_PIECES, CLOSE = 60, 1 << 14, 0.01
#: Relative to the size of G: where it ends to matter.
FAINT = 2.0**-44


def difference(ends: Array, G: Callable[[Array], Interval], H: Callable[[Array, Array, bool], Jet]) -> Interval:
    """Encloses G - H from the first to the last of the ends, among which all corners of G are. H gives values and
    derivatives on intervals; cut, values alone that enclose it where it matters."""
    low, high = ends[:-1], ends[1:]
    least, most = np.inf, -np.inf  # of pieces that are done
    bottom, top = np.inf, -np.inf  # reached by G - H somewhere
    for turn in range(ROUNDS):
        at = [G(s) for s in (low, high)]
        ends_of_H = [H(s, s, False).value for s in (low, high)]
        first, second = (out(g[0] - h[1], g[1] - h[0]) for g, h in zip(at, ends_of_H, strict=True))
        whole, cut = (H(low, high, cut) for cut in (False, True))
        width = (high - low) * UP
        rise, fall = (np.maximum(x, 0.0) * (width * width * (UP / 8)) for x in (whole.bend[1], -whole.bend[0]))
        below, above = out(np.minimum(first[0], second[0]) - fall, np.maximum(first[1], second[1]) + rise, TINY)
        flat = np.minimum(at[0][0], at[1][0]) - cut.value[1], np.maximum(at[0][1], at[1][1]) - cut.value[0]
        flat = out(*flat, TINY)  # values alone: where nothing is known of the second derivative
        below, above = np.fmax(below, flat[0]), np.fmin(above, flat[1])
        size = float(max(np.abs(at[0][0]).max(), np.abs(at[1][1]).max(), 2.0**-900))
        bottom = min(bottom, float(np.min(first[1])), float(np.min(second[1])))
        top = max(top, float(np.max(first[0])), float(np.max(second[0])))
        slack = CLOSE * max(top - bottom, 0.0) + FAINT * size
        done = (below >= bottom - slack) & (above <= top + slack)
        if turn + 1 == ROUNDS or 2 * int((~done).sum()) > MOST_PIECES:
            done[:] = True
        least = min(least, float(np.min(below[done], initial=np.inf)))
        most = max(most, float(np.max(above[done], initial=-np.inf)))
        if done.all():
            break
        low, high = low[~done], high[~done]
        middle = np.clip(low / 2 + high / 2, low, high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    if not np.isfinite([least, most]).all():
        raise Undefined("a block is not seen to be near its operation")
    return np.full(1, least), np.full(1, most)
