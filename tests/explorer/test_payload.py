"""What a page is packed from."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer.explorer import samples
from onelayer.model import Model


def unpack(packed: bytes) -> tuple[dict[str, Any], bytes]:
    content = zlib.decompress(packed)
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


@pytest.mark.parametrize("kind", ["words", "reals", "text", "function", "learner"])
def test_every_weight_is_in_it(kind: str, request: pytest.FixtureRequest) -> None:
    model: Model = request.getfixturevalue(kind)
    described, content = unpack(model.explore().packed)
    assert described["kind"] == kind
    for name, array in model.transformer.tensors():
        entry = described["tensors"][name]
        found = np.frombuffer(content, entry["type"], array.size, entry["start"]).reshape(entry["shape"])
        assert entry["start"] % 8 == 0
        assert np.array_equal(found, array)
        assert found.dtype == array.dtype


def test_the_certificate_is_in_words(reals: Model) -> None:
    certificate = unpack(reals.explore().packed)[0]["certificate"]
    radius = next(c["radius"] for c in reals.certificate.claims if c["type"] == "robust")  # type: ignore[union-attr]
    assert certificate["radius"] == float.fromhex(radius)
    assert sum(len(block["items"]) for block in certificate["words"]) == reals.explain().count("  - ")


def test_other_sequences_are_shown_if_they_are_given(reals: Model) -> None:
    X = np.arange(24, dtype=float).reshape(4, 3, 2)
    described, content = unpack(reals.explore(X).packed)
    entry = described["samples"]["tokens"]
    assert np.array_equal(np.frombuffer(content, "float64", X.size, entry["start"]), X.ravel())
    assert described["samples"]["total"] == 4


def test_a_page_carries_some_of_many_sequences(reals: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_NUMBERS", 5 * 6)
    described, _ = unpack(reals.explore().packed)
    assert described["samples"]["tokens"]["shape"] == [5, 3, 2]
    assert described["samples"]["total"] == 20


def test_a_model_without_a_proof_says_so(reals: Model) -> None:
    from dataclasses import replace

    certificate = unpack(replace(reals, certificate=None).explore().packed)[0]["certificate"]
    assert certificate["claims"] == 0
    assert "no certificate" in certificate["words"][0]["text"]


def test_the_command_writes_a_page(words: Model, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from onelayer.cli.app import app

    words.save(tmp_path / "model")
    target = tmp_path / "page.html"
    run = CliRunner().invoke(app, ["explore", str(tmp_path / "model"), "--out", str(target), "--json"])
    assert json.loads(run.stdout) == {"written": str(target), "bytes": target.stat().st_size}
    assert target.read_text(encoding="utf-8") == onelayer.explore(tmp_path / "model", title="model").html
    again = CliRunner().invoke(app, ["explore", str(tmp_path / "model"), "--out", str(target)])
    assert "exists" in str(again.exception)
