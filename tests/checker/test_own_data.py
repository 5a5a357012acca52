"""A person's data in numbers: what is a number, how long a sequence is, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onelayer_checker.core.claims import Verdict
from onelayer_checker.core.given import Incomparable, Sequences, compare, encoded
from onelayer_checker.core.names import Names
from onelayer_checker.core.samples import Data

WORDS = Names("token", False, False, ("a", "b"), None, ("x", "y"))
REALS = Names("sequence", False, False, None, None, None)


def data(d: int = 1, q: int = 1, dtype=np.float64) -> Data:
    return Data(np.zeros((1, 1, d), dtype), np.ones(1, int), np.zeros((1, q)), np.zeros(1, int))


def answers(Y, q: int = 1) -> list:
    """Numbers that are answers of as many sequences."""
    X = [[0.5]] * len(Y)
    return encoded((X, Y), REALS, data(q=q)).answers.tolist()


def tokens(X, lengths=None, d: int = 1, dtype=np.float64) -> tuple[list, list]:
    given = (X, [0.0] * len(X)) if lengths is None else (X, [0.0] * len(X), lengths)
    found = encoded(given, REALS, data(d, dtype=dtype))
    return found.lengths.tolist(), found.tokens.tolist()


@pytest.mark.parametrize(
    ("Y", "q", "wanted"),
    [
        (
            [1, 2.5, np.float32(0.1), np.float16(2), np.int64(3), np.uint8(4)],
            1,
            [1, 2.5, float(np.float32(0.1)), 2, 3, 4],
        ),
        ([2**53, -(2**53), 1e300, -1e300], 1, [2**53, -(2**53), 1e300, -1e300]),
        (np.array([2**53, -(2**53)]), 1, [2**53, -(2**53)]),
        (np.array([1e300, -1e300]), 1, [1e300, -1e300]),
        (np.array([7], np.uint64), 1, [7]),
        (np.array([0.1], np.float32), 1, [float(np.float32(0.1))]),
        (np.array([True, False]), 1, [1, 0]),  # in an array they are numbers
        ([[1, 2.5], [3, 4]], 2, [[1, 2.5], [3, 4]]),
        ([(1, 2.5), np.array([3, 4])], 2, [[1, 2.5], [3, 4]]),
        (np.array([[1, 2.5], [3, 4]]), 2, [[1, 2.5], [3, 4]]),
        ([[1], [2.0]], 1, [1, 2]),
    ],
)
def test_numbers_are_taken_exactly(Y, q, wanted) -> None:
    assert answers(Y, q) == [row if q > 1 else [row] for row in wanted]


@pytest.mark.parametrize(
    ("Y", "q"),
    [
        (["1", "2"], 1),
        (["1", 2.0], 1),
        ([2.0, "1"], 1),
        ([True, 2.0], 1),
        ([None], 1),
        ([1j], 1),
        ([2**53 + 1], 1),
        ([-(2**53) - 1], 1),
        ([np.uint64(2**53 + 1)], 1),
        ([10**400], 1),
        ([np.longdouble(1)], 1),
        (np.array([2**53 + 1]), 1),
        (np.array([-(2**53) - 1]), 1),
        (np.array([-(2**53) - 1, 5]), 1),
        (np.array([2**53 + 1, -5]), 1),
        (np.array([2**63], np.uint64), 1),
        (np.array(["1", "2"]), 1),
        (np.array([1j], np.complex64), 1),
        (np.array([1], np.longdouble), 1),
        (np.array([1, 2, 3, 4.0]), 2),
        (np.array([[1, 2.0], [3, 4]]), 1),
        ([[1], 2.0], 1),
        ([1.0, [2]], 1),
        ([[1, 2.0], [3]], 2),
        ([[1, 2.0], [3, 4]], 1),
        ([1, 2.0], 2),
        ([[[1], [2]]], 2),
    ],
)
def test_what_is_no_number_or_is_not_held_exactly_is_not_compared(Y, q) -> None:
    with pytest.raises(Incomparable):
        answers(Y, q)


def test_sequences_have_their_lengths() -> None:
    """Padding is cut off where lengths are given, in arrays and in lists; otherwise each is as long as it is."""
    padded = [[1.0, 9], [2, 3], [4, 9]]
    assert tokens([[1.0], [2, 3], [4]]) == ([1, 2, 1], [[1], [2], [3], [4]])
    assert tokens(padded, [1, 2, 1]) == ([1, 2, 1], [[1], [2], [3], [4]])
    assert tokens(np.array(padded), [1, 2, 1]) == ([1, 2, 1], [[1], [2], [3], [4]])
    assert tokens(np.array(padded), np.array([1, 2, 1], np.uint8)) == ([1, 2, 1], [[1], [2], [3], [4]])
    assert tokens(np.array(padded)) == ([2, 2, 2], [[1], [9], [2], [3], [4], [9]])
    assert tokens(np.array(padded, object), [1, 2, 1]) == ([1, 2, 1], [[1], [2], [3], [4]])
    assert tokens([np.array([1.0, 9]), [2, 3]], [1, 2]) == ([1, 2], [[1], [2], [3]])
    assert tokens(np.arange(8.0).reshape(1, 4, 2), [3], d=2) == ([3], [[0, 1], [2, 3], [4, 5]])
    assert tokens([[[0.0, 1], [2, 3]]], d=2) == ([2], [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("X", "lengths"),
    [
        ([[1.0], []], None),
        ([[1.0], [2.0]], [1, 0]),
        ([[1.0], [2.0]], [1, 2]),
        ([[1.0], [2.0]], [1]),
        ([[1.0], [2.0]], [1.0, 1.0]),
        ([[1.0], [2.0]], [[1], [1]]),
        (np.ones((2, 2)), [1, 3]),
        (np.ones((2, 2)), [1, -1]),
        (np.ones(2), None),
        ([1.0, 2.0], None),
        ("ab", None),
        ({(1.0,): 1}, None),
        ({(1.0,), (2.0,)}, None),
        (np.zeros((0, 2)), None),
    ],
)
def test_sequences_of_other_lengths_are_not_compared(X, lengths) -> None:
    with pytest.raises(Incomparable):
        tokens(X, lengths)


def test_what_is_given_are_two_things_or_three() -> None:
    for wrong in (([[1.0]],), ([[1.0]], [1.0], [1], 1), ([[1.0]], 1.0), (5, [1.0]), ([[1.0]], [1.0, 2.0])):
        with pytest.raises(Incomparable):
            encoded(wrong, REALS, data())


def test_tokens_are_rounded_to_the_certified_format() -> None:
    assert tokens([[0.1]], dtype=np.float32) == ([1], [[float(np.float32(0.1))]])
    assert tokens([[1e39]], dtype=np.float32) == ([1], [[np.inf]])


def test_zeros_have_no_sign() -> None:
    for Y in ([-0.0], np.array([-0.0])):
        found = encoded(([[-0.0]], Y), REALS, data())
        assert not np.signbit(found.tokens).any()
        assert not np.signbit(found.answers).any()


def test_names_have_their_numbers() -> None:
    for X, Y in (
        ([["a", "c", "b"]], [["y", "x", "z"]]),
        (np.array([["a", "c", "b"]]), np.array([["y", "x", "z"]])),
        (np.array([["a", "c", "b"]], object), np.array([["y", "x", "z"]], object)),
        ([np.array(["a", "c", "b"])], [np.array(["y", "x", "z"])]),
    ):
        found = encoded((X, Y), WORDS, data())
        assert (found.lengths.tolist(), found.tokens.tolist()) == ([3], [0, -1, 1])
        assert found.answers.tolist() == [[1], [0], [-1]]
    per_sequence = encoded(([["a"], ["b"]], np.array(["y", "x"])), replace(WORDS, scope="sequence"), data())
    assert per_sequence.answers.tolist() == [[1], [0]]


def test_vectors_are_no_names() -> None:
    pairs = replace(WORDS, tokens=((1, 2), (3, 4)))
    assert encoded(([[(1, 2), [3, 4]]], [["x", "y"]]), pairs, data()).tokens.tolist() == [0, 1]
    with pytest.raises(Incomparable, match="vectors are given"):
        encoded((np.array([[[1, 2], [3, 4]]]), [["x", "y"]]), pairs, data())
    with pytest.raises(Incomparable, match="vectors are given"):
        encoded(([["a", "b"]], np.array([[["x"], ["y"]]])), WORDS, data())


def test_answers_are_as_many_as_tokens() -> None:
    assert encoded(([["a", "b"]], np.array([["x", "y", "x"]])), WORDS, data()).answers.tolist() == [[0], [1]]
    for wrong in ([["x"]], [["x", "y", "x"]], np.array([["x"]]), [["x", "y"], ["x", "y"]]):
        with pytest.raises(Incomparable):
            encoded(([["a", "b"]], wrong), WORDS, data())


def sequences(lengths, ids, rows) -> Sequences:
    return Sequences(np.array(lengths), np.array(ids), np.array(rows, float).reshape(len(rows), -1))


@pytest.mark.parametrize("rows", [[[1], [2], [3]], [[1, 2], [1, 2], [3, 4]]])
def test_each_sequence_is_looked_up_with_its_answers(rows) -> None:
    """An answer for each token, in the same order or another, and some of them only."""
    names = replace(WORDS, answers=None)
    theirs = sequences([2, 1], [0, 1, 1], rows)
    proved = "all {} sequences are certified with these answers"
    assert compare(theirs, theirs, names, 7.0) == Verdict("proved", proved.format(2), 7.0)
    other = sequences([1, 2], [1, 0, 1], [rows[2], rows[0], rows[1]])
    assert compare(other, theirs, names, 7.0) == Verdict("proved", proved.format(2), 7.0)
    one = sequences([1], [1], [rows[2]])
    assert compare(one, theirs, names, 7.0).why == proved.format(1) + "; 1 others are certified too"
    wrong = compare(sequences([2], [0, 1], [rows[0], rows[2]]), theirs, names, 7.0)
    assert (wrong.outcome, wrong.value) == ("refuted", np.inf)
    assert wrong.why.startswith("sequence 0, token 1 has the answer ")
    unknown = compare(sequences([1, 1], [1, 0], [rows[2], rows[0]]), theirs, names, 7.0)
    assert unknown == Verdict("undecided", "sequence 1 is not among the certified ones", np.inf)
    both = compare(sequences([1, 1], [0, 1], [rows[0], rows[0]]), theirs, names, 7.0)
    assert (both.outcome, both.why[:10]) == (
        "refuted",
        "sequence 1",
    )  # what is wrong is said before what is unknown


def test_an_answer_is_shown_as_it_is() -> None:
    def said(mine, theirs, names) -> str:
        a, b = (sequences([1], [0], [row]) for row in (mine, theirs))
        return compare(a, b, names, 0.0).why

    per_sequence = replace(WORDS, scope="sequence")
    reals = replace(per_sequence, answers=None)
    assert said([0.1], [2.5], reals) == "sequence 0 has the answer 0.10000000000000001; 2.5 is certified"
    assert (
        said([1, 2, 3, 4], [1, 2, 3, 5], reals) == "sequence 0 has the answer 1, 2, 3, 4; 1, 2, 3, 5 is certified"
    )
    five = said([1, 2, 3, 4, 5], [1, 2, 3, 4, 6], reals)
    assert five == "sequence 0 has the answer 1, 2, 3, 4, ...; 1, 2, 3, 4, ... is certified"
    assert said([0], [1], per_sequence) == "sequence 0 has the answer 'x'; 'y' is certified"
    assert said([1], [0], per_sequence) == "sequence 0 has the answer 'y'; 'x' is certified"
    none = said([-1], [1], per_sequence)
    assert none == "sequence 0 has the answer one that is no certified class; 'y' is certified"
