"""Graded training is plain training with rates of its own for every row, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer.errors import OptionError
from onelayer.lab.experiments.grading_and_training import SCALES, draw
from onelayer.lab.graded import Grading, train_graded

torch.set_num_threads(1)
DATA = draw(np.random.default_rng(0))


@settings(max_examples=10)
@given(st.lists(st.integers(-3, 6), min_size=3, max_size=3), st.sampled_from(["sgd", "adam"]), st.integers(0, 99))
def test_grades_are_rates_of_rows(grades: list[int], kind, seed: int) -> None:
    factors = np.exp2(grades)
    ways = (Grading(factors), Grading(factors, absorbed=True))
    graded, plain = (train_graded(way, DATA, DATA, kind, 0.01, 8, seed, wanted=2.0).weights for way in ways)
    for name, found in graded.items():
        np.testing.assert_array_equal(found, plain[name])


def test_the_rates_matter() -> None:
    """Without them the plain layer goes elsewhere."""
    (graded, plain), factors = (Grading(1 / SCALES), Grading(np.ones(3))), 1 / SCALES
    a, b = (train_graded(way, DATA, DATA, "sgd", 1.0, 8, 0, wanted=2.0).weights for way in (graded, plain))
    assert np.abs(a["W_V"] - factors[:, None] * b["W_V"]).max() > 0.1


def test_learned_grades_move_and_steps_are_counted() -> None:
    learned, fixed = (Grading(np.ones(3), learned=learned) for learned in (True, False))
    a, b = (train_graded(way, DATA, DATA, "adam", 0.03, 20, 0, wanted=2.0) for way in (learned, fixed))
    assert a.steps is b.steps is None
    assert (a.weights["W_V"] != b.weights["W_V"]).any()
    right = train_graded(Grading(1 / SCALES), DATA, DATA, "adam", 0.03, 200, 0)
    assert right.accuracy >= 0.99
    assert right.steps < 100
    with pytest.raises(OptionError, match="factors above 0"):
        train_graded(Grading(np.zeros(3)), DATA, DATA, "adam", 0.1, 1, 0)
