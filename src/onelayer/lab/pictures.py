"""Figures without a window system; matplotlib is imported when the first is drawn."""

from __future__ import annotations

from typing import Any

from onelayer.errors import MissingExtraError
from onelayer.lab.statistics import Interval


def figure(columns: int = 1, width: float = 8.0, height: float = 4.0) -> tuple[Any, list[Any]]:
    """A figure and its axes, from left to right."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("The lab's pictures", "matplotlib", "lab") from None
    made = Figure(figsize=(width, height), layout="constrained")
    return made, [made.add_subplot(1, columns, i + 1) for i in range(columns)]


def line(axes: Any, points: dict[Any, Interval], label: str, **style: Any) -> None:
    """Means over seeds with their 95% intervals as bars."""
    x = list(points)
    y = [point.mean for point in points.values()]
    half = [point.half for point in points.values()]
    axes.errorbar(x, y, yerr=half, label=label, marker="o", markersize=4, capsize=2, **style)
