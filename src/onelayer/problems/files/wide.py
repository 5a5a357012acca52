"""One row per sequence, a column per token: token0, token1, ... (or x0, x1, ... without a column sequence)."""

from __future__ import annotations

import re
from typing import Any

from onelayer.problems.files.table import Table, Where, build, refuse, sequence_names, typed_array
from onelayer.problems.scopes import Scope

COLUMNS = (
    "token0, token1, ... (or x0, x1, ... for reals), sequence (optional), and answer for the whole sequence "
    "(or sequence_answer0, ... for a vector), or answer0, answer1, ... with one per token"
)
Columns = dict[str, list[Any]]
TOKENS, ANSWERS = ("token", "x"), ("answer", "sequence_answer")


def is_wide(columns: list[str]) -> bool:
    """Whether a row is a sequence. With a column sequence, x0, x1, ... are the components of one token."""
    return bool(numbered_columns("token", columns)) or (
        "sequence" not in columns and bool(numbered_columns("x", columns))
    )


def numbered_columns(prefix: str, columns: list[str]) -> list[str]:
    """The columns prefix0, prefix1, ..., in the order of their numbers."""
    found = [name for name in columns if re.fullmatch(f"{prefix}[0-9]+", name)]
    return sorted(found, key=lambda name: int(name.removeprefix(prefix)))


def may_be_empty(name: str) -> bool:
    """A sequence that is shorter than others leaves its last columns empty."""
    return re.fullmatch(r"(token|x|answer)[0-9]+", name) is not None


def groups(columns: list[str]) -> list[list[str]]:
    """Columns whose cells are of one type."""
    together = [numbered_columns(prefix, columns) for prefix in (*TOKENS, *ANSWERS)]
    alone = [[name] for name in columns if not any(name in group for group in together)]
    return [group for group in (*together, *alone) if group]


def from_columns(file: str, columns: Columns, where: Where) -> Table:
    tokens, answers, scope = _roles(file, list(columns))
    if not columns[tokens[0]]:
        raise refuse("at least one row", f"{file} has a header only", "Give some data.")
    rows = _rows(columns, tokens, where)
    counts = [len(row) for row in rows]
    if not all(counts):
        raise refuse("at least one token in each row", f"{where(counts.index(0))} has none", "Drop it.")
    of_token = [i for i, count in enumerate(counts) for _ in range(count)]
    names = sequence_names(columns["sequence"], where) if "sequence" in columns else None
    if names is not None and len(set(names)) < len(names):
        raise refuse("sequences of different names", f"{file} repeats one", "Rename one of them.")
    values = typed_array([token for row in rows for token in row], "tokens", lambda j: where(of_token[j]))
    if scope is None:
        return build(file, values, counts, None, None, names)
    given = _rows(columns, answers, where) if scope == "token" or len(answers) > 1 else []
    for i, row in enumerate(given):
        if len(row) != (counts[i] if scope == "token" else len(answers)):
            needs = "as many answers as tokens in each sequence" if scope == "token" else "a value in every column"
            found = f"{where(i)} has {counts[i]} tokens and {len(row)} answers"
            raise refuse(needs, found, "Complete it, or drop the sequence.")
    if scope == "token":
        listed = typed_array([answer for row in given for answer in row], "answers", lambda j: where(of_token[j]))
    else:
        listed = typed_array(given or columns[answers[0]], "answers", where)
    return build(file, values, counts, listed, scope, names)


def is_missing(cell: Any) -> bool:
    """An empty cell of a text, null, or NaN."""
    return cell is None or cell == "" or (isinstance(cell, float) and cell != cell)


def _rows(columns: Columns, names: list[str], where: Where) -> list[list[Any]]:
    """The cells of each row, without those at its end that are empty."""
    rows = []
    for i, row in enumerate(zip(*(columns[name] for name in names), strict=True)):
        cells = list(row)
        while cells and is_missing(cells[-1]):
            cells.pop()
        for name, cell in zip(names, cells, strict=False):
            if is_missing(cell):
                found = f"{where(i)} has none in {name}, and one after it"
                raise refuse("empty columns only at the end of a sequence", found, "Fill it in, or drop the row.")
        rows.append(cells)
    return rows


def _roles(file: str, columns: list[str]) -> tuple[list[str], list[str], Scope | None]:
    """The columns of the tokens, those of the answers, and what these are answers for."""
    tokens = [found for prefix in TOKENS if (found := numbered_columns(prefix, columns))]
    answers: list[tuple[list[str], Scope]] = [([name], "sequence") for name in ANSWERS if name in columns]
    scopes: dict[str, Scope] = {"answer": "token", "sequence_answer": "sequence"}
    answers += [(found, scopes[prefix]) for prefix in ANSWERS if (found := numbered_columns(prefix, columns))]
    for several in (tokens, [names for names, _ in answers]):
        if len(several) > 1:
            needs = f"either {several[0][0]} or {several[1][0]}"
            raise refuse(needs, f"{file} has both columns", "Drop one of the two.")
        for names in several:
            prefix = names[0].rstrip("0123456789")
            if names != [prefix] and names != [f"{prefix}{k}" for k in range(len(names))]:
                missing = next(k for k in range(len(names)) if names[k] != f"{prefix}{k}")
                needs = f"columns {prefix}0, {prefix}1, ... without gaps"
                raise refuse(needs, f"{file} has no {prefix}{missing}", "Add it.")
    chosen, scope = answers[0] if answers else ([], None)
    for name in columns:
        if name not in {"sequence", *tokens[0], *chosen}:
            remedy = f"Drop or rename it. Columns are: {COLUMNS}."
            raise refuse("known columns only", f"{file} has {name!r}", remedy)
    return tokens[0], chosen, scope
