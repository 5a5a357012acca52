"""What every data file becomes, and the rules that all formats share: one type per column, nothing guessed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, FileError
from onelayer.problems.answers import LONGEST_WORD
from onelayer.problems.blocks import is_mapped, on_disk
from onelayer.problems.scopes import Scope

Array = NDArray[Any]
Where = Callable[[int], str]

#: Whole numbers up to here are float64 numbers too.
EXACT = 2**53
TYPES = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list"}


@dataclass(frozen=True, eq=False)
class Table:
    """Sequences and answers of one file: ``memorize(t.X, t.Y, lengths=t.lengths, scope=t.scope)``."""

    file: str
    X: Array  # [N, n] words, whole numbers or reals, or [N, n, d] vectors; padding is zero or ""
    Y: Array | None = None  # [N, n] or [N], with one more axis for vectors
    lengths: Array | None = None  # [N], or None if every sequence is full
    scope: Scope | None = None  # None if there are no answers
    names: tuple[str | int, ...] | None = None  # the sequences' own names, if they have any

    @property
    def counts(self) -> list[int]:
        """How many tokens each sequence has."""
        return [self.X.shape[1]] * len(self.X) if self.lengths is None else [int(k) for k in self.lengths]

    @property
    def source(self) -> str:
        """A line for people: 32 sequences of 3 tokens from company.jsonl."""
        least, most = min(self.counts), max(self.counts)
        tokens = f"{most} token{'s' if most > 1 else ''}" if least == most else f"{least} to {most} tokens"
        return f"{len(self.X):,} sequence{'s' if len(self.X) > 1 else ''} of {tokens} from {self.file}"

    def records(self) -> Iterator[dict[str, Any]]:
        """One dictionary per sequence, of plain Python values: sequence (if named), tokens, answers or answer."""
        for i, k in enumerate(self.counts):
            record = {} if self.names is None else {"sequence": self.names[i]}
            record["tokens"] = self.X[i, :k].tolist()
            if self.Y is not None:
                per_token = self.scope == "token"
                record["answers" if per_token else "answer"] = (self.Y[i, :k] if per_token else self.Y[i]).tolist()
            yield record


def refuse(needs: str, found: str, remedy: str) -> DataError:
    return DataError("data", needs, found, remedy)


def refuse_file(needs: str, found: str, remedy: str) -> FileError:
    return FileError("file", needs, found, remedy)


def text_lines(path: Path) -> Iterator[str]:
    """Lines of UTF-8 text, with or without a byte order mark; those of a .gz file as they were before."""
    compressed = path.suffix.lower() == ".gz"
    with path.open("rb") as raw, GzipFile(fileobj=raw) if compressed else nullcontext(raw) as stream:
        for number, line in enumerate(_decompress(path, stream), 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise refuse(
                    "text in UTF-8",
                    f"{path.name}, line {number} is not: {error.reason} at byte {error.start}",
                    "Save the file as UTF-8.",
                ) from None


def _decompress(path: Path, stream: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from stream
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise refuse_file(
            "a whole .gz file", f"{path.name} cannot be read ({error})", "Compress it again."
        ) from None


def build(
    file: str,
    tokens: Array,
    counts: Sequence[int],
    answers: Array | None,
    scope: Scope | None,
    names: Sequence[str | int] | None,
) -> Table:
    """Typed columns, one row per token (answers: or one per sequence), into a table."""
    Y = pad_rows(answers, counts) if answers is not None and scope == "token" else answers
    lengths = None if min(counts) == max(counts) else np.asarray(counts)
    return Table(file, pad_rows(tokens, counts), Y, lengths, scope, None if names is None else tuple(names))


def pad_rows(flat: Array, counts: Sequence[int]) -> Array:
    """One row per token into places [N, n]; padding is zero, or the empty word."""
    shape = (len(counts), max(counts), *flat.shape[1:])
    if len(flat) == shape[0] * shape[1]:
        return flat.reshape(shape)
    empty = np.full(shape, "", object) if flat.dtype == object else None
    places = (
        on_disk(shape, flat.dtype) if is_mapped(flat) else np.zeros(shape, flat.dtype) if empty is None else empty
    )
    places[np.arange(shape[1]) < np.asarray(counts)[:, None]] = flat
    return places


def sequence_names(values: list[Any], where: Where) -> list[str | int]:
    """Names of sequences: words, or whole numbers."""
    names = typed_array(values, "names in `sequence`", where)
    if names.dtype.kind not in "iUO":
        raise refuse("words or whole numbers in `sequence`", f"{where(0)} has {values[0]!r}", "Rename it.")
    return values


def typed_array(values: list[Any], what: str, where: Where, part: str = "component ") -> Array:
    """Values of one type into an array: words, booleans, whole numbers, reals, or vectors of reals.

    ``what`` names the values and ``where`` places the i-th of them in messages; ``part`` names a component.
    """
    types = {type(value) for value in values}
    if not (types <= {int, float} or (len(types) == 1 and types <= TYPES.keys())):
        raise _mixed_types_error(values, what, where)
    if types == {list}:
        return _vectors(values, what, where, part)
    if types <= {int, float}:
        return (_reals if float in types else _whole)(values, what, where)
    if types == {str}:
        return _words(values, what, where)
    return np.array(values)


def _words(values: list[str], what: str, where: Where) -> Array:
    different = set(values)
    for value in different:
        if value.endswith("\0"):  # NumPy would drop it
            found = f"{where(values.index(value))} has {value!r}"
            raise refuse(f"{what} that do not end in NUL", found, "Strip it.")
    if max(map(len, different)) <= LONGEST_WORD:
        return np.array(values)
    words = np.empty(len(values), object)  # an array of words would be as wide as its longest
    words[:] = values
    return words


def _mixed_types_error(values: list[Any], what: str, where: Where) -> DataError:
    for i, value in enumerate(values):
        if type(value) not in TYPES:
            return refuse(
                f"{what} that are words, whole numbers, reals or lists of reals",
                f"{where(i)} has {'null' if value is None else f'{value!r}, a {type(value).__name__}'}",
                "Fill it in, convert it, or drop the sequence.",
            )
    i = next(i for i, value in enumerate(values) if TYPES[type(value)] != TYPES[type(values[0])])
    return refuse(
        f"{what} of one type in the whole file",
        f"{where(0)} has {values[0]!r}, {TYPES[type(values[0])]}, and {where(i)} has {values[i]!r}, "
        f"{TYPES[type(values[i])]}",
        "Make them the same.",
    )


def _whole(values: list[int], what: str, where: Where) -> Array:
    for i, value in enumerate(values):
        if not -(2**63) <= value < 2**63:
            raise refuse(f"whole {what} of 64 bits", f"{where(i)} has {value}", "Write it as text.")
    return np.array(values, dtype=np.int64)


def _reals(values: list[Any], what: str, where: Where) -> Array:
    def is_held(x: float) -> bool:
        return -EXACT <= x <= EXACT if type(x) is int else math.isfinite(x)

    if not all(map(is_held, values)):
        i = next(i for i, x in enumerate(values) if not is_held(x))
        raise refuse(f"finite {what} that float64 holds", f"{where(i)} has {values[i]}", "Drop or impute it.")
    return np.array(values, dtype=np.float64)


def _vectors(values: list[list[Any]], what: str, where: Where, part: str) -> Array:
    width = len(values[0])
    if not width or {len(vector) for vector in values} != {width}:
        i = next(i for i, vector in enumerate(values) if len(vector) != width or not width)
        raise refuse(
            f"{what} with the same number of components, at least one",
            f"{where(i)} has one of {len(values[i])} and {where(0)} one of {width}",
            "Complete or drop it.",
        )
    flat = [x for vector in values for x in vector]
    if not {type(x) for x in flat} <= {int, float}:
        j = next(j for j, x in enumerate(flat) if type(x) not in (int, float))
        raise refuse(
            f"numbers as components of {what}",
            f"{where(j // width)} has {'null' if flat[j] is None else repr(flat[j])} in {part}{j % width}",
            "Correct it, or drop the sequence.",
        )
    return _reals(flat, f"components of {what}", lambda j: where(j // width)).reshape(-1, width)
