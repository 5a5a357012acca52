"""A trained layer that reads networks: who attends to whom, what filling up changes, what is chosen on what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_equal

from onelayer.compile.memorize import memorize
from onelayer.lab import graph_twins
from onelayer.lab.graph_twins import Graphs, Twin, along_data, foretell
from onelayer.measure.encoding import COMPONENTS, KINDS, encode

torch.set_num_threads(1)
ALL = list(range(len(COMPONENTS)))


def networks(count: int, seed: int = 0) -> list[Any]:
    """Tokens without meaning, of networks of different lengths."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(4 + i % 3, len(COMPONENTS))) for i in range(count)]


def test_tensors_come_in_the_order_in_which_data_meet_them() -> None:
    tokens = encode(memorize([[1, 2], [2, 1]], [[3, 4], [5, 6]], positions=True, certify=False))
    kinds = [KINDS[row[: len(KINDS)].argmax()].partition(".")[0] for row in tokens[along_data(tokens)]]
    assert [kind for i, kind in enumerate(kinds) if kind not in kinds[:i]] == [
        part for part in graph_twins.PARTS if part in kinds
    ]
    assert sorted(kinds) == kinds or kinds.index("attention") < kinds.index("readout")
    readout = [row for row in tokens[along_data(tokens)] if row[KINDS.index("readout.weight")]]
    assert [row[COMPONENTS.index("place")] for row in readout] == list(range(len(readout)))


@pytest.mark.parametrize("way", ["softmax", "graph"])
def test_rows_of_attention_sum_to_one_over_what_may_be_seen(way: Any) -> None:
    graphs = Graphs.of(networks(6), ALL, np.ones(6, bool))
    twin = Twin(way, len(ALL), 0)
    with torch.no_grad():
        weights = twin.weights(twin._map(graphs.tokens, "lift"), graphs).numpy()
    there = graphs.there.numpy()
    assert_allclose(weights.sum(-1)[there], 1, rtol=1e-5)
    assert_equal(weights * ~there[:, None, :], 0)
    far = np.abs(np.subtract.outer(range(6), range(6))) > 1
    assert (weights[..., far] > 0).any() == (way == "softmax")


def test_attention_along_the_graph_is_that_of_its_formula() -> None:
    graphs = Graphs.of(networks(1), ALL, np.ones(1, bool))
    twin = Twin("graph", len(ALL), 3)
    with torch.no_grad():
        h = twin._map(graphs.tokens, "lift")
        found = twin.weights(h, graphs).numpy()[0]
    X = 1 / (1 + np.exp(-(h[0].numpy() @ twin.tensors["W_Q"].detach().numpy())))
    scores = X @ X.T * (np.abs(np.subtract.outer(range(4), range(4))) <= 1)
    assert_allclose(found, scores / scores.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("way", ["softmax", "graph"])
def test_filling_up_changes_nothing(way: Any) -> None:
    twin, given = Twin(way, len(ALL), 1), networks(3)
    graphs = Graphs.of(given, ALL, np.ones(3, bool))
    longer = torch.zeros(3, 9, len(ALL))
    longer[:, :6] = graphs.tokens
    there = torch.zeros(3, 9, dtype=torch.bool)
    there[:, :6] = graphs.there
    place = torch.arange(9)
    filled = Graphs(longer, there, (place[:, None] - place).abs() <= 1)
    with torch.no_grad():
        assert_allclose(twin(graphs).numpy(), twin(filled).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", ["softmax", "graph"])
def test_a_sum_over_tokens_is_learned_and_asked_networks_teach_nothing(way: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(graph_twins, "RATES", (1e-2,))
    monkeypatch.setattr(graph_twins, "DECAYS", (0.3,))
    monkeypatch.setattr(graph_twins, "MOST", 6)
    given, seen = networks(60, 5), np.arange(60) < 40
    wanted = np.array([tokens[:, 0].sum() for tokens in given])
    said, chosen = foretell(way, given, [0, 1], wanted, seen, 0)
    left = np.square(said - wanted[~seen]).mean() / wanted[~seen].var()
    assert left < 0.3
    assert chosen.rate in graph_twins.RATES
    assert chosen.steps > 0
    other = np.where(seen, wanted, 99.0)
    again, _ = foretell(way, given, [0, 1], other, seen, 0)
    assert_equal(said, again)
