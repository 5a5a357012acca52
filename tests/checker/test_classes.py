"""Which samples are in one class, against the definition: equal tokens, and sequences equal as multisets."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from onelayer_checker.core.classes import same_class
from onelayer_checker.core.samples import Data

PLAIN = SimpleNamespace(tensors={})
ORDERED = SimpleNamespace(tensors={"embedding.positions": np.zeros((9, 1))})


def data(tokens, lengths=None) -> Data:
    tokens = np.asarray(tokens)
    lengths = np.full(len(tokens), tokens.shape[1]) if lengths is None else np.asarray(lengths)
    return Data(tokens, lengths, np.zeros((1, 1)), np.zeros(len(tokens), np.int64))


def one_class(d: Data, network, scope: str, a: tuple[int, int], b: tuple[int, int]) -> bool:
    (found,) = same_class(d, network, scope, *(np.array([x]) for x in (*a, *b)))
    return bool(found)


def defined(d: Data, ordered: bool, scope: str, i: int, k: int, j: int, l: int) -> bool:
    """Section 5 of the specification, word for word, with Python's own comparison of numbers."""
    x, y = ([tuple(np.atleast_1d(t).tolist()) for t in d.tokens[s, : d.lengths[s]]] for s in (i, j))
    company = x == y if ordered else sorted(x) == sorted(y)
    if scope == "sequence":
        return company
    return x[k] == y[l] and company and (k == l or not ordered)


@pytest.mark.parametrize("kind", ["ids", "numbers", "pairs"])
def test_it_is_the_definition(kind: str) -> None:
    """Few different tokens, so that many sequences are equal, or equal but for their order or their length."""
    rng = np.random.default_rng(len(kind))
    N, n = 14, 3
    if kind == "ids":
        tokens = rng.integers(0, 2, (N, n))
    else:
        tokens = rng.choice([0.0, -0.0, 1.0, -1.0], (N, n, 1 if kind == "numbers" else 2))
    d = data(tokens, rng.integers(1, n + 1, N))
    samples = [(i, k) for i in range(N) for k in range(d.lengths[i])]
    pairs = np.array([(*a, *b) for a, b in product(samples, samples)])
    for network, scope in product((PLAIN, ORDERED), ("token", "sequence", "last")):
        found = same_class(d, network, scope, *pairs.T)
        wanted = [defined(d, network is ORDERED, scope, *pair) for pair in pairs.tolist()]
        assert found.tolist() == wanted
        assert 0 < sum(wanted) < len(wanted)


def test_company_counts_multiplicities() -> None:
    d = data([[1, 1, 2], [1, 2, 2], [2, 1, 1]])
    assert not one_class(d, PLAIN, "token", (0, 0), (1, 0))
    assert one_class(d, PLAIN, "token", (0, 0), (2, 1))
    assert not one_class(d, ORDERED, "token", (0, 0), (2, 1))


def test_padding_is_not_compared() -> None:
    d = data([[1, 2, 7], [2, 1, 9], [1, 2, 2]], [2, 2, 3])
    assert one_class(d, PLAIN, "token", (0, 0), (1, 1))
    assert not one_class(d, PLAIN, "sequence", (0, 0), (2, 0))


def test_rows_are_compared_not_their_components() -> None:
    """The same numbers in each column, in other rows; a sort of each column alone would call them equal."""
    d = data([[[0.0, 0], [1, 1]], [[0, 1], [1, 0]], [[1, 1], [0, 0]]])
    assert not one_class(d, PLAIN, "sequence", (0, 0), (1, 0))
    assert one_class(d, PLAIN, "sequence", (0, 0), (2, 0))
    for c in (0, 1):  # rows that differ in one component only
        row = np.eye(2)[c]
        assert one_class(data([[row, 0 * row], [0 * row, row]]), PLAIN, "sequence", (0, 0), (1, 0))


def test_zeros_of_both_signs_are_one_number() -> None:
    """Also as company: -0.0 and 0.0 may not change the order in which rows are compared."""
    d = data([[[-0.0, 1], [0.0, 0]], [[0.0, 0], [0.0, 1]]])
    assert one_class(d, PLAIN, "token", (0, 0), (1, 1))
    assert not one_class(d, PLAIN, "token", (0, 0), (1, 0))


def test_a_sequence_has_the_company_of_itself() -> None:
    d = data([[3, 3, 4]])
    assert one_class(d, PLAIN, "token", (0, 0), (0, 1))
    assert not one_class(d, ORDERED, "token", (0, 0), (0, 1))
    assert not one_class(d, PLAIN, "token", (0, 0), (0, 2))
    assert one_class(d, ORDERED, "sequence", (0, 0), (0, 2))


def test_nobody_is_in_no_class() -> None:
    nobody = np.zeros(0, np.intp)
    assert same_class(data([[1]]), PLAIN, "token", nobody, nobody, nobody, nobody).shape == (0,)
