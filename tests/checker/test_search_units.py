"""Every piece of a search alone: what it decides holds in exact fractions, and for evaluations at their worst."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, Ball, exact
from onelayer_checker.core.layers import Layer
from onelayer_checker.search import cells as recognised
from onelayer_checker.search.cells import families, staircases
from onelayer_checker.search.operations import MOST_LIVE, Add, Collect, Evaluate, Gate, looked_up
from onelayer_checker.search.parts import Known, Rows, Token, added
from onelayer_checker.search.steps import FEW_STEPS, RowSteps, Steps
from onelayer_checker.search.sums import Sums
from tests.checker.large import ARITHMETICS
from tests.checker.searched_stacks import Habit, inside

EVERY = pytest.mark.parametrize("A", ARITHMETICS.values(), ids=ARITHMETICS)


def group(W: np.ndarray, b: np.ndarray, t: list[float]) -> int | None:
    """relu(1 - sum of relu(W t + b)) where that is certain: W [c, size], b [size]."""
    units = [
        sum((Fraction(w) * Fraction(x) for w, x in zip(column, t, strict=True)), Fraction(bias))
        for column, bias in zip(W.T.tolist(), b.tolist(), strict=True)
    ]
    return 1 if max(units) <= 0 else 0 if max(units) >= 1 else None


def ends(t: Ball, i: int) -> list[list[float]]:
    """Corners of the ball of a token, and points between them."""
    return [(t.m[i] + t.r[i] * (np.array(signs) - 1)).tolist() for signs in np.ndindex(*[3] * t.m.shape[1])]


def near(rng: np.random.Generator, edges: np.ndarray, count: int, c: int) -> Ball:
    m = rng.choice(edges, (count, c)) + rng.choice([0, 0, 2.0**-50, -(2.0**-50), 0.25, -0.25, 0.5], (count, c))
    m = np.where(rng.random(m.shape) < 0.3, rng.uniform(-4, 8, m.shape), m)
    return Ball(m, np.where(rng.random(m.shape) < 0.3, 2.0**-6, 0.0))


@EVERY
def test_steps_that_are_on_and_off(A) -> None:
    rng, decided, sorts = np.random.default_rng(1), 0, set()
    for _ in range(25):
        K, c, size = int(rng.integers(1, 2 * FEW_STEPS)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
        W, b = np.zeros((c, K, size)), -rng.integers(0, 3, (K, size)).astype(float)
        s, column = 2.0 ** int(rng.integers(1, 5)) * rng.choice([-1, 1]), int(rng.integers(c))
        edges = rng.integers(-4, 9, K) / rng.choice([1, 3])
        W[column, :, 0] = s * 2.0 ** rng.integers(0, 2, K)
        b[:, 0] = -edges * W[column, :, 0]
        found = staircases(W, b, np.ones(K, bool), np.zeros(K, int))
        assert sum(len(order) for order, _ in found) == K
        t = near(rng, np.concatenate([edges, edges + 1 / s]), 20, c)
        for order, steps in found:
            for i, on in enumerate(steps.decide(t, A).tolist()):
                decided += on >= 0
                sorts.add((on == 0, on == K, K > FEW_STEPS, s > 0))
                for point in ends(t, i) if on >= 0 else []:
                    states = [group(W[:, k], b[k], point) for k in order]
                    assert states == [1] * on + [0] * (K - on)
    assert decided > 100
    assert len(sorts) == 12


def test_groups_that_are_no_steps() -> None:
    """Two slopes or coordinates, no power of two, a unit that is always on, an edge out of range, another block."""
    plain, block = np.ones(3, bool), np.zeros(3, int)
    W, b = np.zeros((2, 3, 2)), np.zeros((3, 2))
    W[0, :, 0], b[:, 0] = -1, [1, 2, 3]

    def found(name: str, place: tuple[int, ...], value: float) -> list[int]:
        given = {"W": W.copy(), "b": b.copy(), "plain": plain.copy()}
        given[name][place] = value
        return sorted(len(order) for order, _ in staircases(given["W"], given["b"], given["plain"], block))

    assert found("b", (0, 0), 1.5) == [3]
    for change in (
        ("W", (0, 0, 1), 1),
        ("W", (1, 0, 0), -1),
        ("W", (0, 0, 0), -3),
        ("b", (0, 1), 0.5),
        ("b", (0, 1), 2),
        ("plain", (0,), False),
        ("b", (0, 0), 2.0**-950),
        ("b", (0, 0), 2.0**950),
    ):
        assert found(*change) == [2], change
    assert [len(order) for order, _ in staircases(W, b, plain, np.array([0, 1, 1]))] == [1, 2]


def test_steps_near_the_ends_of_the_range() -> None:
    steps = Steps(0, 1.0, np.array([2.0]), np.array([1.0]), 4.0, 1.0)
    assert steps.decide(exact(np.array([[3.0], [0.5], [1.5], [2.0**120], [2.0**124]])), FLOAT32).tolist() == [
        1,
        0,
        -1,
        1,
        -1,
    ]
    assert steps.decide(Ball(np.full((2, 1), 3.0), np.array([[np.inf], [np.nan]])), REAL).tolist() == [-1, -1]
    faint = Steps(0, 1.0, np.array([2.0]), np.array([1.0]), 4.0, 2.0**-126)
    assert faint.decide(exact(np.array([[3.0]])), FLOAT32).tolist() == [-1]
    assert faint.decide(exact(np.array([[3.0]])), REAL).tolist() == [1]
    at_zero = Steps(0, 1.0, np.array([2.0**-127]), np.array([-1.0]), 1.0, 1.0)
    assert at_zero.decide(exact(np.array([[2.0**-126 * 0.75]])), FLOAT32).tolist() == [-1]  # or it is 0, and off
    assert at_zero.decide(exact(np.array([[2.0**-126 * 0.75]])), REAL).tolist() == [1]


def test_steps_that_flushing_or_biases_undo() -> None:
    backwards = Steps(0, -1.0, np.array([2.0**-127]), np.array([-1.0]), 1.0, 1.0)
    assert backwards.decide(exact(np.array([[-(2.0**-126) * 0.75]])), FLOAT32).tolist() == [-1]
    assert backwards.decide(exact(np.array([[-(2.0**-126) * 0.75]])), REAL).tolist() == [1]
    steep = Steps(0, 1.0, np.array([2.0]), np.array([1.0]), 2.0**124, 1.0)  # a bias of 2^124
    assert steep.decide(exact(np.zeros((1, 1))), FLOAT32).tolist() == [-1]
    assert steep.decide(exact(np.zeros((1, 1))), REAL).tolist() == [0]


def test_tokens_that_are_not_known() -> None:
    token = Token(unknown=np.zeros(3, bool))
    token.put(1, Ball(np.zeros((3, 2)), np.array([[0, 1], [0, np.inf], [0, 0]])))
    assert token.unknown.tolist() == [False, True, False]
    token.choose(2, np.array([-1, 2, 1]))
    assert token.unknown.tolist() == [True, True, False]
    assert token.choices[2].tolist() == [0, 2, 1]


@EVERY
def test_steps_along_rows(A) -> None:
    rng, decided, sorts = np.random.default_rng(2), 0, set()
    for _ in range(25):
        G, R, s = int(rng.integers(1, 20)), int(rng.integers(1, 4)), 2.0 ** int(rng.integers(-1, 5))
        table = np.sort(rng.integers(-4, 9, (R, G)) / rng.choice([1, 3]), axis=1)
        table[-1] = 0
        steps = RowSteps.of(1, s, table)
        t = near(rng, table.ravel() / s, 20, 2)
        t = Ball(np.abs(t.m), np.minimum(t.r, np.abs(t.m)))  # it follows a ReLU
        row = rng.integers(-1, R, 20)
        for i, on in enumerate(steps.decide(t, row, A).tolist()):
            assert row[i] >= 0 or on == -1
            decided += on >= 0
            sorts.add((on == 0, on == G))
            for _, x in ends(t, i) if on >= 0 else []:
                states = [group(np.array([[-s]]), np.array([c]), [x]) for c in table[row[i]]]
                assert states == [1] * on + [0] * (G - on)
    assert decided > 100
    assert len(sorts) == 3


def test_rows_near_the_ends_of_the_range() -> None:
    t, row = exact(np.array([[8.0]])), np.zeros(1, int)
    assert RowSteps.of(0, 1.0, np.array([[2.0, 3.0]])).decide(t, row, FLOAT32).tolist() == [2]
    assert RowSteps.of(0, 1.0, np.array([[2.0, 2.0**125]])).decide(t, row, FLOAT32).tolist() == [-1]
    assert RowSteps.of(0, 1.0, np.array([[2.0**-127, 3.0]])).decide(t, row, FLOAT32).tolist() == [-1]
    assert RowSteps.of(0, 2.0**-125, np.array([[0.0]])).decide(t, row, FLOAT32).tolist() == [-1]
    assert RowSteps.of(0, 1.0, np.array([[2.0]])).decide(exact(np.array([[2.0**125]])), row, FLOAT32).tolist() == [
        -1
    ]
    unknown = Ball(np.array([[8.0]]), np.array([[np.inf]]))
    assert RowSteps.of(0, 1.0, np.array([[2.0]])).decide(unknown, row, REAL).tolist() == [-1]


def lines(rng: np.random.Generator, K: int, c: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells one after the other along the first coordinate; some have an end along the others, some are off."""
    W, b, at, edges = np.zeros((c, K, 3)), -rng.integers(0, 2, (K, 3)).astype(float), 0.0, [0.0]
    s, third = 2.0 ** int(rng.integers(0, 4)), int(rng.choice([1, 3]))
    for k in range(K):
        stop = at + float(rng.integers(1, 5)) / third
        W[0, k, 0], b[k, 0] = s, -s * stop
        if k:
            W[0, k, 1], b[k, 1] = -s, s * at
        if c > 1 and rng.random() < 0.5:
            W[1, k, 2] = s * rng.choice([-1, 1])
            b[k, 2] = -W[1, k, 2] * float(rng.integers(0, 3))
        elif rng.random() < 0.1 and k + 1 == K:
            b[k, 2] = 1 + rng.integers(0, 2)
        edges += [at, stop, at - 1 / s, stop + 1 / s]
        at = stop + (0.5 if rng.random() < 0.2 else 2) / s
    return W, b, np.array(edges)


@EVERY
@pytest.mark.parametrize("sorted_from", [1, 1 << 14])
def test_cells_that_are_on_and_off(A, sorted_from, monkeypatch) -> None:
    monkeypatch.setattr(recognised, "SORTED", sorted_from)
    rng, decided, none = np.random.default_rng(3), 0, 0
    for _ in range(25):
        K, c = int(rng.integers(1, 8)), int(rng.integers(1, 3))
        W, b, edges = lines(rng, K, c)
        found, others = families(W, b, np.ones(K, bool), np.zeros(K, int))
        assert sum(len(own.on_low) for _, own in found) + len(others) == K
        t = near(rng, edges, 20, c)
        for start, own in found:
            for i, cell in enumerate(own.decide(t, A).tolist()):
                decided += cell >= 0
                none += cell == len(own.on_low)
                for point in ends(t, i) if cell >= 0 else []:
                    states = [group(W[:, start + k], b[start + k], point) for k in range(len(own.on_low))]
                    assert states == [int(k == cell) for k in range(len(states))]
    assert decided > 100
    assert none > 10


def test_groups_that_are_no_cells() -> None:
    rng = np.random.default_rng(4)
    W, b, _ = lines(rng, 4, 1)
    W, b = np.concatenate([W, 0 * W]), np.where(W[0] != 0, b, 0.0)
    assert len(families(W, b, np.ones(4, bool), np.zeros(4, int))[1]) == 0
    for name, place, value in (
        ("W", (1, 1, 0), 1),
        ("W", (0, 1, 0), 3),
        ("b", (1, 2), 0.5),
        ("plain", (1,), False),
        ("b", (1, 0), 2.0**-950),
    ):
        given = {"W": W.copy(), "b": b.copy(), "plain": np.ones(4, bool)}
        given[name][place] = value
        found, others = families(given["W"], given["b"], given["plain"], np.zeros(4, int))
        assert 1 in others
        assert all(not start <= 1 < start + len(own.on_low) for start, own in found)
    found, _ = families(W, b, np.ones(4, bool), np.array([0, 0, 1, 1]))
    assert [start for start, _ in found] == [0, 2]


def test_cells_out_of_order_are_not_searched() -> None:
    """One after the other but swapped; and one inside the other, so that only some ends are sorted."""
    for low, high in (([0, 4, 2], [1, 5, 3]), ([0, 1, 2], [1, 6, 3]), ([0, 1, -3], [0.5, 3, 4])):
        W, b = np.zeros((1, 3, 2)), np.zeros((3, 2))
        W[0, :, 0], b[:, 0] = 8, -8 * np.array(high)
        W[0, 1:, 1], b[1:, 1] = -8, 8 * np.array(low[1:])
        found, others = families(W, b, np.ones(3, bool), np.zeros(3, int))
        assert found == []
        assert others.tolist() == [0, 1, 2]


def test_a_crowd_of_cells_stays_undecided(monkeypatch) -> None:
    """Wide cells of which all but one end along the second coordinate."""
    K = 6
    W, b = np.zeros((2, K, 3)), np.zeros((K, 3))
    W[0, :, 0], b[:, 0] = 1, -8
    W[1, :, 1], b[:, 1] = 4, -4 * np.arange(K) - 1
    W[1, 1:, 2], b[1:, 2] = -4, 4 * np.arange(1, K) - 1
    [(_, own)], _ = families(W, b, np.ones(K, bool), np.zeros(K, int))
    t = exact(np.array([[1.0, 0.0], [1.0, 4.0], [20.0, 4.0]]))
    assert own.decide(t, REAL).tolist() == [0, 4, K]
    monkeypatch.setattr(recognised, "CROWD", 5)
    assert own.decide(t, REAL).tolist() == [-1, -1, K]


def test_overlapping_cells_stay_undecided() -> None:
    W, b = np.zeros((1, 2, 2)), np.zeros((2, 2))
    W[0, :, 0], b[:, 0] = 1, [-4, -6]
    W[0, 1, 1], b[1, 1] = -1, 2
    [(_, own)], _ = families(W, b, np.ones(2, bool), np.zeros(2, int))
    assert own.decide(exact(np.array([[0.0], [3.0], [5.5]])), REAL).tolist() == [0, -1, 1]


def test_cells_near_the_ends_of_the_range() -> None:
    W, b = np.zeros((2, 2, 2)), np.zeros((2, 2))
    W[0, :, 0], b[0, 0] = [1, -1], -2
    b[1, 0] = 4
    [(_, own)], _ = families(W, b, np.ones(2, bool), np.zeros(2, int))
    t = exact(np.array([[0, 0], [5, 0], [2.0**123, 0], [2.0**119, 0]]))
    assert own.decide(t, FLOAT32).tolist() == [0, 1, -1, 1]
    assert own.decide(Ball(t.m, np.where(t.m > 9, np.nan, 0)), FLOAT32).tolist() == [0, 1, -1, -1]
    W[1, 1, 1], b[1, 1] = 1, -1
    [(_, two)], _ = families(W, b, np.ones(2, bool), np.zeros(2, int))
    far = exact(np.array([[5, 0], [5, 2.0**124]]))  # off along the second coordinate, but for an overflow
    assert two.decide(far, FLOAT32).tolist() == [1, -1]
    assert two.decide(far, REAL).tolist() == [1, 2]
    W[1, 1, 1], b[1, 1] = 2.0**-127, -1
    [(_, faint)], _ = families(W, b, np.ones(2, bool), np.zeros(2, int))
    assert set(faint.decide(t, FLOAT32).tolist()) == {-1}
    assert faint.decide(t, REAL).tolist() == [0, 1, 1, 1]


def terms_of(rng: np.random.Generator, A, whole: bool, count: int) -> list[float]:
    """Numbers of the format: whole ones, some of them beyond the mantissa, or others, some of them subnormal."""
    if whole:
        made = rng.integers(-9, 10, count) * rng.choice([1.0, 1.0, 2.0**22], count)
    else:
        made = rng.normal(size=count) * rng.choice([1.0, 1.0, A.tiny, 2.0**-20], count)
    made = np.where(rng.random(count) < 0.2, 2.0 ** rng.integers(-3, 4, count), made) * (rng.random(count) < 0.8)
    return made.astype(np.float32).astype(np.float64).tolist()


@EVERY
def test_sums_of_rows_and_products(A) -> None:
    rng, found, exactly = np.random.default_rng(6), 0, 0
    for _ in range(600):
        whole, i = bool(rng.random() < 0.5), int(rng.integers(0, 3))
        single = [bool(rng.random() < 0.6) for _ in range(int(rng.integers(0, 3)))]
        rows = [terms_of(rng, A, whole or not one, 1 if one else 4) for one in single]
        x, W, b = (np.array(terms_of(rng, A, whole, k)) for k in (i, i, 1))
        r = np.where(rng.random(i) < 0.15, 2.0**-20, 0.0)
        given = [
            (np.array([[sum(row)]]), np.array([[sum(map(abs, row))]]), one)
            for row, one in zip(rows, single, strict=True)
        ]
        y = added(given, Ball(x[None], r[None]), W[:, None], b, A)
        found += bool(np.isfinite(y.r[0, 0]))
        exactly += y.r[0, 0] == 0
        for _ in range(4 if np.isfinite(y.r[0, 0]) else 0):
            habit = Habit(A, rng)
            at = [inside(rng, m, radius, habit) for m, radius in zip(x.tolist(), r.tolist(), strict=True)]
            pairs = [(v, w) for v, w in zip(at, W.tolist(), strict=True) if v != 0 != w]
            pairs += [(v, 1.0) for row in rows for v in row if v]
            if habit.exact:
                pairs, bias = [(Fraction(v), Fraction(w)) for v, w in pairs], Fraction(float(b[0]))
            else:
                bias = float(b[0])
            value = Fraction(habit.sum(pairs, bias))
            assert abs(value - Fraction(float(y.m[0, 0]))) <= Fraction(float(y.r[0, 0])), (rows, x, r, W, b, y)
    assert found > 400
    assert exactly > 100


def test_sums_that_are_not_known() -> None:
    """A staircase that may be rounded, what may overflow, and what nobody multiplies but is infinite."""
    nothing, none, zero = exact(np.zeros((1, 0))), np.zeros((0, 1)), np.zeros(1)
    many = (np.array([[3.0]]), np.array([[2.0**25]]), False)
    assert added([many], nothing, none, zero, FLOAT32).r.tolist() == [[np.inf]]
    assert added([many], nothing, none, zero, REAL).r.tolist() == [[0]]
    assert added([many], nothing, none, np.array([0.5]), REAL).r.tolist() == [[np.inf]]
    large = (np.array([[2.0**125]]), np.array([[2.0**125]]), True)
    assert added([large], nothing, none, zero, FLOAT32).r.tolist() == [[np.inf]]
    assert added([(large[0] - large[0], large[1], False)], nothing, none, zero, REAL).r.tolist() == [[np.inf]]
    unknown = Ball(np.ones((1, 1)), np.full((1, 1), np.inf))
    with np.errstate(invalid="ignore"):
        assert added([], unknown, np.zeros((1, 1)), zero, REAL).r.tolist() == [[np.inf]]


def test_sums_with_an_operand_that_is_flushed() -> None:
    for x, w in ((2.0**-127, 2.0**100), (2.0**100, 2.0**-127)):
        y = added([], exact(np.array([[x]])), np.array([[w]]), np.zeros(1), FLOAT32)
        assert y.m[0, 0] == 2.0**-27
        assert y.r[0, 0] >= 2.0**-27
    row, nothing = np.array([[2.0**-127]]), exact(np.zeros((1, 0)))
    assert added([(row, row, True)], nothing, np.zeros((0, 1)), np.zeros(1), FLOAT32).r[0, 0] >= 2.0**-127


def test_a_product_of_whole_numbers_that_is_rounded() -> None:
    odd = exact(np.array([[5001.0]]))
    assert added([], odd, np.array([[5001.0]]), np.zeros(1), FLOAT32).r[0, 0] >= 1  # beyond 2^24
    assert added([], odd, np.array([[5001.0]]), np.zeros(1), REAL).r[0, 0] == 0


def test_radii_of_many_balls_add_up() -> None:
    """Each addition loses nearly half of the last bit of what 65,536 radii have added up to."""
    many, radius = 1 << 16, 1 + 0.49 * 2.0**-37
    y = added([], Ball(np.zeros((1, many)), np.full((1, many), radius)), np.ones((many, 2)), np.zeros(2), REAL)
    assert min(Fraction(r) for r in y.r[0].tolist()) >= many * Fraction(radius)


def test_rows_that_might_be_rounded() -> None:
    units, halves, ones = np.arange(2), np.full((2, 1), 0.5), np.ones((2, 1))
    assert Known(units, 1, "one").rows(halves).value.tolist() == [[0.5], [0.5], [0]]
    assert Known(units, 1, "upto").rows(ones).value.tolist() == [[0], [1], [2]]
    assert Known(units, 1, "upto").rows(halves) is None
    assert Known(units, 1, "upto").rows(ones * 2.0**52) is None
    for m, r, given in (
        ([1, 2], 0, True),
        ([1, 2], 1, False),
        ([1, 0.5], 0, False),
        ([2.0**52, 2.0**52], 0, False),
    ):
        table = Ball(np.array([m], float), np.full((1, 2), float(r)))
        assert (Known(units, 1, "table", table).rows(ones) is not None) == given


def gate_terms(
    rows: list[Rows], own: list[np.ndarray], kinds: list[str], choice: list[int], column: int
) -> list[float]:
    """The terms that chosen rows add to a sum."""
    terms: list[float] = []
    for W, kind, j in zip(own, kinds, choice, strict=True):
        chosen = W[:j] if kind == "upto" else W[j : j + 1]
        terms += chosen[:, column].tolist()
    assert len(rows) == len(own)
    return terms


@EVERY
def test_columns_that_a_gate_leaves_out_are_off(A) -> None:
    """Sums near 0, of staircases with many steps, cells and balls; some tokens are not known."""
    rng, left_out, live, loose = np.random.default_rng(7), 0, 0, 0
    for _ in range(25):
        o, T, whole, i = 9, 6, bool(rng.random() < 0.5), int(rng.integers(0, 3))
        kinds = [str(rng.choice(["one", "upto"])) for _ in range(int(rng.integers(1, 4)))]
        sizes = [40 if kind == "upto" else 3 for kind in kinds]
        large = 2.0 ** int(rng.integers(0, 26))
        own = [
            np.rint(rng.normal(size=(k, o)) * large) if whole or kind == "upto" else rng.normal(size=(k, o)) * large
            for k, kind in zip(sizes, kinds, strict=True)
        ]
        own, W = [w.astype(np.float32).astype(float) for w in own], rng.normal(size=(i, o)).astype(np.float32) * 1.0
        W = np.rint(W) if whole else W
        rows = [
            Known(np.arange(k), 1 + n, kind).rows(w)
            for n, (k, kind, w) in enumerate(zip(sizes, kinds, own, strict=True))
        ]
        choices = [rng.integers(0, k + 1, T) for k in sizes]
        x = np.rint(rng.normal(size=(T, i)) * 4)
        r = np.where(rng.random((T, i)) < 0.2, 0.25, 0.0)
        unknown = rng.random(T) < 0.3
        x[unknown], r[unknown] = 1e30, np.inf
        first = int(np.argmin(unknown))
        real = sum(row.value[c[first]] for row, c in zip(rows, choices, strict=True)) + np.abs(W).T @ (
            np.abs(x[first]) + r[first]
        )
        slack = np.exp2(rng.integers(-30, 12, o).astype(float)) * large * 2.0**-20
        bias = (-real - (np.rint(slack) if whole else slack)).astype(np.float32).astype(float)
        sums = Sums.of(rows, 9, W, bias, [])
        token = Token(unknown=unknown.copy())
        token.choices |= {1 + n: c for n, c in enumerate(choices)}
        token.balls[9] = Ball(x, r)
        by = [1 + n for n in range(len(rows)) if n == 0 or rng.random() < 0.5]
        with np.errstate(all="ignore"):
            columns = Gate(sums, by, 10).live(token, token.balls[9], A)
        for k in np.flatnonzero(~token.unknown):
            out = set(range(o)) - set(columns[k].tolist())
            left_out, live = left_out + len(out), live + o - len(out)
            for column in out:
                terms = gate_terms(rows, own, kinds, [int(c[k]) for c in choices], column)
                for _ in range(3):
                    habit = Habit(A, rng)
                    at = x[k] + r[k] * np.sign(W[:, column])
                    pairs = [(v, w) for v, w in zip(at.tolist(), W[:, column].tolist(), strict=True)]
                    pairs += [(v, 1.0) for v in terms]
                    if habit.exact:
                        pairs = [(Fraction(v), Fraction(w)) for v, w in pairs]
                    b = float(bias[column])
                    value = habit.sum(pairs, Fraction(b) if habit.exact else b)
                    assert value <= 0
                    loose += value > -large
    assert left_out > 100
    assert live > 100
    assert loose > 10


def one_row(value: list[float], by: int = 1) -> Rows:
    return Rows(by, np.array([value]), np.abs([value]), 1, True, False)


def gated(rows: list[Rows], bias: list[float], by: list[int], A, x: Ball | None = None, W=None):
    token = Token(unknown=np.zeros(1, bool))
    token.choices |= {row.by: np.zeros(1, int) for row in rows}
    token.balls[9] = exact(np.zeros((1, 0))) if x is None else x
    own = np.zeros((0, len(bias))) if W is None else W
    with np.errstate(all="ignore"):
        columns = Gate(Sums.of(rows, 9, own, np.array(bias), []), by, 10).live(token, token.balls[9], A)
    return [column for column in columns[0].tolist() if column >= 0], bool(token.unknown[0])


def test_gates_one_by_one() -> None:
    assert gated([one_row([1.0, 1.0])], [-2.0, 0.0], [1], REAL) == ([1], False)
    assert gated([one_row([1.0, 1.0])], [-2.0, -2.0], [1], REAL) == ([], False)
    twice = [one_row([1.0, 1.0]), one_row([3.0, 0.0])]
    assert gated(twice, [-2.0, -2.0], [1], REAL) == ([0], False)
    others = [one_row([0.0, 0.0]), one_row([3.0, 0.0], 2)]
    assert gated(others, [-2.0, -2.0], [1], REAL) == ([0], False)
    # What may overflow is not known to be off.
    assert gated([one_row([-(2.0**124), 1.0])], [-2.0, -2.0], [1], FLOAT32) == ([0], False)
    assert gated([one_row([-(2.0**124), 1.0])], [-2.0, -2.0], [1], REAL) == ([], False)
    assert gated([one_row([1.0, 1.0])], [-(2.0**125), -2.0], [1], FLOAT32) == ([0], False)
    assert gated([one_row([1.0, 1.0]), one_row([-(2.0**124), 0.0], 2)], [-2.0, -2.0], [1], FLOAT32) == ([0], False)
    x, W = exact(np.array([[-(2.0**62)]])), np.array([[2.0**62, 0.0]])
    assert gated([one_row([1.0, 1.0])], [-2.0, -2.0], [1], FLOAT32, x, W) == ([0], False)
    many = Rows(1, np.array([[2.0**25 - 1999]]), np.array([[2.0**25 + 1999]]), 2000, False, True)
    assert gated([many], [1000 - 2.0**25], [1], FLOAT32) == ([0], False)  # 2^25 - 1 may be 2^25, 1999 times
    assert gated([many], [1000 - 2.0**25], [1], REAL) == ([], False)
    # Sums that a rounding, or a subnormal number that is flushed, may lift above 0.
    assert gated([one_row([1.0, 1.0])], [-1 - 2.0**-23, -1.5], [1], FLOAT32) == ([0], False)
    assert gated([one_row([2.0**-140, 1.0])], [-(2.0**-130), -1.5], [1], FLOAT32) == ([0], False)
    assert gated([one_row([2.0**20, 1.0])], [-(2.0**20) - 2.0**-31, -1.5], [1], REAL) == ([0], False)
    # Balls, negative ones with negative weights, and large ones with subnormal weights.
    x, W = Ball(np.array([[-3.0]]), np.array([[1.0]])), np.array([[-1.0, 1.0]])
    assert gated([one_row([1.0, 1.0])], [-4.0, -4.0], [1], REAL, x, W) == ([0], False)
    x, W = exact(np.array([[-(2.0**100)]])), np.array([[2.0**-127, 0.0]])
    assert gated([one_row([2.0**-40, 1.0])], [-(2.0**-39), -1.5], [1], FLOAT32, x, W) == ([0], False)
    # Where all are whole numbers, sums that are exactly 0 are off; not if they may be rounded.
    assert gated([Rows(1, np.ones((1, 1)), np.ones((1, 1)), 1, True, True)], [-1.0], [1], FLOAT32) == ([], False)
    big = Rows(1, np.full((1, 1), 2.0**23), np.full((1, 1), 2.0**23), 1, True, True)
    assert gated([big], [-(2.0**23)], [1], FLOAT32) == ([0], False)
    assert gated([one_row([1.0] * (MOST_LIVE + 1))], [0.0] * (MOST_LIVE + 1), [1], REAL) == ([], True)
    assert len(gated([one_row([1.0] * MOST_LIVE)], [0.0] * MOST_LIVE, [1], REAL)[0]) == MOST_LIVE


def test_sums_of_whole_numbers_that_nobody_rounds() -> None:
    """Each reason alone why a sum may be rounded."""
    ones, half, limit = np.ones((1, 1)), np.full((1, 1), 0.5), 2.0**24

    def fits(x=3.0, r=0.0, row=ones, weight=ones, bias=ones[0], few=ones) -> bool:
        rows = [Rows(1, row, np.abs(row), 1, True, bool((row == np.rint(row)).all()))]
        ball = Ball(np.full((1, 1), x), np.full((1, 1), r))
        return Sums.of(rows, 9, weight, bias, [few]).fit(ball, float(np.abs(weight).max()), FLOAT32)

    assert fits()
    assert not fits(x=0.5)
    assert not fits(r=0.5)
    for name in ("row", "weight", "few"):
        assert not fits(**{name: half})
    assert not fits(bias=half[0])
    assert not fits(x=limit)
    assert not fits(row=limit * ones)
    assert not fits(weight=limit / 2 * ones)
    assert not fits(bias=-limit * ones[0])


def test_what_overflows_is_not_known() -> None:
    large = np.full((1, 1), 2.0**100)
    sums = Sums.of([], 1, large, np.zeros(1), [])
    table = Known(np.zeros(1, int), 2, "table", Ball(np.ones((2, 1)), np.array([[0], [np.inf]])))
    for operation in (
        Evaluate(Layer(large, np.zeros(1)), 1, 3, False),
        Add(sums, [], 3, False),
        Collect([table], 3),
        Gate(Sums.of([one_row([1.0], 2), one_row([1.0], 2)], 1, large, np.zeros(1), []), [2], 3),
    ):
        token = Token(unknown=np.zeros(2, bool))
        token.choices[2] = np.array([0, 0 if isinstance(operation, Gate) else 1])
        token.put(1, exact(np.array([[1.0], [2.0**100]])))
        with np.errstate(all="ignore"):
            operation.run(token, FLOAT32)
        assert token.unknown.tolist() == [False, True]


def test_a_gate_names_columns_and_their_values() -> None:
    rows = Rows(1, np.array([[5.0, 0, 0], [0, 7, 8]]), np.array([[5.0, 0, 0], [0, 7, 8]]), 1, True, True)
    token = Token(unknown=np.zeros(2, bool))
    token.choices[1] = np.array([0, 1])
    Gate(Sums.of([rows], None, np.zeros((0, 3)), np.full(3, -4.0), []), [1], 2).run(token, FLOAT32)
    columns, value = token.few[2]
    assert columns.tolist() == [[0, -1], [1, 2]]
    assert value.m.tolist() == [[1, 0], [3, 4]]
    assert not value.r.any()
    assert looked_up(Ball(np.ones((2, 1)), np.array([[0.0], [0.5]])), np.array([1, 0])).r.tolist() == [[0.5], [0]]


@pytest.mark.parametrize("whole", [True, False])
def test_sums_at_some_columns_are_those_of_all(whole) -> None:
    """With rows of two choices, balls and a bias; each token asks for columns of its own, one of them twice."""
    rng = np.random.default_rng(8)
    scale = 1.0 if whole else 0.1
    values = [rng.integers(-9, 10, (k, 5)) * scale for k in (3, 4)]
    rows = [Rows(by, value, np.abs(value), 1, True, whole) for by, value in enumerate(values, 1)]
    weight, bias = rng.integers(-4, 5, (2, 5)) * scale, rng.integers(-4, 5, 5) * scale
    sums = Sums.of(rows, 9, weight, bias, [])
    assert sums.integral == whole
    token = Token(unknown=np.zeros(3, bool))
    token.choices |= {1: np.array([0, 2, 1]), 2: np.array([3, 0, 3])}
    token.put(9, exact(rng.integers(0, 5, (3, 2)).astype(float)))
    x, columns = sums.balls(token), np.array([[0, 4], [2, 2], [3, 1]])
    y, some = sums.ball(token, [], x, weight, FLOAT32), sums.ball_at(columns, token, x, FLOAT32)
    for t, (i, j) in enumerate(zip(token.choices[1], token.choices[2], strict=True)):
        wanted = values[0][i] + values[1][j] + x.m[t] @ weight + bias
        assert np.allclose(y.m[t], wanted, rtol=0, atol=1e-12)
        assert np.allclose(some.m[t], wanted[columns[t]], rtol=0, atol=1e-12)
    assert (y.r == 0).all() == whole
    assert (some.r == 0).all() == whole
    few = np.array([[[1.0] * 5, [2.0] * 5]] * 3), exact(np.array([[1.0, 1], [0, 3], [2, 0]]))
    more = sums.ball(token, [few], x, weight, FLOAT32)
    assert np.allclose(more.m - y.m, np.array([[3.0], [6], [2]]), rtol=0, atol=1e-12)


def test_a_gate_goes_by_several_choices_together() -> None:
    """Column 3 i + j is on where i and j are chosen; and a choice may feed two rows."""
    first, second = np.repeat(np.eye(3), 3, axis=1), np.tile(np.eye(3), 3)
    rows = [Rows(by, value, value, 1, True, True) for by, value in ((1, first), (2, second), (2, second))]
    choices = {1: np.array([0, 0, 1, 2, 2]), 2: np.array([0, 2, 1, 0, 2])}
    for by in ([1, 2], [2, 1]):
        token = Token(unknown=np.zeros(5, bool))
        token.choices |= choices
        Gate(Sums.of(rows, None, np.zeros((0, 9)), np.full(9, -2.0), []), by, 7).run(token, FLOAT32)
        columns, value = token.few[7]
        assert columns.ravel().tolist() == [0, 2, 4, 6, 8]
        assert value.m.ravel().tolist() == [1] * 5
        assert not token.unknown.any()
    weights = np.arange(18.0).reshape(9, 2)
    Add(Sums.of([], None, np.zeros((0, 2)), np.array([0.0, -9.0]), [weights]), [(7, weights)], 8, True).run(
        token, FLOAT32
    )
    assert token.balls[8].m.tolist() == [[0, -8], [4, -4], [8, 0], [12, 4], [16, 8]]
    assert not token.balls[8].r.any()
