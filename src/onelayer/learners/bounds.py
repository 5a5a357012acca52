"""How many steps come how near to the ridge estimate, for all examples of a box: the formulas that `within`
claims.

An error of the state is multiplied, in each direction, by t (a e - b e_before) with t in [0, 1] if eta B^2 <= 1.
If a^2 <= 4 b, the roots are complex with modulus at most r = sqrt(b), and after L steps the error is at most r^L
(L + 1 + r L) times the first one; with b = 0 it is a^L. The ridge estimate is at most y/(2 sqrt(penalty)) long.
What is computed here in floating point is proved by the checker, over the rationals.
"""

from __future__ import annotations

from math import inf, isfinite, sqrt

from onelayer.errors import HypothesisError
from onelayer.learners.built import Limit, Setting

#: Loops beyond which a tolerance is refused.
MOST = 1 << 17
#: Errors are not followed below it; the checker rounds up at 2^-512.
SMALLEST = 2.0**-256
#: What rounding to floats may cost a bound.
SLACK = 1 + 2.0**-20


def factor(limit: Limit, steps: int) -> float:
    """By how much the error of the state is smaller after this many steps."""
    r = sqrt(limit.b)
    left = limit.a**steps if limit.b == 0 else r**steps * (steps + 1 + r * steps)
    return max(float(left), SMALLEST)


def safe_step(setting: Setting, penalty: float = 0.0) -> float:
    """1/(B^2 + penalty), made a little smaller: eta B^2 <= 1 - eta penalty must hold exactly."""
    return setting.round((1 - 2.0**-20) / (setting.norm_squared + penalty))


def penalty_of(limit: Limit) -> float:
    keep = limit.a - limit.b
    return (1 - keep) / (limit.eta if limit.late else keep * limit.eta)


def bound(setting: Setting, limit: Limit, steps: int, largest: float) -> float:
    """How far an answer may be from that of the ridge estimate; infinite where nothing is known."""
    reach = limit.eta * setting.norm_squared * (1 + 2.0**-50)
    if reach > (limit.a if limit.late else 1) or limit.a**2 > 4 * limit.b > 0:
        return inf
    size = largest / (2 * sqrt(penalty_of(limit)))
    return factor(limit, steps) * size * sqrt(setting.norm_squared) * SLACK


def steps_for(setting: Setting, limit: Limit | None) -> int:
    """The steps that were asked for, or the fewest that reach the tolerance."""
    if setting.tolerance is None:
        return 20 if setting.steps is None else setting.steps
    assert limit is not None
    if not isfinite(bound(setting, limit, 1, setting.largest)):
        needs = f"a step size of at most 1/B^2 = {1 / setting.norm_squared:.6g} for a tolerance"
        raise HypothesisError("ridge", needs, f"eta={limit.eta:g}", "Leave eta out.")
    low, high = 0, 1
    while bound(setting, limit, high, setting.largest) > setting.tolerance:
        low, high = high, 2 * high
        if high > MOST:
            needs = f"a tolerance that {MOST:,} steps reach for all examples of the box"
            remedy = "Give a larger tolerance or penalty, or a smaller box."
            raise HypothesisError("ridge", needs, f"tolerance={setting.tolerance:g}", remedy)
    while high - low > 1:
        middle = (low + high) // 2
        enough = bound(setting, limit, middle, setting.largest) <= setting.tolerance
        low, high = (low, middle) if enough else (middle, high)
    return high
