"""From coordinates and answers to a readout, or to the samples that stand in its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.constructions.readout.plateaus import Plateaus, in_boxes, on_a_line

Array = NDArray[Any]

#: A plateau reaches at least three eighths of the gap beyond its ids, so a gap of 8/3 radii is enough.
GAP_IN_RADII = 2.8
#: In boxes an id moves by a radius, a merged twin lies two radii off, and the plateau must hold both.
BOX_IN_RADII = 3.0
#: More near neighbours than this along one coordinate, and boxes are not worth searching for.
CROWD = 64


@dataclass(frozen=True)
class Fit:
    """How well the coordinates separate the answers; the readout if they do."""

    plateaus: Plateaus | None
    distinct: int  # ids told apart
    gap: float  # two ids told apart are at least this far from each other (on a line: just this far)
    answer_gap: float  # the same for ids with different answers
    margin: float  # at least 1: rounding cannot change an answer
    nearest: float = np.inf  # distance of `closest`
    closest: tuple[int, int] | None = None  # the two samples that stand in the way
    suspects: tuple[Array, ...] = ()  # groups of samples that may be the same context with different answers


def fit(coordinates: Array, rows: Array, dtype: np.dtype[Any], radius: float, exact_radius: float) -> Fit:
    """Coordinates [T, s] and answers [T, q]; the model may compute a coordinate up to ``radius`` off, and ours
    are up to ``exact_radius`` off the real numbers they stand for."""
    build = _fit_line if coordinates.shape[1] == 1 else _fit_boxes
    return build(coordinates, rows, dtype, radius, exact_radius)


def _fit_line(coordinates: Array, rows: Array, dtype: np.dtype[Any], radius: float, exact_radius: float) -> Fit:
    order = np.argsort(coordinates[:, 0])
    t, answers = coordinates[order, 0], rows[order]
    gaps = np.diff(t)
    changed = (answers[1:] != answers[:-1]).any(axis=1)
    apart = gaps > 2 * radius
    distinct = int(apart.sum()) + 1
    gap = float(gaps[apart].min(initial=np.inf))
    answer_gap = float(gaps[changed].min(initial=np.inf))
    if answer_gap < GAP_IN_RADII * radius:
        near = int(np.flatnonzero(changed)[np.argmin(gaps[changed])])
        groups = _runs(order, gaps < GAP_IN_RADII * exact_radius, changed)
        closest = (int(order[near]), int(order[near + 1]))
        return Fit(
            None, distinct, gap, answer_gap, answer_gap / (GAP_IN_RADII * radius), answer_gap, closest, groups
        )
    plateaus = on_a_line(t, answers, dtype)
    return Fit(plateaus, distinct, gap, answer_gap, plateaus.guard / radius)


def _runs(order: Array, close: Array, changed: Array) -> tuple[Array, ...]:
    """Maximal runs of close neighbours that hold more than one answer."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], close.astype(np.int8), [0]])))
    starts, stops = edges[::2], edges[1::2]  # neighbours starts..stops-1 are close: members starts..stops
    changes = np.concatenate([[0], np.cumsum(changed)])
    mixed = changes[stops] > changes[starts]
    return tuple(order[a : b + 1] for a, b in zip(starts[mixed], stops[mixed], strict=True))


def _fit_boxes(coordinates: Array, rows: Array, dtype: np.dtype[Any], radius: float, exact_radius: float) -> Fit:
    first, suspects = _collapse(coordinates, rows, 16 * exact_radius)
    order = first[np.argsort(coordinates[first, 0])]
    T, answers = coordinates[order], rows[order]
    half_width = float(np.exp2(np.ceil(np.log2(BOX_IN_RADII * radius))))
    # An id may move by a radius, and so may a dropped twin, which lies up to two radii from the kept one.
    needed = 2 * half_width + 4 * radius
    pairs = None if suspects else near_pairs(T, needed)
    if pairs is None:
        return Fit(None, len(first), 0.0, 0.0, 0.0, 0.0, None, suspects)
    i, j, distance = pairs
    same = (answers[i] == answers[j]).all(axis=1)
    # A twin is dropped when its first occurrence is kept.
    twin = same & (distance <= 2 * radius)
    has_twin_before = np.zeros(len(T), bool)
    has_twin_before[j[twin]] = True
    dropping = twin & ~has_twin_before[i]
    keep = np.ones(len(T), bool)
    keep[j[dropping]] = False
    hard = (keep[i] & keep[j]) | ~same
    if hard.any():
        near = int(np.argmin(np.where(hard, distance, np.inf)))
        closest = (int(order[i[near]]), int(order[j[near]]))
        gap = float(distance[near])
        return Fit(None, int(keep.sum()), gap, gap, min(gap / needed, 0.999), gap, closest)
    # Half of what fits: as much room to the other boxes as inside one's own, for inputs that are a little off.
    wider = max(half_width, _widen(T[keep], half_width, radius) / 2)
    plateaus = in_boxes(T[keep], answers[keep], wider, dtype)
    twin_distance = float(distance[dropping].max(initial=0.0)) + 16 * exact_radius
    gap = 2 * wider + 4 * radius
    return Fit(plateaus, int(keep.sum()), gap, gap, (plateaus.guard - twin_distance) / radius)


def _collapse(T: Array, rows: Array, cell: float) -> tuple[Array, tuple[Array, ...]]:
    """The same context met again falls into the same tiny cell: one sample per cell, and the cells whose samples
    have different answers."""
    cells = np.floor(T / cell)
    order = np.lexsort(cells.T)
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(cells[order], axis=0) != 0).any(axis=1)]))
    first = order[starts]
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    mixed = np.unique(group[(rows[order] != rows[first][group]).any(axis=1)])
    return first, tuple(order[group == g] for g in mixed[:1024])


def _widen(T: Array, half_width: float, radius: float) -> float:
    """Double the boxes while all of them stay apart: room for perturbed inputs costs nothing."""
    while True:
        pairs = near_pairs(T, 4 * half_width + 4 * radius)
        if pairs is None or pairs[0].size:
            return half_width
        half_width *= 2
        if half_width > np.abs(T).max() + 1:
            return half_width / 2


def near_pairs(T: Array, h: float) -> tuple[Array, Array, Array] | None:
    """All pairs (i < j, distance) nearer than h in the largest-coordinate norm; T is sorted by its first
    coordinate. None when the neighbourhoods are too crowded to list."""
    found: list[tuple[Array, Array, Array]] = []
    window = np.searchsorted(T[:, 0], T[:, 0] + h) - np.arange(len(T)) - 1
    if window.mean() > CROWD:
        return None
    i = np.flatnonzero(window > 0)
    step = 1
    while i.size:
        distance = np.abs(T[i + step] - T[i]).max(axis=1)
        near = distance < h
        found.append((i[near], i[near] + step, distance[near]))
        step += 1
        i = i[window[i] >= step]
    if not found:
        return np.empty(0, int), np.empty(0, int), np.empty(0)
    first, second, distances = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return first, second, distances
