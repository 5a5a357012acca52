"""The command line shows what strangers wrote as text, and ends with a verdict's code only for a verdict."""

from __future__ import annotations

import os
import subprocess
from functools import partial

import numpy as np
import pytest

import onelayer
from attacks.hostile import UGLY, honest, hostile_folders
from onelayer import save
from onelayer.errors import DataError, visible
from onelayer.measure.report import escape
from tests.processes import COMMAND_LINE, run_python

memorize = partial(onelayer.memorize, certify=False)

FOLDERS = {folder.name: folder for folder in hostile_folders()}


def run(*arguments, before: str = "", **options) -> subprocess.CompletedProcess[bytes]:
    return run_python(f"{before}\n{COMMAND_LINE}", *arguments, text=False, **options)


def plain_text(content: bytes) -> bool:
    return all(line.isprintable() for line in content.decode().split("\n"))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    X, Y = np.arange(6.0).reshape(3, 2, 1), np.arange(6).reshape(3, 2)
    return save(tmp_path_factory.mktemp("hostile") / "bundle", memorize(X, Y), data=(X, Y))


@pytest.mark.parametrize("what", ["an escape sequence", "a lone surrogate", "letters from right to left"])
def test_foreign_text_is_shown_as_text(tmp_path, what) -> None:
    FOLDERS[f"{what} in a tensor that overlaps"].build(tmp_path / "folder")
    for command, code in (("verify", 3), ("explain", 66), ("report", 3)):
        options = ("--out", str(tmp_path / "page.html")) if command == "report" else ()
        done = run(command, tmp_path / "folder", *options)
        assert done.returncode == code, done.stderr
        assert plain_text(done.stdout)
        assert plain_text(done.stderr)
    assert plain_text((tmp_path / "page.html").read_bytes())


def test_a_page_holds_no_tags_and_nothing_invisible_of_its_bundle() -> None:
    assert escape("x\u202e\x1b[2J<b>") == r"x\u202e\x1b[2J&lt;b&gt;"


@pytest.mark.parametrize("text", UGLY.values())
def test_errors_hold_nothing_invisible(text) -> None:
    shown = str(DataError("data", "x", f"found {text}", "y"))
    assert all(c.isprintable() or c == "\n" for c in shown)
    shown.encode()
    assert visible("größe\nβ") == "größe\nβ"


@pytest.mark.parametrize("name", ["model.safetensors is a pipe", "data.safetensors is an endless device"])
def test_explaining_reads_no_pipe_and_no_device(tmp_path, name) -> None:
    FOLDERS[name].build(tmp_path / "folder")
    done = run("explain", tmp_path / "folder")
    assert done.returncode == 66
    assert b"is not a regular file" in done.stderr


def test_the_budget_is_an_option(bundle) -> None:
    assert run("verify", bundle, "--budget", "1e9", "--memory", "1e9").returncode == 0
    done = run("verify", bundle, "--budget", "1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (2, b"UNKNOWN")


def test_without_flint_the_extra_is_named(bundle) -> None:
    hidden = "import sys; sys.modules['flint'] = None"
    for engine in ("arb", "both"):
        done = run("verify", bundle, "--engine", engine, before=hidden)
        assert (done.returncode, done.stdout) == (69, b"")
        said = b"".join(done.stderr.split(b"\n"))
        assert b'pip install ".[exact]"' in said
    checker = f"{hidden}; sys.argv[0] = 'onelayer_checker'; from onelayer_checker.__main__ import main; main()"
    done = run_python(checker, bundle, "--engine", "arb", text=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (4, b"UNFIT")
    assert b"pip install python-flint" in done.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_verdict_nobody_could_read_is_none(tmp_path, options) -> None:
    folder = honest().write(tmp_path / "folder")
    reader, writer = os.pipe()
    os.close(reader)
    done = run("verify", folder, *options, stdout=writer)
    os.close(writer)
    assert done.returncode == 141, done.stderr


def test_what_nobody_foresaw_is_no_verdict(bundle) -> None:
    broken = "import onelayer.cli.certificates as c; c.check = lambda *_, **__: 1 / 0"
    done = run("verify", bundle, before=broken)
    assert done.returncode == 70
    assert b"ZeroDivisionError" in done.stderr
