"""The forward pass against a loop that follows the formula, its masks, its memory, and the trace."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onelayer.network import Attention, Embedding, Grouped, Linear, Transformer
from onelayer.network.blocks import evaluate
from onelayer.network.trace import trace


def random_model(rng: np.random.Generator, heads: int = 2, **attention) -> Transformer:
    d, width, s, q = 3, 5, 2, 2
    shapes = ((heads, width, s), (heads, width, s), (heads, width, s), (heads, s, width))
    W_Q, W_K, W_V, W_O = (rng.standard_normal(shape) for shape in shapes)
    return Transformer(
        Attention(
            W_Q, W_K, W_V, W_O, rng.standard_normal((heads, s)), rng.standard_normal((heads, s)), **attention
        ),
        Embedding(lift=rng.standard_normal((d, width)), bias=rng.standard_normal(width)),
        (
            Linear(rng.standard_normal((width, 6)), rng.standard_normal(6)),
            Linear(rng.standard_normal((6, width)), np.zeros(width)),
        ),
        (
            Linear(rng.standard_normal((width, 8)), rng.standard_normal(8)),
            Grouped(rng.standard_normal((4, 2, 1)), rng.standard_normal(4)),
            Linear(rng.standard_normal((4, q)), rng.standard_normal(q)),
        ),
    )


def by_the_formula(m: Transformer, x: np.ndarray) -> np.ndarray:
    """One sequence, one token and one head at a time."""
    h = x @ m.embedding.lift + m.embedding.bias
    h = np.maximum(h @ m.feedforward[0].weight + m.feedforward[0].bias, 0) @ m.feedforward[1].weight
    a, out = m.attention, []
    for k, token in enumerate(h):
        z = token.copy()
        for i in range(a.heads):
            q = token @ a.W_Q[i] + a.b_Q[i]
            seen = range(k + 1) if a.causal else range(len(h))
            logits = [float(q @ (h[j] @ a.W_K[i] + a.b_K[i])) for j in seen]
            top = max(logits)
            weights = [math.exp(l - top) if a.kind == "softmax" else float(l == top) for l in logits]
            z = z + sum(w * (h[j] @ a.W_V[i]) for j, w in zip(seen, weights, strict=True)) / sum(weights) @ a.W_O[i]
        u = np.maximum(z @ m.readout[0].weight + m.readout[0].bias, 0)
        g = m.readout[1].weight
        v = np.array([u[2 * b] * g[b, 0, 0] + u[2 * b + 1] * g[b, 1, 0] for b in range(len(g))]) + m.readout[1].bias
        out.append(np.maximum(v, 0) @ m.readout[2].weight + m.readout[2].bias)
    return np.array(out)


@pytest.mark.parametrize("kind", ["softmax", "hardmax"])
@pytest.mark.parametrize("causal", [False, True])
def test_follows_the_formula(kind, causal) -> None:
    rng = np.random.default_rng(1)
    model = random_model(rng, kind=kind, causal=causal)
    X = rng.standard_normal((7, 4, 3))
    expected = np.stack([by_the_formula(model, x) for x in X])
    np.testing.assert_allclose(evaluate(model, X), expected, rtol=1e-10, atol=1e-10)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_padding_changes_nothing(seed: int, lengths: list[int]) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    X = rng.standard_normal((len(lengths), 5, 3))
    padded = evaluate(model, X, np.array(lengths))
    for i, k in enumerate(lengths):
        np.testing.assert_allclose(padded[i, :k], evaluate(model, X[i : i + 1, :k])[0], rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10**6), st.permutations(range(5)))
def test_reordering_tokens_reorders_outputs(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    X = rng.standard_normal((2, 5, 3))
    np.testing.assert_allclose(evaluate(model, X[:, order]), evaluate(model, X)[:, order], rtol=1e-9, atol=1e-9)


def test_hardmax_ties_share_the_mass() -> None:
    one, zero = np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    model = Transformer(Attention(zero, one, one, one, kind="hardmax"))
    assert evaluate(model, np.array([[[1.0], [5.0]]])).tolist() == [[[4.0], [8.0]]]


def test_positions_and_tables() -> None:
    zero = np.zeros((1, 2, 1))
    embedding = Embedding(table=np.array([[1.0, 0.0], [2.0, 0.0]]), positions=np.array([[0.0, 10.0], [0.0, 20.0]]))
    model = Transformer(Attention(zero, zero, zero, np.zeros((1, 1, 2))), embedding)
    assert evaluate(model, np.array([[1, 0]])).tolist() == [[[2.0, 10.0], [1.0, 20.0]]]


def test_float32_stays_float32() -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng)
    narrow = Transformer.from_tensors({name: a.astype(np.float32) for name, a in model.tensors()})
    X = rng.standard_normal((9, 4, 3)).astype(np.float32)
    out = evaluate(narrow, X)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, evaluate(model, X.astype(np.float64)), rtol=2e-3, atol=2e-3)


def test_memory_is_bounded() -> None:
    """20,000 sequences of 64 tokens: all their attention weights at once would be 655 MB."""
    rng = np.random.default_rng(4)
    shape = (1, 1, 1)
    model = Transformer(Attention(*(rng.standard_normal(shape) for _ in range(4))))
    X = rng.standard_normal((20_000, 64, 1))
    tracemalloc.start()
    evaluate(model, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes


def test_trace_names_every_value() -> None:
    rng = np.random.default_rng(5)
    model = random_model(rng)
    X = rng.standard_normal((2, 4, 3))
    kept = trace(model, X)
    np.testing.assert_array_equal(kept["output"], evaluate(model, X))
    for head in ("head0", "head1"):
        np.testing.assert_allclose(kept[f"{head}.attention"].sum(-1), 1.0)
        assert kept[f"{head}.logits"].shape == (2, 4, 4)
    assert kept["readout.1"].min() >= 0
    with pytest.raises(KeyError, match="no value 'nothing'"):
        kept["nothing"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attention.W_K": (2, 5, 1)}, "attention.W_K"),
        ({"attention.W_V": (2, 5, 1)}, "attention.W_O"),
        ({"embedding.bias": (4,)}, "embedding.bias"),
        ({"readout.0.weight": (6, 8)}, "readout.0"),
        ({"feedforward.1.weight": (6, 4), "feedforward.1.bias": (4,)}, "layers before it give 4"),
    ],
)
def test_shapes_that_do_not_fit_are_named(change, words) -> None:
    tensors = dict(random_model(np.random.default_rng(6)).tensors())
    with pytest.raises(ValueError, match=words):
        Transformer.from_tensors(tensors | {name: np.zeros(shape) for name, shape in change.items()})


def test_weights_cannot_be_written_to() -> None:
    model = random_model(np.random.default_rng(7))
    with pytest.raises(ValueError, match="read-only"):
        model.attention.W_Q[0] = 0
