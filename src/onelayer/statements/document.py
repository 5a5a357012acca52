"""The catalogue as a page: `python -m onelayer.statements.document > docs/statements.md`."""

from __future__ import annotations

from onelayer.statements.catalogue import CATALOGUE, STANDINGS


def as_markdown() -> str:
    lines = [
        "# Statements",
        "",
        "Every statement the library builds on. This page is generated from the catalogue.",
        "",
    ]
    lines += ["| standing | meaning |", "|---|---|"]
    lines += [f"| {standing} | {meaning} |" for standing, meaning in STANDINGS.items()]
    lines += [
        "",
        "| key | statement | says | standing | source | rests on | differs |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{s.key}` | {s.label} | {s.says.replace('|', chr(92) + '|')} | {s.standing} | {s.source} "
        f"| {', '.join(s.rests_on)} | {s.differs.replace('|', chr(92) + '|')} |"
        for s in CATALOGUE.values()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(as_markdown(), end="")
