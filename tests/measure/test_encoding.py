"""Networks as sequences: nothing is lost of their sizes, and every kind of tensor has its place."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import onelayer
from onelayer.errors import DataError
from onelayer.measure.encoding import COMPONENTS, KINDS, encode
from onelayer.network import Attention, Embedding, Linear, Transformer

AT = {name: i for i, name in enumerate(COMPONENTS)}


@cache
def models() -> list[onelayer.Model]:
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 9, (12, 3)), rng.integers(0, 4, 12)
    X = np.unique(X, axis=0)
    words = onelayer.memorize(X, Y[: len(X)], positions=True, certify=False)
    return [words, onelayer.learner("gd", d=2), onelayer.approximate("mean", n=2, tolerance=0.1)]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["words", "learner", "function"])
def test_one_token_a_tensor_whose_sizes_are_all_parameters(which: int) -> None:
    model = models()[which]
    tokens = onelayer.encode(model)
    names = [name for name, _ in model.transformer.tensors()]
    assert tokens.shape == (len(names), len(COMPONENTS))
    assert tokens[:, AT["size"]].sum() == model.n_parameters
    assert (tokens[:, : len(KINDS)].sum(axis=1) == 1).all()
    assert np.isfinite(tokens).all()
    assert (tokens == encode(model.transformer)).all()


def test_a_layer_of_linear_attention_counts_the_parameters_exactly() -> None:
    """Key 1, query 1, value `size`: the sum over tokens."""
    one, size = np.eye(len(COMPONENTS))[[AT["one"], AT["size"]]]
    for model in models():
        tokens = onelayer.encode(model)
        scores = (tokens @ one) * (tokens[-1] @ one)
        assert scores @ (tokens @ size) == model.n_parameters


def test_components_are_what_they_are_called() -> None:
    W = np.array([[4.0, 0.0], [-0.25, 1.0]])
    heads = Attention(*(np.ones((1, 2, 1)) for _ in range(3)), np.ones((1, 1, 2)))
    network = Transformer(
        heads, Embedding(lift=np.eye(2)), readout=(Linear(np.eye(2), np.zeros(2)), Linear(W, np.zeros(2)))
    )
    token = dict(zip([name for name, _ in network.tensors()], encode(network), strict=True))["readout.1.weight"]
    assert token[AT["readout.weight"]] == 1
    assert [
        token[AT[name]] for name in ("log2 largest weight", "log2 smallest weight", "place", "size", "log2 size")
    ] == [
        2,
        -2,
        1,
        4,
        2,
    ]
    zero = dict(zip([name for name, _ in network.tensors()], encode(network), strict=True))["readout.1.bias"]
    assert zero[AT["log2 largest weight"]] == 0


def test_kinds_that_are_not_known_are_refused_by_name() -> None:
    from onelayer.measure import encoding

    with pytest.raises(DataError, match=r"attention.W_X of shape \(2,\)"):
        encoding._token("attention.W_X", np.ones(2))
