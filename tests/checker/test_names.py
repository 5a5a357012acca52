"""Names are told apart by type and value, and belong to the network, the data and the claims, or are refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from onelayer_checker.core.claims import Claim
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.names import Names, encode, fit, read_names
from onelayer_checker.core.samples import Data

ZERO, HALF = ({"real": value.hex()} for value in (0.0, 0.5))


class Liar:
    def __repr__(self) -> str:
        return "'bank'"


NoneType = type("NoneType", (), {})


@pytest.mark.parametrize(
    ("values", "names", "numbers"),
    [
        (["b", "a", "c"], ("a", "b"), [1, 0, -1]),
        ([7, 5, 6], (5, 6, 7), [2, 0, 1]),
        ([True, False], (False, True), [1, 0]),
        ([0.5, -0.0, 1.5], (0.0, 0.5), [1, 0, -1]),
        ([None, "None"], ("None", None), [1, 0]),
        ([("a", 1), ("a", 2), ["a", 1]], (("a", 1), "a"), [0, -1, 0]),
        # Python takes these for equal.
        ([1], (True,), [-1]),
        ([True], (1,), [-1]),
        ([1.0], (1,), [-1]),
        ([1], (1.0,), [-1]),
        ([True, 5], (1, 5), [-1, 1]),
        ([1, True], (True, 5), [-1, 0]),
        ([(True, 2)], ((1, 2),), [-1]),
        ([(1.0, 2)], ((1, 2),), [-1]),
        # These are near, or look alike.
        ([0.5], (0,), [-1]),
        ([1.5], (1.0,), [-1]),
        ([2**60, 2**60 + 1, -(2**60)], (2**60, -(2**60)), [0, -1, 1]),
        ([2.0**70, 2**70], (2**70,), [-1, 0]),
        (["(a,b)"], (("a", "b"),), [-1]),
        ([("a,b",)], (("a", "b"),), [-1]),
        (["1"], (1,), [-1]),
        ([np.inf, -np.inf, np.nan], (0.0, 1), [-1, -1, -1]),
        # What NumPy holds is what it stands for; other things are none of the names.
        ([np.int64(3), np.float64(0.5), np.str_("a"), np.bool_(True)], (3, 0.5, "a", True), [0, 1, 2, 3]),
        ([np.int64(3)], (3,), [0]),
        ([np.float32(0.1)], (0.1,), [-1]),
        ([Liar(), {"bank": 1}, b"bank", NoneType()], ("bank", None), [-1, -1, -1, -1]),
        ([], ("a",), []),
    ],
)
def test_a_value_has_the_number_of_the_name_that_it_is(values, names, numbers) -> None:
    found = encode(values, names)
    assert found.dtype == np.int64
    assert found.tolist() == numbers


def content(**other):
    listed = {"tokens": ["a", "b", 1], "answers": [True, HALF, {"tuple": ["x", None]}], "pieces": None}
    return {
        "format": "onelayer-names/1",
        "scope": "token",
        "causal": False,
        "positions": False,
        **listed,
        **other,
    }


def refused(do, *given) -> str:
    with pytest.raises(Malformed) as error:
        do(*given)
    assert error.value.gate == "names"
    return str(error.value)


def test_names_are_read() -> None:
    assert read_names(content()) == Names("token", False, False, ("a", "b", 1), None, (True, 0.5, ("x", None)))
    assert read_names(content(tokens=None, answers=None)) == Names("token", False, False, None, None, None)
    pieces = read_names(content(pieces=["00", "ff", ""])).pieces
    assert pieces == (b"\x00", b"\xff", b"")
    assert str(read_names(content())) == "3 tokens and 3 classes"
    assert str(read_names(content(tokens=None, answers=None))) == "real tokens and real answers"


@pytest.mark.parametrize(
    "names",
    [
        ["a", "a"],
        [1, True],
        [0, False],
        [0, ZERO],
        [ZERO, {"real": (-0.0).hex()}],
        [{"real": (2.0**70).hex()}, 2**70],
        [{"tuple": [1]}, {"tuple": [True]}],
        [None, None],
    ],
)
def test_names_that_python_takes_for_equal_are_refused(names) -> None:
    for field in ("tokens", "answers"):
        assert "two names" in refused(read_names, content(**{field: names}))


@pytest.mark.parametrize("names", [[HALF, 0], [HALF, ZERO], ["1", 1], [1, 2], [["a"]][:0], [None, "None"]])
def test_names_that_are_not_equal_are_kept_apart(names) -> None:
    assert len(read_names(content(answers=names)).answers) == len(names)


@pytest.mark.parametrize(
    "pieces",
    [
        ["00", "01"],
        ["00", "01", "02"],
        ["00", "00", ""],
        ["0", "01", ""],
        ["AA", "01", ""],
        ["0 0", "01", ""],
        [1, 2, ""],
    ],
)
def test_pieces_that_are_not_the_bytes_of_the_tokens_are_refused(pieces) -> None:
    refused(read_names, content(pieces=pieces))


def test_pieces_need_tokens() -> None:
    assert "a piece for each token" in refused(read_names, content(tokens=None, pieces=["00", ""]))


NAMES = Names("token", False, False, ("a", "b"), None, ("x", "y", "z"))
DATA = Data(np.zeros((2, 1), int), np.ones(2, int), np.array([[0.0], [2.0]]), np.arange(2))
CLAIM = Claim("memorizes", "real", "token", {"eps": 0.0})


def network(rows: int | None = 2, causal: bool = False, positions: bool = False):
    T = {} if rows is None else {"embedding.table": np.zeros((rows, 3))}
    T |= {"embedding.positions": np.zeros((4, 3))} if positions else {}
    return SimpleNamespace(tensors=T, causal=causal)


def test_names_fit_the_network_the_data_and_the_claims() -> None:
    fit(NAMES, network(), DATA, [CLAIM])
    fit(replace(NAMES, answers=None), network(), replace(DATA, answers=np.array([[0.5, -1]])), [CLAIM])
    fit(replace(NAMES, tokens=None), network(None), DATA, [])
    fit(replace(NAMES, causal=True, positions=True), network(causal=True, positions=True), DATA, [CLAIM, CLAIM])
    fit(NAMES, network(), replace(DATA, strangers=replace(DATA, answers=np.array([[1.0]]))), [CLAIM])
    for names, net in (
        (NAMES, network(3)),
        (NAMES, network(None)),
        (replace(NAMES, tokens=None), network()),
        (replace(NAMES, causal=True), network()),
        (replace(NAMES, positions=True), network()),
        (NAMES, network(causal=True)),
        (NAMES, network(positions=True)),
    ):
        refused(fit, names, net, DATA, [])
    refused(fit, NAMES, network(), DATA, [CLAIM, replace(CLAIM, scope="last")])


@pytest.mark.parametrize("answers", [[[3.0]], [[-1.0]], [[0.5]], [[-0.5]], [[2.5]], [[0.0, 1.0]], [[1.0], [2.25]]])
def test_an_answer_is_the_number_of_a_class(answers) -> None:
    wrong = replace(DATA, answers=np.array(answers))
    refused(fit, NAMES, network(), wrong, [CLAIM])
    fit(replace(NAMES, answers=None), network(), wrong, [CLAIM])
    if wrong.answers.shape[1] == 1:  # and so is the default of the strangers
        refused(fit, NAMES, network(), replace(DATA, strangers=wrong), [CLAIM])
