"""An adversary for radius 0: whatever the specification allows must give one and the same number.

Cases are drawn around the edges on purpose: subnormal weights, operands and biases, powers of two at both ends of
the range, whole numbers around 1/u, exact and signed zeros. Every evaluation is in exact rationals: each operation
is rounded to nearest in the format, in a wider one, in both or not at all, ties either way; subnormal numbers are
flushed as operands or results, or not; sums are bracketed and ordered in any way, their products fused or not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

INFINITE = Fraction(2) ** 5000
#: Bits of a number, exponents of the smallest normal one and of the first that is too large.
BITS = {"real": (53, -1022, 1024), "float32": (24, -126, 128), "float64": (53, -1022, 1024)}
ROUNDS, EVALUATIONS = 300, 8


@dataclass
class Machine:
    """One machine that the specification allows; its mood is drawn again for every evaluation."""

    name: str
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.bits, self.least, self.most = BITS[self.name]
        self.tiny, self.exact = Fraction(2) ** self.least, self.name == "real"
        self.wide = self.bits + int(self.rng.choice([11, 29, 60]))
        self.flush, self.keep, self.wider = (self.rng.choice([0.0, 0.5, 1.0], 3) * (not self.exact)).tolist()

    def nearest(self, x: Fraction, bits: int) -> Fraction:
        """Rounded to this many bits, gradually below the normal range, ties to either side."""
        if x == 0 or self.exact:
            return x
        size = abs(x)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent -= size < Fraction(2) ** exponent
        unit = Fraction(2) ** (max(exponent, self.least) - bits + 1)
        below, rest = divmod(size, unit)
        up = 2 * rest > unit or (2 * rest == unit and self.rng.random() < 0.5)
        rounded = (below + up) * unit
        return (INFINITE if rounded >= Fraction(2) ** self.most else rounded) * (1 if x > 0 else -1)

    def load(self, x: Fraction) -> Fraction:
        """A number as it is read."""
        return Fraction(0) if 0 < abs(x) < self.tiny and self.rng.random() < self.flush else x

    def result(self, x: Fraction) -> Fraction:
        """What an operation with the exact result x gives."""
        if self.exact or x == 0:
            return x
        if abs(x) < self.tiny and self.rng.random() < self.flush:
            return Fraction(0)
        if self.rng.random() < self.keep:
            return x
        if self.rng.random() < self.wider:
            x = self.nearest(x, self.wide)
            return x if self.rng.random() < 0.5 else self.nearest(x, self.bits)
        return self.nearest(x, self.bits)

    def final(self, x: Fraction) -> Fraction:
        """A stored result: a number of the format."""
        x = self.nearest(x, self.bits)
        return Fraction(0) if 0 < abs(x) < self.tiny and self.rng.random() < self.flush else x

    def sum(self, pairs: list[tuple[Fraction, Fraction]], alone: list[Fraction]) -> Fraction:
        """Products of pairs, and numbers that stand alone, in some order; products with zeros may be left out."""
        leaves: list[tuple[Fraction, bool]] = [(self.load(x), False) for x in alone]
        for a, b in pairs:
            x = self.load(a) * self.load(b)
            leaves += [(x, True)] if x or self.rng.random() < 0.5 else []
        way = self.rng.integers(3)
        order = self.rng.permutation(len(leaves)).tolist()
        if way == 1:
            order.sort(key=lambda i: -abs(leaves[i][0]))
        nodes = [leaves[i] for i in order]
        while len(nodes) > 1:
            i = 0 if way < 2 else int(self.rng.integers(len(nodes) - 1))
            fused = self.rng.random() < 0.5
            (a, first_raw), (b, second_raw) = nodes[i : i + 2]
            a = self.result(a) if first_raw and not fused else a
            b = self.result(b) if second_raw else b
            if INFINITE in (abs(a), abs(b)):
                return INFINITE
            nodes[i : i + 2] = [(self.result(a + b), False)]
        value, raw = nodes[0] if nodes else (Fraction(0), False)
        return self.final(self.result(value) if raw else value)


class Edges:
    """Draws numbers of a format, most of them where something might go wrong."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.rng, self.name = rng, name
        self.bits, self.least, self.most = BITS[name]

    def power(self) -> float:
        """A power of two: near one, or at either end of the range, subnormal ones included."""
        i, ends = int(self.rng.integers(4)), ((-6, 6), (-4, 5), (-8, -1), (self.least // 2, self.most // 2))
        return float(2.0 ** int((self.least, 0, self.most, 0)[i] + self.rng.integers(*ends[i])))

    def whole(self) -> float:
        """A small whole number, or one that is a part of about 1/u."""
        if self.rng.random() < 0.4:
            return float(self.rng.integers(1, 9))
        return float(2**self.bits // int(self.rng.integers(1, 5)) + int(self.rng.integers(-2, 3)))

    def number(self, kind: str) -> float:
        if kind == "mixed":
            kind = str(self.rng.choice(["power", "whole", "long", "zero"]))
        if kind == "zero":
            x = 0.0
        elif kind == "power":
            x = self.power()
        elif kind == "whole":
            x = self.whole()
        elif kind == "one":
            x = 1.0
        else:
            x = (1 + int(self.rng.integers(1, 2 ** (self.bits - 1))) * 2.0 ** (1 - self.bits)) * self.power()
        if self.name == "float32":
            with np.errstate(over="ignore"):
                x = float(np.float32(x))
        x = x if np.isfinite(x) else 1.0
        return x * float(self.rng.choice([-1, 1]))

    def array(self, *shape: int, sparse: float = 0.0, kind: str | None = None) -> np.ndarray:
        kind = kind or str(self.rng.choice(["power", "whole", "long", "mixed", "one"]))
        numbers = np.array([self.number(kind) for _ in range(int(np.prod(shape)))]).reshape(shape)
        return np.where(self.rng.random(shape) < sparse, numbers * 0.0, numbers)  # zeros keep their sign


class Seen:
    """Cases of radius 0 that each function had."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.name, self.rng, self.zero, self.all = name, rng, Counter(), Counter()

    def same(self, function: str, is_exact: bool, value: float, pairs, alone) -> None:
        """If it is said to be exact, every machine gives this number, and it is zero or normal."""
        self.all[function] += 1
        if not is_exact:
            return
        self.zero[function] += 1
        pairs = [(Fraction(float(a)), Fraction(float(b))) for a, b in pairs]
        alone = [Fraction(float(a)) for a in alone]
        for _ in range(1 if self.name == "real" else EVALUATIONS):
            found = Machine(self.name, self.rng).sum(pairs, alone)
            assert found == Fraction(float(value)), (function, self.name, float(found), value, pairs, alone)
        if self.name != "real":
            assert value == 0 or abs(value) >= 2.0 ** BITS[self.name][1], (function, value)


def drawn(rng, edges: Edges, n: int):
    """x [2, n], W [n, 2] and a bias [1, 2]; columns that may be exact are frequent."""
    style = int(rng.integers(5))
    if style == 0:  # one term, a power of two on either side
        W, x = edges.array(n, 2, sparse=0.7, kind="power"), edges.array(2, n, sparse=0.3)
        x, W = (x, W) if rng.random() < 0.7 else (W.T.copy(), x.T.copy())
        b = edges.array(1, 2, sparse=0.8)
    elif style == 1:  # whole numbers
        x, W = edges.array(2, n, sparse=0.4, kind="whole"), edges.array(n, 2, sparse=0.4, kind="one")
        x, W = (x, W) if rng.random() < 0.5 else (W.T.copy(), x.T.copy())
        b = edges.array(1, 2, sparse=0.5, kind="whole")
    elif style == 2:  # a one-hot, and a row of weights
        x, W = np.zeros((2, n)), edges.array(n, 2)
        x[range(2), rng.integers(0, n, 2)] = rng.choice([1.0, edges.power(), edges.number("mixed")])
        b = edges.array(1, 2, sparse=0.7)
    elif style == 3:  # a bias alone
        x, W, b = edges.array(2, n, sparse=rng.choice([0, 1])), edges.array(n, 2, sparse=0.9), edges.array(1, 2)
    else:
        x, W, b = (edges.array(*shape, sparse=0.3, kind="mixed") for shape in ((2, n), (n, 2), (1, 2)))
    return x, W, b


def check_maps(m, name: str) -> Counter:
    """linear, with a bias or a stream; exact_products, whole_products; and a layer, which uses all of them."""
    rng = np.random.default_rng([25, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Seen(name, rng)
    for _ in range(ROUNDS):
        n = int(rng.choice([1, 2, 3, 12]))
        x, W, b = drawn(rng, edges, n)
        radius = np.abs(x) * 2.0**-10 * (rng.random(x.shape) < 0.2) * rng.integers(0, 2)
        ball = m.balls.Ball(x, radius)
        stream = m.balls.Ball(np.broadcast_to(b, (2, 2)).copy(), np.zeros((2, 2)))
        with np.errstate(all="ignore"):
            found = {
                "linear": m.balls.linear(ball, W, b, A),
                "linear, a stream": m.balls.linear(ball, W, stream, A),
            }
            y = found["linear"]
            exactly = m.exactness.exact_products(ball, W, b, A) & np.isfinite(y.r)
            found["exact_products"] = m.balls.Ball(y.m, np.where(exactly, 0.0, 1.0))
            if all((np.rint(a) == a).all() for a in (W, b)):
                whole = m.exactness.whole_products(ball, W, b, A)
                found |= {} if whole is None else {"whole_products": whole}
            found["Layer.apply"] = m.layers.Layer(W, b.ravel()).apply(ball, A)
        for i, j in np.ndindex(2, 2):
            moved = x[i] + radius[i] * rng.choice([-1, 0, 1], n)
            for function, y in found.items():
                seen.same(function, y.r[i, j] == 0, y.m[i, j], zip(moved, W[:, j], strict=True), [b[0, j]])
    return seen.zero


def check_sums(m, name: str) -> Counter:
    """add, add_numbers, sums of chosen rows, and relu."""
    rng = np.random.default_rng([22, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Seen(name, rng)
    for _ in range(4 * ROUNDS):
        x, y = (edges.array(1, 1, sparse=0.3, kind=kind) for kind in rng.choice(["whole", "mixed", "power"], 2))
        with np.errstate(all="ignore"):
            total = m.balls.add(m.balls.exact(x), m.balls.exact(y), A)
            numbers = m.exactness.add_numbers(m.balls.exact(x), y, A)
            alone = [float(x[0, 0]), float(y[0, 0])]
            seen.same("add", total.r[0, 0] == 0, total.m[0, 0], [], alone)
            seen.same("add_numbers", numbers.r[0, 0] == 0, numbers.m[0, 0], [], alone)
            rows = [
                edges.array(1, 1, sparse=0.4, kind=str(rng.choice(["whole", "power", "mixed"]))) for _ in range(3)
            ]
            nothing, none = m.balls.exact(np.zeros((1, 0))), np.zeros((0, 1))
            chosen = m.parts.added([(row, np.abs(row), True) for row in rows[:2]], nothing, none, rows[2][0], A)
            seen.same("added rows", chosen.r[0, 0] == 0, chosen.m[0, 0], [], [float(row[0, 0]) for row in rows])
            many = m.parts.added([(rows[0], np.abs(rows[0]) + 1, False)], nothing, none, rows[2][0], A)
            if rows[0] != np.rint(rows[0]):  # a row of many terms is exact only among whole numbers
                assert many.r[0, 0] > 0
            normal = np.where(np.abs(x) >= 4 * (A.tiny + 2.0**-1022), x, 0.0)  # as an exact result is
            radius = np.abs(normal) * rng.choice([0.0, 0.5, 1.0, 1.5])
            positive = m.balls.relu(m.balls.Ball(normal, radius))
            for t in (-1, 0, 1):
                at = Fraction(float(normal[0, 0])) + t * Fraction(float(radius[0, 0]))
                is_exact = positive.r[0, 0] == 0
                seen.same("relu", bool(is_exact), float(positive.m[0, 0]), [], [max(at, Fraction(0))])
    return seen.zero


def check_products(m, name: str) -> Counter:
    """Products with carried numbers, dot, softmax and around."""
    rng = np.random.default_rng([23, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Seen(name, rng)
    for _ in range(4 * ROUNDS):
        kinds = rng.choice(["power", "whole", "mixed"], 2)
        x, w = edges.array(1, 1, sparse=0.1, kind=kinds[0]), edges.array(1, sparse=0.1, kind=kinds[1])
        with np.errstate(all="ignore"):
            carried = m.parts.added([], m.balls.exact(x), w[None], np.zeros(1), A)
            seen.same("added products", carried.r[0, 0] == 0, carried.m[0, 0], [(x[0, 0], w[0])], [])
            unknown = m.balls.Ball(x, np.abs(x) * 2.0**-20 + 2.0**-1000)
            assert w[0] == 0 or m.parts.added([], unknown, w[None], np.zeros(1), A).r[0, 0] > 0
            k = int(rng.integers(1, 4))
            p, v = edges.array(1, k, sparse=0.6), edges.array(k, 1, sparse=0.6)
            spread = [np.abs(a) * 2.0**-10 * rng.integers(0, 2) for a in (p, v)]
            averaged = m.balls.dot(m.balls.Ball(p, spread[0]), m.balls.Ball(v, spread[1]), A, extra=4)
            moved = [a + s * rng.choice([-1, 1], a.shape) for a, s in zip((p, v), spread, strict=True)]
            pairs = list(zip(moved[0][0], moved[1][:, 0], strict=True))
            seen.same("dot", averaged.r[0, 0] == 0, averaged.m[0, 0], pairs, [])
            visible = rng.random((1, k + 1)) < 0.5
            visible[0, 0] = True
            weights = m.balls.softmax(m.balls.exact(np.minimum(np.abs(edges.array(1, k + 1)), 100.0)), visible, A)
            for i in range(k + 1):  # what is not seen has weight exactly 0, and what is seen is never exact
                is_exact = bool(weights.r[0, i] == 0)
                assert is_exact != visible[0, i]
                seen.same("softmax", is_exact, float(weights.m[0, i]), [], [])
            size = float(rng.choice([0.0, edges.power()]))
            near = m.balls.around(x, size, A)
            assert (near.r[0, 0] == 0) == (size == 0)
            normal = bool(abs(x[0, 0]) >= 2.0 ** BITS[name][1] or x[0, 0] == 0)  # who reads it looks for the others
            seen.same("around", near.r[0, 0] == 0 and normal, float(near.m[0, 0]), [], [x[0, 0]])
    return seen.zero


def check_sizes(m, name: str) -> Counter:
    """sums_fit: of whole numbers whose sizes are added here, in any order."""
    rng = np.random.default_rng([24, len(name)])
    A, edges, seen = m.balls.ARITHMETICS[name], Edges(name, rng), Seen(name, rng)
    for _ in range(4 * ROUNDS):
        terms = [edges.whole() * float(rng.choice([-1, 1])) for _ in range(int(rng.integers(2, 5)))]
        fits = bool(m.exactness.sums_fit(np.sum(np.abs(terms)), A))
        seen.same("sums_fit", fits, float(np.sum(terms)), [], terms)
        signed = bool(m.exactness.sums_fit(np.sum(np.abs(terms)), A, np.sum(terms)))
        seen.same("sums_fit, signed", signed, float(np.sum(terms)), [], terms)
        count, largest = int(rng.integers(2, 9)), 2.0 ** BITS[name][0]
        largest = float(int(largest) // count + int(rng.integers(-1, 3)))
        seen.same(
            "sums_fit", bool(m.exactness.sums_fit(count * largest, A)), count * largest, [], [largest] * count
        )
    return seen.zero


CHECKS = (check_maps, check_sums, check_products, check_sizes)
