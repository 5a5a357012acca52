"""What follows from the choices of a token, layer by layer: tables, sums, gates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from onelayer_checker.core.balls import Arithmetic, Array, Ball, exact, relu
from onelayer_checker.core.layers import Layer
from onelayer_checker.search.operations import Add, Collect, Evaluate, Gate, Operation, Pick
from onelayer_checker.search.parts import Dense, Few, Known, Part, added
from onelayer_checker.search.sums import Sums

#: More blocks of a block-diagonal layer are not looked at one by one.
MOST_BLOCKS = 64
#: So few units of a table with so many rows are looked up for every token.
FEW_UNITS, LONG = 16, 256
#: Units that pay to be looked for one by one; and so many that do not, if none is ever off.
LEAST_GATED, MOST_OPEN = 8, 64
#: The choice that is 0 for every token, and the slot of the coordinates.
NONE, FIRST = 0, 0


class NotSearched(Exception):
    """The layers are of another kind; they are evaluated."""


@dataclass(eq=False)
class Builder:
    A: Arithmetic
    operations: list[Operation] = field(default_factory=list)
    names: int = 1  # choices and slots that have a name
    widest: int = 64

    def name(self) -> int:
        self.names += 1
        return self.names - 1

    def merged(self, parts: list[Part], every: bool = False) -> list[Part]:
        """All units with balls in one part, and with them those few that are looked up in a long table, or all."""
        found: list[Known | Dense] = []
        rest: list[Part] = []
        for part in parts:
            short = (
                isinstance(part, Known)
                and part.table is not None
                and (every or (len(part.units) <= FEW_UNITS and len(part.table.m) > LONG))
            )
            (found if isinstance(part, Dense) or short else rest).append(part)  # type: ignore[arg-type]
        if not found or (len(found) == 1 and isinstance(found[0], Dense)):
            return [*rest, *found]
        into = self.name()
        self.operations.append(Collect(found, into))
        return [*rest, Dense(np.concatenate([part.units for part in found]), into)]

    def through(self, parts: list[Part], layer: Layer, last: bool) -> list[Part]:
        """The parts after one more layer."""
        W, b = layer.weight, layer.bias
        if W.ndim == 2:
            return self.full(parts, W, b, last)
        groups, inputs, outputs = W.shape
        if inputs == outputs == 1:
            return self.scaled(parts, W, b, last)
        if len(parts) == 1 and isinstance(parts[0], Dense):
            units = parts[0].units
            each = len(units) // groups
            if np.array_equal(units // inputs, np.repeat(np.arange(groups), each)):  # as many of every block
                W = np.take_along_axis(W, (units % inputs).reshape(groups, each, 1), axis=1)
                into = self.name()
                self.operations.append(Evaluate(Layer(W, b), parts[0].slot, into, last))
                return [Dense(np.arange(len(b)), into)]
        if groups > MOST_BLOCKS:
            raise NotSearched
        out: list[Part] = []
        for k in range(groups):
            inside = [self.within(part, k * inputs, (k + 1) * inputs) for part in parts]
            found = self.full([p for p in inside if p is not None], W[k], b[k * outputs : (k + 1) * outputs], last)
            out += [replace(part, units=part.units + k * outputs) for part in found]
        return out

    def within(self, part: Part, start: int, stop: int) -> Part | None:
        """The part inside a block, its units counted from the block's first. The others meet weight zero there.

        Theorem: proofs/Layers.v zeros_left_out.
        """
        inside = (part.units >= start) & (part.units < stop)
        if not inside.any():
            return None
        if inside.all():
            return replace(part, units=part.units - start)
        if isinstance(part, Known) and part.table is not None:
            return replace(part, units=part.units[inside] - start, table=part.table[:, inside])
        if not isinstance(part, Dense):
            raise NotSearched
        into = self.name()
        self.operations.append(Pick(part.slot, np.flatnonzero(inside), into))
        return Dense(part.units[inside] - start, into)

    def scaled(self, parts: list[Part], W: Array, b: Array, last: bool) -> list[Part]:
        """A diagonal layer."""
        out: list[Part] = []
        left = np.ones(len(b), bool)
        for part in parts:
            layer = Layer(W[part.units], b[part.units])
            left[part.units] = False
            if isinstance(part, Dense):
                into = self.name()
                self.operations.append(Evaluate(layer, part.slot, into, last))
                out.append(Dense(part.units, into))
            elif isinstance(part, Known):
                out.append(replace(part, kind="table", table=self.after(layer.apply(tabled(part), self.A), last)))
            else:
                raise NotSearched
        return [*out, *self.constants(left, b, last)]

    def full(self, parts: list[Part], W: Array, b: Array, last: bool) -> list[Part]:
        """A full layer: sums that one part feeds, and sums that several do.

        Theorem: proofs/Layers.v zeros_left_out.
        """
        fed = np.array([(W[part.units] != 0).any(axis=0) for part in parts]).reshape(len(parts), len(b))
        out = self.constants(np.asarray(~fed.any(axis=0)), b, last)
        several = fed.sum(axis=0) > 1
        for part, feeds in zip(parts, fed, strict=True):
            alone = feeds & ~several
            if not alone.any():
                continue
            columns = np.flatnonzero(alone)
            table = self.tabulated(part, W[:, columns], b[columns]) if isinstance(part, Known) else None
            if table is not None:
                assert isinstance(part, Known)
                out.append(Known(columns, part.by, "table", self.after(table, last)))
            elif isinstance(part, Dense):
                into = self.name()
                layer = Layer(np.ascontiguousarray(W[np.ix_(part.units, columns)]), b[columns])
                self.operations.append(Evaluate(layer, part.slot, into, last))
                out.append(Dense(columns, into))
            else:
                out.append(self.several([part], W, b, columns, last))
        for pattern in np.unique(fed[:, several], axis=1, return_index=True)[0].T:
            columns = np.flatnonzero(several & (fed == pattern[:, None]).all(axis=0))
            feeding = [part for part, feeds in zip(parts, pattern, strict=True) if feeds]
            out.append(self.several(feeding, W, b, columns, last))
        return out

    def constants(self, units: Array, b: Array, last: bool) -> list[Part]:
        """Units that nothing feeds: their bias, but that a subnormal one may be flushed.

        Theorem: proofs/Layers.v zeros_left_out.
        """
        at = np.flatnonzero(units & ((b > 0) | last))
        if not at.size:
            return []
        value = Layer(np.zeros((1, len(at))), b[at]).apply(exact(np.zeros((1, 1))), self.A)
        return [Known(at, NONE, "table", self.after(value, last))]

    def after(self, value: Ball, last: bool) -> Ball:
        """A table after a layer. Where it might overflow, units that do not read it are not known, either."""
        if not np.isfinite(value.r).all():
            raise NotSearched
        return value if last else relu(value)

    def tabulated(self, part: Known, W: Array, b: Array) -> Ball | None:
        """The sums for every row of the part's table."""
        if part.kind == "table":
            assert part.table is not None
            return Layer(np.ascontiguousarray(W[part.units]), b).apply(part.table, self.A)
        rows = part.rows(W)
        if rows is None:
            return None
        nothing = exact(np.zeros((len(rows.value), 0)))
        found = added([(rows.value, rows.size, rows.single)], nothing, np.zeros((0, len(b))), b, self.A)
        return found if np.isfinite(found.r).all() else None

    def several(self, parts: list[Part], W: Array, b: Array, columns: Array, last: bool) -> Part:
        """Sums that several parts feed: gated, or evaluated."""
        weights, into = np.ascontiguousarray(W[:, columns]), self.name()
        known = [part for part in parts if isinstance(part, Known)]
        dense = [part for part in parts if isinstance(part, Dense)]
        few = [(part.slot, weights[part.units]) for part in parts if isinstance(part, Few)]
        rows = [part.rows(weights) for part in known]
        if len(dense) > 1 or any(r is None for r in rows):
            raise NotSearched
        slot = dense[0].slot if dense else None
        own = weights[dense[0].units] if dense else np.zeros((0, len(columns)))
        sums = Sums.of([r for r in rows if r is not None], slot, own, b[columns], [W for _, W in few])
        by = self.pivots(sums) if not (few or last) and len(columns) >= LEAST_GATED else []
        if by:
            self.operations.append(Gate(sums, by, into))
            return Few(columns, into)
        self.widest = max(self.widest, len(columns) * (1 + len(own)))
        self.operations.append(Add(sums, few, into, last))
        return Dense(columns, into)

    def pivots(self, sums: Sums) -> list[int]:
        """Choices that leave few sums above 0 where all others choose a cell, as far as is known without balls.

        Few sums that are never below 0 are evaluated: no choice closes one.
        """
        least = sums.bias + sum((r.value.min(axis=0) for r in sums.rows), np.zeros(1))
        if sums.slot is None and len(least) <= MOST_OPEN and (least >= 0).all():
            return []
        best: tuple[int, list[int]] = (len(sums.bias) // 2, [])
        for pivot in sums.rows:
            others = (r.value[: -1 if r.single else None] for r in sums.rows if r is not pivot)
            top = sums.bias + sum((value.max(axis=0) for value in others), np.zeros(1))
            live = int(((pivot.value + top) >= 0).sum(axis=1).max())
            best = min(best, (live, [pivot.by]))
        if best[1] or len(sums.rows) < 2:
            return best[1]
        by_size = sorted(sums.rows, key=lambda r: len(r.value))
        by = {r.by: len(r.value) for r in (by_size[:-1] if len(by_size) > 2 else by_size)}
        return list(by) if prod(by.values()) < 1 << 62 else []  # choices together are one whole number


def tabled(part: Known) -> Ball:
    """The table written out; of choices among few."""
    if part.table is not None:
        return part.table
    K = len(part.units)
    if K > 1 << 11:
        raise NotSearched
    return exact(np.eye(K + 1, K) if part.kind == "one" else np.tri(K + 1, K, -1))
