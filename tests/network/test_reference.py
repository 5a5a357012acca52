"""Arithmetic with the same bits everywhere, and the forward pass that is made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer.network.arithmetic import exp, multiply, multiply_groups, solve
from onelayer.network.forward import forward
from onelayer.network.reference import evaluate_in_order, is_small
from onelayer.network.weights import Array, Attention, Embedding, Grouped, Kind, Linear, Transformer

WEIGHTS = st.lists(st.sampled_from([0.0, 0.0, 1.0, -0.3, 2.0**-30, 1e7]), min_size=7, max_size=7)


@given(st.lists(WEIGHTS, min_size=1, max_size=9), st.integers(0, 99), st.sampled_from(["float32", "float64"]))
def test_products_are_rounded_and_added_in_order(rows: list[list[float]], seed: int, dtype: str) -> None:
    weight = np.array(rows, dtype)
    h = np.random.default_rng(seed).standard_normal((len(weight), 2, 3)).astype(dtype)
    found = multiply(h, weight)
    for j, a, b in np.ndindex(found.shape):
        total = h.dtype.type(0)
        for k in range(len(weight)):
            total = h.dtype.type(total + h.dtype.type(h[k, a, b] * weight[k, j]))
        assert found[j, a, b] == total
    blocks = multiply_groups(np.concatenate([h, h]), np.stack([weight, weight[::-1]]))
    assert np.array_equal(blocks, np.concatenate([found, multiply(h, weight[::-1])]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_is_within_a_unit_in_the_last_place(dtype: type) -> None:
    x = -np.concatenate([[0.0, 1e-30, 87.3, 103.0, 800.0, np.inf], np.geomspace(1e-9, 745, 20_000)]).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    unit = np.maximum(np.spacing(exact.astype(dtype)), np.finfo(dtype).smallest_subnormal)
    assert (np.abs(exp(x).astype(np.longdouble) - exact) <= unit).all()
    assert exp(x)[0] == 1


def test_sums_go_in_order() -> None:
    h, weight = np.array([[1.0], [1e8], [-1e8]], np.float32), np.ones((3, 1), np.float32)
    assert multiply(h, weight)[0, 0] == 0
    assert multiply(h[::-1], weight)[0, 0] == 1


def test_a_positive_definite_system_is_solved() -> None:
    A = np.random.default_rng(0).standard_normal((3, 4, 4))
    gram, cross = A @ A.swapaxes(1, 2) + np.eye(4), np.arange(24.0).reshape(3, 4, 2)
    found = solve(*(np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in (gram, cross)))
    assert np.allclose(np.moveaxis(found, -1, 0), np.linalg.solve(gram, cross))


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


@pytest.mark.parametrize("learns", [False, True])
def test_small_functions_and_learners_have_the_same_bits_for_any_number_of_inputs(learns: bool) -> None:
    rng = np.random.default_rng(5)
    if learns:
        model = onelayer.learner("gd", d=2, steps=3, dtype="float32")
        given = [rng.uniform(-1, 1, (40, k, d)).astype(np.float32) for k, d in ((4, 2), (4, 1), (2, 2))]
    else:
        model = onelayer.approximate("x*mean(y)", n=3, low=0, high=1, tolerance=0.05)
        given = [rng.random((40, 3, 1)).astype(np.float32)]
    assert is_small(model.transformer)
    whole = model.predict(*given)
    assert np.array_equal(whole, model.predict(*given, path="reference"))
    assert np.array_equal(whole, np.concatenate([model.predict(*(x[i : i + 1] for x in given)) for i in range(40)]))
    assert np.allclose(whole, model.predict(*given, path="dense"), atol=1e-5)


def test_what_is_small_has_few_weights_in_float32() -> None:
    rng = np.random.default_rng(6)
    model = network("softmax", "float32", rng)
    assert is_small(model)
    assert not is_small(network("softmax", "float64", rng))
    assert not is_small(
        replace(model, readout=(Linear(np.zeros((4, 2048), np.float32), np.zeros(2048, np.float32)),))
    )


@pytest.mark.parametrize("kind", ["softmax", "hardmax", "linear", "relu", "mesa"])
def test_bits_do_not_depend_on_the_number_of_sequences(kind: Kind) -> None:
    rng = np.random.default_rng(4)
    model, X = network(kind, "float32", rng), rng.standard_normal((50, 5, 2)).astype(np.float32)
    one_by_one = np.concatenate([evaluate_in_order(model, X[i : i + 1]) for i in range(50)])
    assert np.array_equal(evaluate_in_order(model, X), one_by_one)
