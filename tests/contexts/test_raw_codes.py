"""Codes of tokens of two components: few steps, and more where tokens, or whole sequences, would meet."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onelayer
from onelayer import certify
from onelayer.contexts.cuts import meeting
from onelayer.contexts.quantiser import quantise, told_apart
from onelayer.problems.sequences import read_sequences

memorize = partial(onelayer.memorize, certify=False)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 5), st.booleans(), st.booleans())
def test_after_steps_where_they_meet_different_tokens_and_sequences_differ(seed, N, n, ordered, ragged) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (N, n, 2)).astype(np.float32)
    X[N // 2 :] = X[: N - N // 2] + (rng.random((N - N // 2, n, 2)) < 0.1)
    sequences = read_sequences(X, rng.integers(1, n + 1, N) if ragged else None)
    flat, valid = X.reshape(-1, 2), sequences.valid()
    coarse = quantise(flat, 3, np.dtype("float32"))
    met = meeting(coarse.marks(flat).reshape(N, n), valid, ordered)
    assert valid is None or valid.ravel()[met].all()
    finer = told_apart(coarse, flat, met)
    codes = finer.levels(flat).reshape(N, n, 2)
    rows = []
    for i in range(N):
        own = range(n if valid is None else int(valid[i].sum()))
        tokens, steps = ([tuple(part[i, k].tolist()) for k in own] for part in (X, codes))
        assert len(set(tokens)) == len(set(steps))
        rows.append(tuple(tuple(part if ordered else sorted(part)) for part in (tokens, steps)))
    assert len({tokens for tokens, _ in rows}) == len({steps for _, steps in rows})


@pytest.mark.parametrize(("n", "positions"), [(2, False), (2, True), (16, False), (16, True)])
def test_two_components_cost_what_one_and_four_do(n, positions) -> None:
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 4, (8000 // n, n))
    sizes = []
    for d in (1, 2, 4):
        X = rng.standard_normal((*Y.shape, d)).astype(np.float32)
        model = memorize(X, Y, positions=positions)
        np.testing.assert_array_equal(model.predict(X), Y)
        sizes.append(model.n_parameters)
    assert max(sizes) < 2.5 * min(sizes)


def test_two_components_are_proved() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((200, 8, 2)).astype(np.float32), rng.integers(0, 4, (200, 8))
    model = memorize(X, Y)
    assert model.ledger["mapping"] == "lattice"
    assert any(claim["arith"] == "float32" for claim in certify(model, X, Y).claims)
