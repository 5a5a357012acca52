"""Lower bounds of least eigenvalues: below the truth for every matrix that is meant, and near it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onelayer_checker.looped import definite
from onelayer_checker.looped.definite import SHARES, U, _checked, gamma, least_eigenvalue

NONE = np.zeros((1, 1))


def test_a_rounding_is_half_a_unit_and_sums_of_them_are_bounded() -> None:
    assert U == 2.0**-53
    for k in (0, 1, 7, 1000, 1 << 40):
        assert Fraction(k, 2**53) / (1 - Fraction(k, 2**53)) <= Fraction(gamma(k))
        assert gamma(k) == 1.01 * (k + 2) * 2.0**-53
    assert gamma((1 << 40) + 1) == np.inf


def test_eigenvalues_are_tried_a_little_below_what_was_computed() -> None:
    assert SHARES == (1e-9, 1e-6, 1e-3, 0.1)


def test_a_number_by_hand() -> None:
    """Of [[4]] and mu = 0 all that is lost are roundings, of the product and of differences."""
    lost = gamma(5) * 4 + 32 * U
    assert -_checked(np.array([[4.0]]), NONE, 0.0) == pytest.approx(lost, rel=1e-9)
    assert _checked(np.array([[1.0]]), NONE, 1.0) == -np.inf  # 0 has no factor
    mu = 1 - 2.0**-20
    E = gamma(5) * 2.0**-20 + 8 * U * (1 + mu)
    assert Fraction(mu) - Fraction(_checked(np.array([[1.0]]), NONE, mu)) == pytest.approx(E + 4 * U, abs=1.1 * U)


def test_a_radius_is_taken_off_with_roundings_of_its_own() -> None:
    A, radius = np.array([[4.0]]), np.array([[1.0]])
    E = 1 + gamma(5) * 4 + 32 * U
    rows = E * (1 + gamma(9))
    assert -_checked(A, radius, 0.0) == rows + 4 * U * rows
    assert -_checked(A, NONE, 0.0) < 1e-14
    assert -_checked(A, np.array([[2.0**60]]), 0.0) == 2.0**60 * (1 + gamma(9)) + 4 * U * 2.0**60


def test_what_is_lost_is_never_nothing() -> None:
    """Numbers so small that their roundings underflow: a little is taken off all the same."""
    tiny = np.array([[2.0**-1070]])
    assert -_checked(tiny, NONE, 0.0) == 2.0**-1000 * (1 + 4 * U)


def test_rows_are_summed_and_the_largest_counts() -> None:
    A = np.diag([4.0, 9.0])
    radius = np.array([[0.0, 0.25], [0.5, 1.0]])
    assert -_checked(A, radius, 0.0) == pytest.approx(1.5, rel=1e-12)
    assert -_checked(A, radius.T, 0.0) == pytest.approx(1.25, rel=1e-12)
    far = np.array([[4.0, 2.0], [2.0, 9.0]])
    sizes = np.abs(np.linalg.cholesky(far)) @ np.abs(np.linalg.cholesky(far)).T
    apart = np.abs(far - np.linalg.cholesky(far) @ np.linalg.cholesky(far).T)
    lost = (apart + gamma(6) * sizes + 8 * U * np.abs(far)).sum(axis=1).max()
    assert -_checked(far, np.zeros((2, 2)), 0.0) == pytest.approx(lost, rel=1e-9)


def test_signs_of_factors_do_not_cancel_in_what_is_lost() -> None:
    A = np.array([[4.0, -2.0, 1.0], [-2.0, 9.0, -3.0], [1.0, -3.0, 16.0]])
    C = np.linalg.cholesky(A - 1.0 * np.eye(3))
    size = np.abs(C) @ np.abs(C).T
    E = np.abs(A - np.eye(3) - C @ C.T) + gamma(7) * size + 8 * U * (np.abs(A) + np.eye(3))
    rows = E.sum(axis=1).max()
    assert 1 - _checked(A, np.zeros((3, 3)), 1.0) == pytest.approx(rows + 4 * U, abs=2.2 * U)
    assert 8 + _checked(A - 9 * np.eye(3), np.zeros((3, 3)), -8.0 + 0.0) <= 0


@pytest.mark.parametrize("factor", [0.0, 1.0, 3.0, -3.0])
def test_nobody_has_to_trust_the_factor(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.linalg, "cholesky", lambda _: np.array([[factor]]))
    assert -_checked(np.array([[4.0]]), NONE, 0.0) == pytest.approx(abs(4 - factor**2), rel=1e-12)


def test_an_eigenvalue_below_zero_is_rounded_as_one_above(monkeypatch: pytest.MonkeyPatch) -> None:
    E = gamma(5) * 4 + 8 * U * (3 + 1)
    assert -1 - Fraction(_checked(np.array([[3.0]]), NONE, -1.0)) == pytest.approx(E + 4 * U, abs=2.2 * U)
    huge = 2.0**40
    E = gamma(5) * huge + 8 * U * huge
    lost = Fraction(-huge) - Fraction(_checked(np.array([[0.0]]), NONE, -huge))
    assert lost == pytest.approx(E + 4 * U * huge, abs=2.2 * U * huge)
    monkeypatch.setattr(np.linalg, "cholesky", lambda _: np.array([[np.nan]]))
    assert _checked(np.array([[4.0]]), NONE, 0.0) == -np.inf


def test_a_matrix_without_factor_or_with_infinite_numbers_has_no_bound() -> None:
    assert _checked(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2)), 0.0) == -np.inf
    assert _checked(np.array([[1.0]]), np.array([[np.inf]]), 0.0) == -np.inf
    for wrong in (np.nan, np.inf, -np.inf):
        assert least_eigenvalue(np.array([[wrong]]), NONE) == -np.inf
        assert least_eigenvalue(np.array([[1.0]]), np.array([[abs(wrong)]])) == -np.inf
        some = np.array([[1.0, 0.0], [0.0, abs(wrong)]])
        assert least_eigenvalue(some, np.zeros((2, 2))) == -np.inf
        assert least_eigenvalue(np.eye(2), some) == -np.inf
    assert least_eigenvalue(np.array([[1.0]]), np.array([[1e307]])) < -9e306


@given(
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-12, 1e-3]),
    st.sampled_from([1e-100, 1.0, 1e100]),
)
@settings(max_examples=60, deadline=None)
def test_the_bound_is_below_the_least_eigenvalue_and_near_it(p: int, seed: int, off: float, scale: float) -> None:
    """Of reflected diagonals, whose eigenvalues are known; the worst of all matrices within the radius."""
    rng = np.random.default_rng(seed)
    diagonal, v = rng.integers(1, 100, p).astype(float), rng.integers(-3, 4, p).astype(float)
    v[0] = v[0] or 1.0
    H = [
        [Fraction(int(i == j)) - 2 * Fraction(v[i] * v[j]) / Fraction(float(v @ v)) for j in range(p)]
        for i in range(p)
    ]
    exact = [[sum(H[i][k] * Fraction(diagonal[k]) * H[k][j] for k in range(p)) for j in range(p)] for i in range(p)]
    A = np.array([[float(u) for u in row] for row in exact]) * scale
    rounding = 1e-15 * np.abs(A)
    radius = rounding + off * scale * np.eye(p)
    found = least_eigenvalue(A, radius)
    assert found <= (diagonal.min() - off) * scale
    assert found >= (diagonal.min() - off - 1e-7 * diagonal.max()) * scale


def test_a_matrix_that_is_not_symmetric_is_as_its_mean() -> None:
    """The matrix that is meant is symmetric: it lies between its two halves."""
    A, radius = np.array([[2.0, 1.0], [0.0, 2.0]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    found = least_eigenvalue(A, radius)
    assert 1.0 - 1e-7 < found < 1.0
    lopsided = least_eigenvalue(np.array([[2.0, 0.5], [0.5, 2.0]]), np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert 1.0 - 1e-7 < lopsided < 1.0


def test_the_mean_of_two_halves_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """So twice a rounding of each number is added to its radius."""
    seen = []
    monkeypatch.setattr(definite, "_checked", lambda A, radius, mu: seen.append((A, radius, mu)) or mu)
    A, radius = np.array([[8.0, -3.0], [-5.0, 8.0]]), np.array([[1.0, 2.0], [4.0, 1.0]])
    assert least_eigenvalue(A, radius) == 4 - 1e-9 * 4
    assert [mu for _, _, mu in seen] == [4 - share * 4 for share in SHARES]
    assert (seen[0][0] == np.array([[8.0, -4.0], [-4.0, 8.0]])).all()
    assert (seen[0][1] == np.array([[1 + 16 * U, 3 + 8 * U], [3 + 8 * U, 1 + 16 * U]])).all()
    seen.clear()
    assert least_eigenvalue(-A, radius) == -12 - 1e-9 * 12


def test_less_is_tried_where_the_nearest_has_no_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definite, "_checked", lambda A, radius, mu: mu if mu < 3.5 else -np.inf)  # noqa: ARG005
    assert least_eigenvalue(np.array([[4.0]]), NONE) == -np.inf
    monkeypatch.setattr(definite, "_checked", lambda A, radius, mu: mu if mu < 3.7 else -np.inf)  # noqa: ARG005
    assert least_eigenvalue(np.array([[4.0]]), NONE) == 3.6
