"""The same commands for models in shards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from onelayer.cli.app import app
from onelayer.cli.exit_codes import ExitCode
from onelayer.errors import FileError
from onelayer.sharded import build

rng = np.random.default_rng(4)
X, Y = rng.standard_normal((60, 4, 3), dtype=np.float32), rng.integers(0, 5, (60, 4))


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("cli")
    for k, rows in enumerate((slice(0, 40), slice(40, 60))):
        np.save(root / f"{k}-X.npy", X[rows])
        np.save(root / f"{k}-Y.npy", Y[rows])
    np.save(root / "X.npy", X)
    np.save(root / "Y.npy", Y)
    done = run("memorize", root / "?-X.npy", "--out", root / "model", "--workers", 2, "--shard-answers", 120)
    assert done.exit_code == 0, done.output
    assert "60 sequences, 240 answers" in done.output
    assert "compiled into 2 shards, 240 answers" in done.output
    assert "Proved, shard by shard" in done.output
    return root


def test_verify_predict_and_others_know_a_model_in_shards(folder) -> None:
    done = run("verify", folder / "model", "--workers", 1, "--data", folder / "X.npy")
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "VERIFIED"), done.output
    assert "all 60 sequences are certified with these answers, each in its shard" in done.output
    checked = run("predict", folder / "model", folder / "X.npy", "--check", "--json")
    assert json.loads(checked.output) == {"right": 240, "answers": 240}
    written = run("predict", folder / "model", folder / "X.npy", "--out", folder / "answers.npz")
    assert written.exit_code == 0
    assert np.array_equal(np.load(folder / "answers.npz")["Y"], Y)


@pytest.mark.parametrize("command", ["inspect", "explain", "report"])
def test_what_is_about_one_folder_asks_for_a_shard(folder, command, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    done = run(command, "model")
    assert isinstance(done.exception, FileError)
    assert "is a model in shards. Name one of its shards, such as model/shard-00000." in str(done.exception)
    assert not Path("report.html").exists()


def test_ctrl_c_says_what_is_kept_and_that_the_same_command_goes_on(folder, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    asked = ("memorize", folder / "X.npy", "--out", folder / "stopped", "--workers", 1, "--shard-answers", 120)
    with monkeypatch.context() as patched:
        patched.setattr(build, "_finish", interrupt)
        done = run(*asked)
    said = " ".join(done.output.split())
    assert done.exit_code == ExitCode.INTERRUPTED
    assert "interrupted; there is no model yet" in said
    assert "What is finished is kept in" in said
    assert ".stopped.shards" in "".join(done.output.split())
    assert "The same command goes on with it." in said
    assert not (folder / "stopped").exists()
    assert run(*asked).exit_code == 0


def test_what_does_not_go_together_is_refused(folder) -> None:
    both = run("memorize", folder / "X.npy", "--out", folder / "new", "--workers", 1, "--cluster", "tcp://x:1")
    assert "both are given" in str(both.exception)
    ending = run("memorize", folder / "Y.npy", "--out", folder / "new", "--workers", 1)
    assert "files that end in X.npy" in str(ending.exception)
    option = run("memorize", folder / "X.npy", "--out", folder / "new", "--workers", 1, "--rank", 0)
    assert "rank" in str(option.exception)  # it is looked at as without shards
    replay = run("verify", folder / "model", "--replay", "numpy")
    assert "is in shards" in str(replay.exception)
    assert not (folder / "new").exists()
