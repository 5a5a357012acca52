"""A mapping, a readout with its own gadget, and a construction of functions, as somebody else would write them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from onelayer.compile.construction import CONSTRUCTIONS, Built, Construction, Request
from onelayer.contexts.head import ContextMap, build_head
from onelayer.contexts.mapping import ContextMapping, Wanted
from onelayer.gadgets.gadget import Gadget, number_names
from onelayer.interfaces.plan import Plan
from onelayer.network import Grouped, Linear
from onelayer.readouts.method import ReadoutMethod, Task
from onelayer.readouts.readout import Readout


class Lukewarm(ContextMapping):
    """A softmax head at a temperature of its own."""

    name = "lukewarm"

    @classmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        rng = np.random.default_rng([wanted.seed, wanted.attempt, 99])
        draw = wanted.stream.draw(wanted.rank, rng, wanted.attempt, coded=True)
        beta = 0.75 / (float(np.square(draw.keys).mean()) or 1.0)
        return build_head(draw, wanted.sequences, beta, shared=False, per_sequence=False)


@dataclass(frozen=True, eq=False)
class Stairs(Gadget):
    """first + sum_j rise_j [t is beyond start_j], steps being 1 from start_j + 1/slope_j on."""

    kind: ClassVar[str] = "stairs"
    depths: ClassVar[tuple[int, ...]] = (3,)

    slope: np.ndarray  # [K]
    bias: np.ndarray  # [K] 1 + slope * start
    rise: np.ndarray  # [K, q]
    first: np.ndarray  # [q]

    def layers(self):
        K, dtype = len(self.slope), self.slope.dtype
        steps = Grouped(np.full((K, 1, 1), -1, dtype), np.ones(K, dtype))
        return Linear(-self.slope[None], self.bias), steps, Linear(self.rise, self.first)

    def names(self):
        K = len(self.slope)
        return (
            number_names("what lacks to step", K),
            number_names("step", K),
            number_names("component", len(self.first)),
        )

    @classmethod
    def parse(cls, layers):
        units, steps, values = layers
        if not isinstance(units, Linear) or steps.weight.shape != (units.width, 1, 1) or len(units.weight) != 1:
            return None
        return cls(-units.weight[0], units.bias, values.weight, values.bias)

    @property
    def searches(self) -> bool:
        return True

    def find(self, t):
        """Sums of whole numbers are exact in any order; elsewhere, and on ramps, the layers are asked."""
        left = np.maximum(self.bias - t[:, :1] * self.slope, 0)
        steps = np.maximum(1 - left, 0)
        sure = ((steps == 0) | (steps == 1)).all(axis=1) & (self.rise == np.rint(self.rise)).all()
        heights = np.concatenate([[self.first], self.first + np.cumsum(self.rise, axis=0)])
        return heights[steps.sum(axis=1).astype(int)].astype(t.dtype), sure


class OnStairs(ReadoutMethod):
    name, only_classes = "stairs", True

    @classmethod
    def on_line(cls, t: np.ndarray, answers: np.ndarray, task: Task) -> Readout | None:
        last = np.flatnonzero((answers[1:] != answers[:-1]).any(axis=1))
        gap = t[last + 1] - t[last]
        slope = np.exp2(np.ceil(np.log2(4.0 / gap)))
        start = (t[last] + t[last + 1]) / 2 - 0.5 / slope
        values = answers[np.append(last, len(t) - 1)]
        arrays = (slope, 1.0 + slope * start, np.diff(values, axis=0), values[0])
        gadget = cls.gadget(*(a.astype(task.dtype) for a in arrays))
        return Readout((gadget,), len(values), float(gap.min(initial=np.inf)) / 4)

    gadget = Stairs


class Finer(Construction):
    """Cells twice as fine as `quantise` would make them."""

    name = "finer"

    @classmethod
    def plan(cls, request: Request) -> Plan:
        return replace(CONSTRUCTIONS["quantise"].plan(request), construction=cls.name)

    @classmethod
    def build(cls, request: Request, levels: int) -> Built:
        return CONSTRUCTIONS["quantise"].build(request, 2 * levels)
