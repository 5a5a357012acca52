"""Branch and bound by hand: every term of a bound, which boxes are halved, where it ends, and what is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL, TINY, UP, Ball, exact
from onelayer_checker.core.files import Malformed
from onelayer_checker.core.graph import Network, build
from onelayer_checker.functions import branch
from onelayer_checker.functions.branch import Bounds, Problem, Search
from onelayer_checker.functions.slopes import Slopes, inflation, network_slopes, spread
from onelayer_checker.functions.targets import Program, enclose, read_program
from tests.checker.drawn import small


def network(q: int = 2, w: int = 2) -> Network:
    T = {f"attention.W_{name}": small(i, 2, w, 3) for i, name in enumerate("QKV")}
    T |= {"attention.W_O": small(4, 2, 3, w), "readout.0.weight": small(5, w, 6), "readout.0.bias": small(6, 6)}
    return build(T | {"readout.1.weight": small(7, 6, q), "readout.1.bias": small(8, q)})


def program(n: int = 2, d: int = 2, q: int = 2) -> Program:
    lines = [["x", t, c] for t in range(n) for c in range(d)] + [["mul", 0, 1], ["abs", 0], ["sqrt", 1]]
    outputs = [(n * d - 1 + k * q + c) % (n * d + 3) for k in range(n) for c in range(q)]
    head = {"n": n, "d": d, "per": "token", "components": q, "lines": lines, "outputs": outputs}
    return read_program(head, "target")


PROBLEM = Problem(network(), program(), 0.25, 1.5)


def boxes(count: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    low = rng.uniform(-0.25, 1.0, (count, 4))
    return low, low + rng.uniform(0, 0.3, (count, 4)) * (np.arange(count) % 4 > 0)[:, None]


def test_centres_and_halves() -> None:
    low, high = boxes(50)
    centre = np.clip(low / 2 + high / 2, low, high)
    found = branch.middle(low, high)
    np.testing.assert_array_equal(found[0], centre)
    np.testing.assert_array_equal(found[1], np.maximum(high - centre, centre - low) * UP + TINY)
    share = np.abs(small(9, 50, 4))
    share[3, 1], share[4, 2] = np.inf, np.nan
    a, b = branch.halves(low, high, share)
    for row in range(50):
        at = int(np.argmax(high[row] - low[row] if row in (3, 4) else share[row]))
        cut = centre[row, at]
        left, right = high[row].copy(), low[row].copy()
        left[at], right[at] = cut, cut
        assert (a[row].tolist(), b[row].tolist()) == (low[row].tolist(), left.tolist())
        assert (a[50 + row].tolist(), b[50 + row].tolist()) == (right.tolist(), high[row].tolist())


def test_every_term_of_a_bound() -> None:
    low, high = boxes(40)
    B, m, n, q = 40, 4, 2, 2
    centre, radius = branch.middle(low, high)
    with np.errstate(all="ignore"):
        found = branch.bounds(PROBLEM, low, high)
        net = network_slopes(PROBLEM.network, centre.reshape(B, n, 2), radius.reshape(B, n, 2))
        box, point = enclose(PROBLEM.program, low, high, True), enclose(PROBLEM.program, centre, centre, False)
        J, loose = net.Z.m @ net.C, spread(net.Z, net.C) + net.R
        known = 0
        for b in range(B):
            upper, lower, shares = [], [], []
            for t, c in np.ndindex(n, q):
                row, k = b * n + t, t * q + c
                value, r = net.value.m[row, c], net.value.r[row, c]
                g, wide = branch.middle(box.slope_low[b, k], box.slope_high[b, k])
                each = (np.abs(J[row, :, c] - g) + loose[row, :, c] + wide) * radius[b] * (UP * UP)
                alone = ((np.abs(J[row, :, c]) + loose[row, :, c]) * radius[b]).sum() * inflation(m)
                distance = np.maximum(point.high[b, k] - value, value - point.low[b, k]) * UP + r
                one = (distance + each.sum()) * inflation(m) + TINY
                apart = np.maximum(box.high[b, k] - value, value - box.low[b, k]) * UP + (r + alone)
                other = apart * inflation(1) + TINY
                known += bool(other < one)
                upper.append(np.fmin(other, one))
                lower.append((np.maximum(point.low[b, k] - value, value - point.high[b, k]) / UP - r) / UP - TINY)
                shares.append(each)
            worst = int(np.argmax(np.where(np.isnan(upper), np.inf, upper)))
            np.testing.assert_allclose(found.upper[b], np.max(upper), rtol=2e-15)
            np.testing.assert_allclose(found.lower[b], np.max(lower), rtol=2e-15)
            np.testing.assert_allclose(found.share[b], shares[worst], rtol=2e-15)
    assert known > 0
    assert 0 < np.isfinite(found.upper).sum() < B  # the root has no values everywhere


#: Value and radius of the network, ends of the target at the centre, and on the box.
TERMS = [
    (1.0, 0.25, (3.0, 3.5), (-np.inf, np.inf)),
    (1.0, 0.25, (-3.5, -3.0), (-np.inf, np.inf)),
    (-1.0, 0.25, (-3.5, -3.0), (-np.inf, np.inf)),
    (-1.0, 0.5, (-7.5, 1.0), (-8.0, 2.0)),
    (1.0, 0.25, (-np.inf, np.inf), (3.0, 3.5)),
    (1.0, 0.25, (-np.inf, np.inf), (-3.5, -3.0)),
    (-1.0, 0.25, (-np.inf, np.inf), (-3.5, -3.0)),
    (0.0, 0.0, (0.0, 0.0), (-np.inf, np.inf)),
    (0.0, 0.0, (-np.inf, np.inf), (0.0, 0.0)),
]


@pytest.mark.parametrize(("value", "r", "at", "on"), TERMS)
@pytest.mark.parametrize("steep", [0.0, 0.75])
def test_a_bound_of_numbers_that_are_known(
    monkeypatch: pytest.MonkeyPatch, value: float, r: float, at: Any, on: Any, steep: float
) -> None:
    problem, _ = stubbed(monkeypatch)

    def full(x: float, *shape: int) -> Any:
        return np.full(shape, x)

    net = Slopes(
        Ball(full(value, 1, 1), full(r, 1, 1)),
        exact(full(steep, 1, 1, 1)),
        np.ones((1, 1, 1)),
        full(r / 8, 1, 1, 1),
    )
    slope = (full(0.25, 1, 1, 1), full(0.5, 1, 1, 1)) if steep else (full(0.0, 1, 1, 1),) * 2
    ends = {
        True: SimpleNamespace(
            low=full(on[0], 1, 1), high=full(on[1], 1, 1), slope_low=slope[0], slope_high=slope[1]
        ),
        False: SimpleNamespace(low=full(at[0], 1, 1), high=full(at[1], 1, 1)),
    }
    monkeypatch.setattr(branch, "network_slopes", lambda *_: net)
    monkeypatch.setattr(branch, "enclose", lambda _program, _low, _high, gradient: ends[gradient])
    low, high = full(0.0, 1, 1), full(0.5 if steep else 0.0, 1, 1)
    with np.errstate(all="ignore"):
        found = branch._bounds(problem, low, high)
        radius, loose = branch.middle(low, high)[1][0, 0], (spread(net.Z, net.C) + net.R)[0, 0, 0]
        g, wide = (x[0, 0, 0] for x in branch.middle(*slope))
        each = (abs(steep - g) + loose + wide) * radius * (UP * UP)
        alone = (steep + loose) * radius * inflation(1)
        one = (max(at[1] - value, value - at[0]) * UP + r + each) * inflation(1) + TINY
        other = (max(on[1] - value, value - on[0]) * UP + (r + alone)) * inflation(1) + TINY
    assert found.upper.tolist() == [min(one, other)]
    assert found.lower.tolist() == [(max(at[0] - value, value - at[1]) / UP - r) / UP - TINY]


def test_boxes_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = np.full((40, 4), 0.5), np.linspace(0.5, 1.0, 40)[:, None] + np.zeros(4)
    whole = branch.bounds(PROBLEM, low, high)
    assert PROBLEM.block == (1 << 21) // (2 * (2 + 4) * 8)
    wide = Problem(network(q=20), program(q=20), 0.0, 1.0)
    assert wide.block == (1 << 21) // (2 * (2 + 4) * 20)
    monkeypatch.setattr(branch, "SCRATCH", 1)
    assert PROBLEM.block == 16
    parts = branch.bounds(PROBLEM, low, high)
    for name in ("upper", "lower", "share"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)


@pytest.mark.parametrize(("most", "parts"), [(0, 1), (1, 1), (15, 1), (16, 2), (80, 2), (81, 3), (256, 4)])
def test_a_grid_covers_the_box(most: int, parts: int) -> None:
    low, high = PROBLEM.grid(most)
    assert low.shape == (parts**4, 4)
    edges = np.linspace(0.25, 1.5, parts + 1)
    at = list(np.ndindex(*(parts,) * 4))
    assert low.tolist() == [[edges[i] for i in row] for row in at]
    assert high.tolist() == [[edges[i + 1] for i in row] for row in at]
    odd = Problem(network(), program(), 0.1, 0.7)
    low, high = odd.grid(81)
    assert (low.min(), high.max()) == (0.1, 0.7)


def test_rounding_is_that_of_the_worst_part(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []

    def rounded(net: Any, centre: Any, radius: Any, A: Any) -> Any:
        said.append((net, centre, radius, A))
        return np.arange(len(centre)) + 100 * len(said)

    monkeypatch.setattr(branch, "largest_rounding", rounded)
    assert PROBLEM.rounding(REAL) == 0.0
    assert not said
    monkeypatch.setattr(branch, "ROUNDED", 100)
    assert PROBLEM.rounding(FLOAT32) == 200 + 16  # 81 boxes: 64, then 17
    low, high = PROBLEM.grid(100)
    centre, radius = branch.middle(low, high)
    for i, name in ((1, centre), (2, radius)):
        np.testing.assert_array_equal(np.concatenate([each[i] for each in said]), name.reshape(-1, 2, 2))
    assert {len(each[1]) for each in said} == {64, 17}
    assert all(each[0] is PROBLEM.network and each[3] is FLOAT32 for each in said)


def stubbed(monkeypatch: pytest.MonkeyPatch) -> tuple[Problem, list[Any]]:
    """One variable on [0, 1]: upper is the high end plus the width, lower the centre; every call is noted."""
    calls: list[Any] = []

    def bounds(_: Any, low: Any, high: Any) -> Bounds:
        calls.append((low, high))
        upper = high[:, 0] + (high - low)[:, 0]
        return Bounds(upper, (low / 2 + high / 2)[:, 0], high - low)

    monkeypatch.setattr(branch, "bounds", bounds)
    monkeypatch.setattr(branch, "FIRST", 2)
    one = {"n": 1, "d": 1, "per": "token", "components": 1, "lines": [["x", 0, 0]], "outputs": [0]}
    return Problem(network(1), read_program(one, "target"), 0.0, 1.0), calls


def test_a_search_halves_what_is_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, calls = stubbed(monkeypatch)
    found = branch.search(problem, 1.25)
    # [0, .5] 1, [.5, 1] 1.5 -> [.5, .75] 1, [.75, 1] 1.25
    assert [[low.ravel().tolist(), high.ravel().tolist()] for low, high in calls] == [
        [[0.0, 0.5], [0.5, 1.0]],
        [[0.5, 0.75], [0.75, 1.0]],
    ]
    assert (found.upper, found.lower, found.where.tolist(), found.boxes) == (1.25, 0.875, [0.875], 4)
    assert (len(found.open[0]), found.open_upper) == (0, 0.0)


def test_a_search_ends_with_its_boxes_its_rounds_or_an_error_that_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, calls = stubbed(monkeypatch)
    few = branch.search(problem, 1.1, 4)
    assert (few.boxes, len(few.open[0]), few.open_upper, few.upper) == (4, 2, 1.25, 1.0)
    assert few.open[0].ravel().tolist() == [0.75, 0.875]
    fewer = branch.search(problem, 1.1, 3)
    assert (fewer.boxes, fewer.open[0].ravel().tolist(), fewer.open_upper) == (2, [0.5, 0.75], 1.5)
    one = branch.search(problem, 1.1, 1)
    assert (one.boxes, one.open_upper, one.where.tolist()) == (1, 2.0, [0.5])
    calls.clear()
    monkeypatch.setattr(branch, "ROUNDS", 3)
    assert branch.search(problem, 1.01).boxes == 2 + 2 + 2
    assert len(calls) == 3
    monkeypatch.setattr(branch, "ROUNDS", 120)
    hit = branch.search(problem, 0.7)
    assert (hit.boxes, hit.lower, hit.where.tolist()) == (2, 0.75, [0.75])
    equal = branch.search(problem, 0.75, 20)
    assert equal.boxes > 2


def test_of_what_is_unknown_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = stubbed(monkeypatch)

    def unknown(_: Any, low: Any, high: Any) -> Bounds:
        return Bounds(np.full(len(low), np.nan), np.full(len(low), np.nan), high - low)

    monkeypatch.setattr(branch, "bounds", unknown)
    found = branch.search(problem, 1.0, 10)
    assert len(found.open[0])
    assert found.lower == -np.inf
    assert found.upper == 0.0


def test_the_smallest_bound_halves_the_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, calls = stubbed(monkeypatch)
    for slack, enough, most, worst, boxes in (
        (10.0, 0.0, 100, 1.5, 2),
        (0.0, 1.5, 100, 1.5, 2),
        (0.0, 1.2, 100, 1.125, None),
        (0.5, 0.0, 100, 1.25, None),
        (0.0, 0.0, 3, 1.5, 2),
        (0.0, 0.0, 2, 1.5, 2),
    ):
        calls.clear()
        found = branch.smallest_bound(problem, slack, most, enough)
        assert found == worst * (1 + 2.0**-30), (slack, enough)
        assert boxes is None or sum(len(low) for low, _ in calls) == boxes


def test_the_smallest_bound_is_that_of_all_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes that are not halved count with what is known of them; so do those of the last round."""
    problem, calls = stubbed(monkeypatch)
    monkeypatch.setattr(branch, "STEP", 0.8)
    found = branch.smallest_bound(problem, 0.0, 40)
    low, high = (np.concatenate([call[i] for call in calls]) for i in (0, 1))
    assert len(low) <= 40
    assert found >= 1.0
    leaves = [
        (a, b)
        for a, b in zip(low.ravel(), high.ravel(), strict=True)
        if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in zip(low.ravel(), high.ravel(), strict=True))
    ]
    assert sum(b - a for a, b in leaves) == 1.0
    assert found == max(b + (b - a) for a, b in leaves) * (1 + 2.0**-30)


def claim(bound: float, A: Any = REAL, low: float = 0.25, high: float = 1.5, target: Program | None = None) -> Any:
    return SimpleNamespace(target=target or program(), numbers={"bound": bound, "low": low, "high": high}, A=A)


def judged(monkeypatch: pytest.MonkeyPatch, found: Search, rounding: float, bound: float, A: Any = REAL) -> Any:
    said: list[Any] = []
    monkeypatch.setattr(branch, "search", lambda *given: said.append(given) or found)
    monkeypatch.setattr(Problem, "rounding", lambda *_: rounding)
    return branch.judge(claim(bound, A), PROBLEM.network), said


NONE = np.zeros((0, 4)), np.zeros((0, 4))


def test_what_is_said_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Search(0.5, 0.1, np.ones(4), 7, NONE, 0.0)
    (outcome, why, value), said = judged(monkeypatch, done, 0.25, 1.0)
    assert (outcome, value) == ("proved", 0.75 * (1 + 2.0**-30))
    assert why.endswith("on the whole box, 7 boxes")
    problem, bound, most = said[0]
    assert (problem.low, problem.high, bound, most) == (0.25, 1.5, 0.75 / UP - TINY, branch.MOST_BOXES)
    assert judged(monkeypatch, done, 0.25, 0.75)[0][2] == 0.75
    box = np.full((2, 4), 0.5), np.full((2, 4), 0.75)
    left = Search(0.5, 0.1, np.ones(4), 7, box, 3.25)
    outcome, why, value = judged(monkeypatch, left, 0.25, 1.0)[0]
    assert (outcome, value) == ("undecided", np.inf)
    assert why.startswith("7 boxes were not enough; open is [0.5, 0.75], [0.5, 0.75]")
    assert why.endswith("may be 3.25")
    for rounding in (1.0, 2.0, np.inf, np.nan):
        (outcome, why, value), said = judged(monkeypatch, done, rounding, 1.0)
        assert (outcome, value, said) == ("undecided", np.inf, [])
        assert "leaves nothing" in why


@pytest.mark.parametrize(
    ("lower", "where", "A", "outcome"),
    [
        (1.3, 0.5, REAL, "refuted"),
        (1.25, 0.5, REAL, "undecided"),
        (1.2, 0.5, FLOAT64, "undecided"),
        (1.3, 0.1, FLOAT64, "refuted"),
        (1.3, 0.1, FLOAT32, "undecided"),
        (1.3, 0.5, FLOAT32, "refuted"),
    ],
)
def test_an_error_that_is_reached_refutes(
    monkeypatch: pytest.MonkeyPatch, lower: float, where: float, A: Any, outcome: str
) -> None:
    found = Search(0.0, lower, np.array([0.5, where, 0.5, 0.5]), 7, NONE, 0.0)
    said = judged(monkeypatch, found, 0.25, 1.0, A)[0]
    assert (said[0], said[2]) == (outcome, np.inf)
    assert f"the error is at least {lower:g} before rounding" in said[1]


def test_a_claim_needs_an_inside_and_few_variables() -> None:
    for low, high, target in (
        (1.0, 1.0, program()),
        (1.0, 0.5, program()),
        (0.0, 1.0, program(5, 1, 1)),
        (0.0, 1.0, program(3, 2, 1)),
    ):
        with pytest.raises(Malformed, match="at most 4 variables"):
            branch.judge(claim(1.0, low=low, high=high, target=target), PROBLEM.network)
