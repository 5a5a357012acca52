"""Rows of a benchmark that takes long, kept in a file of JSON lines, so that a run may be continued."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Rows:
    """Rows by some of their entries; nothing is kept without a file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        there = path is not None and path.exists()
        self.known = [json.loads(line) for line in path.read_text().splitlines()] if there and path else []

    def all(self, key: Row) -> list[Row]:
        return [row for row in self.known if all(row.get(name) == value for name, value in key.items())]

    def get(self, key: Row) -> Row | None:
        return next(iter(self.all(key)), None)

    def add(self, row: Row) -> Row:
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return row


def rows(default: Path | None = None) -> Rows:
    """Those of the file that ONELAYER_BENCH_ROWS names, or of the default."""
    name = os.environ.get("ONELAYER_BENCH_ROWS")
    return Rows(Path(name) if name else default)
