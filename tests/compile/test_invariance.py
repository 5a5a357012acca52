"""Recall again, or a refusal by name, whatever is done to the data: permuted, translated, rescaled, repeated."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer import HypothesisError

memorize = partial(onelayer.memorize, certify=False)

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(1, 5))


def recalls_or_refuses(X, Y, lengths=None, **options) -> str:
    """'recalled', or the statement that refused."""
    try:
        model = memorize(X, Y, lengths=lengths, **options)
    except HypothesisError as refusal:
        return refusal.statement
    inside = np.ones(Y.shape[:2], bool) if lengths is None else np.arange(Y.shape[1]) < np.asarray(lengths)[:, None]
    if np.ndim(Y) == 1:
        inside = slice(None)
    np.testing.assert_array_equal(model.predict(X, lengths)[inside], Y[inside])
    return "recalled"


def generic(seed: int, shape: tuple[int, int, int]):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal(shape), rng.integers(0, 5, shape[:2])


@given(seeds, shapes)
def test_permuting_tokens_permutes_answers(seed, shape) -> None:
    rng, X, Y = generic(seed, shape)
    model = memorize(X, Y)
    order = rng.permutation(shape[1])
    np.testing.assert_array_equal(model.predict(X[:, order]), Y[:, order])
    assert recalls_or_refuses(X[:, order], Y[:, order]) == "recalled"


@given(seeds, shapes, st.integers(-60, 60), st.sampled_from(["float64", "float32"]))
def test_rescaling(seed, shape, power, dtype) -> None:
    _, X, Y = generic(seed, shape)
    assert recalls_or_refuses(X.astype(dtype) * np.array(2.0**power, dtype), Y, dtype=dtype) == "recalled"


@given(seeds, shapes, st.floats(1, 1e10), st.booleans())
def test_translating(seed, shape, shift, positions) -> None:
    rng, X, Y = generic(seed, shape)
    moved = X + shift * rng.standard_normal(shape[2])
    assert recalls_or_refuses(moved, Y, positions=positions) == "recalled"


@given(seeds, shapes, st.floats(1e12, 1e18))
def test_translating_out_of_resolution_recalls_or_refuses(seed, shape, shift) -> None:
    _, X, Y = generic(seed, shape)
    assert recalls_or_refuses(X + shift, Y) in {
        "recalled",
        "equivariance",
        "empirical_measure",
        "temperature",
        "shared_query",
    }


@given(seeds, shapes)
def test_components_of_very_different_sizes(seed, shape) -> None:
    rng, X, Y = generic(seed, shape)
    assert recalls_or_refuses(X * 10.0 ** rng.integers(-12, 12, shape[2]), Y) == "recalled"


small = st.integers(1, 3)


@given(seeds, small, st.booleans(), st.sampled_from(["auto", "temperature", "shared_query", "averages"]))
@settings(max_examples=150)
def test_repeated_tokens_and_contexts_recall_or_are_refused(seed, vocabulary, ragged, mapping) -> None:
    """Tiny vocabularies, where almost every context is met again: the refusal must be right."""
    rng = np.random.default_rng(seed)
    N, n = rng.integers(1, 7), rng.integers(1, 5)
    X = rng.integers(-1, vocabulary, (N, n, 1)).astype(float)
    Y = rng.integers(0, 2, (N, n))
    lengths = rng.integers(1, n + 1, N) if ragged else None
    outcome = recalls_or_refuses(X, Y, lengths, mapping=mapping)
    if possible(X[..., 0], Y, lengths):
        assert outcome in {"recalled", "zero_token"}
        assert mapping == "temperature" or outcome == "recalled"
    else:
        assert outcome in {"equivariance", "empirical_measure"}


def possible(tokens, Y, lengths) -> bool:
    """Whether equal (token, proportions) always have equal answers: exactly what one softmax layer can do."""
    wanted: dict = {}
    for i, row in enumerate(tokens):
        k = len(row) if lengths is None else lengths[i]
        values, counts = np.unique(row[:k], return_counts=True)
        company = tuple(zip(values.tolist(), (counts / np.gcd.reduce(counts)).tolist(), strict=True))
        for token, answer in zip(row[:k], Y[i], strict=False):
            if wanted.setdefault((token, company), answer) != answer:
                return False
    return True


@given(seeds, shapes, st.integers(1, 4))
def test_positions_make_every_distinct_sequence_possible(seed, shape, vocabulary) -> None:
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, vocabulary, shape[:2]), axis=0)
    Y = rng.integers(0, 9, X.shape)
    assert recalls_or_refuses(X, Y, positions=True) == "recalled"
    assert recalls_or_refuses(X[:, :, None] * 1.0, Y, positions=True) == "recalled"


@given(seeds, st.integers(1, 10), st.integers(1, 4))
def test_one_answer_per_sequence(seed, N, n) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((N, n, 2)), rng.integers(0, 3, N)
    assert recalls_or_refuses(X, Y) == "recalled"
