"""Run all benchmarks, or those named on the command line; write JSON and a Markdown table to benchmarks/results.

Only if it is named: `python -m benchmarks lines` attacks every line of the modules of the checker's core and search
that have changed since; all of them take an hour. `python -m benchmarks shards` stores 10^8 answers (20 GB), and
`python -m benchmarks large_text` 100 MB of text (some ten minutes, 4 GB of memory).
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

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
    hands,
    house,
    identity,
    large_text,
    learners,
    lines,
    logits,
    memory,
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
    "rates": rates.run,
    "trained": trained.run,
    "trained_formulas": trained_formulas.run,
    "learners": learners.run,
    "explore": explore.run,
    "logits": logits.run,
    "edits": edits.run,
    "lines": lines.run,
    "shards": shards.run,
    "sixteen_bits": sixteen_bits.run,
}
ONLY_IF_NAMED = {"lines", "shards", "large_text"}
RESULTS = Path(__file__).parent / "results"


def markdown(name: str, rows: list[dict[str, object]]) -> str:
    columns = list(rows[0])
    lines = [f"## {name}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(format_value(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def format_value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    names = sys.argv[1:] or [name for name in ALL if name not in ONLY_IF_NAMED]
    unknown = set(names) - set(ALL)
    if unknown:
        sys.exit(f"unknown benchmark {sorted(unknown)}; there are {', '.join(ALL)}")
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "numpy": version("numpy"), "machine": platform.machine()}
    for name in names:
        tables = ALL[name]()
        page = "".join(markdown(title, rows) + "\n" for title, rows in tables.items())
        taken = {"machine": machine, "taken": date.today().isoformat(), "tables": tables}
        (RESULTS / f"{name}.json").write_text(json.dumps(taken, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(page)
        print(page)
    readme.update()


if __name__ == "__main__":
    main()
