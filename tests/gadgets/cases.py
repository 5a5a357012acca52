"""A random gadget of every kind, and inputs: on which its search must give the bits of its layers, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onelayer.gadgets.affine import Affine
from onelayer.gadgets.choice import Choice
from onelayer.gadgets.clamp import Clamp
from onelayer.gadgets.gadget import Gadget
from onelayer.gadgets.hats import Hats
from onelayer.gadgets.layout import layouts
from onelayer.gadgets.line import Line, trapezoids, whole_cells
from onelayer.gadgets.logits import Logits
from onelayer.gadgets.lookups import Lookups
from onelayer.gadgets.packed import Packed
from onelayer.gadgets.place_gates import PlaceGates
from onelayer.gadgets.planes import Planes
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.print_steps import PrintSteps
from onelayer.gadgets.ranks import Ranks
from onelayer.gadgets.retrieval import TABLES, Retrieval
from onelayer.gadgets.ridges import Ridges
from onelayer.gadgets.steps import Steps
from onelayer.gadgets.table import Table
from onelayer.gadgets.words import WordReader
from onelayer.gadgets.zigzags import Zigzags
from onelayer.network import Linear

Rng = np.random.Generator
F32, F64 = np.dtype("float32"), np.dtype("float64")


class Case(NamedTuple):
    gadget: Gadget
    stored: np.ndarray  # [T, inputs] where the search must give the bits of the layers
    others: np.ndarray  # [T, inputs] where rounding may differ


def some(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def cut(rng: Rng, K: int, dtype: np.dtype, coordinate: int = 0) -> tuple[Line, np.ndarray]:
    """K cells between whole numbers, and whole numbers of which every cell has one."""
    ends = np.cumsum(rng.integers(2, 9, K)).astype(float)
    weight, bias, _ = trapezoids(ends[:-1], ends[:-1] + 1, dtype)
    return Line(coordinate, weight, bias), ends


def anywhere(rng: Rng, inputs: int, top: float, dtype: np.dtype) -> np.ndarray:
    return rng.uniform(0, top + 9, (40, inputs)).astype(dtype)


def plateaus(rng: Rng, dtype: np.dtype) -> Case:
    K, s, q, k = some(rng, 1, 90), some(rng, 1, 3), some(rng, 1, 3), some(rng, 0, 2)
    if s == 1:
        line, ends = cut(rng, K, dtype)
        weight, bias, centres = line.weight[:, None], line.bias[:, None], ends[:, None]
    else:
        centres = rng.permutation(64**s)[:K]
        centres = np.stack(np.unravel_index(np.sort(centres), (64,) * s), axis=1) * 8.0
        slope = np.array([0.5, -0.5], dtype)
        weight = np.broadcast_to(slope, (K, s, 2)).copy()
        bias = np.stack([-0.5 * centres - 1, 0.5 * centres - 1], axis=-1).astype(dtype)
    values, passed = rng.integers(-99, 99, (K, q)).astype(dtype), rng.integers(-9, 9, (k, q)).astype(dtype)
    carried = np.eye(s + k, k, -s, dtype=dtype)
    gadget = Plateaus(weight, bias, values, rng.integers(-9, 9, q).astype(dtype), carried, passed)
    beside = rng.integers(0, 9, (len(centres), k))
    far = anywhere(rng, s + k, float(centres.max()), dtype)
    return Case(gadget, np.concatenate([centres, beside], axis=1).astype(dtype), far)


def retrieval(rng: Rng, dtype: np.dtype) -> Case:
    R, G, inputs, C = some(rng, 1, 9), some(rng, 1, 5), some(rng, 6, 8), some(rng, 1, 70_000)
    found = [cut(rng, some(rng, 1, (R, G)[i % 2]), dtype, i) for i in range(2 * TABLES)]
    entries = rng.integers(0, C, (TABLES, R, G)).astype(dtype)
    top = max(float(ends[-1]) for _, ends in found)
    constant = rng.integers(-3, 4, 1).astype(dtype)
    gadget = Retrieval(inputs, tuple(line for line, _ in found), entries, C, constant)
    return Case(gadget, np.floor(anywhere(rng, inputs, top, dtype)), anywhere(rng, inputs, top, dtype))


def lookups(rng: Rng, dtype: np.dtype) -> Case:
    inputs, sums = some(rng, 1, 5), some(rng, 1, 4)
    found = [cut(rng, some(rng, 2, 7), dtype, i) for i in range(inputs) if i == 0 or rng.random() < 0.7]
    tables = rng.integers(-20, 20, (sum(line.count for line, _ in found), sums)).astype(dtype)
    carried = tuple(rng.permutation(inputs)[: some(rng, 0, inputs)].tolist())
    top = max(float(ends[-1]) for _, ends in found)
    gadget = Lookups(
        inputs, tuple(line for line, _ in found), carried, tables, rng.integers(0, 9, sums).astype(dtype)
    )
    return Case(gadget, np.floor(anywhere(rng, inputs, top, dtype)), anywhere(rng, inputs, top, dtype))


def planes(rng: Rng, dtype: np.dtype) -> Case:
    R, G, P, base = some(rng, 1, 9), some(rng, 1, 5), some(rng, 1, 3), some(rng, 2, 60)
    cells = [some(rng, 1, (R, G)[i % 2]) for i in range(2 * TABLES)]
    lines = tuple(Line(i, *whole_cells(1 + 2 * np.arange(K - 1), dtype)) for i, K in enumerate(cells))
    entries = rng.integers(0, base, (TABLES, R, P, G)).astype(dtype)
    gadget = Planes(2 * TABLES, lines, entries, base, rng.integers(-3, 4, 1).astype(dtype))
    return Case(gadget, np.floor(anywhere(rng, 2 * TABLES, 20.0, dtype)), anywhere(rng, 2 * TABLES, 20.0, dtype))


def split(rng: Rng, digits: int) -> tuple[int, ...]:
    first = some(rng, 1, digits)
    return (first,) if first == digits else (first, digits - first)


def packed(rng: Rng, dtype: np.dtype) -> Case:
    bits, parts = ((0, 1), (0, 3), (3, 1), (6, 1))[some(rng, 0, 3)]
    ways = layouts(int(rng.choice([2, 3, 7, 10, 50, 256, 1000])), float(bits), parts)
    layout = ways[some(rng, 0, len(ways) - 1)]
    block, inputs = some(rng, 1, 4), some(rng, 7, 9)
    R, G = block * some(rng, 1, 3), block * some(rng, 1, 2)
    found = [cut(rng, some(rng, 1, (R, G)[i % 2]), dtype, i) for i in range(2 * 3)]
    lanes, ends = cut(rng, layout.lanes, dtype)
    steps = -lanes.weight[1:, 1], lanes.bias[1:, 1]
    words = rng.integers(0, layout.modulus, (3, layout.words, R, G)).astype(np.int32)
    prints: list[PrintSteps] = []
    if layout.prints:
        for size in (layout.base**digits for digits in split(rng, layout.prints)):
            line, _ = cut(rng, size, dtype)
            prints.append(PrintSteps(int(rng.integers(0, inputs)), -line.weight[1:, 1], line.bias[1:, 1]))
    default = float(rng.integers(0, 99)) if prints else 0.0
    own = (inputs, layout, block, tuple(line for line, _ in found), 6, *steps, words)
    gadget = Packed(*own, tuple(prints), default)
    top = max(float(ends[-1]), *(float(ends[-1]) for _, ends in found))
    return Case(gadget, np.floor(anywhere(rng, inputs, top, dtype)), anywhere(rng, inputs, top, dtype))


def table(rng: Rng, dtype: np.dtype) -> Case:
    R, G, inputs, q = some(rng, 1, 9), some(rng, 1, 6), some(rng, 1, 4), some(rng, 1, 3)
    line, ends = cut(rng, R, dtype)
    closed = bool(rng.integers(2))
    signs = np.concatenate([np.eye(q), -np.eye(q)])[np.sort(rng.permutation(2 * q)[: some(rng, 1, 2 * q)])]
    begins = np.cumsum(rng.integers(2, 9, (R, G)), axis=1)
    start = (0.5 + 4 * (begins - 0.5)).astype(dtype)
    if not closed:
        start[:, 0] = 0.0
    end = (0.5 + 4 * (begins + 0.5)).astype(dtype) if closed else None
    values = rng.integers(0, 50, (R, G, len(signs))) * np.eye(len(signs))[rng.integers(0, len(signs), (R, G))]
    default = rng.integers(-9, 9, q).astype(dtype) if closed else None
    constant = rng.integers(-9, 9, q).astype(dtype)
    read = (some(rng, 0, inputs - 1),)
    emitted = (4.0, start, end, values.astype(dtype), signs.astype(dtype))
    gadget = Table(inputs, line, read, *emitted, default, constant)
    top = float(max(ends[-1], begins.max()))
    return Case(gadget, np.floor(anywhere(rng, inputs, top, dtype)), anywhere(rng, inputs, top, dtype))


def choice(rng: Rng, dtype: np.dtype) -> Case:
    K, inputs = some(rng, 2, 9), some(rng, 3, 6)
    line, ends = cut(rng, K, dtype)
    used = tuple(sorted(rng.permutation(np.arange(1, inputs))[: some(rng, 1, inputs - 1)].tolist()))
    chosen = rng.integers(0, len(used), K)
    if len(used) == 1:
        used, chosen = (1, 2), np.arange(K) % 2
    gadget = Choice(inputs, line, used, chosen, 32.0)
    beyond = anywhere(rng, inputs, 60.0, dtype)  # some are beyond the wall
    return Case(gadget, np.floor(anywhere(rng, inputs, float(ends[-1]), dtype)), beyond)


def hats(rng: Rng, dtype: np.dtype) -> Case:
    m, D, q, k = some(rng, 1, 3), some(rng, 1, 4), some(rng, 1, 3), some(rng, 0, 2)
    H = float(2 ** some(rng, 0, 6))
    values, passed = rng.standard_normal(((D + 1) ** m, q)).astype(dtype), rng.integers(-3, 4, (k, q)).astype(dtype)
    gadget = Hats(m, D, H, values, passed, np.zeros(q, dtype))
    vertices = gadget.vertices() * H
    stored = np.concatenate([vertices, np.zeros((len(vertices), k))], axis=1).astype(dtype)
    return Case(gadget, stored, anywhere(rng, m + k, D * H, dtype))


def steps(rng: Rng, dtype: np.dtype) -> Case:
    d, k, K = some(rng, 1, 5), some(rng, 0, 2), some(rng, 1, 30)
    slope = np.exp2(rng.integers(-3, 6, K)).astype(dtype)
    carried = rng.integers(0, 2, (d, k)).astype(dtype)
    gadget = Steps(rng.integers(0, d, K), slope, rng.standard_normal(K).astype(dtype), carried)
    inputs = rng.standard_normal((40, d)).astype(dtype)
    return Case(gadget, inputs, inputs)


def place_gates(rng: Rng, dtype: np.dtype) -> Case:
    n, s = some(rng, 1, 8), some(rng, 1, 5)
    mixing, shift = rng.integers(-2, 3, (n, s, s)).astype(dtype), rng.integers(-30, 30, (n, s)).astype(dtype)
    gadget = PlaceGates(64.0, mixing, shift)
    raw = rng.integers(0, 62, (40, s)).astype(float)
    raw[:, 0] += 64.0 * rng.integers(0, n, 40)
    return Case(gadget, raw.astype(dtype), anywhere(rng, s, 64.0 * n, dtype))


def zigzags(rng: Rng, dtype: np.dtype) -> Case:
    s, pieces, sink = some(rng, 1, 6), some(rng, 1, 20), bool(rng.integers(2))
    step = 2 ** some(rng, 0, 6)
    knots = step * rng.integers(-1, 2, (s, pieces + 1)).astype(dtype)
    gadget = Zigzags(step, knots, rng.integers(-9, 10, (s, s)).astype(dtype), sink)
    inside = rng.integers(0, pieces * step + 1, (40, s)).astype(dtype)
    marks = rng.integers(0, 2, (40, int(sink))).astype(dtype)
    return Case(gadget, np.concatenate([inside, marks], axis=1), anywhere(rng, s + sink, pieces * step, dtype))


def ranks(rng: Rng, dtype: np.dtype) -> Case:
    R, G, w = some(rng, 1, 6), some(rng, 1, 6), some(rng, 1, 5)
    cells, ends = cut(rng, R, dtype)
    carried = w * some(rng, 0, 1)
    thresholds = 2.0 * np.cumsum(rng.integers(1, 9, (R, G)), axis=1)
    of_cell, of_step = (rng.integers(0, 99, (K, w)).astype(dtype) for K in (R, G + 1))
    gadget = Ranks(cells, 2.0, thresholds.astype(dtype), of_cell, of_step, carried)
    other = anywhere(rng, 1 + carried, float(ends[-1]), dtype)
    signs = np.array([rng.choice([-1, 1], 40)]).T
    return Case(
        gadget,
        np.floor(anywhere(rng, 1 + carried, float(ends[-1]), dtype))
        * np.where(np.arange(1 + carried) == 0, signs, 1).astype(dtype),
        other,
    )


def words(rng: Rng, dtype: np.dtype) -> Case:
    g, c = some(rng, 1, 3), some(rng, 1, 3)
    rho = some(rng, 0, 3) if g > 1 else 0
    L = some(rng, 1, 3)
    gadget = WordReader(c, rho, g, 0.25, L, dtype)
    inputs = rng.integers(0, 2 ** (g * (c + rho) - rho), (40, 2 * L)).astype(dtype)
    return Case(gadget, inputs, inputs)


def clamp(rng: Rng, dtype: np.dtype) -> Case:
    q = some(rng, 1, 4)
    inputs = rng.standard_normal((40, q)).astype(dtype)
    gadget = Clamp(rng.uniform(0, 1, q).astype(dtype), rng.standard_normal(q).astype(dtype))
    return Case(gadget, inputs, inputs)


def ridges(rng: Rng, dtype: np.dtype) -> Case:
    shapes = ((2, 5), (5,), (5, 3), (3,))
    gadget = Ridges(*(rng.standard_normal(shape).astype(dtype) for shape in shapes))
    inputs = rng.standard_normal((40, 2)).astype(dtype)
    return Case(gadget, inputs, inputs)


def logits(rng: Rng, dtype: np.dtype) -> Case:
    """One digit; two, as if classes were too many for one; and classes that are."""
    C = some(rng, 2, 90)
    few = Logits.of(C, dtype), Logits(C, some(rng, 1, C - 1), dtype), Logits.of(some(rng, 4097, 4200), dtype)
    gadget = few[some(rng, 0, 2)]
    stored = rng.integers(0, gadget.classes, (40, 1)).astype(dtype)
    return Case(gadget, stored, rng.uniform(0, gadget.classes + 1, (40, 1)).astype(dtype))


def affine(rng: Rng, dtype: np.dtype) -> Case:
    a, b = some(rng, 1, 5), some(rng, 1, 5)
    layer = Linear(rng.standard_normal((a, b)).astype(dtype), rng.standard_normal(b).astype(dtype))
    inputs = rng.standard_normal((40, a)).astype(dtype)
    return Case(Affine(layer), inputs, inputs)


CASES: dict[str, Callable[[Rng, np.dtype], Case]] = {
    made.__name__: made
    for made in (
        plateaus,
        retrieval,
        lookups,
        planes,
        packed,
        table,
        choice,
        hats,
        steps,
        place_gates,
        zigzags,
        ranks,
        words,
        clamp,
        ridges,
        logits,
        affine,
    )
}
