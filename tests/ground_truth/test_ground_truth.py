"""Ground truth: gauges keep the function, the mechanism is what the weights say, and scores tell tools apart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onelayer.errors import OptionError
from onelayer.ground_truth import (
    EDGES,
    FAMILIES,
    GAUGES,
    edge_score,
    find,
    load_case,
    make,
    match_directions,
    probe_scores,
    save_case,
    score_edges,
)
from onelayer.ground_truth.baselines import probe
from onelayer.ground_truth.gauge import draw, mix
from onelayer.network.blocks import evaluate
from tests.cli.test_cli import run


@pytest.fixture(scope="module")
def plain():
    return make("facts", seed=1)


@pytest.fixture(scope="module")
def mixed():
    return make("facts", seed=1, gauge="orthogonal")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("gauge", GAUGES)
def test_every_model_is_proved_and_answers(family, gauge) -> None:
    case = make(family, seed=2, gauge=gauge, heads=2)
    assert case.proved
    assert case.wrong() == 0
    assert case.model.transformer.attention.heads == 2


def test_an_exact_gauge_changes_no_output(plain) -> None:
    G = draw("signed", len(plain.mechanism.channels), np.random.default_rng(0))
    before, signed = plain.model.transformer, mix(plain.model.transformer, G)
    tokens = plain.model.read(plain.X).tokens
    assert not np.array_equal(signed.attention.W_V, before.attention.W_V)
    np.testing.assert_array_equal(evaluate(signed, tokens), evaluate(before, tokens))


def test_the_mechanism_of_a_mixed_model_is_that_of_the_plain_one(plain, mixed) -> None:
    assert plain.mechanism.channels == mixed.mechanism.channels
    assert plain.mechanism.edges == mixed.mechanism.edges
    np.testing.assert_allclose(mixed.features(), plain.features(), atol=1e-4 * np.abs(plain.features()).max())
    assert ("code0", "head 0 value") in plain.mechanism.edges
    assert ("head 0 output", "context0") in plain.mechanism.edges
    assert ("head 0 output", "code0") not in plain.mechanism.edges


def test_axes_are_easy_and_mixed_channels_are_not(plain, mixed) -> None:
    assert match_directions(find("axes", plain), plain) > 0.999
    assert match_directions(find("axes", mixed), mixed) < 0.7
    assert match_directions(mixed.mechanism.readers.T, mixed) > 0.999  # what a perfect tool finds
    for name in EDGES:
        easy, hard = (edge_score(score_edges(name, case), case) for case in (plain, mixed))
        assert easy > 0.65 > hard
    assert edge_score(dict.fromkeys(mixed.mechanism.edges, 1.0), mixed) == 1
    assert edge_score({}, mixed) == 0.5


def test_a_probe_reads_a_channel_whatever_the_gauge(plain, mixed) -> None:
    for case in (plain, mixed):
        read, _ = probe_scores(probe(case, "context0"), case, "context0")
        assert read > 0.999
    other, cosine = probe_scores(mixed.mechanism.readers[:, 1], mixed, "context0")
    assert other < 0.7
    assert cosine < 1e-6


@pytest.mark.parametrize("name", ["pca", "ica", "sae"])
def test_baselines_give_directions_of_the_stream(plain, name) -> None:
    found = find(name, plain)
    assert found.shape[1] == len(plain.mechanism.channels)
    assert 0.1 < match_directions(found, plain) < 0.999


def test_a_case_is_saved_and_loaded(mixed, tmp_path) -> None:
    again = load_case(save_case(mixed, tmp_path / "case"))
    assert again.mechanism.edges == mixed.mechanism.edges
    np.testing.assert_array_equal(again.stream(), mixed.stream())
    assert again.model.verify().result == "VERIFIED"


def test_what_nobody_has_is_refused(plain) -> None:
    for options in ({"family": "poems"}, {"family": "words", "gauge": "twisted"}):
        with pytest.raises(OptionError, match="among"):
            make(**options)
    for ask in (find, score_edges):
        with pytest.raises(OptionError, match="baseline among"):
            ask("guess", plain)
    with pytest.raises(OptionError, match="to be split"):
        make("facts", heads=40)


def test_the_command(tmp_path) -> None:
    assert "facts" in run("ground-truth", "list").stdout
    said = run("ground-truth", "make", "sums", "--out", tmp_path / "m", "--gauge", "orthogonal").stdout
    assert "answers proved" in said
    run("verify", tmp_path / "m")
    case = load_case(tmp_path / "m")
    np.save(tmp_path / "mine.npy", case.mechanism.readers.T)
    asked = ("ground-truth", "score", tmp_path / "m", "--found", tmp_path / "mine.npy")
    scores = json.loads(run(*asked, "--json").stdout)
    assert scores["directions"]["mine.npy"] > 0.999 > scores["directions"]["axes"]
    np.save(tmp_path / "mine.npy", np.eye(3))
    assert "directions of" in run(*asked, ok=65).stderr
