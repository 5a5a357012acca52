"""Figures without a window system; matplotlib is imported when the first is drawn."""

from __future__ import annotations

from typing import Any

from onelayer.errors import MissingExtraError
from onelayer.lab.statistics import Factor, Interval


def figure(
    columns: int = 1, width: float = 8.0, height: float = 4.0, panels: int | None = None
) -> tuple[Any, list[Any]]:
    """A figure and its axes, from left to right; more ``panels`` than columns go on in further rows."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("The lab's pictures", "matplotlib", "lab") from None
    count = columns if panels is None else panels
    lines = -(-count // columns)
    made = Figure(figsize=(width, height * lines), layout="constrained")
    return made, [made.add_subplot(lines, columns, i + 1) for i in range(count)]


def factor_line(axes: Any, points: dict[Any, Factor], label: str, **style: Any) -> None:
    """Geometric means with the factors of their 95% intervals, for a logarithmic axis."""
    y = [point.mean for point in points.values()]
    below = [point.mean - point.mean / point.factor for point in points.values()]
    above = [point.mean * point.factor - point.mean for point in points.values()]
    style = {"marker": "o", "markersize": 4, "capsize": 2, **style}
    axes.errorbar(list(points), y, yerr=[below, above], label=label, **style)


def doublings(axes: Any) -> None:
    """A logarithmic axis for numbers that double: 1, 2, 4, ..."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")


def line(axes: Any, points: dict[Any, Interval], label: str, **style: Any) -> None:
    """Means over seeds with their 95% intervals as bars."""
    x = list(points)
    y = [point.mean for point in points.values()]
    half = [point.half for point in points.values()]
    style = {"marker": "o", "markersize": 4, "capsize": 2, **style}
    axes.errorbar(x, y, yerr=half, label=label, **style)
