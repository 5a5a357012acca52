"""Logits behind a class number: the largest is the answer, whatever the readout, in every runtime; proved."""

from __future__ import annotations

import numpy as np
import pytest

import onelayer
from onelayer import OptionError, memorize, memorize_text, with_logits
from onelayer.gadgets.logits import MARGIN, Logits
from onelayer.measure.exports import replay
from onelayer.measure.recall import recall

RNG = np.random.default_rng(5)
X, Y = RNG.integers(0, 20, (40, 5)), RNG.integers(0, 9, (40, 5))


@pytest.fixture(scope="module")
def model():
    return memorize(X, Y, positions=True, logits=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"readout": "plateaus", "dtype": "float64"},
        {"readout": "retrieval", "mapping": "lattice"},
        {"readout": "packed", "mapping": "lattice"},
        {"readout": "table"},
        {"readout": "bits"},
        {"readout": "triangular", "dtype": "float64"},
        {"default": 3},
        {"default": "none of them"},
    ],
    ids=str,
)
def test_logits_follow_every_readout(options) -> None:
    made = memorize(X, Y, positions=True, certify=False, logits=True, **options)
    assert made.has_logits
    assert made.gadgets[-1].kind == "logits"
    np.testing.assert_array_equal(made.predict(X), Y)
    np.testing.assert_array_equal(made.predict(X, path="dense"), Y)
    out = made.logits(X)
    assert out.shape == (40, 5, len(made.form.classes))
    np.testing.assert_array_equal(np.array(made.form.classes, object)[out.argmax(axis=2)], Y)
    two = np.sort(out, axis=2)[..., -2:]
    assert (two[..., 1] - two[..., 0] >= MARGIN * 0.9).all()
    assert recall(made, X, Y).perfect


def test_readout_logits_is_the_readout_of_auto_with_logits(model) -> None:
    assert memorize(X, Y, positions=True, readout="logits") == model


def test_the_margin_is_proved_in_float32(model) -> None:
    kinds = [(claim["type"], claim["arith"]) for claim in model.certificate.claims[:2]]
    assert kinds == [("argmax", "real"), ("argmax", "float32")]
    assert all(float.fromhex(claim["margin"]) == MARGIN for claim in model.certificate.claims[:2])
    assert model.verify(data=(X, Y), require=["argmax float32 32"]).result == "VERIFIED"
    assert model.verify(require=["argmax float32 33"]).result == "UNKNOWN"
    assert model.verify(data=(X, (Y + 1) % 9)).result == "NOT VERIFIED"
    assert "exceeds every other by at least 32" in model.explain()


def test_probabilities_are_the_softmax_and_log_prob_is_of_the_answers_given(model) -> None:
    p = model.predict_proba(X)
    assert p.shape == (40, 5, 9)
    assert np.abs(p.sum(axis=2) - 1).max() < 1e-12
    np.testing.assert_array_equal(np.array(model.form.classes)[p.argmax(axis=2)], Y)
    np.testing.assert_allclose(model.log_prob(X, Y), 0.0, atol=1e-13)
    wrong = model.log_prob(X, (Y + 1) % 9)
    assert wrong.shape == Y.shape
    assert (wrong <= -MARGIN).all()
    unknown = model.log_prob(X, np.where(np.arange(5) == 2, 99, Y))
    assert (np.isinf(unknown) == (np.arange(5) == 2)).all()


def test_one_answer_per_sequence_and_lengths() -> None:
    words = [["a", "b"], ["b"], ["a", "c", "b"]]
    made = memorize(words, ["x", "y", "z"], logits=True)
    assert made.logits(words).shape == made.predict_proba(words).shape == (3, 3)
    assert made.predict(words).tolist() == ["x", "y", "z"]
    np.testing.assert_allclose(made.log_prob(words, ["x", "y", "z"]), 0.0, atol=1e-13)
    each = memorize(words, [[1, 2], [2], [1, 3, 2]], logits=True, certify=False)
    assert each.predict(words) == [[1, 2], [2], [1, 3, 2]]
    assert each.log_prob(words, [[1, 2], [2], [1, 3, 2]]).shape == (3, 3)


def test_a_saved_model_has_its_logits(model, tmp_path) -> None:
    model.save(tmp_path / "m")
    assert onelayer.load(tmp_path / "m") == model


def test_torch_and_onnx_give_the_certified_classes(model, tmp_path) -> None:
    model.save(tmp_path / "m")
    assert replay(tmp_path / "m", ["numpy", "torch", "onnx"]) == {"numpy": "", "torch": "", "onnx": ""}
    import torch

    out = onelayer.to_torch(model)(torch.tensor(X)).detach().numpy()
    np.testing.assert_array_equal(out, model.logits(X))
    np.testing.assert_array_equal(model.answers(out, model.ask(X)), Y)


def test_a_replay_notices_a_class_that_does_not_lead(model, tmp_path) -> None:
    rolled = memorize(X, (Y + 1) % 9, positions=True, logits=True, certify=False).transformer
    model.save(tmp_path / "m")
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(a) for name, a in rolled.tensors()}, tmp_path / "m" / "model.safetensors")
    with pytest.raises(onelayer.OnelayerError):
        replay(tmp_path / "m", ["numpy"])


def test_with_logits_adds_them_to_a_model_and_proves_them_again() -> None:
    plain = memorize(X, Y, positions=True)
    made = with_logits(plain)
    assert made == replace_ledger(memorize(X, Y, positions=True, logits=True), made)
    assert with_logits(made) is made
    assert made.certificate.claims[0]["type"] == "argmax"
    assert plain.n_parameters + 2 * 9 == made.n_parameters == made.ledger["parameters"]
    assert with_logits(memorize(X, Y, positions=True, certify=False)).certificate is None


def replace_ledger(model, other):
    """Lines come in another order where logits are added later."""
    from dataclasses import replace

    assert sorted(model.ledger) == sorted(other.ledger)
    return replace(model, ledger=other.ledger)


def test_an_unknown_input_has_the_logits_of_the_default() -> None:
    words = [["a", "b"], ["b", "c"], ["c", "a"]]
    made = memorize(words, [["x", "y"], ["y", "z"], ["z", "x"]], default="none", logits=True)
    assert made.predict([["a", "never seen"]]).tolist() == [["none", "none"]]
    stored = made.logits(words)[0]
    unknown = made.logits([["a", "never seen"]])[0]
    assert stored.shape == unknown.shape == (2, 4)
    assert np.sort(unknown, axis=1)[:, -2:].tolist() == [[unknown.max() - MARGIN, unknown.max()]] * 2
    assert made.proved


def test_answers_that_are_no_classes_have_no_logits() -> None:
    with pytest.raises(OptionError, match="classes"):
        memorize(X, Y / 2, logits=True)
    with pytest.raises(OptionError, match="vectors of 2 numbers"):
        memorize(X, np.zeros((40, 5, 2)), logits=True)
    with pytest.raises(OptionError, match="classes"):
        with_logits(memorize(X[:2], Y[:2] / 2))
    with pytest.raises(OptionError, match="with_logits"):
        memorize(X[:2], Y[:2]).predict_proba(X[:2])


def test_one_class_needs_no_logits() -> None:
    made = memorize(X[:3], np.full((3, 5), 7), logits=True)
    assert made.predict(X[:3]).tolist() == np.full((3, 5), 7).tolist()


def test_more_classes_than_products_hold_are_pairs_of_digits() -> None:
    C = 4100
    tokens = np.arange(C)[:, None]
    made = memorize(tokens, tokens, logits=True)
    gadget = made.parts["readout"][-1].gadget
    assert isinstance(gadget, Logits)
    assert gadget.steps == 32
    assert gadget.base == 128
    assert 3 * C < gadget.numbers < 3 * C + 300
    np.testing.assert_array_equal(made.predict(tokens), tokens)
    some = np.array([0, 127, 128, 4095, 4096, 4099])
    out = made.logits(some[:, None])[:, 0]
    np.testing.assert_array_equal(out.argmax(axis=1), some)
    np.testing.assert_array_equal(out, made.outputs(made.read(some[:, None]), "dense")[:, 0])
    assert made.verify(require=["argmax float32 32"]).result == "VERIFIED"


def test_too_many_classes_for_float32_are_refused_by_name() -> None:
    assert Logits.of(1 << 22, np.dtype("float32")).base == 1 << 11
    with pytest.raises(onelayer.HypothesisError, match="4,194,304"):
        Logits.of((1 << 22) + 1, np.dtype("float32"))


def test_a_text_has_probabilities_already() -> None:
    text = "to be, or not to be, that is the question"
    made = memorize_text(text, context=8, certify=False)
    said = made.log_prob(text)
    assert said.shape == (len(text),)
    assert (said <= 0).all()
    assert (said > -np.inf).all()
    assert (made.log_prob("to bee, or") < -1e9).any()
    windows = np.array([made.interface.window("to be, o")])
    assert made.predict_proba(windows)[0].argmax() == ord("r")


def test_one_class_alone_is_certain() -> None:
    single = memorize([[1, 2]], [["yes", "yes"]], logits=True, certify=False)
    np.testing.assert_array_equal(single.logits([[1, 2]]), np.zeros((1, 2, 1)))
    np.testing.assert_array_equal(single.predict_proba([[1, 2]]), np.ones((1, 2, 1)))
    assert single.log_prob([[1, 2]], [["yes", "yes"]]).tolist() == [[0, 0]]
