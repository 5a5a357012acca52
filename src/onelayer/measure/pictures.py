"""Figures of a model, as matplotlib draws them: `model.plot()`."""

from __future__ import annotations

import itertools
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import MissingExtraError
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.ridges import Ridges
from onelayer.interfaces import Examples, Function
from onelayer.measure import function_pictures, learner_pictures
from onelayer.measure.function_pictures import BLUE, GREY, RED
from onelayer.measure.gaps import LONGEST_ANSWER, NAMED, Gap, Gaps, cut, gaps_of, name_gaps
from onelayer.network.blocks import apply_stack

if TYPE_CHECKING:
    from onelayer.model import Model

#: Up to this many classes have their names at an axis.
FEW_CLASSES = 10
#: From this many gaps on, their dots are small.
MANY = 2000
#: Heights in inches: of a panel, of the list's title and of each of its lines, of a note in its place.
PANEL, TITLE, LINE, NOTE = 2.4, 0.35, 0.2, 0.6


def figure_of(model: Model) -> Any:
    """Of stored answers the gaps and the readout; of a function the target, the model and the error; of a learner
    its answers loop by loop."""
    if isinstance(model.interface, Function):
        return function_pictures.figure_of(model)
    if isinstance(model.interface, Examples):
        return learner_pictures.figure_of(model)
    return of_answers(model)


def as_png(figure: Any) -> bytes:
    """What a notebook shows, and a report."""
    written = BytesIO()
    figure.savefig(written, format="png", dpi=110)
    return written.getvalue()


def of_answers(model: Model) -> Any:
    """Every gap between neighbouring cells, names at the narrowest, and the readout if it reads one number."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing a picture", "matplotlib", "plot") from None
    found = gaps_of(model)
    named = [name_gaps(model, gaps, gaps.narrowest(max(1, NAMED // len(found)))) for gaps in found]
    # Then the readout is a function of one number, which can be drawn.
    on_a_line = isinstance(model.parts["readout"][1].gadget, Plateaus | Ridges) and model.ledger["rank"] == 1
    columns = 1 if len(found) < 3 else 2
    rows = -(-len(found) // columns)
    listed = sum(map(len, named))
    heights = [PANEL] * rows + ([TITLE + LINE * listed] if found else [NOTE]) + [PANEL] * on_a_line
    figure = Figure(figsize=(10, sum(heights) + 0.5), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    first = 1
    for i, (gaps, some) in enumerate(zip(found, named, strict=True)):
        _draw_gaps(figure.add_subplot(grid[divmod(i, columns)]), model, gaps, some, first)
        first += len(some)
    _list_gaps(figure.add_subplot(grid[rows, :]), model, [gap for some in named for gap in some])
    if on_a_line:
        _draw_staircase(figure.add_subplot(grid[-1, :]), model)
    figure.suptitle(f"One attention layer, {model.n_parameters:,} parameters")
    return figure


def _draw_gaps(axis: Any, model: Model, gaps: Gaps, named: list[Gap], first: int) -> None:
    """A dot for each gap, numbers at the narrowest, and how far rounding may move a coordinate."""
    axis.plot(gaps.at, gaps.width, ".", color=BLUE, markersize=6 if len(gaps.at) < MANY else 2, rasterized=True)
    axis.plot([gap.at for gap in named], [gap.width for gap in named], "o", color=RED, markersize=5)
    axis.set(yscale="log", ylabel="width of gap" if gaps.samples is not None else "width of gap, at least")
    what = "context coordinate t" if gaps.name == "plateaus" and gaps.part == 1 else "coordinate"
    axis.set_xlabel(f"{what} (no unit)", fontsize=9)
    axis.set_title(f"{gaps.name}: {len(gaps.at):,} gap{'s' if len(gaps.at) > 1 else ''}", fontsize=10, loc="left")
    radius = model.ledger.number("radius_upper")
    lowest, highest = float(gaps.width.min()), float(gaps.width.max())
    if gaps.part == 1 and radius > 0:
        axis.axhline(radius, color=GREY, linestyle="--", linewidth=1)
        said, at = " rounding moves a coordinate by less (a-priori bound)", axis.get_yaxis_transform()
        axis.text(0, radius, said, transform=at, va="bottom", fontsize=8, color=GREY)
        lowest = min(lowest, radius)
    axis.set_ylim(lowest / 3, 3 * highest * (highest / lowest) ** 0.3)  # with room for the numbers
    axis.margins(x=0.04)
    axis.minorticks_off()
    for gap, number, at in zip(named, range(first, first + len(named)), _spread(axis, named), strict=True):
        axis.annotate(
            str(number),
            (gap.at, gap.width),
            (at, 0.9),
            textcoords=axis.get_xaxis_transform(),
            color=RED,
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "color": RED, "linewidth": 0.6, "alpha": 0.6},
        )


def _spread(axis: Any, named: list[Gap]) -> list[float]:
    """Where the numbers of gaps are written: above them, but not over each other."""
    low, high = axis.get_xlim()
    columns = axis.get_subplotspec().get_gridspec().ncols
    apart, at = 0.02 * columns * (high - low), np.array([gap.at for gap in named])
    order, places = np.argsort(at, kind="stable"), at.copy()
    for before, after in itertools.pairwise(order):
        places[after] = max(places[after], places[before] + apart)
    beyond = max(0.0, float(places.max(initial=low)) - (high - apart / 2))
    return list((places - beyond).tolist())


def _list_gaps(axis: Any, model: Model, named: list[Gap]) -> None:
    """The narrowest gaps, a line each: its number, what lies left of it, its width, what lies right of it."""
    axis.set(xlim=(0, 1), ylim=(len(named) + 0.5, -1.0))
    axis.axis("off")
    if not named:
        axis.text(0, 0, f"The readout is {model.ledger['readout']}: no coordinate is cut into cells.", fontsize=9)
        return
    measured = "between stored samples" if model.certificate is not None else "at least so wide"
    axis.text(
        0,
        -0.6,
        f"The narrowest gaps ({measured}), what lies left of them, and what lies right",
        fontsize=9,
        color=GREY,
    )
    for i, gap in enumerate(named):
        alike = f" (one of {gap.alike:,})" if gap.alike > 1 else ""
        line = (0.0, str(i + 1), RED), (0.03, f"{gap.width:.4g}{alike}", BLUE), (0.15, gap.left, "black")
        for x, text, colour in (*line, (0.575, gap.right, "black")):
            axis.text(x, i + 0.3, drawable(text), color=colour, fontsize=8, parse_math=False)


def drawable(text: str) -> str:
    """Text in characters that the font has; others are escaped, since matplotlib would draw boxes and warn."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    return "".join(c if c.isprintable() and font.get_char_index(ord(c)) else ascii(c)[1:-1] for c in text)


def _draw_staircase(axis: Any, model: Model) -> None:
    t, y = staircase(model)
    axis.plot(t, y, color=BLUE, linewidth=1.2)
    classes = model.form.classes
    axis.set_title("What the readout gives (up to 25 plateaus in the middle)", fontsize=10, loc="left")
    axis.set_xlabel("context coordinate t (no unit)", fontsize=9)
    if classes is None:
        axis.set_ylabel("answer, first component" if model.form.width > 1 else "answer")
    elif len(classes) <= FEW_CLASSES:
        axis.set_ylabel("answer")
        axis.set_yticks(
            range(len(classes)), [drawable(cut(str(name), LONGEST_ANSWER)) for name in classes], parse_math=False
        )
    else:
        axis.set_ylabel("number of the class")


def staircase(model: Model, steps: int = 25) -> tuple[Any, Any]:
    """The readout as a function of its first coordinate, over some plateaus in the middle."""
    readout = model.transformer.readout
    slope, bias = readout[1].weight[0], readout[1].bias
    rises = slope > 0
    starts, ends = -bias[rises] / slope[rises], (1 - bias[rises]) / slope[rises]
    ends = np.sort(np.concatenate([starts, ends])) if rises.any() else np.array([0.0, 1.0])
    middle = ends[max(0, len(ends) // 2 - steps) :][: 2 * steps]  # where ramps begin and end
    edge = 0.02 * (middle[-1] - middle[0]) or 1.0
    t = np.linspace(middle[0] - edge, middle[-1] + edge, 4000)
    h = np.zeros((len(t), readout[1].weight.shape[0]), model.transformer.dtype)
    h[:, 0] = t
    return t, apply_stack(readout[1:], h)[:, 0]
