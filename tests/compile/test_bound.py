"""How far a network is from a formula: proved from above, attained from below, closer with time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from onelayer import OptionError, approximate, bound_error
from onelayer.cli.app import app
from onelayer.export.onnx import build


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.up, self.attend = nn.Linear(1, 4), nn.MultiheadAttention(4, 1, batch_first=True)
        self.last = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)
        found: torch.Tensor = self.last(h + self.attend(h, h, h)[0])
        return found


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    module = Small()
    optimizer = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(120):
        x = torch.rand(128, 2, 1)
        loss = ((module(x) - (x - x.mean(1, keepdim=True))) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module.eval()


def test_bounds_of_a_trained_network_enclose_its_largest_error(trained: nn.Module) -> None:
    found = bound_error(trained, "x - mean(y)", n=2, seconds=20.0, close=0.1)
    assert found.lower <= found.upper <= 1.11 * found.lower
    with torch.no_grad():
        X = torch.rand(20_000, 2, 1)
        X[:4, :, 0] = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        errors = (trained(X) - (X - X.mean(1, keepdim=True))).abs().amax(dim=(1, 2))
        at = torch.from_numpy(found.where[None]).float()
        there = float((trained(at) - (at - at.mean(1, keepdim=True))).abs().max())
    assert float(errors.max()) <= found.upper + 1e-6
    assert abs(there - found.lower) <= 1e-5


def test_more_time_brings_the_bounds_closer(trained: nn.Module) -> None:
    first, second = (bound_error(trained, "x - mean(y)", n=3, seconds=s, close=0.01) for s in (0.01, 4.0))
    assert second.boxes > first.boxes
    assert second.upper < first.upper
    assert second.lower >= first.lower


def test_a_wrong_formula_is_shown_by_the_lower_bound(trained: nn.Module) -> None:
    found = bound_error(trained, "mean(y) - x", n=2, seconds=0.1)
    assert found.lower > 0.5
    assert "off by at least" in str(found)


def test_a_compiled_model_is_bounded_without_its_certificate(tmp_path: Path) -> None:
    model = approximate("x*mean(y)", n=2, tolerance=0.1)
    model.save(tmp_path / "model")
    for given in (model, tmp_path / "model"):
        found = bound_error(given, "x*mean(y)", n=2, seconds=5.0, close=0.2)
        assert found.lower <= model.error_bound
        assert found.lower >= model.measured_error - 1e-5
        assert found.upper <= 1.21 * found.lower
        assert "proved in real arithmetic" in str(found)


def test_the_command_says_both_bounds(tmp_path: Path) -> None:
    model = approximate("x - mean(y)", n=2, tolerance=0.1)
    model.save(tmp_path / "model")
    run = ["bound", str(tmp_path / "model"), "x - mean(y) + 0.01*x", "--n", "2", "--seconds", "2"]
    said = CliRunner().invoke(app, [*run, "--json"])
    assert said.exit_code == 0
    found = json.loads(said.stdout)
    assert found["proved"]
    assert found["arithmetic"] == "real"
    assert 0.0099 < found["lower"] <= found["upper"] < 0.012
    assert CliRunner().invoke(app, [*run, "--tolerance", "0.001"]).exit_code == 1
    assert "attained" in CliRunner().invoke(app, run).stdout


@pytest.mark.parametrize(
    "options",
    [
        {"seconds": 0.0},
        {"close": np.nan},
        {"n": 17},
        {"low": [0.0, 0.0]},
        {"formula": "mean(y)"},
        {"formula": "(x, y)"},
    ],
)
def test_what_cannot_be_asked_is_refused(trained: nn.Module, options: dict[str, object]) -> None:
    asked = {"formula": "x - mean(y)", "n": 2, **options}
    with pytest.raises(OptionError):
        bound_error(trained, **asked)  # type: ignore[arg-type]


def test_our_own_onnx_export_counts_its_tokens_and_is_refused_by_that_operation() -> None:
    model = approximate("x - mean(y)", n=2, tolerance=0.1)
    with pytest.raises(OptionError, match="no such operation"):
        bound_error(build(model.transformer), "x - mean(y)", n=2)
