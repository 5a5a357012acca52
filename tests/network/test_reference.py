"""Arithmetic with the same bits everywhere, and the forward pass that is made of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer.network.arithmetic import add_product, exp, multiply, solve
from onelayer.network.forward import forward
from onelayer.network.reference import evaluate_in_order
from onelayer.network.weights import Array, Attention, Embedding, Grouped, Kind, Linear, Transformer

SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60)


def nearest(exact: Fraction) -> np.float32:
    """The number of float32 nearest to a fraction, of two the even one."""
    guess = np.float32(float(exact))
    near = [np.nextafter(guess, np.float32(side)) for side in (-np.inf, np.inf)]
    return min([guess, *near], key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


@given(SINGLES, SINGLES, SINGLES)
def test_a_product_is_added_with_one_rounding(a: float, b: float, c: float) -> None:
    found = add_product(*(np.array([x], np.float32) for x in (c, a, b)))[0]
    assert found == nearest(Fraction(a) * Fraction(b) + Fraction(c))


def test_two_roundings_would_be_wrong_here() -> None:
    a, b, c = (np.array([x], np.float32) for x in (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60))
    exact = Fraction(float(a[0])) ** 2 + Fraction(2) ** -60
    assert add_product(c, a, b)[0] == nearest(exact) != np.float32(float(a[0]) ** 2 + float(c[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_is_within_a_unit_in_the_last_place(dtype: type) -> None:
    x = -np.concatenate([[0.0, 1e-30, 87.3, 103.0, 800.0, np.inf], np.geomspace(1e-9, 745, 20_000)]).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    unit = np.maximum(np.spacing(exact.astype(dtype)), np.finfo(dtype).smallest_subnormal)
    assert (np.abs(exp(x).astype(np.longdouble) - exact) <= unit).all()
    assert exp(x)[0] == 1


def test_sums_go_in_order() -> None:
    h, weight = np.array([[1.0, 1e8, -1e8]], np.float32), np.ones((3, 1), np.float32)
    assert multiply(h, weight)[0, 0] == 0
    assert multiply(h[:, ::-1], weight)[0, 0] == 1


def test_a_positive_definite_system_is_solved() -> None:
    A = np.random.default_rng(0).standard_normal((3, 4, 4))
    gram, cross = A @ A.swapaxes(1, 2) + np.eye(4), np.arange(24.0).reshape(3, 4, 2)
    assert np.allclose(solve(gram, cross), np.linalg.solve(gram, cross))


def network(kind: Kind, dtype: str, rng: np.random.Generator, **options: object) -> Transformer:
    def draw(*shape: int) -> Array:
        return (rng.standard_normal(shape) / 2).astype(dtype)

    heads = {name: draw(2, 4, 3) for name in ("W_Q", "W_K", "W_V")} | {"W_O": draw(2, 3, 4)}
    own = {"ridge": np.array([0.5, 1.0], dtype)} if kind == "mesa" else {"b_Q": draw(2, 3), "b_K": draw(2, 3)}
    attention = Attention(**heads, **own, kind=kind, **options)  # type: ignore[arg-type]
    readout = (Linear(draw(4, 6), draw(6)), Grouped(draw(3, 2, 2), draw(6)), Grouped(draw(1, 6, 5), draw(5)))
    return Transformer(
        attention,
        Embedding(draw(2, 4), bias=draw(4)),
        (Linear(draw(4, 5), draw(5)), Linear(draw(5, 4), draw(4))),
        readout,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["softmax", "hardmax", "linear", "relu", "mesa"])
def test_it_is_the_forward_pass_up_to_rounding(kind: Kind, causal: bool, dtype: str) -> None:
    rng = np.random.default_rng(3)
    options = {"mean": True} if kind == "linear" else {"window": 2} if kind == "relu" else {}
    model = network(kind, dtype, rng, causal=causal, **options)
    X, lengths = rng.standard_normal((7, 5, 2)).astype(dtype), np.array([5, 1, 2, 3, 4, 5, 5])
    found, expected = evaluate_in_order(model, X, lengths), forward(model, X, lengths)
    inside = np.arange(5) < lengths[:, None]
    assert found.dtype == dtype
    assert np.allclose(
        found[inside],
        expected[inside],
        rtol=1e-4 if dtype == "float32" else 1e-12,
        atol=1e-4 if dtype == "float32" else 1e-12,
    )


def test_bits_do_not_depend_on_the_number_of_sequences() -> None:
    rng = np.random.default_rng(4)
    model, X = network("softmax", "float32", rng), rng.standard_normal((50, 5, 2)).astype(np.float32)
    one_by_one = np.concatenate([evaluate_in_order(model, X[i : i + 1]) for i in range(50)])
    assert np.array_equal(evaluate_in_order(model, X), one_by_one)
