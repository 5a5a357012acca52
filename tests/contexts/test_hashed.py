"""Codes of long sequences, of sequences of different lengths in order, of many words and of wide tokens."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer import certify
from onelayer.contexts import hashed, lattice, raw_codes
from onelayer.contexts.stream import open_stream
from onelayer.gadgets.stacks import layers_of
from onelayer.network import Transformer
from onelayer.network.blocks import apply_stack, evaluate
from onelayer.problems.sequences import read_sequences

memorize = partial(onelayer.memorize, certify=False)
FLOAT32 = np.dtype("float32")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def contexts(X, lengths=None, *, positions=True, seed=0, dtype=FLOAT32, attempt=0):
    sequences = read_sequences(X, lengths)
    return lattice.construct(sequences, open_stream(sequences, dtype, positions), 6, seed, attempt)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 20, 300, 1500]), *(st.booleans() for _ in range(3)))
def test_layers_compute_the_hashes(seed, n, sink, places, steep) -> None:
    rng = np.random.default_rng(seed)
    top = hashed.raw_values(n, 2.0**-24, sink, places)
    hashes = hashed.draw_hashes(
        n, np.full(6, top), FLOAT32, rng, places=places, sink=sink, stays=True, wide=False, steep=steep
    )
    raw = rng.integers(0, top + 1, (n, 6)).astype(np.float32)
    z = hashes.shift(raw)
    marked = np.column_stack([z, np.arange(n) == 0]).astype(np.float32) if sink else z
    found, codes = apply_stack(hashes.gadget.layers(), marked), hashes.codes(z)
    np.testing.assert_array_equal(hashes.gadget.search(marked), found)
    first = (np.arange(n) == 0)[:, None] & sink
    np.testing.assert_array_equal(found[:, :6], np.where(first, 0, codes))
    np.testing.assert_array_equal(found[:, -6:], z @ hashes.own)
    if sink:
        np.testing.assert_array_equal(found[:, 6:12], np.where(first, codes, 0))


def test_steep_hashes_change_from_value_to_value(rng) -> None:
    hashes = hashed.draw_hashes(
        2, np.full(6, 1 << 15), FLOAT32, rng, places=False, sink=False, stays=True, wide=False, steep=True
    )
    z = np.tile(np.arange(1 << 15, dtype=np.float64)[:, None], 6)
    codes = hashes.codes(z)
    assert np.diff(codes, axis=0).all()
    assert np.diff(codes + z @ np.diag(np.diag(hashes.own)), axis=0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 4))
def test_sequences_of_different_lengths_part_in_order(seed, n, vocabulary) -> None:
    rng = np.random.default_rng(seed)
    X = sorted({tuple(rng.integers(0, vocabulary, rng.integers(1, n + 1)).tolist()) for _ in range(25)})
    c = contexts([list(x) for x in X] + [[0] * n, [0]], seed=seed % 7)
    different = {(k, tuple(x)) for x in [*X, (0,) * n, (0,)] for k in range(len(x))}
    assert len(np.unique(c.coordinates, axis=0)) == len(different)


def test_long_sequences_part_by_a_single_exchange(rng) -> None:
    X = np.tile(rng.integers(0, 50, 1000), (150, 1))
    for i in range(1, len(X)):
        j, k = rng.choice(1000, 2, replace=False)
        X[i, j], X[i, k] = X[0, k], (X[0, j] + 1) % 50
    c = contexts(X)
    assert len(np.unique(c.coordinates[::1000], axis=0)) == len(np.unique(X, axis=0))


@pytest.mark.parametrize(("positions", "lengths"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("n", [1, 9])
def test_numbered_words_have_the_stated_contexts(rng, monkeypatch, n, lengths, positions) -> None:
    monkeypatch.setattr(raw_codes, "LARGE_VOCABULARY", 8)
    X = rng.integers(0, 500, (50, n))
    long = rng.integers(1, n + 1, len(X)) if lengths else None
    sequences = read_sequences(X, long)
    c = contexts(X, long, positions=positions)
    assert c.embedding.table.shape[1] == 1 + positions
    out = evaluate(
        Transformer(c.attention, c.embedding, layers_of(c.feedforward), (c.bottleneck,), c.channels),
        sequences.tokens,
        long,
    )
    valid = sequences.valid()
    flat = out.reshape(-1, 6) if valid is None else out[valid]
    assert np.abs(flat - c.coordinates).max() <= c.radius < 0.25


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("n", [500, 512, 1000, 4096])
def test_long_sequences_are_stored_in_float32(rng, n, positions) -> None:
    N = 3 if n < 2000 else 1
    X, Y = rng.standard_normal((N, n, 4)).astype(np.float32), rng.integers(0, 9, (N, n))
    model = memorize(X, Y, positions=positions)
    assert (model.ledger["mapping"], model.ledger["dtype"], model.ledger["attempts"]) == ("lattice", "float32", 1)
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)
    if n == 512:
        assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)


def test_long_texts_of_different_lengths_are_stored_in_float32(rng) -> None:
    lengths = rng.integers(3, 200, 30)
    X = [rng.integers(0, 900, length).tolist() for length in lengths]
    Y = [rng.integers(0, 5, length).tolist() for length in lengths]
    model = memorize(X, Y, positions=True)
    assert (model.ledger["mapping"], model.ledger["dtype"]) == ("lattice", "float32")
    assert [list(a) for a in model.predict(X, path="dense")] == Y
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)


@pytest.mark.parametrize("positions", [False, True])
def test_a_large_vocabulary_costs_a_number_a_word(rng, positions) -> None:
    X, Y = rng.integers(0, 10**6, (500, 16)), rng.integers(0, 100, (500, 16))
    model = memorize(X, Y, positions=positions)
    assert model.transformer.embedding.table.shape[1] == 1 + positions
    for path in ("dense", "fast"):
        np.testing.assert_array_equal(model.predict(X, path=path), Y)
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)


def test_wide_tokens_cost_a_number_a_component(rng) -> None:
    X, Y = rng.standard_normal((100, 16, 768)).astype(np.float32), rng.integers(0, 100, (100, 16))
    model = memorize(X, Y)
    assert model.n_parameters < 30 * 768
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)


def test_wide_tokens_that_differ_in_one_component_are_told_apart() -> None:
    X = np.zeros((300, 2, 300), np.float32)
    X[np.arange(300), 0, np.arange(300)] = 1.0
    Y = np.stack([np.arange(300), np.arange(300) + 300], axis=1)
    model = memorize(X, Y, dtype="float32")
    np.testing.assert_array_equal(model.predict(X), Y)
