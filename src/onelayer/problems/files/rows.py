"""One row per token: CSV files, and the long form of Parquet files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from onelayer.problems.files import wide
from onelayer.problems.files.table import (
    Array,
    Table,
    Where,
    build,
    refuse,
    sequence_names,
    text_lines,
    typed_array,
)
from onelayer.problems.scopes import Scope

COLUMNS = "sequence, position (optional), token or x0, x1, ..., and answer or sequence_answer (or answer0, ...)"
#: Only numbers that come back unchanged are read as numbers: 007 and 12345678901234567890 stay words.
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
NUMBER = re.compile(r"[+-]?(?=\.?[0-9])(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?")
MISSING = {"nan", "na", "n/a", "null", "none", "inf", "-inf"}
#: Names that pandas gives to the column of its index.
INDEX = ("", "Unnamed: 0")
LONG = re.compile(r"[+-]?[0-9]{16,}")
Columns = dict[str, list[Any]]
Role = tuple[str, list[str]]  # a prefix, and the columns that have it: ("x", ["x0", "x1"])


def read(path: Path) -> Table:
    """A CSV file with a header; a column of whole numbers, or of numbers, is read as such, any other as words.

    A .tsv file has tabs between its values. Others have commas, or semicolons or tabs if the header has no comma;
    with semicolons, 0,5 is a number. A first column without a name that counts the rows, as pandas writes it, is
    left out.
    """
    texts = text_lines(path)
    first = next(texts, "")
    delimiter = "\t" if ".tsv" in path.suffixes else _delimiter(first)
    reader = csv.reader(chain([first], texts), strict=True, delimiter=delimiter)
    rows, numbers = [], []
    try:
        for row in reader:
            if row:
                rows.append(row)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise refuse(
            f"values separated by {delimiter!r}",
            f"{path.name}, line {reader.line_num}: {error}",
            "Correct the quotes.",
        ) from None
    if not rows:
        raise refuse("a header and at least one row", f"{path.name} is empty", "Give some data.")
    header, rows, numbers = rows[0], rows[1:], numbers[1:]
    if header[0] in INDEX and all(row[0] == str(i) for i, row in enumerate(rows)):
        header, rows = header[1:], [row[1:] for row in rows]
    optional = [name for name in header if wide.may_be_empty(name)] if wide.is_wide(header) else []
    for row, number in zip(rows, numbers, strict=True):
        if len(row) != len(header) or "" in row:
            _check_row(path.name, header, row, number, optional)
    columns = {name: [row[c] for row in rows] for c, name in enumerate(header)}
    if len(columns) < len(header):
        raise refuse("columns of different names", f"{path.name} has {', '.join(header)}", "Rename one of them.")
    comma = delimiter == ";"
    typed_columns: Columns = {}
    for group in wide.groups(header) if wide.is_wide(header) else [[name] for name in header]:
        cells = [[text for text in columns[name] if text] for name in group]
        together = iter(_cells(group[0], [text for texts in cells for text in texts], comma))
        typed_columns |= {name: [next(together) if text else "" for text in columns[name]] for name in group}
    return from_columns(path.name, typed_columns, lambda i: f"{path.name}, line {numbers[i]}")


def _delimiter(header: str) -> str:
    """What separates the names of a header."""
    return next((d for d in ",;\t" if len(next(csv.reader([header], delimiter=d), [])) > 1), ",")


def lines(table: Table, delimiter: str = ",") -> Iterator[str]:
    """The table as CSV, which has no types: words that look like numbers will be read as numbers."""
    X, Y = table.X, table.Y
    kind = "answer" if table.scope == "token" else "sequence_answer"
    header = ["sequence", "position", *([f"x{c}" for c in range(X.shape[2])] if X.ndim == 3 else ["token"])]
    if Y is not None:
        vectors = Y.ndim == (3 if table.scope == "token" else 2)
        header += [f"{kind}{c}" for c in range(Y.shape[-1])] if vectors else [kind]
    yield _line(header, delimiter)
    for i, record in enumerate(table.records()):
        for k, token in enumerate(record["tokens"]):
            row = [record.get("sequence", i), k, *(token if isinstance(token, list) else [token])]
            if Y is not None:
                answer = record["answers"][k] if table.scope == "token" else record["answer"]
                row += answer if isinstance(answer, list) else [answer]
            yield _line(row, delimiter)


def from_columns(file: str, columns: Columns, where: Where) -> Table:
    """Rows of one sequence need not be adjacent; they keep their order, or take that of ``position``."""
    if wide.is_wide(list(columns)):
        return wide.from_columns(file, columns, where)
    if "sequence" in columns and not columns["sequence"]:
        raise refuse("at least one row", f"{file} has a header only", "Give some data.")
    token, answer = roles(file, list(columns))
    names = list(dict.fromkeys(sequence_names(columns["sequence"], where)))
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
        remedy = f"A row per token has: {COLUMNS}. A row per sequence has: {wide.COLUMNS}."
        raise refuse(
            "a column sequence, or columns token0, token1, ...", f"{file} has {', '.join(columns)}", remedy
        )
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
    return typed_array(values, what, lambda i: where(int(rows[i])), f"column {prefix}")


def _line(row: list[Any], delimiter: str) -> str:
    out = StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(
        row
    )  # so that a lone \r or \n in a word is quoted
    return out.getvalue()[:-2] + "\n"


def _check_row(file: str, header: list[str], row: list[str], number: int, optional: list[str]) -> None:
    if len(row) != len(header):
        raise refuse(
            f"{len(header)} values a row, as in the header",
            f"{file}, line {number} has {len(row)}",
            "Complete it, and quote values that contain commas.",
        )
    empty = [name for name, text in zip(header, row, strict=True) if not text and name not in optional]
    if empty:
        raise refuse(
            "a value in every column",
            f"{file}, line {number} has none in {empty[0]}",
            "Fill it in, or drop the sequence.",
        )


def _cells(name: str, texts: list[str], comma: bool) -> list[Any]:
    """Whole numbers if all are, numbers if all are, else words; ``comma`` says that 0,5 is a number.

    Names of sequences are always words; where numbers are needed, what is none is left for a message.
    """
    plain = [text.strip() for text in texts]
    if comma and not any("." in text for text in plain):
        points = [text.replace(",", ".") for text in plain]
        plain = points if all(_is_float(text) for text in points) else plain
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
    return in_order(code, typed_array(position, "positions", where), where)


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
