"""Frames and series of polars are the data that they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars
import pytest

from onelayer import DataError, memorize
from onelayer.measure.recall import recall_answers
from tests.compile.test_python_inputs import CLASSES, IDS, LABELS, REALS, WORDS


def frame(rows: list[list[Any]]) -> polars.DataFrame:
    return polars.DataFrame(rows, orient="row")


SAME = {
    "a frame of ids": (frame(IDS), polars.Series(CLASSES), np.array(IDS), CLASSES),
    "a frame of reals": (frame(REALS), polars.Series([0.5, 1.5]), np.array(REALS), np.array([0.5, 1.5])),
    "a frame of answers": (frame(REALS), frame(IDS), np.array(REALS), np.array(IDS)),
    "a frame of words": (
        frame([["a", "b"], ["b", None]]),
        polars.Series(["x", "y"]),
        [["a", "b"], ["b"]],
        ["x", "y"],
    ),
    "categories": (frame(IDS), polars.Series(["b", "a"], dtype=polars.Categorical), np.array(IDS), ["b", "a"]),
    "series of lists": (polars.Series(WORDS), polars.Series(LABELS), WORDS, LABELS),
}


@pytest.mark.parametrize("case", SAME)
def test_it_is_the_same_data(case: str) -> None:
    X, Y, plain_X, plain_Y = SAME[case]
    built, same = memorize(X, Y), memorize(plain_X, plain_Y)
    assert built.interface.vocabulary == same.interface.vocabulary
    assert built.interface.form.classes == same.interface.form.classes
    assert {k: a.tobytes() for k, a in built.transformer.tensors()} == {
        k: a.tobytes() for k, a in same.transformer.tensors()
    }
    assert recall_answers(built, X, Y).perfect


@pytest.mark.parametrize("Y", [polars.Series([1, None]), polars.Series(["a", None]), polars.Series([0.5, None])])
def test_an_answer_that_is_missing_is_no_class(Y: polars.Series) -> None:
    with pytest.raises(DataError, match=r"finite answers; that of sequence 1 is"):
        memorize(IDS, Y)
