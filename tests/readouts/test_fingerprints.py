"""With a default, packed cells keep fingerprints of their inputs, and few others are taken for stored ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer import HypothesisError, OptionError, load
from onelayer.gadgets.layout import layouts
from onelayer.gadgets.packed import Packed
from onelayer.readouts.packed_sizes import print_sizes

memorize = partial(onelayer.memorize, certify=False)


def drawn(seed: int, N: int, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, others = (rng.standard_normal((count, 8, 6)).astype(np.float32) for count in (N, 1000))
    return X, rng.integers(0, classes, (N, 8)), others


@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**16),
    classes=st.sampled_from([2, 5, 10, 100]),
    false_hits=st.sampled_from([0.1, 0.01, 1e-3]),
)
def test_stored_answers_come_back_and_others_get_the_default(seed, classes, false_hits) -> None:
    X, Y, others = drawn(seed, 400, classes)
    model = memorize(X, Y, default=classes + 7, readout="packed", false_hits=false_hits)
    for path in ("dense", "fast"):
        np.testing.assert_array_equal(model.predict(X, path=path), Y)
    found = model.predict(others)
    np.testing.assert_array_equal(found, model.predict(others, path="dense"))
    hits, count = int((found != classes + 7).sum()), found.size
    assert hits <= count * false_hits + 6 * np.sqrt(count * false_hits) + 6
    assert model.ledger.number("false_hits") <= false_hits


def test_many_answers_with_a_default_are_kept_so_by_themselves() -> None:
    X, Y, others = drawn(1, 1000, 10)
    model, table = memorize(X, Y, default=99), memorize(X, Y, default=99, readout="table")
    assert model.ledger["readout"] == "packed"
    assert model.n_parameters < table.n_parameters
    np.testing.assert_array_equal(model.predict(X), Y)
    assert (model.predict(others) != 99).mean() < 2e-3
    assert "agree by chance" in model.ledger.meaning("false_hits")


def test_classes_that_are_words_and_vectors_are_listed_with_the_default() -> None:
    X, Y, others = drawn(2, 700, 3)
    words = np.array(["no", "perhaps", "yes"])[Y]
    model = memorize(X, words, default="unknown", false_hits=0.001)
    np.testing.assert_array_equal(model.predict(X), words)
    assert (model.predict(others) == "unknown").mean() > 0.995
    reals = np.array([0.25, -1.5, 3.0], np.float32)[Y]
    model = memorize(X, reals, default=-0.125, readout="packed", false_hits=0.001)
    np.testing.assert_array_equal(model.predict(X), reals)
    assert (model.predict(others) == np.float32(-0.125)).mean() > 0.995


def test_the_default_is_proved_for_listed_inputs_and_survives_saving(tmp_path) -> None:
    X, Y, others = drawn(3, 300, 10)
    model = memorize(X, Y, default=10, readout="packed", certify=True)
    assert {claim["type"] for claim in model.certificate.claims} >= {"memorizes", "rejects"}
    assert model.verify().result == "VERIFIED"
    back = load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.predict(others), model.predict(others))
    (gadget,) = [part.gadget for part in back.parts["readout"] if isinstance(part.gadget, Packed)]
    assert gadget.prints
    assert gadget.default == 10


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"false_hits": 0.01}, "without a default"),
        ({"default": 1, "false_hits": 0}, "share of false hits"),
        ({"default": 1, "false_hits": 1.0}, "share of false hits"),
        ({"default": 1, "false_hits": "few"}, "share of false hits"),
        ({"default": 1, "false_hits": 0.01, "readout": "table"}, 'Use readout="packed"'),
    ],
)
def test_shares_that_mean_nothing_are_refused(options, match) -> None:
    X, Y, _ = drawn(4, 50, 3)
    with pytest.raises(OptionError, match=match):
        memorize(X, Y, **options)


def test_few_contexts_have_no_fingerprints_and_the_refusal_says_so() -> None:
    with pytest.raises(HypothesisError, match="enough stored contexts"):
        memorize([["a", "b"], ["b", "c"]], [[0, 1], [1, 0]], default=2, false_hits=0.001)


@pytest.mark.parametrize("bits", [1.0, 6.0, 8.0, 13.3])
def test_fingerprints_have_the_bits_that_were_asked_for(bits) -> None:
    for classes in (2, 10, 256):
        for layout in layouts(classes, bits):
            assert layout.classes >= classes
            assert layout.fingerprints >= 2**bits
            assert np.prod(print_sizes(layout)) == layout.fingerprints
            assert layout.classes * layout.fingerprints <= 1 << 24
