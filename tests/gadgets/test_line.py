"""Cells of a coordinate are found where, and only where, the units that tell them apart decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer.gadgets import line
from onelayer.gadgets.line import Line


def units(ends: np.ndarray, steepness: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Units [1, K, 2] of cells that end at these numbers, on ramps of these slopes."""
    K = len(ends) + 1
    weight, bias = np.zeros((1, K, 2)), np.zeros((K, 2))
    weight[0, :-1, 0], bias[:-1, 0] = steepness, -steepness * ends
    weight[0, 1:, 1], bias[1:, 1] = -steepness, steepness * ends + 1
    return weight.astype(dtype), bias.astype(dtype)


def evaluated(w: np.ndarray, b: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many cells' units are 0 while their neighbours are switched off, and the last such cell, z by z."""
    with np.errstate(over="ignore"):
        unit = z[:, None, None] * w + b  # [T, K, 2]
    own = (unit <= 0).all(axis=2)
    after = np.concatenate([unit[:, 1:, 1] >= 1, np.ones((len(z), 1), bool)], axis=1)
    before = np.concatenate([np.ones((len(z), 1), bool), unit[:, :-1, 0] >= 1], axis=1)
    sure = own & after & before
    return sure.sum(axis=1), sure.argmax(axis=1)


@st.composite
def cells(draw) -> tuple[np.ndarray, np.ndarray, str]:
    dtype = draw(st.sampled_from(["float32", "float64"]))
    whole = draw(st.booleans())
    gaps = st.integers(1, 40) if whole else st.floats(1e-3, 1e3)
    steps = np.array(draw(st.lists(gaps, min_size=1, max_size=30)), np.float64)
    start = draw(st.floats(-1e4, 1e4))
    ends = np.cumsum(steps) + (round(start) if whole else start)
    slopes = np.array([draw(st.sampled_from([1.0, 2.0, 3.7])) / min(steps) for _ in ends])
    return ends, slopes, dtype


@given(cells(), st.integers(0, 2**32))
def test_they_are_what_the_units_say(case, seed: int) -> None:
    ends, slopes, dtype = case
    weight, bias = units(ends, slopes, dtype)
    found = Line.read(weight, bias)
    assert found is not None
    rng = np.random.default_rng(seed)
    edges = np.concatenate([ends, ends + 1 / slopes]).astype(dtype)
    near = [edges]
    for _ in range(3):
        near += [np.nextafter(near[-1], np.inf).astype(dtype)]
        near += [np.nextafter(near[-2], -np.inf).astype(dtype)]
    far = np.array([-np.finfo(dtype).max, np.finfo(dtype).max, 0, -0.0], dtype)
    z = np.concatenate([*near, rng.uniform(ends[0] - 9, ends[-1] + 9, 500).astype(dtype), far])
    j, sure = found.find(z[:, None])
    count, which = evaluated(weight[0], bias, z)
    assert (count[sure] == 1).all()
    np.testing.assert_array_equal(j[sure], which[sure])
    missed = (count == 1) & ~sure
    assert missed.sum() <= 6 * len(ends)  # a bucket that begins within a rounding of an end guesses the cell before


def test_buckets_and_search_agree(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.integers(1, 9, 400)).astype(np.float64) - 700.5
    weight, bias = units(ends, np.full(400, 2.0), "float32")
    guessed = Line.read(weight, bias)
    assert guessed.buckets[0].size  # made when it is first asked for
    monkeypatch.setattr(line, "MOST_BUCKETS", 0)
    searched = Line.read(weight, bias)
    assert guessed.buckets[0].size > searched.buckets[0].size == 0
    z = np.arange(-2000, 2000, dtype=np.float32)[:, None]
    for a, b in zip(guessed.find(z), searched.find(z), strict=True):
        np.testing.assert_array_equal(a, b)
    assert guessed.find(z)[1].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_not_a_number_is_in_no_cell(dtype: str) -> None:
    found = Line.read(*units(np.array([0.0, 2.0]), np.array([1.0, 1.0]), dtype))
    _, sure = found.find(np.array([[np.nan], [-1.0], [np.inf], [-np.inf]], dtype))
    assert sure.tolist()[:2] == [False, True]


@pytest.mark.parametrize("side", [0, 1])
def test_a_cell_that_is_on_far_from_its_place_is_noticed(side: int) -> None:
    """Neighbours are told apart as before; two cells on, another is on as well, so nothing is sure there."""
    weight, bias = units(np.array([0.0, 4.0, 8.0, 12.0]), np.full(4, 2.0), "float64")
    z = np.array([[-2.0], [2.0], [6.0], [10.0], [14.0]])
    assert Line.read(weight, bias).find(z)[1].all()
    bias[4 * side, side] = -100.0
    found = Line.read(weight, bias)
    assert found is None or not found.find(z)[1].all()
