"""The detector of merged contexts finds what was planted, and nothing else."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pytest

import onelayer
from onelayer.errors import DataError, OptionError
from onelayer.lab import collapse
from onelayer.lab.merges import context_keys, nearest_pairs
from onelayer.problems.sequences import read_sequences

memorize = partial(onelayer.memorize, certify=False)


def pairs_of(merges) -> set[frozenset[tuple[int, int]]]:
    return {frozenset([(m.a.i, m.a.k), (m.b.i, m.b.k)]) for m in merges}


@pytest.fixture
def planted():
    """Random outputs in which two pairs of contexts are equal, one nearly so, and two places are one context."""
    rng = np.random.default_rng(0)
    sets = np.array(list(combinations(range(12), 3)))
    X = sets[rng.permutation(len(sets))[:40]]
    X[39] = X[38][[2, 0, 1]]  # the same company in another order
    outputs = rng.standard_normal((40, 3, 5))
    outputs[39] = outputs[38][[2, 0, 1]]
    outputs[4, 1] = outputs[17, 0]
    outputs[5, 2] = outputs[5, 0]
    outputs[30, 0] = outputs[2, 2] + 1e-7
    return X, outputs


def test_planted_merges_are_found_and_nothing_else(planted) -> None:
    X, outputs = planted
    equal = {frozenset([(4, 1), (17, 0)]), frozenset([(5, 0), (5, 2)])}
    merges = collapse(outputs, X)
    assert pairs_of(merges) == equal
    assert all(m.distance == 0 for m in merges)
    merges = collapse(outputs, X, margin=1e-5)
    assert pairs_of(merges[:2]) == equal
    assert pairs_of(merges) == equal | {frozenset([(2, 2), (30, 0)])}
    assert merges[2].distance == pytest.approx(1e-7 * 5**0.5, rel=1e-6)
    assert "bit-equal" in str(merges[0])
    assert "2.2e-07 apart" in str(merges[2])


def test_positions_make_orders_different(planted) -> None:
    X, outputs = planted
    found = pairs_of(collapse(outputs, X, positions=True))
    assert frozenset([(38, 0), (39, 1)]) in found
    assert len(found) == 5


def test_padding_and_last_tokens(planted) -> None:
    X, outputs = planted
    lengths = np.full(40, 3)
    lengths[5] = 2  # (5, 2) is padding
    assert pairs_of(collapse(outputs, X, lengths)) == {frozenset([(4, 1), (17, 0)])}
    outputs[7, 2] = outputs[8, 2]
    assert pairs_of(collapse(outputs, X, last=True)) == {frozenset([(7, 2), (8, 2)])}


def test_contexts_are_compared_exactly() -> None:
    X = [["a", "b"], ["b", "a"], ["a", "b", "b"], ["a", "c"]]
    sequences = read_sequences(X)
    keys = context_keys(sequences, positions=False)
    assert keys[0, 0] == keys[1, 1]
    assert keys[0, 1] == keys[1, 0]
    assert len({*keys[0], *keys[2], *keys[3, :2]}) == 6
    assert len({*keys[0], *context_keys(sequences, positions=True)[1, :2]}) == 4
    reals = read_sequences(np.array([[[0.0], [1.0]], [[1.0], [-0.0]]]))
    assert context_keys(reals, positions=False).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("margin", [0.05, 0.3, 2.0])
def test_the_sweep_agrees_with_all_pairs(margin) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, 3)) * [1.0, 0.3, 0.1]
    rows[10] = rows[20]
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    expected = {(a, b) for a, b in combinations(range(300), 2) if distances[a, b] <= margin and (a, b) != (10, 20)}
    found = nearest_pairs(rows, margin, 10**6)
    assert found[0] == (10, 20, 0.0)
    inner = {pair[:2] for pair in found[1:]}
    assert inner == {pair for pair in expected if 20 not in pair}  # 20 is spoken for by 10
    best = nearest_pairs(rows, margin, 25)
    assert [pair[2] for pair in best] == [pair[2] for pair in found[:25]]


def test_a_hundred_thousand_tokens_are_looked_at() -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((100_000, 8)).astype(np.float32)
    rows[5] = rows[99_000]
    assert nearest_pairs(rows, 1e-3)[0] == (5, 99_000, 0.0)


def test_constructed_contexts_do_not_merge_and_torch_models_are_read() -> None:
    rng = np.random.default_rng(3)
    sets = np.array(list(combinations(range(9), 3)))
    X, Y = sets[rng.permutation(len(sets))[:30]], rng.integers(0, 50, (30, 3))
    model = memorize(X, Y)
    assert collapse(model, X) == []
    from onelayer import to_torch
    from onelayer.lab.trained import Net, Shape, Task

    assert collapse(to_torch(model), X) == []
    net = Net(Shape(8, hidden=8), Task(X, Y))
    assert collapse(net, X) == []
    for name in ("0.W_Q", "0.W_O"):  # attention that writes nothing leaves the tokens as they were
        net.tensors[name].data.zero_()
    assert len(collapse(net, X)) == 90 - 9
    assert len(collapse(net, X, limit=7)) == 7


def test_bad_requests_are_refused(planted) -> None:
    X, outputs = planted
    with pytest.raises(OptionError, match="a margin of at least 0"):
        collapse(outputs, X, margin=-1.0)
    with pytest.raises(DataError, match="outputs of shape"):
        collapse(outputs[:, :2], X)
