"""A person's own data: read, encoded with the certified names, and compared with what is certified."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from onelayer_checker.core.balls import Array
from onelayer_checker.core.claims import Verdict
from onelayer_checker.core.names import Names, encode
from onelayer_checker.core.samples import Data

#: Whole numbers up to here are float64 numbers too.
EXACT = 2**53
ROWS = (list, tuple, np.ndarray)


class Incomparable(Exception):
    """The data given is not of the kind that the certificate is about."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences one after another without padding, and a row of answers for each token, or for each sequence."""

    lengths: Array  # [N]
    tokens: Array  # ids [T], or reals [T, d] in the certified format
    answers: Array  # [T, q] or [N, q] numbers; a class is its number

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """The tokens and the answers of each sequence; bytes are equal where the numbers are."""
        ends = np.cumsum(self.lengths)
        return zip(_cut(self.tokens, ends), _cut(self.answers, self.answer_ends(ends)), strict=True)

    def answer_ends(self, ends: Array) -> Array:
        return ends if len(self.answers) == ends[-1] else np.arange(1, len(ends) + 1)


def _cut(rows: Array, ends: Array) -> Iterator[bytes]:
    content, size = rows.tobytes(), rows.nbytes // len(rows)
    return (content[size * a : size * z] for a, z in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


def read_lines(path: Path, scope: str) -> tuple[list[Any], list[Any]]:
    """The sequences and their answers in lines {"tokens": [...], "answers": [...]} or, of scopes other than token,
    {"tokens": [...], "answer": ...}; a line may also have a name, "sequence", which is not looked at."""
    field = "answers" if scope == "token" else "answer"
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
    X, Y = [], []
    for number, line in enumerate(path.read_bytes().decode("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
        except (ValueError, RecursionError) as error:
            raise Incomparable(f"line {number} is not JSON ({str(error)[:80]})") from None
        if not isinstance(record, dict) or record.keys() - {"sequence"} != {"tokens", field}:
            raise Incomparable(f"line {number} does not have exactly tokens and {field}")
        if not all(isinstance(record[name], list) for name in ("tokens", "answers") if name in record):
            raise Incomparable(f"line {number} does not have its {field} or tokens in a list")
        X.append(record["tokens"])
        Y.append(record[field])
    return X, Y


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a field is there twice")
    return record


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def encoded(given: Sequence[Any], names: Names, data: Data) -> Sequences:
    """(X, Y) or (X, Y, lengths) in numbers, as the certificate has them; -1 is what has no certified name."""
    if len(given) not in (2, 3) or not isinstance(given[1], ROWS):
        raise Incomparable("it must be (X, Y) or (X, Y, lengths), in arrays or lists")
    X, Y, lengths = (*given, None)[:3]
    counts, said = _flat(X, lengths, None)
    if names.tokens is None:
        with np.errstate(over="ignore"):
            tokens = _numbers(said, data.tokens.shape[2], "tokens").astype(data.tokens.dtype) + 0
    else:
        tokens = encode(_plain(said), names.tokens)
    said = _flat(Y, None, counts)[1] if names.scope == "token" else Y
    if names.scope != "token" and len(said) != len(counts):
        raise Incomparable(f"there are {len(said)} answers for {len(counts)} sequences")
    if names.answers is None:
        return Sequences(counts, tokens, _numbers(said, data.answers.shape[1], "answers") + 0)
    return Sequences(counts, tokens, encode(_plain(said), names.answers).astype(np.float64)[:, None])


def compare(mine: Sequences, theirs: Sequences, names: Names, limit: float) -> Verdict:
    """Whether each of my sequences is one of theirs, with the same answers; ``limit`` is the value of a proof."""
    parts = ("lengths", "tokens", "answers")
    same = all(np.array_equal(getattr(mine, part), getattr(theirs, part)) for part in parts)
    found = None if same else _look_up(mine, theirs, names)
    if found is not None:
        return found
    others = len(theirs.lengths) - len(mine.lengths)
    more = f"; {others:,} others are certified too" if others > 0 else ""
    return Verdict("proved", f"all {len(mine.lengths):,} sequences are certified with these answers{more}", limit)


def _look_up(mine: Sequences, theirs: Sequences, names: Names) -> Verdict | None:
    """The first sequence that is certified with other answers, else the first that is not certified; or None."""
    known = {tokens + answers for tokens, answers in theirs.pairs()}  # of equal lengths are only equal pairs
    missing = {i: tokens for i, (tokens, answers) in enumerate(mine.pairs()) if tokens + answers not in known}
    place: dict[bytes, int] = {}
    if missing:
        for j, (tokens, _) in enumerate(theirs.pairs()):
            place.setdefault(tokens, j)
    for i, tokens in missing.items():
        if tokens in place:
            a, b = (_answers_of(part, at) for part, at in ((mine, i), (theirs, place[tokens])))
            k = int(np.argmax((a != b).any(axis=1)))
            where = f"sequence {i}, token {k}" if names.scope == "token" else f"sequence {i}"
            why = f"{where} has the answer {_shown(a[k], names)}; {_shown(b[k], names)} is certified"
            return Verdict("refuted", why, np.inf)
    for i in missing:
        return Verdict("undecided", f"sequence {i} is not among the certified ones", np.inf)
    return None


def _answers_of(part: Sequences, i: int) -> Array:
    ends = part.answer_ends(np.cumsum(part.lengths))
    return part.answers[ends[i - 1] if i else 0 : ends[i]]


def _shown(row: Array, names: Names) -> str:
    if names.answers is None:
        return ", ".join(f"{x:.17g}" for x in row[:4]) + (", ..." if len(row) > 4 else "")
    return "one that is no certified class" if row[0] < 0 else f"{names.answers[int(row[0])]!r:.60}"


def _flat(rows: Any, lengths: Any, counts: Array | None) -> tuple[Array, Any]:
    """How many entries of each row are no padding, and these entries, one after another."""
    array = isinstance(rows, np.ndarray) and rows.ndim > 1 and rows.dtype != object
    if not array and not (isinstance(rows, ROWS) and all(isinstance(row, ROWS) for row in rows)):
        raise Incomparable("it must be an array of at least two axes, or a list of lists")
    own = np.full(len(rows), rows.shape[1]) if array else np.array([len(row) for row in rows], np.int64)
    wanted = own if lengths is None else np.asarray(lengths)
    wanted = wanted if counts is None else counts
    fits = wanted.shape == own.shape and wanted.dtype.kind in "iu" and len(own) > 0
    if not fits or (wanted < 1).any() or (wanted > own).any():
        raise Incomparable("there must be at least one token in each sequence, and an answer for each")
    if array:
        return wanted, rows[np.arange(rows.shape[1]) < wanted[:, None]]
    if counts is not None and (wanted != own).any():
        raise Incomparable("there are more answers than tokens")
    cut = (row[:k] for row, k in zip(rows, wanted.tolist(), strict=True))
    return wanted, list(chain.from_iterable(row.tolist() if isinstance(row, np.ndarray) else row for row in cut))


def _plain(said: Any) -> list[Any]:
    if isinstance(said, np.ndarray) and said.ndim != 1:
        raise Incomparable("vectors are given where the certificate has names")
    return list(said.tolist() if isinstance(said, np.ndarray) else said)


def _numbers(said: Any, width: int, what: str) -> Array:
    """Reals [T, width], exactly as given; words and truth values are no numbers."""
    if not isinstance(said, np.ndarray):
        vectors = [x for x in said if isinstance(x, ROWS)]
        if vectors and (len(vectors) < len(said) or any(len(x) != width for x in vectors)):
            raise Incomparable(f"the {what} are not all vectors of {width} numbers")
        parts: list[Any] = list(chain.from_iterable(vectors)) if vectors else said
        kinds = set(map(type, parts))
        whole = tuple(kind for kind in kinds if issubclass(kind, int | np.integer))
        if bool in kinds or not all(issubclass(kind, (*whole, float, np.float32, np.float16)) for kind in kinds):
            raise Incomparable(f"the {what} are not all numbers or vectors of numbers")
        if whole and any(isinstance(x, whole) and not -EXACT <= x <= EXACT for x in parts):
            raise Incomparable(f"float64 does not hold one of the {what}")
        said = np.array(parts, np.float64).reshape(len(said), -1)
    if said.dtype.kind not in "fiub" or said.dtype.itemsize > 8 or said.size != len(said) * width:
        raise Incomparable(f"the {what} must be numbers, {width} each")
    if said.dtype.kind in "iu" and not (said.min() >= -EXACT and said.max() <= EXACT):
        raise Incomparable(f"float64 does not hold one of the {what}")
    return np.asarray(said, np.float64).reshape(-1, width)
