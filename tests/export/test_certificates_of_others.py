"""Models that carry the certificate of another: same weights, other loops, another algorithm, a better bound."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
    "bound": (interface(error_bound=1e-9), "no claim says that a bound is 1e-09"),
    "box": (interface(low=-2.0), "no claim says that a bound is"),
    "answers": (interface(largest=2.0), "no claim says that a bound is"),
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
    """Whoever forges a folder writes all digests again."""
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


def box(**changes: Any) -> Change:
    return lambda m: interface(box=replace(m.interface.box, **changes))(m)


FUNCTIONS: dict[str, dict[str, Any]] = {
    "formula": {"target": "x - mean(y)", "n": 3, "tolerance": 0.1},
    "quantise": {"target": "x - mean(y)", "n": 2, "tolerance": 0.3, "construction": "quantise"},
    "assumed": {
        "target": lambda X: np.sin(X).mean(axis=1),
        "n": 2,
        "tolerance": 0.3,
        "kind": "invariant",
        "lipschitz": 1.0,
    },
}
OTHER_FUNCTIONS: dict[str, Change] = {
    "bound": interface(error_bound=1e-9),
    "box": box(low=-2.0),
    "high": box(high=2.0),
    "dtype": box(dtype=np.dtype("float64")),
    "tokens": lambda m: interface(target=onelayer.approximate("x*mean(y)", n=4, tolerance=0.5).target)(m),
    "left out": interface(left_out=0.0),
    "cells": box(radius=0.5),
}
#: Nothing is left out by a formula, and its bound is not about cells.
ALL_OF_THE_BOX = {("formula", "left out"), ("formula", "cells")}


@functools.cache
def computed(name: str) -> onelayer.Model:
    return onelayer.approximate(**FUNCTIONS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("change", OTHER_FUNCTIONS)
def test_a_function_has_the_bound_box_and_target_that_were_proved(name: str, change: str) -> None:
    model = computed(name)
    assert model.verify().result == "VERIFIED"
    other = OTHER_FUNCTIONS[change](model)
    if (name, change) in ALL_OF_THE_BOX:
        assert other.verify().result == "VERIFIED"
        return
    with pytest.raises(onelayer.OptionError, match="no claim says error_bound="):
        other.verify()


def test_hardmax_is_not_verified_by_a_proof_about_softmax() -> None:
    model = onelayer.memorize([["a", "b"], ["b", "c"]], [[0, 1], [1, 2]]).certify(
        [["a", "b"], ["b", "c"]], [[0, 1], [1, 2]]
    )
    assert model.verify().result == "VERIFIED"
    with pytest.raises(onelayer.OptionError, match="another kind of attention"):
        attention(kind="hardmax")(model).verify()
