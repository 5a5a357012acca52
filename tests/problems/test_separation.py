"""Separation measured on data: every number on its safe side, close to it, at any size, shift and scale."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onelayer.errors import OnelayerError
from onelayer.problems import separation
from onelayer.problems.separation import distinct, eps_lower, first_repeat, measure


def square(token) -> Fraction:
    return sum((Fraction(x) ** 2 for x in token), Fraction(0))


def lower(bound: float, slack: float = 0.0) -> Fraction:
    """The square of a bound, lowered by a relative slack and, for subnormal numbers, by two steps."""
    return Fraction(max(0.0, bound * (1 - slack) - (1e-323 if slack else 0.0))) ** 2


def upper(bound: float, slack: float = 0.0) -> Fraction:
    return Fraction(bound * (1 + slack) + (1e-323 if slack else 0.0)) ** 2


def assert_safe_and_close(tokens: np.ndarray) -> None:
    """r_min, r_max and eps against exact rational arithmetic on the distinct rows."""
    rows = [tuple(map(Fraction, row)) for row in sorted({tuple(row) for row in (tokens + 0.0).tolist()})]
    measured = measure(tokens[None])
    norms = [square(row) for row in rows]
    assert measured.vocabulary == len(rows)
    assert lower(measured.r_min) <= min(norms) <= upper(measured.r_min, 1e-12)
    assert lower(measured.r_max, 1e-12) <= max(norms) <= upper(measured.r_max)
    if len(rows) > 1:
        exact = min(square(x - y for x, y in zip(a, b, strict=True)) for a, b in itertools.combinations(rows, 2))
        assert lower(measured.eps) <= exact <= upper(measured.eps, 2.0**-35)
    else:
        assert measured.eps == math.inf


def brute_force(tokens: np.ndarray) -> float:
    return min(float(np.linalg.norm(tokens[i + 1 :] - tokens[i], axis=1).min()) for i in range(len(tokens) - 1))


@settings(deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=st.floats(-4, 4)))
def test_sides_on_arbitrary_floats(tokens: np.ndarray) -> None:
    assert_safe_and_close(tokens)


@settings(deadline=None)
@given(hnp.arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.integers(-2, 2)))
def test_sides_on_lattices_full_of_ties(tokens: np.ndarray) -> None:
    assert_safe_and_close(tokens.astype(float) / 10)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("shift", [0.0, 3.0, 1e7])
def test_sides_under_scale_and_shift(scale: float, shift: float) -> None:
    tokens = np.random.default_rng(0).normal(size=(40, 3)) + shift
    assert_safe_and_close(tokens * scale)


def test_sides_of_the_smallest_floats() -> None:
    token = np.array([5e-324, 5e-324])
    measured = measure([[token, 3 * token]])
    assert Fraction(measured.r_min) ** 2 <= square(token.tolist())
    assert Fraction(measured.r_max) ** 2 >= square((3 * token).tolist())
    assert Fraction(measured.eps) ** 2 <= square((2 * token).tolist())


def test_tiny_tokens_beside_a_huge_one() -> None:
    assert_safe_and_close(np.array([[1e300, 0.0], [1.1e-20, 0.0], [2.3e-20, 1e-21]]))


@pytest.mark.parametrize("d", [1, 2, 3, 16])
def test_sweep_over_several_blocks_is_exact(d: int) -> None:
    tokens = np.random.default_rng(d).normal(size=(6000, d))
    assert eps_lower(tokens) == pytest.approx(brute_force(tokens), rel=2.0**-36)


def test_sweep_with_clusters_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    tokens = 1e6 + np.repeat(rng.normal(size=(50, 2)), 100, axis=0) + 1e-4 * rng.normal(size=(5000, 2))
    assert eps_lower(tokens) == pytest.approx(brute_force(tokens), rel=2.0**-36)


def test_columns_are_split_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = np.random.default_rng(5).normal(size=(300, 8))
    monkeypatch.setattr(separation, "BLOCK_ROWS", 7)
    monkeypatch.setattr(separation, "BLOCK_COLUMNS", 11)
    monkeypatch.setattr(separation, "REFINED", 16)
    assert eps_lower(tokens) == pytest.approx(brute_force(tokens), rel=2.0**-36)


def test_one_hot_tokens_tie_everywhere() -> None:
    assert eps_lower(np.eye(1200)) == pytest.approx(math.sqrt(2), rel=2.0**-36)
    assert eps_lower(np.eye(1200)) <= math.sqrt(2)


def test_padding_is_ignored_whatever_it_holds() -> None:
    X = np.array([[[1.0], [2.0], [np.nan]], [[5.0], [5.0], [5.0]]])
    measured = measure(X, lengths=[2, 1])
    assert (measured.vocabulary, measured.n, measured.d, measured.repeated_within) == (3, 2, 1, None)
    assert measured.eps == pytest.approx(1.0)
    tokens, codes = distinct(X, lengths=[2, 1])
    assert (codes[0, 2], codes[1, 1], codes[1, 2]) == (-1, -1, -1)
    assert tokens[codes[0, :2]].tolist() == [[1.0], [2.0]]


def test_tokens_are_equal_bit_for_bit_and_zero_has_no_sign() -> None:
    tiny = math.nextafter(1.0, 2.0)
    assert measure([[[1.0], [tiny], [0.0], [-0.0]]]).vocabulary == 3
    assert measure([[[1.0], [tiny]]]).eps == pytest.approx(tiny - 1.0)


def test_codes_reproduce_the_tokens() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))[rng.integers(0, 30, (200, 6))]
    tokens, codes = distinct(X)
    np.testing.assert_array_equal(tokens[codes], X)
    assert len(np.unique(tokens, axis=0)) == len(tokens)


def test_a_hash_collision_does_not_merge_tokens() -> None:
    odd = np.random.default_rng(0).integers(0, 2**63, 2, dtype=np.uint64) * 2 + 1
    steps = np.arange(1, 4000, dtype=np.uint64)
    folded = np.stack([steps * odd[1], -steps * odd[0]], axis=1)  # every row has the same linear hash, zero
    rows = (folded ^ (folded >> 32)).view(np.float64)  # folding is its own inverse
    rows = rows[np.isfinite(rows).all(1)]
    assert len(np.unique(separation._row_hashes(rows.view(np.uint64)))) == 1
    tokens, codes = distinct(rows[None])
    assert len(tokens) == len(rows) > 100
    np.testing.assert_array_equal(tokens[codes[0]], rows)


def test_short_numbers_do_not_collide() -> None:
    rows = np.vstack([np.eye(300), np.full((300, 300), 0.25) * np.tri(300)])
    assert len(distinct(rows[None])[0]) == 600
    assert len(np.unique(separation._row_hashes(rows.view(np.uint64)))) == 600  # the fast path was enough


def test_first_repeat_names_sequence_and_places() -> None:
    X = np.arange(12.0).reshape(3, 4, 1)
    X[1, 3] = X[1, 1]
    X[2, 0] = X[2, 1]
    assert measure(X).repeated_within == (1, 1, 3)
    assert measure(X, lengths=[4, 3, 4]).repeated_within == (2, 0, 1)
    assert first_repeat(np.array([[0, -1, -1]])) is None


def test_one_token_is_infinitely_far_from_all_others() -> None:
    assert measure([[[1.0, 1.0]], [[1.0, 1.0]]]).eps == math.inf


def test_order_and_scale_of_the_data() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(5, 4, 3))
    measured, shuffled, scaled = measure(X), measure(rng.permutation(X)[:, ::-1]), measure(X * 1024)
    assert shuffled == measured
    assert scaled.eps == measured.eps * 1024
    assert scaled.r_min == measured.r_min * 1024


@pytest.mark.parametrize(
    ("X", "lengths", "words"),
    [
        ([[[1.0], [np.inf]]], None, "sequence 0, token 1"),
        (np.zeros((2, 0, 3)), None, "empty"),
        ([[[1.0], [2.0]]], [3], "length"),
    ],
)
def test_unreadable_data(X, lengths, words: str) -> None:
    with pytest.raises(OnelayerError, match=words):
        measure(X, lengths)
