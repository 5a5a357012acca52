"""The graph `one-layer/1` over Arb balls, in real arithmetic, written apart from the kernel.

`flint` is handed in, since only `arb_engine` imports it. Everything linear between a token and its coordinates is
multiplied out first, which is the same real number. Matrices have a border, [[weight, 0], [bias, 1]], so that
biases, positions and the mass of the softmax are parts of products.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arb = Any  # python-flint has no types
Flint = Any

CROWD = 4096  # groups of a readout evaluated for one token; where more may be on, the value is unknown


def outward(x: Arb) -> tuple[float, float]:
    """The nearest float64 bounds of a ball, whichever way `float` rounds."""
    if not x.is_finite():
        return -math.inf, math.inf
    lower, upper = x.lower(), x.upper()
    low, high = float(lower), float(upper)
    while lower < low:
        low = math.nextafter(low, -math.inf)
    while upper > high:
        high = math.nextafter(high, math.inf)
    return low, high


def matrix(flint: Flint, a: Array) -> Arb:
    return flint.arb_mat(*a.shape, a.ravel().tolist())


def border(weight: Array, bias: Array | None = None) -> Array:
    """[x, 1] times this is [x W + b, 1]."""
    out = np.pad(weight, ((0, 1), (0, 1)))
    out[-1, -1] = 1.0
    if bias is not None:
        out[-1, :-1] = bias
    return out


class Trapezoids:
    """Groups relu(1 - sum of relu(w.t + b)) times rows of values; all but a few groups are 0 at any one place.

    A unit that reads the first coordinate alone, and is at least 1, switches its group off. With running maxima of
    the places where that begins, a search finds all groups that may be on; no order of the groups is assumed.
    """

    def __init__(self, units: Array, bias: Array, groups: int, values: Array, offset: Array) -> None:
        self.weight = np.ascontiguousarray(units.T).reshape(groups, -1, len(units))  # [groups, units, c]
        self.bias, self.values, self.offset = bias.reshape(groups, -1), values, offset.tolist()
        slope = np.where(self.weight[:, :, 1:].any(axis=2), 0.0, self.weight[:, :, 0])
        with np.errstate(all="ignore"):
            edge = (1 - self.bias) / slope  # rounded twice, which takes up a quarter of the slack
            slack = np.abs(edge) * 2.0**-50 + 2.0**-1000
            known = np.isfinite(edge)
            right = np.where(known & (slope > 0), edge + slack, np.inf).min(axis=1)
            left = np.where(known & (slope < 0), edge - slack, -np.inf).max(axis=1)
        self.right = array("d", np.maximum.accumulate(right))  # searched faster than a list of objects
        self.left = array("d", np.minimum.accumulate(left[::-1])[::-1])

    def __call__(self, flint: Flint, t: list[Arb]) -> list[Arb]:
        low, high = outward(t[0])
        first, stop = bisect_right(self.right, low), bisect_left(self.left, high)
        if stop - first > CROWD:
            return [flint.arb.nan()] * len(self.offset)
        out = [flint.arb(b) for b in self.offset]
        for j in range(first, stop):
            rest = flint.arb(1)
            for weights, unit in zip(self.weight[j].tolist(), self.bias[j].tolist(), strict=True):
                for x, w in zip(t, weights, strict=True):
                    if w:
                        unit = x * w + unit
                if not unit <= 0:  # certainly
                    rest -= flint.arb(unit).nonnegative_part()
            on = rest.nonnegative_part()
            if not on.is_zero():
                out = [y + on * v for y, v in zip(out, self.values[j].tolist(), strict=True)]
        return out


class Stack:
    """Layers with ReLU between them, the last three as trapezoids if that is what they are."""

    def __init__(self, tensors: dict[str, Array], name: str, start: int) -> None:
        layers: list[tuple[Array, Array]] = []
        while (at := f"{name}.{start + len(layers)}") + ".weight" in tensors:
            layers.append((tensors[f"{at}.weight"], tensors[f"{at}.bias"]))
        self.tail: Trapezoids | None = None
        if len(layers) >= 3:
            (units, bias), (group, one), (values, offset) = layers[-3:]
            fits = units.ndim == 2 and values.ndim == 2 and group.ndim == 3 and group.shape[2] == 1
            if fits and (group == -1).all() and (one == 1).all():
                self.tail, layers = Trapezoids(units, bias, len(group), values, offset), layers[:-3]
        self.layers = layers
        self.work = sum(W.size * (len(W) if W.ndim == 3 else 1) for W, _ in layers)  # blocks are filled up
        self._matrices: list[Arb] = []

    def __call__(self, flint: Flint, x: list[Arb]) -> list[Arb]:
        for i, (W, b) in enumerate(self.layers):
            if i == len(self._matrices):
                full = W if W.ndim == 2 else np.einsum("gab,gh->gahb", W, np.eye(len(W))).reshape(-1, b.size)
                self._matrices.append(matrix(flint, border(full, b)[:, :-1]))
            x = (flint.arb_mat(1, len(x) + 1, [*x, 1]) * self._matrices[i]).entries()
            if i + 1 < len(self.layers) or self.tail is not None:
                x = [y.nonnegative_part() for y in x]
        return x if self.tail is None else self.tail(flint, x)


class Graph:
    """From tokens to coordinates, and from coordinates to answers, at the precision that is set when it is made."""

    def __init__(self, flint: Flint, tensors: dict[str, Array]) -> None:
        T = {name: a[0] if name.startswith("attention.") else a for name, a in tensors.items()}
        self.flint, self.readout, self.feedforward = flint, Stack(T, "readout", 1), Stack(T, "feedforward", 0)
        self.fed = "feedforward.0.weight" in T
        table, lift, bias = (T.get(f"embedding.{name}") for name in ("table", "lift", "bias"))
        self.table = None if table is None else np.pad(table, ((0, 0), (0, 1)), constant_values=1.0)
        if lift is None and table is not None and bias is not None:
            lift = np.eye(table.shape[1])
        V, O, first = T["attention.W_V"], T["attention.W_O"], T["readout.0.weight"]
        self.reads = [
            matrix(flint, border(T["attention.W_Q"], T.get("attention.b_Q"))[:, :-1]),
            matrix(flint, border(T["attention.W_K"], T.get("attention.b_K"))[:, :-1]),
            # Here the border stays: a column of ones, whose sum is the mass.
            matrix(flint, border(V)) * matrix(flint, border(O)) * matrix(flint, border(first)),
            matrix(flint, border(first, T["readout.0.bias"])[:, :-1]),
        ]
        self.embed = [] if lift is None else [matrix(flint, border(lift, bias))]
        positions = T.get("embedding.positions")
        self.places = [] if positions is None else [matrix(flint, np.pad(positions, ((0, 0), (0, 1))))]
        if not self.fed:
            self.embed = [E * R for E in self.embed for R in self.reads] or self.reads
            self.places = [P * R for P in self.places for R in self.reads]

    def coordinates(self, x: list[Any], n: int, rows: list[int]) -> list[list[Arb]]:
        """t of some tokens of one sequence, whose n bordered tokens x holds one after the other."""
        arb_mat = self.flint.arb_mat
        X = arb_mat(n, len(x) // n, x)
        read = [X * E for E in self.embed] or [X]
        if self.places:
            top = [arb_mat(n, P.ncols(), P.entries()[: n * P.ncols()]) for P in self.places]
            read = [Y + P for Y, P in zip(read, top, strict=True)]
        if self.fed:
            fed = [y for row in read[0].tolist() for y in (*self.feedforward(self.flint, row[:-1]), 1)]
            X = arb_mat(n, len(fed) // n, fed)
            read = [X * R for R in self.reads]
        q, k, v, own = read
        if len(rows) < n:
            table = q.tolist()
            q = arb_mat([table[row] for row in rows])
        logits = q * k.transpose()
        sums = (arb_mat(len(rows), n, [s.exp() for s in logits.entries()]) * v).tolist()
        for i, row in enumerate(sums):
            if not (row[-1] > 0 and row[-1].is_finite()):
                sums[i] = [*(arb_mat(1, n, self._softmax(logits.tolist()[i])) * v).entries()[:-1], 1]
        table = own.tolist()
        return [
            [(a + b / mass).nonnegative_part() for a, b in zip(table[row], averaged, strict=True)]
            for row, (*averaged, mass) in zip(rows, sums, strict=True)
        ]

    def _softmax(self, logits: list[Arb]) -> list[Arb]:
        """1 / (1 + sum of e^(s' - s)) from the ends of every exponent, for logits that are huge or hardly known."""
        one, weights = self.flint.arb(1), []
        for j, s in enumerate(logits):
            others = [other - s for i, other in enumerate(logits) if i != j]
            lows, highs = [x.lower() for x in others], [x.upper() for x in others]
            least, most = (sum((x.exp() for x in ends), one) for ends in (lows, highs))
            weights.append((1 / least).union(1 / most if most.is_finite() else one * 0))
        return weights

    def samples(self, tokens: Array, lengths: Array, keep: Array, radius: float) -> Iterator[list[Arb]]:
        """t of the tokens marked in ``keep`` [N, n], every component of a token known up to ``radius``."""
        ones = np.ones((tokens.shape[1], 1))  # float64, which also makes float64 of what it stands beside
        for row, n, wanted in zip(tokens, lengths.tolist(), keep, strict=True):
            x = np.concatenate([row[:n], ones[:n]], axis=1) if self.table is None else self.table[row[:n]]
            flat = x.ravel().tolist()
            if radius:
                flat = [self.flint.arb(a, radius) for a in flat]
                flat[x.shape[1] - 1 :: x.shape[1]] = [1] * n
            yield from self.coordinates(flat, n, np.flatnonzero(wanted).tolist())

    def error(self, t: list[Arb], answer: list[float]) -> tuple[float, float]:
        """Bounds of the largest difference between a component of the answer and what the network says."""
        low = high = 0.0
        for y, a in zip(self.readout(self.flint, t), answer, strict=True):
            error = abs(y - a)
            if not error.is_zero():  # it is, as a rule
                ends = outward(error)
                low, high = max(low, ends[0]), max(high, ends[1])
        return low, high
