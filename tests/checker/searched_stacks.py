"""Random small stacks of the kind that is searched, points near their edges, and evaluations at their worst."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from onelayer_checker.core.balls import FLOAT32, Arithmetic, Ball
from onelayer_checker.core.layers import Layer

#: How numbers look: small and whole, with long fractions, or near the ends of the range.
MODES = ("whole", "fraction", "wild")


@dataclass
class Maker:
    """Builds a stack layer by layer; ``ones``, ``stairs`` and ``copies`` are units of the last pair of layers."""

    rng: np.random.Generator
    A: Arithmetic
    mode: str
    width: int
    layers: list[Layer] = field(default_factory=list)
    edges: list[float] = field(default_factory=list)
    ones: list[np.ndarray] = field(default_factory=list)
    stairs: list[np.ndarray] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)

    def number(self) -> float:
        rng, sort = self.rng, int(self.rng.integers(8))
        whole = float(rng.integers(-4, 6))
        if self.mode == "whole":
            return whole * (2.0**22 if sort == 0 else 1)
        if self.mode == "wild" and sort < 3:
            far = [2.0**90, 2.0**-100, 2.0**-130] if self.A is FLOAT32 else [2.0**600, 2.0**-700, 2.0**-1060]
            return whole * float(rng.choice(far))
        return float(rng.normal()) if sort < 5 else whole

    def slope(self) -> float:
        wild = self.mode == "wild" and self.rng.random() < 0.2
        return 2.0 ** int(self.rng.choice([-128, -40, 40, 110]) if wild else self.rng.integers(2, 7))

    def put(self, weight: Any, bias: Any) -> None:
        kind = np.float32 if self.A is FLOAT32 else np.float64
        arrays = (np.asarray(a, np.float64).astype(kind).astype(np.float64) for a in (weight, bias))
        self.layers.append(Layer(*arrays))
        self.width = len(self.layers[-1].bias)

    def pair(self, rows: bool) -> None:
        """Cells, staircases, copies and others; with ``rows`` staircases along rows that the cells before name."""
        rng, size = self.rng, 1 if rows else int(rng_size(self.rng))
        reads = self.copies if self.layers else list(range(self.width))
        units: list[
            tuple[list[tuple[np.ndarray, float]], float, float]
        ] = []  # units, their weight, the group's bias
        ones, stairs, copies, known = [], [], [], self.ones
        for _ in range(int(rng.integers(2, 6))):
            sort, column, start = int(rng.integers(7)), int(rng.choice(reads)), len(units)
            if rows and known and sort < 4:
                units += self.row_stairs(known[int(rng.integers(len(known)))], column)
                stairs.append(np.arange(start, len(units)))
            elif sort < 3 and size > 1:
                units += self.cells(column)
                ones.append(np.arange(start, len(units)))
            elif sort < 5:
                units += self.stairs_along(column)
                stairs.append(np.arange(start, len(units)))
            else:
                row = np.zeros(self.width)
                row[column] = 1 if rng.random() < 0.7 else self.number()
                units.append(([(row, 0.0 if rng.random() < 0.7 else self.number())], 1.0, 0.0))
                copies.append(start)
        if not copies:
            units.append(([(np.eye(self.width)[reads[0]], 0.0)], 1.0, 0.0))
            copies.append(len(units) - 1)
        W, b = np.zeros((self.width, len(units), size)), np.zeros((len(units), size))
        V, c = np.zeros((len(units), size, 1)), np.zeros(len(units))
        for k, (own, weight, bias) in enumerate(units):
            V[k], c[k] = weight, bias
            if rng.random() < 0.04:  # neither a cell nor a step, though it looks like one
                V[k], c[k] = (weight * 2, bias) if rng.random() < 0.5 else (weight, bias / 2)
            b[k] = -float(rng.integers(0, 2))  # of units that nothing feeds
            for u, (row, at) in enumerate(own):
                W[:, k, u], b[k, u] = row, at
        self.put(W.reshape(self.width, -1), b.ravel())
        self.put(V, c)
        self.ones, self.stairs, self.copies = ones, stairs, copies

    def cells(self, column: int) -> list[Any]:
        rng, s, made = self.rng, self.slope(), []
        unit = np.zeros(self.width)
        unit[column] = s
        count, at = int(rng.integers(1, 11)), float(rng.integers(-2, 3))
        for k in range(count):
            stop = at + float(rng.integers(1, 4)) / (2 if self.mode == "whole" else 3)
            own = []
            if k + 1 < count or rng.random() < 0.3:
                own.append((unit, -s * stop))
            if k > 0 or rng.random() < 0.3:
                own.append((-unit, s * at))
            self.edges += [at, stop, stop + 1 / s, at - 1 / s]
            made.append((own, -1.0, 1.0))
            at = stop + (2 / s if rng.random() < 0.8 else 0.5 / s)
        if rng.random() < 0.2:
            made.append(([(0 * unit, 1.0)], -1.0, 1.0))  # off everywhere
        return made

    def stairs_along(self, column: int) -> list[Any]:
        rng, s = self.rng, self.slope() * float(self.rng.choice([-1, 1]))
        unit = np.zeros(self.width)
        unit[column] = s
        made = []
        for _ in range(int(rng.integers(1, 13))):
            at = float(rng.integers(-3, 8)) / (1 if self.mode == "whole" else 3)
            self.edges += [at, at + 1 / s]
            made.append(([(unit, -s * at)], -1.0, 1.0))
        return made

    def row_stairs(self, known: np.ndarray, column: int) -> list[Any]:
        rng, s, count = self.rng, self.slope(), int(self.rng.integers(1, 10))
        thresholds = np.sort(rng.integers(-2, 9, (len(known), count)) / (1 if self.mode == "whole" else 3), axis=1)
        self.edges += (thresholds / s).ravel().tolist()[:8]
        made = []
        for g in range(count):
            row = np.zeros(self.width)
            row[known], row[column] = thresholds[:, g], -s
            made.append(([(row, 0.0)], -1.0, 1.0))
        return made

    def full(self, last: bool) -> None:
        """Columns that are sums of chosen units and copies: looked up, gated, or added."""
        rng, columns = self.rng, []
        parts = [*self.ones, *self.stairs]
        while len(columns) < (1 if last else 2):
            sort = int(rng.integers(3))
            some = [parts[int(i)] for i in rng.permutation(len(parts))[: int(rng.integers(1, 4))]]
            copied = self.copies and (not parts or rng.random() < 0.4)
            if sort == 0 and len(some) > 1 and not last:  # on where all are
                count = max(9, *(len(part) for part in some))
                columns += [(self.joined_weights(some, k, copied), 1.0 - len(some)) for k in range(count)]
            elif sort == 1 and some and not last:  # only where one of the first is: the others are behind a wall
                wall = 2.0 ** int(rng.integers(5, 40))
                for k in range(max(9, len(some[0]))):
                    w = self.weights(some, copied)
                    w[some[0]] = 0
                    w[some[0][k % len(some[0])]] = wall
                    columns.append((w, -wall + (self.number() if self.mode != "wild" else 0)))
            else:
                columns.append((self.weights(some, copied), 0.0 if rng.random() < 0.5 else self.number()))
        self.after(np.stack([w for w, _ in columns], axis=1), [b for _, b in columns])

    def weights(self, some: list[np.ndarray], copied: Any) -> np.ndarray:
        w = np.zeros(self.width)
        for part in some:
            of_one = any(part is one for one in self.ones)
            w[part] = [self.number() if of_one else float(self.rng.integers(-3, 4)) for _ in part]
        for k in self.copies if copied else []:
            w[k] = self.number()
        return w

    def joined_weights(self, some: list[np.ndarray], k: int, copied: Any) -> np.ndarray:
        w = np.zeros(self.width)
        for part in some:
            w[part[k % len(part)]] += 1
        for unit in self.copies[:1] if copied else []:
            w[unit] = -abs(self.number())
        return w

    def after(self, weight: Any, bias: Any) -> None:
        """What is known of the units of the layer before says nothing of these."""
        self.put(weight, bias)
        units = np.arange(self.width)
        self.ones, self.stairs, self.copies = [units[:9], units[9:18]][: 1 + self.width // 18], [], [0]

    def blocks(self) -> None:
        """A diagonal layer, or blocks that divide the units evenly."""
        rng = self.rng
        sizes = [k for k in range(1, self.width + 1) if self.width % k == 0]
        a = 1 if rng.random() < 0.4 else int(rng.choice(sizes))
        b = 1 if a == 1 else int(rng.choice([1, 2, 9]))
        groups = self.width // a
        W = np.array([self.number() for _ in range(groups * a * b)]).reshape(groups, a, b)
        W *= rng.random(W.shape) < (1 if a == 1 else 0.6)
        bias = [0.0 if rng.random() < 0.6 else self.number() for _ in range(groups * b)]
        if a == b == 1:
            ones, stairs, copies = self.ones, self.stairs, self.copies
            self.put(W, bias)
            self.ones, self.stairs, self.copies = ones, stairs, copies
        else:
            self.after(W, bias)


def rng_size(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 2, 2, 3]))


def stack(rng: np.random.Generator, A: Arithmetic, mode: str) -> tuple[tuple[Layer, ...], list[float], int]:
    """Layers, the edges of their cells, and how many coordinates they read."""
    c = int(rng.integers(1, 4))
    made = Maker(rng, A, mode, c)
    made.pair(rows=False)
    if rng.random() < 0.4:
        made.pair(rows=True)
    for _ in range(int(rng.integers(0, 4))):
        made.full(last=False) if rng.random() < 0.6 else made.blocks()
    made.full(last=True)
    return tuple(made.layers), made.edges, c


def points(rng: np.random.Generator, A: Arithmetic, edges: list[float], c: int, count: int) -> Ball:
    """Coordinates at edges, beside them, between them, and far away; some are known up to a radius."""
    some = np.array([*edges, 0.0, 1.0, 3.0])
    m = rng.choice(some, (count, c))
    moved = np.where(rng.random((count, 1)) < 0.6, 1, rng.integers(0, 4, m.shape))  # of most, all coordinates
    m = np.where(moved == 1, rng.uniform(-4, 9, m.shape), m)
    m = np.where(moved == 2, rng.integers(0, 12, m.shape) / 2, m)
    kind = np.float32 if A is FLOAT32 else np.float64
    with np.errstate(over="ignore"):
        m = np.clip(m, -1e30, 1e30).astype(kind)
    m = np.where(moved == 3, np.nextafter(m, rng.choice([kind(-9), kind(9)])), m).astype(np.float64)
    r = np.where(rng.random(m.shape) < 0.1, rng.choice([2.0**-30, 2.0**-8, 0.3]), 0.0)
    return Ball(m, r)


class Habit:
    """One way to evaluate: how numbers are rounded, in which order they are added, and what is flushed."""

    def __init__(self, A: Arithmetic, rng: np.random.Generator) -> None:
        self.rng, self.A = rng, A
        self.exact = A.u == 0 or rng.random() < 0.15
        self.flushes = not self.exact and rng.random() < 0.5
        self.fused, self.wide = rng.random() < 0.3, rng.random() < 0.2
        self.order = rng.choice(["random", "large first", "small first", "bias first", "bias last"])

    def round(self, x: Any) -> Any:
        if self.exact:
            return x
        if self.A is FLOAT32:
            x = float(np.float32(x))
        return self.load(x)

    def load(self, x: Any) -> Any:
        return 0.0 if self.flushes and abs(x) < self.A.tiny else x

    def sum(self, pairs: list[tuple[Any, Any]], bias: Any) -> Any:
        terms = [(self.load(a), self.load(b)) for a, b in pairs] + [(self.load(bias), 1)]
        if self.order == "random":
            terms = [terms[i] for i in self.rng.permutation(len(terms))]
        elif self.order == "bias first":
            terms = terms[::-1]
        elif self.order != "bias last":
            terms.sort(key=lambda term: abs(term[0] * term[1]), reverse=self.order == "large first")
        total = terms[0][0] * terms[0][1]
        wide = self.A is FLOAT32 and self.wide
        total = total if wide else self.round(total)
        for a, b in terms[1:]:
            product = a * b
            if not (wide or (self.fused and self.A is FLOAT32)):
                product = self.round(product)
            total = total + product if wide else self.round(total + product)
        return self.round(total)

    def run(self, layers: tuple[Layer, ...], t: list[Any]) -> list[Any]:
        x = [Fraction(v) if self.exact else v for v in t]
        for i, layer in enumerate(layers):
            if i:
                x = [max(v, 0) for v in x]
            W = layer.weight.reshape(-1, *layer.weight.shape[-2:])
            groups, a, b = W.shape
            y = []
            for g in range(groups):
                broken = not all(abs(v) < np.inf for v in x[g * a : (g + 1) * a])
                for k in range(b):
                    own = [(x[g * a + int(j)], W[g, j, k].item()) for j in np.flatnonzero(W[g, :, k])]
                    bias = layer.bias[g * b + k].item()
                    if self.exact:
                        own, bias = [(v, Fraction(w)) for v, w in own], Fraction(bias)
                    y.append(np.nan if broken else self.sum([p for p in own if p[0] != 0], bias))
            if not all(abs(v) < np.inf for v in y):  # max(NaN, 0) is not what ReLU makes of it
                y = [v if abs(v) < np.inf else np.nan for v in y]
                if any(v != v for v in y) and i + 1 < len(layers):
                    x = y
                    continue
            x = y
        return x


def inside(rng: np.random.Generator, m: float, r: float, habit: Habit) -> float:
    """A number of the format in the ball."""
    for part in (rng.choice([-1, 1]), rng.uniform(-1, 1)):
        value = m + r * float(part)
        value = float(np.float32(value)) if habit.A is FLOAT32 else value
        if abs(Fraction(value) - Fraction(m)) <= Fraction(r):
            return value
    return m
