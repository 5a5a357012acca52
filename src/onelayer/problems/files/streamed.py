"""Parquet files larger than memory: vectors of reals go batch by batch to a file on disk that is mapped again.

Answers, names and lengths stay in memory; they are a few numbers per token where the token has many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from onelayer.problems.blocks import mapped_like
from onelayer.problems.files import rows as row_files
from onelayer.problems.files import wide
from onelayer.problems.files.table import Array, Table, build, refuse, sequence_names, typed_array
from onelayer.problems.scopes import Scope

#: Files whose columns take fewer bytes than this are read at once; others in batches of about this many.
LARGE, BATCH_BYTES = 1 << 26, 1 << 24
FIELDS = {"tokens", "answers", "answer", "sequence"}


def read(file: str, source: Any, arrow: Any) -> Table | None:
    """A large file of real tokens; None for any other, or one that only the other reader can explain."""
    types = {field.name: field.type for field in source.schema_arrow}
    if _bytes(source) < LARGE:
        return None
    if "tokens" in types:
        depth, leaf = _leaf(types["tokens"], arrow)
        fits = depth in (1, 2) and types.keys() <= FIELDS and not types.keys() >= {"answers", "answer"}
        fits = fits and _leaf(types.get("answers", types["tokens"]), arrow)[0] in (1, 2)
        return _of_sequences(file, source, arrow, types) if fits and arrow.types.is_floating(leaf) else None
    if "sequence" not in types or wide.is_wide(list(types)):
        return None
    token, answer = row_files.roles(file, list(types))
    fits = all(arrow.types.is_floating(types[name]) for name in token[1])
    fits = fits and arrow.types.is_signed_integer(types.get("position", arrow.int64()))
    return _of_tokens(file, source, arrow, token, answer) if fits else None


class _Spool:
    """Rows of numbers that are written to a nameless file, and mapped once all are there."""

    def __init__(self, disk: IO[bytes]) -> None:
        self.disk, self.size = disk, 0
        self.first: Array | None = None

    def add(self, rows: Array, where: str) -> None:
        self.first = rows[:1].copy() if self.first is None else self.first
        if rows.shape[1:] != self.first.shape[1:]:
            raise _refuse_width(where)
        self.disk.write(np.ascontiguousarray(rows, self.first.dtype).data)
        self.size += len(rows)

    def map_file(self, file: str) -> Array:
        if self.first is None:
            raise refuse("at least one sequence", f"{file} holds none", "Give some data.")
        self.disk.flush()
        return np.asarray(np.memmap(self.disk, self.first.dtype, "r+", shape=(self.size, *self.first.shape[1:])))


def _of_sequences(file: str, source: Any, arrow: Any, types: dict[str, Any]) -> Table:
    scope: Scope | None = "token" if "answers" in types else "sequence" if "answer" in types else None
    counts, answers, names = [], [], []
    with tempfile.TemporaryFile(prefix="onelayer-") as disk:
        spool = _Spool(disk)
        for start, batch in _batches(source):
            where = f"{file}, rows {start} to {start + len(batch) - 1}"
            tokens, sizes = _members(batch.column("tokens"), arrow, where)
            spool.add(_numbers(tokens, arrow, where), where)
            counts.append(sizes)
            if scope == "token":
                given, many = _members(batch.column("answers"), arrow, where)
                _refuse_counts(file, start, sizes, many)
                answers.append(_answers(given, arrow, where))
            elif scope == "sequence":
                answers.append(_answers(batch.column("answer"), arrow, where))
            if "sequence" in types:
                names += batch.column("sequence").to_pylist()
        flat = spool.map_file(file)
    if names:
        sequence_names(names, lambda i: f"{file}, row {i}")
        if len(set(names)) < len(names):
            raise refuse("sequences of different names", f"{file} repeats one", "Rename one of them.")
    Y = None if scope is None else np.concatenate(answers)
    return build(file, flat, np.concatenate(counts).tolist(), Y, scope, names or None)


def _of_tokens(file: str, source: Any, arrow: Any, token: row_files.Role, answer: row_files.Role | None) -> Table:
    """Rows of one sequence need not be adjacent; then the tokens are put in order on disk."""
    sequences, places, answers = [], [], []
    with tempfile.TemporaryFile(prefix="onelayer-") as disk:
        spool = _Spool(disk)
        for start, batch in _batches(source):
            where = f"{file}, rows {start} to {start + len(batch) - 1}"
            columns = [_numbers(batch.column(name), arrow, where) for name in token[1]]
            spool.add(columns[0] if token[1] == ["token"] else np.stack(columns, axis=1), where)
            sequences.append(_without_nulls(batch.column("sequence"), where))
            if "position" in batch.schema.names:
                places.append(_numbers(batch.column("position"), arrow, where))
            if answer is not None:
                parts = [_answers(batch.column(name), arrow, where) for name in answer[1]]
                vectors = answer[1] != [answer[0]]
                answers.append(np.stack(parts, axis=1).astype(np.float64) if vectors else parts[0])
        tokens = spool.map_file(file)
    coded = arrow.chunked_array(sequences).combine_chunks().dictionary_encode()
    code, names = coded.indices.to_numpy(), coded.dictionary.to_pylist()
    sequence_names(names, lambda i: f"{file}, sequence {i}")
    place = np.concatenate(places) if places else np.arange(len(code))
    order = row_files.in_order(code, place, lambda i: f"{file}, row {i}")
    if (np.diff(order) != 1).any():
        unsorted = tokens
        tokens = mapped_like(unsorted, lambda rows: unsorted[order[rows]], unsorted.dtype)
    counts, scope, Y = np.bincount(code), None, None
    if answer is not None:
        scope, Y = _arrange_answers(file, answer[0], np.concatenate(answers), order, counts)
    return build(file, tokens, counts.tolist(), Y, scope, names)


def _arrange_answers(file: str, kind: str, given: Array, order: Array, counts: Array) -> tuple[Scope, Array]:
    """Answers of rows in the order of tokens, or the one of each sequence."""
    inside = given[order]
    if kind == "answer":
        return "token", inside
    firsts = inside[np.cumsum(counts) - counts]
    if (inside != np.repeat(firsts, counts, axis=0)).any():
        raise refuse("one answer for all rows of a sequence", f"{file} has several", "Use the column answer.")
    return "sequence", firsts


def _refuse_counts(file: str, start: int, tokens: Array, answers: Array) -> None:
    if (tokens != answers).any():
        i = int(np.flatnonzero(tokens != answers)[0])
        raise refuse(
            "as many answers as tokens in each sequence",
            f"{file}, row {start + i} has {tokens[i]} tokens and {answers[i]} answers",
            'Give one answer per token, or one "answer" for the sequence.',
        )


def _bytes(source: Any) -> int:
    groups = source.metadata
    return sum(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups))


def _batches(source: Any) -> Iterator[tuple[int, Any]]:
    """Batches of rows, and the number of their first row; in one thread, since pyarrow 26.0.1 aborts in several."""
    start, rows = 0, max(1, BATCH_BYTES * source.metadata.num_rows // max(1, _bytes(source)))
    for batch in source.iter_batches(batch_size=min(rows, 1 << 20), use_threads=False):
        yield start, batch
        start += len(batch)


def _leaf(kind: Any, arrow: Any) -> tuple[int, Any]:
    """How deeply lists are nested, and what they hold."""
    depth = 0
    while arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind):
        depth, kind = depth + 1, kind.value_type
    return depth, kind


def _members(column: Any, arrow: Any, where: str) -> tuple[Any, Array]:
    """What the lists hold, one after the other, and how long each is."""
    sizes = arrow.compute.list_value_length(_without_nulls(column, where)).to_numpy(zero_copy_only=False)
    if not (sizes > 0).all():
        raise refuse("lists of at least one token", f"{where}: one is empty", "Correct or drop it.")
    return column.flatten(), sizes.astype(np.int64)


def _numbers(column: Any, arrow: Any, where: str) -> Array:
    """Numbers [T], or vectors [T, width]; float32 stays, other reals become float64."""
    if _leaf(column.type, arrow)[0]:
        parts, sizes = _members(column, arrow, where)
        if (sizes != sizes[0]).any():
            raise _refuse_width(where)
        return _numbers(parts, arrow, where).reshape(len(sizes), -1)
    numbers: Array = _without_nulls(column, where).to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        return numbers if numbers.dtype == np.float32 else numbers.astype(np.float64, copy=False)
    return numbers.astype(np.int64)


def _answers(column: Any, arrow: Any, where: str) -> Array:
    depth, leaf = _leaf(column.type, arrow)
    if arrow.types.is_floating(leaf):
        return _numbers(column, arrow, where).astype(np.float64)
    if depth == 0 and arrow.types.is_signed_integer(leaf):
        return _numbers(column, arrow, where)
    return typed_array(column.to_pylist(), "answers", lambda _: where)


def _without_nulls(column: Any, where: str) -> Any:
    if column.null_count:
        raise refuse("a value everywhere", f"{where}: there is null", "Fill it in, or drop the sequence.")
    return column


def _refuse_width(where: str) -> Exception:
    return refuse("vectors with the same number of components", f"{where}: they differ", "Complete or drop them.")
