"""`onelayer cast`: what it prints for people and machines, and what its exit code says."""

from __future__ import annotations

import json
import subprocess
from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import cast, load, save
from onelayer.problems.tables import example, read_table
from tests.processes import run_command

memorize = partial(onelayer.memorize, certify=False)

stored = partial(memorize, mapping="temperature", readout="plateaus")  # one kind: what survives depends on it
FACTS = """{"tokens": ["river", "bank"], "answers": ["water", "shore"]}
{"tokens": ["bank", "robber"], "answers": ["money", "crime"]}
"""


def run(*arguments, ok: int = 0) -> subprocess.CompletedProcess[str]:
    return run_command("cast", *arguments, ok=ok)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cast")
    (path / "facts.jsonl").write_text(FACTS)
    table = read_table(path / "facts.jsonl")
    save(path / "facts", stored(table.X, table.Y))
    company = read_table(example("company"))
    save(path / "company", stored(company.X, company.Y))
    return path


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_survives_is_said_in_a_line_and_in_json(folder, dtype) -> None:
    asked = (folder / "facts", folder / "facts.jsonl", "--dtype", dtype)
    line = run(*asked).stdout
    assert line.startswith(f"{dtype}: 4 of 4 answers survive (measured); ")
    assert line.count("\n") == 1
    table = read_table(folder / "facts.jsonl")
    assert (
        json.loads(run(*asked, "--json", "--all").stdout)
        == cast(load(folder / "facts"), dtype, table.X, table.Y).to_json()
    )


def test_what_does_not_survive_is_named_and_the_exit_code_is_1(folder) -> None:
    asked = (folder / "company", example("company"), "--dtype", "bfloat16")
    said = json.loads(run(*asked, "--json", ok=1).stdout)
    assert said["right"] < said["asked"] == said["total"] == 96
    lines = run(*asked, ok=1).stdout.splitlines()
    assert lines[0].startswith(f"bfloat16: {said['right']} of 96 answers survive")
    assert lines[1:] == [f"the first that does not: {said['first_wrong']}"]


def test_mistakes_are_answered_in_a_line(folder, tmp_path) -> None:
    said = run(folder / "facts", folder / "facts.jsonl", "--dtype", "int4", ok=64).stderr
    assert "'float16', 'bfloat16', 'int8'" in said
    assert "--dtype" in run(folder / "facts", folder / "facts.jsonl", ok=64).stderr
    stranger = tmp_path / "stranger.jsonl"
    stranger.write_text('{"tokens": ["boat"], "answers": ["water"]}\n')
    said = run(folder / "facts", stranger, "--dtype", "float16", ok=65).stderr
    assert "in stranger.jsonl, sequence 0, token 0 is 'boat'" in said
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", X=rng.standard_normal((60, 6, 4)), Y=rng.integers(0, 100, (60, 6)))
    table = read_table(tmp_path / "d.npz")
    save(tmp_path / "large", stored(table.X, table.Y))
    said = run(tmp_path / "large", tmp_path / "d.npz", "--dtype", "float16", ok=1).stderr
    assert "needs weights of magnitude at most 65504, the largest number of float16; the tensor " in said
    assert "Use --dtype bfloat16" in said
