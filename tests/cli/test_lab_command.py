"""`onelayer lab`: what is wrong is said before any work, and every hint leads to a person's own rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
import typer

from onelayer import lab
from onelayer.cli import lab as commands
from onelayer.cli.exit_codes import ExitCode
from onelayer.errors import DataError, FileError, MissingExtraError, OptionError
from onelayer.lab import harness
from onelayer.lab.sections import RESULTS
from tests.lab.conftest import toy  # noqa: F401
from tests.processes import run_command


@pytest.fixture
def two(toy, tmp_path, monkeypatch) -> Path:  # noqa: F811
    """A second experiment beside the toy, which reads a corpus; gives the file where both note their pieces."""
    source = tmp_path / "experiments" / "toy.py"
    other = source.read_text().replace('"start": i', '"start": i, "far": 1')
    other += "def of_corpus(cases, path): return [{**case, 'corpus': path.name} for case in cases]\n"
    source.with_name("toy_two.py").write_text(other)
    monkeypatch.setitem(sys.modules, "onelayer.lab.experiments.toy_two", None)  # gone after the test
    del sys.modules["onelayer.lab.experiments.toy_two"]
    return toy


def words_of(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_what_is_wrong_with_the_second_is_said_before_the_first_is_run(two, tmp_path) -> None:
    results = tmp_path / "results"
    with pytest.raises(OptionError, match="only='far=1'"):
        commands.run(["toy-two", "toy"], seeds=1, results=results, jobs=1, only=["far=1"])
    corpus = tmp_path / "words.conll"
    corpus.write_text("a\tO\n")
    with pytest.raises(OptionError, match="toy makes its own data"):
        commands.run(["toy-two", "toy"], seeds=1, results=results, jobs=1, corpus=corpus)
    with pytest.raises(OptionError, match="'toi' is not one of them"):
        commands.run(["toy", "toi"], seeds=1, results=results, jobs=1)
    assert two.read_text() == ""
    assert not results.exists()


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "holds none"), ("hello\nthere\n", "sentence 1 of .* has none"), (None, "there is no file")],
)
def test_a_corpus_without_labels_is_refused_once_and_at_once(two, tmp_path, text, found) -> None:
    corpus = tmp_path / "words.conll"
    if text is not None:
        corpus.write_text(text)
    with pytest.raises((DataError, FileError), match=found):
        commands.run(["toy-two"], seeds=1, results=tmp_path / "results", jobs=1, corpus=corpus)
    assert two.read_text() == ""


def test_a_folder_that_cannot_hold_rows_is_named_before_any_work(two, tmp_path) -> None:
    blocked = tmp_path / "results"
    blocked.write_text("a file")
    with pytest.raises(FileError, match="a part of that path is a file, not a folder"):
        commands.run(["toy"], seeds=1, results=blocked, jobs=1)
    assert two.read_text() == ""


def test_a_damaged_file_is_named_before_any_work(two, tmp_path) -> None:
    lab.run("toy", seeds=1, results=tmp_path / "results", jobs=1)
    damaged = next((tmp_path / "results" / "toy" / "quick").iterdir())
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), damaged)  # whole, and of another program
    two.write_text("")
    with pytest.raises(FileError, match=f"{damaged.name} is damaged, or another program's"):
        commands.run(["toy"], seeds=2, results=tmp_path / "results", jobs=1)
    assert two.read_text() == ""


@pytest.mark.parametrize("missing", ["torch", "joblib", "matplotlib"])
def test_a_package_that_is_missing_is_named_before_any_work(two, tmp_path, monkeypatch, missing) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(lab.find("toy-two"), "EXTRAS", ("torch",))
    with pytest.raises(MissingExtraError, match=f"needs the package '{missing}'"):
        commands.run(["toy", "toy-two"], seeds=1, results=tmp_path / "results", jobs=1)
    assert two.read_text() == ""


def test_every_extra_of_an_experiment_is_known() -> None:
    assert {extra for name in lab.names() for extra in lab.find(name).EXTRAS} <= harness.MODULES.keys()


def test_what_an_interrupted_run_kept_and_the_command_to_go_on(two, tmp_path, monkeypatch, capsys) -> None:
    results, run = tmp_path / "my results", lab.find("toy").run

    def interrupted(case, seed):
        if case["start"] == 4:
            raise KeyboardInterrupt
        return run(case, seed)

    monkeypatch.setattr(lab.find("toy"), "run", interrupted)
    with pytest.raises(typer.Exit) as ended:
        commands.run(["toy", "toy-two"], seeds=1, results=results, jobs=1, only=["pause=0.01"])
    assert ended.value.exit_code == ExitCode.INTERRUPTED
    said = capsys.readouterr().err
    assert "interrupted; 4 of 12 pieces of work are kept in " in said
    wanted = f"onelayer lab run toy toy-two --quick --seeds 1 --only pause=0.01 --results '{results}'"
    assert f"Go on with: {wanted}" in said
    assert len(two.read_text().splitlines()) == 4


@pytest.mark.usefixtures("two")
def test_the_hint_after_a_run_leads_to_its_rows(tmp_path, capsys) -> None:
    commands.run(["toy"], full=True, seeds=1, results=tmp_path / "my results", jobs=1)
    assert f"onelayer lab report --full --results '{tmp_path}/my results'" in words_of(capsys)
    commands.report(results=tmp_path / "my results", page=tmp_path / "page.html")
    said = words_of(capsys)
    assert "No rows of preset quick in" in said
    assert f"Those of preset full: onelayer lab report --full --results '{tmp_path}/my results'" in said


@pytest.mark.usefixtures("two")
def test_settings_of_one_say_their_costs_and_what_is_missing(tmp_path, capsys) -> None:
    lab.run("toy", seeds=2, results=tmp_path, jobs=1, only=["start=1"])
    commands.list_("toy", seeds=3, results=tmp_path)
    said = words_of(capsys)
    assert "How far <do> we count? expected: Far & further." in said
    assert "pause=0.01" in said  # of all settings, so that it is said once
    assert "1 2 of 3 0.0" in said
    assert "2 0 of 3 ?" in said
    assert "16 pieces of work are missing" in said
    assert "beside 5 settings whose cost no row says." in said
    assert f"Run: onelayer lab run toy --quick --seeds 3 --results {tmp_path}" in said
    commands.list_("toy", seeds=2, results=tmp_path, only=["start=1"], as_json=True)
    told = json.loads(capsys.readouterr().out)
    (setting,) = told["settings"]
    assert (told["missing"], setting["there"], setting["stale"], setting["setting"]["start"]) == (0, 2, 0, 1)
    assert setting["cpu_seconds"] > 0


@pytest.mark.usefixtures("two")
def test_settings_say_which_rows_are_of_earlier_code(tmp_path, capsys, monkeypatch) -> None:
    lab.run("toy", seeds=2, results=tmp_path, jobs=1)
    monkeypatch.setattr("onelayer.lab.store.fingerprint", lambda *_: "other code")
    commands.list_("toy", seeds=2, results=tmp_path, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["missing"] == 12
    assert [setting["stale"] for setting in told["settings"]] == [2] * 6


def test_options_about_settings_need_a_name() -> None:
    with pytest.raises(OptionError, match="onelayer lab list NAME"):
        commands.list_(only=["a=1"])


@pytest.mark.parametrize(
    ("page", "found"), [("no/such/page.html", "there is no folder .*no/such.*mkdir -p"), (".", "is a folder")]
)
def test_a_page_that_cannot_be_written_is_refused_before_it_is_drawn(tmp_path, monkeypatch, page, found) -> None:
    monkeypatch.setattr(commands, "sections", lambda *_: pytest.fail("drawn"))
    with pytest.raises(FileError, match=found):
        commands.report(page=tmp_path / page)


@pytest.mark.usefixtures("two")
def test_a_report_for_machines_says_whose_rows_it_is_about(tmp_path, capsys) -> None:
    lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    commands.report(results=tmp_path, page=tmp_path / "page.html", as_json=True)
    (told,) = json.loads(capsys.readouterr().out)["experiments"]
    wanted = {
        "name": "toy",
        "preset": "quick",
        "corpus": "",
        "answer": "open",
        "seeds": 1,
        "missing": 0,
        "stale": 0,
    }
    assert told == {**wanted, "shipped": False}


def test_the_command_line_lists_the_settings_of_an_experiment(tmp_path) -> None:
    said = run_command("lab", "list", "rank", "--only", "model=control", cwd=tmp_path).stdout
    assert "onelayer lab run rank --quick --only model=control" in said
    assert "CPU s a seed" in said
    of_sentences = run_command("lab", "list", "named-entities", cwd=tmp_path).stdout
    assert "corpus=" not in of_sentences  # there is none
    assert list(tmp_path.iterdir()) == []
    assert Path("lab-results") == RESULTS


def test_a_table_wider_than_the_screen_has_whole_words() -> None:
    found = run_command("lab", "list", "duplicates", env={"COLUMNS": "60", "PATH": ""})
    assert "  constructed      0  repeats " in found.stdout
