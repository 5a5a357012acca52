"""Counts the lines of code in each ring of the checker and writes them into its README.

A line counts if something of it is neither a comment nor a docstring.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[1] / "src" / "onelayer_checker"
README = CHECKER / "README.md"
RINGS = ("core", "search", "functions", "looped", "arb", "front")
NOT_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def lines_of_code(text: str) -> int:
    return len(code_lines(text))


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that count."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def count() -> dict[str, int]:
    """By ring; what lies in no ring's folder is the front door."""
    found = dict.fromkeys(RINGS, 0)
    for path in CHECKER.rglob("*.py"):
        ring = path.relative_to(CHECKER).parts[0]
        found[ring if ring in found else "front"] += lines_of_code(path.read_text(encoding="utf-8"))
    return found


def with_counts(text: str) -> str:
    """The page, whose rows `| name | lines | ...` have the lines of today."""
    for ring, lines in count().items():
        text, rows = re.subn(rf"^\| {ring} \| [0-9,]+ \|", f"| {ring} | {lines:,} |", text, flags=re.MULTILINE)
        if rows != 1:
            raise ValueError(f"{README} has {rows} rows for the ring {ring}")
    return text


if __name__ == "__main__":
    README.write_text(with_counts(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(count())
