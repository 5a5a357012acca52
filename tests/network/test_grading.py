"""A graded layer is a plain one: the same bits for powers of two, the same real numbers else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer.compile.memorize import memorize
from onelayer.errors import OptionError, PrecisionError
from onelayer.network import Attention, Transformer
from onelayer.network.blocks import evaluate
from onelayer.network.grading import STATEMENT, absorb, powers_of_two


def layer(rng: np.random.Generator, width: int, dtype: str) -> Transformer:
    W_Q, W_K, W_V = rng.normal(size=(3, 2, width, 3)).astype(dtype)
    return Transformer(Attention(W_Q, W_K, W_V, rng.normal(size=(2, 3, width)).astype(dtype)))


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(-12, 12), min_size=1, max_size=5),
    st.sampled_from(["float32", "float64"]),
)
def test_powers_of_two_give_the_same_bits(seed: int, grades: list[int], dtype: str) -> None:
    """Queries, keys and values of graded tokens are those of plain tokens under absorbed weights, bit for bit."""
    rng = np.random.default_rng(seed)
    plain = layer(rng, len(grades), dtype)
    absorbed, X = absorb(plain, grades).attention, rng.normal(size=(7, len(grades))).astype(dtype)
    graded = X * powers_of_two(grades, dtype)
    for name in ("W_Q", "W_K", "W_V"):
        for mine, theirs in zip(getattr(absorbed, name), getattr(plain.attention, name), strict=True):
            assert (X @ mine == graded @ theirs).all()
    assert (absorbed.W_O == plain.attention.W_O).all()


def test_other_factors_are_equal_in_real_numbers_only() -> None:
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=(200, 4)).astype(np.float32)
    by = np.array([1, 3, 5, 7], np.float32)
    first, second = X @ (by[:, None] * W), (X * by) @ W
    assert (first != second).any()
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)


def test_zero_grades_change_nothing_and_grades_add_up() -> None:
    plain = layer(np.random.default_rng(1), 3, "float64")
    X = np.random.default_rng(2).normal(size=(1, 4, 3))
    assert (evaluate(absorb(plain, [0, 0, 0]), X) == evaluate(plain, X)).all()
    twice, once = absorb(absorb(plain, [1, -2, 3]), [4, 0, -3]), absorb(plain, [5, -2, 0])
    assert (evaluate(twice, X) == evaluate(once, X)).all()
    assert (evaluate(once, X) != evaluate(plain, X)).any()


def test_what_leaves_the_range_is_refused() -> None:
    plain = layer(np.random.default_rng(1), 2, "float32")
    with pytest.raises(OptionError, match="grade for every component; 1 grades for a stream of width 2"):
        absorb(plain, [1])
    with pytest.raises(OptionError, match=r"grade 140 of component 1"):
        absorb(plain, [0, 140])
    large = replace(plain.attention, W_Q=plain.attention.W_Q * np.float32(1e30))
    with pytest.raises(PrecisionError, match=r"W_Q times 2\^100 at component 1"):
        absorb(Transformer(large), [0, 100])


@pytest.mark.parametrize("mapping", ["temperature", "shared_query", "lattice", "averages"])
@settings(max_examples=8)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(-40, 20), min_size=1, max_size=3),
    st.sampled_from(["float32", "float64"]),
)
def test_the_compiler_has_this_symmetry(mapping: str, seed: int, grades: list[int], dtype: str) -> None:
    """Components scaled by powers of two leave the margin the same to the last bit."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(8, 3, len(grades))), rng.integers(0, 3, (8, 3))
    margins = []
    for scaled in (X, X * np.exp2(grades)):
        model = memorize(scaled, Y, mapping=mapping, dtype=dtype, certify=False)
        margins.append(model.ledger.number("margin"))
        assert (model.predict(scaled) == Y).all()
    assert margins[0] == margins[1]


def test_directions_drawn_for_the_tokens_as_they_are_do_not_have_it() -> None:
    """`rank_one` chooses among directions of the tokens as they come: another one is best for scaled tokens."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 3, 3)), rng.integers(0, 3, (8, 3))
    plain, scaled = (
        memorize(X * np.exp2(grades), Y, mapping="rank_one", dtype="float64", certify=False)
        for grades in ([0, 0, 0], [0, -20, -40])
    )
    assert plain.ledger.number("margin") != scaled.ledger.number("margin")


def test_statement() -> None:
    assert STATEMENT.standing == "ours"


def test_absorb_is_public_and_documented() -> None:
    assert onelayer.absorb is absorb
    assert "absorb" in onelayer.__all__
    page = Path(__file__).parents[2] / "docs" / "reference.md"
    assert ".. autofunction:: absorb\n" in page.read_text(encoding="utf-8")


def test_a_network_of_several_layers_has_no_one_grading() -> None:
    one = layer(np.random.default_rng(0), 2, "float64")
    with pytest.raises(OptionError, match=r"\[grading\] needs one layer; .*1 further layer.*\. Grade"):
        absorb(replace(one, further=(one,)), [0, 1])
