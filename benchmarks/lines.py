"""What became of the checker's mutants: each line of a module deleted or altered, one at a time.

All modules of the core, the search, functions and looped networks.

A module that is as it was when its row was recorded is not attacked again: a row holds the digest of the module.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from attacks.lines import aims, argued

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "results" / "lines.json"
TITLE = "Lines of the checker deleted or altered"
#: Of the columns of `python -m attacks.lines`: a test failed, or took many times as long as before.
NOTICED = ("failed", "out of time")
#: Rings of which every mutant of every module is noticed or argued away.
RINGS = ("core", "search", "functions", "looped")


def attack_module(module: str) -> dict[str, Any]:
    """What the tests that are aimed at a module notice."""
    command = [sys.executable, "-m", "attacks.lines", "--module", module, "--jobs", "2", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return dict(json.loads(done.stdout))


def digest(module: str) -> str:
    return hashlib.sha256((aims.PACKAGE / f"{module}.py").read_bytes()).hexdigest()[:12]


def row(module: str, found: dict[str, Any]) -> dict[str, Any]:
    count = found["modules"][module]
    return {
        "module": module,
        "digest": digest(module),
        "mutants": count["mutants"],
        **{name: count.get(name, 0) for name in NOTICED},
        **{f"argued: {name}": count.get(name, 0) for name in argued.EFFECTS},
        "left": count.get("survived", 0) + count.get("not run", 0),
    }


def run() -> dict[str, list[dict[str, Any]]]:
    known = {each["module"]: each for each in _read_recorded()}
    rows = []
    for module in (module for ring in RINGS for module in aims.modules(ring, None)):
        before = known.get(module, {})
        same = before.get("digest") == digest(module) and before["left"] == 0
        if not same:
            known[module] = row(module, attack_module(module))
            _keep(list(known.values()))
        rows.append(known[module])
    total = {name: sum(each[name] for each in rows) for name in rows[0] if name not in ("module", "digest")}
    return {TITLE: [*rows, {"module": "all", "digest": "", **total}]}


def _keep(rows: list[dict[str, Any]]) -> None:
    """At once: an hour of attacks is not lost with the module that ends it."""
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {"tables": {}}
    recorded["tables"][TITLE] = rows
    RECORD.write_text(json.dumps(recorded, indent=1) + "\n")


def _read_recorded() -> list[dict[str, Any]]:
    return list(json.loads(RECORD.read_text())["tables"][TITLE]) if RECORD.exists() else []
