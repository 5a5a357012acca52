"""Unknown inputs: how they are drawn, how far they are from what is stored, and the bound that follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from onelayer.network.blocks import apply_stack
from onelayer.problems import unknown_inputs
from onelayer.problems.sequences import read_sequences
from onelayer.readouts import table
from onelayer.readouts.false_hits import bound, upper_limit

F32 = np.dtype("float32")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@settings(max_examples=100)
@given(st.integers(1, 5000), st.data())
def test_the_upper_limit_is_that_of_clopper_and_pearson(m, data) -> None:
    k = data.draw(st.integers(0, m))
    wanted = 1.0 if k == m else beta.ppf(0.95, k + 1, m - k)
    assert upper_limit(k, m) == pytest.approx(wanted, rel=1e-9)


def test_a_flat_density_is_bounded_from_above_and_not_by_much(rng) -> None:
    share = 1e-3  # of unknown inputs within reach
    found = [bound(rng.random(4096) / share, 1.0) for _ in range(200)]
    assert np.mean(np.array(found) < share) < 0.05
    assert np.median(found) < 5 * share


@pytest.mark.parametrize("weight", [0.5, 0.05, 0.005])
def test_strangers_that_coincide_with_stored_inputs_are_not_smoothed_away(rng, weight) -> None:
    found = []
    for _ in range(100):
        distances = rng.random(4096) * 1e6
        distances[rng.random(4096) < weight] = 0.0
        found.append(bound(distances, 1.0))
    assert np.mean(np.array(found) < weight) <= 0.1
    assert np.max(found) < weight + 5 * np.sqrt(weight / 4096) + 1e-3


def test_few_strangers_say_nothing() -> None:
    assert bound(np.array([5.0, 6.0]), 1e-9) == 1.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 4))
def test_within_reach_is_where_a_table_gives_another_answer_than_the_default(seed, M, c) -> None:
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(1, 60 if c > 1 else 4000, (2 * M, c)), axis=0).astype(np.float64)
    keys = rng.permutation(keys)[:M]
    made = table.construct(keys, np.ones((len(keys), 1)), F32, 0.1, np.array([2.0]))
    if made is None:
        assert c > 1  # several keys that no coordinate separates
        return
    asked = np.concatenate([rng.integers(1, 60, (400, c)), keys + rng.integers(-1, 2, keys.shape)]).astype(F32)
    asked = np.maximum(asked, 1)
    distances = made.stored.distances(asked)
    other = apply_stack(made.layers, asked)[:, 0] != 2.0
    np.testing.assert_array_equal(distances <= made.stored.reach, other)
    np.testing.assert_array_equal(made.stored.distances(keys), 0.0)


def test_a_plateau_of_real_coordinates_is_as_narrow_as_rounding_allows(rng) -> None:
    keys, radius = np.cumsum(rng.uniform(0.5, 2.0, 300))[:, None], 1e-4
    made = table.construct(keys, np.ones((300, 1)), F32, radius, np.array([2.0]))
    assert radius < made.guard < 3 * radius
    assert made.stored.reach < 5 * radius
    for far, answer in ((made.guard, 1.0), (made.stored.reach, 2.0)):
        for sign in (-1, 1):
            moved = (keys + sign * far).astype(F32)
            inside = np.abs(moved - keys) <= made.guard if answer == 1.0 else np.abs(moved - keys) >= far - radius
            np.testing.assert_array_equal(apply_stack(made.layers, moved)[inside[:, 0], 0], answer)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("real", [False, True])
def test_strangers_are_like_the_stored_and_never_stored(rng, ordered, ragged, real) -> None:
    X = rng.integers(0, 4, (60, 3))
    lengths = rng.integers(1, 4, 60) if ragged else None
    stored = read_sequences(X[:, :, None] / 2.0 if real else X, lengths)

    def key(s, i):
        row = [s.tokens[i, k].tolist() for k in range(3 if s.lengths is None else s.lengths[i])]
        return tuple(map(str, row if ordered else sorted(row)))

    known = {key(stored, i) for i in range(60)}
    drawn = unknown_inputs.draw(stored, 500, ordered, F32, rng)
    assert set(drawn) == ({unknown_inputs.TOGETHER, unknown_inputs.NEW} if real else {unknown_inputs.TOGETHER})
    for found in drawn.values():
        assert (found.lengths is not None) == ragged
        assert not known & {key(found, i) for i in range(found.N)}
    together = drawn[unknown_inputs.TOGETHER]
    assert together.N < 500  # so that some were stored, and left out
    assert set(np.unique(together.tokens)) <= set(np.unique(stored.tokens))


def test_new_tokens_fall_into_every_gap_and_beyond_both_ends(rng) -> None:
    values = np.sort(rng.standard_normal(20))
    stored = read_sequences(rng.permutation(values).reshape(10, 2, 1))
    new = unknown_inputs.draw(stored, 4000, False, np.dtype("float64"), rng)[unknown_inputs.NEW].tokens
    counts = np.bincount(np.searchsorted(values, new.ravel()), minlength=21)
    assert counts.min() > 0.7 * 8000 / 21
    assert counts.max() < 1.3 * 8000 / 21


def test_where_everything_is_stored_there_are_no_strangers(rng) -> None:
    stored = read_sequences(np.array([[0, 0], [0, 1], [1, 1]]))
    assert unknown_inputs.draw(stored, 100, False, F32, rng) == {}
