"""Stacks of layers: where two layers compute one-hots of cells, a search per token replaces the dense product.

Group j of such a pair is relu(1 - sum_u relu(w_u t_i(u) + b_u)) with w zero or plus or minus a power of two. Let t
range over a ball, in any arithmetic of the specification:
 - w t is exact and rounding is monotone: if all pre-activations are <= 0 as real numbers, the group is exactly 1;
 - if one of them is >= 1 as a real number, the computed sum is >= 1 in any order, and the group is exactly 0;
 - if of a family of groups one is 1 and the others are 0, its product with the next layer is one row of weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onelayer_checker.core.balls import TINY, UP, Arithmetic, Array, Ball, U, exact, gamma, guarded, joined, relu
from onelayer_checker.core.exactness import exact_product, exact_rows, sums_fit
from onelayer_checker.core.graph import Network
from onelayer_checker.core.layers import Layer, Stack, run_stack
from onelayer_checker.search.cells import Cells, families

#: A pair of layers with more families, or more groups of another kind, is evaluated densely.
MOST = 16
#: Samples on which the search is compared with the dense evaluation.
DENSE_SAMPLES = 4


@dataclass(frozen=True)
class Hots:
    """Two layers whose groups are families of cells, one of which is on, and a few others that are evaluated."""

    families: list[tuple[int, Cells]]  # the first group of each, and its cells
    others: Array  # the remaining groups
    units: Layer  # theirs
    groups: Layer

    def into(self, following: Layer, x: Ball, A: Arithmetic) -> Ball:
        """The next layer's value; a token whose cell is not certain gets an infinite ball."""
        W = following.weight.reshape(-1, *following.weight.shape[-2:])
        blocks, size, width = W.shape
        chosen = [(start, cells.decide(x, A)) for start, cells in self.families]
        rest = relu(self.groups.apply(relu(self.units.apply(x, A)), A)) if self.others.size else None
        parts = []
        for k in range(blocks):
            rows = [W[k, np.maximum(j, 0) + start % size] for start, j in chosen if start // size == k]
            rows.append(following.bias.reshape(blocks, 1, width)[k])
            inside = np.flatnonzero(self.others // size == k)
            balls = [] if rest is None else [(rest[:, [o]], W[k, self.others[o] % size]) for o in inside]
            easy = not balls and sums_fit(len(rows) * following.whole, A)  # all partial sums are whole numbers
            parts.append(exact(sum(rows[1:], rows[0])) if easy else _sum(len(x.m), rows, balls, A))
        out = joined(parts)
        out.r[np.any([j < 0 for _, j in chosen], axis=0)] = np.inf
        return out


def _sum(T: int, rows: list[Array], balls: list[tuple[Ball, Array]], A: Arithmetic) -> Ball:
    """Encloses the sum, in any order, of rows of exact numbers and of products of balls [T, 1] with weights."""
    m, S, R = (np.zeros((T, rows[0].shape[1])) for _ in range(3))
    others, reach = [], 0.0
    for row in rows:
        m += row
        S += np.abs(row)
    for ball, weight in balls:
        term = ball.m * weight
        rows = [*rows, term]
        others.append(~(exact_product(ball, weight, A) | (weight == 0) & (ball.r < np.inf)))
        m += term
        S += np.abs(term)
        R += ball.r * np.abs(weight)
        reach = max(reach, float((np.abs(ball.m) + ball.r).max()) + float(np.abs(weight).max()))
    k = 2 * len(rows) + 2
    lost = 4 * k * (A.tiny + TINY) * (2 + reach)
    r = (R + gamma(k, U) * S + gamma(k, A.u) * (S + R)) * UP + lost
    r = np.where(exact_rows(rows, others, A), 0.0, r)
    return Ball(m, guarded(r, 2 * (S + R), A))


@dataclass(frozen=True)
class Searched(Stack):
    """A stack some pairs of whose layers are one-hots of cells."""

    hots: dict[int, Hots]

    @staticmethod
    def of(stack: Stack) -> Stack:
        layers = stack.layers
        found = {i: recognise(*layers[i : i + 3]) for i in range(len(layers) - 2)}
        hots = {i: hots for i, hots in found.items() if hots is not None}
        return Searched(layers, hots) if hots else stack

    def apply(self, x: Ball, A: Arithmetic) -> Ball:
        i = 0
        while i < len(self.layers):
            if i in self.hots:
                x, i = self.hots[i].into(self.layers[i + 2], x, A), i + 3
            else:
                x, i = self.layers[i].apply(x, A), i + 1
            if i < len(self.layers):
                x = relu(x)
        return x

    def disagrees(self, x: Ball, A: Arithmetic) -> Array:
        """The dense evaluation is the definition: on a few samples it must contain what the search found."""
        few = np.unique(np.linspace(0, len(x.m) - 1, DENSE_SAMPLES).astype(int))
        found, dense = self.apply(x[few], A), run_stack(self.layers, x[few], A)
        outside = np.isfinite(found.r) & (np.abs(found.m - dense.m) > (found.r + dense.r) * UP)
        return np.asarray(few[outside.any(axis=1)])

    @property
    def widest(self) -> int:
        searched = {i + k for i in self.hots for k in (0, 1)}
        return max((layer.bias.size for i, layer in enumerate(self.layers) if i not in searched), default=1)


def accelerate(network: Network) -> Network:
    """The same network, whose stacks are searched where they can be."""
    return replace(network, feedforward=Searched.of(network.feedforward), readout=Searched.of(network.readout))


def recognise(units: Layer, group: Layer, following: Layer) -> Hots | None:
    """Two layers that make up cells; None if they are of another kind."""
    if units.weight.ndim != 2 or group.weight.ndim != 3 or group.weight.shape[2] != 1:
        return None
    K, size, _ = group.weight.shape
    W, b = units.weight.reshape(-1, K, size), units.bias.reshape(K, size)
    plain = (group.weight == -1).all(axis=(1, 2)) & (group.bias == 1)
    found = families(W, b, plain, np.arange(K) // following.weight.shape[-2])
    if found is None:
        return None
    listed, others = found
    if not 1 <= len(listed) <= MOST or len(others) > MOST:
        return None
    own = Layer(np.ascontiguousarray(W[:, others]).reshape(len(W), -1), b[others].ravel())
    return Hots(listed, others, own, Layer(group.weight[others], group.bias[others]))
