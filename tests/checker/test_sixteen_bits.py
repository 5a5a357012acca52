"""Claims in float16 and bfloat16: what is a number of them, what is exact in them, and what may be claimed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker import Claim
from onelayer_checker.core.averages import Totals, are_whole, averaged_exactly, weighed_alike
from onelayer_checker.core.balls import (
    ARITHMETICS,
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    NORMAL,
    REAL,
    Ball,
    around,
    dot,
    exact,
    guarded,
    linear,
    softmax,
)
from onelayer_checker.core.claims import IN_SMALL, SMALL
from onelayer_checker.core.exactness import is_number
from onelayer_checker.core.files import Malformed
from onelayer_checker.search.builder import MOST_OPEN, Builder
from onelayer_checker.search.parts import Rows
from onelayer_checker.search.sums import Sums
from tests.proofs.theorems import FORMATS

HALVES = [FLOAT16, BFLOAT16]
small = pytest.mark.parametrize("A", HALVES, ids=lambda A: A.name)


@pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)
def test_numbers_are_those_of_the_format(A) -> None:
    """Against the definition over fractions, at the edges of bits and of the range; of real, all are."""
    rng, bits = np.random.default_rng(3), 53 if A.u < 2.0**-50 else round(-np.log2(A.u))
    scale = 2.0 ** np.array([0, 3, -9, -14, -20, -24, -25, 14], float)
    drawn = [np.outer(rng.integers(-(2**b), 2**b, 60), scale).ravel() for b in (bits - 1, bits, bits + 1)]
    x = np.concatenate([*drawn, np.array([0.0, -0.0, 2.0**-133, 2.0**-134, 2.0**-149, 2.0**-1074, 3 * 2.0**-134])])
    found = is_number(x, A)
    if A.u < 2.0**-50:
        assert found.all()
        return
    x, found = x[np.abs(x) < 1.9 * A.big], found[np.abs(x) < 1.9 * A.big]
    assert found.tolist() == [FORMATS[A.name].number(Fraction(value)) for value in x.tolist()]
    assert found.any()
    assert not found.all()
    with np.errstate(over="ignore"):
        assert not is_number(np.array([4 * A.big * 1.5, 1e300, np.nan]), A).any()


def test_the_ends_of_a_token_are_numbers_of_its_own_format() -> None:
    """Between two numbers of the format rounding stays; of 16 bits nothing is said."""
    for A, wide in ((FLOAT32, False), (FLOAT16, True), (BFLOAT16, True)):
        assert (around(np.array([0.5]), 2.0**-9, A).r[0] > 2.0**-9) == wide


@small
def test_means_of_a_power_of_two_of_whole_numbers_are_exact(A) -> None:
    """In every order, rounded after each operation, weights before or after the sum."""
    rng, f = np.random.default_rng(1), {"float16": np.float16}.get(A.name)
    for n in (1, 2, 8, 64):
        most = int(A.whole) // n
        v = rng.integers(-most + 1, most, (20, n, 3)).astype(float)
        mean = averaged_exactly(Totals.of(exact(v)), n, A)
        assert mean is not None
        assert not mean.r.any()
        assert (mean.m == v.mean(axis=1)).all()
        if f is None:
            continue
        for order in (rng.permutation(n) for _ in range(3)):
            terms, whole = (v[:, order] / n).astype(f), v[:, order].astype(f)
            one, other = np.zeros((20, 3), f), np.zeros((20, 3), f)
            for k in range(n):
                one, other = one + terms[:, k], other + whole[:, k]
            assert (one == mean.m).all()
            assert (other / f(n) == mean.m).all()


@small
def test_means_that_might_be_rounded_are_not_called_exact(A) -> None:
    def known(v, n: int, r=0.0) -> bool:
        y = Ball(np.array(v, float)[None, :, None], np.full((1, len(v), 1), r))
        return averaged_exactly(Totals.of(y), n, A) is not None

    half = A.whole / 2
    assert known([1.0, 2.0], 2)
    assert not known([1.0, 2.0, 3.0], 3)  # 1/3 is rounded
    assert not known([1.0, 0.5], 2)  # no whole number
    assert not known([1.0, 2.0], 2, 2.0**-30)  # not known
    assert known([half - 1, half], 2)
    assert not known([half, half], 2)  # at the limit nothing is known
    assert not known([half, -half], 2)  # a partial sum, not the sum
    n = 2 * int(A.whole)
    assert known([0.0] * (n // 2), n // 2)
    assert not known([0.0] * n, n)  # so many ones may not add up to n
    assert are_whole(exact(np.array([1.0, -3.0])))
    assert not are_whole(Ball(np.ones(1), np.ones(1)))
    assert not Totals(np.ones(1), np.ones(1), np.zeros(1), 1.0).whole


def test_what_is_flushed_counts_beside_what_overflows() -> None:
    """In float16 the smallest normal number is no speck: many of them reach the largest."""
    A, r = FLOAT16, np.array([FLOAT16.big / 8, FLOAT16.big / 9])
    assert guarded(r, np.ones(2), A).tolist() == [np.inf, r[1]]
    assert guarded(r[1:], np.ones(1), A).tolist() == [r[1]]
    assert guarded(r[1:], np.full(1, A.big), A).tolist() == [np.inf]
    for k, known in ((1, True), (1 << 13, False)):
        x, W = exact(np.full((1, k), 0.5)), np.full((k, 1), 2.0**-13)
        W[0] = 2.0**11
        assert np.isfinite(linear(x, W, 0.0, A).r).all() == known
        assert np.isfinite(linear(x, W, 0.0, BFLOAT16).r).all() == (k == 1)  # too many roundings
    lost = 4 * (1 + 1) * (A.tiny + NORMAL)
    for reach, known in ((0.9, True), (1.1, False)):
        far = exact(np.full((1, 1), reach * A.big / 8 / lost))
        faint = exact(np.full((1, 1), A.tiny))
        assert np.isfinite(dot(faint, far, A).r).all() == known
        total = Totals(far.m[0], far.m[0], np.zeros(1), float(far.m[0, 0]))
        assert np.isfinite(weighed_alike(faint[0], total, 1, A, 0).r).all() == known


def test_only_stored_answers_are_claimed_in_sixteen_bits() -> None:
    assert SMALL == ("float16", "bfloat16")
    bounds = {"memorizes": ["eps"], "rejects": ["eps"], "argmax": ["margin"], "robust": ["radius", "eps"]}
    for type_, numbers in bounds.items():
        for arith in ("float32", *SMALL):
            entry = dict.fromkeys(numbers, (0.25).hex()) | {"type": type_, "arith": arith, "scope": "token"}
            if arith == "float32" or type_ in IN_SMALL:
                assert Claim.read(entry).arith == arith
            else:
                with pytest.raises(Malformed, match=f"in {arith}, only memorizes, argmax, rejects may be claimed"):
                    Claim.read(entry)


def test_sums_that_no_choice_closes_are_evaluated() -> None:
    """Few sums of tables that are never below 0; more, or some below 0, are gated by choices."""

    def pivots(columns: int, least: float, slot: int | None = None) -> list[int]:
        table = np.full((3, columns), 2.0)
        table[0, 0], table[-1] = least, 0.0
        rows = [Rows(by, table, np.abs(table), 1, True, True) for by in (1, 2)]
        weight = np.zeros((0 if slot is None else 1, columns))
        return Builder(REAL).pivots(Sums.of(rows, slot, weight, np.zeros(columns), []))

    assert pivots(MOST_OPEN, 0.0) == []
    assert pivots(MOST_OPEN + 1, 0.0) == [1, 2]
    assert pivots(MOST_OPEN, -1.0) == [1, 2]
    assert pivots(MOST_OPEN, 0.0, slot=0) == [1, 2]


def test_softmax_in_sixteen_bits_is_wide_but_sound() -> None:
    """Logits one apart: e^-1 / (1 + e^-1) is in the ball, and float16 has the narrower one."""
    x = exact(np.array([[0.0, -1.0]]))
    radii = []
    for A in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16):
        p = softmax(x, True, A)
        assert np.abs(p.m[0, 1] - 1 / (1 + np.e)) <= p.r[0, 1] + 1e-15
        radii.append(float(p.r[0, 1]))
    assert radii == sorted(radii)
    assert replace(FLOAT16, name="other") != FLOAT16
