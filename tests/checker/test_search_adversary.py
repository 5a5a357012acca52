"""What a search says of random small stacks holds for every evaluation that the arithmetic allows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import UP
from onelayer_checker.core.layers import run_stack
from onelayer_checker.search.operations import Add
from onelayer_checker.search.plan import Plan
from tests.checker.large import ARITHMETICS
from tests.checker.searched_stacks import MODES, Habit, inside, points, stack

STACKS, POINTS, HABITS = 30, 12, 2


def compare(seed: list[int], A, mode: str, seen: Counter) -> None:
    rng = np.random.default_rng(seed)
    layers, edges, c = stack(rng, A, mode)
    with np.errstate(all="ignore"):
        plan = Plan.of(layers, A)
        seen["stacks"] += 1
        if plan is None:
            return
        seen["searched"] += 1
        x = points(rng, A, edges, c, POINTS)
        y, unknown = plan.run(x, A)
        dense = run_stack(layers, x, A)
        for operation in plan.operations:
            seen[type(operation).__name__] += 1
            seen["few"] += isinstance(operation, Add) and bool(operation.few)
        apart = ~(np.abs(y.m - dense.m) <= (y.r + dense.r) * UP) & np.isfinite(y.r) & ~unknown[:, None]
        assert not apart.any(), (seed, np.flatnonzero(apart.any(axis=1)))
        for i in np.flatnonzero(~unknown):
            seen["decided"] += 1
            seen["exact"] += not y.r[i].any()
            for _ in range(HABITS):
                habit = Habit(A, rng)
                t = [inside(rng, m, r, habit) for m, r in zip(x.m[i].tolist(), x.r[i].tolist(), strict=True)]
                for value, m, r in zip(habit.run(layers, t), y.m[i].tolist(), y.r[i].tolist(), strict=True):
                    if np.isfinite(r):
                        assert abs(value) < np.inf, (seed, i, value, m, r)
                        assert abs(Fraction(value) - Fraction(m)) <= Fraction(r), (seed, i, float(value), m, r)


@pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)
def test_what_is_found_contains_what_is_allowed(A) -> None:
    seen: Counter = Counter()
    for k in range(STACKS):
        for mode in MODES:
            compare([k, len(mode), len(A.name)], A, mode, seen)
    report = dict(seen)
    assert seen["searched"] >= STACKS, report
    assert seen["decided"] >= 7 * STACKS, report
    assert seen["exact"] >= 4 * STACKS, report
    assert seen["Decide"] >= 3 * STACKS, report
    assert min(seen[name] for name in ("DecideInRow", "Evaluate", "Add", "few", "Gate", "Pick", "Collect")) >= 5, (
        report
    )
