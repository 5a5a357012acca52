"""Whole-number contexts: what the layers compute is what the construction says, up to the radius it states."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer import HypothesisError, certify
from onelayer.contexts import lattice
from onelayer.contexts.quantiser import quantise
from onelayer.contexts.raw_codes import _covariance, _uncorrelate
from onelayer.contexts.stream import open_stream
from onelayer.gadgets.stacks import layers_of
from onelayer.network import Linear, Transformer
from onelayer.network.blocks import apply_stack, evaluate
from onelayer.problems.sequences import read_sequences

memorize = partial(onelayer.memorize, certify=False)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def coordinates(X, lengths=None, *, positions=False, per_sequence=False, seed=0, dtype="float32", wide=False):
    """What the network computes for every sample, and what the construction says."""
    sequences = read_sequences(X, lengths)
    stream = open_stream(sequences, np.dtype(dtype), positions)
    c = lattice.construct(sequences, stream, 6, seed, 0, per_sequence, wide)
    model = Transformer(c.attention, c.embedding, layers_of(c.feedforward), (c.bottleneck,), c.channels)
    out = evaluate(model, sequences.tokens, sequences.lengths)
    valid = sequences.valid()
    flat = out[:, 0] if per_sequence else out.reshape(-1, 6) if valid is None else out[valid]
    return flat, c


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("per_sequence", [False, True])
@pytest.mark.parametrize("kind", ["reals", "ids", "ragged reals", "ragged ids"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n", [1, 7, 40, 300])
def test_the_network_computes_the_stated_coordinates(rng, n, wide, kind, per_sequence, positions) -> None:
    N = 200 if n < 100 else 20
    X = rng.integers(0, 30, (N, n)) if "ids" in kind else rng.standard_normal((N, n, 3)).astype(np.float32)
    lengths = rng.integers(1, n + 1, N) if "ragged" in kind else None
    if n > 100 and lengths is not None and not positions:
        with pytest.raises(HypothesisError, match="300 places leave 0 bits"):
            coordinates(X, lengths, per_sequence=per_sequence, wide=wide)
        return
    computed, c = coordinates(X, lengths, positions=positions, per_sequence=per_sequence, wide=wide)
    assert np.abs(computed - c.coordinates).max() <= c.radius
    assert 4 * c.radius < (1.0 if lengths is None or positions else 1.0 / n)
    if lengths is None or positions:
        np.testing.assert_array_equal(c.coordinates, np.rint(c.coordinates))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 5))
def test_equal_companies_meet_and_different_ones_part(seed, n, vocabulary) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, vocabulary, (30, n))
    _, c = coordinates(X, seed=seed % 7)
    keys = {}
    for row, y in zip(
        ((int(t), tuple(sorted(x))) for x in X.tolist() for t in x), c.coordinates.tolist(), strict=True
    ):
        assert keys.setdefault(row, tuple(y)) == tuple(y)
    assert len(set(keys.values())) == len(keys)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 4))
def test_with_positions_all_sequences_part(seed, n, vocabulary) -> None:
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, vocabulary, (25, n)), axis=0)
    _, c = coordinates(X, positions=True, per_sequence=True, seed=seed % 7)
    assert len(np.unique(c.coordinates, axis=0)) == len(X)


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(2, 9))
def test_steps_are_zero_or_one_on_the_data(seed, T, levels) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.standard_normal((T, 2)).astype(np.float32) * np.float32(10.0 ** rng.integers(-3, 4))
    tokens[rng.random((T, 2)) < 0.3] = tokens[0, 0]  # values that repeat
    q = quantise(tokens, min(levels, T), np.dtype("float32"))
    if q.count == 0:
        assert all(np.ptp(np.sort(tokens[:, i])) < 1e-4 * np.abs(tokens).max() or T == 1 for i in range(2)) or T < 3
        return
    units, steps = q.steps(0).layers()
    found = np.maximum(apply_stack((units, steps), tokens), 0)
    assert set(np.unique(found)) <= {0.0, 1.0}
    exact = tokens[:, q.component].astype(np.float64) >= q.start + 1.0 / q.slope
    np.testing.assert_array_equal(found == 1.0, exact)


@pytest.mark.parametrize(("T", "d", "levels"), [(1, 1, 1), (500, 3, 4), (500, 1, 200), (300, 40, 3)])
def test_codes_are_looked_up_as_the_layers_compute_them(rng, T, d, levels) -> None:
    tokens = rng.standard_normal((T, d)).astype(np.float32)
    q = quantise(tokens, levels, np.dtype("float32"))
    codes = Linear(*(rng.integers(-999, 999, shape).astype(np.float32) for shape in ((q.count, 5), (5,))))
    np.testing.assert_array_equal(q.features(tokens, codes), apply_stack((*q.steps(0).layers(), codes), tokens))


def test_wide_coordinates_take_more_values(rng) -> None:
    X = rng.standard_normal((3000, 16, 4)).astype(np.float32)
    (_, even), (_, wide) = (coordinates(X, wide=wide) for wide in (False, True))
    assert wide.span > 3 * even.span
    assert wide.radius < 2 * even.radius


def test_sequences_too_long_for_the_dtype_are_refused() -> None:
    with pytest.raises(HypothesisError, match="4000 places leave"):
        lattice.whole_bits(4000, np.dtype("float32"), 1.0)
    assert lattice.whole_bits(4000, np.dtype("float64"), 1.0) == lattice.MOST_BITS


def test_the_room_for_rounding_does_not_shrink_with_the_data(rng) -> None:
    margins = []
    for N in (20, 2000):
        _, c = coordinates(rng.standard_normal((N, 4, 5)).astype(np.float32))
        margins.append(0.5 / c.radius)
    assert min(margins) > 2
    assert margins[1] > 0.8 * margins[0]


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("readout", ["table", "retrieval"])
@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 2, 2)])
def test_tokens_that_are_all_alike(shape, readout, positions) -> None:
    X, Y = np.full(shape, 7.5, np.float32), np.zeros(shape[:2], int)
    if positions:
        Y += np.arange(shape[1])
    model = memorize(X, Y, mapping="lattice", readout=readout, positions=positions)
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)
    assert certify(model, X, Y).claims


def test_two_tokens_of_width_one() -> None:
    X, Y = np.array([[[1.0], [1.0]], [[2.0], [1.0]]], np.float32), [[0, 0], [1, 2]]
    model = memorize(X, Y, mapping="lattice")
    np.testing.assert_array_equal(model.predict(X), Y)
    assert certify(model, X, Y).claims


def test_many_tokens_that_are_all_alike() -> None:
    X, Y = np.ones((600, 1, 3), np.float32), np.full((600, 1), "same")
    model = memorize(X, Y, mapping="lattice")
    assert model.ledger["mapping"] == "lattice"
    np.testing.assert_array_equal(model.predict(X), Y)


def shares(x: list[int]) -> tuple[tuple[int, Fraction], ...]:
    """All that softmax sees of a bag: the share of each token."""
    return tuple(sorted((t, Fraction(x.count(t), len(x))) for t in set(x)))


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 5))
def test_bags_of_different_lengths_part_unless_their_shares_are_equal(seed, n, vocabulary) -> None:
    rng = np.random.default_rng(seed)
    X = [rng.integers(0, vocabulary, rng.integers(1, n + 1)).tolist() for _ in range(40)] + [[0] * n, [0]]
    _, c = coordinates(X, seed=seed % 7)
    samples = [(t, shares(x)) for x in X for t in x]
    keys: dict[object, tuple[float, ...]] = {}
    for sample, y in zip(samples, c.coordinates.tolist(), strict=True):
        assert keys.setdefault(sample, tuple(y)) == tuple(y)
    found = np.array(list(keys.values()))
    apart = np.abs(found[:, None] - found).max(axis=-1) + np.eye(len(found)) * n
    assert apart.min() >= 0.999 / n  # and not only different: a lattice step


def test_a_token_does_not_pass_for_another_in_a_shorter_bag() -> None:
    X, Y = [["x", "y", "y"], ["x", "x", "y"], ["z", "z", "z", "w"]], [[0, 1, 1], [2, 2, 3], [4, 4, 4, 5]]
    model = memorize(X, Y, mapping="lattice", dtype="float32")
    for path in ("dense", "auto"):
        assert [list(a) for a in model.predict(X, path=path)] == Y
    assert certify(model, X, Y).claims


def test_a_mean_that_weighs_more_gives_way_where_contexts_meet() -> None:
    """x among x y y y and y among x x x y have one sum if the mean weighs twice as much as the token itself."""
    X = [["x", "y", "y", "y"], ["x", "x", "x", "y"], ["z"] * 8]
    Y = [[1, 2, 2, 2], [3, 3, 3, 4], [5] * 8]
    model = memorize(X, Y, mapping="lattice", dtype="float64")
    assert model.ledger.number("attempts") == 2
    assert [list(a) for a in model.predict(X)] == Y


@pytest.mark.parametrize("longest", [96, 300])
def test_long_bags_of_words_are_packed(rng, longest) -> None:
    """The own code of a token must not drown the mean: those of one token in many bags would share their cells."""
    lengths = rng.integers(longest // 8, longest + 1, 8_000 // longest)
    X = [rng.choice(1_000, k, replace=False).tolist() for k in lengths]
    Y = [rng.integers(0, 9, len(x)).tolist() for x in X]
    model = memorize(X, Y, mapping="lattice", dtype="float64")
    assert model.ledger["readout"] == "packed"
    assert model.ledger.number("attempts") == 1
    assert [list(a) for a in model.predict(X)] == Y


@pytest.mark.parametrize("count", [3, 40, 30_000])
def test_codes_are_mixed_so_that_channels_are_uncorrelated(count) -> None:
    """Where there are enough of them; by the covariance that NumPy finds, in parts."""
    rng = np.random.default_rng(count)
    trial = rng.standard_normal((count, 3)) @ np.array([[1.0, 0.9, 0], [0, 0.5, 0.4], [0, 0, 2.0]])
    assert np.allclose(_covariance(trial), np.cov(trial.T), rtol=1e-12, atol=1e-14)
    steps = rng.standard_normal((5, 3))
    found, mixed = _uncorrelate(steps, trial)
    if count < 12:
        assert found is steps
        assert mixed is trial
    else:
        assert np.allclose(np.cov(mixed.T), np.eye(3), atol=1e-9)
        assert np.allclose(found, steps @ np.linalg.lstsq(trial, mixed, rcond=None)[0])
