"""One object per sequence: JSON lines, and the list columns of Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onelayer.problems.files.table import Table, build, refuse, sequence_names, text_lines, typed_array
from onelayer.problems.scopes import Scope

FIELDS = ("sequence", "tokens", "answers", "answer")
Record = dict[str, Any]
ONE_OR_EACH = 'Give a list of "answers", one per token, or one "answer" for the sequence.'


def read(path: Path) -> Table:
    """Lines such as {"tokens": ["river", "bank"], "answers": ["water", "shore"]}; empty lines are skipped."""
    places, records = [], []
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            places.append(f"{path.name}, line {number}")
            records.append(_parse(line, places[-1]))
    return from_records(path.name, records, places)


def lines(table: Table) -> Iterator[str]:
    """The table as JSON lines, from which it can be read again."""
    for record in table.records():
        yield json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def from_records(file: str, records: list[Record], places: list[str]) -> Table:
    """Check fields and lengths record by record, then the types of all tokens and of all answers."""
    if not records:
        raise refuse("at least one sequence", f"{file} holds none", "Give some data.")
    for record, place in zip(records, places, strict=True):
        _check_fields(record, place)
    scope = _common_scope(records, places)
    counts = [len(record["tokens"]) for record in records]
    of_token = [place for place, count in zip(places, counts, strict=True) for _ in range(count)]
    tokens = typed_array([t for record in records for t in record["tokens"]], "tokens", of_token.__getitem__)
    answers = None
    if scope == "token":
        answers = typed_array([a for record in records for a in record["answers"]], "answers", of_token.__getitem__)
    elif scope == "sequence":
        answers = typed_array([record["answer"] for record in records], "answers", places.__getitem__)
    return build(file, tokens, counts, answers, scope, _names(records, places))


def _parse(line: str, place: str) -> Record:
    try:
        record = DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise refuse(
            "one JSON object a line", f"{place} is not: {error}", 'Write {"tokens": [...], "answers": [...]}.'
        ) from None
    if not isinstance(record, dict):
        raise refuse(
            "one JSON object a line",
            f"{place} is {type(record).__name__}, not an object",
            'Write {"tokens": [...], "answers": [...]}.',
        )
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"a name is repeated among {', '.join(name for name, _ in pairs)}")
    return record


#: `json.loads` with these options would build one for every line.
DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_without_repeats)


def _check_fields(record: Record, place: str) -> None:
    unknown = [name for name in record if name not in FIELDS]
    if unknown or "tokens" not in record:
        raise refuse(
            "tokens, and answers or answer (and sequence, a name, if wanted)",
            f"{place} has {f'the unknown field {unknown[0]!r}' if unknown else 'no tokens'}",
            "Rename or drop it." if unknown else 'Write {"tokens": [...], "answers": [...]}.',
        )
    if "answers" in record and "answer" in record:
        raise refuse("either answers or answer", f"{place} has both", "Drop one of the two.")
    for name in ("tokens", "answers"):
        if name in record and not (isinstance(record[name], list) and record[name]):
            raise refuse(
                f"{name} as a list of at least one",
                f"{place} has {record[name]!r}",
                'Write ["river", "bank"], say.' if name == "tokens" else ONE_OR_EACH,
            )
    answer = record.get("answer")
    if isinstance(answer, list) and answer and isinstance(answer[0], str):
        raise refuse("a word, a number or a list of numbers as answer", f"{place} has {answer!r:.60}", ONE_OR_EACH)
    if "answers" in record and len(record["answers"]) != len(record["tokens"]):
        raise refuse(
            "as many answers as tokens in each sequence",
            f"{place} has {len(record['tokens'])} tokens and {len(record['answers'])} answers",
            ONE_OR_EACH,
        )


def _common_scope(records: list[Record], places: list[str]) -> Scope | None:
    kinds = [("answers" in record, "answer" in record) for record in records]
    said = {(True, False): "answers", (False, True): "answer", (False, False): "none of them"}
    for kind, place in zip(kinds, places, strict=True):
        if kind != kinds[0]:
            raise refuse(
                "answers in every sequence, or answer in every sequence, or none",
                f"{places[0]} has {said[kinds[0]]} and {place} has {said[kind]}",
                "Write them all in one way.",
            )
    return "token" if kinds[0][0] else "sequence" if kinds[0][1] else None


def _names(records: list[Record], places: list[str]) -> list[str | int] | None:
    if not any("sequence" in record for record in records):
        return None
    seen: dict[str | int, str] = {}
    names = sequence_names([record.get("sequence") for record in records], places.__getitem__)
    for name, place in zip(names, places, strict=True):
        if name in seen:
            raise refuse(
                "sequences of different names", f"{seen[name]} and {place} are both {name!r}", "Rename one of them."
            )
        seen[name] = place
    return names
