"""Data files: every format round-trips through `memorize`, and every broken file is refused by name and line."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onelayer import memorize
from onelayer.data.tables import Table, example, read_table, write_answers
from onelayer.errors import HypothesisError, MissingExtraError

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
    with pytest.raises(MissingExtraError, match=r"reading Parquet .*onelayer\[parquet\]"):
        read_table(tmp_path / "a.parquet")
    with pytest.raises(MissingExtraError, match=r"writing Parquet .*onelayer\[parquet\]"):
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
    with pytest.raises(HypothesisError, match="among company, three_tokens"):
        example(name)


# Broken files


def refused(path: Path) -> str:
    with pytest.raises(HypothesisError) as caught:
        read_table(path)
    error = caught.value
    assert error.statement == "data"
    assert error.remedy.endswith(".")
    assert path.name in str(error)
    return str(error)


def test_missing_files_and_unknown_endings(tmp_path: Path) -> None:
    assert "there is no file" in refused(tmp_path / "none.jsonl")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in refused(tmp_path / "folder.csv")
    assert "facts.xlsx ends in .xlsx" in refused(save(tmp_path / "facts.xlsx", "x"))
    assert "facts has no ending" in refused(save(tmp_path / "facts", "x"))


GOOD = '{"tokens": ["a", "b"], "answers": [1, 2]}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"tokens": ["a", ', "line 2 is not: Expecting value"),
        ('{"tokens": [0.5, NaN]}', "line 2 is not: NaN is not a JSON number"),
        ('{"tokens": ["a"], "tokens": ["b"]}', "line 2 is not: a name is repeated among tokens, tokens"),
        ("[" * 100_000, "line 2 is not: "),
        ('["a", "b"]', "line 2 is list, not an object"),
        ('{"answers": [1]}', "line 2 has no tokens"),
        ('{"tokens": ["a"], "anwsers": [1]}', "line 2 has the unknown field 'anwsers'"),
        ('{"tokens": ["a"], "answers": [1], "answer": 1}', "line 2 has both"),
        ('{"tokens": [], "answers": []}', "line 2 has []"),
        ('{"tokens": "ab", "answers": [1, 2]}', "line 2 has 'ab'"),
        ('{"tokens": ["a"], "answers": 1}', "line 2 has 1"),
        ('{"tokens": ["a", "b"], "answers": [1]}', "line 2 has 2 tokens and 1 answers"),
        ('{"tokens": ["a", "b"], "answer": 1}', "line 1 has answers and data.jsonl, line 2 has answer"),
        ('{"tokens": ["a", "b"]}', "line 1 has answers and data.jsonl, line 2 has none of them"),
        (
            '{"tokens": [1, 2], "answers": [1, 2]}',
            "line 1 has 'a', text, and data.jsonl, line 2 has 1, a number",
        ),
        ('{"tokens": ["a", null], "answers": [1, 2]}', "line 2 has null"),
        ('{"tokens": ["a", {"b": 1}], "answers": [1, 2]}', "line 2 has {'b': 1}, a dict"),
        ('{"tokens": ["a", "b\\u0000"], "answers": [1, 2]}', r"line 2 has 'b\x00'"),
        ('{"tokens": ["a", "b"], "answers": [1, true]}', "has 1, a number, and data.jsonl, line 2 has True"),
        ('{"tokens": ["a", "b"], "answers": [1, 1e999]}', "line 2 has inf"),
        ('{"tokens": ["a", "b"], "answers": [1, 99999999999999999999]}', "line 2 has 99999999999999999999"),
        ('{"tokens": ["a", "b"], "answers": [0.5, 9007199254740993]}', "line 2 has 9007199254740993"),
        ('{"tokens": ["a", "b"], "answers": [1, 2], "sequence": 1}', "line 1 has null"),
    ],
)
def test_broken_json_lines(tmp_path: Path, line: str, message: str) -> None:
    assert message in refused(save(tmp_path / "data.jsonl", f"{GOOD}\n{line}\n"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "data.jsonl holds none"),
        ("\n \n", "data.jsonl holds none"),
        ('{"tokens": [[1, 2], [3]]}', "line 1 has one of 1 and data.jsonl, line 1 one of 2"),
        ('{"tokens": [[1, 2], [3, "4"]]}', "line 1 has '4' in component 1"),
        ('{"tokens": [[1, 2], [3, null]]}', "line 1 has null in component 1"),
        ('{"tokens": [[]]}', "line 1 has one of 0"),
        ('{"tokens": [[[1]]]}', "line 1 has [1] in component 0"),
        ('{"tokens": ["a"], "sequence": 0.5}', "line 1 has 0.5"),
        (
            '{"tokens": ["a"], "sequence": "s"}\n{"tokens": ["b"], "sequence": "s"}',
            "line 1 and data.jsonl, line 2 are both 's'",
        ),
    ],
)
def test_other_broken_json_lines(tmp_path: Path, lines: str, message: str) -> None:
    assert message in refused(save(tmp_path / "data.jsonl", lines))


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_other_encodings_are_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data{ending}"
    path.write_bytes(b"sequence,token\ns,caf\xe9\n" if ending == ".csv" else b'\n{"tokens": ["caf\xe9"]}\n')
    assert "line 2 is not: " in refused(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty"),
        ("sequence,token\n", "data.csv has a header only"),
        ("token,answer\na,1\n", "a column sequence; data.csv has token, answer"),
        ("sequence;token\na;b\n", "a column sequence; data.csv has sequence;token"),
        ("sequence,answer\na,1\n", "a column token, or columns x0, x1, ...; data.csv has sequence, answer"),
        ("sequence,token,token\na,b,c\n", "data.csv has sequence, token, token"),
        ("sequence,token,note\na,b,c\n", "known columns only; data.csv has 'note'"),
        ("sequence,token,x0\na,b,1\n", "either token or x0; data.csv has both"),
        ("sequence,token,answer,sequence_answer\na,b,1,1\n", "either answer or sequence_answer"),
        ("sequence,token,answer,answer0\na,b,1,1\n", "either answer or answer0"),
        ("sequence,x0,x2\na,1,2\n", "data.csv has no x1"),
        ("sequence,x0,x1\na,1,2\na,1,two\n", "line 3 has 'two' in column x1"),
        ("sequence,x0\na,1\na,nan\n", "line 3 has nan"),
        ("sequence,token,answer0,answer1\na,b,1,x\n", "line 2 has 'x' in column answer1"),
        ("sequence,token\na,b\na\n", "line 3 has 1"),
        ("sequence,token\na,b,c\n", "line 2 has 3"),
        ("sequence,token,answer\na,b,1\na,c,\n", "line 3 has none in answer"),
        ('sequence,token\na,"b\n', "line 2: unexpected end of data"),
        ("sequence,position,token\na,0,b\na,x,c\n", "line 3 has 'x'"),
        ("sequence,position,token\na,0,b\nb,0,b\na,0,c\n", "line 2 and data.csv, line 4 both are token 0"),
        ("sequence,token,sequence_answer\na,b,1\na,c,2\n", "line 2 has 1 and data.csv, line 3 has 2"),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(save(tmp_path / "data.csv", text))


def test_a_quoted_line_break_does_not_lose_count(tmp_path: Path) -> None:
    text = 'sequence,token\na,"b\nc"\na\n'
    assert "line 4 has 1" in refused(save(tmp_path / "data.csv", text))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"token": ["a"]}, "data.parquet has token"),
        ({"tokens": [["a"], None]}, "row 1 has None"),
        ({"tokens": [["a"], ["b", None]]}, "row 1 has null"),
        ({"tokens": [["a"]], "answers": [[1, 2]]}, "row 0 has 1 tokens and 2 answers"),
        ({"tokens": [["a"], ["b"]], "answer": [1, None]}, "row 1 has null"),
        ({"sequence": [1, 1], "token": ["a", None]}, "row 1 has null"),
        ({"sequence": [1, None], "token": ["a", "b"]}, "row 1 has null"),
        ({"sequence": [0.5], "token": ["a"]}, "row 0 has 0.5"),
        ({"sequence": [1], "x0": ["a"]}, "row 0 has 'a' in column x0"),
        ({"sequence": [1], "token": ["a"], "position": [0.5]}, "row 0 has 0.5"),
        ({"tokens": pa.array([], pa.list_(pa.string()))}, "data.parquet holds none"),
        ({"tokens": [["a"]], "answer": [datetime.date(2020, 1, 2)]}, "row 0 has datetime.date(2020, 1, 2), a date"),
    ],
)
def test_broken_parquet(tmp_path: Path, columns: dict, message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    assert message in refused(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Y": np.zeros(3)}, "data.npz has Y"),
        ({}, "data.npz has no arrays"),
        ({"X": np.zeros((2, 3)), "y": np.zeros(2)}, "Rename or drop y."),
        ({"X": np.zeros(3)}, "X of shape (3,)"),
        ({"X": np.zeros((0, 3))}, "X of shape (0, 3)"),
        ({"X": np.zeros((2, 3)), "Y": np.zeros(3)}, "Y of shape (3,)"),
        ({"X": np.zeros((2, 3)), "Y": np.array(1.0)}, "Y of shape ()"),
        ({"X": np.zeros((2, 3)), "lengths": np.ones(2)}, "lengths of shape (2,) and type float64"),
        ({"X": np.array([["a", 1]], dtype=object)}, "Object arrays cannot be loaded"),
    ],
)
def test_broken_archives(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    assert message in refused(tmp_path / "data.npz")


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_truncated_files(tmp_path: Path, ending: str, kept: float) -> None:
    table = read_table(example("company"))
    path = tmp_path / f"data{ending}"
    write_answers(path, table, table.Y)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize("offset", [60, 400, 1000, 2000])
def test_damaged_archives_are_refused(tmp_path: Path, offset: int) -> None:
    table = read_table(example("company"))
    path = tmp_path / "data.npz"
    write_answers(path, table, table.Y)
    whole = bytearray(path.read_bytes())
    whole[offset] ^= 0xFF
    path.write_bytes(whole)
    assert "cannot be read" in refused(path)


class Trap:
    """Unpickling this would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


def test_no_pickle_is_opened(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)], dtype=object)
    np.savez(tmp_path / "a.npz", X=trap)
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Trap(sprung)))
    for name in ("a.npz", "b.npz"):
        assert "cannot be read" in refused(tmp_path / name)
    assert not sprung.exists()


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
    with pytest.raises(OSError, match="disk full"):
        write_answers(path, table, table.Y)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    table = read_table(example("three_tokens"))
    with pytest.raises(HypothesisError, match="answers for 3 sequences; there are 2"):
        write_answers(tmp_path / "a.csv", table, [1, 2])
    with pytest.raises(HypothesisError, match="sequence 1 has 2 tokens and 1 answers"):
        write_answers(tmp_path / "a.csv", table, [[1, 2], [3], [4, 5]], "token")
    with pytest.raises(HypothesisError, match=r"answer for sequence 0 has 1, a number, and .* 2 has 'b', text"):
        write_answers(tmp_path / "a.csv", table, [1, 2, "b"])
    with pytest.raises(HypothesisError, match=r"ends in \.txt"):
        write_answers(tmp_path / "a.txt", table, table.Y)
    with pytest.raises(HypothesisError, match="there is no folder"):
        write_answers(tmp_path / "none" / "a.csv", table, table.Y)
    assert not list(tmp_path.iterdir())


def test_written_files_have_ordinary_permissions(tmp_path: Path) -> None:
    table = read_table(example("three_tokens"))
    write_answers(tmp_path / "a.csv", table, table.Y)
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode


@pytest.mark.parametrize("missing", ["nan", "N/A", "null"])
def test_a_missing_value_among_numbers_is_named(tmp_path, missing) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"sequence,token,answer\n0,u,1.5\n0,v,{missing}\n1,w,2\n")
    with pytest.raises(HypothesisError, match=f"a.csv, line 3 has '{missing}'"):
        read_table(path)
