"""Attention first for any number of tokens: the code of a token's cell, and the code of the others."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onelayer.errors import OptionError
from onelayer.functions import attention_first
from onelayer.functions.attention_first import code
from onelayer.functions.mean_universality import coefficient, gap_code, heads
from onelayer.network import Transformer
from onelayer.network.blocks import evaluate

WIDTH = Fraction(1, 200)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_network_writes_code_and_distance_to_the_mean_at_every_token(n: int) -> None:
    X = np.random.default_rng(n).uniform(-1, 1, (100, n))
    found = evaluate(Transformer(heads(n, 3, 240.0).attention()), X[:, :, None])[:, :, 0]
    away = np.abs(found - code(X, 3) - (X - X.mean(1, keepdims=True)))
    assert np.median(away) < 0.02
    assert np.quantile(away, 0.75) < 0.2


def test_two_tokens_are_the_heads_of_attention_first() -> None:
    """Of which opposite slopes are the same head, seen from the other side."""
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    streams = [
        evaluate(Transformer(made.attention()), X[:, :, None])
        for made in (heads(2, 2, 40.0), attention_first.heads(2, 40.0))
    ]
    np.testing.assert_allclose(streams[0], streams[1], atol=1e-10)


def test_weights_of_opposite_slopes_cancel() -> None:
    made = heads(4, 2, 20.0)
    assert made.weight.sum() == pytest.approx(-1, abs=1e-12)
    assert made.slope @ made.weight != 0


@given(st.lists(st.floats(1.0, 3.0), min_size=1, max_size=3), st.floats(1.5, 3.0))
@settings(max_examples=30)
def test_coefficients_are_those_of_the_logarithm(gaps: list[float], b: float) -> None:
    most = {1: 40, 2: 25, 3: 14}[len(gaps)]
    terms = [k for k in product(range(most), repeat=len(gaps)) if any(k)]
    total = sum(float(coefficient(k)) * math.exp(-b * float(np.dot(k, gaps))) for k in terms)
    assert total == pytest.approx(math.log1p(sum(math.exp(-b * gap) for gap in gaps)), rel=1e-3)


def places(gaps: tuple[Fraction, ...]) -> list[tuple[tuple[int, ...], Fraction]]:
    return [
        (k, sum((c * g for c, g in zip(k, gaps, strict=True)), Fraction(0)))
        for k in product(range(9), repeat=len(gaps))
        if any(k)
    ]


def good(gaps: tuple[Fraction, ...]) -> bool:
    """Outside of the set of small measure that the proof leaves out."""
    units = [tuple(int(i == j) for j in range(len(gaps))) for i in range(len(gaps))]
    return all(
        k == unit or abs(place - gap) >= (sum(k) + 2) * WIDTH
        for k, place in places(gaps)
        for unit, gap in zip(units, gaps, strict=True)
    )


fraction = st.integers(300, 1900).map(lambda i: Fraction(i, 1000) + Fraction(1, 7919))


@given(st.tuples(fraction, fraction).map(sorted), st.integers(-40, 40), st.integers(-40, 40))
@settings(max_examples=60)
def test_equal_codes_mean_equal_gaps_within_a_cell(gaps: list[Fraction], first: int, second: int) -> None:
    moved = sorted((gaps[0] + Fraction(first, 2000), gaps[1] + Fraction(second, 2000)))
    assume(good(tuple(gaps)) and good(tuple(moved)))
    if gap_code(tuple(gaps), WIDTH) == gap_code(tuple(moved), WIDTH):
        assert all(abs(a - b) <= WIDTH for a, b in zip(gaps, moved, strict=True))


def test_a_single_gap_and_its_multiples() -> None:
    """log(1 + x) = x - x^2/2 + x^3/3 - ...: cells of 1/2, 1, 3/2 and 2."""
    wanted = {0: Fraction(1), 1: Fraction(-1, 2), 2: Fraction(1, 3), 3: Fraction(-1, 4)}
    assert gap_code((Fraction(49, 100),), Fraction(1, 2)) == wanted


def test_what_has_no_code_is_refused() -> None:
    for gaps, width in (((), WIDTH), ((Fraction(0),), WIDTH), ((Fraction(1),), Fraction(0))):
        with pytest.raises(OptionError, match="mean_universality"):
            gap_code(gaps, width)
    with pytest.raises(OptionError, match="n=1"):
        heads(1, 2, 20.0)
