"""`onelayer race`: both sides are counted, and merged contexts are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from onelayer.cli.race import _as_json, _says
from onelayer.explorer.samples import Samples
from onelayer.explorer.twin import read_twin
from onelayer.lab.race import Outcome, Runner, along_widest, as_task, diagnose, race
from onelayer.problems.answers import read_answers
from onelayer.problems.sequences import read_sequences
from onelayer.problems.tables import example, read_table

torch.set_num_threads(1)


def test_the_command_speaks_json() -> None:
    command = [sys.executable, "-W", "error", "-m", "onelayer", "race", example("three_tokens"), "--json"]
    said = subprocess.run([*command, "--seconds", "60"], capture_output=True, text=True, check=True, env=os.environ)
    found = json.loads(said.stdout)
    for side in ("compiled", "trained"):
        assert (found[side]["right"], found[side]["answers"]) == (6, 6)
    assert found["merged"] == found["wrong"] == []


def test_a_twin_without_attention_is_told_what_it_merged() -> None:
    from onelayer.lab.trained import Net, Shape, contexts

    table = read_table(example("company"))
    sequences = read_sequences(table.X, table.lengths)
    task = as_task(sequences, read_answers(table.Y, sequences, table.scope))
    net = Net(Shape(8, hidden=8), task)
    net.tensors["0.W_O"].data.zero_()
    wrong, merged = diagnose(net, task, sequences, positions=False)
    assert len(wrong) > 48
    assert merged
    for merge in merged:  # the same word in different company, with different answers
        assert merge.distance == 0
        assert table.X[merge.a.i][merge.a.k] == table.X[merge.b.i][merge.b.k]
        assert table.Y[merge.a.i][merge.a.k] != table.Y[merge.b.i][merge.b.k]
    sides = Runner("compiled", 0.1, 96, 96, 900), Runner("trained", 1.0, 96 - len(wrong), 96, 900)
    seen = contexts(net, sequences.tokens, sequences.lengths)
    line = along_widest(seen, None)
    assert line.shape == (32, 3)
    assert np.isclose(
        line.std(), np.linalg.norm(np.linalg.eigvalsh(np.cov(seen.reshape(96, -1).T, bias=True))[-1:]) ** 0.5
    )
    outcome = Outcome(*sides, 1e-3, 100, merged, wrong, line)
    said = _says(outcome, table)
    assert "equal bit for bit" in said
    assert f"{table.X[merged[0].a.i][merged[0].a.k]!s}" in said
    assert json.loads(json.dumps(_as_json(outcome)))["merged"][0]["bit_equal"] is True
    twin = read_twin(json.loads(json.dumps(_as_json(outcome))), Samples(sequences.tokens, None, sequences.N))
    assert np.array_equal(twin[1], line)
    assert twin[0]["merged"][0][2] == 0


@pytest.mark.parametrize("kind", ["reals", "per sequence", "lengths"])
def test_other_data_is_raced_too(kind) -> None:
    rng = np.random.default_rng(0)
    X, Y, lengths = rng.standard_normal((5, 3, 2)), rng.standard_normal((5, 3)), None
    if kind == "per sequence":
        Y = rng.integers(0, 3, 5)
    if kind == "lengths":
        lengths = np.array([3, 2, 3, 1, 2])
        Y = rng.integers(0, 3, (5, 3))
    shown = []
    outcome = race(X, Y, lengths, seconds=0.3, width=8, scaled=False, show=lambda *both: shown.append(both))
    assert outcome.compiled.done
    assert outcome.trained.answers == outcome.compiled.answers
    assert outcome.trained.right == outcome.trained.answers - len(outcome.wrong)
    assert shown
