"""From layers to a plan, step by step: what is looked up, what is gated, what is evaluated, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, Ball, exact
from onelayer_checker.core.layers import Layer, Stack, run_stack
from onelayer_checker.search import plan as planning
from onelayer_checker.search.builder import (
    FEW_UNITS,
    FIRST,
    LONG,
    MOST_BLOCKS,
    NONE,
    Builder,
    NotSearched,
    tabled,
)
from onelayer_checker.search.operations import Add, Collect, Decide, DecideInRow, Evaluate, Gate, Pick
from onelayer_checker.search.parts import Dense, Few, Known, Rows
from onelayer_checker.search.plan import Plan, Planner, folded, spread
from onelayer_checker.search.stack import Searched, accelerate
from onelayer_checker.search.sums import Sums
from tests.checker.test_search import STACKS, hand_made, last, line, stacked

ONE_TABLE = ["Decide", "Collect"]
#: The operations of each kind of stack, and about how much work they are.
PLANS = {
    "cells": (ONE_TABLE, 1120),
    "cells, whole answers": (ONE_TABLE, 1120),
    "cells with gaps": (ONE_TABLE, 1120),
    "steps": (ONE_TABLE, 1120),
    "steps that add up to fractions": (None, 609.6),
    "cells and steps": (["Decide", "Decide", "Add"], 1240),
    "two lines": (["Decide", "Decide", "Add"], 1240),
    "two lines, whole answers": (["Decide", "Decide", "Add"], 1240),
    "two lines in blocks": (["Decide", "Decide", "Add"], 1240),
    "more layers": (ONE_TABLE, 1120),
    "a diagonal layer": (ONE_TABLE, 1120),
    "a diagonal layer last": (ONE_TABLE, 1120),
    "few gates": (["Decide", "Decide", "Add", "Evaluate"], 1415.2),
    "many gates": (["Decide", "Decide", "Gate", "Add"], 1620),
    "gates of fractions": (["Decide", "Decide", "Gate", "Add"], 1620),
    "gates and a carried number": (["Decide", "Decide", "Evaluate", "Evaluate", "Gate", "Add"], 1884.36),
    "a carried number": (["Decide", "Decide", "Evaluate", "Evaluate", "Add", "Evaluate"], 1627.96),
    "a staircase in a row": (["Decide", "Evaluate", "Evaluate", "DecideInRow", "Collect"], 1324.36),
    "constants": (["Decide", "Add"], 1180),
}


def kinds(operations) -> list[str]:
    return [type(operation).__name__ for operation in operations]


def not_written_again(plan: Plan) -> None:
    """Neither the choice nor the slot that are there at the start; and every name is given once."""
    slots = [o.into for o in plan.operations if not isinstance(o, Decide | DecideInRow)]
    choices = [o.by for o in plan.operations if isinstance(o, Decide | DecideInRow)]
    assert FIRST not in slots
    assert NONE not in choices
    assert len(set(slots)) + len(set(choices)) == len(plan.operations)


@pytest.mark.parametrize("name", STACKS)
def test_each_kind_of_stack_takes_these_operations(name) -> None:
    layers = tuple(hand_made(name, np.random.default_rng(0)))
    wanted, effort = PLANS[name]
    plan, searched = Plan.of(layers, REAL), Searched(layers)
    assert (plan and kinds(plan.operations)) == wanted
    assert searched.effort(REAL) == pytest.approx(effort)
    if plan is not None:
        assert plan.effort(REAL) == pytest.approx(effort)
        not_written_again(plan)
    else:
        assert searched.effort(REAL) == Stack(layers).effort(REAL)


def known(units, rows: int, by: int = 1, table: bool = True) -> Known:
    units = np.asarray(units)
    value = np.arange(rows * len(units), dtype=float).reshape(rows, len(units))
    return Known(units, by, "table" if table else "one", exact(value) if table else None)


def test_units_with_balls_are_put_together() -> None:
    few, dense = known(range(FEW_UNITS), LONG + 1), Dense(np.arange(20, 23), 5)
    for part, joins in (
        (few, True),
        (known(range(FEW_UNITS + 1), LONG + 1), False),
        (known(range(FEW_UNITS), LONG), False),
        (known(range(2), 0, table=False), False),
        (Few(np.arange(3), 4), False),
    ):
        builder = Builder(REAL)
        found = builder.merged([part, dense])
        if joins:
            (whole,) = found
            assert whole.units.tolist() == [*range(FEW_UNITS), 20, 21, 22]
            ((collect,)) = builder.operations
            assert isinstance(collect, Collect)
            assert collect.parts == [part, dense]
            assert whole.slot == collect.into != dense.slot
        else:
            assert found == [part, dense]
            assert builder.operations == []
    builder = Builder(REAL)
    alone = known([0], 2)
    assert builder.merged([alone]) == [alone]
    assert builder.operations == []
    (whole,) = builder.merged([known([3, 1], 2)], every=True)
    assert isinstance(whole, Dense)
    assert whole.units.tolist() == [3, 1]
    assert kinds(builder.operations) == ["Collect"]
    assert isinstance(builder.merged([known([0], 2, table=False)], every=True)[0], Known)


def test_a_part_inside_a_block() -> None:
    builder = Builder(REAL)
    dense, table, one = Dense(np.array([4, 2, 7]), 3), known([4, 2, 7], 2), known([4, 2, 7], 0, table=False)
    for part in (dense, table, one):
        assert builder.within(part, 5, 7) is None
        assert builder.within(part, 0, 2) is None
        assert builder.within(part, 8, 9) is None
        assert builder.within(part, 2, 8).units.tolist() == [2, 0, 5]
    assert builder.operations == []
    inside = builder.within(table, 2, 7)
    assert inside.units.tolist() == [2, 0]
    assert inside.table.m.tolist() == [[0, 1], [3, 4]]
    inside = builder.within(dense, 4, 8)
    assert inside.units.tolist() == [0, 3]
    ((pick,)) = builder.operations
    assert isinstance(pick, Pick)
    assert (pick.slot, pick.columns.tolist(), pick.into) == (3, [0, 2], inside.slot)
    for part in (one, Few(np.array([4, 2, 7]), 1)):
        with pytest.raises(NotSearched):
            builder.within(part, 2, 7)


def test_units_that_nothing_feeds() -> None:
    b, units = np.array([2.0, -1.0, 0.0, 3.0]), np.array([True, True, True, False])
    (part,) = Builder(REAL).constants(units, b, False)
    assert (part.units.tolist(), part.by, part.kind, part.table.m.tolist()) == ([0], NONE, "table", [[2]])
    (part,) = Builder(REAL).constants(units, b, True)
    assert (part.units.tolist(), part.table.m.tolist()) == ([0, 1, 2], [[2, -1, 0]])
    assert Builder(REAL).constants(units & (b <= 0), b, False) == []
    assert Builder(REAL).constants(np.zeros(4, bool), b, True) == []
    (faint,) = Builder(FLOAT32).constants(np.ones(1, bool), np.array([2.0**-127]), False)
    assert faint.table.r[0, 0] >= 2.0**-127
    with pytest.raises(NotSearched):
        Builder(FLOAT32).constants(np.ones(1, bool), np.array([2.0**127]), False)


def test_a_table_after_a_layer() -> None:
    value = Ball(np.array([[-1.0, 2.0]]), np.array([[0.5, 0.0]]))
    assert Builder(REAL).after(value, True).m.tolist() == [[-1, 2]]
    assert Builder(REAL).after(value, False).m.tolist() == [[0, 2]]
    with pytest.raises(NotSearched):
        Builder(REAL).after(Ball(value.m, np.array([[0.0, np.inf]])), True)


def test_choices_written_out() -> None:
    assert tabled(known(range(2), 0, table=False)).m.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert tabled(Known(np.arange(2), 1, "upto")).m.tolist() == [[0, 0], [1, 0], [1, 1]]
    table = known(range(2), 3)
    assert tabled(table) is table.table
    assert tabled(known(range(1 << 11), 0, table=False)).m.shape == (2049, 2048)
    with pytest.raises(NotSearched):
        tabled(known(range((1 << 11) + 1), 0, table=False))


def test_blocks_that_are_fed_alike_are_evaluated_together() -> None:
    W = np.arange(12.0).reshape(2, 3, 2)
    layer = Layer(W, np.arange(4.0))
    builder = Builder(REAL)
    (found,) = builder.through([Dense(np.array([2, 0, 3, 5]), 7)], layer, True)
    ((evaluate,)) = builder.operations
    assert isinstance(evaluate, Evaluate)
    assert evaluate.layer.weight.tolist() == [
        [W[0, 2].tolist(), W[0, 0].tolist()],
        [W[1, 0].tolist(), W[1, 2].tolist()],
    ]
    assert (evaluate.slot, evaluate.into, evaluate.last) == (7, found.slot, True)
    assert found.units.tolist() == [0, 1, 2, 3]
    builder = Builder(REAL)
    found = builder.through([Dense(np.array([2, 0, 3]), 7)], layer, False)  # not as many of each
    assert kinds(builder.operations) == ["Pick", "Evaluate", "Pick", "Evaluate"]
    assert sorted(np.concatenate([part.units for part in found]).tolist()) == [0, 1, 2, 3]
    many = Layer(np.ones((MOST_BLOCKS, 2, 1)), np.zeros(MOST_BLOCKS))
    assert Builder(REAL).through([known([0], 2)], many, True)
    more = Layer(np.ones((MOST_BLOCKS + 1, 2, 1)), np.zeros(MOST_BLOCKS + 1))
    with pytest.raises(NotSearched):
        Builder(REAL).through([known([0], 2)], more, True)


def test_blocks_that_several_parts_feed_or_none_does() -> None:
    layer = Layer(np.arange(1.0, 5).reshape(2, 2, 1), np.array([5.0, -6.0]))
    builder = Builder(REAL)
    found = builder.through([Dense(np.array([0, 2]), 7), Known(np.array([1, 3]), 3, "table", SOME)], layer, True)
    assert kinds(builder.operations) == ["Pick", "Add", "Pick", "Add"]
    assert [part.units.tolist() for part in found] == [[0], [1]]
    (alone,) = Builder(REAL).through([], layer, False)
    assert (alone.units.tolist(), alone.by, alone.table.m.tolist()) == ([0], NONE, [[5]])


SOME = exact(np.array([[1.0, 2.0], [3.0, 4.0]]))


def test_only_parts_that_feed_a_sum_are_its_terms() -> None:
    W = np.array([[1.0, 0, 2], [3, 4, 0], [0, 5, 6]])
    parts, builder = [Known(np.array([k]), 1 + k, "one") for k in range(3)], Builder(REAL)
    found = builder.full(parts, W, np.zeros(3), True)
    fed = {
        part.units[0]: [rows.by for rows in o.sums.rows] for part, o in zip(found, builder.operations, strict=True)
    }
    assert fed == {0: [1, 2], 1: [2, 3], 2: [1, 3]}


def test_a_staircase_that_may_be_rounded_somewhere_is_added_up_token_by_token() -> None:
    """Up to its second step it is known; and only a token beyond is left open."""
    for first, table in ((2.0**22, True), (2.0**23, True), (2.0**23 + 1, False)):
        builder = Builder(FLOAT32)
        (part,) = builder.full([Known(np.arange(2), 1, "upto")], np.array([[first], [2.0**23]]), np.zeros(1), True)
        assert isinstance(part, Known) == table
        assert kinds(builder.operations) == [[], ["Add"]][not table]


def copied(copy: list[list[float]], bias: float = 0.0) -> tuple[Layer, ...]:
    """Copies of coordinates, three cells of each, and a number for each cell."""
    W = np.array(copy, float)
    blocks = W.shape[1]
    slopes = np.array([4.0, 0, 4, -4, 0, -4])
    cells = np.array([-6.0, -1, -14, 7, -1, 15])
    return (
        Layer(W, np.full(blocks, bias)),
        Layer(np.tile(slopes, (blocks, 1, 1)), np.tile(cells, blocks)),
        Layer(np.full((3 * blocks, 2, 1), -1.0), np.ones(3 * blocks)),
        Layer(np.arange(1.0, 3 * blocks + 1)[:, None], np.zeros(1)),
    )


def test_copies_of_coordinates_are_read_as_these() -> None:
    layers = copied([[0, 1], [1, 0]])
    rest = list(folded(layers))[1:]
    assert rest == list(layers[2:])
    t = np.array([[1.0, 2, 3], [3, 1, 2]]).T
    dense = run_stack(layers, exact(t), FLOAT32)
    searched, unknown = Plan.of(layers, FLOAT32, positive=True).run(exact(t), FLOAT32)
    assert not unknown.any()
    assert searched.m.tolist() == dense.m.tolist()
    assert searched.r.tolist() == dense.r.tolist()
    assert kinds(Plan.of(layers, FLOAT32, positive=True).operations)[:2] == ["Decide", "Decide"]


@pytest.mark.parametrize(
    ("copy", "bias"),
    [([[0, 1], [1, 1]], 0.0), ([[0, 2], [1, 0]], 0.0), ([[0, -1], [1, 0]], 0.0), ([[0, 1], [1, 0]], 1.0)],
)
def test_what_is_no_copy_is_not_folded(copy, bias) -> None:
    layers = copied(copy, bias)
    assert folded(layers) == layers


def test_only_copies_before_blocks_are_folded() -> None:
    """Each condition by itself: two layers or more, a full one and blocks, of one input each, no bias anywhere."""
    full, blocks, *rest = copied([[0, 1, 1], [1, 0, 0]])  # a coordinate may be copied twice
    for layers in ((full, blocks), (full, blocks, rest[0]), (full, blocks, *rest)):
        first, *others = folded(layers)
        assert first.weight.shape == (2, 18)
        assert others == list(layers[2:])
    diagonal = Layer(np.ones((3, 1, 1)), np.zeros(3))
    wide = Layer(np.ones((1, 3, 6)), np.zeros(6))
    square = Layer(np.eye(3), np.zeros(3))
    once_biased = Layer(full.weight, np.array([0.0, 1.0, 0.0]))
    together = Layer(np.array([[1.0, 0, 0], [1, 0, 0]]), np.zeros(3))  # a sum, though each coordinate is read once
    for layers in (
        (full,),
        (blocks,),
        (Layer(full.weight[None], full.bias), blocks),
        (full, Layer(np.ones((3, 1)), np.zeros(1))),
        (diagonal, blocks),
        (diagonal, blocks, *rest),
        (full, square),
        (full, square, blocks),
        (full, wide),
        (once_biased, blocks),
        (together, blocks),
    ):
        assert folded(layers) is layers


def test_blocks_too_large_to_be_spread_are_not_read_as_one_line() -> None:
    """Each of 130 numbers has a step of its own; as a full layer all of them would read the first."""
    K = 130
    units = Layer(np.full((K, 1, 1), -1.0), np.full(K, 2.0))
    layers = (
        units,
        Layer(np.full((K, 1, 1), -1.0), np.ones(K)),
        Layer(np.arange(1.0, K + 1)[:, None], np.zeros(1)),
    )
    assert spread(units) is units
    x = exact((np.arange(2 * K).reshape(2, K) % 3).astype(float))
    dense = run_stack(layers, x, FLOAT32)
    found = Searched(layers).apply(x, FLOAT32)
    assert found.m.tolist() == dense.m.tolist()
    assert found.r.tolist() == dense.r.tolist()


def test_small_blocks_are_spread(monkeypatch) -> None:
    """The same sums of the same numbers; large ones, and full layers, are as they were."""
    rng = np.random.default_rng(3)
    blocks = Layer(rng.integers(-4, 5, (3, 2, 4)).astype(float), rng.integers(-4, 5, 12).astype(float))
    full, x = spread(blocks), exact(rng.integers(-4, 5, (7, 6)))
    assert full.weight.shape == (6, 12)
    assert full.apply(x, FLOAT32).m.tolist() == blocks.apply(x, FLOAT32).m.tolist()
    assert spread(full) is full
    monkeypatch.setattr(planning, "MOST_SPREAD", 72)
    assert spread(blocks).weight.ndim == 2
    monkeypatch.setattr(planning, "MOST_SPREAD", 71)
    assert spread(blocks) is blocks


def test_staircases_in_blocks_are_searched() -> None:
    """Two numbers side by side, each compared with three thresholds; what is carried goes on."""
    units = np.zeros((2, 1, 4))
    units[:, 0, :3], units[:, 0, 3] = -1.0, 1.0
    bias = np.tile([1.0, 3.0, 5.0, 0.0], 2)
    sign = np.tile([-1.0, -1.0, -1.0, 1.0], 2).reshape(8, 1, 1)
    one = np.tile([1.0, 1.0, 1.0, 0.0], 2)
    last = np.zeros((2, 4, 1))
    last[:, :3, 0], last[:, 3, 0] = -2.0, 1.0
    layers = (Layer(units, bias), Layer(sign, one), Layer(last, np.zeros(2)), Layer(np.eye(2), np.zeros(2)))
    plan = Plan.of(layers, FLOAT32)
    assert plan is not None
    assert sum(isinstance(operation, Decide) for operation in plan.operations) == 2
    x = exact(np.array([[0.0, 6.0], [1.0, 5.0], [3.0, 2.0], [9.0, 4.0]]))
    y, unknown = plan.run(x, FLOAT32)
    dense = run_stack(layers, x, FLOAT32)
    assert not unknown[[0, 1]].any()
    for at in np.flatnonzero(~unknown):
        assert y.m[at].tolist() == dense.m[at].tolist()
        assert not y.r[at].any()


def test_coordinates_that_may_be_negative_are_not_folded() -> None:
    """A copy of a negative number is 0 after its ReLU."""
    layers = copied([[1]])
    x = exact(np.array([[-1.0]]))
    searched = Searched(layers).apply(x, REAL)
    assert searched.m.tolist() == run_stack(layers, x, REAL).m.tolist()


def test_a_diagonal_layer() -> None:
    builder = Builder(REAL)
    layer = Layer(np.array([2.0, 3, 4, 5]).reshape(4, 1, 1), np.array([1.0, -9, 1, 7]))
    parts = [Dense(np.array([2]), 7), Known(np.array([1, 0]), 3, "one")]
    dense, table, rest = builder.through(parts, layer, False)
    ((evaluate,)) = builder.operations
    assert (evaluate.slot, evaluate.into, evaluate.last) == (7, dense.slot, False)
    assert evaluate.layer.weight.ravel().tolist() == [4]
    assert evaluate.layer.bias.tolist() == [1]
    assert (table.kind, table.by, table.table.m.tolist()) == ("table", 3, [[0, 1], [0, 3], [0, 1]])
    assert (rest.units.tolist(), rest.table.m.tolist()) == ([3], [[7]])
    with pytest.raises(NotSearched):
        builder.through([Few(np.array([0]), 1)], layer, False)


def row(value, by: int) -> Rows:
    value = np.asarray(value, float)
    return Rows(by, value, np.abs(value), 1, True, True)


def test_choices_that_a_gate_goes_by() -> None:
    """The one that leaves fewest sums above 0, if that is at most half; or all but the largest together."""
    eye, builder = np.pad(np.eye(8), ((0, 1), (0, 0))), Builder(REAL)

    def pivots(rows, bias=-1.0) -> list[int]:
        return builder.pivots(Sums.of(rows, None, np.zeros((0, 8)), np.full(8, bias), []))

    assert pivots([row(eye, 3)]) == [3]
    assert pivots([row(eye, 3)], bias=0.0) == []
    ones = np.pad(np.ones((2, 8)), ((0, 1), (0, 0)))
    assert pivots([row(eye, 3), row(ones, 4)], bias=-2.0) == [3]
    assert pivots([row(ones, 4), row(eye, 3)], bias=-2.0) == [3]
    assert pivots([row(ones, 4), row(ones[1:], 5)], bias=-2.0) == [5, 4]
    assert pivots([row(ones, 4), row(ones[1:], 5), row(np.ones((9, 8)), 6)], bias=-3.0) == [5, 4]
    open_if_none = [row(np.pad(-np.ones((2, 8)), ((0, 1), (0, 0))), 4), row(eye, 3)]  # the last: nothing is chosen
    assert pivots(open_if_none, bias=0.0) == [3]
    half = np.repeat(np.eye(2), 4, axis=1)  # half of the sums are above 0
    assert pivots([row(half, 3)]) == []
    third = np.repeat(np.eye(3), 3, axis=1)[:, :8]
    assert pivots([row(third, 3)]) == [3]


@pytest.mark.parametrize(("last_one", "known"), [(2, True), (4, False), (5, False)])
def test_choices_together_are_one_whole_number(last_one, known) -> None:
    """Of 64 bits: thirty choices among 4 and one more, and the largest besides."""
    rows = [
        row(np.repeat([1.0, 0.0], (k - 1, 1))[:, None] * np.ones(8), by)
        for by, k in enumerate([*[4] * 30, last_one, 6], 1)
    ]
    found = Builder(REAL).pivots(Sums.of(rows, None, np.zeros((0, 8)), np.full(8, -32.0), []))
    assert set(found) == (set(range(1, 32)) if known else set())


def test_sums_that_several_parts_feed() -> None:
    W, b = np.ones((20, 9)), np.full(9, -5.0)
    W[:9] = 6 * np.eye(9)
    one, dense = Known(np.arange(9), 1, "one"), Dense(np.array([12, 10]), 5)

    def several(parts, columns=9, last=False, bias=b):
        builder = Builder(REAL)
        found = builder.several(parts, W, bias, np.arange(columns), last)
        ((operation,)) = builder.operations
        assert found.units.tolist() == list(range(columns))
        assert found.slot == operation.into
        assert isinstance(found, Few) == isinstance(operation, Gate)
        return operation, builder.widest

    gate, widest = several([one, dense])
    assert isinstance(gate, Gate)
    assert (gate.by, gate.sums.slot, gate.sums.weight.shape, widest) == ([1], 5, (2, 9), 64)
    assert isinstance(several([one], columns=8)[0], Gate)
    for columns, at_the_end in ((7, False), (9, True)):
        add, _ = several([one, dense], columns, at_the_end)
        assert isinstance(add, Add)
        assert (add.last, add.few, add.sums.bias.tolist()) == (at_the_end, [], [-5.0] * columns)
    few = Few(np.array([15, 14]), 8)
    add, _ = several([one, few])
    assert [(slot, weights.shape) for slot, weights in add.few] == [(8, (2, 9))]
    assert add.sums.slot is None
    wide = Dense(np.arange(9, 19), 5)
    assert several([wide, few])[1] == 99
    for parts in ([dense, wide], [Known(np.arange(9, 12), 1, "table", exact(np.full((1, 3), 0.5))), dense]):
        with pytest.raises(NotSearched):
            several(parts)


def rows_found(W, b=None, plain=None, block=None, parts=None, dense=(2,)) -> list[list[int]]:
    K = W.shape[1]
    planner = Planner(REAL)
    parts = parts or [Known(np.arange(2), 4, "one"), Dense(np.array(dense), 6)]
    found = planner.in_rows(
        parts,
        parts[-1],
        W.reshape(len(W), K, -1),
        np.zeros((K, 1)) if b is None else b,
        np.ones(K, bool) if plain is None else plain,
        np.zeros(K, int) if block is None else block,
    )
    for (members, part), operation in zip(found, planner.operations, strict=True):
        assert part.units.tolist() == members.tolist()
        assert (part.kind, part.by) == ("upto", operation.by)
        assert (operation.row, operation.slot) == (4, 6)
        assert operation.family.table.tolist() == [*W[:2, members].tolist(), [0] * len(members)]
        assert operation.family.slope == -W[2 + operation.family.column, members[0]]
    assert len({part.by for _, part in found}) == len(found)
    return [members.tolist() for members, _ in found]


def test_staircases_in_rows_end_where_something_else_begins() -> None:
    W = np.array([[1.0, 2, 3, 4], [2, 2, 5, 6], [-2, -2, -2, -2], [0, 0, 0, 0]])

    def changed(place, value):
        other = W.copy()
        other[place] = value
        return other

    every = [[0, 1, 2, 3]]
    assert rows_found(W) == every
    assert rows_found(W, block=np.array([0, 0, 1, 1])) == [[0, 1], [2, 3]]
    assert rows_found(W, plain=np.array([1, 0, 1, 1], bool)) == [[0], [2, 3]]
    assert rows_found(W, b=np.array([[0], [0], [1.0], [0]])) == [[0, 1], [3]]
    assert rows_found(changed((2, 1), -4)) == [[0], [1], [2, 3]]
    for slope in (2, -3, 0, -(2.0**-101), -(2.0**101), -(2.0**-100), -(2.0**100)):
        assert rows_found(changed((2, 1), slope)) == [[0], [2, 3]], slope
    for slope in (-(2.0**-99), -(2.0**99)):
        assert rows_found(changed((2, 1), slope)) == [[0], [1], [2, 3]]
    assert rows_found(changed((0, 1), 0.5)) == [[0], [1, 2, 3]]  # out of order in one row
    assert rows_found(changed((1, 3), 4.5)) == [[0, 1, 2], [3]]
    assert rows_found(changed((3, 2), 1)) == [[0, 1], [3]]  # it reads a unit of another part
    two = changed((2, 1), 0)
    two[3, 1] = -2
    assert rows_found(two, dense=(2, 3)) == [[0], [1], [2, 3]]  # along another coordinate
    both = changed((3, 1), -2)
    assert rows_found(both, dense=(2, 3)) == [[0], [2, 3]]
    wide = np.repeat(W[:, :, None], 2, axis=2)  # of two units each
    parts, block = [Known(np.arange(2), 4, "one"), Dense(np.array([2]), 6)], np.zeros(4, int)
    assert Planner(REAL).in_rows(parts, parts[-1], wide, np.zeros((4, 2)), np.ones(4, bool), block) == []


def test_only_cells_name_rows_and_each_step_is_taken_once() -> None:
    W = np.array([[1.0, 2], [2, 2], [-2, -2], [0, 0]])
    dense = Dense(np.array([2]), 6)
    for part in (Known(np.arange(2), 4, "upto"), known([0, 1], 2, by=4), Few(np.arange(2), 4)):
        assert rows_found(W, parts=[part, dense]) == []
    free = np.array([[0.0, 0], [0, 0], [-2, -2], [0, 0]])  # they read no row, and fit every part
    twice = [Known(np.arange(2), 4, "one"), Known(np.array([3]), 5, "one"), dense]
    assert rows_found(free, parts=twice) == [[0, 1]]


def test_the_output_is_in_the_order_of_the_layer() -> None:
    """Columns that several parts feed come after those that one feeds."""
    W = np.zeros((7, 4))
    W[:4, 0], W[:, 1], W[4:, 2], W[:, 3] = [1, 2, 3, 4], np.arange(7), [5, 6, 7], 1
    layers = (*stacked(line(2, 4, 6), line(3, 5, slope=2.0)), Layer(W, np.arange(4.0)))
    plan = Plan.of(layers, REAL)
    assert kinds(plan.operations)[-1] == "Pick"
    t = exact(np.array([[0.5, 0.5], [2.5, 3.5], [7.0, 9.0]]))
    y, unknown = plan.run(t, REAL)
    assert not unknown.any()
    assert y.m.tolist() == run_stack(layers, t, REAL).m.tolist()
    rng = np.random.default_rng(0)
    assert Plan.of((last(rng, 2, 4), last(rng, 4, 2)), REAL) is None


def test_nothing_is_folded_unless_it_is_said_that_no_input_is_negative() -> None:
    layers = copied([[0, 1], [1, 0]])
    plain, shorter = Plan.of(layers, FLOAT32), Plan.of(layers, FLOAT32, positive=True)
    assert plain is None or kinds(plain.operations) != kinds(shorter.operations)


@dataclass(frozen=True)
class TwoStacks:
    feedforward: Stack
    readout: Stack


def test_only_what_follows_a_relu_is_known_to_be_positive() -> None:
    """Embedded tokens may be negative; the readout's later layers read what its first gave, after a ReLU."""
    layers = copied([[0, 1], [1, 0]])
    fast = accelerate(TwoStacks(Stack(layers), Stack(layers)))
    assert (fast.feedforward.positive, fast.readout.positive) == (False, True)
    assert not Searched(layers).positive
