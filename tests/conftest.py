"""Property tests never judge time; in CI they try the same examples on every run. Long tests are marked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("house")

LISTED = frozenset((Path(__file__).parent / "seconds.txt").read_text(encoding="utf-8").split())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make fast` leaves out what tests/seconds.txt lists (see tools/seconds.py) and what is marked slow."""
    for item in items:
        module = ".".join(Path(item.location[0]).with_suffix("").parts)
        if f"{module}::{item.name.partition('[')[0]}" in LISTED:
            item.add_marker("seconds")
