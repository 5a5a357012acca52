"""Exact comparison of contexts: are two places the same token in the same context, and if not, why do they collide?

Used only where the ids of two places with different answers are too close, so clean data never pays for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import HypothesisError
from onelayer.problems.conflicts import in_conflict
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]


@dataclass(frozen=True)
class Place:
    """Token k of sequence i, or the whole sequence when k is None."""

    i: int
    k: int | None

    def __str__(self) -> str:
        return f"sequence {self.i}" if self.k is None else f"sequence {self.i}, token {self.k}"


@dataclass(frozen=True)
class Contexts:
    """The contexts of a data set, compared exactly (as the model's dtype sees the tokens)."""

    sequences: Sequences
    positions: bool
    dtype: np.dtype[Any]
    cache: dict[int, tuple[Hashable, Hashable]] = field(default_factory=dict, compare=False, repr=False)

    def place(self, sample: int, per_sequence: bool) -> Place:
        return Place(int(sample), None) if per_sequence else Place(*self.sequences.place(sample))

    def token(self, i: int, k: int) -> Hashable:
        value = self.sequences.tokens[i, k]
        key: Hashable = int(value) if value.ndim == 0 else (value.astype(self.dtype) + 0.0).tobytes()
        return (k, key) if self.positions else key

    def multiset(self, i: int) -> Counter[Hashable]:
        lengths = self.sequences.lengths
        return Counter(self.token(i, k) for k in range(self.sequences.n if lengths is None else int(lengths[i])))

    def key(self, place: Place, *, proportions: bool = False) -> Hashable:
        """Equal keys if and only if no permutation-equivariant model (with proportions: no softmax attention) can
        tell the places apart."""
        contexts, in_lowest_terms = self._companies(place.i)
        token = None if place.k is None else self.token(place.i, place.k)
        return (token, in_lowest_terms if proportions else contexts)

    def _companies(self, i: int) -> tuple[Hashable, Hashable]:
        if i not in self.cache:
            counts = self.multiset(i)
            self.cache[i] = frozenset(counts.items()), frozenset(_in_lowest_terms(counts).items())
        return self.cache[i]


def _in_lowest_terms(counts: Counter[Hashable]) -> dict[Hashable, int]:
    divisor = math.gcd(*counts.values())
    return {token: count // divisor for token, count in counts.items()}


def refuse_contradictions(
    contexts: Contexts, groups: Iterable[Array], rows: Array, per_sequence: bool, answer: Any
) -> tuple[Place, Place] | None:
    """Look at groups of samples whose ids nearly coincide although their answers differ.

    Raises for the first pair that no model of this kind can satisfy. Otherwise returns the first pair of really
    different contexts, which another direction or temperature may tell apart. ``answer`` renders a sample.
    """
    contradiction: tuple[int, int] | None = None
    proportional: tuple[int, int] | None = None
    collision: tuple[Place, Place] | None = None
    for group in sorted(groups, key=lambda members: int(members.min())):
        same: dict[Hashable, int] = {}
        alike: dict[Hashable, int] = {}
        for sample in sorted(int(member) for member in group):
            place = contexts.place(sample, per_sequence)
            other = same.setdefault(contexts.key(place), sample)
            if (rows[other] != rows[sample]).any() and (contradiction is None or sample < contradiction[1]):
                contradiction = (other, sample)
                break
            other = alike.setdefault(contexts.key(place, proportions=True), sample)
            if (rows[other] != rows[sample]).any() and proportional is None:
                proportional = (other, sample)
        firsts = list(same.values())
        if collision is None and len(firsts) > 1:
            different = [s for s in firsts if (rows[s] != rows[firsts[0]]).any()]
            if different:
                collision = tuple(contexts.place(s, per_sequence) for s in (firsts[0], different[0]))  # type: ignore[assignment]
    if contradiction is not None:
        raise _contradiction(contexts, *contradiction, per_sequence, answer, _all(contexts, rows, per_sequence))
    if proportional is not None:
        first, second = (contexts.place(s, per_sequence) for s in proportional)
        raise _proportional(contexts, first, second, _all(contexts, rows, per_sequence))
    return collision


@dataclass(frozen=True)
class _Conflicts:
    """How many contexts have more than one answer, and how many would if the order of tokens mattered."""

    count: int
    in_order: int

    @property
    def found(self) -> str:
        return f"{self.count:,} context{' has' if self.count == 1 else 's have'} more than one answer, the first: "

    @property
    def order(self) -> str:
        left = f"{self.in_order:,} of {self.count:,} conflicts are" if self.in_order else "no conflict is"
        return f"Pass positions=True if the order matters ({left} left then)"


#: How to go on with data that has conflicts.
CHOOSE = 'or choose which answers to keep: on_conflict="vote" (also "first" or "drop").'


def _all(contexts: Contexts, rows: Array, per_sequence: bool) -> _Conflicts:
    count, in_order = (
        len(in_conflict(contexts.sequences, rows, per_sequence, positions, contexts.dtype))
        for positions in (contexts.positions, True)
    )
    return _Conflicts(count, in_order)


def _contradiction(
    contexts: Contexts, a: int, b: int, per_sequence: bool, answer: Any, conflicts: _Conflicts
) -> HypothesisError:
    first, second = contexts.place(a, per_sequence), contexts.place(b, per_sequence)
    s = contexts.sequences
    answers = f"with answers {answer(a)} and {answer(b)}"
    same = "hold the same tokens" if per_sequence else "are the same token in the same context"
    if first.i == second.i:
        assert first.k is not None
        token = s.show(first.i, first.k)
        found = f"sequence {first.i} has tokens {first.k} and {second.k} both equal to {token} {answers}"
        remedy = f"{conflicts.order}, give equal tokens equal answers, {CHOOSE}"
    elif contexts.positions or np.array_equal(s.tokens[first.i], s.tokens[second.i]):
        found = f"{first} and {second} {same}, {answers}"
        remedy = f"Correct or drop one of the two, {CHOOSE}"
    else:
        found = f"{first} and {second} {same}, only in another order, {answers}"
        remedy = f"{conflicts.order}, give them equal answers, {CHOOSE}"
    return HypothesisError("equivariance", "equal contexts to have equal answers", conflicts.found + found, remedy)


def _proportional(contexts: Contexts, a: Place, b: Place, conflicts: _Conflicts) -> HypothesisError:
    return HypothesisError(
        "empirical_measure",
        "multisets that are not proportional",
        f"{conflicts.found}{a} and {b} have different answers, but their sequences hold the same tokens in the "
        f"same proportions ({sum(contexts.multiset(a.i).values())} and {sum(contexts.multiset(b.i).values())} "
        "tokens), and every softmax average over them is equal",
        f"{conflicts.order}, give them equal answers, {CHOOSE}",
    )
