"""Trained twins of functions learn, and figures are written as a person would write them."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer.interfaces.plan import Plan, count_with_commas
from onelayer.lab.functions import fill_closely, fit_transformer
from onelayer.lab.statistics import Factor, Interval
from onelayer.lab.trained import Shape, Task, count_parameters, fill
from onelayer.problems.targets import resolve


def test_more_steps_leave_a_smaller_error() -> None:
    target = resolve("mean", n=2, d=1)
    few, many = (fit_transformer(target, 400, 1, steps, 0) for steps in (5, 300))
    assert many.error < few.error / 2
    assert few.width == many.width
    assert abs(many.parameters / 400 - 1) <= 0.02
    assert fit_transformer(target, 400, 1, 5, 0) == few


@pytest.mark.parametrize("parameters", [335, 500, 767, 2000, 8000])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_twins_of_any_depth_have_equally_many_parameters(parameters: int, layers: int) -> None:
    task = Task(np.zeros((4, 2, 1), np.float32), np.zeros((4, 2, 1)), "reals")
    kind = Shape(1, layers=layers, norm=True)
    shape, widest = fill_closely(kind, task, parameters), fill(kind, task, parameters)
    assert abs(count_parameters(shape, task) / parameters - 1) <= 0.02
    assert abs(shape.width - widest.width) <= 3
    assert min(shape.width, shape.hidden) >= 1


@pytest.mark.parametrize(
    ("mean", "half", "written"),
    [
        (3001.2, 139.6, "3001 ± 140"),
        (11670.0, 46.0, "11,670 ± 46"),
        (132.0, 200.0, "132 ± 200"),
        (0.6786, 3e-16, "0.6786 ± 0"),
        (1.5, 99.7, "1.5 ± 100"),
    ],
)
def test_intervals_have_no_powers_of_ten_where_a_person_would_write_none(mean, half, written) -> None:
    assert str(Interval(mean, half, 3)) == written
    assert str(Interval(mean, 0.0, 1)) == written.split(" ")[0]


def test_a_factor_that_says_nothing_says_so() -> None:
    assert str(Factor(10.9, 4.2e5, 2)) == "10.9 (within more than a factor of 100)"
    assert str(Factor(10.9, 2.5, 3)) == "10.9 (within a factor of 2.5)"


def test_plans_are_told_in_units() -> None:
    def plan(size: float, seconds: float) -> Plan:
        return Plan("quantise", 3, 0.1, 9, 10**21, size, seconds, reachable=True, provable=True)

    assert plan(1536.0, 0.02).memory == "1.5 KiB"
    assert plan(10.0, 0.02).memory == "10 bytes"
    assert plan(3 * 2.0**30, 12.3).memory == "3 GiB"
    assert plan(1.0, 0.02).duration == "< 0.1 s"
    assert "10^21 parameters" in str(plan(1.0, 12.3))
    assert count_with_commas(1234567) == "1,234,567"
