"""A model knows its gadgets: as a hint in its bundle, which is compared with the weights before it is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from onelayer import load
from onelayer.cli.app import app
from onelayer.errors import FileError, OptionError
from onelayer.export import bundle
from onelayer.gadgets.names import describe_units
from onelayer.gadgets.stacks import STACKS, covered_by, read_parts
from onelayer.gadgets.windows import find_windows
from onelayer.network import Embedding
from tests.model.models import MAKERS, made


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_built_is_what_the_weights_say(name) -> None:
    """The list covers both stacks in order, and recognition finds the same gadgets without it."""
    model = made(name).model
    assert model.gadgets == covered_by(model.parts) == covered_by(read_parts(model.transformer))
    for stack in STACKS:
        layers = [i for c in model.gadgets if c.stack == stack for i in range(c.start, c.stop)]
        assert layers == list(range(len(getattr(model.transformer, stack))))


@pytest.mark.parametrize("name", MAKERS)
def test_every_channel_of_every_value_has_a_name_of_its_own(name) -> None:
    case = made(name)
    trace = case.model.trace(case.X, case.lengths)
    for value in trace.values:
        if not value.endswith((".logits", ".attention")):
            names = trace.names(value)
            assert len(names) == len(set(names)) == trace[value].shape[-1], value
        else:
            assert trace.names(value) == ()
    lines = case.model.described()
    assert sum(line.numbers for line in lines) == case.model.n_parameters
    with pytest.raises(KeyError, match="no value"):
        trace.names("readout.x")


WRONG = {
    "another kind": lambda c: replace(c, kind="hats"),
    "no kind at all": lambda c: replace(c, kind="of somebody else"),
    "too long": lambda c: replace(c, stop=c.stop + 1),
    "too short": lambda c: replace(c, stop=c.stop - 1),
    "beyond the end": lambda c: replace(c, stop=10**30),
    "before the beginning": lambda c: replace(c, start=-1),
    "empty": lambda c: replace(c, stop=c.start),
    "the other stack": lambda c: replace(c, stack=STACKS[c.stack == STACKS[0]]),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["text", "a default class", "classes in float64"])
def test_a_wrong_hint_is_not_believed(name, wrong, tmp_path: Path) -> None:
    case = made(name)
    lied = replace(case.model, gadgets=tuple(map(WRONG[wrong], case.model.gadgets)))
    again = load(lied.save(tmp_path / "m"))
    assert covered_by(again.parts) == case.model.gadgets
    np.testing.assert_array_equal(again.predict(case.X), case.model.predict(case.X))


def test_hints_of_other_weights_are_not_believed() -> None:
    """Layers changed under the hints: what is predicted is what these layers give."""
    model = made("classes in float64").model
    *before, last = model.transformer.readout
    changed = replace(model.transformer, readout=(*before, replace(last, bias=last.bias + 3.0)))
    other = replace(model, transformer=changed)
    sequences = other.read(made("classes in float64").X)
    np.testing.assert_array_equal(other.outputs(sequences), other.outputs(sequences, "dense"))


def test_a_bundle_without_hints_is_read(tmp_path: Path, monkeypatch) -> None:
    case = made("text")
    describe = bundle._describe
    monkeypatch.setattr(bundle, "_describe", lambda m: {k: v for k, v in describe(m).items() if k != "gadgets"})
    again = load(case.model.save(tmp_path / "m"))
    assert again.gadgets == ()
    assert covered_by(again.parts) == case.model.gadgets
    assert again == replace(case.model, gadgets=())


@pytest.mark.parametrize(
    "hint", [7, ["readout"], [["readout", 0, 1, 4]], [["elsewhere", 0, 1, "affine"]], [[0] * 4]]
)
def test_a_hint_that_is_none_is_refused_by_name(hint, tmp_path: Path, monkeypatch) -> None:
    describe = bundle._describe
    monkeypatch.setattr(bundle, "_describe", lambda m: describe(m) | {"gadgets": hint})
    folder = made("words").model.save(tmp_path / "m")
    with pytest.raises(FileError, match="its parts do not fit together"):
        load(folder)


def test_text_needs_its_gadgets() -> None:
    model = made("text").model.transformer
    assert find_windows(model) is not None
    assert model.embedding is not None
    shifted = Embedding(
        table=model.embedding.table, bias=np.ones(6, np.float32), positions=model.embedding.positions
    )
    assert find_windows(replace(model, embedding=shifted)) is None


def test_inspect_names_units(tmp_path: Path) -> None:
    case = made("a default class")
    folder, run = str(case.model.save(tmp_path / "m")), CliRunner()
    shown = run.invoke(app, ["inspect", folder], env={"COLUMNS": "200"}).stdout
    assert "row 0 / right foot" in shown
    value = next(line.value for line in case.model.described() if line.made_by == "table")
    listed = run.invoke(app, ["inspect", folder, "--units", value]).stdout
    assert "readout / table / row 0 / right foot" in listed
    assert len(listed.splitlines()) == len(case.model.unit_names(value))
    said = json.loads(run.invoke(app, ["inspect", folder, "--json"]).stdout)
    assert [tuple(entry) for entry in said["gadgets"]] == [tuple(c.to_json()) for c in case.model.gadgets]
    assert [line["value"] for line in said["values"]] == [line.value for line in case.model.described()]
    names = json.loads(run.invoke(app, ["inspect", folder, "--units", value, "--json"]).stdout)["units"]
    assert tuple(names) == case.model.unit_names(value)
    refused = run.invoke(app, ["inspect", folder, "--units", "nothing"])
    assert isinstance(refused.exception, OptionError)


def test_channels_without_names_are_numbered() -> None:
    model = made("words").model
    bare = replace(model.transformer, channels=())
    lines = describe_units(bare, model.parts)
    assert "channel 0" in next(line for line in lines if line.value == "context").units
