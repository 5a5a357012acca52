"""The largest size of a program's outputs: every box counts, every point lies in the box, and work ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onelayer.problems.targets.expression import read_expression
from onelayer_checker import largest_output
from onelayer_checker.core.files import Malformed
from onelayer_checker.functions import extremes
from onelayer_checker.functions.extremes import FARTHEST, largest
from onelayer_checker.functions.targets import Program, read_program


def entry(text: str, n: int = 1, d: int = 1) -> Any:
    return read_expression(text, n, d)[1].to_json()


def program(text: str, n: int = 1) -> Program:
    return read_program(entry(text, n), "program")


def test_every_box_is_looked_at_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    f, low = program("exp(x)"), np.linspace(0, 1, 45)[:, None]
    wanted = extremes._sizes(f, low, low + 0.01)
    assert (wanted[0] >= np.exp(low[:, 0] + 0.01)).all()
    monkeypatch.setattr(extremes, "SCRATCH", 1)
    for one, other in zip(wanted, extremes._sizes(f, low, low + 0.01), strict=True):
        assert one.tolist() == other.tolist()


def test_of_what_is_no_number_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    f, one = program("x"), np.ones(1)
    line = SimpleNamespace(value=(one * np.nan, one), radius=one, slope=np.ones((1, 1)))
    monkeypatch.setattr(extremes, "relaxed", lambda *_: [line])
    assert extremes._sizes(f, np.zeros((1, 1)), np.ones((1, 1)))[0].tolist() == [np.inf]
    ends = SimpleNamespace(low=np.array([[np.inf, -5.0, 2.0]]), high=np.array([[np.inf, -4.0, 3.0]]))
    monkeypatch.setattr(extremes, "enclose", lambda *_: ends)
    assert extremes._attained(f, np.zeros((1, 1))).tolist() == [4.0]
    ends = SimpleNamespace(low=np.array([[np.inf]]), high=np.array([[np.inf]]))
    assert extremes._attained(f, np.zeros((1, 1))).tolist() == [0.0]


def test_the_first_point_is_the_middle_and_where_it_is_largest_is_kept() -> None:
    found = largest(program("x"), np.array([1.0]), np.array([1.5]), 0.0, 0.01)
    assert (found.where.tolist(), found.boxes) == ([1.25], 1)
    assert found.lower == pytest.approx(1.25)
    best = largest(program("x*(1 - x)"), np.zeros(1), np.ones(1), 60.0, 0.001)
    assert best.where.tolist() == [0.5]
    assert 0.25 * (1 - 1e-12) <= best.lower <= 0.25 <= best.upper <= best.lower * 1.001


def test_more_points_may_be_tried_than_there_are_boxes() -> None:
    tried = np.array([[0.1], [0.2], [0.3], [0.4], [7.0], [0.6]])
    found = largest(program("abs(x)*2"), np.zeros(1), np.full(1, 0.9), 0.0, 0.01, tried)
    assert found.where.tolist() == [0.9]  # what lies beyond the box is moved to it
    found = largest(program("x"), np.zeros(1), np.ones(1), 60.0, 0.01, tried[[0, 1, 2, 3, 5]])
    assert found.upper <= found.lower * 1.01 <= 1.01


@pytest.mark.parametrize("most", [3, 4, 5])
def test_boxes_are_counted_and_work_ends_with_them(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """One box, and then two halves of it, of which one or both are halved again."""
    monkeypatch.setattr(extremes, "MOST_BOXES", most)
    found = largest(program("sin(9*x)*cos(7*mean(y))", 3), np.zeros(3), np.ones(3), 60.0, 1e-9)
    assert found.boxes == 3 if most == 3 else most <= found.boxes <= 7


def test_a_box_has_two_ends_for_each_component_of_each_token() -> None:
    f, low, high = entry("x[0]*mean(y[1])", 3, 2), [0.0, -1.0] * 3, [1.0, 2.0] * 3
    found = largest_output(f, low, high, seconds=0.0, close=0.1)
    assert found.where.tolist() == [0.5] * 6
    assert found.lower == pytest.approx(0.25)
    assert found.upper >= 2
    tried = largest_output(f, low, high, seconds=0.0, close=0.1, tried=[high])
    assert tried.where.tolist() == high
    assert largest_output(f, high, high, seconds=0.0, close=0.1).upper == pytest.approx(2)


@pytest.mark.parametrize("end", [FARTHEST, -FARTHEST])
def test_ends_may_be_as_far_as_two_to_the_thousand(end: float) -> None:
    assert abs(end) == 2.0**1000
    assert largest_output(entry("x", 2), [end, 0.0], [end, 1.0], seconds=0.0, close=0.1).upper >= FARTHEST


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([-(2.0**1000) * 1.5, 0.0], [1.0, 1.0]),
        ([0.0, 0.0], [1.0, 2.0**1000 * 1.5]),
        ([0.0, 0.0], [1.0, -0.5]),
        ([0.0], [1.0, 1.0]),
        ([0.0, 0.0], [1.0]),
        ([0.0, np.nan], [1.0, 1.0]),
    ],
)
def test_one_end_that_is_none_is_enough_to_refuse(low: list[float], high: list[float]) -> None:
    with pytest.raises(Malformed):
        largest_output(entry("x", 2), low, high, seconds=0.0, close=0.1)
