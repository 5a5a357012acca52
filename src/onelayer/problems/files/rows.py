"""One row per token: CSV files, and the long form of Parquet files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from onelayer.problems.answers import Scope
from onelayer.problems.files.table import Array, Table, Where, build, named, refuse, text_lines, typed

COLUMNS = "sequence, position (optional), token or x0, x1, ..., and answer or sequence_answer (or answer0, ...)"
#: Only numbers that come back unchanged are read as numbers: 007 and 12345678901234567890 stay words.
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
NUMBER = re.compile(r"[+-]?(?=\.?[0-9])(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?")
MISSING = {"nan", "na", "n/a", "null", "none", "inf", "-inf"}
LONG = re.compile(r"[+-]?[0-9]{16,}")
Columns = dict[str, list[Any]]
Role = tuple[str, list[str]]  # a prefix, and the columns that have it: ("x", ["x0", "x1"])


def read(path: Path) -> Table:
    """A CSV file with a header; a column of whole numbers, or of numbers, is read as such, any other as words."""
    reader = csv.reader(text_lines(path), strict=True)
    rows, numbers = [], []
    try:
        for row in reader:
            if row:
                rows.append(row)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise refuse(
            "comma-separated values", f"{path.name}, line {reader.line_num}: {error}", "Correct the quotes."
        ) from None
    if not rows:
        raise refuse("a header and at least one row", f"{path.name} is empty", "Give some data.")
    header, rows, numbers = rows[0], rows[1:], numbers[1:]
    for row, number in zip(rows, numbers, strict=True):
        _check_row(path.name, header, row, number)
    columns = {name: [row[c] for row in rows] for c, name in enumerate(header)}
    if len(columns) < len(header):
        raise refuse("columns of different names", f"{path.name} has {', '.join(header)}", "Rename one of them.")
    typed_columns = {name: _cells(name, texts) for name, texts in columns.items()}
    return from_columns(path.name, typed_columns, lambda i: f"{path.name}, line {numbers[i]}")


def lines(table: Table) -> Iterator[str]:
    """The table as CSV, which has no types: words that look like numbers will be read as numbers."""
    X, Y = table.X, table.Y
    kind = "answer" if table.scope == "token" else "sequence_answer"
    header = ["sequence", "position", *([f"x{c}" for c in range(X.shape[2])] if X.ndim == 3 else ["token"])]
    if Y is not None:
        vectors = Y.ndim == (3 if table.scope == "token" else 2)
        header += [f"{kind}{c}" for c in range(Y.shape[-1])] if vectors else [kind]
    yield _line(header)
    for i, record in enumerate(table.records()):
        for k, token in enumerate(record["tokens"]):
            row = [record.get("sequence", i), k, *(token if isinstance(token, list) else [token])]
            if Y is not None:
                answer = record["answers"][k] if table.scope == "token" else record["answer"]
                row += answer if isinstance(answer, list) else [answer]
            yield _line(row)


def from_columns(file: str, columns: Columns, where: Where) -> Table:
    """Rows of one sequence need not be adjacent; they keep their order, or take that of ``position``."""
    if "sequence" in columns and not columns["sequence"]:
        raise refuse("at least one row", f"{file} has a header only", "Give some data.")
    token, answer = roles(file, list(columns))
    names = list(dict.fromkeys(named(columns["sequence"], where)))
    index = {name: i for i, name in enumerate(names)}
    code = np.array([index[name] for name in columns["sequence"]])
    order, counts = _order(code, columns.get("position"), where), np.bincount(code)
    tokens = _values(columns, token, order, "tokens", where)
    if answer is None:
        return build(file, tokens, counts.tolist(), None, None, names)
    scope: Scope = "token" if answer[0] == "answer" else "sequence"
    rows = order if scope == "token" else order[np.cumsum(counts) - counts]
    answers = _values(columns, answer, rows, "answers", where)
    if scope == "sequence":
        _refuse_varying(columns, answer[1], order, rows[code[order]], where)
    return build(file, tokens, counts.tolist(), answers, scope, names)


def roles(file: str, columns: list[str]) -> tuple[Role, Role | None]:
    """Which columns hold the tokens, and which the answers, if any do."""
    if "sequence" not in columns:
        raise refuse("a column sequence", f"{file} has {', '.join(columns)}", f"Columns are: {COLUMNS}.")
    token = _role(file, columns, ("token", "x"))
    answer = _role(file, columns, ("answer", "sequence_answer"))
    if token is None:
        raise refuse("a column token, or columns x0, x1, ...", f"{file} has {', '.join(columns)}", "Add them.")
    known = {"sequence", "position", *token[1], *(answer[1] if answer else ())}
    for name in columns:
        if name not in known:
            raise refuse(
                "known columns only", f"{file} has {name!r}", f"Drop or rename it. Columns are: {COLUMNS}."
            )
    return token, answer


def _values(columns: Columns, role: Role, rows: Array, what: str, where: Where) -> Array:
    prefix, names = role
    values: list[Any] = (
        [columns[prefix][i] for i in rows]
        if names == [prefix]
        else [[columns[name][i] for name in names] for i in rows]
    )
    return typed(values, what, lambda i: where(int(rows[i])), f"column {prefix}")


def _line(row: list[Any]) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(row)  # so that a lone \r or \n in a word is quoted
    return out.getvalue()[:-2] + "\n"


def _check_row(file: str, header: list[str], row: list[str], number: int) -> None:
    if len(row) != len(header):
        raise refuse(
            f"{len(header)} values a row, as in the header",
            f"{file}, line {number} has {len(row)}",
            "Complete it, and quote values that contain commas.",
        )
    if "" in row:
        raise refuse(
            "a value in every column",
            f"{file}, line {number} has none in {header[row.index('')]}",
            "Fill it in, or drop the sequence.",
        )


def _cells(name: str, texts: list[str]) -> list[Any]:
    """Whole numbers if all are, numbers if all are, else words.

    Names of sequences are always words; where numbers are needed, what is none is left for a message.
    """
    plain = [text.strip() for text in texts]
    if name == "sequence":
        return texts
    if name == "position":
        return [int(text) if WHOLE.fullmatch(text) else text for text in plain]
    if re.fullmatch(r"x[0-9]+", name):
        return [float(text) if _is_float(text) else text for text in plain]
    if all(WHOLE.fullmatch(text) for text in plain):
        return [int(text) for text in plain]
    if all(NUMBER.fullmatch(text) and not LONG.fullmatch(text) for text in plain):
        return [float(text) for text in plain]
    numbers = [NUMBER.fullmatch(text) and not LONG.fullmatch(text) for text in plain]
    if any(numbers) and all(n or text.lower() in MISSING for n, text in zip(numbers, plain, strict=True)):
        return [text if text.lower() in MISSING else float(text) for text in plain]  # left for a message
    return texts


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _role(file: str, columns: list[str], names: tuple[str, str]) -> Role | None:
    """Which of two columns there is, alone or numbered from 0."""
    found = []
    for name in names:
        numbered = [column for column in columns if re.fullmatch(f"{name}[0-9]+", column)]
        wanted = [f"{name}{c}" for c in range(len(numbered))]
        if missing := [column for column in wanted if column not in numbered]:
            raise refuse(f"columns {name}0, {name}1, ... without gaps", f"{file} has no {missing[0]}", "Add it.")
        found += [(name, [name])] if name in columns and name != "x" else []
        found += [(name, wanted)] if wanted and name != "token" else []
    if len(found) > 1:
        raise refuse(
            f"either {found[0][1][0]} or {found[1][1][0]}", f"{file} has both columns", "Drop one of the two."
        )
    return found[0] if found else None


def _order(code: Array, position: list[Any] | None, where: Where) -> Array:
    if position is None:
        return np.argsort(code, kind="stable")
    for i, value in enumerate(position):
        if type(value) is not int:
            raise refuse("whole numbers in position", f"{where(i)} has {value!r}", "Number the tokens 0, 1, 2, ...")
    return in_order(code, typed(position, "positions", where), where)


def in_order(code: Array, places: Array, where: Where) -> Array:
    """Rows by sequence, then by place."""
    order = np.lexsort((places, code))
    twice = np.flatnonzero((np.diff(code[order]) == 0) & (np.diff(places[order]) == 0))
    if twice.size:
        a, b = (int(order[twice[0] + j]) for j in (0, 1))
        raise refuse(
            "different positions in each sequence",
            f"{where(a)} and {where(b)} both are token {places[a]} of one sequence",
            "Correct one of them.",
        )
    return order


def _refuse_varying(columns: Columns, names: list[str], rows: Array, firsts: Array, where: Where) -> None:
    for name in names:
        values = columns[name]
        for i, first in zip(rows.tolist(), firsts.tolist(), strict=True):
            if values[i] != values[first]:
                raise refuse(
                    f"one {name} for all rows of a sequence",
                    f"{where(first)} has {values[first]!r} and {where(i)} has {values[i]!r}",
                    "Correct it, or use the column answer for one answer per token.",
                )
