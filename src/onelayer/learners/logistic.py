"""Statement  Attention with relu scores implements gradient descent on losses whose derivative is a sum of relus
of <w, x> and y (Bai et al. 2023): of logistic regression, with a sigmoid that is interpolated.

Gives      w <- (1 - s) w - eta mean_i (f(<w, x_i>) - y_i) x_i, f the sigmoid interpolated at knots in [-8, 8]:
one head for each knot, two for y, one for the first value and one that shrinks. The answer is f(<w, x>), a
probability.
Rests on   ridge.
Why        A piecewise linear function is a sum of relus; the readout makes f of <w, x> in the same way.
Differs    The claim is about f. Its minimiser is at most B sup|f - sigmoid| / penalty from that of the sigmoid
(the loss is strongly convex); this bound is in the ledger, and is not proved by the checker.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from onelayer.errors import OptionError
from onelayer.learners import carried
from onelayer.learners.built import Built, Setting, positive, step_size, steps_of, unit
from onelayer.ledger import Constant
from onelayer.problems.scripts import Array, dot
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["logistic"]
#: Where the interpolation ends, and the largest curvature of the sigmoid.
END, CURVATURE = 8.0, 0.0962250448649376


def build(setting: Setting, penalty: float = 0.1, eta: float | None = None, knots: int = 33) -> Built:
    """The minimiser of the mean logistic loss plus penalty |w|^2 / 2, for labels 0 and 1."""
    carried.one_output(setting, "logistic")
    if isinstance(knots, bool) or not isinstance(knots, int) or not 3 <= knots <= 1025:
        raise OptionError("logistic", "3 to 1,025 knots", f"knots={knots!r:.40}", "Give such a number.")
    penalty, steps = positive("logistic", "penalty", penalty), steps_of(setting, "logistic")
    eta = step_size(setting, "logistic", eta, 2 / (setting.norm_squared / 4 + penalty), "2/(B^2/4 + penalty)")
    shrink, at = setting.round(eta * penalty), carried.Layout(setting.d)
    places, bends, first = interpolate_sigmoid(setting, knots)
    scaled, begin = [setting.round(eta * a) for a in bends], setting.round(eta * first)
    heads = [at.head(1.0, -a, 0.0, knot=k) for a, k in zip(scaled, places, strict=True)]
    heads += [at.head(1.0, -begin, 0.0, knot=-1.0, slope=0.0), at.shrink(-shrink)]
    heads += [at.head(1.0, eta, 1.0, slope=0.0), at.head(-1.0, -eta, 1.0, slope=0.0)]

    def sigmoid(u: Any, weights: list[float], start: float) -> Any:
        return dot(weights, [(u - k).maximum(0.0) for k in places]) + start

    algorithm = carried.algorithm(
        setting.d,
        steps,
        term=lambda s, x, y: [(sigmoid(dot(s, x), scaled, begin) - y[0] * eta) * u for u in x],
        step=lambda s, m: [w - g - w * shrink for w, g in zip(s, m, strict=True)],
        answer=lambda s, x: [sigmoid(dot(s, x), bends, first)],
    )
    apart = max((places[1] - places[0]) ** 2 / 8 * CURVATURE, 1 / (1 + np.exp(END)))
    exact = float(Fraction(shrink) / Fraction(eta))
    constants = (
        Constant("eta", eta, "step size; by default 1/(B^2/4 + penalty), B^2 = d max(|low|, |high|)^2"),
        Constant("penalty", exact, f"of the mean loss, as the weights have it; {penalty:g} was asked"),
        Constant("knots", knots, f"of the interpolated sigmoid, on [-{END:g}, {END:g}]"),
        Constant("sigmoid_error", apart, "h^2/8 sup|sigmoid''|, or what is left of it beyond the knots"),
        Constant(
            "weight_error", float(np.sqrt(setting.norm_squared) * apart / exact), "B sup|f - sigmoid| / penalty"
        ),
        Constant("steps", steps, "loops of the block"),
    )
    net = carried.network(setting, heads, "relu", steps, readout=_readout(at, places, bends, first))
    words = f"{steps} steps of logistic regression with penalty {penalty:g}"
    return Built(net, algorithm, constants, words, labels=True)


def interpolate_sigmoid(setting: Setting, knots: int) -> tuple[list[float], list[float], float]:
    """Knots, the change of slope at each, and the first value; all numbers of the dtype."""
    places = np.linspace(-END, END, knots).astype(setting.dtype).astype(np.float64)
    values = 1 / (1 + np.exp(-places))
    slopes = np.diff(values) / np.diff(places)
    bends = np.diff(np.concatenate([[0.0], slopes, [0.0]]))
    return places.tolist(), [setting.round(a) for a in bends], setting.round(values[0])


def _readout(
    at: carried.Layout, places: list[float], bends: list[float], first: float
) -> list[tuple[Array, Array]]:
    hidden = np.repeat(unit(at.width, at.y), len(places), axis=1), -np.array(places)
    return [hidden, (np.array(bends)[:, None], np.array([first]))]
