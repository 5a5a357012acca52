"""Hostile folders end with their own line and exit code, in bounded time and memory, and write nothing but text."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from attacks.hostile import hostile_folders
from onelayer_checker.front import EXITS

FOLDERS = {folder.name: folder for folder in hostile_folders()}
MEMORY, SECONDS = 2 << 30, 10


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(*arguments, **options) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "onelayer_checker", *arguments]
    return subprocess.run(command, capture_output=True, preexec_fn=limited, **options)


@pytest.mark.parametrize("name", FOLDERS)
def test_ends_with_its_verdict(tmp_path, name) -> None:
    hostile = FOLDERS[name]
    hostile.build(tmp_path / "folder")
    done = run(tmp_path / "folder")
    assert done.returncode == EXITS[hostile.result], done.stderr[-2000:]
    lines = done.stdout.decode("ascii").split("\n")
    assert lines[-2:] == [hostile.result, ""], lines
    assert all(line.isprintable() for line in lines)
    assert not done.stderr
