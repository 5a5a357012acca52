"""Exact comparison of contexts: are two places the same token in the same company, and if not, why do they collide?

Used only where the ids of two places with different answers are too close, so clean data never pays for it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.data.sequences import Sequences
from onelayer.errors import HypothesisError

Array = NDArray[Any]

#: Different contexts of one crowded spot that are compared with each other.
MOST_COMPARED = 64


@dataclass(frozen=True)
class Place:
    """Token k of sequence i, or the whole sequence when k is None."""

    i: int
    k: int | None

    def __str__(self) -> str:
        return f"sequence {self.i}" if self.k is None else f"sequence {self.i}, token {self.k}"


@dataclass(frozen=True)
class Company:
    """The contexts of a data set, compared exactly (as the model's dtype sees the tokens)."""

    sequences: Sequences
    positions: bool
    dtype: np.dtype[Any]

    def place(self, sample: int, per_sequence: bool) -> Place:
        return Place(int(sample), None) if per_sequence else Place(*self.sequences.place(sample))

    def token(self, i: int, k: int) -> Hashable:
        value = self.sequences.tokens[i, k]
        key: Hashable = int(value) if value.ndim == 0 else (value.astype(self.dtype) + 0.0).tobytes()
        return (k, key) if self.positions else key

    def multiset(self, i: int) -> Counter[Hashable]:
        lengths = self.sequences.lengths
        return Counter(self.token(i, k) for k in range(self.sequences.n if lengths is None else int(lengths[i])))

    def key(self, place: Place) -> Hashable:
        """Equal keys if and only if no permutation-equivariant model can tell the places apart."""
        company = frozenset(self.multiset(place.i).items())
        return (None if place.k is None else self.token(place.i, place.k), company)

    def proportional(self, a: Place, b: Place) -> bool:
        """Same token, and multisets with the same proportions: no softmax can tell them apart."""
        if (a.k is None) != (b.k is None):
            return False
        if a.k is not None and b.k is not None and self.token(a.i, a.k) != self.token(b.i, b.k):
            return False
        first, second = self.multiset(a.i), self.multiset(b.i)
        return _in_lowest_terms(first) == _in_lowest_terms(second)

    def is_zero(self, place: Place) -> bool:
        return (
            place.k is not None
            and self.sequences.is_real
            and not self.positions
            and not self.sequences.tokens[place.i, place.k].any()
        )


def _in_lowest_terms(counts: Counter[Hashable]) -> dict[Hashable, int]:
    divisor = math.gcd(*counts.values())
    return {token: count // divisor for token, count in counts.items()}


def refuse_contradictions(
    company: Company, groups: Iterable[Array], rows: Array, per_sequence: bool, answer: Any
) -> tuple[Place, Place] | None:
    """Look at groups of samples whose ids nearly coincide although their answers differ.

    Raises for the first pair that no model of this kind can satisfy. Otherwise returns the first pair of really
    different contexts, which another direction or temperature may tell apart. ``answer`` renders a sample.
    """
    worst: tuple[int, int] | None = None
    collision: tuple[Place, Place] | None = None
    for group in sorted(groups, key=lambda members: int(members.min())):
        first: dict[Hashable, int] = {}
        members = sorted(int(sample) for sample in group)
        for sample in members:
            other = first.setdefault(company.key(company.place(sample, per_sequence)), sample)
            if (rows[other] != rows[sample]).any() and (worst is None or sample < worst[1]):
                worst = (other, sample)
        if worst is None and collision is None:
            collision = _first_collision(company, list(first.values())[:MOST_COMPARED], rows, per_sequence)
    if worst is not None:
        raise _contradiction(company, *worst, per_sequence, answer)
    return collision


def _first_collision(
    company: Company, samples: list[int], rows: Array, per_sequence: bool
) -> tuple[Place, Place] | None:
    """The first pair of different contexts with different answers; raises if no softmax tells them apart."""
    found: tuple[Place, Place] | None = None
    for x, y in itertools.combinations(samples, 2):
        if (rows[x] == rows[y]).all():
            continue
        pair = company.place(x, per_sequence), company.place(y, per_sequence)
        if company.proportional(*pair):
            raise _proportional(company, *pair)
        found = found or pair
    return found


def _contradiction(company: Company, a: int, b: int, per_sequence: bool, answer: Any) -> HypothesisError:
    first, second = company.place(a, per_sequence), company.place(b, per_sequence)
    s = company.sequences
    answers = f"with answers {answer(a)} and {answer(b)}"
    if first.i == second.i:
        assert first.k is not None
        token = s.show(first.i, first.k)
        found = f"sequence {first.i} has tokens {first.k} and {second.k} both equal to {token} {answers}"
        remedy = "Pass positions=True if the order matters, or give equal tokens equal answers."
    elif company.positions or np.array_equal(s.tokens[first.i], s.tokens[second.i]):
        found = f"{first} and {second} are the same in the same company, {answers}"
        remedy = "Correct or drop one of the two."
    else:
        found = f"{first} and {second} are the same in the same company, only in another order, {answers}"
        remedy = "Pass positions=True if the order matters, or give them equal answers."
    return HypothesisError("equivariance", "equal contexts to have equal answers", found, remedy)


def _proportional(company: Company, a: Place, b: Place) -> HypothesisError:
    return HypothesisError(
        "empirical_measure",
        "multisets that are not proportional",
        f"{a} and {b} have different answers, but their sequences hold the same tokens in the same proportions "
        f"({sum(company.multiset(a.i).values())} and {sum(company.multiset(b.i).values())} tokens), and every "
        "softmax average over them is equal",
        "Pass positions=True, or give them equal answers.",
    )
