"""A readout is one class in one file, registered by a decorator: `auto`, the options and the tests find it."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onelayer.network.formats import Format
from onelayer.readouts.readout import Readout
from onelayer.registry import Registry

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """Answers [T, q] to be read off coordinates that the model computes up to ``radius``; ours are up to
    ``exact_radius`` off the real numbers they stand for."""

    rows: Array
    dtype: np.dtype[Any]
    radius: float
    exact_radius: float
    readout: str  # the name of one, or "auto"
    default: Array | None  # [q] what an unknown input gets
    seed: int
    false_hits: float | None = None  # the share of unknown inputs that may not get it, if a person chose
    once: bool = False  # what is drawn at random is drawn once
    format: Format | None = None  # of 16 bits, in which all is to be exact


class ReadoutMethod(ABC):
    """How answers are read off coordinates t >= 0. Subclass it, set ``name``, write at least one of ``on_line``
    (one coordinate), ``on_lattice`` (several, whole numbers) and ``in_boxes`` (several reals), and register it with
    `readout`. Each gives a readout whose ``guard`` exceeds the task's radius, None where it finds none, or raises
    HypothesisError."""

    name: ClassVar[str]
    #: In which options list it; what others register comes after ours.
    order: ClassVar[int] = 100
    #: It tells stored inputs from others, so there can be a default.
    knows_stored: ClassVar[bool] = False
    #: It keeps as much of an input as a chosen share of false hits takes.
    chooses_false_hits: ClassVar[bool] = False
    #: Answers must be classes.
    only_classes: ClassVar[bool] = False
    #: Its answers are sums that are rounded: what comes back is measured.
    interpolates: ClassVar[bool] = False
    #: On a lattice it finds nothing, and soon, if coordinates are met again: they need not be looked for before.
    refuses_equals: ClassVar[bool] = False
    #: "auto" compares it with others.
    automatic: ClassVar[bool] = True
    #: Coordinates that it needs on a lattice.
    least_coordinates: ClassVar[int] = 1
    why: ClassVar[str] = ""  # it is chosen, where nobody asked for it

    @classmethod
    def on_line(cls, t: Array, answers: Array, task: Task) -> Readout | None:
        """Sorted coordinates [T], some of them met again, and their answers [T, q]."""
        raise NotImplementedError

    @classmethod
    def on_lattice(cls, keys: Array, values: Array, task: Task) -> Readout | None:
        """Distinct coordinates [M, c] and their answers [M, q]."""
        raise NotImplementedError

    @classmethod
    def in_boxes(cls, T: Array, answers: Array, half_width: float, task: Task) -> Readout | None:
        """Distinct coordinates [M, s], sorted along the first, that are further apart than four half widths."""
        raise NotImplementedError

    @classmethod
    def expected_parameters(cls, keys: Array, values: Array, task: Task) -> float:  # noqa: ARG003
        """A forecast on a lattice, by which "auto" compares readouts before one is built."""
        return np.inf

    @classmethod
    def reads(cls, what: str) -> bool:
        """Whether it can read "on_line", "on_lattice" or "in_boxes"."""
        return bool(getattr(cls, what).__func__ is not getattr(ReadoutMethod, what).__func__)


READOUTS: Registry[ReadoutMethod] = Registry("readout")
readout = READOUTS.register


def names_of(what: str) -> list[str]:
    """The readouts that can read so."""
    return [name for name, method in READOUTS.items() if method.reads(what)]
