"""Frames and series of polars are the data that they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars
import pytest

from onelayer import DataError, memorize
from tests.compile.test_python_inputs import CLASSES, IDS, LABELS, REALS, WORDS, assert_same_data


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
    assert_same_data(*SAME[case])


@pytest.mark.parametrize("Y", [polars.Series([1, None]), polars.Series(["a", None]), polars.Series([0.5, None])])
def test_an_answer_that_is_missing_is_no_class(Y: polars.Series) -> None:
    with pytest.raises(DataError, match=r"finite answers; that of sequence 1 is"):
        memorize(IDS, Y)
