"""Data files that are broken: each is refused by its name and line, and no pickle is opened."""

from __future__ import annotations

import datetime
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onelayer.errors import DataError, OnelayerError
from onelayer.problems.tables import example, read_table, write_answers


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(OnelayerError) as caught:
        read_table(path)
    error = caught.value
    assert error.subject in ("data", "file")
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
        ('{"tokens": ["a"], "answers": 1}', 'line 2 has 1. Give a list of "answers", one per token,'),
        ('{"tokens": ["a", "b"], "answer": ["c", "d"]}', """line 2 has ['c', 'd']. Give a list of "answers","""),
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
        ("token,answer\na,1\n", "a column sequence, or columns token0, token1, ...; data.csv has token, answer"),
        ("sequence|token\na|b\n", "a column sequence, or columns token0, token1, ...; data.csv has sequence|token"),
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


@pytest.mark.parametrize("missing", ["nan", "N/A", "null"])
def test_a_missing_value_among_numbers_is_named(tmp_path, missing) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"sequence,token,answer\n0,u,1.5\n0,v,{missing}\n1,w,2\n")
    with pytest.raises(DataError, match=f"a.csv, line 3 has '{missing}'"):
        read_table(path)
