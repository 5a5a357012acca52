"""A function of two numbers, attention first: a model whose mean square error is proved, saved and proved again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer import load
from onelayer.compile.in_mean import compile_in_mean
from onelayer.errors import HypothesisError, OptionError
from onelayer.interfaces import Function
from onelayer.model import Model
from onelayer_checker.functions import means

CUBIC = "x + 8*(x - mean(y))**3"


@pytest.fixture(scope="module")
def model() -> Model:
    """Few heads, for speed: a little better than the difference of the tokens alone, which leaves 0.408."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(means, "SHARES", (2.0**-19, 2.0**-21))
        return compile_in_mean(CUBIC, cells=2, steepness=20.0)


def test_it_is_public_and_documented() -> None:
    assert onelayer.compile_in_mean is compile_in_mean
    assert "compile_in_mean" in onelayer.__all__
    page = Path(__file__).parents[2] / "docs" / "reference.md"
    assert ".. autofunction:: compile_in_mean\n" in page.read_text(encoding="utf-8")


def mean_square(model: Model, n: int = 300) -> float:
    axis = -1 + (np.arange(n) + 0.5) * 2 / n
    X = np.stack([a.ravel() for a in np.meshgrid(axis, axis)], 1)[:, :, None]
    return float(np.sqrt((model.errors(X) ** 2).mean()))


def test_the_bound_is_proved_and_near_what_is_measured(model: Model) -> None:
    found, measured = model.interface, mean_square(model)
    assert isinstance(found, Function)
    assert measured <= found.mean_bound <= 1.02 * measured
    assert found.error_bound == np.inf
    assert found.measured_error > found.mean_bound
    assert model.certificate is not None
    assert [(c["type"], c["arith"]) for c in model.certificate.claims] == [
        ("lp_error", "real"),
        ("lp_error", "float64"),
    ]


def test_its_line_says_what_is_proved(model: Model) -> None:
    assert "(proved in the mean)" in repr(model)
    assert "2 claims certified" in repr(model)
    assert "no input is left out" in model.explain()
    assert "how large the error is at a single input" in model.explain()


def test_it_is_proved_again_from_its_files(model: Model, tmp_path: Path) -> None:
    again = load(model.save(tmp_path / "model"))
    assert again.interface == model.interface
    assert again.verify().result == "VERIFIED"


def test_a_smaller_bound_in_the_interface_is_noticed(model: Model) -> None:
    found, claims = model.interface, model.certificate.claims if model.certificate else ()
    assert isinstance(found, Function)
    assert found.unclaimed(claims) == ""
    for claim, name, value in (
        (claims[1], "arith", "float32"),
        (claims[1], "p", (3.0).hex()),
        (claims[1], "low", (-0.5).hex()),
        (claims[1], "bound", (1.0).hex()),
        (claims[1], "type", "sup_error"),
        (claims[1], "target", {}),
    ):
        assert "mean_bound" in found.unclaimed([claim | {name: value}]), name
    assert "mean_bound" in replace(found, mean_bound=found.mean_bound * 0.999).unclaimed(claims)
    assert "error_bound" in replace(found, error_bound=1.0).unclaimed(claims)


def test_the_ledger_and_the_stages() -> None:
    """Of a Python function nothing is proved, and the line says so."""
    stages: list[str] = []

    def square(X: Any) -> Any:
        return X**2

    model = compile_in_mean(square, cells=2, steepness=8.0, kind="equivariant", on_step=stages.append)
    assert stages == ["building 2 cells", "asking the checker", "measuring the largest error"]
    assert model.certificate is None
    assert "not proved" in repr(model)
    assert (model.ledger["cells"], model.ledger["steepest"]) == (2, 8.0)
    assert model.ledger["heads"] == model.transformer.attention.heads


@pytest.mark.parametrize("target", ["reversal", "x, x**2"])
def test_targets_of_another_kind_are_refused(target: str) -> None:
    with pytest.raises(HypothesisError, match="attention_first"):
        compile_in_mean(target)


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(OptionError, match="attention_first"):
        compile_in_mean(CUBIC, cells=0)
