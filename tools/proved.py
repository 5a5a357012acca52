"""Which lines of the checker's core and search rest on a theorem, on a test, or on neither.

A function rests on a theorem if its docstring names one: `Theorem: proofs/Cells.v cell_on, cell_off; proofs/Steps.v
steps_decide.` All others, and what a module holds outside of functions, stand in proofs/coverage.toml, with the
file of a test, or with the reason why neither is needed. Run, it writes the counts into the checker's README.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

try:
    from tools.rings import CHECKER, README, code_lines
except ImportError:  # run as a script, from wherever
    from rings import CHECKER, README, code_lines  # type: ignore[no-redef]

PROOFS = Path(__file__).resolve().parents[1] / "proofs"
TABLE = PROOFS / "coverage.toml"
RINGS = ("core", "search")
KINDS = ("proved", "tested", "neither")
NAMED = re.compile(r"Theorem: (proofs/\w+\.v \w+(?:, \w+)*(?:; proofs/\w+\.v \w+(?:, \w+)*)*)\.(?:\s|$)")
STATED = re.compile(r"^\s*(?:Theorem|Lemma|Corollary)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A function or method, "core/balls linear", or what else is in a module, "core/balls"; its lines of code."""

    name: str
    lines: int
    theorems: tuple[tuple[str, str], ...]  # file and name


def theorems_in(docstring: str) -> tuple[tuple[str, str], ...]:
    """The files and names that a docstring gives; a word "Theorem:" that gives none is an error."""
    text = " ".join(docstring.split())
    found = NAMED.findall(text)
    if len(found) != text.count("Theorem:"):
        raise ValueError(f"not understood: {text}")
    return tuple(pair for group in found for pair in parse_names(group))


def parts(module: str, text: str) -> Iterator[Part]:
    """Functions and methods, with what is defined inside of them, and the rest."""
    code, left = code_lines(text), len(code_lines(text))
    for name, node in _functions(ast.parse(text), ""):
        lines = len([line for line in code if node.lineno <= line <= (node.end_lineno or node.lineno)])
        left -= lines
        yield Part(f"{module} {name}", lines, theorems_in(ast.get_docstring(node) or ""))
    yield Part(module, left, ())


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def every_part() -> list[Part]:
    found = []
    for ring in RINGS:
        for path in sorted((CHECKER / ring).glob("*.py")):
            if text := path.read_text(encoding="utf-8"):
                found += parts(f"{ring}/{path.stem}", text)
    return found


def list_theorems(proofs: Path = PROOFS) -> set[tuple[str, str]]:
    """Every theorem, lemma and corollary, with its file."""
    return {
        (f"proofs/{path.name}", name)
        for path in proofs.glob("*.v")
        for name in STATED.findall(path.read_text("utf-8"))
    }


def parse_names(text: str) -> tuple[tuple[str, str], ...]:
    """Files and names in "proofs/Cells.v cell_on, cell_off; proofs/Steps.v steps_decide"."""
    pairs = (entry.split(" ", 1) for entry in text.split("; "))
    return tuple((path, name) for path, names in pairs for name in names.split(", "))


def table(path: Path = TABLE) -> dict[str, dict[str, str]]:
    """For each module, what its functions rest on; "outside" is what lies outside of them, "every" all the rest."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def rests_on(part: Part, listed: dict[str, dict[str, str]]) -> tuple[str, str]:
    """Proved, tested or neither, and by what."""
    if part.theorems:
        return "proved", "its docstring"
    module, _, function = part.name.partition(" ")
    own = listed.get(module, {})
    kind, _, what = own.get(function or "outside", own.get("every", "nothing")).partition(": ")
    return kind, what


def count() -> dict[str, dict[str, int]]:
    """Lines by ring and kind."""
    listed, found = table(), {ring: dict.fromkeys(KINDS, 0) for ring in RINGS}
    for part in every_part():
        found[part.name.partition("/")[0]][rests_on(part, listed)[0]] += part.lines
    return found


def with_counts(text: str) -> str:
    """The page, whose rows `| core, by function | proved | tested | neither |` have the lines of today."""
    for ring, lines in count().items():
        numbers = " | ".join(f"{lines[kind]:,}" for kind in KINDS)
        row = rf"^\| {ring}, by function \|[0-9, |]*\|$"
        text, rows = re.subn(row, f"| {ring}, by function | {numbers} |", text, flags=re.MULTILINE)
        if rows != 1:
            raise ValueError(f"{README} has {rows} rows for the functions of the ring {ring}")
    return text


if __name__ == "__main__":
    README.write_text(with_counts(README.read_text(encoding="utf-8")), encoding="utf-8")
    for ring, lines in count().items():
        print(ring, lines)
