"""Files as people have them: each format gives the model that the same data gives in Python, on both front ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from onelayer import DataError, FileError, load, memorize
from onelayer.problems.tables import read_table, write_answers
from tests.processes import run_command

WORDS = [["river", "bank"], ["bank", "robber", "ran"], ["money", "bank"]]
LABELS = [["water", "shore"], ["money", "crime", "verb"], ["noun", "money"]]
KINDS = ["water", "crime", "money"]
REALS = np.array([[0.5, -1.25, 3.0], [2.0, 0.25, -0.5], [1.5, 1.5, 0.75]])
NUMBERS = np.array([0.5, -0.25, 1.75])

PAIRS = list(zip(WORDS, LABELS, strict=True))


def filled(cells: list[str]) -> list[str]:
    """With empty cells up to the longest sequence."""
    return [*cells, *[""] * (3 - len(cells))]


JSONL = "".join(json.dumps({"tokens": x, "answers": y}) + "\n" for x, y in PAIRS)
LONG = "sequence,token,answer\n" + "".join(
    f"s{i},{a},{b}\n" for i in range(3) for a, b in zip(WORDS[i], LABELS[i], strict=True)
)
INDEXED = (
    "\n".join(line if k == 0 else f"{k - 1},{line}" for k, line in enumerate(("," + LONG).strip().split("\n")))
    + "\n"
)
WIDE = "token0,token1,token2,answer0,answer1,answer2\n" + "".join(
    ",".join([*filled(x), *filled(y)]) + "\n" for x, y in PAIRS
)
WIDE_CLASSES = "sequence,token0,token1,token2,answer\n" + "".join(
    ",".join([f"s{i}", *filled(x), KINDS[i]]) + "\n" for i, x in enumerate(WORDS)
)
WIDE_REALS = "x0,x1,x2,answer\n" + "".join(
    ",".join(str(v) for v in (*x, y)) + "\n" for x, y in zip(REALS, NUMBERS, strict=True)
)
CONLL = "-DOCSTART- -X- O\n\n" + "\n".join(
    "".join(f"{a} X {b}\n" for a, b in zip(x, y, strict=True)) for x, y in zip(WORDS, LABELS, strict=True)
)
COMMENTED = "# a corpus\n" + CONLL.replace("-DOCSTART- -X- O\n\n", "# id = 1\n# text = river bank\n")

TOKENS, CLASSES, FLOATS = (WORDS, LABELS), (WORDS, KINDS), (REALS, NUMBERS)
FILES = {
    "lines.jsonl": (JSONL, TOKENS),
    "long.csv": (LONG, TOKENS),
    "semicolons.csv": (LONG.replace(",", ";"), TOKENS),
    "tabs.csv": (LONG.replace(",", "\t"), TOKENS),
    "long.tsv": (LONG.replace(",", "\t"), TOKENS),
    "index.csv": (INDEXED, TOKENS),
    "index.tsv": (INDEXED.replace(",", "\t"), TOKENS),
    "wide.csv": (WIDE, TOKENS),
    "wide.tsv": (WIDE.replace(",", "\t"), TOKENS),
    "wide classes.csv": (WIDE_CLASSES, CLASSES),
    "wide reals.csv": (WIDE_REALS, FLOATS),
    "decimal commas.csv": (WIDE_REALS.replace(",", ";").replace(".", ","), FLOATS),
    "sentences.conll": (CONLL, TOKENS),
    "tabs.conll": (CONLL.replace(" ", "\t"), TOKENS),
    "windows.conll": (CONLL.replace("\n", "\r\n"), TOKENS),
    "comments.conll": (COMMENTED, TOKENS),
}


def written(folder: Path, name: str, compressed: bool) -> Path:
    text = FILES[name][0].encode()
    path = folder / (f"{name}.gz" if compressed else name)
    path.write_bytes(gzip.compress(text) if compressed else text)
    return path


def run(*arguments: object, ok: int = 0) -> str:
    return run_command(*arguments, ok=ok).stdout


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_the_model_of_its_data(tmp_path, name: str, compressed: bool) -> None:
    table = read_table(written(tmp_path, name, compressed))
    X, Y = FILES[name][1]
    built = memorize(table.X, table.Y, lengths=table.lengths, scope=table.scope)
    same = memorize(X, Y)
    assert {k: a.tobytes() for k, a in built.transformer.tensors()} == {
        k: a.tobytes() for k, a in same.transformer.tensors()
    }
    assert built.interface.vocabulary == same.interface.vocabulary
    assert built.interface.form.classes == same.interface.form.classes


@pytest.mark.parametrize("name", FILES)
def test_the_command_line_gives_the_same_model(tmp_path, name: str) -> None:
    path = written(tmp_path, name, compressed=True)
    table = read_table(path)
    run("memorize", path, "--out", tmp_path / "m")
    in_order = ".conll" in path.suffixes
    same = memorize(table.X, table.Y, lengths=table.lengths, scope=table.scope, positions=in_order)
    assert load(tmp_path / "m") == same
    assert run("verify", tmp_path / "m", "--data", path).splitlines()[-1] == "VERIFIED"
    assert "answers as in" in run("predict", tmp_path / "m", path, "--check")


@pytest.mark.parametrize("ending", [".jsonl.gz", ".csv.gz", ".tsv", ".tsv.gz", ".conll", ".conll.gz"])
def test_answers_are_written_as_they_are_read(tmp_path, ending: str) -> None:
    table = read_table(written(tmp_path, "lines.jsonl", compressed=False))
    path = tmp_path / f"answers{ending}"
    write_answers(path, table, table.Y, "token")
    again = read_table(path)
    assert [again.X.tolist(), again.Y.tolist(), again.scope] == [table.X.tolist(), table.Y.tolist(), "token"]
    first = path.read_bytes()
    write_answers(path, table, table.Y, "token")
    assert path.read_bytes() == first  # a compressed file holds no time


REFUSED = {
    "gap.csv": ("token0,token2,answer\na,b,1\n", "has no token1"),
    "hole.csv": ("token0,token1,token2,answer\na,,b,1\n", "line 2 has none in token1, and one after it"),
    "none.csv": ("token0,token1,answer\n,,1\n", "line 2 has none"),
    "few answers.csv": ("token0,token1,answer0,answer1\na,b,1,\n", "has 2 tokens and 1 answers"),
    "both.csv": ("token0,x0,answer\na,1,2\n", "has both columns"),
    "two answers.csv": ("token0,answer,sequence_answer\na,1,2\n", "has both columns"),
    "unknown.csv": ("token0,label\na,1\n", "has 'label'"),
    "no answer.csv": ("token0,token1,answer\na,b,\n", "has none in answer"),
    "an index that does not count.csv": (",token0,answer\n1,a,1\n", "has ''"),
    "header only.csv": ("token0,answer\n", "a header only"),
    "names.csv": ("sequence,token0,answer\ns,a,1\ns,b,1\n", "repeats one"),
    "ragged.conll": ("a X\nb\n", "line 2 has 1 and line 1 has 2"),
    "empty.conll": ("\n\n# nothing\n", "holds none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name: str) -> None:
    text, words = REFUSED[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as refused:
        read_table(tmp_path / name)
    assert words in str(refused.value)


def test_a_hash_is_a_token_where_its_line_is_like_others(tmp_path) -> None:
    (tmp_path / "d.conll").write_text("# X\n1 X\n\n# Y Z\n# unlike\nb Z\n# X\n")
    table = read_table(tmp_path / "d.conll")
    assert [row[:k].tolist() for row, k in zip(table.X, table.counts, strict=True)] == [["#", "1"], ["b", "#"]]
    assert table.Y[0].tolist() == ["X", "X"]


def test_a_file_of_one_column_has_no_labels(tmp_path) -> None:
    (tmp_path / "d.conll").write_text("a\nb\n\nc\nd\n")
    assert read_table(tmp_path / "d.conll").Y is None


def test_a_broken_archive_is_a_broken_file(tmp_path) -> None:
    whole = gzip.compress(JSONL.encode())
    for broken in (whole[:-9], b"no archive"):
        (tmp_path / "d.jsonl.gz").write_bytes(broken)
        with pytest.raises(FileError, match=r"a whole \.gz file"):
            read_table(tmp_path / "d.jsonl.gz")
    (tmp_path / "d.npz.gz").write_bytes(whole)
    with pytest.raises(FileError, match=r"ends in \.gz"):
        read_table(tmp_path / "d.npz.gz")


def test_whole_words_stay_words_with_semicolons(tmp_path) -> None:
    (tmp_path / "d.csv").write_text("token0;token1;answer\n1,5;a,b;x\n2,5;c;y\n")
    assert read_table(tmp_path / "d.csv").X.tolist() == [["1,5", "a,b"], ["2,5", "c"]]


def test_wide_parquet(tmp_path) -> None:
    columns = {"token0": ["a", "b"], "token1": ["b", None], "answer": [1, 2]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "d.parquet")
    table = read_table(tmp_path / "d.parquet")
    assert table.X.tolist() == [["a", "b"], ["b", ""]]
    assert table.lengths.tolist() == [2, 1]
    assert table.Y.tolist() == [1, 2]
