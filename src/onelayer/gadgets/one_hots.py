"""Two layers from coordinates to one-hots of their cells: the beginning of a table, a retrieval and a choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onelayer.gadgets.gadget import Words
from onelayer.gadgets.line import Line
from onelayer.network.weights import Array, Grouped, Layer, Linear


def one_hots(
    lines: Sequence[Line], sizes: Sequence[int], inputs: int, carried: Sequence[Sequence[int]] = ()
) -> tuple[Linear, Grouped]:
    """One-hots of the lines, each padded to its size by cells that are always off, then sums of carried
    coordinates."""
    dtype, groups = lines[0].weight.dtype, sum(sizes) + len(carried)
    weight, bias = np.zeros((inputs, groups, 2), dtype), np.zeros((groups, 2), dtype)
    select, one = np.full((groups, 2, 1), -1, dtype), np.ones(groups, dtype)
    start = 0
    for line, size in zip(lines, sizes, strict=True):
        K = line.count
        weight[line.coordinate, start : start + K], bias[start : start + K] = line.weight, line.bias
        bias[start + K : start + size] = 1.0  # off everywhere
        start += size
    for summed in carried:
        weight[summed, start, 0], select[start, :, 0], one[start] = 1.0, (1.0, 0.0), 0.0
        start += 1
    return Linear(weight.reshape(inputs, -1), bias.reshape(-1)), Grouped(select, one)


def read_one_hots(units: Layer, hot_layer: Layer, sizes: Sequence[int]) -> tuple[tuple[Line, ...], Array] | None:
    """The lines, and the units [coordinates, k] of what is carried; whether these are the layers of that, whoever
    asks compares himself."""
    if not (isinstance(units, Linear) and isinstance(hot_layer, Grouped)) or units.width != 2 * len(
        hot_layer.weight
    ):
        return None
    weight, bias = units.weight.reshape(len(units.weight), -1, 2), units.bias.reshape(-1, 2)
    lines, start = [], 0
    for size in sizes:
        line = Line.read(weight[:, start : start + size], bias[start : start + size])
        if line is None:
            return None
        lines.append(line)
        start += size
    return tuple(lines), weight[:, start:, 0]


def names_of_one_hots(cells: Sequence[str], carried: Sequence[str]) -> tuple[Words, Words]:
    units = [f"{cell} / {side} foot" for cell in cells for side in ("right", "left")]
    units += [name for what in carried for name in (what, f"{what}, unit 1, always 0")]
    return tuple(units), (*cells, *carried)
