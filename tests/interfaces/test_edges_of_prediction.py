"""Inputs at the edges: beyond the range of the arithmetic, and tokens that no model has seen."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer
from onelayer import DataError, OnelayerError, approximate, load, save
from onelayer.measure.recall import recall
from onelayer.network import Attention, Transformer
from onelayer.network.blocks import evaluate
from onelayer.network.range import safe_sizes, watch_range

memorize = partial(onelayer.memorize, certify=False)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3, 2)).astype(np.float32)
Y = RNG.integers(0, 9, (80, 3))
SCALED = X * np.array([1e12, 1e-12], np.float32)  # components of very different sizes
MODELS = {
    "rank 1, float64": memorize(X, Y, dtype="float64"),
    "rank 1, float32": memorize(X, Y, dtype="float32", mapping="temperature", rank=1),
    "scaled": memorize(SCALED, Y, dtype="float32", mapping="temperature", rank=1),
    "boxes": memorize(X, Y, dtype="float64", readout="boxes", rank=2),
    "triangular": memorize(X[:10], Y[:10], dtype="float64", readout="triangular"),
    "retrieval": memorize(X, Y, mapping="lattice", readout="retrieval"),
    "table": memorize(X, Y, mapping="lattice", readout="table"),
    "positions": memorize(X, Y, dtype="float64", positions=True),
    "lattice with positions": memorize(X, Y, dtype="float32", mapping="lattice", positions=True),
    "sequences": memorize(X, Y[:, 0], dtype="float32"),
    "reals": memorize(X, Y.astype(np.float32) / 8, dtype="float32"),
    "default, float64": memorize(X, Y, dtype="float64", default=-1),
    "default, float32": memorize(X, Y, default=-1),
    "default of rank 1": memorize(X, Y, default=-1, dtype="float32", mapping="temperature", rank=1),
    "default, sequences": memorize(X, Y[:, 0], default=-1),
}
WITH_DEFAULT = [name for name in MODELS if name.startswith("default")]
WITHOUT = [name for name in MODELS if name not in WITH_DEFAULT]
BEYOND = {"float32": (3e38, -3e38, 1e39, 1e200), "float64": (1e200, -1e200, 1.7e308)}


def asked_with(value, place=(1, 0), count=4):
    asked = X[:count].astype(np.float64)
    asked[2, place[0], place[1]] = value
    return asked


@pytest.mark.parametrize("path", ["dense", "auto"])
@pytest.mark.parametrize("name", WITH_DEFAULT)
def test_what_overflows_gets_the_default_and_nothing_else_changes(name, path) -> None:
    model = MODELS[name]
    for value in BEYOND[str(model.transformer.dtype)]:
        answers = model.predict(asked_with(value), path=path)
        np.testing.assert_array_equal(answers[2], -1)
        known = [0, 1, 3]
        np.testing.assert_array_equal(answers[known], model.predict(X[known], path=path))


@pytest.mark.parametrize("path", ["dense", "auto"])
@pytest.mark.parametrize("name", WITHOUT)
def test_what_overflows_is_refused_by_name(name, path) -> None:
    model = MODELS[name]
    value = 1.7e308
    with pytest.raises(DataError, match=r"sequence 2, token 1, component 0 is 1.7e\+308, and .* safe up to"):
        model.predict(asked_with(value), path=path)
    with pytest.raises(DataError, match="sequence 2, token 2, component 1 is"):
        model.predict(asked_with(value, place=(2, 1)), path=path)


@pytest.mark.parametrize("name", MODELS)
def test_up_to_the_safe_size_nothing_overflows(name) -> None:
    """Warnings are errors here, those of NumPy's arithmetic among them."""
    model = MODELS[name]
    sizes = safe_sizes(model.transformer)
    assert (sizes > 100 * np.abs(SCALED if name == "scaled" else X).max(axis=(0, 1))).all()
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 0.0, 1e-3, 1.0], (300, 3, 2))
    asked = (signs * sizes).astype(model.transformer.dtype)
    outputs, finite = watch_range(model.transformer, asked)
    assert finite.all()
    np.testing.assert_array_equal(evaluate(model.transformer, asked), outputs)
    for path in ("dense", "auto"):
        model.predict(asked, path=path)


def test_sums_over_many_keys_are_counted() -> None:
    """The average is as small as a token, but before it is divided it is a sum of a thousand."""
    none, one = np.zeros((1, 1, 1), np.float32), np.ones((1, 1, 1), np.float32)
    model = Transformer(Attention(none, none, one, np.full((1, 1, 1), 2.0**-40, np.float32)))
    asked = np.full((1, 1000, 1), 1e37, np.float32)
    assert not watch_range(model, asked)[1].any()
    assert safe_sizes(model)[0] < 1e37
    assert watch_range(model, np.full_like(asked, safe_sizes(model)[0]))[1].all()


@pytest.mark.parametrize("name", MODELS)
def test_the_safe_size_is_not_far_below_what_overflows(name) -> None:
    """All components at once and a thousand million times the safe size: some value must leave the range."""
    model = MODELS[name]
    with np.errstate(over="ignore"):
        asked = (2.0**60 * safe_sizes(model.transformer) * np.ones((1, 3, 2))).clip(max=1.7e308)
    assert not watch_range(model.transformer, asked)[1].all()


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6, max_size=6))
def test_any_finite_input_is_answered_or_refused_without_a_warning(name, numbers) -> None:
    model, asked = MODELS[name], np.array(numbers).reshape(1, 3, 2)
    said = []
    for path in ("dense", "auto"):
        try:
            said.append(model.predict(asked, path=path))
        except OnelayerError as error:
            said.append(str(error))
    if isinstance(said[0], str):
        assert said[0] == said[1]
        assert "sequence 0, token" in said[0]
        assert name not in WITH_DEFAULT
        return
    assert np.isfinite(np.asarray(said[0], float)).all()
    if name not in ("triangular", "reals"):  # those interpolate between answers, and a last bit may differ there
        np.testing.assert_array_equal(*said)
    # Whatever was answered, no value of the forward pass was anything but a number.
    if name not in WITH_DEFAULT:
        assert watch_range(model.transformer, asked)[1].all()


def test_an_infinity_on_the_way_is_refused_although_the_outputs_are_finite() -> None:
    """A step saturates beyond infinity too, but no bound on rounding speaks of such inputs."""
    model, asked = MODELS["table"], asked_with(-3e38)
    found = model.trace(asked)
    assert np.isfinite(found["output"]).all()
    assert any(np.isinf(found[name]).any() for name in found.values)
    with pytest.raises(DataError, match=r"sequence 2, token 1, component 0 is -3e\+38"):
        model.predict(asked)


def test_only_tokens_count_not_what_lies_behind_a_length() -> None:
    model = memorize(X, Y, lengths=np.full(80, 2), dtype="float32")
    asked = X[:5].astype(np.float64)
    asked[3, 2] = 1e300
    np.testing.assert_array_equal(model.predict(asked, np.full(5, 2))[:, :2], Y[:5, :2])
    with pytest.raises(DataError, match="sequence 3, token 2"):
        model.predict(asked, np.array([2, 2, 2, 3, 2]))


def test_a_function_refuses_what_it_cannot_take() -> None:
    model = approximate("median", n=2, low=0, high=1, tolerance=0.1)
    for value in (3e38, 1e39, -1e200):
        for path in ("dense", "auto"):
            with pytest.raises(DataError, match="sequence 1, token 0, component 0"):
                model.predict([[[0.5], [0.2]], [[value], [0.2]]], path=path, outside="answer")
            with pytest.raises(DataError, match=r"within \[0, 1\].*sequence 1, token 0, component 0"):
                model.predict([[[0.5], [0.2]], [[value], [0.2]]], path=path)


def test_a_trace_shows_where_a_value_overflows() -> None:
    found = MODELS["rank 1, float32"].trace(asked_with(1e39))
    assert not np.isfinite(found["embedded"][2]).all()
    assert np.isfinite(found["output"][[0, 1, 3]]).all()


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_exported_models_answer_as_predict_does(runtime, tmp_path) -> None:
    asked = asked_with(-3e38)
    for name in ("default, float32", "default of rank 1", "rank 1, float32", "table"):
        model = MODELS[name]
        read = model.ask(asked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = run(model, read, runtime, tmp_path)
        if name in WITH_DEFAULT:
            np.testing.assert_array_equal(model.answers(outputs, read), model.predict(asked))
        else:
            with pytest.raises(DataError, match="sequence 2, token 1, component 0"):
                model.answers(outputs, read)


def run(model, read, runtime, folder):
    tokens = read.tokens.astype(model.transformer.dtype)
    if runtime == "torch":
        import torch

        from onelayer.export.torch import to_torch

        return to_torch(model)(torch.from_numpy(tokens)).detach().numpy()
    import onnxruntime

    from onelayer.export.onnx import to_onnx

    session = onnxruntime.InferenceSession(to_onnx(model, folder / "model.onnx"))
    return session.run(None, {"tokens": tokens, "lengths": np.full(len(tokens), tokens.shape[1])})[0]


def test_outputs_that_are_no_numbers_are_no_answers() -> None:
    model = MODELS["rank 1, float64"]
    outputs = model.outputs(model.read(X[:3]))
    outputs[1, 2] = np.nan
    with pytest.raises(DataError, match=r"sequence 1, token 2 is \[nan\]"):
        model.form.decode(outputs, None)
    assert model.form.decode(outputs, np.array([3, 2, 3]))[0].tolist() == Y[0].tolist()
    assert model.form.decode(np.full((1, 3, 1), 1e300), None).tolist() == [[8, 8, 8]]


FACTS = [["river", "bank"], ["bank", "robber"], ["robber", "river"]]
ANSWERS = [["water", "shore"], ["money", "crime"], ["crime", "flood"]]


def test_unseen_words_get_the_default_and_so_does_their_company(tmp_path) -> None:
    model = memorize(FACTS, ANSWERS, default="?")
    asked = [["bank", "river"], ["bank", "mountain"], ["sea", "salt"], ["mountain", "river"]]
    wanted = [["shore", "water"], *[["?", "?"]] * 3]
    for built in (model, load(save(tmp_path / "model", model))):
        for path in ("dense", "auto"):
            assert built.predict(asked, path=path).tolist() == wanted
        found = recall(built, asked, wanted)
        assert (found.right, found.total) == (8, 8)
    with pytest.raises(DataError, match="not in it"):
        model.read(asked)  # what is certified or measured must be known


def test_unseen_words_in_sequences_of_different_lengths() -> None:
    model = memorize([["a", "b", "c"], ["b", "a"]], [[1, 2, 3], [4, 5]], default=0)
    assert model.predict([["a", "b"], ["x"], ["c", "b", "a"]]) == [[5, 4], [0], [3, 2, 1]]
    per_sequence = memorize([["a", "b", "c"], ["b", "a"]], [7, 8], default=0)
    assert per_sequence.predict([["a", "b"], ["x"], ["c", "b", "a"]]).tolist() == [8, 0, 7]


def test_without_a_default_unseen_words_are_listed() -> None:
    model = memorize(FACTS, ANSWERS)
    with pytest.raises(DataError) as refused:
        model.predict([["bank", "river"], ["bank", "sea"], ["sea", "ice"]])
    assert "sequence 1, token 1 is 'sea', which is not in it; 2 tokens are not: 'sea', 'ice'. " in str(
        refused.value
    )
    with pytest.raises(DataError) as refused:
        model.predict([["bank", f"word {i}"] for i in range(1200)])
    assert "1,200 tokens are not: 'word 0', 'word 1', 'word 2', 'word 3', 'word 4', ..." in str(refused.value)


def test_words_for_a_model_of_numbers_are_a_mistake_with_a_default_too() -> None:
    model = memorize(np.arange(8).reshape(4, 2), np.arange(8).reshape(4, 2), default=-1)
    assert model.predict([[0, 99]]).tolist() == [[-1, -1]]
    with pytest.raises(DataError, match="2 tokens are not: '0', '1'"):
        model.predict([["0", "1"]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-5, 15), min_size=3, max_size=3), min_size=1, max_size=6))
def test_sequences_with_unseen_ids_get_the_default_and_others_do_not_notice(asked) -> None:
    ids = np.random.default_rng(2).integers(0, 10, (30, 3))
    model = memorize(ids, np.ones((30, 3), int), default=0)
    known = set(np.unique(ids).tolist())
    unknown = [not set(row) <= known for row in asked]
    answers = model.predict(np.array(asked))
    assert (answers[unknown] == 0).all()
    if not all(unknown):
        rest = np.array(asked)[~np.array(unknown)]
        np.testing.assert_array_equal(answers[~np.array(unknown)], model.predict(rest))
