"""From coordinates and answers to a readout, or to the samples that stand in its way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.network.blocks import over_threads
from onelayer.problems.blocks import blocks
from onelayer.readouts import bits, packed, planes, plateaus, retrieval, table, triangular
from onelayer.readouts.method import READOUTS, Task, names_of
from onelayer.readouts.readout import Readout

Array = NDArray[Any]

#: These modules register what "auto" compares.
OURS = (plateaus, table, retrieval, packed, planes, bits, triangular)
#: A plateau reaches at least three eighths of the gap beyond its ids, so a gap of 8/3 radii is enough.
GAP_IN_RADII = 2.8
#: In boxes an id moves by a radius, a merged twin lies two radii off, and the plateau must hold both.
BOX_IN_RADII = 3.0
#: A readout that was expected to be smaller by this factor is worth other coordinates.
FAR_SMALLER = 1.5
#: More near neighbours than this along one coordinate, and boxes are not worth searching for.
CROWD = 64
#: Coordinates are hashed this many bytes at a time, which stay in cache.
HASHED_BYTES = 1 << 19
#: Hashes that may occur again are listed by this many bits: a table in cache.
LISTED_BITS = 18
#: From this many coordinates on, all are taken to be different, unless this many of them show that some are not.
MANY, LOOKED_AT = 1 << 18, 1 << 14


@dataclass(frozen=True)
class Separability:
    """How well the coordinates separate the answers; the readout if they do."""

    readout: Readout | None
    distinct: int  # ids told apart
    gap: float  # two ids told apart are at least this far from each other (on a line: just this far)
    answer_gap: float  # the same for ids with different answers
    margin: float  # at least 1: rounding cannot change an answer
    nearest: float = np.inf  # distance of `closest`
    closest: tuple[int, int] | None = None  # the two samples that stand in the way
    suspects: tuple[Array, ...] = ()  # groups of samples that may be the same context with different answers
    second: bool = False  # a far smaller readout was expected, and not found: other coordinates may have it


def fit(coordinates: Array, task: Task, on_lattice: bool) -> Separability:
    """Read the answers off coordinates [T, s]."""
    build = _fit_lattice if on_lattice else _fit_line if coordinates.shape[1] == 1 else _fit_boxes
    return build(coordinates, task)


def _fit_line(coordinates: Array, task: Task) -> Separability:
    radius, exact_radius = task.radius, task.exact_radius
    order = np.argsort(coordinates[:, 0])
    t, answers = coordinates[order, 0], task.rows[order]
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
        return Separability(
            None, distinct, gap, answer_gap, answer_gap / (GAP_IN_RADII * radius), answer_gap, closest, groups
        )
    name = task.readout if task.readout != "auto" else "plateaus" if task.default is None else "table"
    made = READOUTS[name].on_line(t, answers, task)
    if made is None:
        return Separability(None, distinct, gap, answer_gap, 0.0)
    readout = replace(made, kind=name, compared=READOUTS[name].why)
    return Separability(readout, distinct, gap, answer_gap, readout.guard / radius)


def _fit_lattice(coordinates: Array, task: Task) -> Separability:
    """Equal contexts have equal coordinates, to the bit: one key for each."""
    if (readout := _all_different(coordinates, task)) is not None:
        return _read_on_lattice(readout, len(coordinates), task)
    first, suspects = _same_rows(coordinates, task.rows)
    if suspects:
        pair = (int(suspects[0][0]), int(suspects[0][1]))
        return Separability(None, len(first), 0.0, 0.0, 0.0, 0.0, pair, suspects)
    every = len(first) == len(coordinates)  # then in order, and not worth a copy
    keys, values = (coordinates, task.rows) if every else (coordinates[first], task.rows[first])
    kinds, compared = _lattice_kinds(keys, values, task)
    for kind in kinds:
        made = READOUTS[kind].on_lattice(keys, values, task)
        if made is not None:
            found = _read_on_lattice(replace(made, kind=kind, compared=compared), len(first), task)
            hoped = 0.0 if kind == kinds[0] else READOUTS[kinds[0]].expected_parameters(keys, values, task)
            return replace(found, second=made.parameters > FAR_SMALLER * hoped > 0)
    near, pair = _nearest_rows(keys)
    return Separability(None, len(first), 0.0, 0.0, 0.0, near, (int(first[pair[0]]), int(first[pair[1]])))


def _read_on_lattice(readout: Readout, distinct: int, task: Task) -> Separability:
    room = 2 * readout.guard
    return Separability(readout, distinct, room, room, readout.guard / task.radius)


def _all_different(coordinates: Array, task: Task) -> Readout | None:
    """A readout of many coordinates, if it is of a kind that there is only if no two are equal; to look for equal
    ones takes longer than to try. Not where a few of them show that there are some."""
    some = _hash_rows(coordinates[:: max(1, len(coordinates) // LOOKED_AT)])
    if len(coordinates) < MANY or len(np.unique(some)) < len(some):
        return None
    kinds, compared = _lattice_kinds(coordinates, task.rows, task)
    if not READOUTS[kinds[0]].refuses_equals:
        return None
    made = READOUTS[kinds[0]].on_lattice(coordinates, task.rows, replace(task, once=True))
    return None if made is None else replace(made, kind=kinds[0], compared=compared)


def _nearest_rows(keys: Array) -> tuple[float, tuple[int, int]]:
    """Two keys that lie close together, and how far apart they are: neighbours along some coordinate."""
    best, pair = np.inf, (0, 0)
    for column in keys.T if len(keys) > 1 else ():
        order = np.argsort(column, kind="stable")
        distance = np.abs(keys[order[1:]] - keys[order[:-1]]).max(axis=1)
        at = int(distance.argmin())
        if distance[at] < best:
            best, pair = float(distance[at]), (int(order[at]), int(order[at + 1]))
    return best, pair


def _lattice_kinds(keys: Array, values: Array, task: Task) -> tuple[list[str], str]:
    """The readout asked for, or all with the one expected to be smallest first; and what was compared."""
    if task.readout != "auto":
        return [task.readout], "asked for"
    able = [name for name in names_of("on_lattice") if keys.shape[1] >= READOUTS[name].least_coordinates]
    able = [name for name in able if READOUTS[name].automatic]
    if task.default is not None:
        able = [name for name in able if READOUTS[name].knows_stored]
    if task.false_hits is not None:
        able = [name for name in able if READOUTS[name].chooses_false_hits]
    if len(able) == 1:
        return able, READOUTS[able[0]].why
    sizes = {name: READOUTS[name].expected_parameters(keys, values, task) for name in able}
    compared = ", ".join(f"{kind} about {size:,.0f}" for kind, size in sizes.items())
    return sorted(sizes, key=lambda kind: sizes[kind]), f"the smaller by parameters expected: {compared}"


def _same_rows(T: Array, rows: Array) -> tuple[Array, tuple[Array, ...]]:
    """The first of each set of equal coordinates, and the sets that hold different answers."""
    hashed = _hash_rows(T)
    some = _that_may_be_equal(hashed)
    order = some[np.argsort(hashed[some], kind="stable")]
    in_order = hashed[order]
    again = np.flatnonzero(in_order[1:] == in_order[:-1])
    # Equal hashes almost always mean equal coordinates; where not, the two stay apart and the fit fails loudly.
    again = again[(T[order[again + 1]] == T[order[again]]).all(axis=1)]
    if not again.size:
        return np.arange(len(T)), ()
    lead = np.ones(len(order), bool)
    lead[again + 1] = False
    group = np.cumsum(lead) - 1
    mixed_groups = np.unique(group[(rows[order] != rows[order[lead]][group]).any(axis=1)])
    suspects = tuple(order[group == g] for g in mixed_groups[:1024])
    first = np.ones(len(T), bool)
    first[order[~lead]] = False
    return np.flatnonzero(first), suspects


def _that_may_be_equal(hashed: Array) -> Array:
    """Which numbers of 64 bits may occur again, judged by fewer bits, which are sorted faster."""
    in_order = np.sort((hashed >> np.uint64(32)).astype(np.uint32))
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    listed = np.zeros(1 << LISTED_BITS, bool)
    listed[twice >> np.uint32(32 - LISTED_BITS)] = True
    return np.flatnonzero(listed.take((hashed >> np.uint64(64 - LISTED_BITS)).astype(np.intp)))


def _hash_rows(T: Array) -> Array:
    """A number of 64 bits per row of coordinates; equal rows have equal ones."""
    bits = np.ascontiguousarray(T).view(np.uint32 if T.dtype == np.float32 else np.uint64)
    odd = np.asarray(np.random.default_rng(0).integers(0, 2**63, T.shape[1], dtype=np.uint64)) | np.uint64(1)
    hashed = np.empty(len(T), np.uint64)

    def run(part: Any) -> None:
        mixed = bits[part, 0] * odd[0]  # wraps around
        for i in range(1, len(odd)):
            mixed += bits[part, i] * odd[i]
        hashed[part] = mixed

    over_threads(run, list(blocks(bits, HASHED_BYTES)))
    return hashed


def _runs(order: Array, close: Array, changed: Array) -> tuple[Array, ...]:
    """Maximal runs of close neighbours that hold more than one answer."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], close.astype(np.int8), [0]])))
    starts, stops = edges[::2], edges[1::2]  # neighbours starts..stops-1 are close: members starts..stops
    changes = np.concatenate([[0], np.cumsum(changed)])
    mixed = changes[stops] > changes[starts]
    return tuple(order[a : b + 1] for a, b in zip(starts[mixed], stops[mixed], strict=True))


def _fit_boxes(coordinates: Array, task: Task) -> Separability:
    rows, radius, exact_radius = task.rows, task.radius, task.exact_radius
    first, suspects = _collapse(coordinates, rows, 16 * exact_radius)
    order = first[np.argsort(coordinates[first, 0])]
    T, answers = coordinates[order], rows[order]
    half_width = float(np.exp2(np.ceil(np.log2(BOX_IN_RADII * radius))))
    # An id may move by a radius, and so may a dropped twin, which lies up to two radii from the kept one.
    needed = 2 * half_width + 4 * radius
    pairs = None if suspects else near_pairs(T, needed)
    if pairs is None:
        near, (a, b) = (0.0, suspects[0][:2]) if suspects else _nearest_rows(coordinates[first])
        closest = (int(a), int(b)) if suspects else (int(first[a]), int(first[b]))
        return Separability(None, len(first), 0.0, 0.0, 0.0, near, closest, suspects)
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
        return Separability(None, int(keep.sum()), gap, gap, min(gap / needed, 0.999), gap, closest)
    # Half of what fits: as much room to the other boxes as inside one's own, for inputs that are a little off.
    wider = max(half_width, _widen(T[keep], half_width, radius) / 2)
    name = "boxes" if task.readout == "auto" else task.readout
    boxes = READOUTS[name].in_boxes(T[keep], answers[keep], wider, task)
    if boxes is None:
        return Separability(None, int(keep.sum()), 0.0, 0.0, 0.0)
    twin_distance = float(distance[dropping].max(initial=0.0)) + 16 * exact_radius
    gap = 2 * wider + 4 * radius
    readout = replace(boxes, kind=name, compared=READOUTS[name].why)
    return Separability(readout, int(keep.sum()), gap, gap, (boxes.guard - twin_distance) / radius)


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
