"""A person's own data, in every form it comes in, against what is certified: only equal is VERIFIED."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onelayer
from attacks.meanings import ANSWERS, SEQUENCES
from onelayer import memorize, save
from onelayer.certificates.certificate import certify_data
from onelayer.compile.next_token import construct
from onelayer.interfaces import NextToken
from onelayer.model import Model
from onelayer.problems.answers import AnswerForm
from onelayer.problems.tokens import ByteTokens
from onelayer.problems.windows import read_windows
from onelayer_checker import check


def test_byte_pairs_are_certified_as_the_bytes_they_stand_for(tmp_path) -> None:
    text = b"she sells sea shells by the sea shore; the shells she sells are sea shells " * 4
    model = onelayer.memorize_text(text, context=5, tokenizer="bpe", vocabulary_size=270)
    bundle = save(tmp_path / "m", model.certify(text))
    (tmp_path / "book").write_bytes(text)
    assert check(bundle, data=tmp_path / "book").result == "VERIFIED"
    assert onelayer.load(bundle).generate(text[:60], 5) == model.generate(text[:60], 5)
    names = json.loads((bundle / "names.json").read_text())
    assert [bytes.fromhex(piece) for piece in names["pieces"]] == [
        *map(model.interface.tokens.piece, range(270)),
        b"",
    ]


def test_a_network_that_says_what_does_not_follow_is_told_by_the_text(tmp_path) -> None:
    """Windows and answers agree with the network; but they are not those of the text that the pieces spell."""
    text, n = b"to be, or not to be, that is the question", 4
    wanted = read_windows(ByteTokens().encode(text), n, 256)
    lie = wanted.which.copy()
    lie[9] = lie[10]  # what follows ", or", which occurs once
    windows = replace(wanted, which=lie)
    form = AnswerForm("last", None, 256, ragged=False)
    interface = NextToken(form=form, vocabulary=tuple(range(257)), context=n, alphabet=tuple(range(256)))
    transformer, _, ledger = construct(windows)
    model = Model(transformer, interface, ledger)
    data = {
        "stream": windows.stream[:-1].astype(np.int64),
        "window": np.array([n]),
        "answers": np.asarray(windows.distributions, np.float64),
        "which": lie.astype(np.int64),
    }
    bundle = save(tmp_path / "m", model, certificate=certify_data(model, data))
    (tmp_path / "text").write_bytes(text)
    assert check(bundle).result == "VERIFIED"
    report = check(bundle, data=tmp_path / "text")
    assert report.result == "NOT VERIFIED"
    assert report.why == "the data given: the certified answer before token 9 is not what follows there"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    data = (SEQUENCES, ANSWERS)
    return save(tmp_path_factory.mktemp("given") / "m", memorize(*data), data=data)


GOOD = json.dumps({"tokens": SEQUENCES[0], "answers": ANSWERS[0]})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", ""),
        ("   \r", ""),
        (json.dumps({"tokens": SEQUENCES[1], "answers": ANSWERS[1], "sequence": "a name"}), ""),
        ("{", "line 2 is not JSON"),
        ('{"tokens": ["bank"], "answers": [NaN]}', "line 2 is not JSON (NaN"),
        (
            '{"tokens": ["bank"], "tokens": ["bank"], "answers": ["x"]}',
            "line 2 is not JSON (a field is there twice)",
        ),
        ("[" * 100_000, "line 2 is not JSON"),
        ('["bank"]', "line 2 does not have exactly tokens and answers"),
        ('{"tokens": ["bank"]}', "line 2 does not have exactly tokens and answers"),
        ('{"tokens": ["bank"], "answer": "x"}', "line 2 does not have exactly tokens and answers"),
        ('{"tokens": ["bank"], "answers": ["x"], "note": 1}', "line 2 does not have exactly tokens and answers"),
        ('{"tokens": "bank", "answers": ["x"]}', "in a list"),
        ('{"tokens": ["bank"], "answers": "x"}', "in a list"),
        ('{"tokens": [], "answers": []}', "at least one token in each sequence"),
        ('{"tokens": ["bank", "river"], "answers": ["x"]}', "an answer for each"),
        ('{"tokens": ["bank"], "answers": ["x", "y"]}', "more answers than tokens"),
        ('{"tokens": [{"a": 1}], "answers": ["x"]}', "sequence 1 is not among the certified ones"),
        ('{"tokens": [null], "answers": ["x"]}', "sequence 1 is not among the certified ones"),
        ('{"tokens": ["moon"], "answers": ["x"]}', "sequence 1 is not among the certified ones"),
    ],
)
def test_lines_are_read_strictly(tmp_path, bundle, line, why) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(f"{GOOD}\n{line}\n")
    report = check(bundle, data=path)
    assert (report.result, report.gate) == (("UNKNOWN", "data") if why else ("VERIFIED", "")), report.why
    assert why in report.why


def test_files_that_cannot_be_read_are_no_verdict_on_the_folder(tmp_path, bundle) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b'{"tokens": ["caf\xe9"]}')
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    for name in ("latin.jsonl", "empty.jsonl", "nowhere.jsonl", "."):
        report = check(bundle, data=tmp_path / name)
        assert (report.result, report.gate) == ("UNKNOWN", "data")
        assert "it cannot be compared" in report.why
    assert check(bundle, data=tmp_path / "marked.jsonl").result == "VERIFIED"


@pytest.mark.parametrize(
    "data",
    [
        (SEQUENCES,),
        (SEQUENCES, None),
        (SEQUENCES, ANSWERS, [1] * 3),
        (SEQUENCES, ANSWERS, [1.0] * 16),
        (SEQUENCES, ANSWERS[:-1]),
        (["ab"], [["x", "y"]]),
        (np.array(["a", "b"]), ANSWERS),
        (np.zeros((2, 2, 3)), [["x", "y"]] * 2),
        ([], []),
    ],
)
def test_arrays_that_do_not_fit_are_not_compared(bundle, data) -> None:
    report = check(bundle, data=data)
    assert (report.result, report.gate) == ("UNKNOWN", "data")


def test_arrays_in_every_form(tmp_path) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((7, 4, 3)), rng.standard_normal((7, 4, 2)).astype(np.float32)
    lengths = np.array([4, 1, 2, 4, 3, 3, 1])
    folder = save(tmp_path / "m", memorize(X, Y, dtype="float32", lengths=lengths), data=(X, Y, lengths))
    short = [x[:k] for x, k in zip(X, lengths, strict=True)], [y[:k] for y, k in zip(Y, lengths, strict=True)]
    lists = [x.tolist() for x in short[0]], [y.tolist() for y in short[1]]
    padded = np.where(np.arange(4)[:, None] < lengths[:, None, None], X, np.nan)
    same = [(X, Y, lengths), short, lists, (padded, Y, lengths), (X.astype(np.float32), Y, lengths), (short[0], Y)]
    assert [check(folder, data=data).result for data in same] == ["VERIFIED"] * len(same)
    assert check(folder, data=(X, Y)).result == "UNKNOWN"  # longer than the certified ones
    assert check(folder, data=(X * 1e39, Y, lengths)).result == "UNKNOWN"  # infinite in float32
    nearly = Y.astype(np.float64)
    nearly[3, 1, 1] = np.nextafter(nearly[3, 1, 1], 9)
    report = check(folder, data=(X, nearly, lengths))
    assert report.result == "NOT VERIFIED"
    assert "sequence 3, token 1 has the answer" in report.why
    nearly[3, 3, 1], nearly[3, 1, 1], nearly[1, 1] = 5, Y[3, 1, 1], 7  # the last is padding
    assert "sequence 3, token 3" in check(folder, data=(X, nearly, lengths)).why


def test_numbers_are_held_exactly_or_not_compared(tmp_path) -> None:
    X, Y = np.array([[[2.0**53]], [[0.5]]]), np.array([2.0**53, 1.0])
    folder = save(tmp_path / "m", memorize(X, Y, dtype="float64"), data=(X, Y))
    assert check(folder, data=([[[2**53]], [[0.5]]], [2**53, 1])).result == "VERIFIED"
    for data in (
        ([[[2**53 + 1]], [[0.5]]], [2**53, 1]),
        (X, [2**53 + 1, 1]),
        (X, np.array([2**53 + 1, 1])),
        (X, ["1", "2"]),
        (X, [True, 1.0]),
        (X, [10**400, 1]),
        (X.astype(np.longdouble), Y),
        ([[[2.0**53, 1.0]], [[0.5]]], Y),
    ):
        assert check(folder, data=data).result == "UNKNOWN"


def test_zero_is_zero_and_copies_may_have_two_answers(tmp_path) -> None:
    """Within eps of each other, two answers of one sequence are both certified."""
    X, Y = np.array([[[0.0]], [[1.0]], [[0.0]]]), np.array([[0.5], [2.0], [0.5 + 2**-30]])
    model = memorize(X[:2], Y[:2])
    folder = save(tmp_path / "m", model, data=(X, Y), tolerance=0.1)
    assert check(folder, data=(-X[[2, 1, 0]] * [[[1]], [[-1]], [[1]]], Y[[2, 1, 0]])).result == "VERIFIED"
    assert check(folder, data=(X, Y + 2**-40)).result == "NOT VERIFIED"


@pytest.mark.parametrize("kind", ["classes", "reals", "vectors"])
def test_one_answer_per_sequence(tmp_path, kind) -> None:
    X = [["a", "b"], ["b"], ["c", "a", "b"]]
    Y = {"classes": [("x", 1), None, "y"], "reals": [0.5, 2.0, -1.0], "vectors": [[1.0, 2], [0, 2], [3, 5.5]]}[kind]
    folder = save(tmp_path / "m", memorize(X, Y, scope="sequence"), data=(X, Y))
    lines = [json.dumps({"tokens": x, "answer": y}) for x, y in zip(X, Y, strict=True)]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    forms = [tmp_path / "data.jsonl", (X, Y), (tuple(X), tuple(Y)), (np.array([*X, None], object)[:-1], Y)]
    forms += [(X, np.array(Y))] if kind != "classes" else []
    assert [check(folder, data=data).result for data in forms] == ["VERIFIED"] * len(forms)
    some = check(folder, data=(X[1:], Y[1:]))
    assert (
        some.notes[1]
        == "the data given: all 2 sequences are certified with these answers; 1 others are certified too"
    )
    twice = check(folder, data=(X + X, Y + Y))
    assert twice.notes[1] == "the data given: all 6 sequences are certified with these answers"
    for data in ((X, None), (X, Y[:-1]), (X, [Y]), (["ab", *X[1:]], Y)):
        assert (check(folder, data=data).result, check(folder, data=data).gate) == ("UNKNOWN", "data")
    wrong = check(folder, data=(X, [Y[0], Y[2], Y[2]]))
    said = {
        "classes": "sequence 1 has the answer 'y'; None is certified",
        "reals": "sequence 1 has the answer -1; 2 is certified",
        "vectors": "sequence 1 has the answer 3, 5.5; 0, 2 is certified",
    }[kind]
    assert (wrong.result, wrong.why) == ("NOT VERIFIED", f"the data given: {said}")


def test_data_in_the_same_order_is_not_looked_up(bundle, monkeypatch) -> None:
    monkeypatch.setattr("onelayer_checker.core.given._look_up", None)
    assert check(bundle, data=(SEQUENCES, ANSWERS)).result == "VERIFIED"
    assert check(bundle, data=(SEQUENCES[1:], ANSWERS[1:])).result == "UNFIT"


def test_arrays_of_objects(bundle) -> None:
    ragged = [np.empty(len(SEQUENCES), object) for _ in range(2)]
    for array, rows in zip(ragged, (SEQUENCES, ANSWERS), strict=True):
        array[:] = rows
    pairs = [np.array(rows[:12], object) for rows in (SEQUENCES, ANSWERS)]
    assert [check(bundle, data=data).result for data in (ragged, pairs)] == ["VERIFIED"] * 2
