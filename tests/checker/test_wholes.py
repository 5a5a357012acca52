"""Whole numbers that are known exactly: sums, choices and marks, each compared with Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, Arithmetic, Ball, exact
from onelayer_checker.core.layers import Layer
from onelayer_checker.search.operations import Add, Collect, Decide, Evaluate, Gate, Pick
from onelayer_checker.search.parts import Dense, Known, Rows, Token
from onelayer_checker.search.steps import Steps
from onelayer_checker.search.sums import Sums
from onelayer_checker.search.wholes import Kinds, Signed, Weights, add_exactly
from tests.checker.large import ARITHMETICS

EVERY = list(ARITHMETICS.values())
LIMIT = 2.0**24


def value(signed: Signed) -> list:
    return (signed.plus - (0 if signed.minus is None else signed.minus)).tolist()


def sizes(signed: Signed) -> list:
    return (signed.plus + (0 if signed.minus is None else signed.minus)).tolist()


def token_of(balls: dict[int, np.ndarray], choices: dict[int, list[int]] | None = None) -> Token:
    count = len(next(iter(balls.values()))) if balls else len(next(iter((choices or {}).values())))
    token = Token(unknown=np.zeros(count, bool))
    for slot, m in balls.items():
        token.put(slot, exact(np.asarray(m, float)))
    token.choices |= {by: np.array(chosen) for by, chosen in (choices or {}).items()}
    return token


def test_numbers_are_kept_by_their_signs() -> None:
    a = np.array([[3.0, -2.0], [0.0, -5.0]])
    signed = Signed.of(a)
    assert value(signed) == a.tolist()
    assert sizes(signed) == np.abs(a).tolist()
    assert signed.plus.min() == 0
    assert Signed.of(np.array([0.0, 2.0])).minus is None
    assert value(signed.rows(np.array([1, 1, 0]))) == a[[1, 1, 0]].tolist()
    assert value(signed.at(np.array([[0], [1]]), np.array([[1, 0], [1, 1]]))) == [[-2, 3], [-5, -5]]
    positive = Signed.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert positive.rows(np.array([1])).minus is None
    assert value(positive.rows(np.array([1]))) == [[3, 4]]
    assert positive.at(np.array([0]), np.array([1])).minus is None


@pytest.mark.parametrize("shape", [(3, 2), (1, 4), (5, 1, 1), (3, 1, 4), (2, 6, 3), (4, 2, 1), (1, 3, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_those_of_the_layer(shape, order) -> None:
    rng = np.random.default_rng(list(shape))
    W = rng.integers(-3, 4, shape).astype(float)
    units = int(np.prod(shape[:-1]))
    x = np.array(rng.integers(0, 9, (7, units)), float, order=order)
    wanted = Layer(W, np.zeros(W.shape[-1] * (1 if W.ndim == 2 else len(W)))).apply(exact(x), REAL).m
    found = Signed.of(W).times(x)
    assert value(found) == wanted.tolist()
    assert found.plus.min() >= 0
    large = Layer(np.abs(W), np.zeros(wanted.shape[1])).apply(exact(x), REAL).m
    assert sizes(found) == large.tolist()
    assert Signed.of(np.abs(W)).times(x).minus is None
    assert value(Weights.of(W).times(x)) == wanted.tolist()


def test_a_unit_that_nothing_reads_is_left_out() -> None:
    W = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 2.0]])
    weights = Weights.of(W)
    assert weights.used.tolist() == [True, False, True]
    assert value(weights.times(np.array([[5.0, 0.25, 3.0]]))) == [[2, 6]]
    blocks = Weights.of(np.zeros((2, 3, 1)))
    assert blocks.used.tolist() == [True] * 6
    assert value(blocks.times(np.ones((1, 6)))) == [[0, 0]]


@pytest.mark.parametrize("signs", [1, -1])
def test_the_largest_token_answers_for_all_or_each_for_itself(signs: int) -> None:
    """Both ways give the sum; what does not fit is refused by both."""
    weights, none = Weights.of(signs * np.ones((2, 1))), Signed.of(np.zeros(1))
    fit = np.array([[LIMIT, 0.0], [0.0, LIMIT]])  # the largest of both would not
    for x in (fit, fit / 2, np.zeros((0, 2)), np.zeros((3, 2))):
        found = weights.add_exactly(x, none, FLOAT32)
        assert found is not None
        assert found.tolist() == (signs * x.sum(axis=1, keepdims=True)).tolist()
    assert weights.add_exactly(np.array([[LIMIT, 1.0], [0.0, 0.0]]), none, FLOAT32) is None
    assert weights.add_exactly(fit, Signed.of(np.array([signs * 1.0])), FLOAT32) is None
    both = Weights.of(np.array([[[1.0, -2.0]], [[3.0, 0.0]]]))
    found = both.add_exactly(np.array([[5.0, 7.0], [1.0, 0.0]]), Signed.of(np.array([1.0, -1.0, 0.0, 2.0])), REAL)
    assert found is not None
    assert found.tolist() == [[6, -11, 21, 2], [2, -3, 0, 2]]


def test_the_largest_token_is_of_units_that_are_read() -> None:
    weights = Weights.of(np.array([[1.0], [0.0]]))
    found = weights.add_exactly(np.array([[3.0, 2.0**30]]), Signed.of(np.array([4.0])), FLOAT32)
    assert found is not None
    assert found.tolist() == [[7]]


def test_units_of_one_kind_are_added_up_first() -> None:
    W = np.array([[1.0, 0.0], [-2.0, 3.0], [1.0, 0.0], [0.0, 0.0]])
    kinds = Kinds.of(W)
    assert kinds.of_unit[0] == kinds.of_unit[2]
    assert len(kinds.weights.plus) == 3
    units, y = np.array([[0, 1], [2, 1], [-1, 1]]), np.array([[5.0, 7.0], [6.0, 8.0], [9.0, 1.0]])
    found = kinds.times(units, exact(y))
    assert found is not None
    assert value(found) == [[5 - 14, 21], [6 - 16, 24], [-2, 3]]  # what is off adds nothing, whatever its value
    assert sizes(found) == [[19, 21], [22, 24], [2, 3]]
    assert kinds.times(np.array([[0], [1]]), exact(np.ones((2, 1)))) is None
    assert kinds.times(np.array([[-1], [1], [0]]), exact(np.ones((3, 1)))) is None
    same = kinds.times(np.array([[-1], [1], [-1], [1]]), exact(np.ones((4, 1))))
    assert same is not None
    assert value(same) == [[0, 0], [-2, 3], [0, 0], [-2, 3]]
    first = kinds.times(np.array([[-1], [0], [0]]), exact(np.ones((3, 1))))
    assert first is not None
    assert value(first) == [[0, 0], [1, 0], [1, 0]]
    both = kinds.times(np.array([[0, 2]]), exact(np.array([[4.0, 5.0]])))
    assert both is not None
    assert value(both) == [[9, 0]]
    none = kinds.times(np.array([[-1], [-1]]), exact(np.ones((2, 1))))
    assert none is not None
    assert value(none) == [[0, 0], [0, 0]]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_sums_are_known_up_to_the_edge(A: Arithmetic) -> None:
    most = A.whole if A.whole < REAL.whole else A.whole - 1
    one = np.ones((1, 1))
    assert value(Signed(add_exactly([Signed(most * one, None)], A), None)) == [[most]]
    assert add_exactly([Signed((most - 1) * one, None), Signed(one, None)], A).tolist() == [[most]]
    assert add_exactly([Signed(most * one, None), Signed(2 * one, None)], A) is None
    assert add_exactly([Signed(0 * one, (most + 1) * one)], A) is None or most + 1 == A.whole < REAL.whole
    assert add_exactly([Signed(0 * one, most * one)], A).tolist() == [[-most]]
    assert add_exactly([Signed(0 * one, most * one), Signed(0 * one, 2 * one)], A) is None
    if A is FLOAT32:  # positive and negative terms count apart
        assert add_exactly([Signed(LIMIT * one, LIMIT * one)], A).tolist() == [[0]]
        assert add_exactly([Signed(LIMIT * one, None), Signed(0 * one, (LIMIT + 1) * one)], A) is None
        assert add_exactly([Signed((LIMIT + 1) * one, None), Signed(0 * one, LIMIT * one)], A) is None
    else:
        half = REAL.whole / 2
        assert add_exactly([Signed(half * one, (half - 1) * one)], A).tolist() == [[1]]
        assert add_exactly([Signed(half * one, half * one)], A) is None
    with np.errstate(invalid="ignore"):
        assert add_exactly([Signed(np.nan * one, None)], A) is None
        assert add_exactly([Signed(one, np.inf * one)], A) is None


def test_every_row_and_sum_counts() -> None:
    fits, large = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, LIMIT + 1]])
    assert add_exactly([Signed(fits, None)], FLOAT32) is not None
    assert add_exactly([Signed(large, None)], FLOAT32) is None
    assert add_exactly([Signed(np.zeros((2, 2)), large)], FLOAT32) is None
    bias = Signed.of(np.array([5.0, -1.0]))
    assert add_exactly([Signed(fits, None), bias], FLOAT32).tolist() == [[6, 1]]
    assert add_exactly([Signed(fits, fits), bias], FLOAT32).tolist() == [[5, -1]]
    assert fits.tolist() == [[1, 2]]  # nothing is changed in place
    assert add_exactly([Signed(np.zeros((1, 2)), None), Signed(np.zeros(2), None)], FLOAT32).tolist() == [[0, 0]]


def test_what_is_whole_is_marked() -> None:
    m = np.array([[1.0, 2.0, 0.0, 3.0, 4.0], [2.0, 0.5, -1.0, 3.0, 7.0]])
    r = np.zeros_like(m)
    r[1, 3] = 2.0**-60
    token = Token(unknown=np.zeros(2, bool))
    token.put(7, Ball(m, r))
    assert not token.knows_whole(7)  # nobody has looked yet
    assert token.are_whole(7).tolist() == [True, False, False, False, True]
    assert not token.knows_whole(7)
    token.put(8, exact(m[:, :1]))
    assert token.are_whole(8).tolist() == [True]
    assert token.knows_whole(8)
    for slot, last in ((1, False), (2, True)):
        token.put_whole(slot, np.array([[-3.0, 4.0], [5.0, 0.0]]), last)
        assert token.balls[slot].m.tolist() == ([[-3, 4], [5, 0]] if last else [[0, 4], [5, 0]])
        assert not token.balls[slot].r.any()
        assert token.knows_whole(slot) is not last
        assert token.are_whole(slot).tolist() == [not last, True]


def staircase(on, off, sign=1.0, largest=64.0, smallest=1.0) -> Steps:
    return Steps(0, sign, np.array(on, float), np.array(off, float), largest, smallest)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("steps", [3, 15])
def test_steps_between_whole_numbers_are_counted_once(sign, steps) -> None:
    on = sign * 4.0 * np.arange(1, steps + 1)
    on.sort()
    family, t = staircase(on, on - 1, sign), np.arange(0.0, 80.0)
    assert family.crisp
    found = family.count(t, FLOAT32)
    assert found is not None
    assert found.tolist() == family.decide(exact(t[:, None]), FLOAT32).tolist()
    assert found.tolist() == [int((on <= sign * x).sum()) for x in t]


def test_steps_that_whole_numbers_do_not_settle_are_not_counted() -> None:
    t = np.arange(3.0)
    for on, off, crisp in (
        ([1, 2], [0, 1], True),
        ([1.5, 3], [0.5, 2], False),
        ([1, 2], [0, 0.5], False),
        ([2, 3], [0, 2], False),
    ):
        assert staircase(on, off).crisp == crisp
        assert (staircase(on, off).count(t, FLOAT32) is not None) == crisp
    assert staircase([1], [0], smallest=4 * FLOAT32.tiny).count(t, FLOAT32) is None
    assert staircase([1], [0], smallest=8 * FLOAT32.tiny).count(t, FLOAT32) is not None
    assert staircase([1], [0], largest=2.0**123).count(t, FLOAT32) is None
    assert staircase([1], [0], largest=2.0**100).count(np.array([1.0, 2.0**24]), FLOAT32) is None
    assert staircase([1], [0], largest=2.0**98).count(np.array([1.0, 2.0**24]), FLOAT32) is not None


def test_a_staircase_asks_whether_its_own_coordinate_is_whole() -> None:
    family = Steps(1, 1.0, np.array([1.0, 2.0]), np.array([0.0, 1.0]), 4.0, 1.0)
    token = token_of({3: [[0.5, 2.0], [0.5, 1.0], [0.5, 0.0]]})
    Decide(family, 3, 9).run(token, FLOAT32)
    assert token.choices[9].tolist() == [2, 1, 0]
    assert not token.unknown.any()
    token = token_of({3: [[1.0, 2.0], [1.0, 0.5]]})
    Decide(family, 3, 9).run(token, FLOAT32)
    assert token.unknown.tolist() == [False, True]
    rough = Steps(1, 1.0, np.array([1.0]), np.array([-1.0]), 4.0, 1.0)
    token = token_of({3: [[1.0, 2.0], [1.0, 0.0]]})
    Decide(rough, 3, 9).run(token, FLOAT32)
    assert token.unknown.tolist() == [False, True]


def test_a_layer_of_whole_numbers_is_evaluated_exactly() -> None:
    W, b = np.array([[2.0, -1.0], [0.0, 0.0], [1.0, 1.0]]), np.array([1.0, -6.0])
    x = [[3.0, 0.5, 4.0], [0.0, 0.25, 9.0]]
    for last, wanted in ((False, [[11, 0], [10, 3]]), (True, [[11, -5], [10, 3]])):
        token = token_of({1: x})
        Evaluate(Layer(W, b), 1, 2, last).run(token, FLOAT32)
        assert token.balls[2].m.tolist() == wanted
        assert not token.balls[2].r.any()
        assert token.knows_whole(2) is not last
    for layer, y in (
        (Layer(W / 4, b), x),
        (Layer(W, b + 0.5), x),
        (Layer(W, b), [[3.0, 0.0, 0.5]]),
        (Layer(W, b), [[LIMIT, 0.0, LIMIT]]),
        (Layer(np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]), b), [[-3.0, 0.0, 4.0]]),
    ):
        assert Evaluate(layer, 1, 2, True).exactly(token_of({1: y}), FLOAT32) is None
        token = token_of({1: y})
        Evaluate(layer, 1, 2, False).run(token, FLOAT32)
        assert (np.abs(token.balls[2].m - np.maximum(np.array(y) @ layer.weight + layer.bias, 0)) <= 2).all()


def row(values, by=1) -> Rows:
    values = np.array(values, float)
    return Rows(by, values, np.abs(values), 1, True, bool((values == np.rint(values)).all()))


def test_chosen_rows_count_by_their_terms() -> None:
    many = Rows(1, np.array([[3.0, -1.0]]), np.array([[5.0, 1.0]]), 9, False, True)
    assert many.signed.plus.tolist() == [[4, 0]]
    assert many.signed.minus is not None
    assert many.signed.minus.tolist() == [[1, 1]]
    assert row([[1.0, 0.0]]).signed.minus is None


def test_sums_of_rows_units_and_a_bias() -> None:
    W = np.array([[1.0, -1.0], [0.0, 0.0]])
    sums = Sums.of([row([[1.0, 2.0], [-3.0, 0.0]]), row([[10.0, 0.0]], 2)], 4, W, np.array([0.0, 7.0]), [])
    token = token_of({4: [[5.0, 0.5], [6.0, 0.5]]}, {1: [1, 0], 2: [0, 0]})
    found = sums.exactly(token, [Signed(np.full((2, 2), 100.0), None)], FLOAT32)
    assert found is not None
    assert found.tolist() == [[112, 102], [117, 103]]
    few = Signed(np.zeros((2, 2)), None)
    assert sums.exactly(token_of({4: [[0.5, 0.0], [1.0, 0.0]]}, {1: [0, 0], 2: [0, 0]}), [few], FLOAT32) is None
    assert sums.exactly(token_of({4: [[LIMIT, 0.0], [1.0, 0.0]]}, {1: [0, 0], 2: [0, 0]}), [few], FLOAT32) is None
    for rows, weight, bias, extra in (
        ([row([[0.5, 0.0]])], W, np.zeros(2), []),
        ([row([[1.0, 0.0]])], W / 2, np.zeros(2), []),
        ([row([[1.0, 0.0]])], W, np.full(2, 0.5), []),
        ([row([[1.0, 0.0]])], W, np.zeros(2), [np.full((1, 2), 0.5)]),
    ):
        token = token_of({4: [[5.0, 1.0]]}, {1: [0]})
        assert not Sums.of(rows, 4, weight, bias, extra).reads_whole(token)
        assert Sums.of(rows, 4, weight, bias, extra).exactly(token, [], FLOAT32) is None
    two = Sums.of([], 4, np.array([[1.0], [1.0]]), np.zeros(1), [])
    assert two.reads_whole(token_of({4: [[5.0, 1.0]]}))
    assert not two.reads_whole(token_of({4: [[5.0, 0.5]]}))
    alone = Sums.of([row([[1.0, 2.0]])], None, np.zeros((0, 2)), np.zeros(2), [])
    assert alone.reads_whole(token)
    assert alone.exactly(token, [], FLOAT32).tolist() == [[1, 2]]


def test_sums_at_some_columns() -> None:
    rows = [row([[1.0, 2.0, -4.0], [5.0, 6.0, 7.0]]), row([[10.0, 20.0, 30.0]], 2)]
    sums = Sums.of(rows, None, np.zeros((0, 3)), np.array([100.0, 0.0, -1.0]), [])
    token = token_of({}, {1: [1, 0], 2: [0, 0]})
    assert sums.exactly_at(np.array([[0, 2], [2, 1]]), token, FLOAT32).tolist() == [[115, 36], [25, 22]]
    with_balls = Sums.of(rows, 4, np.ones((1, 3)), np.zeros(3), [])
    token.put(4, exact(np.ones((2, 1))))
    assert with_balls.exactly_at(np.zeros((2, 1), int), token, FLOAT32) is None
    half = Sums.of([row([[0.5]])], None, np.zeros((0, 1)), np.zeros(1), [])
    assert half.exactly_at(np.zeros((2, 1), int), token_of({}, {1: [0, 0]}), FLOAT32) is None


def gate(entries, walls, bias) -> tuple[Gate, Add]:
    """Entries of a table of rows and columns: relu(entry + wall of the column) is the entry, or 0."""
    o = len(bias)
    sums = Sums.of([row(entries, 1), row(walls, 2)], None, np.zeros((0, o)), np.array(bias, float), [])
    add = Add(Sums.of([], None, np.zeros((0, 1)), np.zeros(1), [np.ones((o, 1))]), [(5, np.ones((o, 1)))], 6, False)
    return Gate(sums, [2], 5), add


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_gate_of_whole_numbers_is_one_of_all(scale) -> None:
    wall = 64.0
    entries = scale * np.array([[3.0, 5.0], [9.0, 2.0]]) - wall
    gating, add = gate(entries, [[wall, 0.0], [0.0, wall], [0.0, 0.0]], [0.0, 0.0])
    token = token_of({}, {1: [0, 0, 1, 1], 2: [0, 1, 1, 2]})
    gating.run(token, FLOAT32)
    assert (5 in token.whole) == (scale == 1)
    columns, y = token.few[5]
    assert columns.tolist() == [[0], [1], [1], [-1]]
    assert y.m[:3].ravel().tolist() == [scale * 3, scale * 5, scale * 2]
    assert y.m[3, 0] == y.r[3, 0] == 0
    assert y.r.any() == (scale != 1)  # of fractions it is not known that nothing is rounded
    add.run(token, FLOAT32)
    assert token.balls[6].m.ravel().tolist() == [scale * 3, scale * 5, scale * 2, 0]
    assert (6 in token.whole) == (scale == 1)
    assert (add.exactly(token, FLOAT32) is None) == (scale != 1)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_column_that_is_not_on_adds_nothing(scale) -> None:
    """Where one token has two columns and another has one, the first column does not count twice."""
    wall = 64.0
    entries = scale * np.array([[3.0, 5.0], [0.0, 0.0]]) - wall
    gating, add = gate(entries, [[wall, wall], [wall, 0.0]], [0.0, 0.0])
    token = token_of({}, {1: [0, 0, 1], 2: [0, 1, 0]})
    gating.run(token, FLOAT32)
    columns, y = token.few[5]
    assert columns.tolist() == [[0, 1], [0, -1], [0, 1]]
    assert y.m.tolist() == [[3 * scale, 5 * scale], [3 * scale, 0], [0, 0]]
    assert y.r[1, 1] == 0
    assert (token.whole[5].tolist() if scale == 1 else []) == [True, True][: 2 * (scale == 1)]
    add.run(token, FLOAT32)
    assert token.balls[6].m.tolist() == [[8 * scale], [3 * scale], [0]]


def test_a_gate_that_nothing_opens_has_one_empty_column() -> None:
    gating, _ = gate([[-3.0, -5.0]], [[1.0, 2.0]], [0.0, 0.0])
    token = token_of({}, {1: [0, 0], 2: [0, 0]})
    gating.run(token, FLOAT32)
    columns, y = token.few[5]
    assert columns.tolist() == [[-1], [-1]]
    assert y.m.tolist() == [[0], [0]]


def test_units_of_two_kinds_are_still_added() -> None:
    W = np.array([[1.0], [2.0]])
    add = Add(Sums.of([], None, np.zeros((0, 1)), np.zeros(1), [W]), [(5, W)], 6, False)
    token = Token(unknown=np.zeros(2, bool))
    token.few[5] = np.array([[0], [1]]), exact(np.array([[7.0], [8.0]]))
    token.whole[5] = np.ones(1, bool)
    assert add.exactly(token, FLOAT32) is None
    add.run(token, FLOAT32)
    assert token.balls[6].m.tolist() == [[7], [16]]


def test_units_are_picked_and_collected_with_their_marks() -> None:
    token = token_of({1: [[1.0, 0.5, 2.0]], 2: [[3.0]]})
    Pick(1, np.array([2, 0]), 3).run(token, FLOAT32)
    assert 3 not in token.whole  # nobody has asked
    token.are_whole(1), token.are_whole(2)
    Pick(1, np.array([2, 0]), 3).run(token, FLOAT32)
    assert token.whole[3].tolist() == [True, True]
    Collect([Dense(np.arange(2), 3), Dense(np.arange(1), 2)], 4).run(token, FLOAT32)
    assert token.balls[4].m.tolist() == [[2, 1, 3]]
    assert token.knows_whole(4)
    Collect([Dense(np.arange(3), 1), Dense(np.arange(1), 2)], 5).run(token, FLOAT32)
    assert token.balls[5].m.tolist() == [[1, 0.5, 2, 3]]
    assert not token.knows_whole(5)
    assert token.are_whole(5).tolist() == [True, False, True, True]
    table = Known(np.arange(1), 8, "table", exact(np.array([[-4.0]])))
    token.choices[8] = np.zeros(1, int)
    Collect([table, Dense(np.arange(1), 2)], 6).run(token, FLOAT32)
    assert token.balls[6].m.tolist() == [[-4, 3]]
    assert token.are_whole(6).tolist() == [False, True]
