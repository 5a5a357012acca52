"""Bounds that say nothing are refused, a person's data is compared as it is, and demands are met or not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onelayer_checker.front  # noqa: F401  (adds the claims about functions)
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.meaning import Required, beside, constant_error, refuse_empty, same_data
from onelayer_checker.core.names import Names
from onelayer_checker.core.samples import Data
from tests.checker.counted import counted

NAMES = Names("token", False, False, ("a", "b"), None, ("x", "y"))
REALS = replace(NAMES, answers=None)
VECTORS = Names("sequence", False, False, None, None, None)


def claim(**numbers: float) -> Claim:
    return Claim("memorizes", "real", "token", numbers)


def data(answers, which=None) -> Data:
    rows = np.asarray(answers, float).reshape(len(answers), -1)
    return Data(np.array([[0, 1]]), np.array([2]), rows, np.arange(len(rows)) if which is None else np.array(which))


@pytest.mark.parametrize(
    ("answers", "names", "eps", "taken"),
    [
        ([0, 9], NAMES, 0.49, True),
        ([0, 9], NAMES, 0.5, False),
        ([0, 9], None, 0.49, True),
        ([0, 9], None, 0.5, False),  # nothing says so, but they are whole
        ([0, 9.5], None, 0.5, True),  # one of them is not
        ([0, 9], REALS, 4.4, True),
        ([0, 9], REALS, 4.5, False),
        ([7], REALS, 6.9, True),  # one answer is off by itself where zero is answered
        ([7], REALS, 7, False),
        ([[1, 5], [3, 5]], REALS, 4.9, True),
        ([[1, 5], [3, 5]], REALS, 5, False),
    ],
)
def test_a_bound_that_says_nothing_is_refused(answers, names, eps, taken) -> None:
    listed = [claim(eps=0.0), claim(eps=float(eps))]
    if taken:
        refuse_empty(listed, names, data(answers))
    else:
        with pytest.raises(Malformed):
            refuse_empty(listed, names, data(answers))
    refuse_empty([claim(r=1e9, delta=1e9)], names, data(answers))  # without a bound on answers there is none


def test_only_answers_that_some_sample_has_count() -> None:
    refuse_empty([claim(eps=0.75)], REALS, data([0, 2, 900], [0, 1, 0]))
    with pytest.raises(Malformed, match="a constant would satisfy it"):
        refuse_empty([claim(eps=1.0)], REALS, data([0, 2, 900], [0, 1, 0]))
    assert constant_error(np.array([[7.0]])) == constant_error(np.array([[-7.0]])) == 7
    assert constant_error(np.zeros((2, 2))) == np.inf


def test_a_small_spread_is_told_too() -> None:
    assert beside(claim(eps=0.1), data([0, 0.25])) == "; the answers spread over 0.25"
    assert beside(claim(eps=0.1), data([[0, 0.25], [0.5, 4.25]])) == "; the answers spread over 0.5 to 4"
    assert beside(claim(eps=0.0), data([0, 0.25])) == ""
    assert beside(claim(r=1.0), data([0, 0.25])) == ""


def test_data_is_compared_as_arrays_or_as_a_file(tmp_path) -> None:
    stored = data([1, 0])
    own = ([["a", "b"]], [["y", "x"]])
    file = tmp_path / "lines"
    file.write_text(json.dumps({"tokens": ["a", "b"], "answers": ["y", "x"]}))
    for given in (own, file, str(file), np.array(own)):
        found = same_data(given, NAMES, stored, np.dtype("f4"))
        assert (found.outcome, found.value) == ("proved", 0.5), found.why
    for given in (([["a", "b"]], [["y", "y"]]), ([["b", "a"]], [["y", "x"]])):
        assert same_data(given, NAMES, stored, np.dtype("f4")).outcome != "proved"


def test_padding_is_not_compared() -> None:
    """Nor is it counted: what stands behind it keeps its place. A sequence of padding is not certified."""
    tokens, answers = (
        np.array([[1, 9, 9], [0, 1, 9], [1, 1, 0]]),
        np.array([[1.0], [1.0], [0.0], [0.0], [0.0], [1.0]]),
    )
    stored = Data(tokens, np.array([1, 2, 3]), answers, np.arange(6))
    own = ([["b"], ["a", "b"], ["b", "b", "a"]], [["y"], ["y", "x"], ["x", "x", "y"]])
    for order in ([0, 1, 2], [2, 1, 0], [1], [2]):
        mine = tuple([part[i] for i in order] for part in own)
        assert same_data(mine, NAMES, stored, np.dtype("f4")).outcome == "proved"
    for k in range(3):
        wrong = [["x" if row[-1] == "y" else "y"] if i == k else row[-1:] for i, row in enumerate(own[1])]
        said = [row[:-1] + last for row, last in zip(own[1], wrong, strict=True)]
        assert same_data((own[0], said), NAMES, stored, np.dtype("f4")).outcome == "refuted"
    assert same_data(([["c", "a"]], [["y", "x"]]), NAMES, stored, np.dtype("f4")).outcome == "undecided"


def test_a_text_is_compared_by_its_bytes(tmp_path) -> None:
    """Of one token, before which nothing is; a list of lists is no text, and is looked up."""
    names = Names("last", True, False, (0, 1), (b"a", b""), None)
    stored = Data(np.array([[1]]), np.ones(1, int), np.ones((1, 1)), np.zeros(1, int))
    for content, outcome in ((b"a", "proved"), (b"b", "undecided")):
        (tmp_path / "text").write_bytes(content)
        for given in (tmp_path / "text", str(tmp_path / "text"), content):
            assert same_data(given, names, stored, np.dtype("f4")).outcome == outcome
    assert same_data("a", names, stored, np.dtype("f4")).outcome == "undecided"  # a path, not a text
    assert same_data(([[1]], [1.0]), names, stored, np.dtype("f4")).outcome == "proved"


def test_what_cannot_be_compared_is_undecided(tmp_path) -> None:
    stored = data([1, 0])
    (tmp_path / "latin").write_bytes(b"\xe9")
    for given in (([["a", "b"]],), tmp_path / "nowhere", str(tmp_path / "latin"), tmp_path, "a\0b", b"ab", b"abc"):
        found = same_data(given, NAMES, stored, np.dtype("f4"))
        assert (found.outcome, found.value) == ("undecided", np.inf)
        assert found.why.startswith("it cannot be compared: ")
    found = same_data(([["a", "b"]], [["y", "x"]]), None, stored, np.dtype("f4"))
    why = "version 1 certifies no names, so data cannot be compared with it"
    assert found == Verdict("undecided", why, np.inf)


def test_zero_is_zero_whatever_its_sign_is() -> None:
    """In tokens and in answers, here and there."""
    X, Y = np.array([[[0.0, 1.0]], [[2.0, 0.0]]]), np.array([[0.0], [3.0]])
    stored = Data(X.astype("f4"), np.ones(2, int), Y, np.arange(2))
    for a, b in ((stored, (-X, -Y)), (replace(stored, tokens=-stored.tokens, answers=-Y), (X, Y))):
        mine = tuple(np.where(part == 0, part, np.abs(part)) for part in b)
        theirs = replace(
            a,
            tokens=np.where(a.tokens == 0, a.tokens, np.abs(a.tokens)),
            answers=np.where(a.answers == 0, a.answers, np.abs(a.answers)),
        )
        assert same_data(mine, VECTORS, theirs, np.dtype("f4")).outcome == "proved"
        assert same_data(tuple(part[::-1] for part in mine), VECTORS, theirs, np.dtype("f4")).outcome == "proved"


def test_comparing_is_counted_before_it_is_done() -> None:
    stored = Data(np.zeros((3, 5, 2), "f4"), np.full(3, 5), np.ones((15, 1)), np.arange(15))
    with counted() as lines:
        same_data(Path("nowhere"), VECTORS, stored, np.dtype("f4"))
    assert lines == [("comparing the data given", 100 * 15, 8 * 30 + 32 * 15, 0)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("memorizes", Required("memorizes", None, np.inf)),
        ("memorizes float32", Required("memorizes", "float32", np.inf)),
        ("memorizes 1e-6", Required("memorizes", None, 1e-6)),
        ("separated real 0.5", Required("separated", "real", 0.5)),
    ],
)
def test_demands_are_read(text, wanted) -> None:
    assert Required.read(text) == wanted
    assert Required("memorizes") == Required.read("memorizes")


@pytest.mark.parametrize("text", ["", "believes", "memorizes real real", "memorizes 1 2", "memorizes x", "1"])
def test_other_demands_are_not_understood(text) -> None:
    with pytest.raises(ValueError, match=r"claim|float"):
        Required.read(text)


def test_a_demand_is_met_by_a_claim_that_is_proved() -> None:
    proved, open_ = Verdict("proved", "", 0.0), Verdict("undecided", "", 0.0)
    made = Claim("memorizes", "float32", "token", {"eps": 0.25})
    for text, met in (
        ("memorizes", True),
        ("memorizes float32", True),
        ("memorizes float64", False),
        ("memorizes 0.25", True),
        ("memorizes 0.24", False),
        ("rejects", False),
    ):
        assert Required.read(text).met(made, proved) is met
        assert not Required.read(text).met(made, open_)
    about = Claim("sup_error", "real", "token", {"bound": 0.25})
    assert Required.read("sup_error 0.25").met(about, proved)
    assert not Required.read("sup_error 0.2").met(about, proved)
    bare = Claim("separated", "real", "token", {"r": 9.0, "delta": 9.0})
    assert Required.read("separated 0").met(bare, proved)  # it has no bound on errors
    assert str(Required.read("memorizes float32 0.5")) == "memorizes (float32, bound 0.5)"
    assert str(Required.read("memorizes")) == "memorizes (any arithmetic)"


def test_a_certificate_without_data_cannot_be_compared_with_a_persons() -> None:
    """Of a learner, for example: it is about all inputs, and stores none."""
    said = same_data(None, None, None, np.dtype("float32"))  # type: ignore[arg-type]
    assert said == Verdict("undecided", "the certificate stores no data to compare it with", np.inf)
