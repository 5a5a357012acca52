"""Stacks of layers, dense and searched: their balls contain what the theorems leave possible, in fractions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.checker import adversary_stacks, searched_stacks
from tests.checker.adversary_exact import Edges
from tests.proofs import opinion
from tests.proofs.edges import fractions
from tests.proofs.modules import MODULES, NAMES, run
from tests.proofs.theorems import MODEL

ROUNDS = 60


def compared(m, name: str, layers, t, seen: Counter) -> None:
    """Every output of the dense evaluation and of the search, for every row of t."""
    A = m.balls.ARITHMETICS[name]
    layers = tuple(m.layers.Layer(layer.weight, layer.bias) for layer in layers)
    t = m.balls.Ball(t.m, t.r)
    searched = m.stack.Searched(layers)
    found = {"dense": m.layers.run_stack(layers, t, A), "search": searched.apply(t, A)}
    plan = searched.plan(A)
    certain = np.zeros(len(t.m), bool) if plan is None else ~plan.run(t, A)[1]
    assert searched.disagrees(t, A).size == 0
    for row in range(len(t.m)):
        m_r = zip(fractions(t.m[row]), fractions(t.r[row]), strict=True)
        values = opinion.stack(MODEL[name], A, layers, [(a - z, a + z) for a, z in m_r])
        for way, y in found.items():
            for k, known in enumerate(values):
                assert opinion.contains(known, y.m[row, k], y.r[row, k]), (name, way, row, k)
                seen[f"{way}, exact" if y.r[row, k] == 0 else way] += bool(way == "dense" or certain[row])


def check_searched(m, name: str) -> Counter:
    """Stacks of cells, staircases, rows, gates and copies, and coordinates at their edges."""
    rng, seen = np.random.default_rng([71, len(name)]), Counter()
    A = m.balls.ARITHMETICS[name]
    known = next(a for a in (searched_stacks.FLOAT32, MODULES.balls.ARITHMETICS[name]) if a.name == A.name)
    for turn in range(ROUNDS):
        mode = searched_stacks.MODES[turn % 3]
        layers, edges, c = searched_stacks.stack(rng, known, mode)
        compared(m, name, layers, searched_stacks.points(rng, known, edges, c, 4), seen)
    return seen


def check_readouts(m, name: str) -> Counter:
    """Readouts at the ends of the format: subnormal numbers, whole numbers around 1/u, overflow."""
    rng, seen = np.random.default_rng([72, len(name)]), Counter()
    edges = Edges(name, rng)
    for _ in range(5 * ROUNDS):
        c = int(rng.integers(1, 3))
        layers, t = adversary_stacks.drawn(rng, edges, c)
        if all(np.isfinite(a).all() for layer in layers for a in layer):
            compared(m, name, [m.layers.Layer(*layer) for layer in layers], m.balls.exact(t), seen)
    return seen


CHECKS = (check_searched, check_readouts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_stacks_contain_what_the_theorems_leave_possible(check, name) -> None:
    seen = run(check, MODULES, name)
    assert set(seen) == {"dense", "dense, exact", "search", "search, exact"}
    assert min(seen.values()) >= 12, seen
