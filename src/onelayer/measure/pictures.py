"""Figures of a model, as matplotlib draws them: `model.plot()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import MissingExtraError
from onelayer.interfaces import Examples, Function
from onelayer.measure import function_pictures, learner_pictures
from onelayer.network.blocks import apply_stack

if TYPE_CHECKING:
    from onelayer.model import Model


def figure_of(model: Model) -> Any:
    """Of stored answers the gaps and the readout; of a function the target, the model and the error; of a learner
    its answers loop by loop."""
    if isinstance(model.interface, Function):
        return function_pictures.figure_of(model)
    if isinstance(model.interface, Examples):
        return learner_pictures.figure_of(model)
    return of_answers(model)


def of_answers(model: Model) -> Any:
    """Gaps and readout."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing a picture", "matplotlib", "plot") from None
    on_a_line = model.ledger["rank"] == 1  # the readout is a function of one number, which can be drawn
    figure = Figure(figsize=(9, 6.5 if on_a_line else 3.5), layout="constrained")
    bars = figure.add_subplot(2 if on_a_line else 1, 1, 1)
    gaps = gaps_lower(model)
    if gaps.size and model.ledger["readout"] == "plateaus":
        octaves = np.arange(np.floor(np.log2(gaps.min())) - 0.5, np.log2(gaps.max()) + 1)
        bars.hist(gaps, bins=np.exp2(octaves).tolist(), color="#4477aa")
    radius = model.ledger.number("radius_upper")
    bars.axvline(radius, color="#cc3311", label="how far rounding may move an id (a-priori bound)")
    bars.set(xscale="log", yscale="log", ylabel="number of gaps")
    bars.set(xlabel="gap between neighbouring answers (a bar for each power of two)")
    bars.legend(frameon=False, loc="upper left")
    if on_a_line:
        t, y = staircase(model)
        stairs = figure.add_subplot(2, 1, 2)
        stairs.plot(t, y, color="#4477aa", linewidth=1.2)
        what = "number of the class" if model.form.classes is not None else "output, first component"
        stairs.set(xlabel="context coordinate t (up to 25 plateaus in the middle)", ylabel=what)
    figure.suptitle(f"One attention layer, {model.n_parameters:,} parameters")
    return figure


def gaps_lower(model: Model) -> Any:
    """Gaps between neighbouring answers, read off the weights to within a factor of two, from below.

    The ramp between two plateaus is a power of two wide, between an eighth and a quarter of their gap.
    """
    readout = model.transformer.readout
    slopes = readout[-3].weight if len(readout) >= 4 else np.empty(0)
    return 4.0 / slopes[slopes > 0].astype(np.float64)


def staircase(model: Model, steps: int = 25) -> tuple[Any, Any]:
    """The readout as a function of its first coordinate, over some plateaus in the middle."""
    readout = model.transformer.readout
    slope, bias = readout[1].weight[0], readout[1].bias
    ends = np.sort(-bias[slope > 0] / slope[slope > 0]) if slope.any() else np.array([0.0, 1.0])
    middle = ends[max(0, len(ends) // 2 - steps // 2) :][:steps]
    edge = 0.02 * (middle[-1] - middle[0]) or 1.0
    t = np.linspace(middle[0] - edge, middle[-1] + edge, 4000)
    h = np.zeros((len(t), readout[1].weight.shape[0]), model.transformer.dtype)
    h[:, 0] = t
    return t, apply_stack(readout[1:], h)[:, 0]
