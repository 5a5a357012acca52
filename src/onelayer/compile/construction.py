"""What is asked for, what a construction would cost, and what it made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.gadgets.stacks import Covered
from onelayer.interfaces.plan import Plan
from onelayer.ledger import Constant
from onelayer.network import Transformer
from onelayer.problems.answers import AnswerForm
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box
from onelayer.registry import Registry

Array = NDArray[Any]
#: Levels are multiplied by this when the proved bound misses the tolerance that the plan promised.
FINER = 1.15


@dataclass(frozen=True)
class Request:
    """A function, a box, and how near a model must come to it."""

    target: Target
    sides: tuple[tuple[float, float], ...]  # of the box, for each component
    tolerance: float
    dtype: np.dtype[Any]
    seed: int
    say: Callable[[str], None]

    @property
    def low(self) -> float:
        """Of all components."""
        return min(low for low, _ in self.sides)

    @property
    def high(self) -> float:
        return max(high for _, high in self.sides)

    def needs_a_cube(self, construction: str) -> None:
        """Refuse a box with sides of its own for a construction that has one lattice for all components."""
        if len(set(self.sides)) > 1:
            needs, found = "the same low and high for all components", f"the box has the sides {self.sides}"
            raise HypothesisError(construction, needs, found, "Rescale the tokens, or write it as a formula.")


@dataclass(frozen=True)
class Built:
    """Weights, where its error comes from, and what the checker is to be asked."""

    transformer: Transformer
    gadgets: tuple[Covered, ...]
    form: AnswerForm
    source: str  # of the error that the checker finds
    meaning: str
    budget: tuple[Constant, ...]  # other parts of the bound
    constants: tuple[Constant, ...]
    box: Box  # where the bound is to hold
    left_out: float
    tensors: dict[str, Array] = field(default_factory=dict)  # data of the certificate
    entries: tuple[dict[str, Any], ...] = ()  # claims, without their bounds


def at_most_float(count: int) -> float:
    """A count that may have hundreds of digits."""
    return float(min(count, 10**300))


def enough_levels(
    error: Callable[[int], float], allowed: float, reachable: Callable[[int], bool], rate: float
) -> tuple[int, float]:
    """About the fewest levels whose error is allowed, and that error, which falls like levels^-rate; or the most
    that can be reached."""
    if not reachable(1):
        return 1, np.inf

    def known_error(levels: int) -> float:
        if np.isnan(found := error(levels)):
            needs, what = "finite values on the box", "samples of the target are not"
            raise HypothesisError("target", needs, what, "Shrink or move the box.")
        return found

    too_few, levels, found = 0, 1, known_error(1)
    while found > allowed:
        wanted = int(levels * min((found / allowed) ** (1 / rate), 4.0) * 1.05)
        too_few, levels = levels, largest(reachable, levels, max(levels + 1, wanted))
        if levels == too_few:
            return levels, found
        found = known_error(levels)
    while levels - too_few > 1 + levels // 32:
        middle = (levels + too_few) // 2
        if (tried := known_error(middle)) <= allowed:
            levels, found = middle, tried
        else:
            too_few = middle
    return levels, found


def extrapolate_levels(levels: int, error: float, allowed: float, rate: float) -> int:
    """How many levels it would take, if the error went on falling at its rate; one, if not even that was tried."""
    if error <= allowed or (levels == 1 and np.isinf(error)):
        return levels
    return int(np.ceil(levels * min(error / allowed, 1e9) ** (1 / rate)))


def largest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number up to ``high`` for which something holds that holds for ``low`` and all below the first
    for which it does not."""
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class Construction(ABC):
    """How a function becomes a model. Subclass it, set ``name``, write ``plan`` and ``build``, and register it with
    `construction`."""

    name: ClassVar[str]
    #: In which options list it; what others register comes after ours.
    order: ClassVar[int] = 100
    #: "auto" plans it, too.
    automatic: ClassVar[bool] = False
    #: "auto" takes it without a comparison where it is proved: nothing else would be smaller.
    at_once: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def plan(cls, request: Request) -> Plan:
        """What it would take, without building anything; HypothesisError where it does not apply."""

    @classmethod
    def worth_comparing(cls, request: Request, others: Sequence[Plan]) -> Plan | None:  # noqa: ARG003
        """Its plan, for "auto"; None if those that were made before it are better in any case."""
        return cls.plan(request)

    @classmethod
    @abstractmethod
    def build(cls, request: Request, levels: int) -> Built:
        """The model of this many levels, and what the checker is to be asked about it."""

    @classmethod
    def finer(cls, levels: int, share: float) -> int:  # noqa: ARG003
        """Levels to try next, if rounding leaves this share of the error in real numbers, NaN if nobody
        knows; the same number if none would do."""
        return max(levels + 1, int(FINER * levels))


CONSTRUCTIONS: Registry[Construction] = Registry("construction")
construction = CONSTRUCTIONS.register
