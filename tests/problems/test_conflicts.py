"""Contexts with several answers: found exactly as a slow search finds them, and settled as a person chose."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer import DataError, HypothesisError, OptionError, memorize, plan
from onelayer.problems.answers import read_answers
from onelayer.problems.conflicts import in_conflict, settle
from onelayer.problems.sequences import read_sequences

SENTENCES = [["a", "b"], ["b", "a"], ["a", "b"], ["c", "d"], ["a", "b"]]
LABELS = [["x", "y"], ["y", "x"], ["z", "y"], ["x", "x"], ["z", "y"]]


@st.composite
def small_data(draw):
    """Few tokens and answers, so that contexts often meet; equal and different lengths, words and reals."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    if draw(st.booleans()):
        lengths = [lengths[0]] * len(lengths)
    words = [[draw(st.integers(0, 1)) for _ in range(length)] for length in lengths]
    answers = [[draw(st.integers(0, 2)) for _ in range(length)] for length in lengths]
    return words, answers, draw(st.booleans()), draw(st.booleans())


def by_hand(words, positions):
    """What no softmax attention tells apart, place by place."""
    for i, sequence in enumerate(words):
        shares = {token: Fraction(count, len(sequence)) for token, count in Counter(sequence).items()}
        company = tuple(sequence) if positions else frozenset(shares.items())
        for k, token in enumerate(sequence):
            yield (i, k), (k if positions else token, company)


@given(small_data())
def test_groups_are_those_of_a_slow_search(data) -> None:
    words, answers, positions, real = data
    X = [[[0.5 - token] for token in row] for row in words] if real else [[f"w{t}" for t in row] for row in words]
    sequences = read_sequences(X)
    rows = read_answers(answers, sequences, "token").rows
    found = in_conflict(sequences, rows, False, positions, np.dtype(np.float64))
    flat = {place: t for t, (place, _) in enumerate(by_hand(words, positions))}
    members: dict = {}
    for place, key in by_hand(words, positions):
        members.setdefault(key, []).append(flat[place])
    slow = [group for group in members.values() if len({rows[t, 0] for t in group}) > 1]
    assert [group.tolist() for group in found] == sorted(slow)


@pytest.mark.parametrize("how", ["first", "vote", "drop"])
@given(data=small_data())
def test_settled_data_has_no_conflict_and_the_rest_is_as_given(how, data) -> None:
    words, answers, positions, _ = data
    sequences = read_sequences([[f"w{t}" for t in row] for row in words])
    given_answers = read_answers(answers, sequences, "token")
    before = in_conflict(sequences, given_answers.rows, False, positions, np.dtype(np.float64))
    if how == "drop" and before:
        places = len({sequences.place(int(t))[0] for group in before for t in group})
        if places == sequences.N:
            with pytest.raises(DataError, match="every sequence has one of them"):
                settle(sequences, given_answers, how, positions)
            return
    settled = settle(sequences, given_answers, how, positions)
    kept, after = settled.sequences, settled.answers
    assert in_conflict(kept, after.rows, False, positions, np.dtype(np.float64)) == []
    assert len(settled.conflicts) == len(before)
    if how == "drop":
        touched = {place[0] for conflict in settled.conflicts for place in conflict.places}
        left = [i for i in range(sequences.N) if i not in touched]
        decoded = [[after.form.classes[int(c)] for c in after.rows[:, 0]]]
        assert decoded[0] == [answer for i in left for answer in answers[i]]
        names = np.array(kept.vocabulary, object)[kept.tokens]
        lengths = [kept.n] * kept.N if kept.lengths is None else kept.lengths
        assert [row[:k].tolist() for row, k in zip(names, lengths, strict=True)] == [
            [f"w{t}" for t in words[i]] for i in left
        ]
        return
    untouched = np.ones(len(after.rows), bool)
    for group in before:
        untouched[group] = False
        votes = Counter(given_answers.rows[group, 0].tolist())
        best = next(answer for answer in given_answers.rows[group, 0] if votes[answer] == max(votes.values()))
        assert (after.rows[group, 0] == (given_answers.rows[group[0], 0] if how == "first" else best)).all()
    assert (after.rows[untouched] == given_answers.rows[untouched]).all()
    assert settled.changed == int((after.rows != given_answers.rows).any(axis=1).sum())


def test_the_default_refuses_and_counts() -> None:
    with pytest.raises(HypothesisError) as refused:
        memorize(SENTENCES, LABELS)
    assert "1 context has more than one answer, the first: sequence 0, token 0 and sequence 2, token 0" in str(
        refused.value
    )
    assert 'on_conflict="vote"' in refused.value.remedy
    foreseen = plan(SENTENCES, LABELS)
    assert (foreseen.possible, foreseen.conflicts) == (False, 1)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("first", [["x", "y"], ["y", "x"], ["x", "y"], ["x", "x"], ["x", "y"]]),
        ("vote", [["x", "y"], ["y", "x"], ["x", "y"], ["x", "x"], ["x", "y"]]),
    ],
)
def test_what_is_kept_is_stored_and_proved(how, expected) -> None:
    labels = [*LABELS[:4], ["x", "y"]]
    model = memorize(SENTENCES, labels, on_conflict=how, certify=True)
    assert model.predict(SENTENCES).tolist() == expected
    assert model.ledger["conflicts"] == 1
    assert model.ledger["conflict_1"] == "'x' x 3, 'z' x 1"
    assert "sequence 0, token 0 and sequence 1, token 1 and sequence 2, token 0 and 1 more" in model.ledger.meaning(
        "conflict_1"
    )
    foreseen = plan(SENTENCES, labels, on_conflict=how)
    assert (foreseen.possible, foreseen.conflicts, foreseen.parameters) == (True, 1, model.n_parameters)
    assert "1 conflicts settled" in str(foreseen)


def test_a_vote_is_not_the_first() -> None:
    labels = [["z", "y"], ["y", "x"], ["x", "y"], ["x", "x"], ["z", "y"]]
    votes = memorize(SENTENCES, [["q", "y"], *labels[1:4], ["x", "y"]], on_conflict="vote", certify=False)
    assert votes.predict([["a", "b"]]).tolist() == [["x", "y"]]
    tie = memorize(SENTENCES, labels, on_conflict="vote", certify=False)
    assert tie.predict([["a", "b"]]).tolist() == [["z", "y"]]


def test_dropped_sequences_are_strangers() -> None:
    model = memorize(SENTENCES, LABELS, on_conflict="drop", default="?", certify=False)
    assert model.predict([["c", "d"]]).tolist() == [["x", "x"]]
    assert model.interface.vocabulary == ("c", "d")
    assert model.ledger["sequences"] == 1
    assert "8 answers dropped with their sequences" in model.ledger.meaning("conflicts")


def test_data_without_conflicts_is_built_alike() -> None:
    plain, asked = (memorize(SENTENCES[2:], LABELS[2:], on_conflict=how) for how in ("refuse", "vote"))
    assert plain == asked
    assert "conflicts" not in asked.ledger


def test_one_answer_per_sequence_and_real_answers() -> None:
    X = np.array([[[1.0], [2.0]], [[2.0], [1.0]], [[3.0], [-0.0]], [[0.0], [3.0]]])
    model = memorize(X, [0.5, 0.25, 1.0, 1.0], on_conflict="first", certify=False)
    assert model.predict(X).tolist() == [0.5, 0.5, 1.0, 1.0]
    assert model.ledger["conflicts"] == 1
    assert memorize(X, [0.5, 0.25, 1.0, 1.0], positions=True, certify=False).predict(X).tolist() == [
        0.5,
        0.25,
        1,
        1,
    ]


def test_tokens_are_compared_as_the_dtype_holds_them() -> None:
    X = np.array([[[1.0], [2.0]], [[1.0 + 1e-9], [2.0]]])
    model = memorize(X, [[1, 2], [3, 2]], dtype="float32", on_conflict="first", certify=False)
    assert model.predict(X).tolist() == [[1, 2], [1, 2]]
    assert memorize(X, [[1, 2], [3, 2]], on_conflict="first").predict(X).tolist() == [[1, 2], [3, 2]]


def test_all_dropped_and_unknown_ways_are_refused() -> None:
    with pytest.raises(DataError, match="every sequence has one of them"):
        memorize(SENTENCES[:3], LABELS[:3], on_conflict="drop")
    with pytest.raises(OptionError, match="on_conflict among refuse, first, vote, drop"):
        memorize(SENTENCES, LABELS, on_conflict="last")


def test_lines_hold_every_conflict() -> None:
    sequences = read_sequences(SENTENCES)
    settled = settle(sequences, read_answers(LABELS, sequences), "vote")
    (line,) = settled.lines()
    assert json.loads(line) == {
        "token": "'a'",
        "places": [[0, 0], [1, 1], [2, 0], [4, 0]],
        "answers": ["x", "x", "z", "z"],
        "kept": ["x"],
    }


def test_the_ledger_lists_some_and_counts_all() -> None:
    X = [[f"w{i}"] for i in range(150)] * 2
    Y = [["a"]] * 150 + [["b"]] * 150
    ledger = memorize(X, Y, on_conflict="first", certify=False).ledger
    assert ledger["conflicts"] == 150
    assert "the first 100 follow" in ledger.meaning("conflicts")
    assert "conflict_100" in ledger
    assert "conflict_101" not in ledger
