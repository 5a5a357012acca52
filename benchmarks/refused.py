"""What the checker says of folders that are meant to deceive or to harm it, and what that costs.

Each is written and judged by the real command, in a process of its own: how it ended, CPU seconds, peak memory.
Those that are meant to harm end as `attacks.hostile` demands; a false claim must not be verified; and where names
were changed consistently, the person's own data (``--data``) must tell.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import onelayer
from attacks.bundle import read
from attacks.counterexamples import counterexamples
from attacks.functions import false_claims
from attacks.hostile import hostile_folders
from attacks.meanings import ANSWERS, SEQUENCES, misnomers
from attacks.searched import searched_claims
from attacks.sixteen_bits import sixteen_bit_claims
from benchmarks.processes import measure

SECONDS, GIGABYTES = 10.0, 2.0
EXITS = {0: "VERIFIED", 1: "NOT VERIFIED", 2: "UNKNOWN", 3: "MALFORMED", 4: "UNFIT"}


@dataclass(frozen=True)
class Attack:
    group: str
    name: str
    folder: Path
    options: tuple[str, ...]
    allowed: tuple[str, ...]  # results


def run() -> dict[str, list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as parent:
        rows = [judge(attack) for attack in attacks(Path(parent))]
    return {
        "Attacks": [summary(list(some)) for _, some in groupby(rows, lambda row: row["attack on"])],
        "Each": rows,
    }


def attacks(parent: Path) -> Iterator[Attack]:
    for i, hostile in enumerate(hostile_folders()):
        folder = parent / f"hostile{i}"
        hostile.build(folder)
        options = tuple(option.replace("FOLDER", str(folder)) for option in hostile.options)
        yield Attack("whoever reads it", hostile.name, folder, options, (hostile.result,))
    refused = ("NOT VERIFIED", "UNKNOWN")
    false = (*counterexamples(), *searched_claims(), *sixteen_bit_claims(), *false_claims())
    for i, case in enumerate(false):
        yield Attack("the arithmetic", case.name, case.bundle.write(parent / f"false{i}"), (), refused)
    yield from misnamed(parent)


def misnamed(parent: Path) -> Iterator[Attack]:
    """Folders whose names or bounds say something else than the data they were made of, beside these data."""
    data = (SEQUENCES, ANSWERS)
    own = parent / "own.jsonl"
    lines = [json.dumps({"tokens": x, "answers": y}) for x, y in zip(*data, strict=True)]
    own.write_text("\n".join(lines) + "\n")
    honest = read(onelayer.save(parent / "honest", onelayer.memorize(*data, certify=False), data=data))
    for i, misnomer in enumerate(misnomers(honest)):
        forged = honest.copy()
        misnomer.change(forged)
        folder = forged.write(parent / f"misnamed{i}")
        yield Attack("the meaning", misnomer.name, folder, ("--data", str(own)), (misnomer.with_data,))


def judge(attack: Attack) -> dict[str, Any]:
    """By the command, as the person would."""
    command = [sys.executable, "-I", "-m", "onelayer_checker", str(attack.folder), *attack.options]
    found = measure(*command)
    result = EXITS.get(found.code, "crashed")
    good = result in attack.allowed and found.cpu < SECONDS and found.peak < GIGABYTES
    row = {"attack on": attack.group, "attack": attack.name, "result": result, "as it must be": good}
    return row | {"CPU s": round(found.cpu, 2), "peak GB": round(found.peak, 3)}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "attack on": rows[0]["attack on"],
        "attacks": len(rows),
        "as they must be": sum(row["as it must be"] for row in rows),
        **{f"most {cost}": max(row[cost] for row in rows) for cost in ("CPU s", "peak GB")},
    }
