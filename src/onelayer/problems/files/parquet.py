"""Parquet files: a row per sequence with list columns, or a row per token with the columns of a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from onelayer.errors import MissingExtraError
from onelayer.problems.files import records as record_files
from onelayer.problems.files import rows as row_files
from onelayer.problems.files import streamed
from onelayer.problems.files import wide as wide_files
from onelayer.problems.files.table import Table, refuse, refuse_file

#: Bytes of a column that are read ahead, instead of all of a row group.
BUFFER = 1 << 20


def read(path: Path) -> Table:
    """List columns tokens and answers (or answer), or the long form with a column sequence."""
    pyarrow, parquet = _pyarrow("reading Parquet")
    try:
        with path.open("rb") as stream:
            source = parquet.ParquetFile(stream, buffer_size=BUFFER)
            table = streamed.read(path.name, source, pyarrow)
            if table is not None:
                return table
            columns: dict[str, list[Any]] = source.read(use_threads=False).to_pydict()
    except (pyarrow.ArrowException, OSError) as error:
        raise refuse_file(
            "a whole Parquet file", f"{path.name} cannot be read ({str(error).rstrip('.')})", "Write it again."
        ) from None
    if "tokens" in columns:
        places = [f"{path.name}, row {i}" for i in range(len(columns["tokens"]))]
        records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return record_files.from_records(path.name, records, places)
    if "sequence" in columns or wide_files.is_wide(list(columns)):
        return row_files.from_columns(path.name, columns, lambda i: f"{path.name}, row {i}")
    raise refuse(
        "a list column tokens, or a column sequence",
        f"{path.name} has {', '.join(columns) or 'no columns'}",
        f"A row per sequence has: {', '.join(record_files.FIELDS)}. A row per token has: {row_files.COLUMNS}.",
    )


def write(table: Table, stream: IO[bytes]) -> None:
    """A row per sequence."""
    pyarrow, parquet = _pyarrow("writing Parquet")
    parquet.write_table(pyarrow.Table.from_pylist(list(table.records())), stream)


def _pyarrow(wanted_for: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError(wanted_for, "pyarrow", "parquet") from None
    return pyarrow, parquet
