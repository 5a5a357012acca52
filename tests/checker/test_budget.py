"""A budget is counted before it is spent: what is allowed is done, and what is more is not begun."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core import budget
from onelayer_checker.core.balls import FLOAT64
from onelayer_checker.core.budget import Beyond, Budget, allow_bytes, limited, spend, spend_on_coordinates
from onelayer_checker.core.graph import build
from tests.checker.counted import counted


def now() -> Budget:
    found = budget._current.get()
    assert found is not None
    return found


def test_operations_add_up_to_the_limit_and_not_beyond() -> None:
    with limited(10, 100):
        spend("one", 4)
        spend("two", 6)
        with pytest.raises(Beyond) as error:
            spend("three", 1)
        assert str(error.value) == "three: 11 operations in all, 10 are allowed (--budget 1.2e+01)"
        assert error.value.gate == "budget"
        spend("nothing")
        assert now().spent == 10  # what was refused is not counted


def test_memory_for_now_is_given_back_and_memory_for_good_is_not() -> None:
    with limited(1e9, 100):
        spend("scratch", scratch=100)
        spend("scratch", scratch=100)
        spend("kept", scratch=40, kept=60)
        spend("scratch", scratch=40)
        with pytest.raises(Beyond, match=r"^more: 1e\+02 bytes of memory in all, 1e\+02 are allowed \(--memory"):
            spend("more", scratch=41)
        with pytest.raises(Beyond):
            spend("more", kept=41)
        spend("kept", kept=40)
        assert (now().held, now().spent) == (100, 0)


@pytest.mark.parametrize("what", ["operations", "scratch", "kept"])
def test_what_is_no_number_is_too_much(what: str) -> None:
    with limited(np.inf, np.inf):
        spend("all of it", **{what: np.inf})
        with pytest.raises(Beyond):
            spend("who knows", **{what: np.nan})


def test_the_limits_that_hold_where_none_are_given() -> None:
    with limited(None, None):
        assert now() == Budget(3e10, 4e9, 2e3)
    with limited(7, None):
        assert now() == Budget(7, 4e9, 0)
    with limited(None, 8):
        assert now() == Budget(3e10, 8, 2e3)


def test_nothing_is_counted_outside_and_limits_are_nested() -> None:
    assert budget._current.get() is None
    spend("a lot", 1e300, 1e300, 1e300)
    allow_bytes("a file", 1 << 60, 3)
    with limited(10, 10):
        with limited(2, 2), pytest.raises(Beyond):
            spend("more than is left inside", 3)
        spend("as much as is left outside", 10)
        with pytest.raises(ZeroDivisionError), limited(2, 2):
            raise ZeroDivisionError
        assert now().operations == 10
    assert budget._current.get() is None


def test_a_file_is_kept_and_allows_more_operations() -> None:
    with limited(None, 100):
        allow_bytes("a file", 20, 3)
        assert (now().held, now().operations, now().spent) == (60, 3e10 + 40_000, 0)
        with pytest.raises(Beyond, match="reading another file"):
            allow_bytes("another file", 41, 1)
        assert now().operations == 3e10 + 40_000  # nothing is read
        allow_bytes("another file", 40, 1)
        assert (now().held, now().operations) == (100, 3e10 + 120_000)
    with limited(5, 100):  # a person's own limit stays what it is
        allow_bytes("a file", 20, 1)
        assert now().operations == 5


def network(
    *,
    table: int | None,
    tokens: int = 3,
    seeing: bool = True,
    causal: bool = False,
    keys: bool = True,
    bias: bool = False,
):
    """H = 5 heads of size s = 11 on a stream of width w = 7, feedforward of 23 units, c = 13 coordinates."""
    T = {"attention.W_Q": np.full((5, 7, 11), float(seeing)), "attention.W_K": np.full((5, 7, 11), float(keys))}
    T |= {"attention.b_Q": np.ones((5, 11))} if bias else {}
    T |= {"attention.W_V": np.ones((5, 7, 11)), "attention.W_O": np.ones((5, 11, 7))}
    T |= {
        "embedding.lift" if table is None else "embedding.table": np.ones((tokens if table is None else table, 2))
    }
    T |= {"feedforward.0.weight": np.ones((2, 23)), "feedforward.0.bias": np.ones(23)}
    T |= {"feedforward.1.weight": np.ones((23, 7)), "feedforward.1.bias": np.ones(7)}
    T |= {"readout.0.weight": np.ones((7, 13)), "readout.0.bias": np.ones(13)}
    T |= {"readout.1.weight": np.ones((13, 1)), "readout.1.bias": np.ones(1)}
    return build(T, causal)


WIDTH = 7 + 3 * 5 * 11  # of the stream and of queries, keys and values
EMBED = 0.6 * (2 * 23 + 23 * 7) + 60 * (23 + 7) + 40 * 7  # of a token
PROJECT = WIDTH * (7 / 2 + 40)  # of a token
LOGIT = 2 * 11 + 70  # of a query, a key and a head
QUERY = 5 * 11 * 7 / 2 + 7 * 13 / 2 + 40 * (7 + 13)


def scratch(n: int, together: float = 0) -> float:
    return 16 * (4 * n * (WIDTH + 23) + 8 * n * 5 + 2 * together + 64 * n * 7)


@pytest.mark.parametrize(
    ("net", "shape", "last", "embedded", "queries", "rows", "together"),
    [
        (network(table=None), (19, 17, 3), False, 19 * 17, 19 * 17, 19 * 17, 0),
        (network(table=None), (19, 17, 3), True, 19 * 17, 19, 19, 0),
        (network(table=None, tokens=1), (19, 17, 1), False, 19 * 17, 19 * 17, 19 * 17, 19 * 17 * WIDTH),
        (network(table=6), (19, 17), False, 6 * 17, 19 * 17, 19 * 17, 6 * 17 * WIDTH),
        (network(table=60), (19, 17), False, 19 * 17, 19 * 17, 19 * 17, 19 * 17 * WIDTH),
        (network(table=60, seeing=False), (19, 17), False, 19 * 17, 19 * 17, 19, 19 * 17 * WIDTH),
        (network(table=60, seeing=False), (19, 17), True, 19 * 17, 19, 19, 19 * 17 * WIDTH),
        (network(table=60, keys=False), (19, 17), False, 19 * 17, 19 * 17, 19, 19 * 17 * WIDTH),
        (network(table=60, seeing=False, bias=True), (19, 17), False, 19 * 17, 19 * 17, 19, 19 * 17 * WIDTH),
        (network(table=60, bias=True), (19, 17), False, 19 * 17, 19 * 17, 19 * 17, 19 * 17 * WIDTH),
        (network(table=60, seeing=False, causal=True), (19, 17), False, 19 * 17, 19 * 17, 19 * 17, 19 * 17 * WIDTH),
        (network(table=60, seeing=False, causal=True), (19, 17), True, 19 * 17, 19, 19, 19 * 17 * WIDTH),
    ],
)
def test_coordinates_take_what_their_shapes_say(net, shape, last, embedded, queries, rows, together) -> None:
    """Tokens that are embedded, queries, and the rows of logits; sums of each, times what one takes."""
    with counted() as lines:
        spend_on_coordinates(net, np.zeros(shape, np.int64), np.full(19, 17), FLOAT64, last)
    ((what, operations, for_now, kept),) = lines
    assert what == f"{rows * 17 * 5:.2g} logits"
    assert operations == pytest.approx(
        embedded * EMBED + 19 * 17 * PROJECT + rows * 17 * 5 * LOGIT + queries * QUERY, rel=1e-12
    )
    assert for_now == pytest.approx(scratch(17, together) + 32 * queries * 13, rel=1e-12)
    assert kept == 32 * queries * 14


def test_padding_takes_nothing() -> None:
    """Lengths 17 and 3 of places for 17: 20 tokens, and 17^2 + 3^2 logits of each head."""
    with counted() as lines:
        for seeing in (True, False):
            net = network(table=None, seeing=seeing)
            spend_on_coordinates(net, np.zeros((2, 17, 3)), np.array([17, 3]), FLOAT64, False)
    for (what, operations, _, kept), logits in zip(lines, (298, 20), strict=True):
        assert what == f"{logits * 5:.2g} logits"
        assert operations == pytest.approx(20 * (EMBED + PROJECT + QUERY) + logits * 5 * LOGIT, rel=1e-12)
        assert kept == 32 * 20 * 14


def test_nothing_is_looked_at_where_nothing_is_limited() -> None:
    spend_on_coordinates(None, None, None, FLOAT64, False)  # type: ignore[arg-type]
