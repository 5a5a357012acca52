"""Data is read as section 1 describes it, and refused where it does not fit itself or the network."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import build
from onelayer_checker.core.samples import Data, read_data

VOCABULARY, WIDTH, ANSWERS = 5, 3, 2


def network(*, table: bool = False, lift: int = 0, feedforward: tuple[int, ...] = (), positions: int = 0):
    """A network that takes ids, or numbers lifted from ``lift`` components, or of a first layer's shape."""
    T = {f"attention.W_{name}": np.zeros((1, WIDTH, 1)) for name in "QKV"}
    T["attention.W_O"] = np.zeros((1, 1, WIDTH))
    for i, (takes, gives) in enumerate([(WIDTH, 1), (1, 4), (4, 7), (7, ANSWERS)]):
        T |= {f"readout.{i}.weight": np.zeros((takes, gives)), f"readout.{i}.bias": np.zeros(gives)}
    if table:
        T["embedding.table"] = np.zeros((VOCABULARY, WIDTH))
    if lift:
        T["embedding.lift"] = np.zeros((lift, WIDTH))
    if feedforward:
        T |= {"feedforward.0.weight": np.zeros(feedforward), "feedforward.0.bias": np.zeros(WIDTH)}
    if positions:
        T["embedding.positions"] = np.zeros((positions, WIDTH))
    return build(T)


IDS, REALS = network(table=True), network(lift=4)


def ids(**other):
    return {"tokens": np.array([[0, 1, 2], [4, 3, 0]]), "answers": np.arange(12.0).reshape(6, 2)} | other


def reals(**other):
    return {"tokens": np.ones((2, 3, 4)), "answers": np.arange(12.0).reshape(6, 2)} | other


def refused(tensors, net) -> None:
    with pytest.raises(Malformed) as error:
        read_data(tensors, net)
    assert error.value.gate == "data"


def test_what_is_not_said_is_the_whole() -> None:
    for tensors, net in ((ids(), IDS), (reals(), REALS)):
        data = read_data(tensors, net)
        assert data.tokens is tensors["tokens"]
        assert data.answers is tensors["answers"]
        assert data.lengths.tolist() == [3, 3]
        assert data.which.tolist() == [0, 1, 2, 3, 4, 5]
        assert data.strangers is None


def test_what_is_said_is_taken() -> None:
    lengths, which = np.array([1, 3]), np.array([5, 0, 0, 2])
    data = read_data(ids(lengths=lengths, which=which), IDS)
    assert data.lengths.tolist() == [1, 3]
    assert data.which.tolist() == [5, 0, 0, 2]
    unknown = np.array([[4, 4], [0, 1], [1, 1]])
    data = read_data(ids(strangers=unknown, default=np.array([7.0, 8.0])), IDS)
    assert data.strangers is not None
    assert data.strangers.tokens is unknown
    assert data.strangers.lengths.tolist() == [2, 2, 2]
    assert data.strangers.answers.tolist() == [[7, 8]]
    assert data.strangers.which.shape == (0,)
    assert data.strangers.strangers is None
    read_data(ids(lengths=lengths, which=which, strangers=unknown, default=np.zeros(2)), IDS)


@pytest.mark.parametrize("missing", ["tokens", "answers"])
def test_nothing_may_be_missing(missing: str) -> None:
    refused({name: a for name, a in ids().items() if name != missing}, IDS)


@pytest.mark.parametrize(
    "other",
    [
        {"note": np.zeros(1)},
        {"stream": np.arange(3)},
        {"window": np.ones(1, np.int64)},
        {"strangers": np.zeros((1, 1), np.int64)},
        {"default": np.zeros(2)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_nothing_may_be_added(other) -> None:
    refused(ids(**other), IDS)


@pytest.mark.parametrize(
    "answers",
    [
        np.zeros((0, 2)),
        np.zeros((6, 0)),
        np.zeros(2),
        np.zeros((6, 2, 2)),
        np.zeros((6, 2), np.float32),
        np.zeros((6, 2), np.int64),
        np.zeros((6, 3)),
    ],
    ids=lambda a: f"{a.shape} {a.dtype}",
)
def test_answers_have_the_shape_of_the_output(answers) -> None:
    refused(ids(answers=answers), IDS)


def test_one_component_may_be_a_class_that_has_an_output() -> None:
    assert read_data(ids(answers=np.ones((6, 1))), IDS).answers.shape == (6, 1)


@pytest.mark.parametrize("name", ["lengths", "which"])
def test_whole_numbers_stay_within_their_range(name: str) -> None:
    good = {"lengths": [1, 3], "which": [0, 5]}[name]
    read_data(ids(**{name: np.array(good)}), IDS)
    low, high = good
    for wrong in ([low - 1, high], [low, high + 1], [-1, high], [low, 2**40], [low - 1, low - 1]):
        refused(ids(**{name: np.array(wrong)}), IDS)
    refused(ids(**{name: np.array(good, float)}), IDS)
    refused(ids(**{name: np.array([good, good])}), IDS)


def test_there_is_a_length_for_each_sequence() -> None:
    for wrong in ([3], [3, 3, 3]):
        refused(ids(lengths=np.array(wrong)), IDS)


@pytest.mark.parametrize("name", ["tokens", "strangers"])
def test_ids_are_rows_of_the_table(name: str) -> None:
    default = {"default": np.zeros(2)} if name == "strangers" else {}
    for wrong in (-1, VOCABULARY, 2**40):
        for at in (0, -1):
            tokens = np.array([[0, 1, 2], [4, 3, 0]])
            tokens.flat[at] = wrong
            refused(ids(**{name: tokens}, **default), IDS)


def test_ids_go_with_a_table_and_numbers_without_one() -> None:
    refused(reals(), IDS)
    refused(ids(), REALS)
    refused(ids(tokens=np.zeros((2, 3, 1), np.int64)), IDS)
    refused(ids(tokens=np.zeros((2, 3))), IDS)
    refused(reals(tokens=np.zeros((2, 3), np.int64)), REALS)
    refused(reals(tokens=np.zeros((2, 3, 4), np.int64)), REALS)
    refused(reals(tokens=np.zeros((2, 3))), REALS)
    read_data(reals(tokens=np.zeros((2, 3, 4), np.float32)), REALS)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_there_is_a_token(shape) -> None:
    refused(ids(tokens=np.zeros(shape, np.int64)), IDS)
    refused(ids(strangers=np.zeros(shape, np.int64), default=np.zeros(2)), IDS)
    refused(reals(tokens=np.zeros((*shape, 4))), REALS)
    refused(reals(strangers=np.zeros((*shape, 4)), default=np.zeros(2)), REALS)


def test_numbers_have_as_many_components_as_the_network_takes() -> None:
    bare, fed, blocks = network(), network(feedforward=(6, WIDTH)), network(feedforward=(WIDTH, 2, 1))
    both = network(lift=4, feedforward=(WIDTH, WIDTH))
    for net, takes in ((REALS, 4), (bare, WIDTH), (fed, 6), (blocks, 6), (both, 4)):
        read_data(reals(tokens=np.zeros((2, 3, takes))), net)
        for wrong in (takes - 1, takes + 1, 1):
            refused(reals(tokens=np.zeros((2, 3, wrong))), net)
            far = reals(tokens=np.zeros((2, 3, takes)), strangers=np.zeros((1, 3, wrong)), default=np.zeros(2))
            refused(far, net)


def test_there_are_positions_for_all_tokens() -> None:
    for positions in (3, 4):
        read_data(ids(), network(table=True, positions=positions))
        read_data(reals(), network(lift=4, positions=positions))
    for name in ("tokens", "strangers"):
        longer = {name: np.zeros((2, 4), np.int64), "default": np.zeros(2), "strangers": np.zeros((2, 4), np.int64)}
        refused(ids(**longer), network(table=True, positions=3))
    refused(ids(), network(table=True, positions=2))


def test_strangers_are_like_tokens_and_the_default_like_an_answer() -> None:
    strangers, default = np.zeros((1, 3, 4)), np.zeros(2)
    read_data(reals(strangers=strangers, default=default), REALS)
    refused(reals(strangers=strangers.astype(np.float32), default=default), REALS)
    for wrong in (np.zeros(1), np.zeros(3), np.zeros((1, 2)), np.zeros(2, np.float32), np.zeros(2, np.int64)):
        refused(reals(strangers=strangers, default=wrong), REALS)


def windows(stream, window, **other):
    return {"stream": stream, "window": window, "answers": np.zeros((1, 2))} | other


def test_a_stream_is_its_windows() -> None:
    stream = np.array([0, 4, 1, 2, 3])
    for n in (1, 2, 5):
        data = read_data(windows(stream, np.array([n])), IDS)
        assert data.tokens.tolist() == [stream[i : i + n].tolist() for i in range(5 - n + 1)]
        assert data.lengths.tolist() == [n] * (6 - n)
    strangers = {"strangers": np.array([[1, 2]]), "default": np.zeros(2)}
    assert read_data(windows(stream, np.array([2]), **strangers), IDS).strangers is not None


@pytest.mark.parametrize(
    ("stream", "window"),
    [
        (np.arange(5), np.array([0])),
        (np.arange(5), np.array([-1])),
        (np.arange(5), np.array([6])),
        (np.arange(5), np.array([2, 2])),
        (np.arange(5), np.array([[2]])),
        (np.arange(5), np.array(2)),
        (np.arange(5), np.array([2.0])),
        (np.arange(5.0), np.array([2])),
        (np.arange(5.0), np.array([2.0])),
        (np.arange(4).reshape(2, 2), np.array([1])),
        (np.arange(5) - 1, np.array([2])),
        (np.arange(6), np.array([2])),
    ],
)
def test_a_stream_that_is_none_is_refused(stream, window) -> None:
    refused(windows(stream, window), IDS)


def test_a_stream_and_its_window_come_together() -> None:
    whole = windows(np.arange(5), np.array([2]))
    for name in ("stream", "window"):
        refused({k: a for k, a in whole.items() if k != name}, IDS)


def test_sequences_are_taken_with_their_answers() -> None:
    tokens, lengths = np.arange(12).reshape(4, 3), np.array([2, 1, 3, 1])
    answers, strangers = np.arange(7.0)[:, None], Data(tokens, lengths, np.zeros((1, 1)), np.zeros(0, np.int64))
    some = np.array([2, 0])
    token = Data(tokens, lengths, answers, np.arange(7)[::-1], strangers).take(some)
    assert token.tokens.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert token.lengths.tolist() == [3, 2]
    assert token.answers is answers
    assert token.which.tolist() == [3, 2, 1, 6, 5]
    assert token.strangers is None
    sequence = Data(tokens, lengths, answers, np.array([6, 5, 4, 3])).take(some)
    assert sequence.which.tolist() == [4, 6]
    assert strangers.take(some).which.tolist() == []
    assert strangers.take(some).tokens.tolist() == [[6, 7, 8], [0, 1, 2]]


def test_names_of_tensors_that_nobody_knows_are_told_in_part() -> None:
    more = {f"x{i:03}": np.zeros(1) for i in range(100)}
    with pytest.raises(Malformed) as error:
        read_data(ids(**more), IDS)
    assert str(error.value).endswith(f"holds {str(sorted(ids(**more)))[:200]}...")
