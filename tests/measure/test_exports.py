"""Exports are covered by a certificate exactly if they are the certified model; a replay can only refute."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

import onelayer
from onelayer import approximate, save, to_onnx, to_torch
from onelayer.export.torchscript import to_torchscript
from onelayer.measure.exports import onnx_mismatch, replay, torch_mismatch
from onelayer_checker import check
from tests.cli.test_cli import run

memorize = partial(onelayer.memorize, certify=False)

rng = np.random.default_rng(21)
X, Y, lengths = rng.standard_normal((30, 5, 3)), rng.integers(0, 9, (30, 5)), rng.integers(1, 6, 30)
words = [["a", "b"], ["b", "c", "a"], ["c"]]


@pytest.fixture(scope="module", params=["float64", "float32", "ragged", "sequence", "words"])
def exported(request, tmp_path_factory):
    """A certified bundle, its model, an ONNX file and a state dict."""
    folder = tmp_path_factory.mktemp(request.param)
    data = {
        "ragged": (X, Y, lengths),
        "sequence": (X, Y[:, 0]),
        "words": (words, [[1, 2], [3, 4, 5], [6]]),
    }.get(request.param, (X, Y))
    dtype = "float32" if request.param == "float32" else "float64"
    model = memorize(data[0], data[1], lengths=data[2] if len(data) > 2 else None, dtype=dtype)
    save(folder / "bundle", model, data=data)
    to_onnx(model, folder / "m.onnx")
    to_onnx(model, folder / "masked.onnx", padding="attention_mask")
    torch.save(to_torch(model).state_dict(), folder / "m.pt")
    to_torchscript(model, folder / "script.pt")
    return folder, model


def test_honest_exports_are_the_certified_model(exported) -> None:
    folder, _ = exported
    assert onnx_mismatch(folder / "bundle", folder / "m.onnx") == ""
    assert onnx_mismatch(folder / "bundle", folder / "masked.onnx") == ""
    assert torch_mismatch(folder / "bundle", folder / "m.pt") == ""
    assert torch_mismatch(folder / "bundle", folder / "script.pt") == ""
    assert replay(folder / "bundle", ("numpy", "torch", "onnx")) == {"numpy": "", "torch": "", "onnx": ""}


def test_a_script_of_another_model_is_found_out(exported, tmp_path) -> None:
    """With another weight, and with the same weights used in another way."""
    folder, model = exported
    t = model.transformer
    weight = np.nextafter(t.attention.W_V, np.inf)
    others = {"weights": replace(t.attention, W_V=weight), "code": replace(t.attention, causal=True)}
    for said, attention in others.items():
        to_torchscript(replace(model, transformer=replace(t, attention=attention)), tmp_path / "other.pt")
        assert said in torch_mismatch(folder / "bundle", tmp_path / "other.pt")


def change_weight(m) -> None:
    tensor = next(t for t in m.graph.initializer if t.name == "attention.W_K")
    array = numpy_helper.to_array(tensor).copy()
    array.flat[0] = np.nextafter(array.flat[0], np.inf)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def extra_node(m) -> None:
    m.graph.node[-1].output[0] = "before"
    m.graph.node.append(helper.make_node("Relu", ["before"], ["outputs"]))


def changed_attribute(m) -> None:
    node = next(n for n in m.graph.node if n.op_type == "Softmax")
    node.attribute.append(helper.make_attribute("axis", 1))


CHANGES = {
    "one bit of a weight": (change_weight, "attention.W_K differs"),
    "an extra node": (extra_node, "node"),
    "a changed attribute": (changed_attribute, "is Softmax"),
    "a missing initialiser": (lambda m: m.graph.initializer.pop(), "is missing"),
    "an extra initialiser": (
        lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones(2), "backdoor")),
        "backdoor is not part",
    ),
    "a node replaced": (lambda m: setattr(m.graph.node[-2], "op_type", "Abs"), "is Abs"),
    "another opset": (lambda m: setattr(m.opset_import[0], "version", 20), "opset_import differs"),
    "an initialiser twice": (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "share a name"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_onnx_file_is_refused(exported, tmp_path, name) -> None:
    folder, _ = exported
    change, said = CHANGES[name]
    m = onnx.load(folder / "m.onnx")
    change(m)
    (tmp_path / "changed.onnx").write_bytes(m.SerializeToString())
    assert said in onnx_mismatch(folder / "bundle", tmp_path / "changed.onnx")


def test_other_files_are_refused(exported, tmp_path) -> None:
    folder, model = exported
    (tmp_path / "junk").write_bytes(b"\x08junk")
    assert "is not" in onnx_mismatch(folder / "bundle", tmp_path / "junk")
    assert "not a state dict" in torch_mismatch(folder / "bundle", tmp_path / "junk")
    state = to_torch(model).state_dict()
    name = next(iter(state))
    state[name] = state[name] + 1e-12 if state[name].dtype == torch.float64 else state[name] * 1.0001 + 1
    torch.save(state, tmp_path / "changed.pt")
    assert f"{name} differs" in torch_mismatch(folder / "bundle", tmp_path / "changed.pt")
    state.pop(name)
    torch.save(state, tmp_path / "fewer.pt")
    assert "names differ" in torch_mismatch(folder / "bundle", tmp_path / "fewer.pt")


@pytest.mark.parametrize("exported", ["ragged"], indirect=True)
def test_the_command_line_compares_and_replays(exported, tmp_path) -> None:
    folder, _ = exported
    bundle, onnx_file, state = folder / "bundle", folder / "m.onnx", folder / "m.pt"
    done = run("verify", bundle, "--onnx", onnx_file, "--torch", state, "--replay", "numpy,torch,onnx")
    shown = done.stdout
    assert "W:onnxruntime" not in done.stderr  # that lengths have a default is what we want
    assert shown.splitlines()[-1] == "VERIFIED"
    m = onnx.load(onnx_file)
    change_weight(m)
    (tmp_path / "changed.onnx").write_bytes(m.SerializeToString())
    said = json.loads(run("verify", bundle, "--onnx", tmp_path / "changed.onnx", "--json", ok=1).stdout)
    assert said["result"] == "NOT VERIFIED"


@pytest.mark.parametrize("exported", ["ragged"], indirect=True)
def test_reports_are_pages_that_say_the_verdict(exported, tmp_path) -> None:
    folder, _ = exported
    run("report", folder / "bundle", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "VERIFIED" in page
    assert "What is not claimed" in page
    assert "the answer at every stored" in page


FUNCTIONS = {
    "cells": {"target": "x - mean(y)", "construction": "quantise"},
    "heads": {"target": "x1*x2 + sin(x1)", "construction": "positional"},
    "gated heads": {"target": "reversal", "construction": "positional"},
    "assumed": {
        "target": lambda X: X.max(axis=1),
        "kind": "invariant",
        "lipschitz": 1.0,
        "construction": "quantise",
    },
}


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request, tmp_path_factory):
    """The same for models of functions, some with several heads."""
    folder = tmp_path_factory.mktemp("function")
    model = approximate(**FUNCTIONS[request.param], n=2, tolerance=0.1)
    model.save(folder / "bundle")
    to_onnx(model, folder / "m.onnx")
    to_onnx(model, folder / "masked.onnx", padding="attention_mask")
    torch.save(to_torch(model).state_dict(), folder / "m.pt")
    to_torchscript(model, folder / "script.pt")
    return folder, model


def test_exports_of_functions_are_the_certified_model(function, tmp_path) -> None:
    folder, model = function
    assert len(model.transformer.attention.W_Q) == (2 if model.interface.construction == "positional" else 1)
    assert onnx_mismatch(folder / "bundle", folder / "m.onnx") == ""
    assert torch_mismatch(folder / "bundle", folder / "m.pt") == ""
    assert replay(folder / "bundle", ("numpy", "torch", "onnx")) == {"numpy": "", "torch": "", "onnx": ""}
    assert check(folder / "bundle").result == "VERIFIED"
    m = onnx.load(folder / "m.onnx")
    change_weight(m)
    (tmp_path / "changed.onnx").write_bytes(m.SerializeToString())
    assert "attention.W_K differs" in onnx_mismatch(folder / "bundle", tmp_path / "changed.onnx")


def test_a_replay_refutes_a_bound_that_is_too_small(function, tmp_path) -> None:
    """A claim that nobody proved: the model stays, the bound shrinks. A target that nobody can evaluate has its
    stored values, which are met."""
    _, model = function
    claims = [claim | {"bound": (model.measured_error / 64).hex()} for claim in model.certificate.claims]
    save(tmp_path / "forged", model, certificate=replace(model.certificate, claims=tuple(claims)))
    said = replay(tmp_path / "forged", ("numpy", "torch", "onnx"))
    assert [" is off by " in why for why in said.values()] == [not model.interface.assumes] * 3
