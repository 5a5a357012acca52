"""Every verb takes every kind of model; what a kind does not have is said in a line that names what has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from matplotlib.figure import Figure

import onelayer
from onelayer import DataError, HypothesisError, OptionError, cast, load, to_onnx, to_torch
from onelayer.interfaces import Answers, Function, NextToken
from onelayer.measure.recall import recall
from tests.model.models import MAKERS, TEXT, made

KINDS = {
    name: Function
    if name in list(MAKERS)[list(MAKERS).index("quantise") :]
    else NextToken
    if "text" in name
    else Answers
    for name in MAKERS
}


@pytest.mark.parametrize("name", MAKERS)
def test_the_interface_says_what_goes_in_and_comes_out(name: str) -> None:
    model = made(name).model
    assert type(model.interface) is KINDS[name]
    assert model.interface.describe() in repr(model)


@pytest.mark.parametrize("name", MAKERS)
def test_stored_answers_and_values_come_back(name: str) -> None:
    one = made(name)
    assert recall(one.model, one.X, one.Y, one.lengths).perfect


@pytest.mark.parametrize("name", MAKERS)
def test_exports_answer_as_the_model(tmp_path: Path, name: str) -> None:
    one = made(name)
    asked = one.model.ask(one.X, one.lengths)
    dtype = one.model.transformer.dtype
    tokens = asked.tokens.astype(dtype) if asked.is_real else asked.tokens
    lengths = np.full(len(tokens), tokens.shape[1]) if asked.lengths is None else asked.lengths
    with torch.inference_mode():
        found = to_torch(one.model)(torch.from_numpy(tokens), torch.from_numpy(lengths))
    in_torch = (found.float() if found.dtype == torch.bfloat16 else found).numpy()  # NumPy has no bfloat16
    session = onnxruntime.InferenceSession(to_onnx(one.model, tmp_path / "m.onnx"))
    in_onnx = session.run(["outputs"], {"tokens": tokens, "lengths": lengths})[0]
    interpolates = KINDS[name] is Function or name in ("interpolated reals", "readout triangular")
    off = 1e-3 if interpolates else 0.0  # then the order of a sum shows
    wanted, inside = one.model.outputs(asked), asked.valid()
    for outputs in (in_torch, in_onnx):
        answers = one.model.answers(outputs, asked)
        if inside is None and not off:
            np.testing.assert_equal(answers, one.model.predict(one.X))
        away = np.abs(outputs.astype(np.float64) - wanted)
        if KINDS[name] is NextToken:
            away = away[:, -1:]  # what follows a whole window is all that is meant
        assert (away if inside is None else away[inside]).max() <= off


@pytest.mark.parametrize("name", MAKERS)
def test_every_model_can_be_asked_in_sixteen_bits(name: str) -> None:
    one = made(name)
    report = cast(one.model, "bfloat16", one.X, one.Y, one.lengths)
    assert report.asked == report.total > 0
    assert report.right <= report.asked


@pytest.mark.parametrize("name", MAKERS)
def test_every_model_can_be_drawn(tmp_path: Path, name: str) -> None:
    model = made(name).model
    figure = model.plot()
    assert isinstance(figure, Figure)
    assert len(figure.axes) >= 1
    figure.savefig(tmp_path / "p.png", dpi=30)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", MAKERS)
def test_every_model_says_what_is_proved(name: str) -> None:
    model = made(name).model
    if model.proved:
        assert "Not claimed:" in model.explain()
        assert model.verify().result == "VERIFIED"
        assert model.verify(require=["separated" if KINDS[name] is not Function else "sup_error"])
        return
    assert "It has no certificate." in model.explain()
    assert model.interface.says in model.explain()
    with pytest.raises(OptionError, match="nothing was proved of this model"):
        model.verify()


@pytest.mark.parametrize("name", ["words", "text", "quantise"])
def test_what_another_kind_has_is_said_in_one_line(name: str) -> None:
    model, kind = made(name).model, KINDS[name]
    of_texts = (
        lambda: model.generate("a", 1),
        lambda: model.stream("a", 1),
        lambda: model.next_distribution("a"),
        lambda: model.windows,
    )
    of_functions = (
        lambda: model.target,
        lambda: model.error_bound,
        lambda: model.measured_error,
        lambda: model.budget,
        lambda: model.errors(np.zeros((1, 2, 1))),
    )
    for verbs, owner in ((of_texts, NextToken), (of_functions, Function)):
        for verb in verbs:
            if kind is owner:
                continue
            with pytest.raises(OptionError) as refusal:
                verb()
            assert f"a model that {owner.says}" in str(refusal.value)
            assert f"this model {kind.says}" in str(refusal.value)
            assert "\n" not in str(refusal.value)
    if kind is Function:
        with pytest.raises(OptionError, match=r"stored answers, for bits_per_parameter.*computes a function"):
            _ = model.bits_per_parameter
    else:
        assert 0 < model.bits_per_parameter < 32


def test_a_text_is_verified_as_a_file_or_as_it_is(tmp_path: Path) -> None:
    model = made("text").model
    (tmp_path / "text").write_text(TEXT)
    for given in (TEXT, TEXT.encode(), tmp_path / "text", str(tmp_path / "text")):
        assert model.verify(data=given).result == "VERIFIED"
    for other in (TEXT + "?", "\0" + TEXT, TEXT[1:].encode()):
        assert model.verify(data=other).result in ("NOT VERIFIED", "UNKNOWN"), other
    for nothing in (tmp_path / "nowhere", tmp_path / "no\0where"):
        assert model.verify(data=nothing).result == "UNKNOWN"


def test_a_text_is_no_batch_of_windows() -> None:
    with pytest.raises(DataError, match=r"windows of 6 token ids.*Use `generate`"):
        made("text").model.predict(TEXT)


def test_a_python_function_is_not_in_the_file(tmp_path: Path) -> None:
    one = made("a Python function")
    again = load(one.model.save(tmp_path / "m"))
    assert (again.error_bound, again.measured_error) == (one.model.error_bound, one.model.measured_error)
    assert again.target.name == "wave"
    for ask in (lambda: again.errors(one.X), again.plot):
        with pytest.raises(OptionError, match=r"'wave' was a Python function, which no file holds"):
            ask()


def test_proofs_are_made_where_models_are_made() -> None:
    X, Y = made("classes in float32").X, made("classes in float32").Y
    quick, thorough = made("classes in float32").model, made("classes, proved at length").model
    plain = made("classes, not asked for a proof").model
    claimed = {claim["type"] for claim in quick.certificate.claims}
    assert claimed == {"memorizes", "separated"}
    assert {claim["type"] for claim in thorough.certificate.claims} == claimed | {"robust"}
    assert (plain.ledger["certified"], quick.ledger["certified"]) == (False, True)
    assert plain.certify(X, Y).certificate == thorough.certificate
    assert onelayer.certify(plain, X, Y) == thorough.certificate
    certificate = made("a default class of its own, proved at length").model.certificate
    assert "rejects" in {claim["type"] for claim in certificate.claims}
    assert made("text, not proved").model.certify(TEXT).certificate == onelayer.certify(made("text").model, TEXT)


def test_why_nothing_is_proved_is_in_the_ledger() -> None:
    why = made("interpolated reals").model.ledger
    assert why["certified"] is False
    assert "it can prove" in why.meaning("certified")
    assert "Pass tolerance=" in why.meaning("certified")
    one = made("interpolated reals")
    with pytest.raises(HypothesisError, match=r"Pass tolerance="):
        onelayer.memorize(one.X, one.Y, readout="triangular", dtype="float64", certify=True)
    assert onelayer.memorize(one.X, one.Y, readout="triangular", dtype="float64", tolerance=1e-6).proved
