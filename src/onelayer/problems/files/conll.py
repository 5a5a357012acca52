"""One line per token, its label last, an empty line after each sentence: the files of CoNLL's shared tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onelayer.problems.files.table import Table, build, refuse, text_lines, typed_array

#: A line that begins a document; it is no sentence.
DOCUMENT = "-DOCSTART-"
Line = tuple[int, list[str]]  # its number, and its columns


def read(path: Path) -> Table:
    """The first column is the token and the last its label, both words; files of one column have no labels.

    Columns are separated by tabs, or else by spaces. Lines of documents are skipped, and so are comments: lines
    that begin with # before a sentence. Such a line is a token if it has as many columns as other lines, and a
    label that other lines have.
    """
    sentences = [_without_comments(lines, labels) for lines, labels in _with_labels(_sentences(path))]
    sentences = [lines for lines in sentences if lines]
    if not sentences:
        raise refuse("at least one sentence", f"{path.name} holds none", "Give some data.")
    flat = [line for lines in sentences for line in lines]
    width = len(flat[0][1])
    for number, columns in flat:
        if len(columns) != width:
            found = f"line {number} has {len(columns)} and line {flat[0][0]} has {width}"
            raise refuse("as many columns in every line", f"{path.name}, {found}", "Correct one of them.")

    def where(j: int) -> str:
        return f"{path.name}, line {flat[j][0]}"

    counts = [len(lines) for lines in sentences]
    tokens = typed_array([columns[0] for _, columns in flat], "tokens", where)
    if width == 1:
        return build(path.name, tokens, counts, None, None, None)
    return build(path.name, tokens, counts, typed_array([c[-1] for _, c in flat], "answers", where), "token", None)


def lines(table: Table) -> Iterator[str]:
    """A token and its label a line, with a tab between them."""
    if table.X.ndim == 3 or (table.Y is not None and (table.scope != "token" or table.Y.ndim == 3)):
        raise refuse("words with a label each", "there are vectors, or one answer a sequence", "Write .jsonl.")
    for record in table.records():
        for row in zip(record["tokens"], *([record["answers"]] if table.Y is not None else []), strict=True):
            cells = [str(cell) for cell in row]
            if any(not cell or set(cell) & set("\t\r\n") for cell in cells) or cells[0].startswith("#"):
                raise refuse("words without tabs, line ends or a # in front", f"{cells}", "Write .jsonl.")
            yield "\t".join(cells) + "\n"
        yield "\n"


def _sentences(path: Path) -> Iterator[list[Line]]:
    sentence: list[Line] = []
    for number, text in enumerate(text_lines(path), 1):
        text = text.rstrip("\r\n")
        columns = text.split("\t") if "\t" in text else text.split()
        if not text.strip() or columns[0] == DOCUMENT:
            yield sentence
            sentence = []
        else:
            sentence.append((number, columns))
    yield sentence


def _with_labels(sentences: Iterator[list[Line]]) -> list[tuple[list[Line], set[tuple[int, str]]]]:
    """Each sentence with the labels, and numbers of columns, that lines without a # have."""
    held = list(sentences)
    labels = {(len(c), c[-1]) for lines in held for _, c in lines if not c[0].startswith("#") and len(c) > 1}
    return [(lines, labels) for lines in held]


def _without_comments(sentence: list[Line], labels: set[tuple[int, str]]) -> list[Line]:
    kept = list(sentence)
    while kept and kept[0][1][0].startswith("#") and (len(kept[0][1]), kept[0][1][-1]) not in labels:
        kept.pop(0)
    return kept
