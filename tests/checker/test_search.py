"""Searched stacks against their layers, hand-made ones of every kind, in exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, Ball, exact
from onelayer_checker.core.layers import Layer, Stack, run_stack
from onelayer_checker.search import operations, stack
from onelayer_checker.search.builder import MOST_BLOCKS
from onelayer_checker.search.plan import Plan
from onelayer_checker.search.stack import Searched
from tests.checker.large import ARITHMETICS
from tests.checker.test_layers import inside, through
from tests.checker.test_steps_and_cells import column, staircase

EVERY = list(ARITHMETICS.values())


def stacked(*parts: tuple[np.ndarray, np.ndarray], size: int = 2) -> list[Layer]:
    """Groups side by side, each relu(1 - sum of its units), as two layers; each part reads its own coordinate."""
    c = len(parts)
    K = sum(len(b) for _, b in parts)
    W, bias, at = np.zeros((c, K, size)), np.zeros((K, size)), 0
    for i, (w, b) in enumerate(parts):
        rows = slice(at, at + len(b))
        W[i, rows, : b.shape[1]], bias[rows, : b.shape[1]] = w[0], b
        at += len(b)
    units = Layer(W.reshape(c, -1), bias.ravel())
    return [units, Layer(np.full((K, size, 1), -1.0), np.ones(K))]


def line(*edges: float, slope: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Cells between neighbouring edges, the outer ones open, with ramps of width 1/slope before each edge."""
    lows = [-np.inf, *edges]
    highs = [*(edge - 0.5 for edge in edges), np.inf]
    return column(*zip(lows, highs, [slope] * len(lows), strict=True))


def last(rng, inputs: int, outputs: int = 2, whole: bool = False) -> Layer:
    W, b = rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)
    return Layer(np.round(W * 9), np.round(b * 9)) if whole else Layer(W, b)


def carried(cells: list[Layer], coordinate: int) -> list[Layer]:
    """One more group, which is relu of a coordinate."""
    units, groups = cells
    size = groups.weight.shape[1]
    more = np.zeros((len(units.weight), size))
    more[coordinate, 0] = 1
    units = Layer(np.concatenate([units.weight, more], axis=1), np.append(units.bias, np.zeros(size)))
    own = np.zeros((1, size, 1))
    own[0, 0] = 1
    return [units, Layer(np.concatenate([groups.weight, own]), np.append(groups.bias, 0.0))]


def gates(counts: list[int], least: int) -> Layer:
    """Units that are on where one of several families and one of another are: sums of two ones, less one."""
    pairs = [(i, j) for i in range(counts[0]) for j in range(counts[1])]
    while len(pairs) < least:
        pairs *= 2
    W = np.zeros((sum(counts), len(pairs)))
    for k, (i, j) in enumerate(pairs):
        W[i, k] = W[counts[0] + j, k] = 1
    return Layer(W, np.full(len(pairs), -1.0))


def hand_made(name: str, rng) -> list[Layer]:
    cells, other = line(2, 4, 6, slope=4.0), line(3, 5, slope=2.0)
    steps = staircase(1, 3, 5, 7)
    if name == "cells":
        return [*stacked(cells), last(rng, 4)]
    if name == "cells, whole answers":
        return [*stacked(cells), last(rng, 4, whole=True)]
    if name == "cells with gaps":
        return [*stacked(column((0, 1, 4), (2, 3, 4), (4, 5, 4))), last(rng, 3)]
    if name == "steps":
        return [*stacked(steps, size=1), last(rng, 4, whole=True)]
    if name == "steps that add up to fractions":
        return [*stacked(steps, size=1), last(rng, 4)]
    if name == "cells and steps":
        return [*stacked(cells, steps), last(rng, 8, whole=True)]
    if name == "two lines":
        return [*stacked(cells, other), last(rng, 7)]
    if name == "two lines, whole answers":
        return [*stacked(cells, other), last(rng, 7, whole=True)]
    if name == "two lines in blocks":
        W = np.round(rng.standard_normal((2, 4, 3)) * 9)
        return [
            *stacked(cells, line(3, 5, 7)),
            Layer(W, np.round(rng.standard_normal(6))),
            last(rng, 6, whole=True),
        ]
    if name == "more layers":
        return [*stacked(cells), last(rng, 4, 5), last(rng, 5, 3), last(rng, 3)]
    if name == "a diagonal layer":
        return [*stacked(cells), Layer(rng.standard_normal((4, 1, 1)), rng.standard_normal(4)), last(rng, 4)]
    if name == "a diagonal layer last":
        return [*stacked(cells), last(rng, 4, 3), Layer(rng.standard_normal((3, 1, 1)), rng.standard_normal(3))]
    if name in ("few gates", "many gates"):
        made = gates([4, 3], 8 if name == "many gates" else 1)
        made = made if name == "many gates" else Layer(made.weight[:, :5], made.bias[:5])
        return [*stacked(cells, other), made, last(rng, len(made.bias), whole=True)]
    if name == "gates of fractions":
        made = gates([4, 3], 8)
        return [*stacked(cells, other), Layer(made.weight * 0.7, made.bias * 0.7 - 0.1), last(rng, len(made.bias))]
    if name == "gates and a carried number":
        made = gates([4, 3], 8)
        W = np.concatenate([made.weight, np.full((1, len(made.bias)), 0.125)])
        return [*carried(stacked(cells, other), 0), Layer(W, made.bias - 1), last(rng, len(made.bias))]
    if name == "a carried number":
        return [*carried(stacked(cells, steps), 1), last(rng, 9, 3, whole=True), last(rng, 3)]
    if name == "a staircase in a row":
        table = np.sort(rng.integers(0, 9, (4, 5)), axis=1).astype(float)
        first = carried(stacked(cells, (np.zeros((1, 0, 1)), np.zeros((0, 1)))), 1)
        units = Layer(np.concatenate([table, np.full((1, 5), -1.0)]), np.zeros(5))
        groups = Layer(np.full((5, 1, 1), -1.0), np.ones(5))
        return [*first, units, groups, last(rng, 5, whole=True)]
    if name == "constants":
        W = np.round(rng.standard_normal((4, 6)) * 9)
        W[:, 2:4] = 0
        return [*stacked(cells), Layer(W, np.array([1.0, -1, 2, -3, 5, 0])), last(rng, 6, whole=True)]
    raise KeyError(name)


#: Every kind of stack, and the share of random coordinates that is decided at least.
STACKS = {
    "cells": 0.5,
    "cells, whole answers": 0.5,
    "cells with gaps": 0.5,
    "steps": 0.5,
    "steps that add up to fractions": 0.0,
    "cells and steps": 0.4,
    "two lines": 0.3,
    "two lines, whole answers": 0.3,
    "two lines in blocks": 0.3,
    "more layers": 0.5,
    "a diagonal layer": 0.5,
    "a diagonal layer last": 0.5,
    "few gates": 0.3,
    "many gates": 0.3,
    "gates of fractions": 0.3,
    "gates and a carried number": 0.3,
    "a carried number": 0.05,  # only whole ones are added to a staircase
    "a staircase in a row": 0.3,
    "constants": 0.5,
}


def coordinates(rng, c: int, rows: int) -> Ball:
    """On cells, on ramps, on edges and just beside them, known exactly or not."""
    m = rng.integers(0, 36, (rows, c)) / 4 + rng.choice([0, 0, 0.0625, 2.0**-40, -(2.0**-51)], (rows, c))
    r = np.broadcast_to(rng.choice([0, 0, 2.0**-42, 0.25], (rows, 1)), m.shape)
    return Ball(np.abs(m), r.copy())


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
@pytest.mark.parametrize("name", STACKS)
def test_what_is_found_contains_what_the_layers_compute(name, A) -> None:
    rng = np.random.default_rng([len(name), len(A.name)])
    decided = total = 0
    for _ in range(3):
        layers = hand_made(name, rng)
        plan = Plan.of(tuple(layers), A)
        if plan is None:
            assert STACKS[name] == 0
            continue
        x = coordinates(rng, layers[0].inputs, 24)
        y, unknown = plan.run(x, A)
        assert y.m.shape == (24, len(layers[-1].bias))
        for row in np.flatnonzero(~unknown):
            assert np.isfinite(y.r[row]).all()
            for _ in range(2):
                sign = rng.integers(-1, 2, x.m.shape[1]).tolist()
                point = [Fraction(m) + s * Fraction(r) for m, s, r in zip(x.m[row], sign, x.r[row], strict=True)]
                assert inside(through(layers, [max(p, Fraction(0)) for p in point]), y, int(row))
        decided, total = decided + int((~unknown).sum()), total + 24
    assert total == 0 or decided / total >= STACKS[name], (decided, total)


@pytest.mark.parametrize("name", [name for name, share in STACKS.items() if share])
def test_float32_computes_what_was_found(name) -> None:
    """Where a number is said to be exact, plain float32 gives it; elsewhere it gives a number in the ball."""
    rng = np.random.default_rng(len(name))
    layers = [
        Layer(*(a.astype(np.float32).astype(np.float64) for a in (layer.weight, layer.bias)))
        for layer in hand_made(name, rng)
    ]
    plan = Plan.of(tuple(layers), FLOAT32)
    assert plan is not None
    m = (rng.integers(0, 36, (60, layers[0].inputs)) / 4).astype(np.float32)
    y, unknown = plan.run(exact(m), FLOAT32)
    x = m
    for i, layer in enumerate(layers):
        W, b = layer.weight.astype(np.float32), layer.bias.astype(np.float32)
        W = W if W.ndim == 3 else W[None]
        x = np.maximum(x, 0) if i else x
        x = np.einsum("tga,gab->tgb", x.reshape(len(x), *W.shape[:2]), W).reshape(len(x), -1) + b
    known = ~unknown
    assert known.mean() > 0.3
    assert (np.abs(x.astype(np.float64) - y.m)[known] <= y.r[known]).all()


def test_whole_answers_are_exact() -> None:
    rng = np.random.default_rng(1)
    for name in ("cells", "cells, whole answers", "two lines, whole answers", "cells and steps", "many gates"):
        plan = Plan.of(tuple(hand_made(name, rng)), FLOAT32)
        y, unknown = plan.run(
            exact(np.array([[0.5, 0.5], [2.5, 3.5]])[:, : 1 if "cells," in name or name == "cells" else 2]), FLOAT32
        )
        assert not unknown.any()
        if name != "cells":
            assert not y.r.any(), name


def test_layers_of_another_kind_are_evaluated() -> None:
    rng = np.random.default_rng(2)
    full = (last(rng, 2, 6), last(rng, 6, 4), last(rng, 4))
    assert Plan.of(full, REAL) is None
    assert Plan.of((last(rng, 2, 4), Layer(rng.standard_normal((2, 2, 1)), np.ones(2)), last(rng, 2)), REAL) is None
    blocks = [*stacked(line(2, 4, 6)), last(rng, 4, MOST_BLOCKS + 1)]
    many = Layer(np.ones((MOST_BLOCKS + 1, 1, 2)), np.zeros(2 * MOST_BLOCKS + 2))
    assert Plan.of((*blocks, many, last(rng, 2 * MOST_BLOCKS + 2)), REAL) is None
    x = Ball(rng.standard_normal((5, 2)), np.full((5, 2), 0.125))
    searched, dense = Searched(full).apply(x, REAL), run_stack(full, x, REAL)
    assert searched.m.tolist() == dense.m.tolist()
    assert searched.r.tolist() == dense.r.tolist()
    assert Searched(full).disagrees(x, REAL).tolist() == []


def test_what_the_search_leaves_open_is_evaluated(monkeypatch) -> None:
    """As far as there is time for it; beyond, nothing is known."""
    layers = tuple(hand_made("cells", np.random.default_rng(3)))
    searched = Searched(layers)
    t = np.array([[0.5], [1.9], [2.5], [1.8], [3.9], [4.5]])  # on a ramp: 1, 3 and 4
    plan = searched.plan(REAL)
    assert plan is searched.plan(REAL)
    assert plan.run(exact(t), REAL)[1].tolist() == [False, True, False, True, True, False]
    y, dense = searched.apply(exact(t), REAL), run_stack(layers, exact(t), REAL)
    assert (np.abs(y.m - dense.m) <= y.r + dense.r).all()
    assert (y.r < 1e-9).all()
    assert searched.work == sum(layer.weight.size for layer in layers)
    for rows in (0, 1, 2, 3):
        monkeypatch.setattr(stack, "WORK", rows * searched.work)
        y = searched.apply(exact(t), REAL)
        open_ = np.isinf(y.r).all(axis=1)
        assert open_.tolist() == [False, rows < 1, False, rows < 2, rows < 3, False]
        assert (np.abs(y.m - dense.m) <= y.r + dense.r).all()


def test_a_search_that_is_wrong_is_found_out(monkeypatch) -> None:
    """Wherever a sample has another answer; of many samples, some are looked at, the ends among them."""
    layers = tuple(hand_made("cells", np.random.default_rng(4)))
    t = exact(np.linspace(0.2, 1.2, 50)[:, None])
    for wrong in ([0], [49], [7, 31], []):
        searched = Searched(layers)
        plan = searched.plan(REAL)

        class Wrong:
            widest = plan.widest

            def run(self, x: Ball, A, wrong=wrong, plan=plan):
                y, unknown = plan.run(x, A)
                m = y.m.copy()
                m[np.isin(x.m[:, 0], t.m[wrong, 0])] += 1
                return Ball(m, y.r), unknown

        searched.plans["real"] = Wrong()
        assert searched.disagrees(t, REAL).tolist() == wrong
        monkeypatch.setattr(stack, "ALL", 0)
        monkeypatch.setattr(stack, "WORK", 10 * searched.work)
        some = searched.disagrees(t, REAL).tolist()
        assert set(some) <= set(wrong)
        if wrong in ([0], [49]):
            assert some == wrong
        monkeypatch.undo()


def test_what_is_not_certain_contradicts_nothing() -> None:
    layers = tuple(hand_made("cells", np.random.default_rng(5)))
    searched = Searched(layers)
    y, unknown = np.full((3, 2), 99.0), np.array([True, True, True])

    class Open:
        widest = 1

        def run(self, *_):
            return Ball(y, np.zeros_like(y)), unknown

    searched.plans["real"] = Open()
    assert searched.disagrees(exact(np.full((3, 1), 0.5)), REAL).tolist() == []
    unknown[1] = False
    assert searched.disagrees(exact(np.full((3, 1), 0.5)), REAL).tolist() == [1]
    y[1] = np.nan
    assert searched.disagrees(exact(np.full((3, 1), 0.5)), REAL).tolist() == [1]


def test_more_live_units_than_allowed_leave_a_token_open(monkeypatch) -> None:
    layers = tuple(hand_made("many gates", np.random.default_rng(6)))
    t = exact(np.array([[0.5, 0.5]]))
    assert not Plan.of(layers, REAL).run(t, REAL)[1].any()
    monkeypatch.setattr(operations, "MOST_LIVE", 0)
    assert Plan.of(layers, REAL).run(t, REAL)[1].all()


def test_short_stacks_are_not_searched() -> None:
    from onelayer_checker.core.graph import build
    from onelayer_checker.search.stack import accelerate

    T = {f"attention.W_{name}": np.zeros((1, 1, 1)) for name in "QKVO"}
    T |= {"readout.0.weight": np.ones((1, 1)), "readout.0.bias": np.zeros(1)}
    for i, layer in enumerate(hand_made("cells", np.random.default_rng(7)), 1):
        T |= {f"readout.{i}.weight": layer.weight, f"readout.{i}.bias": layer.bias}
    network = accelerate(build(T))
    assert isinstance(network.readout, Searched)
    assert type(network.feedforward) is Stack
    assert network.readout.widest == 64
    network.readout.plan(REAL)
    assert network.readout.widest >= 64
