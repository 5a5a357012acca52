"""`onelayer export`: files that other libraries open, and how they are opened."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest
import torch

import onelayer
from onelayer.export.torchscript import load_script
from tests.cli.test_cli import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("export")
    onelayer.memorize([["river", "bank"], ["bank", "robber"]], [["water", "shore"], ["money", "crime"]]).save(
        path / "m"
    )
    return path


def test_what_is_written_is_opened_as_it_says_and_is_the_certified_model(folder) -> None:
    assert "torch.jit.load(" in run("export", folder / "m", "--to", "torch").stdout
    said = json.loads(run("export", folder / "m", "--to", "onnx", "--padding", "attention_mask", "--json").stdout)
    assert said["written"] == str(folder / "m.onnx")
    run("verify", folder / "m", "--torch", folder / "m.pt", "--onnx", folder / "m.onnx")
    tokens = np.array([[1, 0]])
    out = onnxruntime.InferenceSession(said["written"]).run(None, {"tokens": tokens})[0]
    script = load_script(folder / "m.pt")
    np.testing.assert_array_equal(script(torch.tensor(tokens)).detach().numpy(), out)


def test_a_folder_for_hugging_face_and_transformer_lens(folder) -> None:
    said = run("export", folder / "m", "--to", "hf").stdout
    assert "transformers.AutoModelForTokenClassification.from_pretrained(" in said
    assert run("verify", folder / "m-hf").stdout.endswith("VERIFIED\n")
    said = run("export", folder / "m", "--to", "transformer-lens", "--overwrite").stdout
    assert "onelayer.to_transformer_lens(onelayer.load(" in said


def test_a_file_that_exists_is_kept(folder, tmp_path) -> None:
    (tmp_path / "kept.pt").write_text("mine")
    asked = ("export", folder / "m", "--to", "torch", "--out", tmp_path / "kept.pt")
    assert "Pass --overwrite" in run(*asked, ok=66).stderr
    assert (tmp_path / "kept.pt").read_text() == "mine"
    run(*asked, "--overwrite")
    assert (tmp_path / "kept.pt").read_bytes() != b"mine"
