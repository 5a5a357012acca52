"""A mapping is one class in one file, registered by a decorator: `auto`, the options and the tests find it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onelayer.contexts.head import ContextMap
from onelayer.contexts.stream import Stream
from onelayer.network.formats import Format
from onelayer.problems.sequences import Sequences
from onelayer.registry import Registry

#: Candidates that are tried before a mapping of some rank is given up.
MAX_ATTEMPTS = 12
#: Small data can afford to look for a wide margin: about this many attention rows are spent on it.
ROWS_FOR_MARGIN = 1 << 17


@dataclass(frozen=True)
class Wanted:
    """The attempt-th candidate of a mapping: the same request gives the same candidate."""

    sequences: Sequences
    stream: Stream
    rank: int
    seed: int
    attempt: int
    per_sequence: bool = False  # one context for all tokens of a sequence
    tabular: bool = False  # most likely read off by a table
    format: Format | None = None  # of 16 bits, in which all is to be exact
    rejects: bool = False  # unknown inputs are to be told from stored ones


class ContextMapping(ABC):
    """How contexts are told apart. Subclass it, set ``name``, write ``construct``, register it with `mapping`."""

    name: ClassVar[str]
    #: In which options list it; what others register comes after ours.
    order: ClassVar[int] = 100
    #: All tokens of a sequence get one context, where there is one answer per sequence.
    shares: ClassVar[bool] = False
    #: Coordinates are whole numbers, or multiples of one fraction: equal contexts have equal ones, to the bit.
    on_lattice: ClassVar[bool] = False
    #: The only head size there is, if there is one.
    only_rank: ClassVar[int | None] = None
    #: Another attempt is another draw, and one that comes nowhere near is not followed by better ones.
    redraws: ClassVar[bool] = True
    #: It is there to say why it cannot be built: no float holds its constants.
    only_refuses: ClassVar[bool] = False
    #: "auto" tries it, after those that the library has an order for.
    automatic: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def construct(cls, wanted: Wanted) -> ContextMap:
        """A candidate, or HypothesisError where the mapping does not apply."""

    @classmethod  # noqa: B027
    def refuse(cls, sequences: Sequences, dtype: np.dtype[Any]) -> None:
        """Raise HypothesisError if no candidate can exist, before any work."""

    @classmethod
    def attempts(cls, sequences: Sequences, answers: int, dtype: np.dtype[Any]) -> tuple[int, int]:  # noqa: ARG003
        """How many candidates to look at even if the first is safe, and how many at most."""
        wanted = int(np.clip(ROWS_FOR_MARGIN // (sequences.N * sequences.n), 1, 32))
        return wanted, max(MAX_ATTEMPTS, wanted)


MAPPINGS: Registry[ContextMapping] = Registry("mapping")
mapping = MAPPINGS.register
