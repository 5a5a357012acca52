"""What a search found is compared with the dense evaluation: on which samples, and what contradicts it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from onelayer_checker.core.balls import REAL, Ball, exact
from onelayer_checker.core.graph import build
from onelayer_checker.core.layers import Layer, Stack
from onelayer_checker.search import stack
from onelayer_checker.search.stack import Searched, accelerate


class StubPlan:
    """A plan that finds what it is told to find, and remembers the rows that it was asked for."""

    def __init__(self, ball: Ball | None = None, widest: int = 64) -> None:
        self.ball, self.widest, self.asked = ball, widest, []

    def run(self, x: Ball, A) -> tuple[Ball, np.ndarray]:  # noqa: ARG002
        self.asked = x.m[:, 0].astype(int).tolist()
        return self.ball or x, np.zeros(len(x.m), bool)


def searched(plan: StubPlan, work: int = 2) -> Searched:
    return Searched((Layer(np.broadcast_to(0.0, (1, work)), np.zeros(work)),), plans={"real": plan})


@pytest.mark.parametrize(
    ("work", "rows", "most"),
    [(1 << 20, 32, None), (1 << 20, 33, 4), (1 << 22, 99, 4), (1 << 16, 512, None), (1 << 16, 513, 16)],
)
def test_all_samples_are_compared_or_as_many_as_there_is_time_for(monkeypatch, work, rows, most) -> None:
    """Some of them evenly spread, with both ends, and as many at random."""
    monkeypatch.setattr(stack, "run_stack", lambda _layers, x, _A: x)
    plan = StubPlan()
    assert searched(plan, work).disagrees(exact(np.arange(rows, dtype=float)[:, None]), REAL).tolist() == []
    if most is None:
        assert plan.asked == list(range(rows))
    else:
        spread = {int(k * (rows - 1) / (most // 2)) for k in range(most // 2 + 1)}
        drawn = set(Random(rows).choices(range(rows), k=most // 2))
        assert plan.asked == sorted(spread | drawn)


ABOVE_ONE = float(np.nextafter(1.0, 2.0))


@pytest.mark.parametrize(
    ("found", "dense", "contradicts"),
    [
        ((1, 0), (1, 0), False),
        ((0, 0), (1, 0.5), True),
        ((2, 0), (1, 0.5), True),
        ((0, 0.5), (1, 0), True),
        ((0, 0.25), (1, 0.75), False),
        ((0, 0.75), (1, 0.25), False),
        ((0, 0.5), (ABOVE_ONE, 0.5), False),  # the sum of the radii may be rounded
        ((0, np.inf), (1, 0), False),
        ((np.nan, np.inf), (1, 0), False),  # nothing is said
        ((np.nan, 0), (1, 0), True),
    ],
)
def test_balls_that_do_not_meet_contradict_each_other(monkeypatch, found, dense, contradicts) -> None:
    """In one of two numbers of the second row."""
    m, r = np.zeros((2, 2, 2))
    y = Ball(m.copy(), r.copy())
    y.m[1, 1], y.r[1, 1] = found
    m[1, 1], r[1, 1] = dense
    monkeypatch.setattr(stack, "run_stack", lambda *_: Ball(m, r))
    rows = searched(StubPlan(y)).disagrees(exact(np.zeros((2, 1))), REAL).tolist()
    assert rows == ([1] if contradicts else [])


def test_the_widest_plan_counts() -> None:
    plans = {
        "real": StubPlan(widest=80),
        "float32": StubPlan(widest=100),
        "float64": StubPlan(widest=90),
        "other": None,
    }
    assert Searched((), plans=plans).widest == 100
    assert Searched((), plans={"other": None}).widest == 64


def test_two_layers_are_evaluated() -> None:
    T = {f"attention.W_{name}": np.zeros((1, 1, 1)) for name in "QKVO"}
    T |= {
        f"readout.{i}.{name}": np.ones((1,) * axes) for i in (0, 1) for name, axes in (("weight", 2), ("bias", 1))
    }
    network = build(T)
    for count, kind in ((2, Stack), (3, Searched)):
        layers = (Layer(np.ones((1, 1)), np.zeros(1)),) * count
        assert type(accelerate(replace(network, readout=Stack(layers))).readout) is kind
