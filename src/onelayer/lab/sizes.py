"""How wide a twin may be that has so many parameters."""

from __future__ import annotations

from dataclasses import replace

from onelayer.lab.networks import Shape, Task, count_parameters

#: Components of the residual stream below which a small model has fewer units instead.
NARROWEST = 8


def fill(shape: Shape, task: Task, parameters: int) -> Shape:
    """The widest model of this kind with at most this many parameters, and as many units as then fit.

    Units are four times as many as components, fewer where that would leave less than `NARROWEST` of those: a
    stream of two components can hold next to nothing, and a layer norm leaves one sign of it.
    """
    for ratio in (4, 2, 1):
        found = _widest(shape, task, parameters, ratio)
        if found.width >= NARROWEST:
            break
    one_more = replace(found, hidden=found.hidden + 1)
    unit = count_parameters(one_more, task) - count_parameters(found, task)
    left = max(0, parameters - count_parameters(found, task))
    return replace(found, hidden=found.hidden + left // unit)


def _widest(shape: Shape, task: Task, parameters: int, ratio: int) -> Shape:
    def of(width: int) -> Shape:
        return replace(shape, width=width, hidden=ratio * width)

    width = shape.heads
    while count_parameters(of(width + shape.heads), task) <= parameters:
        width += shape.heads
    return of(width)
