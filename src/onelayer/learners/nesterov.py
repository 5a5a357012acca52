"""Statement  Accelerated gradient descent is one repeated block: a linear feed-forward layer extrapolates and
shrinks residuals, linear attention steps.

Gives      u = a w - b w_before, w <- u + eta mean_i (y_i - <u, x_i>) x_i: Nesterov's method with momentum b/(a -
b) on mean (y - <u, x>)^2 / 2 + penalty |u|^2 / 2.
Rests on   gradient_step, ridge.
Why        Feed-forward comes before attention: residuals are linear in w, so what is extrapolated is again one.
Differs    With a penalty the momentum is the one that is fastest for the worst examples of the box, and the
distance to the ridge estimate is proved; see learners/bounds.py.
"""

from __future__ import annotations

from onelayer.errors import OptionError
from onelayer.learners import ridge
from onelayer.learners.bounds import safe_step
from onelayer.learners.built import Built, Setting, positive, step_size
from onelayer.learners.shrunken import GRID, Shrinking
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["nesterov"]


def build(setting: Setting, penalty: float = 0.0, eta: float | None = None, momentum: float | None = None) -> Built:
    """Momentum is chosen by the penalty if it is not given; without a penalty it is 0.9."""
    if momentum is not None and not (isinstance(momentum, float) and 0 < momentum < 1):
        raise OptionError(
            "nesterov", "a momentum between 0 and 1", f"momentum={momentum!r:.40}", "Give such a one."
        )
    if setting.tolerance is not None and (penalty == 0 or momentum is not None):
        needs, found = "a penalty, and no momentum, for a tolerance", f"penalty={penalty}, momentum={momentum}"
        raise OptionError("nesterov", needs, found, "Give steps= instead.")
    penalty = positive("nesterov", "penalty", penalty) if penalty != 0 else 0.0
    most = 1 / setting.norm_squared
    eta = safe_step(setting) if eta is None else step_size(setting, "nesterov", eta, most, "1/B^2")
    if penalty and momentum is None:
        given = Shrinking.of(setting, eta, penalty, accelerated=True)
    else:
        scale = 2.0 ** GRID[setting.dtype]
        keep, m = 1 / (1 + eta * penalty), 0.9 if momentum is None else momentum
        given = Shrinking(eta, round(keep * (1 + m) * scale) / scale, round(keep * m * scale) / scale)
        if not penalty:
            given = Shrinking(eta, 1 + given.b, given.b)
    return ridge.compact(setting, given, penalty, "accelerated steps")
