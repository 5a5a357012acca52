"""Statement  Relu attention implements gradient descent on ridge regression (Bai et al. 2023): two heads add up
to the gradient of the squares, a third shrinks w.

Gives      form="published": tokens [x, y, w, 1, flag] and these three heads; w <- (1 - s) w - eta mean (<w, x> -
y) x with penalty s/eta. form="compact": tokens [x, y, r, flag], one linear head, and a feed-forward layer that
shrinks.
Rests on   gradient_step.
Why        relu(u) - relu(-u) = u. Residuals of a shrunken w are (1 - s) r + s y.
Differs    The published layer divides by all tokens and masks by a shift of the scores, which is exact for
bounded <w, x> only; here by the examples, with a flag, for all inputs. The compact form is ours: width d + 3
instead of 2 d + 3, one head instead of three. With a tolerance it is accelerated (see `nesterov`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from onelayer.errors import HypothesisError, OptionError
from onelayer.learners import carried, shrunken
from onelayer.learners.bounds import safe_step, steps_for
from onelayer.learners.built import Built, Limit, Setting, positive, step_size
from onelayer.learners.shrunken import GRID, Shrinking
from onelayer.ledger import Constant
from onelayer.problems.scripts import dot
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["ridge"]
Form = Literal["compact", "published"]


def build(setting: Setting, penalty: float = 0.0, eta: float | None = None, form: Form = "compact") -> Built:
    """The minimiser of mean (y - <w, x>)^2 / 2 + penalty |w|^2 / 2, by this many steps or to a tolerance."""
    if form not in ("compact", "published"):
        raise OptionError("ridge", "a form, compact or published", f"form={form!r:.40}", "Choose one of them.")
    if setting.tolerance is not None and penalty == 0:
        needs = (
            "penalty > 0 for a bound on the whole box (without it no number of steps is enough for all examples)"
        )
        raise HypothesisError("ridge", needs, "penalty=0", "Give steps= and no tolerance, or a penalty.")
    penalty = positive("ridge", "penalty", penalty) if penalty != 0 else 0.0
    if form == "published":
        return _build_published(setting, penalty, eta)
    accelerated = setting.tolerance is not None
    eta = safe_step(setting) if eta is None else _compact_eta(setting, eta)
    given = Shrinking.of(setting, eta, penalty, accelerated) if penalty else Shrinking(eta, 1.0, 0.0)
    return compact(setting, given, penalty, "steps" if not accelerated else "accelerated steps")


def compact(setting: Setting, given: Shrinking, penalty: float, words: str) -> Built:
    """The compact block, and what is known of its limit."""
    limit = Limit(given.eta, given.a, given.b) if given.keep < 1 else None
    steps = steps_for(setting, limit)
    constants = (
        Constant("eta", given.eta, "step size; by default 1/B^2, B^2 = d max(|low|, |high|)^2"),
        Constant(
            "penalty", float(given.penalty), f"of the mean loss, as the weights have it; {penalty:g} was asked"
        ),
        Constant("a", given.a, "weight of the state in what is stepped from"),
        Constant("b", given.b, "weight of the state before it, which is taken off"),
        Constant("steps", steps, "loops of the block"),
    )
    net, algorithm = shrunken.network(setting, given, steps), shrunken.algorithm(setting, given, steps)
    what = f"ridge regression with penalty {penalty:g}" if penalty else "least squares"
    return Built(net, algorithm, constants, f"{steps} {words} of {what}", limit=limit)


def _compact_eta(setting: Setting, eta: Any) -> float:
    return step_size(setting, "ridge", eta, 2 / setting.norm_squared, "2/B^2")


def _build_published(setting: Setting, penalty: float, eta: float | None) -> Built:
    carried.one_output(setting, "ridge")
    most = 2 / (setting.norm_squared + penalty)
    eta = (
        safe_step(setting, penalty) if eta is None else step_size(setting, "ridge", eta, most, "2/(B^2 + penalty)")
    )
    scale = 2.0 ** GRID[setting.dtype]  # a multiple of a power of two: 1 - shrink is exact
    shrink = max(1.0, round(eta * penalty * scale)) / scale if penalty else 0.0
    limit = Limit(eta, 1 - shrink, 0.0, late=True) if shrink else None
    steps = steps_for(setting, limit)
    at = carried.Layout(setting.d)
    heads = [at.head(1.0, -eta, -1.0), at.head(-1.0, eta, -1.0), *([at.shrink(-shrink)] if shrink else [])]
    algorithm = carried.algorithm(
        setting.d,
        steps,
        term=lambda s, x, y: [(dot(s, x) - y[0]) * u for u in x],
        step=lambda s, m: [w - g * eta - w * shrink for w, g in zip(s, m, strict=True)],
        answer=lambda s, x: [dot(s, x)],
    )
    exact = Fraction(shrink) / Fraction(eta)
    constants = (
        Constant("eta", eta, "step size; by default 1/(B^2 + penalty), B^2 = d max(|low|, |high|)^2"),
        Constant("shrink", shrink, "how much of w a step takes off, eta times the penalty"),
        Constant("penalty", float(exact), f"of the mean loss, as the weights have it; {penalty:g} was asked"),
        Constant("steps", steps, "loops of the block"),
    )
    net = carried.network(setting, heads, "relu", steps)
    return Built(
        net, algorithm, constants, f"{steps} steps of ridge regression with penalty {penalty:g}", limit=limit
    )
