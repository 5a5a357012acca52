"""Every answer comes back, for every kind of data and every construction, through the dense network."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest

import onelayer

memorize = partial(onelayer.memorize, certify=False)

N, n, d = 120, 8, 6


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def multiset_labels(ids, classes: int, rng, lengths=None) -> np.ndarray:
    """One random label per distinct token and multiset, proportional multisets counting as one."""
    seen: dict = {}
    Y = np.zeros(ids.shape, int)
    for i, row in enumerate(ids):
        visible = row if lengths is None else row[: lengths[i]]
        counts = Counter(visible.tolist())
        divisor = math.gcd(*counts.values())
        company = frozenset((token, c // divisor) for token, c in counts.items())
        for k, token in enumerate(visible.tolist()):
            Y[i, k] = seen.setdefault((token, company), rng.integers(classes))
    return Y


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("path", ["dense", "fast"])
def test_classes_per_token(rng, dtype, path) -> None:
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 1000, (N, n))
    model = memorize(X, Y, dtype=dtype)
    answers = model.predict(X, path=path)
    np.testing.assert_array_equal(answers, Y)
    assert answers.dtype == Y.dtype
    assert model.transformer.dtype == dtype
    assert model.ledger["margin"] >= 1


def test_rank_one_is_tried_first(rng) -> None:
    model = memorize(rng.standard_normal((N, n, d)), rng.integers(0, 1000, (N, n)))
    a = model.transformer.attention
    assert (a.heads, a.head_size, model.ledger["rank"]) == (1, 1, 1)
    assert a.b_Q is None
    for W in (a.W_Q, a.W_K, a.W_V, a.W_O):
        assert np.linalg.matrix_rank(W[0]) == 1


@pytest.mark.parametrize("components", [None, 3])
def test_reals_come_back_exactly(rng, components) -> None:
    X = rng.standard_normal((N, n, d))
    Y = rng.standard_normal((N, n) if components is None else (N, n, components))
    np.testing.assert_array_equal(memorize(X, Y).predict(X, path="dense"), Y)


def test_hashable_classes(rng) -> None:
    X = rng.standard_normal((4, 2, d))
    Y = [["a", ("b", 1)], [None, "a"], [3, "c"], [2.5, True]]
    assert memorize(X, Y).predict(X).tolist() == [["a", ("b", 1)], [None, "a"], [3, "c"], [2.5, True]]


def test_one_answer_per_sequence_takes_one_context_per_sequence(rng) -> None:
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 50, N)
    model = memorize(X, Y)
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)
    assert model.ledger["distinct"] == N
    shuffled = X[:, rng.permutation(n)]
    np.testing.assert_array_equal(model.predict(shuffled), Y)


def test_vectors_per_sequence(rng) -> None:
    X, Y = rng.standard_normal((N, n, d)), rng.standard_normal((N, 3))
    np.testing.assert_array_equal(memorize(X, Y).predict(X), Y)
    square = rng.standard_normal((N, n))  # as many components as tokens: the scope has to be said
    assert memorize(X, square, scope="sequence").predict(X).shape == (N, n)
    assert memorize(X, square, scope="sequence").ledger["distinct"] == N


def test_token_ids(rng) -> None:
    ids = rng.integers(0, 10, (N, n))
    Y = multiset_labels(ids, 100, rng)
    model = memorize(ids, Y)
    np.testing.assert_array_equal(model.predict(ids, path="dense"), Y)
    assert model.interface.vocabulary == tuple(range(10))


def test_positions_free_the_labels(rng) -> None:
    ids, Y = rng.integers(0, 9, (N, n)), rng.integers(0, 100, (N, n))
    np.testing.assert_array_equal(memorize(ids, Y, positions=True).predict(ids, path="dense"), Y)
    X = ids[..., None] * 0.5
    np.testing.assert_array_equal(memorize(X, Y, positions=True).predict(X, path="dense"), Y)


def test_ragged_arrays_and_lists_agree(rng) -> None:
    lengths = rng.integers(1, n + 1, N)
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 1000, (N, n))
    X[np.arange(n) >= lengths[:, None]] = np.nan  # padding is not looked at
    answers = memorize(X, Y, lengths=lengths).predict(X, lengths)
    inside = np.arange(n) < lengths[:, None]
    np.testing.assert_array_equal(answers[inside], Y[inside])
    lists = [x[:k] for x, k in zip(X, lengths, strict=True)]
    wanted = [y[:k].tolist() for y, k in zip(Y, lengths, strict=True)]
    assert memorize(lists, wanted).predict(lists) == wanted


def test_ragged_token_ids(rng) -> None:
    lengths, ids = rng.integers(1, n + 1, N), rng.integers(0, 10, (N, n))
    Y = multiset_labels(ids, 100, rng, lengths)
    answers = memorize(ids, Y, lengths=lengths).predict(ids, lengths)
    inside = np.arange(n) < lengths[:, None]
    np.testing.assert_array_equal(answers[inside], Y[inside])


def test_words() -> None:
    X = [["river", "bank"], ["bank", "robber"], ["robber"]]
    Y = [["water", "shore"], ["money", "crime"], ["person"]]
    model = memorize(X, Y)
    assert model.predict(X) == Y
    assert model.predict([["bank", "river"]]) == [["shore", "water"]]


@pytest.mark.parametrize("mapping", ["temperature", "shared_query", "averages"])
@pytest.mark.parametrize("scope", ["token", "sequence"])
@pytest.mark.parametrize("kind", ["real", "ids"])
def test_every_mapping(rng, mapping, scope, kind) -> None:
    ids = rng.integers(0, 30, (N, n))
    X = ids if kind == "ids" else rng.standard_normal((30, d))[ids]
    Y = multiset_labels(ids, 100, rng) if scope == "token" else rng.integers(0, 100, N)
    model = memorize(X, Y, mapping=mapping)
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)
    assert model.ledger["mapping"] == mapping


@pytest.mark.parametrize("rank", [2, 3])
def test_larger_ranks_read_boxes(rng, rank) -> None:
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 100, (N, n))
    model = memorize(X, Y, rank=rank)
    np.testing.assert_array_equal(model.predict(X, path="dense"), Y)
    assert model.ledger["readout"] == "boxes"
    assert model.transformer.attention.head_size == rank


def test_the_published_readout_interpolates(rng) -> None:
    X, Y = rng.standard_normal((30, n, d)), rng.standard_normal((30, n))
    model = memorize(X, Y, readout="triangular")
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-6)
    assert model.ledger["readout_error"] == pytest.approx(np.abs(model.predict(X) - Y).max())


def test_same_seed_same_weights(rng) -> None:
    X, Y = rng.standard_normal((N, n, d)), rng.integers(0, 100, (N, n))
    first, again, other = (dict(memorize(X, Y, seed=s).transformer.tensors()) for s in (3, 3, 4))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not all(np.array_equal(first[name], other[name]) for name in first)


def test_zero_tokens_get_a_query_bias() -> None:
    X = np.array([[0.0, 1.0, -1.0], [0.0, 2.0, -2.0]])[:, :, None]
    model = memorize(X, [[1, 2, 3], [4, 5, 6]])
    assert model.predict(X).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert model.ledger["mapping"] == "shared_query"


def test_the_input_is_left_alone(rng) -> None:
    X, Y = rng.standard_normal((N, n, d)) + 1e6, rng.integers(0, 100, (N, n))
    before = X.copy(), Y.copy()
    memorize(X, Y).predict(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_one_sequence_one_token_one_answer() -> None:
    assert onelayer.memorize([[[1.0]]], [[7]]).predict([[[1.0]]]).tolist() == [[7]]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2_000, 20_000])
def test_large_data(rng, count) -> None:
    X, Y = rng.standard_normal((count, 16, 16)), rng.integers(0, 1000, (count, 16))
    model = memorize(X, Y)
    np.testing.assert_array_equal(model.predict(X), Y)
    some = rng.choice(count, 40, replace=False)
    np.testing.assert_array_equal(model.predict(X[some], path="dense"), Y[some])


def test_theorem_k_runs_where_its_gap_fits(rng) -> None:
    X = np.array([[1.0, 0.2], [0.3, 1.1], [-0.8, 0.9]])[[[0, 1], [0, 2], [1, 2]]]
    Y = np.arange(6).reshape(3, 2)
    model = memorize(X, Y, mapping="rank_one")
    np.testing.assert_array_equal(model.predict(X), Y)
    assert -8 < model.ledger["log10_delta"] < -2
    words = [["a", "b"], ["b", "c"], ["a", "c"]]
    np.testing.assert_array_equal(memorize(words, Y, mapping="rank_one").predict(words), Y)
    subsets = np.array([rng.choice(30, 8, replace=False) for _ in range(60)])  # few tokens, many sets of them
    with pytest.raises(onelayer.HypothesisError, match=r"\[rank_one\] needs contexts that float64 can tell apart"):
        memorize(rng.standard_normal((30, 4))[subsets], np.arange(480).reshape(60, 8), mapping="rank_one")
    with pytest.raises(onelayer.HypothesisError, match="needs the tokens of a sequence to be distinct"):
        memorize(X[:, [0, 0]], [[1, 1], [2, 2], [3, 3]], mapping="rank_one")


def test_the_published_constants_are_refused_with_their_price() -> None:
    X = np.array([[1.0, 0.2], [0.3, 1.1], [-0.8, 0.9]])[[[0, 1], [0, 2], [1, 2]]]
    words = r"\[theorem_2\] needs 3,268 bits of precision on this data; float64 has 53, .* is 10\^-978"
    with pytest.raises(onelayer.HypothesisError, match=words):
        memorize(X, np.arange(6).reshape(3, 2), mapping="published")


def test_narrow_integers_keep_their_values(rng) -> None:
    X, Y = rng.standard_normal((40, 3, 2)), np.where(np.arange(40) % 2, 100, -100).astype(np.int8)
    np.testing.assert_array_equal(memorize(X, Y).predict(X), Y)


@pytest.mark.parametrize(
    "classes",
    [
        ["x\0", "x"],
        [b"x\0", b"x"],
        [2**63 + 1, -1],
        [range(2), range(1, 3)],
        [True, 2],
        [("x", 1), ("y",)],
        [2**63 + 5, 2**63 + 6],
        ["a" * 1000, "b"],
    ],
    ids=str,
)
def test_classes_come_back_as_they_are(classes) -> None:
    X = [["a", "b"], ["c", "d"]]
    given = memorize(X, classes).predict(X).tolist()
    assert given == classes
    assert [type(x) for x in given] == [type(x) for x in classes]


def test_tuples_are_classes_for_ragged_sequences_too() -> None:
    X = [["a", "b", "c"], ["d", "e"]]
    assert memorize(X, [("x", 1), ("y", 2)]).predict(X).tolist() == [("x", 1), ("y", 2)]
    np.testing.assert_array_equal(
        memorize(X, [[0.1, 0.2], [0.3, 0.4]], scope="sequence").predict(X), [[0.1, 0.2], [0.3, 0.4]]
    )


def test_padding_does_not_move_the_centre(rng) -> None:
    X, Y, lengths = 1e6 + rng.standard_normal((50, 4, 2)), np.arange(50), np.full(50, 4)
    lengths[0] = 3
    np.testing.assert_array_equal(memorize(X, Y, lengths=lengths, dtype="float32").predict(X, lengths), Y)


def test_contexts_met_hundreds_of_times_are_one_box(rng) -> None:
    X, Y = np.repeat(rng.standard_normal((3, 4, 2)), 300, axis=0), np.repeat([0, 1, 2], 300)
    model = memorize(X, Y, rank=2)
    np.testing.assert_array_equal(model.predict(X), Y)
    assert model.ledger["plateaus"] == 3
    Y[-1] = 0
    with pytest.raises(onelayer.HypothesisError, match=r"\[equivariance\]"):
        memorize(X, Y, rank=2)


def test_the_order_of_the_sequences_does_not_matter(rng) -> None:
    X = rng.standard_normal((8192, 2, 1))
    X[::2] *= 1e-24
    Y = np.arange(8192) % 2
    mixed = memorize(X, Y, dtype="float32")
    np.testing.assert_array_equal(mixed.predict(X), Y)


def test_a_dropped_twin_stays_clear_of_other_boxes() -> None:
    from onelayer.network.blocks import apply_stack
    from onelayer.readouts.fit import Task, fit

    r = 1e-12
    half = 2.0 ** np.ceil(np.log2(3 * r))
    first = np.array([1.0, 1.0])
    twin, other = np.array([1.0 + 1.9 * r, 1.0]), np.array([1.0 + 2 * half + 2 * r + 8e-16, 1.0])
    task = Task(np.array([[10.0], [10.0], [10.0], [3.0]]), np.dtype("f8"), r, r / 100, "auto", None, 0)
    found = fit(np.array([first, twin, other, [2.0, 2.0]]), task, on_lattice=False)
    if found.readout is not None and found.margin >= 1:
        assert apply_stack(found.readout.layers, (twin + np.array([r, 0.0]))[None]).tolist() == [[10.0]]
