"""Whether different contexts are apart: every pair of samples in exact rationals, and what is said of it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from onelayer_checker.core.balls import FLOAT32, REAL, UP
from onelayer_checker.core.judge import Judge
from onelayer_checker.core.separated import _packed
from tests.checker.counted import counted
from tests.checker.test_judge import Network, claim, column, data


def judging(m, radius=0.0, tokens=None) -> Judge:
    """Of coordinates [N], [N, c] or [N, n, c]; without tokens, all sequences are different."""
    m = np.asarray(m, float)
    m = m if m.ndim == 3 else m.reshape(len(m), 1, -1)
    tokens = np.arange(len(m)).reshape(-1, 1) if tokens is None else np.asarray(tokens)
    return Judge(Network(m, radius), data(np.zeros(tokens.size), tokens=tokens))


def separated(m, radius=0.0, /, *, tokens=None, **numbers):
    return judging(m, radius, tokens).judge(claim("separated", **numbers))


def test_samples_are_apart_in_some_coordinate() -> None:
    for m, r, delta, outcome in (
        ([0, 1, 3], 0, 0.9, "proved"),
        ([3, 0, 1], 0, 0.9, "proved"),
        ([0, 1, 3], 0, 1.1, "undecided"),
        ([0, 1, 3], 0.1, 0.79, "proved"),
        ([0, 1, 3], 0.1, 0.81, "undecided"),
        ([[0, 0], [0, 1]], 0, 0.9, "proved"),
        ([[0, 1], [0, 0]], 0, 0.9, "proved"),
        ([[0, 0], [0.5, 0.5]], 0, 0.9, "undecided"),
        ([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], 0, 0.9, "proved"),
        ([[0, 0, 0], [0, 0, 1], [0, 0.5, 0], [1, 0, 0]], 0, 0.9, "undecided"),
        ([[0, 5], [0.1, 0], [0.2, 5.1]], 0, 0.9, "undecided"),  # the first and the third, with one between
        ([[0, 5], [0.1, 0], [0.2, 7]], 0, 0.9, "proved"),
        ([0, 0, 0], 0, 0.1, "undecided"),
        ([7], 0, 100, "proved"),
        ([0, np.nan], 0, 0.1, "undecided"),
    ):
        found = separated(m, r, r=100.0, delta=delta)
        assert found.outcome == outcome, (m, r, delta)


def test_samples_of_one_class_need_not_be() -> None:
    same = np.array([[4], [4], [5]])
    assert separated([0, 0, 1], tokens=same, r=9.0, delta=0.5).outcome == "proved"
    assert separated([0, 1, 0], tokens=same, r=9.0, delta=0.5).outcome == "undecided"
    assert separated([0, 0, 0.25], tokens=same, r=9.0, delta=0.5).outcome == "undecided"


def test_bounded_coordinates_are_bounded() -> None:
    for m, r, most, outcome in (
        ([3, 0], 0, 2.9, "undecided"),
        ([3, 0], 0, 3.1, "proved"),
        ([3, 0], 0, 3 * (1 + 2.0**-40), "proved"),
        ([-3, 0], 0, 2.9, "undecided"),
        ([-3, 0], 0, 3.1, "proved"),
        ([3, 0], 0.25, 3.1, "undecided"),
        ([-3, 0], 0.25, 3.1, "undecided"),
        ([[0, 3], [1, 0]], 0, 2.9, "undecided"),
        ([3, 0], np.inf, 1e300, "undecided"),
    ):
        found = separated(m, r, r=most, delta=0.1)
        assert found.outcome == outcome, (m, r, most)
        if outcome == "undecided":
            assert found.why.startswith("sequence 0, token 0 may have a coordinate of size")
            assert found.value == 0
    assert separated([0, 3], r=2.9, delta=0.1).why.startswith("sequence 1,")
    assert separated([3, 5], r=3 * (1 + 2.0**-40), delta=0.1).why.startswith("sequence 1,")
    assert 3 <= separated([0, 3], r=2.9, delta=0.1).size < 3.001
    assert 3 <= separated([0, 3], r=9.0, delta=0.1).size < 3.001
    assert 3.25 <= separated([0, -3], 0.25, r=9.0, delta=0.1).size < 3.2501


def test_the_separation_that_is_certain_is_named() -> None:
    found = separated([0, 2, 5, 6.5], 0.25, r=9.0, delta=0.5)
    assert 0.9999 < found.value <= 1
    assert found.why.startswith("4 samples, classes at least 1 apart")
    same = separated([0.5, 0.625, 5.5], tokens=[[1], [1], [2]], r=9.0, delta=0.5)
    assert 4.8749 < same.value <= 4.875
    again = separated([0, 2, 5, 6.5], 0.25, r=9.0, delta=found.value)  # as far apart as was certain
    assert (again.outcome, again.value) == ("proved", found.value)
    assert separated([[0, 0], [0, 2], [0, 5], [0, 6.5]], 0.25, r=9.0, delta=found.value).outcome == "proved"
    two = separated([[0.5, 0.5], [2.5, 0.5]], r=9.0, delta=0.5)
    assert two.value == 0.5
    open_ = separated([[0, 0], [0.25, 0.375], [9, 9]], r=9.5, delta=0.5)
    assert open_.why == "sequence 0, token 0 and sequence 1, token 0 are certainly apart only by 0.375"
    assert open_.value == 0
    later = separated([[0, 0], [5, 5], [5.25, 5.375], [9, 9]], r=9.5, delta=0.5)
    assert later.why == "sequence 1, token 0 and sequence 2, token 0 are certainly apart only by 0.375"
    over = separated([[0, 0], [0.25, 0.25], [9, 9]], 0.5, r=9.6, delta=0.5)
    assert over.why.endswith("are certainly apart only by 0")


def test_real_coordinates_may_be_those_of_an_arithmetic() -> None:
    """If they were computed for it; and if they do not settle it, real ones are computed."""
    for radius, asked in ((0.0, ["float32"]), (2.0, ["float32", "real"])):
        network = Network(column([0, 1]), lambda A, _, r=radius: np.full((2, 1, 1), r if A is FLOAT32 else 0.0))
        judge = Judge(network, data([0, 1]))
        judge.judge(claim(arith="float32", eps=9.0))
        assert judge.judge(claim("separated", "real", r=9.0, delta=0.5)).outcome == "proved"
        assert [name for _, name in network.asked] == asked
    network = Network(column([0, 1]))
    assert Judge(network, data([0, 1])).judge(claim("separated", "real", r=9.0, delta=0.5)).outcome == "proved"
    assert [name for _, name in network.asked] == ["real"]
    network = Network(column([0, 1]), lambda A, _: np.full((2, 1, 1), 2.0 if A is FLOAT32 else 0.0))
    judge = Judge(network, data([0, 1]))
    judge.judge(claim(arith="float64"))
    assert judge.judge(claim("separated", "float32", r=9.0, delta=0.5)).outcome == "undecided"
    assert {name for _, name in network.asked} == {"float64", "float32"}


def test_separation_is_that_of_all_pairs() -> None:
    """Random samples on a grid about as fine as delta, some of one class, against every pair."""
    rng, seen = np.random.default_rng(5), {"proved": 0, "undecided": 0}
    for _ in range(1500):
        N, n, c, delta = *(int(rng.integers(1, k)) for k in (6, 3, 4)), float(rng.choice([1.0, 0.3]))
        noise = 1 + rng.integers(-2, 3, (N, n, c)) * 2.0**-52
        m = rng.integers(0, rng.choice([2, 4, 12, 50]), (N, n, c)) * delta * noise
        r = float(rng.choice([0, 0, 2.0**-53, 0.1]))
        tokens = rng.integers(0, rng.choice([2, 5, 99]), (N, n))
        asked = delta * (1 - int(rng.integers(0, 3)) * 2.0**-51)
        found = separated(m, r, tokens=tokens, r=99.0, delta=asked)
        gaps = [Fraction(1000)]
        for (i, k), (j, l) in combinations(product(range(N), range(n)), 2):
            if tokens[i, k] != tokens[j, l] or sorted(tokens[i]) != sorted(tokens[j]):
                pairs = zip(m[i, k].tolist(), m[j, l].tolist(), strict=True)
                gaps.append(max(abs(Fraction(x) - Fraction(y)) for x, y in pairs) - 2 * Fraction(r))
        if found.outcome == "proved":
            assert min(gaps) >= Fraction(asked)
            assert c > 1 or min(gaps) >= Fraction(min(found.value, 1000.0))
        else:
            assert min(gaps) < Fraction(asked * (1 + 1e-9))
        seen[found.outcome] += 1
    assert min(seen.values()) > 200, seen


def test_contexts_near_whole_numbers_are_told_apart_by_them() -> None:
    """The next whole number is 1 away, less what both are off; the same one is shared within a class only."""
    found = separated([[0, 4], [1.0625, 4], [1, 5]], 0.0625, r=9.0, delta=0.5)
    assert found.outcome == "proved"
    assert 0.7499 < found.value <= 0.75
    assert found.why.startswith("3 samples, classes at least 0.75 apart")
    assert 5.0625 <= found.size < 5.0626
    same = [[7], [8], [7], [9], [8], [7]]
    m = [[3, 1], [0, 0], [3, 1], [3, 2], [0, 0], [3, 1]]
    assert separated(m, 0.125, tokens=same, r=9.0, delta=0.5).outcome == "proved"
    for at in range(6):
        other = [row if k != at else [99] for k, row in enumerate(same)]
        wanted = "proved" if at == 3 else "undecided"
        assert separated(m, 0.125, tokens=other, r=9.0, delta=0.5).outcome == wanted
    assert separated([[0, 0], [0.75, 0.75]], r=9.0, delta=0.5).value == 0.5  # too far off: not by whole numbers


def test_many_wide_columns_are_sorted_together() -> None:
    """Whole numbers that do not fit into one, and some that just do."""
    rng = np.random.default_rng(6)
    for spans in ((1 << 40, 1 << 40), (1 << 31, 1 << 30), (1 << 31, 1 << 31), (3, 1 << 50, 1 << 11, 2, 5)):
        for _ in range(20):
            m = np.stack([rng.choice([0, span // 2, span - 1], 8) for span in spans], axis=1).astype(float)
            distinct = len({tuple(row) for row in m.tolist()}) == 8
            found = separated(m, r=2.0**51, delta=0.5)
            assert found.outcome == ("proved" if distinct else "undecided")
            assert found.value > 0.99 or not distinct  # by whole numbers, not by one of the columns
            classes = [[[tuple(row) for row in m.tolist()].index(tuple(row))] for row in m.tolist()]
            assert separated(m, tokens=classes, r=2.0**51, delta=0.5).outcome == "proved"


def test_numbers_that_may_not_be_whole_are_not_taken_for_whole() -> None:
    far = [[2.0**52 + 1], [2.0**52 + 2]]
    assert separated(far, r=2.0**53, delta=0.9).outcome == "undecided"  # 1, less what is rounded there
    assert separated([[2.0**51 + 1], [2.0**51 + 2]], r=2.0**53, delta=0.9).outcome == "proved"
    for off, delta, outcome in ((0.25, 0.49, "proved"), (0.25, 0.51, "undecided"), (0.5, 1e-9, "undecided")):
        assert separated([[1 + off], [2 - off]], r=9.0, delta=delta).outcome == outcome
        assert separated([[1], [2]], off, r=9.0, delta=delta).outcome == outcome


def test_packed_columns_tell_the_same_rows_apart() -> None:
    """Every row of a grid has keys of its own; also where the numbers together are more than a word holds."""
    grid = np.array(list(product(range(3), range(4), range(2))), float)
    wide = [[a, b, c] for a in (0, 2.0**24, 2.0**25, 2.0**40) for b in (0, 1, 2.0**20) for c in (0, 7, 2.0**20)]
    wider = [[a, b] for a in (0, 2.0**24, 2.0**41, 2.0**50) for b in (0, 2.0**23, 2.0**40)]
    slow = [[a, b, c, d] for a in (0, 1) for b in (0, 2.0**30) for c in (0, 2.0**31) for d in (0, 2.0**32 - 1)]
    for rows in (
        grid,
        grid + 5,
        grid - 9,
        np.array(wide),
        np.array(wider),
        np.array(slow),
        np.array(wider)[:, ::-1],
    ):
        keys = list(zip(*(key.tolist() for key in _packed(rows)), strict=True))
        assert len(set(keys)) == len(rows)
    assert len(_packed(grid)) == 1
    assert len(_packed(np.array(wider))) == 2


@pytest.mark.parametrize(
    "spans", [(4, 1 << 32, 1 << 32), (1, 4, 1 << 32, 1 << 32), (1 << 24,) * 3, (1 << 40, 1 << 40, 1 << 10)]
)
def test_packed_columns_lose_none_of_their_bits(spans) -> None:
    """In a word that holds too much the first column would not count, nor would one that is written over."""
    rows = np.array(list(product(*({0, span // 2, span - 1} for span in spans))), float)
    assert len(set(zip(*(key.tolist() for key in _packed(rows)), strict=True))) == len(rows)


def test_rounding_does_not_hide_what_is_missing() -> None:
    """Sizes, distances and separations that are rounded to just what is claimed."""
    assert separated([3, 0], 2.0**-60, r=3.0, delta=0.1).outcome == "undecided"
    assert separated([0, 1], 2.0**-60, r=9.0, delta=1.0).outcome == "undecided"
    r = 0.5 - 2.0**-20
    assert separated([0, 1], r, r=9.0, delta=2.0**-19 - 2.0**-39).outcome == "proved"
    assert separated([0, 1], r, r=9.0, delta=2.0**-19 + 2.0**-42).outcome == "undecided"
    assert separated([2.0**-55, 1], r, r=9.0, delta=2.0**-19 - 2.0**-58).outcome == "undecided"
    assert 6 <= separated([0.25, 6], 0.0, r=9.0, delta=0.9).size < 6.001


@pytest.mark.parametrize(
    "spans",
    [
        (4, 1 << 32, 1 << 32),
        (1, 4, 1 << 32, 1 << 32),
        (1, 1, 4, 1 << 32, 1 << 32),
        (1 << 30, 1 << 24, 1 << 24),
        (1 << 40, 1 << 40, 1 << 10),
        (1 << 40, 1 << 40, 1 << 10, 1 << 40, 1 << 10),
        (2, 1 << 31, 1 << 31),
        (1 << 31, 1 << 31, 2),
    ],
)
def test_two_samples_at_one_place_are_found_with_another_between_them(spans) -> None:
    """Numbers that together are more than a word holds: were a part of them lost, the other would be in the way."""
    most = [span - 1 for span in spans]
    for at, span in enumerate(spans):
        for k in range(span.bit_length() - 1):
            other = [0] * len(spans)
            other[at] = 1 << k
            m = [[0] * len(spans), other, [0] * len(spans), most]
            assert separated(m, r=2.0**51, delta=0.5).outcome == "undecided", (spans, other)
            assert separated(m, tokens=[[7], [8], [7], [9]], r=2.0**51, delta=0.5).outcome == "proved"


def test_pairs_that_are_near_along_the_first_coordinate_are_counted_before_they_are_compared() -> None:
    def lines(m, tokens=None, **numbers):
        judge = judging(m, tokens=tokens)
        judge.samples(REAL, "token")  # before it is counted
        with counted() as found:
            judge.judge(claim("separated", r=9.0, **numbers))
        return found

    def pairs(count: int, samples: int):
        what = f"{count} pairs of samples, near in their first coordinate,"
        return [(what, 100 * count, 40 * samples, 0), ("comparing equal samples", 0, 0, 0)]

    assert lines([0.5, 1.0, 1.5, 3.5], delta=0.499)[:2] == pairs(0, 4)
    assert lines([0.5, 1.0, 1.5, 3.5], delta=0.501)[0] == pairs(2, 4)[0]
    assert lines([[1.5, 3], [3.5, 1], [0.5, 2], [1.0, 4]], delta=0.75)[:2] == pairs(2, 4)
    reach = (np.nextafter(0.5, 1) + 0.5) * UP  # what begins here is just near enough to be counted
    at = np.nextafter(reach, 2)
    assert lines([0.5, float(at)], delta=0.5)[0] == pairs(1, 2)[0]
    assert lines([0.5, float(np.nextafter(at, 2))], delta=0.5)[0] == pairs(0, 2)[0]
    three = lines([0.5, 0.5, 0.5], tokens=[[1], [1], [1]], delta=0.5)
    assert three[0] == pairs(3, 3)[0]
    assert three[1:] == [("comparing equal samples", 2e4 * k, 0, 0) for k in (2, 1)]
    assert lines([1, 1, 2, 1], tokens=[[1], [1], [2], [1]], delta=0.5) == [("comparing equal samples", 4e4, 0, 0)]
