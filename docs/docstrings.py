"""Docstrings as this house writes them (words, backticks, columns of arguments) made into reStructuredText."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

CODE = re.compile(r"(?<!`)`{1,2}([^`]+)`{1,2}(?!`)")
#: What reStructuredText would read as emphasis, a substitution or a link.
MARKS = re.compile(r"[\\*|]|(?<=\w)_(?!\w)")
COLUMN = re.compile(r"[\w*][\w*, ]*?\s{2,}(?=\S)")


def escape(line: str) -> str:
    parts = CODE.split(line)
    return "".join(f"``{part}``" if i % 2 else MARKS.sub(r"\\\g<0>", part) for i, part in enumerate(parts))


def as_definitions(lines: list[str]) -> list[str]:
    """A paragraph in columns, a name and what it is, as a list of definitions."""
    first = COLUMN.match(lines[0])
    assert first is not None
    column, found = first.end(), []
    for line in lines:
        if line[0] == " ":
            found.append(f"    {escape(line.strip())}")
            continue
        name, about = (line[:column], line[column:]) if line[column - 1] == " " else line.split(maxsplit=1)
        found += ["", f"``{name.strip()}``", f"    {escape(about.strip())}"]
    return [*found, ""]


def as_text(lines: list[str]) -> list[str]:
    """Any other paragraph; an example may follow its last sentence without an empty line."""
    found: list[str] = []
    example = False
    for line in lines:
        if line.startswith(">>>") and not example:
            example = True
            found.append("")
        found.append(line if example else escape(line))
    return [*found, ""]


def rewrite_docstring(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    paragraphs = [list(group) for filled, group in groupby(lines, key=lambda line: bool(line.strip())) if filled]
    written: list[str] = []
    for paragraph in paragraphs:
        if len(paragraph) > 1 and COLUMN.match(paragraph[0]):
            written += as_definitions(paragraph)
        elif paragraph[0].startswith("    "):  # an example that is indented
            written += ["::", "", *paragraph, ""]
        else:
            written += as_text(paragraph)
    lines[:] = written


def clean_signature(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Without the addresses of default objects, which differ from run to run."""
    return (re.sub(r"<[\w. ]+ object at 0x[0-9a-f]+>", "...", signature) if signature else signature), returns
