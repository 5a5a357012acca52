"""Interpolants on simplices: every term of a bound, and that no part of the box is left out, however it is cut."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import TINY, UP
from onelayer_checker.functions import simplices
from onelayer_checker.functions.simplices import sup_error
from onelayer_checker.functions.targets import Program, enclose, read_program


def program(lines: list[list[Any]], *outputs: int, n: int) -> Program:
    head = {"n": n, "d": 1, "per": "sequence", "components": len(outputs)}
    return read_program(head | {"lines": lines, "outputs": list(outputs)}, "target")


TWO = program([["x", 0, 0], ["x", 1, 0], ["mul", 0, 1], ["sin", 2], ["max", 0, 1]], 3, 4, n=2)
THREE = program([["x", 0, 0], ["x", 1, 0], ["x", 2, 0], ["mul", 0, 1], ["sub", 3, 2]], 4, n=3)


@pytest.mark.parametrize(("target", "m"), [(TWO, 2), (THREE, 3)])
def test_every_term_of_a_bound_on_a_box_of_a_simplex(target: Program, m: int) -> None:
    rng, q = np.random.default_rng(m), len(target.outputs)
    F, start, width = rng.normal(size=(4,) * m + (q,)) * 5, 0.75, 0.5
    cell = rng.integers(0, 3, (40, m))
    low = start + width * (cell + rng.random((40, m)) / 2)
    high = low + width * rng.random((40, m)) / 2 * (np.arange(40) % 4 > 0)[:, None]
    c = np.clip(low / 2 + high / 2, low, high)
    r = np.maximum(high - c, c - low) * UP + TINY
    f, steep = enclose(target, c, c, False), enclose(target, low, high, True)
    slack = 2.0**-40 * (np.abs(F).max() + 1.0)
    for order in permutations(range(m)):
        slope, first = np.empty((40, q, m)), F[tuple(cell.T)]
        for b, k in np.ndindex(40, q):
            at = cell[b].copy()
            for i in order:
                before = F[(*at, k)]
                at[i] += 1
                slope[b, k, i] = (F[(*at, k)] - before) / width
        value = first + np.einsum("bki,bi->bk", slope, c - (start + width * cell))
        gap = np.maximum(np.abs(value - f.low), np.abs(value - f.high))
        tilt = np.maximum(np.abs(slope - steep.slope_low), np.abs(slope - steep.slope_high)) * UP + slack / width
        wanted = (gap + (tilt * r[:, None, :]).sum(axis=2)) * UP + slack
        found = simplices._near_simplex(target, F, cell, order, start, width, low, high)
        np.testing.assert_array_equal(found, wanted)


def interpolant(F: Any, start: float, width: float, x: Any) -> Any:
    """At points [k, m]: from the corner of the cell along its edges, the largest coordinate first."""
    at = (x - start) / width
    cell = np.minimum(np.floor(at).astype(int), len(F) - 2)
    part, found = at - cell, np.empty((len(x), F.shape[-1]))
    for row in range(len(x)):
        corner, order = cell[row].copy(), np.argsort(-part[row], kind="stable")
        value = F[tuple(corner)].copy()
        for i in order:
            before = F[tuple(corner)]
            corner[i] += 1
            value += part[row, i] * (F[tuple(corner)] - before)
        found[row] = value
    return found


def reached(F: Any, start: float, width: float, box: tuple[float, float], target: Program | None) -> float:
    """At all vertices of a fine grid of the box, whose points lie on faces of simplices, and anywhere."""
    m, rng = F.ndim - 1, np.random.default_rng(9)
    marks = np.unique(np.clip(start + width * np.arange(0, len(F), 0.25), *box))
    X = np.stack(np.meshgrid(*[marks] * m), axis=-1).reshape(-1, m)
    X = np.concatenate([X, rng.uniform(*box, (500, m))])
    wanted = 0.0 if target is None else enclose(target, X, X, False).low
    return float(np.abs(interpolant(F, start, width, X) - wanted).max())


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("box", [(0.0, 1.0), (0.2, 0.7), (0.5, 0.5), (0.5, 1.0), (0.0, 0.0), (1.0, 1.0)])
def test_of_nothing_an_interpolant_is_as_far_as_its_largest_value(m: int, box: tuple[float, float]) -> None:
    nothing = program([["const", (0.0).hex()]], 0, 0, n=m)
    for seed in range(2):
        F = np.random.default_rng(seed).normal(size=(3,) * m + (2,))
        least = reached(F, 0.0, 0.5, box, None)
        assert least * (1 - 1e-12) <= sup_error(nothing, F, 0.0, 0.5, box, least * 1.2) <= least * 1.2


@pytest.mark.parametrize("limits", [(1 << 14, 1 << 14, 1 << 5), (3, 1 << 22, 4), (1 << 14, 20, 1 << 8), (5, 1, 1)])
def test_wherever_work_ends_the_bound_is_one_for_the_whole_box(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int]
) -> None:
    for name, value in zip(("BLOCK", "MOST", "FINEST"), limits, strict=True):
        monkeypatch.setattr(simplices, name, value)
    for seed in range(3):
        F = np.random.default_rng(seed).normal(size=(3, 3, 2))
        least = reached(F, -0.5, 0.75, (-0.4, 0.9), TWO)
        for limit in (least / 2, least * 1.1):
            found = sup_error(TWO, F, -0.5, 0.75, (-0.4, 0.9), limit)
            assert least * (1 - 1e-12) <= found
            assert limits[0] != 1 << 14 or limits[1] < 100 or limit < least or found <= limit


@pytest.mark.parametrize("where", list(np.ndindex(3, 3)))
def test_a_single_vertex_that_is_off_is_seen_from_every_side(where: tuple[int, int]) -> None:
    """The interpolant of x1 + 2 x2, but for one vertex: also if only a corner of the box is near it."""
    target = program([["x", 0, 0], ["x", 1, 0], ["add", 1, 1], ["add", 0, 2]], 3, n=2)
    at = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0), indexing="ij"), axis=-1)
    F = (at @ np.array([1.0, 2.0]))[..., None]
    F[where] += 1.0
    for box in ((0.0, 2.0), (0.0, 1.0), (1.0, 2.0), (0.9, 1.1)):
        least = reached(F, 0.0, 1.0, box, target)
        found = sup_error(target, F, 0.0, 1.0, box, max(least * 1.01, 0.01))
        assert least * (1 - 1e-12) <= found <= max(least * 1.01, 0.01)


def test_a_maximum_is_exact_along_the_simplices(monkeypatch: pytest.MonkeyPatch) -> None:
    target = program([["x", 0, 0], ["x", 1, 0], ["max", 0, 1]], 2, n=2)
    at = np.arange(4.0) * 0.25
    F = np.maximum(at[:, None], at)[..., None]
    assert sup_error(target, F, 0.0, 0.25, (0.0, 0.75), 1e-9) < 1e-10
    monkeypatch.setattr(simplices, "FINEST", 1)
    assert 0 < sup_error(target, F, 0.0, 0.25, (0.0, 0.75), 0.0) < 1e-10


def test_what_is_undefined_somewhere_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    target = program([["x", 0, 0], ["const", (-0.5).hex()], ["add", 0, 1], ["log", 2]], 3, n=1)
    monkeypatch.setattr(simplices, "FINEST", 4)
    assert sup_error(target, np.zeros((3, 1)), 0.0, 0.5, (0.0, 1.0), 1.0) == np.inf


def test_orders_beyond_so_many_get_no_program_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    target = program([["x", 0, 0], ["x", 1, 0], ["max", 0, 1]], 2, n=2)
    F, cell = np.zeros((3, 3, 1)), np.array([[0, 0], [0, 1], [1, 0]])
    low, high = cell * 0.5, cell * 0.5 + 0.5
    for most, better in ((64, [True, True, True]), (2, [True, True, True]), (1, [False] * 3)):
        monkeypatch.setattr(simplices, "MOST_ORDERS", most)
        bound = np.full(3, 100.0)
        simplices._along(target, F, cell, (0, 1), 0.0, 0.5, low, high, bound, 1.0)
        assert (bound < 100.0).tolist() == better
    bound = np.array([0.5, 1.0, np.nan])
    monkeypatch.setattr(simplices, "MOST_ORDERS", 64)
    simplices._along(target, F, cell, (0, 1), 0.0, 0.5, low, high, bound, 1.0)
    assert bound[:2].tolist() == [0.5, 1.0]
    assert 1 <= bound[2] < 1.6
