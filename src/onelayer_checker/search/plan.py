"""From layers to a plan of a search: which units are cells or staircases, and what follows from their choices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball
from onelayer_checker.core.layers import Layer, Stack
from onelayer_checker.search.builder import FIRST, NONE, Builder, NotSearched
from onelayer_checker.search.cells import Cells, families, staircases
from onelayer_checker.search.operations import Add, Decide, DecideInRow, Evaluate, Gate, Operation, Pick
from onelayer_checker.search.parts import Dense, Known, Part, Token
from onelayer_checker.search.steps import RowSteps, Steps

#: More families in a layer are not looked for one by one.
MOST_FAMILIES = 4096
#: Weights of a block-diagonal layer that is looked at as a full one.
MOST_SPREAD = 1 << 14


@dataclass(frozen=True, eq=False)
class Plan:
    operations: list[Operation]
    output: int
    widest: int

    @staticmethod
    def of(layers: tuple[Layer, ...], A: Arithmetic, positive: bool = False) -> Plan | None:
        """``positive``: no input is negative."""
        builder = Planner(A)
        try:
            output = builder.build(folded(layers) if positive else layers)
        except NotSearched:
            return None
        found = any(isinstance(operation, Decide) for operation in builder.operations)
        return Plan(builder.operations, output, builder.widest) if found else None

    def effort(self, A: Arithmetic) -> float:
        """Operations that one row takes, about; what it leaves open takes a few more."""
        total = 1000.0
        for operation in self.operations:
            if isinstance(operation, Evaluate):
                few = 0.2 if operation.layer.whole < np.inf else 1.0  # whole numbers, most often
                total += few * Stack((operation.layer,)).effort(A)
            elif isinstance(operation, Add | Gate):
                sums = operation.sums
                total += 10.0 * len(sums.bias) * (1 + len(sums.weight) + len(sums.rows))
            total += 60.0
        return total

    def run(self, x: Ball, A: Arithmetic) -> tuple[Ball, Array]:
        """The output for rows of x, and which rows are not certain.

        Theorem: proofs/Answers.v stored_answer_exact, stored_answers_exact.
        """
        token = Token(unknown=np.zeros(len(x.m), bool))
        token.choices[NONE] = np.zeros(len(x.m), np.intp)
        token.put(FIRST, x)
        for operation in self.operations:
            operation.run(token, A)
        return token.balls[self.output], token.unknown


def folded(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Without copies of coordinates that are not negative: what reads a copy, block by block, reads the coordinate.

    A copy is 1 times a number, the only term of its sum: that number, or 0 where it is subnormal and flushed, which
    whoever reads it may do as well.
    """
    if len(layers) < 2 or layers[0].weight.ndim != 2 or layers[1].weight.ndim != 3:
        return layers
    copy, units = layers[0].weight, layers[1].weight
    one_each = ((copy == 0) | (copy == 1)).all() and (np.count_nonzero(copy, axis=0) <= 1).all()
    if units.shape[1] != 1 or layers[0].bias.any() or not one_each:
        return layers
    weight = (copy[:, :, None] * units[:, 0]).reshape(len(copy), -1)
    return (Layer(weight, layers[1].bias), *layers[2:])


def spread(layer: Layer) -> Layer:
    """A block-diagonal layer of few and small blocks as a full one: what a block does not read has weight zero."""
    if layer.weight.ndim == 2 or len(layer.weight) * layer.weight.size > MOST_SPREAD:
        return layer
    groups, inputs, outputs = layer.weight.shape
    weight = np.zeros((groups, inputs, groups, outputs))
    weight[np.arange(groups), :, np.arange(groups)] = layer.weight
    return Layer(weight.reshape(groups * inputs, groups * outputs), layer.bias)


class Planner(Builder):
    """A builder that recognises cells and staircases."""

    def build(self, layers: tuple[Layer, ...]) -> int:
        parts: list[Part] = [Dense(np.arange(layers[0].inputs), FIRST)]
        i = 0
        while i < len(layers):
            found = self.pair(parts, layers[i], layers[i + 1], layers[i + 2]) if i + 2 < len(layers) else None
            if found is None:
                parts, i = self.merged(self.through(parts, layers[i], i + 1 == len(layers))), i + 1
            else:
                parts, i = self.merged(found), i + 2
        whole = self.merged(parts, every=True)[-1]
        if not isinstance(whole, Dense):
            raise NotSearched
        order = np.argsort(whole.units)
        if (order[1:] > order[:-1]).all():
            return whole.slot
        output = self.name()
        self.operations.append(Pick(whole.slot, order, output))
        return output

    def pair(self, parts: list[Part], units: Layer, groups: Layer, following: Layer) -> list[Part] | None:
        """Two layers of which some groups are cells or steps; None if none are."""
        units = spread(units)
        dense = [part for part in parts if isinstance(part, Dense)]
        if units.weight.ndim != 2 or groups.weight.ndim != 3 or groups.weight.shape[2] != 1 or len(dense) != 1:
            return None
        K, size, _ = groups.weight.shape
        W, b = units.weight.reshape(-1, K, size), units.bias.reshape(K, size)
        plain = (groups.weight == -1).all(axis=(1, 2)) & (groups.bias == 1)
        apart = following.weight.ndim == 3 and following.weight.shape[1] > 1
        block = np.arange(K) // (following.weight.shape[1] if apart else K)
        own, rest = W[dense[0].units], np.ones(len(W), bool)
        rest[dense[0].units] = False
        fixed = plain & (W[rest] == 0).all(axis=(0, 2))
        out: list[Part] = []
        left = np.ones(K, bool)
        for order, steps in staircases(own, b, fixed, block):
            out.append(Known(order, self.decide(steps, dense[0].slot), "upto"))
            left[order] = False
        for start, cells in families(own, b, fixed & left, block)[0]:
            members = np.arange(start, start + len(cells.on_low))
            out.append(Known(members, self.decide(cells, dense[0].slot), "one"))
            left[members] = False
        for members, known in self.in_rows(parts, dense[0], W, b, plain & left, block):
            out.append(known)
            left[members] = False
        if not out or len(out) > MOST_FAMILIES:
            return None
        others = np.flatnonzero(left)
        if others.size:
            at = (others[:, None] * size + np.arange(size)).ravel()
            inner = self.merged(self.full(parts, np.ascontiguousarray(units.weight[:, at]), units.bias[at], False))
            carried = self.through(inner, Layer(groups.weight[others], groups.bias[others]), False)
            out += [replace(part, units=others[part.units]) for part in carried]
        return out

    def decide(self, family: Cells | Steps, slot: int) -> int:
        by = self.name()
        self.operations.append(Decide(family, slot, by))
        return by

    def in_rows(
        self, parts: list[Part], dense: Dense, W: Array, b: Array, plain: Array, block: Array
    ) -> list[tuple[Array, Known]]:
        """Staircases along one coordinate whose thresholds are rows that a choice names."""
        found: list[tuple[Array, Known]] = []
        if W.shape[2] != 1:
            return found
        free = plain.copy()  # a step that reads no row fits them all
        for part in parts:
            if not isinstance(part, Known) or part.kind != "one":
                continue
            rest = np.ones(len(W), bool)
            rest[dense.units], rest[part.units] = False, False
            own, table = W[dense.units, :, 0], np.pad(W[part.units, :, 0], ((0, 1), (0, 0)))
            at = np.abs(own).argmax(axis=0)
            slope = own[at, np.arange(own.shape[1])]
            fits = free & (b[:, 0] == 0) & (W[rest, :, 0] == 0).all(axis=0) & (np.count_nonzero(own, axis=0) == 1)
            fits &= (slope < 0) & (np.frexp(-slope)[0] == 0.5) & (np.abs(slope) > 2.0**-100) & (slope > -(2.0**100))
            new = np.ones(len(fits), bool)  # where a staircase begins
            new[1:] = ~fits[:-1] | (at[1:] != at[:-1]) | (slope[1:] != slope[:-1]) | (block[1:] != block[:-1])
            new[1:] |= (table[:, 1:] < table[:, :-1]).any(axis=0)
            for i in np.flatnonzero(fits & new).tolist():
                j = i + 1
                while j < len(fits) and fits[j] and not new[j]:
                    j += 1
                free[i:j], by = False, self.name()
                steps = RowSteps.of(int(at[i]), -float(slope[i]), np.ascontiguousarray(table[:, i:j]))
                self.operations.append(DecideInRow(steps, part.by, dense.slot, by))
                found.append((np.arange(i, j), Known(np.arange(i, j), by, "upto")))
        return found
