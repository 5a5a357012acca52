"""`onelayer learners`, `learner` and `learn`: what they print for people and machines, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onelayer import load
from onelayer.learners.registry import LEARNERS
from tests.cli.test_cli import run

EXAMPLES = "a,b,y\n1,0,0.2\n0,1,0.3\n1,1,0.5\n"
QUERIES = "a,b\n1,0\n0.5,1\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("learners")
    (where / "examples.csv").write_text(EXAMPLES)
    (where / "queries.csv").write_text(QUERIES)
    options = ("--d", "2", "--penalty", "0.01", "--tolerance", "1e-3", "--out", where / "ridge")
    said = run("learner", "ridge", *options).stdout
    assert "accelerated steps of ridge regression" in said
    assert "equals (real, per token): proved" in said
    assert "within (real, per token" in said
    return where


def test_all_learners_are_listed() -> None:
    said = run("learners").stdout
    assert all(name in said for name in LEARNERS)
    rows = json.loads(run("learners", "--json").stdout)["learners"]
    assert [row["name"] for row in rows] == list(LEARNERS)
    assert rows[0]["standing"] == "published"
    assert "eta" in rows[0]["options"]


def test_a_learner_is_verified_explained_inspected_and_drawn(folder: Path) -> None:
    assert run("verify", folder / "ridge").stdout.splitlines()[-1] == "VERIFIED"
    checker = [sys.executable, "-I", "-m", "onelayer_checker", str(folder / "ridge"), "--engine", "both"]
    assert subprocess.run(checker, capture_output=True).returncode == 0
    words = run("explain", folder / "ridge").stdout
    assert "This network is the algorithm below, on every prompt, in real arithmetic." in words
    assert "of ridge regression, v the minimiser" in words
    assert "loops of the block" in run("inspect", folder / "ridge").stdout
    assert "picture written to" in run("inspect", folder / "ridge", "--picture", folder / "ridge.png").stderr
    assert (folder / "ridge.png").read_bytes().startswith(b"\x89PNG")


def test_examples_are_learned_from_by_name_and_by_folder(folder: Path) -> None:
    given = (folder / "examples.csv", "--query", folder / "queries.csv")
    lines = run("learn", "gd", *given, "--steps", "2000").stdout.splitlines()
    np.testing.assert_allclose([float(line) for line in lines], [0.2, 0.4], atol=1e-9)
    said = json.loads(run("learn", folder / "ridge", *given, "--json").stdout)
    model = load(folder / "ridge")
    X, y = np.array([[1, 0], [0, 1], [1, 1.0]]), np.array([0.2, 0.3, 0.5])
    assert said["predictions"] == model.predict(X, y, np.array([[1, 0], [0.5, 1]])).tolist()
    assert said["error_bound"] == model.error_bound <= 1e-3
    assert "as the checker proved" in run("learn", "kernel", *given, "--set", "bandwidth=0.5").stderr


def test_what_cannot_be_is_said_in_a_line(folder: Path) -> None:
    given = (folder / "examples.csv", "--query", folder / "queries.csv")
    assert "a learner among gd" in run("learner", "nothing", ok=64).stderr
    assert "needs penalty > 0" in run("learner", "ridge", "--tolerance", "0.1", ok=1).stderr
    assert "recurrence forecasts a series. Use it in Python" in run("learn", "recurrence", *given, ok=64).stderr
    assert "Write name=value" in run("learn", "gd", *given, "--set", "eta", ok=64).stderr
    bad = folder / "bad.csv"
    bad.write_text("1,2,3\n1,x,3\n")
    assert "row 2 is '1,x,3'" in run("learn", "gd", bad, "--query", folder / "queries.csv", ok=65).stderr
    bad.write_text("a,b\n")
    assert "there are none" in run("learn", "gd", bad, "--query", folder / "queries.csv", ok=66).stderr
    assert "exists already" in run("learner", "gd", "--out", folder / "ridge", ok=66).stderr
