"""Which cells and steps are on, against their units in exact rationals, for every point of a ball."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, NORMAL, REAL, Ball, exact
from onelayer_checker.search import cells as finding
from onelayer_checker.search import steps as stepping
from onelayer_checker.search.cells import Cells, families, in_range, staircases
from onelayer_checker.search.steps import RowSteps, Steps, _upto, ends, within_range
from tests.checker.large import ARITHMETICS

EVERY = list(ARITHMETICS.values())


def pre(w, b, low: Fraction, high: Fraction, tiny: Fraction) -> tuple[Fraction, Fraction]:
    """The least and the largest value of w t + b for t between low and high, where a subnormal t may be 0."""
    points = [low, high] + [Fraction(0)] * (low < tiny and high > -tiny)
    values = [Fraction(w) * t + Fraction(b) for t in points]
    return min(values), max(values)


def groups(W, b, t: Ball, row: int, A) -> list[str]:
    """Of each group, relu(1 - sum of units), whether it is "on", exactly 1, "off", exactly 0, or "open"."""
    tiny, found = Fraction(A.tiny), []
    low, high = ([Fraction(x) for x in part[row].tolist()] for part in (t.m - t.r, t.m + t.r))
    for k in range(b.shape[0]):
        least, most = [], []
        for u in range(b.shape[1]):
            a = z = Fraction(b[k, u])
            for i in range(len(W)):
                if W[i, k, u]:
                    one, other = pre(W[i, k, u], 0.0, low[i], high[i], tiny)
                    a, z = a + one, z + other
            least.append(a)
            most.append(z)
        on, off = all(z <= 0 for z in most), any(a >= 1 for a in least)
        found.append("on" if on else "off" if off else "open")
    return found


def column(*edges: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Cells along one coordinate: on from low to high, and ramps of width 1/slope; infinite ends have no unit."""
    W, b = np.zeros((1, len(edges), 2)), np.zeros((len(edges), 2))
    for k, (low, high, slope) in enumerate(edges):
        if low > -np.inf:
            W[0, k, 0], b[k, 0] = -slope, slope * low
        if high < np.inf:
            W[0, k, 1], b[k, 1] = slope, -slope * high
    return W, b


def only_family(W, b, block=None) -> Cells:
    K = len(b)
    listed, rest = families(W, b, np.ones(K, bool), np.zeros(K, int) if block is None else block)
    assert rest.tolist() == []
    ((start, cells),) = listed
    assert start == 0
    return cells


LINE = ((-np.inf, 1, 4), (1.5, 2.5, 4), (3, 3.75, 4), (4.25, np.inf, 4))


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_line_of_cells_is_searched(A) -> None:
    cells = only_family(*column(*LINE))
    at = {
        -9: 0,
        0.5: 0,
        1: 0,
        1.1: -1,
        1.25: -1,
        1.4: -1,
        1.5: 1,
        2: 1,
        2.5: 1,
        2.6: -1,
        3.2: 2,
        3.75: 2,
        4.25: 3,
        90: 3,
    }
    t = np.array(list(at), float)[:, None]
    for radius in (0.0, 2.0**-40):
        edge = [1, 1.5, 2.5, 3.75, 4.25] if radius else []
        found = cells.decide(Ball(t, np.full_like(t, radius)), A).tolist()
        for x, j, given in zip(at, at.values(), found, strict=True):
            assert given == j or (given == -1 and x in edge), (x, radius)
    wide = Ball(np.array([[2.0]]), np.array([[0.6]]))
    assert cells.decide(wide, A).tolist() == [-1]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_cell_that_is_written_twice_is_not_decided(A) -> None:
    """Two groups are on: their answers would be added."""
    line = (LINE[0], LINE[1], LINE[1], LINE[2], LINE[3])
    cells = only_family(*column(*line))
    assert cells.decide(exact(np.array([[2.0], [3.5], [0.0]])), A).tolist() == [-1, 3, 0]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_a_ramp_that_reaches_into_a_plateau_is_seen(A) -> None:
    """On the plateau the neighbour is still a little on."""
    line = ((-np.inf, 1, 0.25), (1.5, 2.5, 4), (3, np.inf, 4))  # the first ends at 5 only
    W, b = column(*line)
    listed, rest = families(W, b, np.ones(3, bool), np.zeros(3, int))
    for start, cells in listed:
        decided = cells.decide(exact(np.array([[2.0], [4.0], [0.0]])), A)
        for row, j in enumerate(decided.tolist()):
            state = groups(W, b, exact(np.array([[2.0], [4.0], [0.0]])), row, A)
            inside = state[start : start + len(cells.on_low)]
            if j >= 0:
                assert all((s == "on") == (k == j) and s != "open" for k, s in enumerate(inside))
    assert listed or rest.size
    cells = only_family(*column((-np.inf, 1, 4), (1.5, 2.5, 0.5), (3, 9, 4)))
    assert cells.decide(exact(np.array([[4.0], [0.0], [5.0]])), A).tolist() == [-1, -1, 2]


def test_where_no_cell_is_on_none_is_named() -> None:
    cells = only_family(*column((0, 1, 4), (3, 4, 4), (6, 7, 4)))
    assert cells.decide(exact(np.array([[2.0], [-5.0], [9.0], [5.0], [6.5]])), REAL).tolist() == [3, 3, 3, 3, 2]


@pytest.mark.parametrize("crowd", [1, 2, 3])
def test_a_crowded_place_stays_open(monkeypatch, crowd) -> None:
    """Cells that lie over each other in another coordinate are looked at one by one, as many as are allowed."""
    W, b = np.zeros((2, 3, 4)), np.zeros((3, 4))
    for k in range(3):  # all from 0 to 1 along the first coordinate, apart along the second
        W[0, k, :2], b[k, :2] = (-4, 4), (0, -4)
        W[1, k, 2:], b[k, 2:] = (-4, 4), (4 * 3 * k, -4 * (3 * k + 1))
    cells = only_family(W, b)
    monkeypatch.setattr(finding, "CROWD", crowd)
    t = exact(np.array([[0.5, 0.5], [0.5, 3.5], [0.5, 6.5], [0.5, 2.0], [5.0, 0.5]]))
    found = cells.decide(t, REAL).tolist()
    assert found == ([0, 1, 2, 3, 3] if crowd == 3 else [-1, -1, -1, -1, 3])


def test_many_cells_are_found_in_any_order_of_tokens(monkeypatch) -> None:
    edges = [(2.0 * k, 2.0 * k + 1, 4) for k in range(50)]
    cells = only_family(*column(*edges))
    t = np.random.default_rng(0).permutation(50) * 2.0 + 0.5
    for size in (1 << 14, 50, 1):
        monkeypatch.setattr(finding, "SORTED", size)
        assert cells.decide(exact(t[:, None]), FLOAT32).tolist() == ((t - 0.5) / 2).tolist()


def random_groups(rng, K: int, size: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Units along one coordinate each; powers of two mostly; edges on a coarse grid, so that many coincide."""
    W, b = np.zeros((c, K, size)), np.zeros((K, size))
    place = np.sort(rng.integers(-6, 7, K)) * (1 if rng.random() < 0.8 else -1)
    for k, u in np.ndindex(K, size):
        sort = rng.random()
        slope = float(rng.choice([1, 2, 4, 0.5, 3], p=[0.3, 0.2, 0.2, 0.2, 0.1])) * rng.choice([-1, 1])
        edge = float(place[k]) + rng.integers(-2, 3) / 4
        if sort < 0.85:
            i = int(rng.integers(c)) if rng.random() < 0.3 else 0
            W[i, k, u], b[k, u] = slope, -slope * edge
            if rng.random() < 0.03:
                W[(i + 1) % c, k, u] = 1
        else:
            b[k, u] = rng.choice([0, -1, 1, 2, 0.5])
    return W, b


def random_ball(rng, c: int, rows: int) -> Ball:
    m = rng.integers(-28, 29, (rows, c)) / 4 + rng.choice([0, 0, 0.125, 2.0**-53, -(2.0**-40)], (rows, c))
    return Ball(m, np.full((rows, c), float(rng.choice([0, 0, 2.0**-45, 0.25, 0.5]))))


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_families_are_decided_as_their_units_are(A) -> None:
    """Whatever groups of units are taken for cells: the one that is named is on, and all others are off."""
    rng, named, none = np.random.default_rng([1, len(A.name)]), 0, 0
    for _ in range(250):
        K, size, c = int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
        W, b = random_groups(rng, K, size, c)
        plain, block = rng.random(K) < 0.9, np.sort(rng.integers(0, 2, K))
        listed, rest = families(W, b, plain, block)
        covered = np.concatenate([np.arange(s, s + len(f.on_low)) for s, f in listed] + [rest])
        assert sorted(covered.tolist()) == list(range(K))
        t = random_ball(rng, c, 8)
        for start, cells in listed:
            own = range(start, start + len(cells.on_low))
            assert plain[own].all()
            assert len(set(block[own].tolist())) == 1
            for row, j in enumerate(cells.decide(t, A).tolist()):
                if j < 0:
                    continue
                state = groups(W, b, t, row, A)
                assert [state[k] for k in own] == ["on" if k - start == j else "off" for k in own]
                named, none = named + (j < len(own)), none + (j == len(own))
    assert named > 100
    assert none > 100


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_staircases_are_decided_as_their_units_are(A) -> None:
    rng, decided, steps_seen = np.random.default_rng([2, len(A.name)]), 0, 0
    for _ in range(300):
        K, size, c = int(rng.integers(1, 6)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
        W, b = random_groups(rng, K, size, c)
        if rng.random() < 0.7:  # one slope, and nothing beside it
            W[:, :, 1:], b[:, 1:] = 0, -rng.integers(0, 2, (K, size - 1))
            if rng.random() < 0.7:
                W[:, :, 0] = np.abs(W[:, :, 0]) * rng.choice([-1, 1])
        plain, block = rng.random(K) < 0.9, np.sort(rng.integers(0, 2, K))
        t = random_ball(rng, c, 8)
        for order, steps in staircases(W, b, plain, block):
            assert plain[order].all()
            assert len(set(block[order].tolist())) == 1
            for row, j in enumerate(steps.decide(t, A).tolist()):
                if j >= 0:
                    state = groups(W, b, t, row, A)
                    assert [state[k] for k in order] == ["on"] * j + ["off"] * (len(order) - j)
                    decided, steps_seen = decided + 1, steps_seen + j
    assert decided > 500
    assert steps_seen > 300


def staircase(*thresholds: float, slope: float = 4.0, sign: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Steps that come on beyond a threshold (sign -1), or that stay on up to it (sign 1)."""
    W = np.full((1, len(thresholds), 1), sign * slope)
    return W, -sign * slope * np.array(thresholds)[:, None]


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_staircase_is_searched(monkeypatch, few, sign) -> None:
    monkeypatch.setattr(stepping, "FEW_STEPS", few)
    W, b = staircase(1, 5, 3, 3, sign=sign)
    ((order, steps),) = staircases(W, b, np.ones(4, bool), np.zeros(4, int))
    t = exact(np.array([[0.0], [2.0], [4.0], [9.0], [0.9], [5.1]]))
    if sign < 0:
        assert order.tolist() == [0, 2, 3, 1]
        assert steps.decide(t, REAL).tolist() == [0, 1, 3, 4, -1, 4]
    else:
        assert order.tolist() == [1, 2, 3, 0]
        assert steps.decide(t, REAL).tolist() == [4, 3, 1, 0, 4, -1]


def test_staircases_end_where_something_else_begins() -> None:
    """Another coordinate, another direction, another block, a group of another kind."""
    W, b = staircase(1, 2, 3, 4, 5, 6)
    ones, zeros = np.ones(6, bool), np.zeros(6, int)

    def runs(W, b, plain=ones, block=zeros) -> list[list[int]]:
        return sorted(sorted(order.tolist()) for order, _ in staircases(W, b, plain, block))

    assert runs(W, b) == [[0, 1, 2, 3, 4, 5]]
    assert runs(W, b, block=np.array([0, 0, 0, 1, 1, 1])) == [[0, 1, 2], [3, 4, 5]]
    assert runs(W, b, plain=np.array([1, 1, 0, 1, 1, 1], bool)) == [[0, 1], [3, 4, 5]]
    turned = W.copy()
    turned[0, 3:] *= -1
    assert runs(turned, b) == [[0, 1, 2], [3, 4, 5]]
    two = np.zeros((2, 6, 1))
    two[0, :3], two[1, 3:] = W[0, :3], W[0, 3:]
    assert runs(two, b) == [[0, 1, 2], [3, 4, 5]]
    odd = W.copy()
    odd[0, 2] = -3
    assert runs(odd, b) == [[0, 1], [3, 4, 5]]
    both = np.concatenate([W, np.where(np.arange(6)[None, :, None] == 2, 1.0, 0.0)])
    assert runs(both, b) == [[0, 1], [3, 4, 5]]
    more = np.concatenate([W, np.zeros_like(W)], axis=2), np.concatenate([b, np.zeros_like(b)], axis=1)
    assert runs(*more) == [[0, 1, 2, 3, 4, 5]]
    more[1][2, 1] = 0.25  # a unit that is always on a little
    assert runs(*more) == [[0, 1], [3, 4, 5]]
    more[0][0, 2, 1] = 1.0  # a second slope: a cell
    assert [2] not in runs(*more)


def test_a_lonely_end_of_a_line_is_left_to_the_cells() -> None:
    W, b = column(*LINE)
    assert staircases(W, b, np.ones(4, bool), np.zeros(4, int)) == []
    alone = column((1, np.inf, 4))
    ((order, steps),) = staircases(*alone, np.ones(1, bool), np.zeros(1, int))
    assert order.tolist() == [0]
    assert steps.decide(exact(np.array([[0.0], [2.0]])), REAL).tolist() == [0, 1]


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_subnormal_numbers_may_be_flushed(A) -> None:
    """A coordinate just above 0 may be 0, and so may one just below; slopes and biases must not be."""
    small, least = A.tiny / 2, A.tiny
    low, high = ends(exact(np.array([[small], [-small], [least], [-least], [0.0], [3.0]])), 0, A)
    assert low[0] == 0
    assert low[1] <= -small
    assert high[1] == 0
    assert high[0] >= small
    assert low[2] == least == high[2]
    assert low[3] == -least == high[3]
    assert low[5] == 3 == high[5]
    low, high = ends(Ball(np.array([[0.1, 3.0]]), np.array([[0.3, 0.0]])), np.array([1, 0]), A)
    assert low[0, 0] < 3 < high[0, 0]  # rounded outward where anything is not known
    for x, side in ((low[0, 1], -1), (high[0, 1], 1)):
        assert side * (Fraction(float(x)) - Fraction(0.1) - side * Fraction(0.3)) > 0
    (t,) = ends(exact(np.array([[small]])), 0, REAL)[:1]
    assert t[0] > small / 2
    for smallest, sure in ((16 * least, True), (8 * least, True), (4 * least, False), (0.5 * least, False)):
        steps = Steps(0, 1.0, np.array([1.0]), np.array([0.5]), 4.0, smallest)
        cells = Cells(np.zeros(1, int), *(np.array([[x]]) for x in (0.0, 1.0, -1.0, 2.0)), 2, 4.0, smallest)
        assert (steps.decide(exact(np.array([[3.0]])), A)[0] == 1) == sure
        assert (cells.decide(exact(np.array([[0.5]])), A)[0] == 0) == sure
    for slope, bias, smallest in ((4.0, 0.5, 0.5), (0.25, 8.0, 0.25), (0.5, 0.0, 0.5)):
        W, b = np.full((1, 2, 1), -slope), np.full((2, 1), bias)
        ((_, steps),) = staircases(W, b, np.ones(2, bool), np.zeros(2, int))
        assert steps.smallest == smallest
        assert (steps.largest, steps.steepest) == (max(bias, 1), slope)
        W, b = column((-np.inf, bias / slope, slope), (bias / slope + 9, np.inf, slope))
        cells = only_family(W, b)
        assert cells.smallest == min([1.0, *np.abs(W[W != 0]), *np.abs(b[b != 0])])
        assert cells.largest == max([1.0, *np.abs(b[b != 0])])
        assert cells.steepest == max([1.0, *np.abs(W[W != 0])])
        assert cells.units == 2


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_what_might_overflow_is_not_decided(A) -> None:
    for t in (A.big, np.inf, -np.inf, np.nan, -A.big):
        for low, high in ((min(t, 0.0), max(t, 0.0)), (t, t)):
            with np.errstate(invalid="ignore"):
                assert within_range(np.array([low, 0]), np.array([high, 1]), 1.0, 1, A).tolist() == [False, True]
    for reach, largest, units, fits in (
        (A.big / 16, 1.0, 1, True),
        (A.big / 4, 1.0, 1, False),
        (A.big / 32, 8.0, 1, False),
        (A.big / 64, 1.0, 16, False),
        (A.big / 256, 4.0, 4, True),
        (0.0, A.big / 32, 1, True),
        (0.0, A.big / 5, 1, False),
    ):
        for ends_ in ((0.0, reach), (-reach, 0.0)):
            assert within_range(np.array([ends_[0]]), np.array([ends_[1]]), largest, units, A)[0] == fits
    far = exact(np.array([[A.big]]))
    with np.errstate(over="ignore"):
        assert only_family(*column(*LINE)).decide(far, A).tolist() == [-1]
        assert only_family(*column(*LINE)).decide(Ball(np.zeros((1, 1)), np.full((1, 1), np.inf)), A).tolist() == [
            -1
        ]
        ((_, steps),) = staircases(*staircase(1, 2), np.ones(2, bool), np.zeros(2, int))
        assert steps.decide(far, A).tolist() == [-1]
        assert steps.decide(Ball(np.zeros((1, 1)), np.full((1, 1), np.inf)), A).tolist() == [-1]
        rows = RowSteps.of(0, 1.0, np.array([[1.0, 2.0]]))
        assert rows.decide(far, np.zeros(1, int), A).tolist() == [-1]


def test_edges_are_exact_or_not_used() -> None:
    slope = np.array([0.0, 1.0, 2.0**-100, 2.0**100, 2.0**-100, 2.0**100, -1.0, 1.0])
    b = np.array([5.0, 0.0, 2.0**700, 2.0**-700, 2.0**850, 2.0**-850, -7.0, np.inf])
    assert in_range(slope, b).tolist() == [True, True, True, True, False, False, True, False]
    W, bias = column((0, 1, 4), (2, 3, 4))
    W[0, 0, 0], bias[0, 0] = -(2.0**-100), 2.0**850
    assert families(W, bias, np.ones(2, bool), np.zeros(2, int))[1].tolist() == [0]
    W, bias = staircase(1, 2, 3)
    W[0, 0], bias[0] = -(2.0**-100), 2.0**850
    assert [order.tolist() for order, _ in staircases(W, bias, np.ones(3, bool), np.zeros(3, int))] == [[1, 2]]


@pytest.mark.parametrize("inclusive", [True, False])
def test_how_many_entries_of_a_row_there_are_up_to_a_key(inclusive) -> None:
    rng = np.random.default_rng(7)
    for G in (1, 2, 3, 4, 5, 7, 8, 9, 31):
        table = np.sort(rng.integers(0, 9, (4, G)), axis=1).astype(float)
        row, key = rng.integers(0, 4, 60), rng.integers(-1, 10, 60) + rng.choice([0, 0.5], 60)
        wanted = [
            int(((table[r] <= k) if inclusive else (table[r] < k)).sum()) for r, k in zip(row, key, strict=True)
        ]
        assert _upto(table, row, key, inclusive).tolist() == wanted


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_steps_of_a_row_are_decided_as_their_units_are(A) -> None:
    """Unit g is relu(1 - relu(table[row, g] - slope t)), which is on from table / slope on."""
    rng, decided = np.random.default_rng([3, len(A.name)]), 0
    for _ in range(150):
        G, slope = int(rng.integers(1, 6)), float(rng.choice([1, 2, 0.5]))
        table = np.sort(rng.integers(-8, 9, (3, G)) / 2, axis=1)
        t, row = random_ball(rng, 2, 10), rng.integers(-1, 3, 10)
        found = RowSteps.of(1, slope, table).decide(t, row, A)
        for k, j in enumerate(found.tolist()):
            if j < 0:
                continue
            assert row[k] >= 0
            W = np.zeros((2, G, 1))
            W[1] = -slope
            state = groups(W, table[row[k]][:, None], t, k, A)
            assert state == ["on"] * j + ["off"] * (G - j)
            decided += 1
    assert decided > 400


@pytest.mark.parametrize("A", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_rows_of_subnormal_thresholds_are_not_decided(A) -> None:
    for table, slope, sure in (
        ([[0.0, 1.0]], 1.0, True),
        ([[A.tiny, 1.0]], 1.0, False),
        ([[16 * A.tiny, 1.0]], 1.0, True),
        ([[0.0, 1.0]], A.tiny, False),
    ):
        rows = RowSteps.of(0, slope, np.array(table))
        found = rows.decide(exact(np.array([[50.0 / max(slope, 2.0**-60)]])), np.zeros(1, int), A)
        assert (found[0] >= 0) == sure, (table, slope)
    big = RowSteps.of(0, 1.0, np.array([[0.0, A.big / 4]]))
    assert big.decide(exact(np.array([[1.0]])), np.zeros(1, int), A).tolist() == [-1]
    steep = RowSteps.of(0, A.big / 4, np.array([[0.0, 1.0]]))
    assert steep.decide(exact(np.array([[1.0]])), np.zeros(1, int), A).tolist() == [-1]


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_edges_that_are_not_exact_are_rounded_outward(A) -> None:
    """A bias with all its bits, and coordinates around where its unit reaches 0 or 1."""
    rng, sure = np.random.default_rng([5, len(A.name)]), 0
    for _ in range(200):
        slope, bias = float(rng.choice([1, 2, 0.25])), float(rng.uniform(0.1, 50))
        W, b = np.full((1, 2, 1), -slope), np.array([[bias], [bias + 64]])
        ((order, steps),) = staircases(W, b, np.ones(2, bool), np.zeros(2, int))
        line = np.array([[[-slope, 0], [-slope, slope]]]), np.array([[bias + 64, 0], [bias, -bias - 2]])
        listed, _ = families(line[0][:, ::-1], line[1][::-1], np.ones(2, bool), np.zeros(2, int))
        for edge in (
            bias / slope,
            (bias - 1) / slope,
            (bias + 64) / slope,
            (bias + 63) / slope,
            (bias + 3) / slope,
        ):
            t = edge * (1 + np.arange(-3, 4) * 2.0**-52)
            points = exact(t[:, None])
            for row, j in enumerate(steps.decide(points, A).tolist()):
                if j >= 0:
                    state = groups(W, b, points, row, A)
                    assert [state[k] for k in order] == ["on"] * j + ["off"] * (2 - j)
                    sure += 1
            for start, cells in listed:
                for row, j in enumerate(cells.decide(points, A).tolist()):
                    if j >= 0:
                        own = range(start, start + len(cells.on_low))
                        state = groups(line[0][:, ::-1], line[1][::-1], points, row, A)
                        assert [state[k] for k in own] == ["on" if k - start == j else "off" for k in own]
                        sure += 1
    assert sure > 500


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_each_token_is_within_range_alone(A) -> None:
    """Beside a token that is far away: the bound is the same as that of a token alone."""
    for reach, largest, units, fits in (
        (0.0, A.big / 6, 1, True),
        (0.0, A.big / 5, 1, False),
        (A.big / 8, 1.0, 1, True),
        (A.big / 8, 1.0, 2, False),
    ):
        for low, high in ((0.0, reach), (-reach, 0.0)):
            beside = within_range(np.array([low, np.nan]), np.array([high, np.nan]), largest, units, A)
            assert beside.tolist() == [fits, False]
            assert within_range(np.array([low]), np.array([high]), largest, units, A).tolist() == [fits]
    steps = Steps(0, 1.0, np.array([1.0]), np.array([0.5]), 1.0, 1.0)
    assert steps.decide(exact(np.array([[A.big / 6], [A.big / 5]])), A).tolist() == [1, -1]


@pytest.mark.parametrize("few", [0, 8])
def test_steps_include_their_edges(monkeypatch, few) -> None:
    monkeypatch.setattr(stepping, "FEW_STEPS", few)
    steps = Steps(0, 1.0, np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5]), 2.0, 1.0)
    t = exact(np.array([[0.5], [1.0], [1.5], [2.0], [2.5], [3.0], [0.75], [2.75]]))
    assert steps.decide(t, REAL).tolist() == [0, 1, 1, 2, 2, 3, -1, -1]
    rows = RowSteps(0, 1.0, np.array([[0.0, 3.0]]), np.array([[-1.0, 2.0]]))
    t = exact(np.array([[0.0], [2.0], [3.0], [2.5], [1.5]]))
    assert rows.decide(t, np.zeros(5, int), REAL).tolist() == [1, 1, 2, -1, 1]


def test_a_step_of_a_row_is_off_one_below_its_threshold() -> None:
    """Or a little further below, where the difference is not a number of the format."""
    table = np.array([[0.1, 0.3, 3.0, 2.0**53 + 4]])
    rows = RowSteps.of(0, 1.0, table)
    for threshold, below in zip(table[0].tolist(), rows.below[0].tolist(), strict=True):
        assert Fraction(below) <= Fraction(threshold) - 1 <= Fraction(below) + 2
    assert RowSteps.of(0, 1.0, table[:, 1:3]).decide(exact(np.array([[1.5]])), np.zeros(1, int), REAL)[0] == 1


@pytest.mark.parametrize("A", EVERY, ids=ARITHMETICS)
def test_rows_at_the_ends_of_the_range(A) -> None:
    """Large thresholds on either side, far coordinates, and slopes and thresholds that might be flushed."""
    faint = 8 * (A.tiny + NORMAL)
    for table, slope, t, sure in (
        ([[-A.big / 4, 1.0]], 1.0, 3.0, False),
        ([[0.25]], 0.25, A.big / 2, False),
        ([[0.25]], 0.25, A.big / 3, True),
        ([[0.0]], faint, 1.0, True),
        ([[0.0]], faint / 2, 1.0, False),
        ([[faint, 0.5]], 1.0, 3.0, True),
        ([[faint * 0.75, 0.5]], 1.0, 3.0, False),
    ):
        found = RowSteps.of(0, slope, np.array(table)).decide(exact(np.array([[t]])), np.zeros(1, int), A)
        assert found[0] == (len(table[0]) if sure else -1), (table, slope, t)
