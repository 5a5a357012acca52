"""`onelayer prune`: what it prints for people and machines, and that nothing is written where nothing can go."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from onelayer import load, memorize
from tests.processes import run_command


def run(*arguments, ok: int = 0) -> subprocess.CompletedProcess[str]:
    return run_command("prune", *arguments, ok=ok)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("prune")
    rng = np.random.default_rng(0)
    X = np.unique(rng.integers(0, 20, (60, 3)), axis=0)
    Y = np.where(rng.random(X.shape) < 0.7, "O", rng.choice(["a", "b"], X.shape))
    memorize(X, Y, positions=True, certify=True, readout="plateaus").save(path / "model")
    return path


def test_a_smaller_model_is_written_and_verified(folder) -> None:
    said = run(folder / "model", "--out", folder / "small").stdout
    before, after = load(folder / "model"), load(folder / "small")
    assert said.startswith(
        f"{before.n_parameters - after.n_parameters:,} of {before.n_parameters:,} weights are gone"
    )
    assert "VERIFIED." in said
    assert after.verify().result == "VERIFIED"
    told = json.loads(run(folder / "model", "--out", folder / "again", "--json").stdout)
    assert (told["result"], told["parameters"], told["error_bound"]) == ("VERIFIED", after.n_parameters, None)
    assert told["removed"] == before.n_parameters - after.n_parameters
    run(folder / "model", "--out", folder / "small", ok=66)  # it is there already


def test_nothing_is_written_where_nothing_can_go(folder) -> None:
    run(folder / "model", "--out", folder / "less", "--overwrite")
    said = run(folder / "less", "--out", folder / "none", ok=64).stderr
    assert "[prune] needs weights that carry no answer" in said
    assert not (folder / "none").exists()
    said = run(folder / "model", "--out", folder / "none", "--tolerance", "0.1", ok=64).stderr
    assert "real answers for a tolerance" in said
