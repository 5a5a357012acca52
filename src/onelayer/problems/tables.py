"""Data files for people and for the command line: read sequences and answers, write predictions."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from gzip import GzipFile
from importlib import resources
from pathlib import Path
from typing import IO, Any

import numpy as np

from onelayer.errors import OptionError, files_in_words
from onelayer.problems.files import arrays, conll, parquet, records, rows
from onelayer.problems.files.table import Table, pad_rows, refuse, refuse_file, typed_array
from onelayer.problems.scopes import Scope

__all__ = ["Table", "example", "like_answers", "read_table", "replace_answers", "write_answers"]

READERS: dict[str, Callable[[Path], Table]] = {
    ".jsonl": records.read,
    ".csv": rows.read,
    ".tsv": rows.read,
    ".conll": conll.read,
    ".npz": arrays.read,
    ".npy": arrays.read_mapped,
    ".parquet": parquet.read,
}

#: Formats of text, by what writes them; with .gz behind their ending they are compressed.
TEXTS: dict[str, Callable[[Table], Iterator[str]]] = {
    ".jsonl": records.lines,
    ".csv": rows.lines,
    ".tsv": partial(rows.lines, delimiter="\t"),
    ".conll": conll.lines,
}
#: Plain types and their NumPy kin, in the order in which they are tried.
NUMBERS: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, np.floating),
}


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a data file, by its ending.

    .jsonl    a line per sequence: {"tokens": [...], "answers": [...]}, or "answer": ... for the whole sequence
    .csv      a row per token: sequence, position (optional), token or x0, x1, ..., answer or sequence_answer; or
              a row per sequence: token0, token1, ... (x0, x1, ... for reals, if there is no column sequence), and
              answer, or answer0, answer1, ... for one per token; shorter sequences leave their last columns empty
    .tsv      the same with tabs; a .csv may also be separated by semicolons or tabs
    .conll    a token and its label a line (of more columns the first and the last), an empty line between sentences
    .npz      arrays X, Y (optional) and lengths (optional)
    .npy      X.npy, with Y.npy and lengths.npy beside it; X stays on disk, and may be larger than memory
    .parquet  list columns as in .jsonl, or the columns of .csv; a large file of reals is copied to disk (TMPDIR)

    Text may be compressed: .jsonl.gz, .csv.gz, .tsv.gz, .conll.gz.
    """
    path = Path(path)
    if path.is_dir():
        raise refuse_file("a data file", f"{path} is a folder", "Name a file in it.")
    reader = READERS[_ending(path)]
    if not path.is_file():
        raise refuse_file(
            "a data file",
            f"there is no file {path}",
            "Check the name.",
        )
    with files_in_words(path):
        return reader(path)


def write_answers(
    path: str | os.PathLike[str] | None, table: Table, answers: Any, scope: Scope | None = None
) -> None:
    """Write the table's sequences with these answers, in the format of the ending; None prints JSON lines.

    The file can be read again by `read_table`. It appears whole or not at all. ``scope`` is only needed for
    vectors that have as many components as a sequence has tokens.
    """
    written = replace_answers(table, answers, scope)
    if path is None:
        sys.stdout.writelines(records.lines(written))
        return
    path = Path(path)
    ending = _ending(path, tuple(name for name in READERS if name != ".npy"))
    if not path.absolute().parent.is_dir():
        raise refuse_file("a folder that exists", f"there is no folder {path.parent}", "Create it.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with files_in_words(path):
            with part.open("xb") as stream:
                _write(written, ending, stream, path.suffix.lower() == ".gz")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def example(name: str) -> Path:
    """A data file that comes with the library: "company" or "three_tokens"."""
    folder = Path(str(resources.files("onelayer.problems") / "examples"))
    found = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
    stem = name.removesuffix(".jsonl")
    if stem not in found:
        raise OptionError(
            "data", f"an example among {', '.join(found)}", f"{name!r} is not one of them", "Choose one of them."
        )
    return found[stem]


def like_answers(text: str, Y: Any) -> Any:
    """A word from the command line as an answer of the same type as those in the file."""
    first = Y
    while isinstance(first, list | tuple | np.ndarray) and len(first):
        first = first[0]
    for kind in NUMBERS:
        if isinstance(first, NUMBERS[kind]):
            try:
                return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
            except (KeyError, ValueError):
                return text  # a word among numbers is a class of its own, or refused
    return text


def format_of(path: Path) -> str:
    """The ending that says how a file is written: .csv of data.csv and of data.csv.gz, .conll of data.conll.txt."""
    endings = [ending.lower() for ending in path.suffixes]
    for outer in (".gz", ".txt"):
        if len(endings) > 1 and endings[-1] == outer and endings[-2] in (*TEXTS, ".txt"):
            endings.pop()
    return endings[-1] if endings else ""


def _ending(path: Path, endings: tuple[str, ...] = tuple(READERS)) -> str:
    ending = format_of(path)
    if ending not in endings:
        raise refuse_file(
            f"a file name ending in {', '.join(endings)}",
            f"{path.name} ends in {ending}" if ending else f"{path.name} has no ending",
            "Convert or rename the file.",
        )
    return ending


def _write(table: Table, ending: str, stream: IO[bytes], compressed: bool) -> None:
    if ending == ".npz":
        arrays.write(table, stream)
    elif ending == ".parquet":
        parquet.write(table, stream)
    else:
        with GzipFile("", "wb", fileobj=stream, mtime=0) if compressed else nullcontext(stream) as text:
            text.writelines(line.encode() for line in TEXTS[ending](table))


def replace_answers(table: Table, answers: Any, scope: Scope | None) -> Table:
    """The table with other answers: an array or list with one answer per token, or one per sequence."""
    rows = [row.tolist() if isinstance(row, np.ndarray | np.generic) else row for row in answers]
    n, counts = table.X.shape[1], table.counts
    if len(rows) != len(counts):
        raise refuse(f"answers for {len(counts)} sequences", f"there are {len(rows)}", "Match them up.")
    sizes = [len(row) if isinstance(row, list) else 0 for row in rows]
    if scope is None:
        scope = "token" if sizes in ([n] * len(rows), counts) else "sequence"
    if scope != "token":
        return replace(table, Y=typed_array(rows, "answers", "the answer for sequence {}".format), scope="sequence")
    for i, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        if size not in (count, n):
            raise refuse(
                "as many answers as tokens in each sequence",
                f"sequence {i} has {count} tokens and {size} answers",
                "Give one answer per token.",
            )
    flat = [answer for row, count in zip(rows, counts, strict=True) for answer in row[:count]]
    Y = pad_rows(typed_array(flat, "answers", "answer {} (counted over all tokens)".format), counts)
    return replace(table, Y=Y, scope=scope)
