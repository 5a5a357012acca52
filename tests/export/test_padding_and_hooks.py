"""Padding on either side, scripts, values that hooks can see, gradients, and files that say what they mean."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import onelayer
from onelayer.certificates.folder import CERTIFICATE
from onelayer.export import bundle
from onelayer.export.onnx import to_onnx
from onelayer.export.torch import to_torch
from onelayer.export.torchscript import MEANING, load_script, script_bytes, to_torchscript
from tests.export.exported import Case, case, random_transformer

PADDED = ["ids, positions and lengths", "lengths, float32"]


@pytest.fixture(scope="module")
def company() -> onelayer.Model:
    return onelayer.memorize([["river", "bank"], ["bank", "robber"]], [["water", "shore"], ["money", "crime"]])


def moved(stored: Case, left: bool) -> tuple[np.ndarray, np.ndarray]:
    """Tokens with two more places of padding on a side, which hold what no model may look at, and the mask."""
    tokens, inside = stored.stored.tokens, stored.inside
    shape = (tokens.shape[0], tokens.shape[1] + 2, *tokens.shape[2:])
    wide, mask = np.full(shape, 10**6 if tokens.ndim == 2 else np.nan, tokens.dtype), np.zeros(shape[:2], np.int64)
    for row, here in enumerate(inside):
        count = int(here.sum())
        places = slice(shape[1] - count, shape[1]) if left else slice(0, count)
        wide[row, places], mask[row, places] = tokens[row, here], 1
    return wide, mask


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("left", [True, False])
def test_padding_on_either_side_leaves_the_bits_alone(name, left, tmp_path) -> None:
    stored = case(name)
    tokens, mask = moved(stored, left)
    with torch.inference_mode():
        found = to_torch(stored.model)(torch.tensor(tokens), attention_mask=torch.tensor(mask)).numpy()
    path = to_onnx(stored.model, tmp_path / "m.onnx", padding="attention_mask")
    real = tokens.astype(stored.transformer.dtype) if tokens.ndim == 3 else tokens
    ran = onnxruntime.InferenceSession(path).run(None, {"tokens": real, "attention_mask": mask})[0]
    for outputs in (found, ran):
        np.testing.assert_array_equal(outputs[mask == 1], stored.outputs[stored.inside])


def test_a_mask_of_ones_is_no_mask_and_a_mask_is_no_length() -> None:
    stored = case("ids and positions")
    net, tokens = to_torch(stored.model), torch.tensor(stored.stored.tokens)
    mask = torch.ones_like(tokens)
    assert torch.equal(net(tokens), net(tokens, attention_mask=mask))
    with pytest.raises(ValueError, match="attention_mask="):
        net(tokens, mask)
    with pytest.raises(ValueError, match=r"attention_mask \[N, n\]"):
        net(tokens, attention_mask=mask[:, :-1])


@pytest.mark.parametrize("name", ["ids and positions", "real tokens, float32"])
def test_lengths_need_not_be_given(name, tmp_path) -> None:
    stored = case(name)
    tokens = stored.stored.tokens
    asked = tokens if tokens.ndim == 2 else tokens.astype(stored.transformer.dtype)
    for padding in ("lengths", "attention_mask"):
        session = onnxruntime.InferenceSession(to_onnx(stored.model, tmp_path / padding, padding))
        assert [given.name for given in session.get_inputs()] == ["tokens"]
        np.testing.assert_array_equal(session.run(None, {"tokens": asked})[0], stored.outputs)


def test_an_unknown_padding_is_refused(company, tmp_path) -> None:
    with pytest.raises(onelayer.OptionError, match="padding among lengths, attention_mask"):
        to_onnx(company, tmp_path / "m.onnx", padding="left")


@pytest.mark.parametrize("kind", ["softmax", "hardmax", "linear", "relu", "mesa"])
def test_a_script_computes_the_same(kind, tmp_path) -> None:
    own = {"ridge": np.ones(2)} if kind == "mesa" else {}
    net = to_torch(random_transformer(np.random.default_rng(3), kind=kind, causal=kind == "relu", **own))
    (tmp_path / "s.pt").write_bytes(script_bytes(net))
    script, X = load_script(tmp_path / "s.pt"), torch.randn(3, 6, 5, dtype=torch.float64)
    masked = torch.tensor([[0] * 3 + [1] * 3] * 3)
    for padding in ({}, {"lengths": torch.tensor([1, 4, 6])}, {"attention_mask": masked}):
        assert torch.equal(net(X, **padding), script(X, **padding))


def test_a_hook_sees_the_softmax_weights_and_replaces_them() -> None:
    stored = case("ids")
    net, tokens = to_torch(stored.model), torch.tensor(stored.stored.tokens)
    seen: dict[str, torch.Tensor] = {}
    names = {"logits": "logits", "pattern": "attention", "averages": "averages"}  # in torch, and in a trace

    def keep(module: torch.nn.Module, _given: tuple[torch.Tensor], out: torch.Tensor) -> None:
        seen.update({name: out.detach() for name, value in net.attention.named_children() if value is module})

    handles = [value.register_forward_hook(keep) for value in net.attention.children()]
    net(tokens)
    assert set(seen) == {"queries", "keys", "values", "logits", "pattern", "averages", "written"}
    trace = stored.model.trace(stored.stored.tokens)
    for value, name in names.items():
        np.testing.assert_allclose(seen[value][:, 0], trace[f"head0.{name}"], rtol=1e-5)
    for handle in handles:
        handle.remove()
    net.attention.pattern.register_forward_hook(lambda _m, _i, out: torch.zeros_like(out))
    assert not torch.equal(net(tokens), torch.tensor(stored.outputs))


def test_gradients_are_0_behind_a_readout_of_plateaus() -> None:
    """What the docstring says of stored tokens; with a readout that interpolates it is not so."""
    for name, flat in (("ids", True), ("triangular", False)):
        stored = case(name)
        net = to_torch(stored.model)
        net(torch.tensor(stored.stored.tokens)).sum().backward()
        assert (not net.attention.W_V.grad.any()) is flat
        assert net.readout[-1].weight.grad.any()


def test_a_file_says_what_its_numbers_mean(company, tmp_path) -> None:
    file = onnx.load(to_onnx(company, tmp_path / "m.onnx"))
    said = {entry.key.removeprefix("onelayer."): entry.value for entry in file.metadata_props}
    assert json.loads(said["vocabulary"]) == ["bank", "river", "robber"]
    assert json.loads(said["classes"]) == ["crime", "money", "shore", "water"]
    assert "rounded, is the place of the answer in `classes`" in file.doc_string
    digest = hashlib.sha256(bundle.files(company)[CERTIFICATE]).hexdigest()
    assert said["certificate_sha256"] == digest
    assert any(claim["type"] == "memorizes" for claim in json.loads(said["claims"]))
    nodes = {node.name for node in file.graph.node}
    assert {"attention/attention", "readout/plateaus/3/readout.3"} <= nodes
    extra = {MEANING: ""}
    with pytest.warns(DeprecationWarning, match="torch.jit.load"):
        torch.jit.load(to_torchscript(company, tmp_path / "m.pt"), _extra_files=extra)
    assert {k.removeprefix("onelayer."): v for k, v in json.loads(extra[MEANING]).items()} == said


def test_whoever_has_only_the_file_gets_the_answers(company, tmp_path) -> None:
    path = to_onnx(company, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(path)
    said = session.get_modelmeta().custom_metadata_map
    words, classes = (json.loads(said[f"onelayer.{key}"]) for key in ("vocabulary", "classes"))
    out = session.run(None, {"tokens": np.array([[words.index(word) for word in ("robber", "bank")]])})[0]
    assert [classes[round(x)] for x in out[0, :, 0].tolist()] == ["crime", "money"]
