"""Each exit code means one thing; what the system reports about files is said in sentences, with a remedy."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
import typer

from onelayer import FileError, load, memorize
from onelayer.cli.app import app
from onelayer.cli.exit_codes import MEANINGS, ExitCode
from onelayer.errors import REPORTS
from onelayer.export import bundle
from onelayer.problems.tables import example, read_table, write_answers
from onelayer_checker.front import EXITS
from tests.processes import COMMAND_LINE, run_python

X, Y = [["a", "b"], ["b", "c"]], [[1, 2], [3, 4]]
CONTRADICTION = '{"tokens": ["a"], "answers": [1]}\n{"tokens": ["a"], "answers": [2]}\n'


def run(*arguments, program: str = COMMAND_LINE, **options) -> subprocess.CompletedProcess[str]:
    done = run_python(program, *arguments, env={"COLUMNS": "120", "PATH": ""}, **options)
    assert "Traceback" not in done.stderr
    assert "Errno" not in done.stderr
    return done


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return memorize(X, Y).save(tmp_path_factory.mktemp("codes") / "model")


def test_verdicts_end_as_the_checker_ends() -> None:
    assert EXITS == {
        "VERIFIED": ExitCode.GOOD,
        "NOT VERIFIED": ExitCode.NO,
        "UNKNOWN": ExitCode.UNDECIDED,
        "MALFORMED": ExitCode.MALFORMED,
        "UNFIT": ExitCode.UNFIT,
    }
    assert set(MEANINGS) == set(ExitCode)
    assert len(set(MEANINGS.values())) == len(ExitCode)


def test_the_help_shows_the_table() -> None:
    words = " ".join(run("--help").stdout.split())
    for code, meaning in MEANINGS.items():
        assert f"{code:d} {meaning}" in words


def test_each_kind_of_mistake_has_its_code(tmp_path, model) -> None:
    (tmp_path / "bad.jsonl").write_text(CONTRADICTION)
    (tmp_path / "broken.jsonl").write_text('{"tokens": [')
    (tmp_path / "wrong.jsonl").write_text('{"tokens": ["a", "b"], "answers": [1, 3]}\n')
    without = "import sys; sys.modules['matplotlib'] = None; " + COMMAND_LINE
    asked = {
        ExitCode.GOOD: [("inspect", model)],
        ExitCode.NO: [
            ("memorize", tmp_path / "bad.jsonl", "--out", tmp_path / "m"),
            ("plan", tmp_path / "bad.jsonl"),
            ("predict", model, tmp_path / "wrong.jsonl", "--check"),
            ("verify", model, "--data", tmp_path / "wrong.jsonl"),
        ],
        ExitCode.UNDECIDED: [("verify", model, "--require", "robust")],
        ExitCode.MALFORMED: [("verify", tmp_path)],
        ExitCode.OPTION: [
            ("memorize", example("company"), "--out", tmp_path / "m", "--rank", "0"),
            ("memorize", example("company")),
            ("nothing",),
        ],
        ExitCode.DATA: [("memorize", tmp_path / "broken.jsonl", "--out", tmp_path / "m")],
        ExitCode.FILE: [("memorize", tmp_path / "none.jsonl", "--out", tmp_path / "m"), ("inspect", tmp_path)],
    }
    for code, commands in asked.items():
        for command in commands:
            done = run(*command)
            assert done.returncode == code, (command, done.stderr)
    assert run("inspect", model, "--picture", tmp_path / "p.png", program=without).returncode == ExitCode.EXTRA
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("number", REPORTS, ids=errno.errorcode.get)
def test_every_report_of_the_system_has_a_sentence_and_a_remedy(number: int) -> None:
    said = str(FileError.of(OSError(number, os.strerror(number), "some/file")))
    assert re.fullmatch(r"\[file\] needs to read or write some/file; [a-z].*[^.]\. [A-Z].*\.", said)
    assert os.strerror(number) not in said
    assert "Errno" not in said


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_folder_that_cannot_be_written_is_named_and_no_hidden_one(tmp_path, monkeypatch) -> None:
    def refuse(*_: object, prefix: str, dir: Path) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(dir / f"{prefix}xyz"))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(
        FileError, match=rf"read or write {re.escape(str(tmp_path / 'm'))}; it is on a disk that can"
    ):
        memorize(X, Y).save(tmp_path / "m")


def test_a_full_disk_loses_nothing_and_is_said(tmp_path, monkeypatch) -> None:
    saved, data = memorize(X, Y).save(tmp_path / "m"), tmp_path / "answers.csv"
    table = read_table(example("company"))
    write_answers(data, table, table.Y)
    before = data.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"m; the disk is full\. Free some space"):
        memorize(X, [[5, 6], [7, 8]]).save(saved, overwrite=True)
    with pytest.raises(FileError, match=r"answers\.csv; the disk is full"):
        write_answers(data, table, table.Y)
    assert data.read_bytes() == before
    assert load(saved).predict(X).tolist() == Y
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "m"]


def test_files_that_the_system_refuses_to_open(tmp_path, monkeypatch) -> None:
    (tmp_path / "d.csv").write_text("sequence,token,answer\n0,a,1\n")
    saved = memorize(X, Y).save(tmp_path / "m")

    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(FileError, match=r"d\.csv; you have no permission to\. Change its permissions"):
        read_table(tmp_path / "d.csv")
    with pytest.raises(FileError, match="you have no permission to"):
        bundle.read(saved)


@pytest.mark.parametrize("arguments", [("inspect",), ("inspect", "--json"), ("explain",)])
def test_output_that_cannot_be_written(model, arguments) -> None:
    with Path("/dev/full").open("w") as sink:
        done = run(arguments[0], model, *arguments[1:], stdout=sink.fileno())
    assert done.returncode == ExitCode.FILE
    assert "the disk is full" in done.stderr


def test_a_text_that_is_a_folder_is_said_in_a_line(tmp_path) -> None:
    done = run("memorize-text", tmp_path, "--out", tmp_path / "m")
    assert done.returncode == ExitCode.FILE
    assert "it is a folder. Name a file in it." in done.stderr


def commands(of: typer.main.Typer) -> list[tuple[str, ...]]:
    found = [((c.name or c.callback.__name__).rstrip("_").replace("_", "-"),) for c in of.registered_commands]
    for group in of.registered_groups:
        inner = group.typer_instance
        found += [(inner.info.name, *names) for names in commands(inner)]
    return found


def test_every_command_has_json_and_prints_one_object(tmp_path, model) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps({"tokens": x, "answers": y}) + "\n" for x, y in zip(X, Y, strict=True)))
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be, that is the question")
    results = tmp_path / "results"
    examples, queries = tmp_path / "examples.csv", tmp_path / "queries.csv"
    examples.write_text("1,0,0.5\n0,1,-0.5\n")
    queries.write_text("1,1\n")
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).standard_normal((12, 3, 2)))
    asked = {
        ("memorize",): (data, "--out", tmp_path / "m"),
        ("predict",): (model, data),
        ("inspect",): (model,),
        ("verify",): (model,),
        ("explain",): (model,),
        ("report",): (model, "--out", tmp_path / "page.html"),
        ("export",): (model, "--to", "onnx", "--out", tmp_path / "model.onnx"),
        ("explore",): (model, "--out", tmp_path / "explore.html"),
        ("cast",): (model, data, "--dtype", "bfloat16"),
        ("edit",): (model, data, "--out", tmp_path / "edited"),
        ("memorize-text",): (text, "--out", tmp_path / "text", "--context", 8),
        ("recite",): (tmp_path / "text", "--prompt", "to be", "--length", 5),
        ("approximate",): ("x - mean(y)", "--n", 2, "--tolerance", 0.3, "--out", tmp_path / "function"),
        ("bound",): (tmp_path / "function", "x - mean(y)", "--n", 2, "--seconds", 1),
        ("targets",): (),
        ("ground-truth", "list"): (),
        ("ground-truth", "make"): ("parity", "--out", tmp_path / "truth"),
        ("ground-truth", "score"): (tmp_path / "truth",),
        ("learners",): (),
        ("learner",): ("gd", "--d", 2),
        ("learn",): ("gd", examples, "--query", queries),
        ("identify",): (tmp_path / "tokens.npy",),
        ("plan",): (data,),
        ("theorem",): (data,),
        ("demo",): (),
        ("lab", "list"): (),
    }
    # These need packages, minutes or data of their own: that they have the option is seen, what they print in their
    # own tests.
    long = {("race",), ("prune",), ("lab", "run"), ("lab", "report"), ("lab", "ship")}
    assert set(commands(app)) == set(asked) | long
    for name, arguments in asked.items():
        done = run(*name, *arguments, "--json")
        assert done.returncode == 0, (name, done.stderr)
        assert isinstance(json.loads(done.stdout), dict), name
    for name in long:
        assert "--json" in run(*name, "--help").stdout
    assert not results.exists()
