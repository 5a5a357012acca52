"""Run all benchmarks, or those named on the command line; write JSON and a Markdown table to benchmarks/results.

Only if it is named: `python -m benchmarks lines` attacks every line of the checker's modules that changed since, if
they have a campaign; all of them take an hour. `python -m benchmarks shards` stores 10^8 answers (20 GB), and
`python -m benchmarks large_text` 100 MB of text (some ten minutes, 4 GB of memory); `python -m benchmarks
trained_formulas` trains networks for hours, and goes on where it was ended. `python -m benchmarks learners:proofs`
measures one table of the learners again and keeps the others.
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import (
    approximate,
    attained,
    build,
    capacity,
    checker,
    cliffs,
    density,
    edits,
    explore,
    facts,
    false_hits,
    float32,
    formulas,
    ground_truth,
    growth,
    hands,
    hints,
    house,
    identity,
    large_text,
    learners,
    lines,
    logits,
    memory,
    one_head,
    pruned,
    rates,
    readme,
    recall,
    refused,
    shards,
    sixteen_bits,
    statements,
    text,
    throughput,
    trained,
    trained_formulas,
    training,
    verdicts,
)

ALL = {
    "recall": recall.run,
    "build": build.run,
    "memory": memory.run,
    "statements": statements.run,
    "checker": checker.run,
    "verdicts": verdicts.run,
    "refused": refused.run,
    "house": house.run,
    "identity": identity.run,
    "ground_truth": ground_truth.run,
    "hands": hands.run,
    "hints": hints.run,
    "float32": float32.run,
    "density": density.run,
    "capacity": capacity.run,
    "cliffs": cliffs.run,
    "text": text.run,
    "large_text": large_text.run,
    "throughput": throughput.run,
    "facts": facts.run,
    "false_hits": false_hits.run,
    "training": training.run,
    "approximate": approximate.run,
    "formulas": formulas.run,
    "attained": attained.run,
    "one_head": one_head.run,
    "growth": growth.run,
    "rates": rates.run,
    "trained": trained.run,
    "trained_formulas": trained_formulas.run,
    "learners": learners.run,
    "explore": explore.run,
    "logits": logits.run,
    "edits": edits.run,
    "pruned": pruned.run,
    "lines": lines.run,
    "shards": shards.run,
    "sixteen_bits": sixteen_bits.run,
}
ONLY_IF_NAMED = {"lines", "shards", "large_text", "trained_formulas"}
ONE_BY_ONE = {"learners": learners.TABLES, "growth": growth.TABLES}
RESULTS = Path(__file__).parent / "results"


def markdown(name: str, rows: list[dict[str, object]]) -> str:
    columns = list(rows[0])
    lines = [f"## {name}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(format_value(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def format_value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def measure(name: str, table: str) -> dict[str, Any]:
    """What a benchmark found; with a table only that one anew, and the day beside it."""
    if not table:
        return {"taken": date.today().isoformat(), "tables": ALL[name]()}
    old = json.loads((RESULTS / f"{name}.json").read_text())
    found = old["tables"] | {table: ONE_BY_ONE[name][table]()}
    again = old.get("taken again", {}) | {table: date.today().isoformat()}
    return {
        "taken": old.get("taken", ""),
        "taken again": again,
        "tables": {t: found[t] for t in ONE_BY_ONE[name] if t in found},
    }


def main() -> None:
    names = sys.argv[1:] or [name for name in ALL if name not in ONLY_IF_NAMED]
    unknown = set(names) - set(ALL) - {f"{name}:{table}" for name, tables in ONE_BY_ONE.items() for table in tables}
    if unknown:
        sys.exit(f"unknown benchmark {sorted(unknown)}; there are {', '.join(ALL)}")
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "numpy": version("numpy"), "machine": platform.machine()}
    for full in names:
        name, _, table = full.partition(":")
        found = measure(name, table)
        page = "".join(markdown(title, rows) + "\n" for title, rows in found["tables"].items())
        (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine} | found, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(page)
        print(page if not table else markdown(table, found["tables"][table]), flush=True)
    readme.update()


if __name__ == "__main__":
    main()
