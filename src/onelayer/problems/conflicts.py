"""Contexts that are given more than one answer: which they are, and what is kept of them if a person says so.

A context is a token in its company: with positions its place in the sequence; without, the shares of all tokens,
which is what softmax attention can see. For one answer per sequence, it is the company alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, OptionError
from onelayer.ledger import Constant
from onelayer.problems.answers import Answers
from onelayer.problems.scopes import Scope, answer_places, at_answers, in_places
from onelayer.problems.sequences import Sequences

Array = NDArray[Any]
OnConflict = Literal["refuse", "first", "vote", "drop"]

#: Conflicts that the ledger lists; a file can hold all.
LISTED = 100
#: Places of one conflict that a line of the ledger names.
NAMED = 3


@dataclass(frozen=True)
class Conflict:
    """One context with several answers: where it is met, what is answered there, and what is kept."""

    token: str | None  # as it is shown to a person; None where the whole sequence is answered
    places: tuple[tuple[int, int | None], ...]  # sequence and token, in order
    answers: tuple[Any, ...]  # one for each place
    kept: tuple[Any, ...]  # the one answer, or none where the sequences are dropped

    def to_json(self) -> dict[str, Any]:
        places = [[i] if k is None else [i, k] for i, k in self.places]
        return {"token": self.token, "places": places, "answers": list(self.answers), "kept": list(self.kept)}

    def line(self, number: int) -> Constant:
        """A line of the ledger."""
        counts: dict[str, int] = {}
        for answer in self.answers:
            counts[repr(answer)] = counts.get(repr(answer), 0) + 1
        tally = ", ".join(f"{answer} x {count}" for answer, count in counts.items())
        named = [f"sequence {i}" + ("" if k is None else f", token {k}") for i, k in self.places[:NAMED]]
        more = len(self.places) - len(named)
        where = " and ".join(named) + (f" and {more:,} more" if more else "")
        kept = "dropped" if self.kept is None else f"kept {self.kept!r}"
        return Constant(
            f"conflict_{number}", tally, f"{'' if self.token is None else self.token + ': '}{where}; {kept}"
        )


@dataclass(frozen=True)
class Settled:
    """Data without conflicts, and those that were in it."""

    sequences: Sequences
    answers: Answers
    how: OnConflict
    conflicts: tuple[Conflict, ...] = ()
    changed: int = 0  # answers that are not those given, or that were dropped

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Lines of the ledger; none where there was no conflict."""
        if not self.conflicts:
            return ()
        one = self.changed == 1
        lost = "dropped with its sequence" if one else "dropped with their sequences"
        contexts = "context" if len(self.conflicts) == 1 else "contexts"
        summary = f'{contexts} with more than one answer, settled by on_conflict="{self.how}": '
        summary += f"{self.changed:,} answer{'' if one else 's'} {lost if self.how == 'drop' else 'changed'}"
        if len(self.conflicts) > LISTED:
            summary += f"; the first {LISTED} follow"
        listed = (conflict.line(number) for number, conflict in enumerate(self.conflicts[:LISTED], 1))
        return (Constant("conflicts", len(self.conflicts), summary), *listed)

    def lines(self) -> Iterator[str]:
        """All conflicts as JSON lines."""
        for conflict in self.conflicts:
            yield json.dumps(conflict.to_json(), ensure_ascii=False, default=str) + "\n"


def settle(
    sequences: Sequences, answers: Answers, how: OnConflict, positions: bool = False, dtype: Any = None
) -> Settled:
    """Keep of each conflict the first answer, or the most frequent (of equally frequent ones the first), or drop
    every sequence that has a part in one. Tokens are compared as ``dtype`` holds them; by default as they are."""
    if how not in get_args(OnConflict):
        needs = f"on_conflict among {', '.join(get_args(OnConflict))}"
        raise OptionError("memorize", needs, f"on_conflict={how!r}", "Choose one of them.")
    if how == "refuse":  # found where contexts meet, so that clean data does not pay for it
        return Settled(sequences, answers, how)
    per_sequence = answers.form.scope != "token"
    number = np.dtype(np.float64 if dtype is None else dtype)
    groups = in_conflict(sequences, answers.rows, per_sequence, positions, number)
    if not groups:
        return Settled(sequences, answers, how)
    rows, kept = answers.rows.copy(), np.array([_choose_row(answers.rows[group], how) for group in groups])
    for group, at in zip(groups, kept, strict=True):
        rows[group] = answers.rows[group[at]]
    conflicts = tuple(
        _conflict(sequences, answers, group, () if how == "drop" else (_answer_as_given(answers, group[at]),))
        for group, at in zip(groups, kept, strict=True)
    )
    if how == "drop":
        return _without(sequences, answers, groups, conflicts)
    changed = int((rows != answers.rows).any(axis=1).sum())
    return Settled(sequences, replace(answers, rows=rows), how, conflicts, changed)


def in_conflict(
    sequences: Sequences, rows: Array, per_sequence: bool, positions: bool, dtype: np.dtype[Any]
) -> list[Array]:
    """Groups of rows that share a context and not an answer, in the order of their first rows."""
    ids = _token_numbers(sequences, dtype)
    company = _companies(ids, sequences.lengths, positions)
    group = company
    if not per_sequence:
        i, k = answer_places("token", np.arange(len(rows)), sequences.n, sequences.lengths)
        within = k if positions else ids[i, k]
        group = company[i] * (int(within.max()) + 1) + within
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    mixed = np.unique(group[(rows != rows[first][group]).any(axis=1)])
    members = np.flatnonzero(np.isin(group, mixed))
    members = members[np.argsort(group[members], kind="stable")]
    parts = np.split(members, np.flatnonzero(np.diff(group[members])) + 1) if len(members) else []
    return sorted(parts, key=lambda part: int(part[0]))


def _token_numbers(sequences: Sequences, dtype: np.dtype[Any]) -> Array:
    """[N, n]: equal numbers for equal tokens."""
    if sequences.vocabulary is not None:
        return np.asarray(sequences.tokens, np.int64)
    N, n, d = sequences.tokens.shape
    flat = np.ascontiguousarray(sequences.tokens.reshape(N * n, d).astype(dtype) + 0.0)  # no negative zero
    _, numbers = np.unique(flat.view(f"V{flat.itemsize * d}").reshape(-1), return_inverse=True)
    return np.asarray(numbers.reshape(N, n), np.int64)


def _companies(ids: Array, lengths: Array | None, positions: bool) -> Array:
    """[N]: equal numbers for sequences that attention sees alike."""
    ordered = ids if positions else np.sort(ids, axis=1)
    seen: dict[bytes, int] = {}
    if lengths is None:
        return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in ordered])
    keys = (row[:length] for row, length in zip(ids, lengths.tolist(), strict=True))
    if positions:
        return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in keys])
    return np.array([seen.setdefault(_shares(row), len(seen)) for row in keys])


def _shares(row: Array) -> bytes:
    """The tokens of a sequence and their counts in lowest terms."""
    tokens, counts = np.unique(row, return_counts=True)
    return np.concatenate([tokens, counts // np.gcd.reduce(counts)]).tobytes()


def _choose_row(rows: Array, how: OnConflict) -> int:
    """Which of these rows is kept."""
    if how != "vote":
        return 0
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return int(first[counts == counts.max()].min())


def _answer_as_given(answers: Answers, at: int) -> Any:
    """An answer as it was given."""
    row, form = answers.rows[at].tolist(), answers.form
    if form.classes is not None:
        return form.classes[int(row[0])]
    return row[0] if form.components is None else tuple(row)


def _conflict(sequences: Sequences, answers: Answers, group: Array, kept: tuple[Any, ...]) -> Conflict:
    given = tuple(_answer_as_given(answers, int(t)) for t in group)
    if answers.form.scope != "token":
        return Conflict(None, tuple((int(t), None) for t in group), given, kept)
    i, k = answer_places("token", group, sequences.n, sequences.lengths)
    places = tuple(zip(i.tolist(), k.tolist(), strict=True))
    return Conflict(sequences.show(*places[0]), places, given, kept)


def _without(
    sequences: Sequences, answers: Answers, groups: list[Array], conflicts: tuple[Conflict, ...]
) -> Settled:
    """The data without the sequences of these groups."""
    lengths, dropped = sequences.lengths, np.zeros(sequences.N, bool)
    scope: Scope = "token" if answers.form.scope == "token" else "sequence"
    dropped[answer_places(scope, np.concatenate(groups), sequences.n, lengths)[0]] = True
    if dropped.all():
        raise DataError(
            "data",
            "a sequence that has no part in a conflict",
            f"{len(conflicts):,} contexts have more than one answer, and every sequence has one of them",
            'Use on_conflict="vote" or "first", or positions=True if the order matters.',
        )
    owner = answer_places(scope, np.arange(len(answers.rows)), sequences.n, lengths)[0]
    kept = _of_sequences(sequences, ~dropped)
    rows, form = answers.rows[~dropped[owner]], answers.form
    if form.classes is not None:
        used, codes = np.unique(rows, return_inverse=True)
        rows = codes.reshape(-1, 1).astype(np.float64)
        form = replace(form, classes=tuple(form.classes[int(c)] for c in used))
    return Settled(kept, Answers(rows, form), "drop", conflicts, len(answers.rows) - len(rows))


def _of_sequences(sequences: Sequences, kept: Array) -> Sequences:
    """Some of the sequences, with a vocabulary, or bounds, of their own."""
    tokens, lengths = sequences.tokens[kept], None if sequences.lengths is None else sequences.lengths[kept]
    if lengths is not None and (lengths == sequences.n).all():
        lengths = None
    if sequences.vocabulary is None:
        low, high = (bound(tokens, axis=(0, 1)).astype(np.float64) for bound in (np.min, np.max))
        return Sequences(tokens, lengths, None, low, high)
    used, ids = np.unique(at_answers(tokens, "token", lengths), return_inverse=True)
    words = tuple(sequences.vocabulary[int(word)] for word in used)
    return Sequences(in_places(ids.reshape(-1), len(tokens), sequences.n, lengths), lengths, words)
