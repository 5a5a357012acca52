"""A text against the certified windows: the same bytes, and after each window what follows it in the text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onelayer_checker.core.claims import Verdict
from onelayer_checker.core.samples import Data
from onelayer_checker.core.texts import compare_text, numbered
from tests.checker.counted import counted

PIECES = (b"a", b"b", b"cd", b"")


def compared(content: bytes, tokens: list[int]) -> Verdict:
    """With the certificate of the text that is made of these tokens; each window is one of them."""
    before = np.array([3, *tokens[:-1]])
    answers = np.zeros((4, 3))
    for window, following in zip(before, tokens, strict=True):
        answers[window, following] += 1
    answers /= np.maximum(answers.sum(axis=1, keepdims=True), 1)
    data = Data(before[:, None], np.ones(len(before), int), answers, before)
    return compare_text(content, PIECES, data, np.dtype(np.float64))


@pytest.mark.parametrize(
    ("content", "outcome", "why"),
    [
        (b"abcdb", "proved", "all 4 windows are certified with what follows them"),
        (b"bbcdb", "refuted", "byte 0 is 98; in the certified text it is 97"),
        (b"aacdb", "refuted", "byte 1 is 97; in the certified text it is 98"),
        (b"abddb", "refuted", "byte 2 is 100; in the certified text it is 99"),
        (b"abcca", "refuted", "byte 3 is 99; in the certified text it is 100"),
        (b"bbbbb", "refuted", "byte 0 is 98; in the certified text it is 97"),
        (b"abcda", "refuted", "the certified answer before token 3 is not what follows there"),
        (b"abcdcd", "refuted", "the certified answer before token 3 is not what follows there"),
        (b"abcd", "undecided", "the certified text is another one: one of the two ends or goes on after byte 4"),
        (b"abcdbb", "undecided", "the certified text is another one: one of the two ends or goes on after byte 4"),
        (b"abcde", "undecided", "the certified text is another one: one of the two ends or goes on after byte 4"),
        (b"ab", "undecided", "the certified text is another one: one of the two ends or goes on after byte 2"),
        (b"", "undecided", "the certified text is another one: one of the two ends or goes on after byte 0"),
        (b"b", "refuted", "byte 0 is 98; in the certified text it is 97"),
    ],
)
def test_only_the_certified_text_is_proved(content, outcome, why) -> None:
    """That of a, b, cd, b; the last of which stands in no window, and is what follows the last."""
    assert compared(content, [0, 1, 2, 1]) == Verdict(outcome, why, np.inf)


def test_a_text_may_end_with_any_token() -> None:
    for last, piece in enumerate(PIECES[:-1]):
        assert compared(b"ab" + piece, [0, 1, last]).outcome == "proved"


def test_a_text_is_counted_before_it_is_written_out() -> None:
    with counted() as lines:
        compared(b"abcdb", [0, 1, 2, 1])
    assert lines == [("a text of 4 bytes", 40, 8, 0)]


def test_sequences_that_are_no_windows_of_one_text_are_not_compared_with_one() -> None:
    """Each part of the form is needed: what has another form is undecided, and nothing is looked up in it."""
    pieces, stream = (b"a", b"b", b""), np.array([2, 2, 0, 1, 0])  # the text abaa, windows of 2
    windows = np.lib.stride_tricks.sliding_window_view(stream, 2)
    answers = np.array([[1.0, 0.0], [0.0, 1.0]])
    data = Data(windows, np.full(4, 2), answers, np.array([0, 1, 0, 0]))
    dtype = np.dtype(np.float32)
    assert compare_text(b"abaa", pieces, data, dtype).outcome == "proved"
    other = [
        replace(data, tokens=windows[::-1]),
        replace(data, tokens=np.where(windows == 2, 0, windows)),
        replace(data, tokens=np.lib.stride_tricks.sliding_window_view(np.array([2, 2, 0, 2, 0]), 2)),
        replace(data, lengths=np.array([2, 1, 2, 2])),
        replace(data, which=np.zeros(8, int)),
        replace(data, answers=np.eye(2, 3)),
        replace(data, tokens=np.array([[2, 2], [2, 0], [0, 1], [0, 0]])),  # the last of each are those of the text
    ]
    for changed in other:
        found = compare_text(b"abaa", pieces, changed, dtype)
        assert (found.outcome, found.value) == ("undecided", np.inf)
        assert found.why == "the certified sequences are not the windows of one text"


@pytest.mark.parametrize(
    ("which", "answers", "wrong"),
    [
        ([0, 2, 1, 2], [[1, 0], [0, 0], [0.5, 0.5]], 2),  # after b comes a
        ([0, 2, 0, 1], [[1, 0], [0, 1], [0.5, 0.5]], 3),  # equal windows have one row
        ([0, 2, 0, 2], [[1, 0], [0, 1], [0.5, 0.25]], 1),
        ([0, 2, 0, 2], [[1, 2.0**-60], [0, 1], [0.5, 0.5]], 0),
        ([0, 2, 0, 2], [[1, 0], [0, 1], [0.5, 0.5]], None),
    ],
)
def test_answers_are_the_shares_of_what_follows(which, answers, wrong) -> None:
    """The text abaa: a comes first; after a come b and a; after b comes a."""
    windows = np.array([[2], [0], [1], [0]])
    data = Data(windows, np.ones(4, int), np.array(answers, np.float64), np.array(which))
    found = compare_text(b"abaa", (b"a", b"b", b""), data, np.dtype(np.float32))
    assert (found.outcome, found.value) == ("proved" if wrong is None else "refuted", np.inf)
    assert wrong is None or f"before token {wrong} " in found.why


def test_windows_are_numbered_exactly() -> None:
    rng = np.random.default_rng(2)
    for n in range(1, 12):
        stream = rng.integers(0, 3, 60)
        rows = np.lib.stride_tricks.sliding_window_view(stream, n)
        wanted = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        found = numbered(stream, n)
        assert np.array_equal(wanted[:, None] == wanted, found[:, None] == found)
    large = 1 << 30  # numbers that are told apart by their last bit
    assert len(set(numbered(np.array([large, large, large - 1, large]), 2).tolist())) == 3
