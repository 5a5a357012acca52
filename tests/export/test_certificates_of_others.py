"""Models that carry the certificate of another: same weights, other loops, another algorithm, a better bound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onelayer
from onelayer.export import bundle

Change = Callable[[onelayer.Model], onelayer.Model]


def learned() -> onelayer.Model:
    return onelayer.learner("ridge", d=2, penalty=0.2, steps=30)


def attention(**changes: Any) -> Change:
    return lambda m: replace(
        m, transformer=replace(m.transformer, attention=replace(m.transformer.attention, **changes))
    )


def interface(**changes: Any) -> Change:
    return lambda m: replace(m, interface=replace(m.interface, **changes))


CHANGES: dict[str, tuple[Change, str]] = {
    "loops": (lambda m: replace(m, transformer=replace(m.transformer, repeat=31)), "another number of loops"),
    "sum": (attention(mean=False), "another kind of attention"),
    "relu": (attention(kind="relu"), "another kind of attention"),
    "algorithm": (
        lambda m: replace(
            m, interface=replace(m.interface, algorithm=onelayer.learner("gd", d=2).interface.algorithm)
        ),
        "another algorithm",
    ),
    "bound": (interface(error_bound=1e-9), "no claim says error_bound=1e-09"),
    "box": (interface(low=-2.0), "no claim says error_bound"),
    "answers": (interface(largest=2.0), "no claim says error_bound"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_that_is_not_the_proved_one_is_not_verified(name: str) -> None:
    change, words = CHANGES[name]
    model = learned()
    assert model.verify().result == "VERIFIED"
    with pytest.raises(onelayer.OptionError, match=words):
        change(model).verify()


@pytest.mark.parametrize("name", CHANGES)
def test_a_folder_that_is_not_the_proved_model_is_not_loaded(name: str, tmp_path: Path) -> None:
    """Whoever forges a folder writes all digests anew."""
    change, words = CHANGES[name]
    model = learned()
    other = replace(change(model), certificate=None)
    forged = bundle.files(other)
    description = json.loads(forged[bundle.DESCRIPTION])
    assert model.certificate is not None
    forged |= model.certificate.files(forged[bundle.WEIGHTS])
    assert description["weights_sha256"] == hashlib.sha256(forged[bundle.WEIGHTS]).hexdigest()
    folder = tmp_path / "model"
    folder.mkdir()
    for file, content in forged.items():
        (folder / file).write_bytes(content)
    with pytest.raises(onelayer.FileError, match=words):
        onelayer.load(folder)


def test_hardmax_is_not_verified_by_a_proof_about_softmax() -> None:
    model = onelayer.memorize([["a", "b"], ["b", "c"]], [[0, 1], [1, 2]]).certify(
        [["a", "b"], ["b", "c"]], [[0, 1], [1, 2]]
    )
    assert model.verify().result == "VERIFIED"
    with pytest.raises(onelayer.OptionError, match="another kind of attention"):
        attention(kind="hardmax")(model).verify()
