"""Pictures of a compiled formula: its program with the error of each part, errors on slices, size and tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from onelayer.errors import HypothesisError
from onelayer.functions.formula import Compiled, Compiler
from onelayer.functions.layout import Phase
from onelayer.functions.smallest import smallest
from onelayer.interfaces import Function

if TYPE_CHECKING:
    from onelayer.model import Model

BLUE, RED, GREY = "#4477aa", "#cc3311", "#777777"
#: Nodes of a column that are shown, characters of a name, and of a line of it.
MOST_NODES, MOST_LETTERS, WIDE = 9, 40, 21
#: Of a tolerance: what is left to rounding.
ROUNDING = 0.04
#: Points of a slice, slices, and tolerances that are tried, times that of the model.
POINTS, SLICES, FACTORS = 1500, 3, (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True)
class Node:
    """A part of the program: a line, what it is, how many units it takes, and the error that is allowed for it."""

    line: int
    column: int
    name: str
    units: int
    error: float  # of an output, by this part
    reads: tuple[int, ...]  # lines of other nodes
    shared: str = ""  # with whom its units are shared, in words


def compiled(model: Model, tolerance: float | None = None) -> tuple[Compiler, Compiled]:
    """The model compiled again; or with another tolerance."""
    function = model.interface_as(Function, "a picture of the program")
    assert function.target.pooled is not None
    asked = function.tolerance if tolerance is None else tolerance
    box, dtype = list(function.box.sides), model.transformer.dtype
    return smallest(function.target.pooled, box, function.target.n, asked, dtype, ROUNDING * asked)


def nodes(made: Compiler, dtype: np.dtype[Any]) -> list[Node]:
    """Tokens, functions of a token, averages, functions of the averages level by level, outputs."""
    L = made.lines
    found = [Node(k, 0, L.text(k, MOST_LETTERS), 0, 0.0, ()) for k in made.plan.components]
    errors = made.error_by_part()
    answers = made.answer.functions
    last = 3 + max((made.answer.level(made.answer.source(j)) + 1 for j in answers), default=0)

    def block(phase: Phase, j: int, column: int, units: int) -> Node:
        reads = tuple(phase.parts(phase.source(j)))
        with_ = len(phase.by_source[phase.source(j)]) - 1
        shared = f", shared with {with_}" if with_ else ""
        return Node(j, column, L.text(j, MOST_LETTERS), units, errors.get(j, 0.0), reads, shared)

    for phase, first in ((made.token, 1), (made.answer, 3)):
        blocks = phase.blocks(dtype)
        for j in phase.functions:
            column = first if phase is made.token else first + phase.level(phase.source(j))
            found.append(block(phase, j, column, len(blocks[j].corners)))
    for pool in made.pools:
        reads = tuple(dict.fromkeys(j for k in pool.read for j in made.token.parts(k)))
        name = L.text(pool.line, MOST_LETTERS)
        if pool.tilts:
            name = f"{name}, nearly: {len(pool.tilts)} averages"
        found.append(Node(pool.line, 2, name, 0, errors.get(pool.line, 0.0), reads))
    for i, k in enumerate(made.plan.planned):
        name = f"output {i + 1}" if len(made.plan.planned) > 1 else "output"
        found.append(Node(-1 - i, last, name, 0, 0.0, tuple(made.answer.parts(k))))
    return found


def figure_of(model: Model) -> Any:
    from matplotlib.figure import Figure

    function = model.interface_as(Function, "a picture of the program")
    figure = Figure(figsize=(15.0, 7.5), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(2.3, 1))
    program(figure.add_subplot(grid[:, 0]), model)
    slices(figure.add_subplot(grid[0, 1]), model)
    sizes(figure.add_subplot(grid[1, 1]), model)
    kept = f"{model.n_parameters:,} parameters in {model.transformer.dtype}, up to {function.target.n:,} tokens"
    figure.suptitle(f"{function.target.name}: compiled line by line, {kept}")
    return figure


def program(axis: Any, model: Model) -> None:
    """The program from left to right; the redder a part, the more of the tolerance it may take."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    listed = nodes(compiled(model)[0], model.transformer.dtype)
    columns = sorted({node.column for node in listed})
    place: dict[int, tuple[float, float]] = {}
    largest = max([node.error for node in listed] + [1e-300])
    colours, scale = colormaps["YlOrRd"], Normalize(0, largest)
    for x, column in enumerate(columns):
        mine = [node for node in listed if node.column == column]
        shown = mine[: MOST_NODES if len(mine) <= MOST_NODES else MOST_NODES - 1]
        for i, node in enumerate(mine):
            down = (min(i, len(shown)) + 0.5) / max(len(shown) + (len(shown) < len(mine)), 1)
            place[node.line] = x, -down - 0.06 * (x % 2)  # neighbours at the same height would touch
        for node in shown:
            parts = wrap(node.name, WIDE) + ([f"{node.units} units{node.shared}"] if node.units else [])
            parts += [f"{node.error:.2g} of the error"] if node.error else []
            style = {"boxstyle": "round", "facecolor": colours(0.55 * scale(node.error)), "edgecolor": GREY}
            axis.text(*place[node.line], "\n".join(parts), ha="center", va="center", fontsize=7, bbox=style)
        if len(shown) < len(mine):
            rest = mine[len(shown) :]
            more = f"and {len(rest)} more,\n{sum(n.units for n in rest)} units, {sum(n.error for n in rest):.2g}"
            axis.text(*place[rest[0].line], more, ha="center", va="center", fontsize=7.5, color=GREY)
    for node in listed:
        for k in node.reads:
            if k in place and node.line in place:
                (a, b), (c, d) = place[k], place[node.line]
                axis.plot([a, c], [b, d], color=GREY, linewidth=0.6, alpha=0.6, zorder=0)
    axis.set(xlim=(-0.6, len(columns) - 0.4), ylim=(-1.08, 0.08))
    titles = {0: "token", 1: "of a token", 2: "averages", columns[-1]: "output"}
    for x, column in enumerate(columns):
        axis.text(x, 0.03, titles.get(column, f"then, {column - 2}"), ha="center", fontsize=8.5, color=BLUE)
    axis.set_axis_off()
    rounding = model.budget.number("floating_point") if "floating_point" in model.budget else 0.0
    tolerance = model.interface_as(Function, "plot").tolerance
    axis.set_title(f"tolerance {tolerance:.3g}; rounding takes {rounding:.2g} of it", fontsize=9)


def slices(axis: Any, model: Model) -> None:
    """The error while one component of the first token moves and all else stays."""
    function, rng = model.interface_as(Function, "plot"), np.random.default_rng(0)
    low, high = function.box.sides[0]
    s = np.linspace(low, high, POINTS)
    for i, start in enumerate(function.box.draw(rng, SLICES)):
        X = np.repeat(start[None], POINTS, axis=0)
        X[:, 0, 0] = function.box.admit(s[:, None, None].repeat(function.target.d, 2))[:, 0, 0]
        label = "" if i else "|model - target|"
        axis.plot(s, model.errors(X), color=BLUE, alpha=1 - 0.3 * i, linewidth=1.0, label=label)
    bound = function.error_bound
    axis.axhline(bound, color=RED, linestyle="--", linewidth=1.2, label=f"proved bound {bound:.3g}")
    axis.set(xlabel="component 1 of token 1, all else fixed", ylabel="error", xlim=(low, high))
    axis.set_ylim(0, axis.get_ylim()[1] * 1.25)
    axis.legend(frameon=False, loc="upper right", fontsize=8)


def sizes(axis: Any, model: Model) -> None:
    """Parameters against the tolerance; nothing is proved of the others."""
    tolerance = model.interface_as(Function, "plot").tolerance
    found = []
    for factor in FACTORS:
        try:
            made = compiled(model, factor * tolerance)[1]
        except HypothesisError:  # it would take too many units
            continue
        found.append((factor * tolerance, made.transformer.n_parameters))
    x, y = np.array(found).T
    axis.plot(x, y, "o-", color=BLUE, label="compiled")
    axis.plot(tolerance, model.n_parameters, "s", color=RED, label="this model, proved")
    if y.max() > y.min():
        axis.plot(x, y[-1] * (x / x[-1]) ** -0.5, "--", color=GREY, label="slope -1/2")
    axis.set(xscale="log", yscale="log", xlabel="tolerance", ylabel="parameters")
    for side, at in ((axis.xaxis, list(x[::2])), (axis.yaxis, sorted({*y[::2], model.n_parameters}))):
        side.set_ticks(at, [f"{value:,.3g}" if value < 1 else f"{value:,.0f}" for value in at])
        side.set_ticks([], minor=True)  # their names would lie over each other
    axis.legend(frameon=False, fontsize=8)
