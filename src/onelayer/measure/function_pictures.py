"""Pictures of an approximation: its target, the model, the error; or how the error falls as the model grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import MissingExtraError
from onelayer.interfaces import Function
from onelayer.measure import formula_pictures

if TYPE_CHECKING:
    from onelayer.model import Model

BLUE, RED, GREY = "#4477aa", "#cc3311", "#777777"
#: Points of a line, pixels of a side, and sequences answered at a time.
POINTS, PIXELS, BATCH = 4000, 240, 1 << 16
#: Where a ramp is looked at, from its beginning to its end; it is steepest in the middle.
IN_A_RAMP = (0.0, 0.3, 0.45, 0.48, 0.5, 0.52, 0.55, 0.7, 1.0)
#: Of more cells than this along a line or a side, only some in the middle are shown with their errors.
MOST_CELLS, SHOWN_CELLS = {1: 60, 2: 24}, 12
#: An error below this share of the bound has a scale of its own.
FAINT = 0.25


#: The error falls like the width of a cell to this power; for hats, if the target is twice differentiable.
RATES = {"quantise": 1, "published": 1, "positional": 2}


def figure_of(model: Model, finer: Callable[[], list[Model]] | None = None) -> Any:
    """Of a compiled formula its program. Else, of one input two curves, of two inputs three maps, of more errors
    against sizes, of models that ``finer`` gives."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing a picture", "matplotlib", "plot") from None
    function = _function(model)
    if function.construction == "formula":
        return formula_pictures.figure_of(model)
    sides = function.target.n * function.target.d
    heights = {1: (8.0, 6.0), 2: (13.0, 4.4)}
    figure = Figure(figsize=heights.get(sides, (7.5, 5.0)), layout="constrained")
    if sides == 1:
        lines(figure, model)
    elif sides == 2:
        panels(figure, model)
    else:
        sizes(figure, [model] if finer is None else finer())
    title = f"{function.target.name}: one attention layer ({function.construction})"
    figure.suptitle(f"{title}, {model.n_parameters:,} parameters")
    return figure


def _function(model: Model) -> Function:
    return model.interface_as(Function, "a picture of the error")


def size(model: Model) -> int:
    """Cells of the box; parameters, if a construction has no cells."""
    if "levels" not in model.ledger:
        return model.n_parameters
    cells: int = int(model.ledger.number("levels")) ** (model.target.n * model.target.d)
    return cells


def slope(model: Model) -> float | None:
    """The power of the number of cells with which the error is to fall, in theory; None if no rate is known."""
    rate = RATES.get(_function(model).construction)
    return None if rate is None else -rate / (model.target.n * model.target.d)


def lines(figure: Any, model: Model) -> None:
    """One input: two curves, and their distance below."""
    above, below = figure.subplots(2, 1)
    x = places(model, _function(model).low, _function(model).high, POINTS)
    wanted, found, _ = values(model, x[:, None, None])
    above.plot(x, wanted, color=GREY, linewidth=3.0, alpha=0.6, label="target")
    above.plot(x, found, color=BLUE, linewidth=1.2, label="model")
    above.set(ylabel=what_is_shown(model), xlim=(_function(model).low, _function(model).high))
    above.legend(frameon=False)
    low, high, note = shown_part(model)
    x = places(model, low, high, POINTS)
    below.plot(x, values(model, x[:, None, None])[2], color=BLUE, linewidth=1.0, label="|model - target|")
    below.axhline(limit(model), color=RED, linestyle="--", linewidth=1.2, label=limit_label(model))
    below.set(xlabel=f"input{note}", ylabel="error", xlim=(low, high))
    below.set_ylim(0, below.get_ylim()[1] * 1.25)
    below.legend(frameon=False, loc="upper right", ncols=2)


def panels(figure: Any, model: Model) -> None:
    """Two inputs: target, model and error as three maps."""
    from matplotlib import colormaps

    edges = np.linspace(_function(model).low, _function(model).high, PIXELS + 1)
    wanted, found, _ = values(model, pairs(model, (edges[1:] + edges[:-1]) / 2))
    least, most = float(wanted.min()), float(wanted.max())
    names = ("token 1", "token 2") if model.target.n == 2 else ("component 1", "component 2")
    axes = figure.subplots(1, 3)
    for axis, title, image in ((axes[0], "target", wanted), (axes[1], "model", found)):
        drawn = show(
            axis, image, _function(model).low, _function(model).high, vmin=least, vmax=most, cmap="viridis"
        )
        axis.set(title=f"{title}, {what_is_shown(model)}", xlabel=names[0], ylabel=names[1])
    figure.colorbar(drawn, ax=axes[:2], shrink=0.8, pad=0.02)
    low, high, note = shown_part(model)
    error = largest_in_pixels(model, low, high)
    colours = colormaps["cividis"].with_extremes(over=RED)
    top, beyond = limit(model), bool((error > limit(model)).any())
    seen = float(error.max())
    faint = 0 < seen < FAINT * top  # shown on the scale of the bound it would be one dark plane
    drawn = show(axes[2], error, low, high, vmin=0.0, vmax=seen if faint else top, cmap=colours)
    axes[2].set(title="largest error in each pixel", xlabel=f"{names[0]}{note}", ylabel=names[1])
    bar = figure.colorbar(drawn, ax=axes[2], shrink=0.8, pad=0.02, extend="max" if beyond else "neither")
    bar.set_label(f"{limit_label(model)}, {'far above what is seen' if faint else 'the end of the scale'}")
    if beyond:
        where = (
            f" (a share {_function(model).left_out:.2g} of the box is left out)"
            if _function(model).left_out
            else ""
        )
        axes[2].set_xlabel(f"{names[0]}{note}\nred: beyond it{where}")


def sizes(figure: Any, models: list[Model]) -> None:
    """More inputs: bound and measured error against the number of cells."""
    axis, first = figure.add_subplot(), models[0]
    cells = np.array([size(model) for model in models], np.float64)
    bounds = np.array([limit(model) for model in models])
    if all(model.proved for model in models):
        axis.plot(cells, bounds, "o-", color=RED, label=f"proved bound in {first.transformer.dtype}")
    measured = [model.measured_error for model in models]
    axis.plot(cells, measured, "s-", color=BLUE, label="largest error found")
    power = slope(first)
    if power is not None and len(models) > 1:
        smooth = ", for smooth targets" if RATES[_function(first).construction] > 1 else ""
        line = bounds[-1] * (cells / cells[-1]) ** power
        axis.plot(cells, line, "--", color=GREY, label=f"slope {power:.3g} in theory{smooth}")
    counted = "cells of the box" if "levels" in first.ledger else "parameters"
    axis.set(xscale="log", yscale="log", xlabel=f"number of {counted}", ylabel="error in the largest component")
    if len(models) == 1:
        axis.set_title("more cells are not needed at any tolerance that was tried", fontsize=10)
    for model, *point in zip(models, cells, measured, strict=True):
        text = f"{model.n_parameters:,} parameters"
        side = "right" if len(models) > 1 else "center"
        axis.annotate(text, point, (-6, -12), textcoords="offset points", fontsize=8, color=GREY, ha=side)
    axis.margins(0.24, 0.2)
    axis.legend(frameon=False, loc="upper right")


def values(model: Model, X: Any) -> tuple[Any, Any, Any]:
    """First answer of the target and of the model, and the largest error, at sequences [..., n, d]."""
    asked = X.reshape(-1, model.target.n, model.target.d)
    parts = []
    for start in range(0, len(asked), BATCH):
        rows = asked[start : start + BATCH]
        wanted = model.target.evaluate(rows.astype(np.float64)).reshape(len(rows), -1)
        found = model.predict(rows).astype(np.float64).reshape(len(rows), -1)
        parts.append(np.stack([wanted[:, 0], found[:, 0], np.abs(found - wanted).max(axis=1)]))
    first, second, third = np.concatenate(parts, axis=1).reshape(3, *X.shape[:-2])
    return first, second, third


def places(model: Model, low: float, high: float, count: int) -> Any:
    """Evenly spaced inputs, and those at the ends of every ramp and in it, as numbers of the dtype."""
    box, x = _function(model).box, np.linspace(low, high, count)
    if box.centres.size:
        before, after = box.centres[:-1] + box.radius, box.centres[1:] - box.radius
        x = np.concatenate([x, *(before + (after - before) * share for share in IN_A_RAMP)])
    x = np.unique(np.clip(x, low, high)).astype(model.transformer.dtype)
    return x[(x >= _function(model).low) & (x <= _function(model).high)]


def pairs(model: Model, x: Any) -> Any:
    """Sequences [second, first, n, d] of all pairs of inputs."""
    grid = np.stack(np.meshgrid(x, x), axis=-1).astype(model.transformer.dtype)
    return grid.reshape(len(x), len(x), model.target.n, model.target.d)


def largest_in_pixels(model: Model, low: float, high: float) -> Any:
    """Ramps are narrower than pixels: a pixel shows the largest error found in it."""
    x = places(model, low, high, 2 * PIXELS + 1)
    error = values(model, pairs(model, x))[2]
    pixel = np.clip(((x - low) / (high - low) * PIXELS).astype(int), 0, PIXELS - 1)
    starts = np.searchsorted(pixel, np.arange(PIXELS))
    return np.maximum.reduceat(np.maximum.reduceat(error, starts, axis=0), starts, axis=1)


def shown_part(model: Model) -> tuple[float, float, str]:
    """Where errors are shown: everywhere, or if there are many cells in some around the worst of a line, or in the
    middle of a square."""
    cells = int(model.ledger.number("levels")) if "levels" in model.ledger else 1
    if cells <= MOST_CELLS[model.target.n * model.target.d]:
        return _function(model).low, _function(model).high, ""
    width, first = (_function(model).high - _function(model).low) / cells, (cells - SHOWN_CELLS) // 2
    if model.target.n * model.target.d == 1:
        x = _function(model).box.admit(np.linspace(_function(model).low, _function(model).high, POINTS))
        worst = float(x[np.argmax(model.errors(x[:, None, None]))])
        first = int(np.clip((worst - _function(model).low) / width - SHOWN_CELLS / 2, 0, cells - SHOWN_CELLS))
    low = _function(model).low + first * width
    return low, low + SHOWN_CELLS * width, f" ({SHOWN_CELLS} of {cells} cells a side)"


def show(axis: Any, image: Any, low: float, high: float, **options: Any) -> Any:
    return axis.imshow(
        image, origin="lower", extent=(low, high, low, high), interpolation="nearest", aspect="equal", **options
    )


def what_is_shown(model: Model) -> str:
    """Which of its answers a picture shows."""
    t = model.target
    where = "at token 1" if t.per == "token" and t.n > 1 else ""
    which = "component 1" if t.components > 1 else ""
    return " ".join(word for word in ("answer", which, where) if word)


def limit(model: Model) -> float:
    """The bound, or without one the largest error that was found."""
    return model.error_bound if model.proved else model.measured_error


def limit_label(model: Model) -> str:
    return f"{'proved bound' if model.proved else 'largest error found'} {limit(model):.3g}"
