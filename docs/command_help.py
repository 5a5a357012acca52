"""The help of every command, as sections of a page."""

from __future__ import annotations

from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from onelayer.cli.app import app

PLAIN = {"COLUMNS": "92", "TERMINAL_WIDTH": "92", "NO_COLOR": "1", "TTY_COMPATIBLE": "0"}


def help_of(*words: str) -> str:
    return CliRunner().invoke(app, [*words, "--help"], env=PLAIN).output.strip("\n")


def section(title: str, text: str, level: int = 2) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"{'#' * level} {title}\n\n```text\n{lines}\n```"


def sections() -> str:
    """In the order of the command line; commands of a group after the group."""
    written = []
    commands: dict[str, Any] = get_command(app).commands
    for name, command in commands.items():
        written.append(section(name, help_of(name)))
        written += [
            section(f"{name} {inner}", help_of(name, inner), 3) for inner in getattr(command, "commands", ())
        ]
    return "\n\n".join([*written, section("Exit codes", help_of().partition("Exit codes:")[2].strip())])
