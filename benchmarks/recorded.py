"""What the benchmarks recorded in benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
#: What was measured, and what came out.
Figure = tuple[str, str]


def results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def tables(name: str) -> Any:
    return results(name)["tables"]
