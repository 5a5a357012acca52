"""Mutants that no test can notice, or need not: each with a reason, found again by its text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attacks.lines.mutations import Mutant

FILE = Path(__file__).parents[1] / "argued.toml"
#: What an argued change does. None of these lets a false claim pass.
EFFECTS = {
    "same": "the result is the same for every input",
    "message": "only the text of a refusal changes",
    "cost": "the same result, with more or less time or memory",
    "stricter": "more is refused or left undecided, nothing else is proved",
    "margin": "what is proved stays true: the bound is smaller, and still a bound",
}


@dataclass(frozen=True)
class Argument:
    effect: str
    why: str


def read(path: Path = FILE) -> dict[tuple[str, str, str, str], Argument]:
    """Arguments by (module, function, line, what it becomes)."""
    found = {}
    for entry in tomllib.loads(path.read_text())["argued"]:
        if set(entry) != {"module", "in", "line", "becomes", "effect", "why"} or entry["effect"] not in EFFECTS:
            raise SystemExit(f"{path.name} has an entry that is not understood: {entry}")
        for new in entry["becomes"]:
            key = (entry["module"], entry["in"], entry["line"], new)
            if key in found:
                raise SystemExit(f"{path.name} argues twice: {key}")
            found[key] = Argument(entry["effect"], entry["why"])
    return found


def stale(arguments: Iterable[tuple[str, str, str, str]], mutants: Iterable[Mutant]) -> list[str]:
    """Arguments about modules that were looked at, and about no mutant of them."""
    made = {mutant.key for mutant in mutants}
    looked_at = {module for module, *_ in made}
    return ["\n".join(key) for key in arguments if key[0] in looked_at and key not in made]
