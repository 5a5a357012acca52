"""Tokens of one component: thresholds that a row emits, one number a value, and neighbours of the last place."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer import certify
from onelayer.contexts.hashed import draw_hashes
from onelayer.contexts.number_line import number_line
from onelayer.contexts.stream import open_stream
from onelayer.network import Attention, Transformer
from onelayer.network.blocks import apply_stack
from onelayer.network.forward import embed
from onelayer.problems.sequences import read_sequences

memorize = partial(onelayer.memorize, certify=False)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["normal", "whole", "wide", "positive"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_layers_compute_the_codes(seed, kind, ragged, coarse, shared) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((900, 4, 1))
    X = {"normal": X, "whole": np.rint(500 * X), "wide": X**3, "positive": np.exp(X)}[kind].astype(np.float32)
    sequences = read_sequences(X, rng.integers(1, 5, 900) if ragged else None)
    stream = open_stream(sequences, np.dtype("float32"), positions=True)
    line = number_line(sequences, stream, 6, 256, rng, coarse, shared)
    assert line is not None
    options = {"places": True, "sink": ragged, "stays": True, "wide": False}
    hashes = draw_hashes(4, line.top, stream.dtype, rng, **options)
    embedding, (ranks,) = line.network(hashes)
    width = embedding.lift.shape[1]
    unused = Attention(*(np.zeros(shape, np.float32) for shape in [(1, width, 1)] * 3 + [(1, 1, width)]))
    embedded = embed(Transformer(unused, embedding, readout=()), sequences.tokens)
    z = apply_stack(ranks.layers(), embedded)
    np.testing.assert_array_equal(ranks.search(embedded), z)
    valid = np.ones((900, 4), bool) if not ragged else sequences.valid()
    np.testing.assert_array_equal(z[valid][:, :6], hashes.shift(line.values)[valid])


def test_few_values_and_several_components_have_no_line(rng) -> None:
    for shape in ((100, 4, 1), (1000, 4, 2)):
        sequences = read_sequences(rng.standard_normal(shape).astype(np.float32), None)
        stream = open_stream(sequences, np.dtype("float32"), positions=False)
        assert number_line(sequences, stream, 6, 256, rng) is None


@pytest.mark.parametrize("positions", [False, True])
def test_far_fewer_numbers_than_values_tell_contexts_apart(rng, positions) -> None:
    X, Y = rng.standard_normal((2000, 8, 1)).astype(np.float32), rng.integers(0, 2, (2000, 8))
    model = memorize(X, Y, positions=positions)
    assert (model.ledger["mapping"], model.ledger["dtype"]) == ("lattice", "float32")
    assert model.ledger["coded"] < Y.size / 20
    assert model.n_parameters < Y.size
    for path in ("dense", "fast"):
        np.testing.assert_array_equal(model.predict(X, path=path), Y)
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)


def test_what_rejects_unknown_inputs_knows_every_number(rng) -> None:
    X, Y = rng.standard_normal((600, 4, 1)).astype(np.float32), rng.integers(0, 2, (600, 4))
    model = memorize(X, Y, default=-1)
    assert model.ledger["mapping"] == "lattice"
    assert model.ledger["coded"] == len(np.unique(X))
    np.testing.assert_array_equal(model.predict(X), Y)
    assert (model.predict(X + np.float32(1e-3)) == -1).mean() > 0.99


def test_values_one_unit_in_the_last_place_apart(rng) -> None:
    pairs = np.sort(rng.uniform(1, 2, 2000)).astype(np.float32)[::2]
    X = np.stack([pairs, np.nextafter(pairs, np.float32(3))], axis=1)[..., None]
    Y = rng.integers(0, 9, X.shape[:2])
    model = memorize(X, Y, dtype="float32")
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)
