"""Where a search says that a cell or a step is on or off, cell_on or cell_off of Cells.v applies, in fractions.

Coordinates lie at the thresholds of the units, one number of the format beside them, and where they may be flushed;
balls reach up to a threshold, or one number too far.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.checker import adversary_stacks
from tests.checker.adversary_exact import BITS, Edges
from tests.proofs.edges import beside, fractions, stored
from tests.proofs.modules import MODULES, NAMES, run
from tests.proofs.theorems import MODEL, Q, Unit, cell_off, cell_on, readings

ROUNDS = 150


def units_of(f, W, b, k: int, low, high) -> list[Unit]:
    """The units of group k, each with what its coordinate may be read as; of weights zero, any coordinate."""
    found: list[Unit] = []
    for u in range(b.shape[1]):
        used = np.flatnonzero(W[:, k, u])
        assert len(used) <= 1, "a unit reads one coordinate"
        i = int(used[0]) if len(used) else 0
        found.append((readings(f, low[i], high[i]), Q(W[i, k, u]), Q(b[k, u])))
    return found


def agrees(f, A, state: str, units: list[Unit], where: object) -> None:
    """The theorem for this state applies, and no unit can overflow."""
    assert (cell_on if state == "on" else cell_off)(f, units), (A.name, state, where)
    assert sum(abs(w) * max(map(abs, reads)) + abs(b) for reads, w, b in units) + 1 < Q(A.big), (A.name, where)


def line(rng, name: str, rising: bool) -> tuple[np.ndarray, np.ndarray]:
    """Cells, or steps, in a row along one coordinate of two; edges whole, or with all their bits, in any scale."""
    _, least, most = BITS[name]
    K, c, axis = int(rng.integers(1, 11)), int(rng.integers(1, 3)), int(rng.integers(0, 2))
    slope = 2.0 ** int(rng.choice([0, 2, 10, -3]))
    scale = 2.0 ** int(rng.choice([0, 0, 0, -20, 20, least + 6, least // 2, most // 3]))
    edges = np.sort(rng.integers(-6, 9, K + 1).astype(float))
    if rng.random() < 0.4:
        edges = np.sort(edges + rng.random(K + 1))
    weight, W, b = slope / scale, np.zeros((c, K, 1 if rising else 2)), np.zeros((K, 1 if rising else 2))
    if rng.random() < 0.15:  # faint: slopes or biases at the edge of what may be flushed
        weight = 2.0 ** int(least + rng.integers(-1, 6))
        scale = slope / weight
    steep = rng.random() < 0.1  # edges so near 0 that float64 has no number for them
    for k in range(K):
        at = min(axis, c - 1) if rng.random() < 0.97 else 0
        W[at, k, 0], b[k, 0] = -weight, edges[k] * scale * weight
        if not rising:
            steeper = float(rng.choice([1, 1, 0.25, 8]))  # ends may lie in another order than beginnings
            W[at, k, 1], b[k, 1] = weight * steeper, -edges[k + 1] * scale * weight * steeper
            if rng.random() < 0.5:
                b[k, 0] += float(rng.choice([1, 2, 0.5]))
    if steep:
        W, b = np.sign(W) * 2.0 ** (most - 34), np.sign(b) * 2.0 ** (least + 7)
    if rising and rng.random() < 0.5:
        W = -W
    if rising and rng.random() < 0.4:  # a unit that is never above 0
        W, b = (
            np.concatenate([W, 0 * W], axis=2),
            np.concatenate([b, -np.abs(rng.choice([0, 1, 2.0**least / 2], b.shape))], 1),
        )
    if rng.random() < 0.1:
        W[:, -1, 0], b[-1, 0] = 0, float(rng.choice([0, -1, 1, 2, 0.5]))
    return finite(name, W), finite(name, b)


def finite(name: str, a: np.ndarray) -> np.ndarray:
    """As numbers of the format; what is none becomes 1."""
    kept = a.astype(np.float32).astype(np.float64) if name == "float32" else a
    return np.where(np.isfinite(kept), kept, 1.0)


def coordinates(rng, m, name: str, W, b, count: int = 12):
    """Balls whose ends lie at the thresholds of the units, or beside them."""
    tiny, c, rows = 2.0 ** BITS[name][1], len(W), []
    slopes = [(W[i, k, u], b[k, u]) for i, k, u in zip(*np.nonzero(W), strict=True)]
    places = [q for w, x in slopes for q in (-x / w, (1 - x) / w)]
    places = [p for p in places if np.isfinite(p)] + [0.0, tiny / 2, -tiny / 2, tiny, -tiny / 4, 1.0]
    for _ in range(count):
        near = [p for p in beside(name, float(rng.choice(places))) if np.isfinite(p)] or [0.0]
        first, second = float(rng.choice(near)), float(rng.choice(places))
        width = float(rng.choice([0.0, 0.0, abs(second - first) / 2, tiny / 2, abs(first) * 2.0**-20]))
        middle = first + width * float(rng.choice([-1, 1]))
        rows.append((middle, width) if np.isfinite(middle + width) else (first, 0.0))
    M = np.array([[stored(name, r[0]) if r[1] == 0 else r[0]] for r in rows])
    others = rng.choice([0.0, 1.0, -3.0], (len(rows), c))
    at = int(rng.integers(c))
    others[:, [at]] = M
    R = np.zeros_like(others)
    R[:, at] = [r[1] for r in rows]
    return m.balls.Ball(others, R)


def ends(t, row: int):
    m, r = fractions(t.m[row]), fractions(t.r[row])
    return [a - z for a, z in zip(m, r, strict=True)], [a + z for a, z in zip(m, r, strict=True)]


def check_cells(m, name: str) -> Counter:
    """families and Cells.decide: the cell that is named is on, and all others are off."""
    rng = np.random.default_rng([51, len(name)])
    A, f, edges, seen = m.balls.ARITHMETICS[name], MODEL[name], Edges(name, rng), Counter()
    for turn in range(2 * ROUNDS):
        if turn % 3:
            W, b = line(rng, name, rising=False)
            t = coordinates(rng, m, name, W, b)
        else:
            W, b, point = adversary_stacks.cells(rng, edges, int(rng.integers(1, 3)))
            W, b, point = (finite(name, a) for a in (W, b, point))
            t = m.balls.exact(point) if turn % 2 else coordinates(rng, m, name, W, b)
        plain, block = rng.random(len(b)) < 0.9, np.sort(rng.integers(0, 2, len(b)))
        listed, _ = m.cells.families(W, b, plain, block)
        for start, family in listed:
            own = range(start, start + len(family.on_low))
            assert plain[own].all(), "a group of another kind"
            assert len(set(block[own].tolist())) == 1, "a family lies in one block"
            found = family.decide(t, A).tolist()
            for row, j in enumerate(found):
                if j < 0:
                    continue
                low, high = ends(t, row)
                for k in own:
                    state = "on" if k - start == j else "off"
                    agrees(f, A, state, units_of(f, W, b, k, low, high), (W[:, k], b[k], t.m[row], t.r[row]))
                    seen[state] += 1
    return seen


def check_stairs(m, name: str) -> Counter:
    """staircases and Steps.decide: this many steps are on, and all others are off."""
    rng = np.random.default_rng([52, len(name)])
    A, f, seen = m.balls.ARITHMETICS[name], MODEL[name], Counter()
    for _ in range(2 * ROUNDS):
        W, b = line(rng, name, rising=rng.random() < 0.9)
        t, plain = coordinates(rng, m, name, W, b), rng.random(len(b)) < 0.95
        block = np.sort(rng.integers(0, 2, len(b)))
        listed = m.cells.staircases(W, b, plain, block)
        for order, steps in listed:
            assert plain[order].all(), "a group of another kind"
            assert len(set(block[order].tolist())) == 1, "a staircase lies in one block"
            found = steps.decide(t, A).tolist()
            for row, j in enumerate(found):
                low, high = ends(t, row)
                for place, k in enumerate(order.tolist() if j >= 0 else ()):
                    state = "on" if place < j else "off"
                    agrees(f, A, state, units_of(f, W, b, k, low, high), (W[:, k], b[k], t.m[row], t.r[row]))
                    seen[state] += 1
    return seen


def check_rows_of_steps(m, name: str) -> Counter:
    """RowSteps.decide: unit g is table[row, g] - slope t, of a coordinate that is not negative."""
    rng = np.random.default_rng([53, len(name)])
    A, f, seen = m.balls.ARITHMETICS[name], MODEL[name], Counter()
    _, least, most = BITS[name]
    for turn in range(2 * ROUNDS):
        G, slope = int(rng.integers(1, 9)), 2.0 ** int(rng.choice([0, 1, -2, 40, -40, 99, least + 1]))
        table = rng.integers(-4, 9, (3, G)) / float(rng.choice([1, 2, 3]))
        table = table * 2.0 ** float(rng.choice([0, 0, 0, 30, -30, least + 3, least + 5, least, most - 4]))
        table = np.sort(finite(name, table), axis=1)
        row = rng.integers(0, 3, 12)
        one = np.array([[[-slope] * G]]).reshape(1, G, 1)
        balls = [coordinates(rng, m, name, one, table[r][:, None], count=1) for r in row]
        t = m.balls.Ball(*(np.abs(np.concatenate([getattr(x, part) for x in balls])) for part in "mr"))
        if turn % 5 == 0:  # far away
            t = m.balls.Ball(np.full_like(t.m, 2.0 ** int(most - rng.integers(2, 12))), 0 * t.r)
        steps = m.steps.RowSteps.of(0, slope, table)
        found = steps.decide(t, row, A).tolist()
        assert (steps.decide(t, np.full(12, -1), A) < 0).all(), "no row was chosen"
        for k, j in enumerate(found):
            low, high = ends(t, k)
            reads = readings(f, max(low[0], Q(0)), high[0])  # after ReLU
            for g in range(G if j >= 0 else 0):
                state = "on" if g < j else "off"
                agrees(
                    f, A, state, [(reads, Q(-slope), Q(table[row[k], g]))], (slope, table[row[k]], t.m[k], t.r[k])
                )
                seen[state] += 1
    return seen


def check_ends(m, name: str) -> Counter:
    """ball_encloses and reads_within: `ends` contain what every point of a ball may be read as; `low` and `high`
    contain the points. within_range: nothing overflows. _upto counts."""
    rng = np.random.default_rng([54, len(name)])
    A, f, edges, seen = m.balls.ARITHMETICS[name], MODEL[name], Edges(name, rng), Counter()
    for _ in range(2 * ROUNDS):
        r = np.abs(edges.array(3, 1, sparse=0.5, kind="mixed")) * float(rng.choice([0, 1, 2.0**-30]))
        t = m.balls.Ball(edges.array(3, 1, sparse=0.1, kind="mixed"), r)
        largest, units = abs(edges.number("mixed")), int(rng.integers(1, 9))
        low, high = m.steps.ends(t, 0, A)
        fits = m.steps.within_range(low, high, largest, units, A)
        inside = t.low[:, 0], t.high[:, 0]
        for k in range(3):
            a, z = ends(t, k)
            if np.isfinite(low[k]) and np.isfinite(high[k]):
                assert Q(low[k]) <= min(readings(f, a[0], z[0])), (t.m[k], t.r[k])
                assert Q(high[k]) >= max(readings(f, a[0], z[0])), (t.m[k], t.r[k])
                assert Q(inside[0][k]) <= a[0] <= z[0] <= Q(inside[1][k])
                seen["ends"] += 1
            if fits[k]:
                most = max(abs(a[0]), abs(z[0]))
                assert units * (most * Q(largest) + Q(largest)) + 1 < Q(A.big)
                seen["fits"] += 1
        G = int(rng.integers(1, 10))
        table = np.sort(rng.choice([edges.number("mixed") for _ in range(4)], (2, G)), axis=1)
        row, key = rng.integers(0, 2, 4), rng.choice([*table.ravel(), *beside(name, table[0, 0])], 4)
        for inclusive in (True, False):
            counted = m.steps._upto(table, row, key, inclusive).tolist()
            rows = [[Q(x) for x in table[r].tolist()] for r in row]
            wanted = [
                sum(x < Q(k) or (inclusive and x == Q(k)) for x in xs) for xs, k in zip(rows, key, strict=True)
            ]
            assert counted == wanted
            seen["counted"] += 1
    return seen


CHECKS = {
    check_cells: {"on", "off"},
    check_stairs: {"on", "off"},
    check_rows_of_steps: {"on", "off"},
    check_ends: {"ends", "fits", "counted"},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_theorem_applies_wherever_something_is_decided(check, name) -> None:
    seen = run(check, MODULES, name)
    assert set(seen) >= CHECKS[check]
    assert min(seen.values()) >= 100, seen
