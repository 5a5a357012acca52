"""Data files: every format round-trips through `memorize`, and nothing is half-written."""

from __future__ import annotations

import gzip
import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onelayer
from onelayer.errors import DataError, FileError, MissingExtraError, OptionError
from onelayer.problems.tables import Table, example, format_of, read_table, write_answers

memorize = partial(onelayer.memorize, certify=False)

ENDINGS = (".jsonl", ".csv", ".npz", ".parquet")

#: Tokens of every kind with answers of every kind, equally long or not.
TOKENS = {
    "words": [["river", "bank"], ["loan", "bank"], ["bank", 'a "quoted", one']],
    "words of different lengths": [["bank"], ["river", "bank", "two\rlines\n"], ["loan", "bank"]],
    "whole numbers": [[1, 2], [3, 2], [2, -7]],
    "reals": [[0.5, 1.0], [0.25, 1e-3], [3.0, 4.0]],
    "vectors": [[[1.0, 0.2], [0.3, 1.1]], [[1.0, 0.2], [-0.8, 0.9]], [[0.3, 1.1], [-0.8, 0.9]]],
    "vectors of different lengths": [
        [[1.0, 0.2]],
        [[1.0, 0.2], [-0.8, 0.9]],
        [[0.3, 1.1], [-0.8, 0.9], [0.1, 0.1]],
    ],
}
ANSWERS = {
    "words": ["shore", "money", "ø", "a,b", "x y", "z", "w"],
    "whole numbers": [3, 1, 4, -1, 5, 9, 2],
    "reals": [0.1, 1.0, -2.5, 1e300, 0.0, 7.0, 1e-9],
    "vectors": [[0.5, 1.0, 2.0, 0.0], [0.25, 0.0, 1.0, 1.0], *([[float(i), -1.0, 0.5, 2.0] for i in range(5)])],
}


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def records(tokens: list, answers: list, scope: str) -> list[dict]:
    if scope == "sequence":
        return [{"tokens": t, "answer": a} for t, a in zip(tokens, answers, strict=False)]
    flat = iter(answers)
    return [{"tokens": t, "answers": [next(flat) for _ in t]} for t in tokens]


def recalled(table: Table) -> np.ndarray:
    memory = memorize(table.X, table.Y, lengths=table.lengths, scope=table.scope)
    assert memory.form.scope == table.scope
    return memory.predict(table.X, table.lengths)


def assert_equal(a: Table, b: Table) -> None:
    assert list(a.records()) == list(b.records())
    assert a.X.dtype.kind == b.X.dtype.kind
    assert a.scope == b.scope


# Round trips


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("scope", ["token", "sequence"])
@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("tokens", TOKENS)
def test_every_format_comes_back_through_memorize(
    tmp_path: Path, tokens: str, answers: str, scope: str, ending: str
) -> None:
    given = records(TOKENS[tokens], ANSWERS[answers], scope)
    lines = "".join(json.dumps({"sequence": f"s{i}", **r}) + "\n" for i, r in enumerate(given))
    first = read_table(save(tmp_path / "data.jsonl", lines))
    assert [{k: v for k, v in r.items() if k != "sequence"} for r in first.records()] == given
    out = tmp_path / f"answers{ending}"
    write_answers(out, first, recalled(first), scope)
    second = read_table(out)
    assert_equal(first, second)
    assert second.names == ("s0", "s1", "s2")
    write_answers(out, second, recalled(second), scope)
    assert_equal(first, read_table(out))


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    tokens=st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=5),
    ending=st.sampled_from(ENDINGS),
)
def test_any_word_comes_back(tmp_path: Path, tokens: list[list[str]], ending: str) -> None:
    table = read_table(save(tmp_path / "a.jsonl", "".join(json.dumps({"tokens": t}) + "\n" for t in tokens)))
    assert [r["tokens"] for r in table.records()] == tokens
    out = tmp_path / f"b{ending}"
    write_answers(out, table, [["answer"] * len(t) for t in tokens])
    again = read_table(out)
    if ending == ".csv" and again.X.dtype.kind != "U":  # CSV has no types: words that all are numbers
        assert [[float(t) for t in row] for row in tokens] == [r["tokens"] for r in again.records()]
    else:
        assert [r["tokens"] for r in again.records()] == tokens


def test_predictions_of_arrays_with_padding_are_cut_to_length(tmp_path: Path) -> None:
    table = Table("x.npz", np.arange(6).reshape(2, 3), lengths=np.array([3, 1]))
    write_answers(tmp_path / "a.jsonl", table, np.array([["a", "b", "c"], ["d", "?", "?"]]))
    assert [r["answers"] for r in read_table(tmp_path / "a.jsonl").records()] == [["a", "b", "c"], ["d"]]


def test_none_prints_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    table = read_table(example("three_tokens"))
    write_answers(None, table, table.Y)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == list(table.records())


def test_a_table_without_answers(tmp_path: Path) -> None:
    table = read_table(save(tmp_path / "a.jsonl", '{"tokens": ["a"]}\n\n{"tokens": ["b"]}\n'))
    assert table.Y is None
    assert table.scope is None
    assert table.source == "2 sequences of 1 token from a.jsonl"


# CSV in particular

LONG = """\
sequence,position,token,answer
a,1,bank,shore
b,0,loan,debt
a,0,river,water
b,1,bank,money
"""


def test_rows_are_gathered_by_sequence_and_ordered_by_position(tmp_path: Path) -> None:
    table = read_table(save(tmp_path / "a.csv", "\ufeff" + LONG.replace("\n", "\r\n")))
    assert list(table.records()) == [
        {"sequence": "a", "tokens": ["river", "bank"], "answers": ["water", "shore"]},
        {"sequence": "b", "tokens": ["loan", "bank"], "answers": ["debt", "money"]},
    ]
    assert table.source == "2 sequences of 2 tokens from a.csv"
    plain = "\n".join(",".join(line.split(",")[::2]) for line in LONG.splitlines())  # sequence and token
    kept = read_table(save(tmp_path / "b.csv", plain))
    assert [r["tokens"] for r in kept.records()] == [["bank", "river"], ["loan", "bank"]]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2"], [1, -2]),
        (["1", "2.5"], [1.0, 2.5]),
        (["1.", ".5"], [1.0, 0.5]),
        (["1e3", "+4"], [1000.0, 4.0]),
        ([" 1", "2 "], [1, 2]),
        (["1", "two"], ["1", "two"]),
        (["007", "7"], ["007", "7"]),  # two words, not one number
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
        (["12345678901234567890", "0.5"], ["12345678901234567890", "0.5"]),
        (["-0", "0"], [-0.0, 0.0]),
        (["1_0", "10"], ["1_0", "10"]),
        (["true", "false"], ["true", "false"]),
    ],
    ids=str,
)
def test_the_type_of_a_column(tmp_path: Path, cells: list[str], expected: list) -> None:
    table = read_table(save(tmp_path / "a.csv", "sequence,token\n" + "".join(f"s,{cell}\n" for cell in cells)))
    found = table.X[0].tolist()
    assert found == expected
    assert [type(x) for x in found] == [type(x) for x in expected]


def test_vectors_and_one_answer_per_sequence(tmp_path: Path) -> None:
    table = read_table(save(tmp_path / "a.csv", "x1,sequence,x0,sequence_answer\n2,s,1,7\n4,s,3,7\n6,t,5,8\n"))
    assert list(table.records()) == [
        {"sequence": "s", "tokens": [[1.0, 2.0], [3.0, 4.0]], "answer": 7},
        {"sequence": "t", "tokens": [[5.0, 6.0]], "answer": 8},
    ]
    assert table.lengths is not None
    assert table.source == "2 sequences of 1 to 2 tokens from a.csv"
    assert recalled(table).tolist() == [7, 8]


# Parquet in particular


def test_the_long_form_in_parquet(tmp_path: Path) -> None:
    columns = {"sequence": [7, 8, 7], "position": [1, 0, 0], "token": ["b", "c", "a"], "answer": [0.5, 1.0, 2.0]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert list(read_table(tmp_path / "a.parquet").records()) == [
        {"sequence": 7, "tokens": ["a", "b"], "answers": [2.0, 0.5]},
        {"sequence": 8, "tokens": ["c"], "answers": [1.0]},
    ]


def test_arrow_types_that_mean_the_same(tmp_path: Path) -> None:
    tokens = pa.array([[[1.0, 2.0], [3.0, 4.0]]], pa.list_(pa.list_(pa.float32(), 2)))
    answer = pa.array(["red"]).dictionary_encode()
    pq.write_table(pa.table({"tokens": tokens, "answer": answer}), tmp_path / "a.parquet")
    assert list(read_table(tmp_path / "a.parquet").records()) == [
        {"tokens": [[1.0, 2.0], [3.0, 4.0]], "answer": "red"}
    ]


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = read_table(example("three_tokens"))
    write_answers(tmp_path / "a.parquet", table, table.Y)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"reading Parquet .*\[parquet\]"):
        read_table(tmp_path / "a.parquet")
    with pytest.raises(MissingExtraError, match=r"writing Parquet .*\[parquet\]"):
        write_answers(tmp_path / "b.parquet", table, table.Y)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


# The files that come with the library


def test_company_makes_the_same_word_answer_differently() -> None:
    table = read_table(example("company"))
    assert table.source == "32 sequences of 3 tokens from company.jsonl"
    senses: dict[str, set[str]] = {}
    for record in table.records():
        assert len(set(record["tokens"])) == len(record["tokens"])
        for word, answer in zip(record["tokens"], record["answers"], strict=True):
            senses.setdefault(word, set()).add(answer)
    for word in ("bank", "spring", "bat", "crane", "bolt", "mouse", "pitcher", "seal", "match", "bark"):
        assert len(senses[word]) >= 3
    companies = [frozenset(record["tokens"]) for record in table.records()]
    assert len(set(companies)) == len(companies)
    assert (recalled(table) == table.Y).all()


def test_three_tokens_in_three_pairs() -> None:
    table = read_table(example("three_tokens.jsonl"))
    assert table.X.tolist() == [[[1, 0.2], [0.3, 1.1]], [[1, 0.2], [-0.8, 0.9]], [[0.3, 1.1], [-0.8, 0.9]]]
    assert recalled(table).tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("name", ["compani", "", "../files", "company.csv"])
def test_unknown_examples_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match="among company, three_tokens"):
        example(name)


# Writing


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    table = read_table(example("three_tokens"))
    path = tmp_path / f"out{ending}"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileError, match="disk full"):
        write_answers(path, table, table.Y)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    table = read_table(example("three_tokens"))
    with pytest.raises(DataError, match="answers for 3 sequences; there are 2"):
        write_answers(tmp_path / "a.csv", table, [1, 2])
    with pytest.raises(DataError, match="sequence 1 has 2 tokens and 1 answers"):
        write_answers(tmp_path / "a.csv", table, [[1, 2], [3], [4, 5]], "token")
    with pytest.raises(DataError, match=r"answer for sequence 0 has 1, a number, and .* 2 has 'b', text"):
        write_answers(tmp_path / "a.csv", table, [1, 2, "b"])
    with pytest.raises(FileError, match=r"ends in \.txt"):
        write_answers(tmp_path / "a.txt", table, table.Y)
    with pytest.raises(FileError, match="there is no folder"):
        write_answers(tmp_path / "none" / "a.csv", table, table.Y)
    assert not list(tmp_path.iterdir())


def test_written_files_have_ordinary_permissions(tmp_path: Path) -> None:
    table = read_table(example("three_tokens"))
    write_answers(tmp_path / "a.csv", table, table.Y)
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode


@pytest.mark.parametrize("name", ["corpus.conll", "corpus.conll.txt", "corpus.CoNLL.TXT", "corpus.conll.txt.gz"])
def test_a_corpus_is_read_under_the_names_that_corpora_have(tmp_path, name) -> None:
    path, lines = tmp_path / name, b"EU I-ORG\nrejects O\n\nGerman I-MISC\ncalls O\n"
    path.write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    assert format_of(path) == ".conll"
    table = read_table(path)
    assert table.X.tolist() == [["EU", "rejects"], ["German", "calls"]]
    assert format_of(tmp_path / "notes.txt") == ".txt"
    assert format_of(tmp_path / "arrays.npz.txt") == ".txt"
